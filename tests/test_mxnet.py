"""MXNet: traces as its profiler writes them, and the public one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import crystalperf as cp
from crystalperf.indexes.errors import InputError
from crystalperf.query.frameworks import Job
from crystalperf.query.frameworks.registry import get
from crystalperf.query.inputs.discover import discover
from tests.reading import profiled, rows
from tests.refusals import refused

REAL = Path(__file__).parents[2] / "shared/real-inputs/other/mxnet/cpu_gpu_data_copy_profiler_output.json"


def named(pid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "args": {"name": name}, "pid": pid, "name": "process_name"}


def ran(name: str, start: int, end: int, pid: int, tid: int) -> list[dict[str, Any]]:
    """An operator as the profiler writes it: on its device, and once more by its kind."""
    one = {"name": name, "cat": "operator"}
    return [
        {**one, "ph": "B", "ts": start, "pid": pid, "tid": tid},
        {**one, "ph": "E", "ts": end, "pid": pid, "tid": tid},
        {**one, "ph": "b", "ts": start, "id": tid, "pid": 3060606181218273969, "tid": tid},
        {**one, "ph": "e", "ts": end, "id": tid, "pid": 3060606181218273969, "tid": tid},
    ]


def called(name: str, start: int, end: int, thread: int = 7) -> list[dict[str, Any]]:
    one = {"name": name, "cat": "MXNET_C_API", "id": thread, "pid": 849786139768988538, "tid": thread}
    return [{**one, "ph": "b", "ts": start}, {**one, "ph": "e", "ts": end}]


def written(path: Path, events: list[dict[str, Any]]) -> Path:
    path.write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}, indent=4))
    return path


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    """A call asks for a copy and a product, and a call waits for them; µs."""
    events = [
        *(named(0, "cpu/0"), named(32, "gpu/0")),
        *called("MXImperativeInvokeEx", 1_000_000, 1_001_000),
        *ran("CopyCPU2GPU", 1_001_010, 1_041_000, 32, 11),
        *ran("dot", 1_041_005, 1_101_000, 32, 12),
        *called("MXNDArrayWaitAll", 1_001_500, 1_101_500),
    ]
    return written(tmp_path / "mxnet.json", events)


def test_operators_are_on_devices_and_a_call_that_waits_waits_for_the_last_of_them(trained: Path) -> None:
    run = cp.profile(trained)
    debug = run.debug()
    assert run.header().framework == "mxnet"
    assert debug.runtime_ms == pytest.approx(101.5)
    found = {name: ms for name, ms in debug.resource_ms.items() if ms > 0.01}
    assert found["pcie"] == pytest.approx(39.99, abs=0.02)
    assert found["gpu"] == pytest.approx(59.995, abs=0.02)
    assert found["cpu"] == pytest.approx(1.5, abs=0.02)
    ordered = [each.name for each in debug.critical_path if not each.name.startswith("before ")]
    assert [each.split(" and ")[0] for each in ordered] == [
        "MXImperativeInvokeEx", "CopyCPU2GPU", "dot", "MXNDArrayWaitAll",
    ]  # fmt: skip
    assert abs(run.baseline().replay_error_ratio) <= 0.03
    assert rows(run, "SELECT count(*) FROM training_operations WHERE operator = 'dot'") == [(1,)]


def test_a_device_twice_as_fast_halves_its_arithmetic_alone(trained: Path) -> None:
    run = cp.profile(trained)
    assert run.predict(["device.gpu=2x"]).predicted_ms == pytest.approx(101.5 - 30, abs=0.5)


def test_operators_of_one_thread_are_not_stragglers_and_share_no_lanes(trained: Path) -> None:
    assert not {each.kind for each in cp.profile(trained).debug().findings} & {"straggler", "idle-slots"}


def test_a_trace_without_operators_is_refused_in_a_sentence(tmp_path: Path) -> None:
    only_names = written(tmp_path / "empty.json", [named(0, "cpu/0"), named(32, "gpu/0")])
    with refused(InputError, only_names):
        cp.profile(only_names)


def test_operators_without_an_end_did_not_run(tmp_path: Path) -> None:
    begun = [ran("dot", 10, 20_000, 0, 1)[0], called("MXNDArrayWaitAll", 10, 20_000)[0]]
    with refused(InputError, tmp_path / "begun.json"):
        cp.profile(written(tmp_path / "begun.json", [named(0, "cpu/0"), *begun]))


def test_each_thread_of_the_program_waits_for_the_engine_and_not_for_another_thread(tmp_path: Path) -> None:
    events = [
        named(0, "cpu/0"),
        *ran("dot", 1_000, 41_000, 0, 1),
        *called("MXNDArrayWaitAll", 500, 41_500, 7),
        *called("MXNDArrayWaitToRead", 600, 42_000, 8),
    ]
    run = cp.profile(written(tmp_path / "threads.json", events))
    waited = rows(run, "SELECT source, target FROM dependencies WHERE why = 'waited for it' ORDER BY target")
    names = dict(rows(run, "SELECT stage_id, name FROM stages"))
    assert [(names[source], names[target]) for source, target in waited] == [
        ("dot", "MXNDArrayWaitAll"), ("dot", "MXNDArrayWaitToRead"),
    ]  # fmt: skip


def test_ends_without_beginnings_are_left_out(tmp_path: Path) -> None:
    events = [named(0, "cpu/0"), *ran("dot", 10, 20_000, 0, 1), *ran("relu", 30_000, 40_000, 0, 1)[1:]]
    run = cp.profile(written(tmp_path / "torn.json", events))
    assert rows(run, "SELECT operator FROM training_operations") == [("dot",)]


def test_each_trace_of_a_folder_is_a_run(trained: Path) -> None:
    (trained.parent / "other.json").write_bytes(trained.read_bytes())
    assert {each.framework for each in discover([trained.parent]).applications} == {"mxnet"}
    assert len(discover([trained.parent]).applications) == 2


def test_setup_says_what_to_add() -> None:
    setup = get("mxnet").advisor.setup
    assert 'filename="/tmp/x/mxnet.json"' in setup.text(Job("/tmp/x"))
    assert 'filename="/mxnet.json"' in setup.text(Job(""))


@pytest.mark.later
@pytest.mark.skipif(not REAL.exists(), reason="the folder of public real inputs is not next to this checkout")
def test_the_public_trace_is_copying_after_a_call_that_starts_the_device() -> None:
    run = profiled(REAL)
    found = {name: ms for name, ms in run.debug().resource_ms.items() if ms > 1}
    assert set(found) == {"cpu", "pcie"}
    assert found["pcie"] == pytest.approx(134.2, abs=0.2)
