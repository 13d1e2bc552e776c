"""Parts of a training's path that have a name of their own: they lead the answer if they are the largest part."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import crystalperf as cp
from crystalperf.query.results.answers import Bottleneck
from crystalperf.query.text.answers import bottleneck_sentence
from crystalperf.query.text.figures import time_unit
from tests.hand_made import figures

ODD = Path(__file__).parent / "data/odd/pytorch"


def event(name: str, start: float, length: float, cat: str = "cpu_op", **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": start, "dur": length, "args": args}


def answered(path: Path, events: list[dict[str, Any]]) -> tuple[Bottleneck, list[float]]:
    """The bottleneck of a trace, and the figures of its sentence."""
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return of(cp.profile(path))


def of(run: cp.Run) -> tuple[Bottleneck, list[float]]:
    verdict = run.verdict()
    unit = time_unit(verdict.debug.runtime_ms)
    sentence = bottleneck_sentence(verdict.bottleneck, verdict.debug, verdict.header.resources, unit)
    return verdict.bottleneck, figures(sentence)


def test_time_without_any_operator_is_not_cpu_time() -> None:
    found, shown = of(cp.profile(ODD / "p31_gap_8000us.json"))
    assert (found.kind, found.name) == ("part", "no-operator")
    assert shown[:2] == [24, 36]


@pytest.mark.parametrize("gap_us", [2_000, 8_000, 39_000, 41_000, 300_000])
def test_gaps_of_any_length_have_one_name(tmp_path: Path, gap_us: int) -> None:
    events = [event("aten::mm", number * (gap_us + 500), 500) for number in range(4)]
    found, _ = answered(tmp_path / "trace.json", events)
    assert (found.name, found.time_ms) == ("no-operator", pytest.approx(3 * gap_us / 1e3, rel=0.01))


def test_short_gaps_are_the_overhead_of_operators(tmp_path: Path) -> None:
    events = [event("aten::mm", number * 1_000, 400) for number in range(40)]
    found, _ = answered(tmp_path / "trace.json", events)
    assert (found.kind, found.name) == ("resource", "cpu")


def test_starting_the_accelerator_leads(tmp_path: Path) -> None:
    events = [
        event("aten::empty", 0, 90_000),
        event("cudaStreamCreateWithPriority", 100, 80_000, "cuda_runtime"),
        event("aten::mm", 90_000, 10_000),
    ]
    found, shown = answered(tmp_path / "trace.json", events)
    assert (found.kind, found.name) == ("part", "starting-accelerator")
    assert shown[:2] == [80, 100]


def making(call: str) -> list[dict[str, Any]]:
    """Steps of 46 ms, 35 of which a loader takes for a batch, 20 of these in operators; with Python functions."""
    events = [event("train.py(1): <module>", 0, 184_000, "python_function")]
    for number in range(4):
        now = 46_000 * number
        events += [
            event(f"ProfilerStep#{number}", now, 46_000, "user_annotation"),
            event(f"enumerate(DataLoader)#{call}.__next__", now, 35_000, "user_annotation"),
            event("data.py(7): __getitem__", now + 10, 34_000, "python_function"),
            event("aten::randn", now + 100, 20_000),
            event("aten::mm", now + 35_000, 11_000),
        ]
    return events


def test_batches_that_the_training_thread_makes_itself_lead(tmp_path: Path) -> None:
    found, shown = answered(tmp_path / "trace.json", making("_SingleProcessDataLoaderIter"))
    assert (found.kind, found.name) == ("part", "making-batches")
    assert shown[:2] == [140, 184]


def test_batches_of_loader_processes_are_not_made_by_the_training_thread(tmp_path: Path) -> None:
    found, _ = answered(tmp_path / "trace.json", making("_MultiProcessingDataLoaderIter"))
    assert found.name != "making-batches"


@pytest.mark.parametrize("count", [1, 8])
def test_accelerators_are_devices_and_their_host_is_not(tmp_path: Path, count: int) -> None:
    events = []
    for number in range(count):
        launch = event("cudaLaunchKernel", 1_000 * number, 10, "cuda_runtime", correlation=number)
        kernel = event("gemm", 1_000 * number + 100, 5_000, "kernel", correlation=number, device=number, stream=7)
        events += [event("aten::mm", 1_000 * number, 900), launch, {**kernel, "pid": number, "tid": 7}]
    (tmp_path / "trace.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    assert cp.profile(tmp_path / "trace.json").header().workers == count


# Cycles -----------------------------------------------------------------------------------------------------------


def cycles_in(folder: Path, names: list[str], ranks: list[int | None]) -> Path:
    for number, (name, rank) in enumerate(zip(names, ranks, strict=True)):
        info = {} if rank is None else {"distributedInfo": {"rank": rank, "world_size": 2}}
        events = [event("aten::mm", 0, 1_000 * (number + 1))]
        (folder / name).write_text(json.dumps({"schemaVersion": 1, **info, "traceEvents": events}))
    return folder


def test_the_newest_of_several_cycles_is_used_and_said(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    cycles_in(folder, ["host_7.9.pt.trace.json", "host_7.10.pt.trace.json"], [None, None])
    run = cp.profile(folder)
    assert run.header().duration_ms == pytest.approx(2)
    (said,) = [each for each in run.header().problems if each.name == "several cycles"]
    assert "job/N" in said.meaning
    assert "host_7.10" in said.meaning
    assert cp.profile(folder, app="job/1").header().duration_ms == pytest.approx(1)


def test_a_cycle_of_several_ranks_is_one_run(tmp_path: Path) -> None:
    names = [f"rank{rank}.{cycle}.json" for cycle in (1, 2) for rank in (0, 1)]
    run = cp.profile(cycles_in(tmp_path, names, [0, 1, 0, 1]))
    assert run.header().workers == 2
    assert run.header().duration_ms == pytest.approx(4)


def test_traces_with_other_names_are_not_cycles(tmp_path: Path) -> None:
    cycles_in(tmp_path, ["resnet.json", "bert.json"], [None, None])
    header = cp.profile(tmp_path).header()
    assert header.duration_ms == pytest.approx(2)
    assert not [each for each in header.problems if each.name == "several cycles"]
