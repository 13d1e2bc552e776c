"""Steps of a host that marks them and an accelerator that does their work later."""

from __future__ import annotations

import pytest

from crystalperf.query.frameworks.ml.jax.operations import of_line
from crystalperf.query.frameworks.ml.tensorflow import xplane
from crystalperf.query.frameworks.ml.tensorflow.xplane import Line, Plane, Traced
from crystalperf.query.frameworks.ml.training import steady
from crystalperf.query.frameworks.ml.training.gaps import fill_idle
from crystalperf.query.frameworks.ml.training.lanes import Lane
from crystalperf.query.frameworks.ml.training.program import Operation, Step
from crystalperf.query.frameworks.ml.training.steady import Kernel
from crystalperf.query.trace.records import Problems


def marked(*spans: tuple[float, float]) -> list[Step]:
    return [Step(str(number), "process", start, end) for number, (start, end) in enumerate(spans)]


def lengths(found: steady.Steady | None) -> list[float]:
    assert found is not None
    return [each.end_ms - each.start_ms for each in found.steps]


def test_steps_of_a_host_that_is_ahead_last_as_long_as_their_kernels() -> None:
    found = steady.of_marks(
        marked((0, 1), (1, 2), (2, 3)), [Kernel(0.5, 0.6, 10), Kernel(1.5, 10, 20), Kernel(2.5, 20, 30)], []
    )
    assert lengths(found) == pytest.approx([9.4, 10, 10])
    assert found is not None
    assert float(found.properties()["busy_ms"]) == pytest.approx(29.4 / 3, rel=1e-4)


def test_steps_of_a_slow_host_begin_with_its_marks_and_the_profilers_own_start_is_left_out() -> None:
    found = steady.of_marks(
        marked((0, 9), (10, 14), (15, 19), (20, 24)), [Kernel(t + 1, t + 2, t + 3) for t in (0, 10, 15, 20)], [11, 40]
    )
    assert lengths(found) == [5, 5, 4]
    assert found is not None
    assert found.properties() == {"busy_ms": "1", "launches": "1", "synchronisations": "0.333333"}


def test_a_step_without_kernels_leaves_the_marks() -> None:
    assert steady.of_marks(marked((0, 1), (1, 2)), [Kernel(0.5, 0.6, 1)], []) is None
    assert steady.of_marks([], [], []) is None


def test_a_thread_that_only_launches_is_not_the_next_thread() -> None:
    launcher = Line("launcher", [Traced("cuLaunch", 0, 0, {"correlation_id": "7"})])
    python = Line("python", [Traced("PjitFunction(step)", 0, 5)])
    stream = Line("Stream #1", [Traced("gemm", 1, 3, {"correlation_id": "7"})])
    planes = [Plane("/host:CPU", [launcher, python], {}), Plane("/device:GPU:0", [stream], {"gpu_device_name": "H100"})]
    problems = Problems()
    found = xplane.of_planes([("process", planes)], "trace", problems, "jax", of_line)
    assert "no dependencies" in {each.name for each in problems}
    assert [each.model for each in found.devices if each.accelerator] == ["H100"]


def test_time_of_the_marking_thread_in_which_nothing_runs_is_python() -> None:
    main = Lane("process", "python", "process", [op(1, 2), op(60, 61)])
    other = Lane("process", "pool", "process", [op(2, 4), op(11, 12)])
    fill_idle(main, [other], [Step("0", "process", 0, 10), Step("1", "process", 10.5, 70)])
    found = [(each.operator, each.start_ms, each.end_ms, each.likely) for each in main.operations]
    added = [each for each in found if each[0] != "op"]
    assert added == [
        ("between operators", 0, 1, "cpu"),
        ("between operators", 4, 10, "cpu"),
        ("Python", 10.5, 11, "cpu"),
        ("between operators", 12, 60, ""),  # too long for Python alone
        ("between operators", 61, 70, "cpu"),
    ]


def op(start_ms: float, end_ms: float) -> Operation:
    return Operation("process", start_ms, end_ms, "op", likely="cpu")
