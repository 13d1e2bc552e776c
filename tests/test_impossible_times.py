"""Events of trainings whose times cannot be right: left out or corrected, counted and reported.

tests/data/odd/pytorch has small traces, each made after a public report of a damaged one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crystalperf as cp
from crystalperf.query.frameworks.ml.tensorflow import graph, xplane
from crystalperf.query.frameworks.ml.tensorflow.messages import DeviceStats, NodeStats, RunMetadata
from crystalperf.query.frameworks.ml.tensorflow.xplane import Line, Plane, Traced
from crystalperf.query.frameworks.ml.training import times
from crystalperf.query.trace.records import Problems
from tests.reading import rows

ODD = Path(__file__).parent / "data/odd/pytorch"
NOW_US = 1_700_000_000_000_000


def counted(run: cp.Run) -> dict[str, int]:
    """Impossible times by kind."""
    return dict(rows(run, "SELECT name, count FROM import_stats WHERE name LIKE 'time %' ORDER BY name"))


def step_ms(run: cp.Run) -> float:
    found = run.header().step_ms
    assert found is not None
    return found


# The traces of others ---------------------------------------------------------------------------------------------


def test_events_at_zero_have_no_time() -> None:
    run = cp.profile(ODD / "p04_half_at_zero.json")
    assert run.header().duration_ms == pytest.approx(29.99, abs=0.1)
    assert counted(run) == {"time unset": 15}
    assert any(each.count == 15 and "15 times" in each.meaning for each in run.header().problems)


def test_a_negative_duration_is_reported() -> None:
    run = cp.profile(ODD / "p05_negative_duration.json")
    assert counted(run) == {"time negative": 1}
    assert len(rows(run, "FROM training_operations WHERE kind = 'kernel'")) == 5


def test_a_kernel_ends_before_the_call_returned_that_waited_for_it() -> None:
    run = cp.profile(ODD / "p06b_overlong_synchronised.json")
    assert counted(run) == {"time corrected": 1}
    assert step_ms(run) == pytest.approx(10, abs=0.1)
    longest = "SELECT max(finish_ms - launch_ms) FROM tasks JOIN training_operations USING (task_id)"
    assert rows(run, f"{longest} WHERE kind = 'kernel'")[0][0] == pytest.approx(9.05, abs=0.01)


def test_a_plain_list_of_events_is_a_trace() -> None:
    run = cp.profile(ODD / "p03b_list_intact.json")
    assert (run.header().framework, run.header().steps) == ("pytorch", 4)
    assert step_ms(run) == pytest.approx(9.99, abs=0.01)


def test_begin_and_end_events_are_one_event() -> None:
    run = cp.profile(ODD / "p30_begin_end_pairs.json")
    assert run.header().steps == 3
    assert counted(run) == {}
    kernels = "SELECT round(finish_ms - launch_ms, 3) FROM tasks JOIN training_operations USING (task_id)"
    assert rows(run, f"{kernels} WHERE kind = 'kernel'") == [(9.0,)] * 3


# Variants ---------------------------------------------------------------------------------------------------------

Changed = Callable[[dict[str, Any]], dict[str, Any] | None]


def test_begin_and_end_pairs_are_joined_in_any_order(tmp_path: Path) -> None:
    trace = json.loads((ODD / "p30_begin_end_pairs.json").read_text())
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({**trace, "traceEvents": trace["traceEvents"][::-1]}))
    found, usual = (cp.profile(each).debug() for each in (path, ODD / "p30_begin_end_pairs.json"))
    assert found.runtime_ms == pytest.approx(usual.runtime_ms)
    assert found.resource_ms == pytest.approx(usual.resource_ms)


def steps_of(count: int = 6, begin: int = NOW_US) -> Iterator[dict[str, Any]]:
    """Steps of 10 ms: a product that takes 6 ms on the GPU, and a call that waits for it."""
    for number in range(count):
        now = begin + 10_000 * number
        host = {"ph": "X", "pid": 1, "tid": 1}
        yield {**host, "cat": "user_annotation", "name": f"ProfilerStep#{number}", "ts": now, "dur": 9_990}
        yield {**host, "cat": "cpu_op", "name": "aten::mm", "ts": now + 100, "dur": 300}
        call = {**host, "cat": "cuda_runtime", "args": {"correlation": number}}
        yield {**call, "name": "cudaLaunchKernel", "ts": now + 200, "dur": 20}
        device = {"device": 0, "stream": 7, "correlation": number}
        yield {
            **host,
            "cat": "kernel",
            "name": "gemm",
            "pid": 0,
            "tid": 7,
            "ts": now + 300,
            "dur": 6_000,
            "args": device,
        }
        yield {
            **call,
            "name": "cudaDeviceSynchronize",
            "ts": now + 450,
            "dur": 5_900,
            "args": {"correlation": 90 + number},
        }


def changed(path: Path, kernel: int, **facts: Any) -> cp.Run:
    """The run of steps in which one kernel has other times."""
    events = list(steps_of())
    of_device = [each for each in events if each["cat"] == "kernel"]
    of_device[kernel].update(facts)
    target = path / "trace.json"
    target.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return cp.profile(target)


@pytest.mark.parametrize(
    ("facts", "kind"),
    [
        ({"dur": float("nan")}, "invalid"),
        ({"dur": float("inf")}, "invalid"),
        ({"dur": 1e308, "ts": 1e308}, "invalid"),
        ({"dur": None}, "invalid"),
        ({"dur": -1}, "negative"),
        ({"ts": 0, "dur": 0}, "unset"),
        ({"ts": 0}, "apart"),
        ({"ts": NOW_US + 3_600_000_000}, "apart"),
        ({"ts": NOW_US - 3_600_000_000}, "apart"),
        ({"ts": 12_345}, "apart"),
        ({"dur": 1_600_000}, "corrected"),
        ({"dur": 12_000}, "corrected"),
        ({"dur": NOW_US}, "corrected"),
    ],
)
@pytest.mark.parametrize("kernel", [2, 5])
def test_one_impossible_event_never_changes_the_step(
    tmp_path: Path, facts: dict[str, Any], kind: str, kernel: int
) -> None:
    run = changed(tmp_path, kernel, **facts)
    assert counted(run) == {f"time {kind}": 1}
    assert step_ms(run) == pytest.approx(10, abs=0.1)
    assert run.header().duration_ms == pytest.approx(60, abs=1)


def test_a_kernel_over_many_later_ones_of_its_stream_is_overlong_without_a_waiting_call(tmp_path: Path) -> None:
    events = [each for each in steps_of() if "Synchronize" not in each["name"]]
    next(each for each in events if each["cat"] == "kernel").update(dur=3_000_000)
    (tmp_path / "trace.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    run = cp.profile(tmp_path / "trace.json")
    assert counted(run) == {"time corrected": 1}
    assert step_ms(run) == pytest.approx(10, abs=1.1)


def test_kernels_of_one_graph_may_run_at_a_time(tmp_path: Path) -> None:
    events = [each for each in steps_of() if "Synchronize" not in each["name"]]
    kernels = [each for each in events if each["cat"] == "kernel"]
    for number, each in enumerate(kernels[1:]):  # three branches of a graph next to a longer one
        each.update(ts=kernels[0]["ts"] + 10 * number, dur=5, args={**kernels[0]["args"]})
    (tmp_path / "trace.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    assert counted(cp.profile(tmp_path / "trace.json")) == {}


def test_an_operator_ends_within_its_step(tmp_path: Path) -> None:
    events = list(steps_of())
    [each for each in events if each["cat"] == "cpu_op"][2].update(dur=250_000)
    (tmp_path / "trace.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    run = cp.profile(tmp_path / "trace.json")
    assert counted(run) == {"time corrected": 1}
    assert step_ms(run) == pytest.approx(10, abs=0.1)


def test_an_end_without_a_name_ends_the_last_event_and_unpaired_ones_are_reported(tmp_path: Path) -> None:
    events: list[dict[str, Any]] = []
    for each in steps_of(3):
        events += [{**each, "ph": "B"}, {**each, "ph": "E", "ts": each["ts"] + each["dur"], "name": ""}]
    for each in events:
        each.pop("dur")
    events.sort(key=lambda each: each["ts"])
    lost = {"ph": "B", "cat": "cpu_op", "name": "aten::lost", "pid": 1, "tid": 9, "ts": NOW_US}
    (tmp_path / "trace.json").write_text(json.dumps([*events, lost]))
    run = cp.profile(tmp_path / "trace.json")
    assert counted(run) == {"time unpaired": 1}
    assert run.header().steps == 3


def test_an_hour_within_one_event_is_not_another_clock(tmp_path: Path) -> None:
    first = list(steps_of(3))
    stalled = {**first[0], "cat": "cpu_op", "name": "aten::item", "ts": NOW_US + 29_000, "dur": 3_600_000_000}
    later = list(steps_of(3, NOW_US + 3_600_100_000))
    for number, each in enumerate(later):
        each["name"] = each["name"].replace("#", f"#1{number}")
    events = [*first, stalled, *later]
    (tmp_path / "trace.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    run = cp.profile(tmp_path / "trace.json")
    assert "time apart" not in counted(run)


# TensorFlow and JAX -----------------------------------------------------------------------------------------------


def of_planes(*kernels: tuple[float, float]) -> tuple[float, dict[str, int]]:
    """The length of an XPlane's program, ms, whose stream has these kernels (start, end), and its problems."""
    host = [Traced(f"dense{number}/MatMul:MatMul", 1e9 + 10 * number, 1e9 + 10 * number + 2) for number in range(6)]
    stream = [Traced("gemm", 1e9 + begin, 1e9 + end) for begin, end in kernels]
    planes = [
        Plane("/host:CPU", [Line("main", host)], {}),
        Plane("/device:GPU:0", [Line("Stream #1(Compute)", stream)], {}),
    ]
    problems = Problems()
    found = xplane.of_planes([("process", planes)], "trace.xplane.pb", problems, "tensorflow", xplane.of_line)
    return found.end_ms - found.start_ms, {each.name: each.count for each in problems if each.name.startswith("time ")}


KERNELS = [(3.0 + 10 * number, 9.0 + 10 * number) for number in range(6)]


def test_planes_leave_out_kernels_with_an_impossible_time() -> None:
    assert of_planes(*KERNELS) == (pytest.approx(59.0), {})
    assert of_planes(*KERNELS[:5], (53.0, 52.0)) == (pytest.approx(52.0), {"time negative": 1})
    assert of_planes(*KERNELS, (-1e9, -1e9)) == (pytest.approx(59.0), {"time unset": 1})
    assert of_planes(*KERNELS, (-1e9 + 5, -1e9 + 9)) == (pytest.approx(59.0), {"time apart": 1})
    assert of_planes(*KERNELS, (60.0, 1e12)) == (pytest.approx(59.0), {"time overlong": 1})
    assert of_planes((3.0, 5_000.0), *KERNELS[1:]) == (pytest.approx(59.0), {"time corrected": 1})


def node(name: str, start: float, end: float, ready: float = 0.0) -> NodeStats:
    return NodeStats(name, start, end, ready, f"{name} = MatMul(x)", 0)


def test_steps_leave_out_nodes_with_an_impossible_time() -> None:
    good = [node(f"n{number}", NOW_US + 1_000 * number, NOW_US + 1_000 * number + 900) for number in range(6)]
    bad = [
        node("unset", 0.0, 0.0),
        node("negative", NOW_US + 100.0, NOW_US - 10.0),
        node("apart", NOW_US + 7.2e9, NOW_US + 7.2e9 + 10),
        node("overlong", NOW_US + 200.0, 3.0 * NOW_US),
    ]
    ready = node("ready", NOW_US + 5_950.0, NOW_US + 5_990.0, ready=1.0)
    problems = Problems()
    step = RunMetadata([DeviceStats("/job:localhost/replica:0/task:0/device:CPU:0", [*good, *bad, ready])])
    found = graph.program([("1", step)], "step.pb", problems)
    assert found.end_ms - found.start_ms == pytest.approx(5.99, abs=0.01)
    names = {each.name for each in problems if each.name.startswith("time ")}
    assert names == {"time unset", "time negative", "time apart", "time overlong"}


# Windows ----------------------------------------------------------------------------------------------------------


def test_a_run_with_long_pauses_is_of_one_clock() -> None:
    starts = np.array([0.0, 1.0, 2_000_000.0, 2_000_001.0, 5_000_000.0])
    covered = times.window(starts[:3], [2_100_000.0, 2.0, 2_000_010.0])
    assert (covered.first, covered.last) == (0.0, 2_000_000.0)
    many = np.concatenate([np.arange(0, 1e5, 1e3), [1e6, 1.2e6]])
    assert times.window(many, many + 1).last == 1.2e6


@pytest.mark.parametrize("count", [0, 1])
def test_a_single_event_is_plausible(count: int) -> None:
    found = times.window([5.0] * count, [9e9] * count)
    assert found.holds(5.0, 9e9, times.Doubts())
