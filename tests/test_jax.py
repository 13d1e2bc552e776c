"""JAX: a real trace of a training on a CPU (`python -m lab.runs.training jax`), and threads made by hand."""

from __future__ import annotations

import sys
from pathlib import Path
from shutil import copy
from unittest.mock import MagicMock

import pytest

import crystalperf as cp
from crystalperf.query.frameworks import Job
from crystalperf.query.frameworks.ml.jax.operations import of_line
from crystalperf.query.frameworks.ml.tensorflow.xplane import Line, Traced
from crystalperf.query.frameworks.registry import get
from crystalperf.query.inputs.discover import discover
from crystalperf.query.run import Run
from tests.reading import rows

DATA = Path(__file__).parent / "data/jax"
OPERATORS = (
    "SELECT operator, kind, call_site, sum(finish_ms - launch_ms) FROM training_operations JOIN tasks USING (task_id)"
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return cp.profile([DATA], output=tmp_path_factory.mktemp("jax") / "run.duckdb")


def test_a_run_of_jax_is_called_so_and_has_its_steps(trained: Run) -> None:
    header = trained.header()
    assert (header.framework_title, header.framework_version, header.steps) == ("JAX", "0.10.2", 4)
    assert header.step_ms == pytest.approx(3.65, abs=0.01)


def test_operators_of_xla_and_functions_of_python_take_the_time(trained: Run) -> None:
    found = {row[0]: row[1:] for row in rows(trained, f"{OPERATORS} GROUP BY ALL ORDER BY ALL")}
    assert found["dot"][0] == "op"  # dot, dot.1 and dot.2 are instances of one
    assert found["examples"][:2] == ("python", "jax_job.py:43")
    assert not any("block_until_ready" in name or "Listener" in name for name in found)
    assert trained.debug().resource_ms["cpu"] > 0.7 * trained.debug().runtime_ms


def test_the_viewers_file_has_the_steps_and_operators_of_the_xplane(trained: Run, tmp_path: Path) -> None:
    shown = cp.profile(Path(copy(DATA / "mlp.trace.json.gz", tmp_path)))
    assert shown.header().steps == trained.header().steps
    assert shown.header().step_ms == pytest.approx(trained.header().step_ms, rel=1e-3)
    assert shown.debug().resource_ms == pytest.approx(trained.debug().resource_ms, rel=0.01, abs=0.1)
    modules = "SELECT DISTINCT module FROM training_operations WHERE module IS NOT NULL ORDER BY ALL"
    assert rows(shown, modules) == rows(trained, modules) != []


def test_viewer_export_of_an_xplane_is_not_a_second_run(tmp_path: Path) -> None:
    (found,) = discover([DATA]).applications
    assert [Path(part.path).name for part in found.log.parts] == ["mlp.xplane.pb.gz"]
    alone = Path(copy(DATA / "mlp.trace.json.gz", tmp_path))
    run = cp.profile([alone], output=tmp_path / "run.duckdb")
    assert run.header().framework == "jax"
    assert run.debug().resource_ms["cpu"] > 0.7 * run.debug().runtime_ms


def event(name: str, start_ms: float, end_ms: float, **stats: str) -> Traced:
    return Traced(name, start_ms, end_ms, stats)


def reported(*events: Traced, line: str = "python") -> list[tuple[str, float, float, str]]:
    return [
        (each.operator, each.start_ms, each.end_ms, each.likely) for each in of_line("process", Line(line, [*events]))
    ]


def test_the_innermost_event_says_what_a_thread_did() -> None:
    assert reported(
        event("train", 0, 100, step_num="0"),
        event("$loop.py:3 batch", 10, 40),
        event("$numpy zeros", 20, 30),
        event("$numpy ones", 31, 31.01),
        event("$posix scandir", 41, 44),
        event("$posix read", 44, 46),
        event("PjitFunction(step)", 50, 60),
        event("$api.py:2479 block_until_ready", 60, 95),
        event("$api.py:3165 try_to_block", 61, 94),
    ) == [
        ("batch", 10, 20, "cpu"),
        ("zeros", 20, 30, "cpu"),
        ("batch", 30, 40, "cpu"),
        ("scandir", 41, 44, "disk"),
        ("read", 44, 46, "cpu"),
        ("PjitFunction(step)", 50, 60, "cpu"),
    ]


def test_starting_and_stopping_the_profiler_is_not_time_of_the_program() -> None:
    assert reported(
        event("$profiler.py:101 start_trace", 0, 9_700),
        event("PythonRefManager::CollectGarbage", 5, 6),
        event("PjitFunction(step)", 9_710, 9_712),
        event("$profiler.py:213 stop_trace", 9_720, 9_900),
        event("$json encode", 9_730, 9_800),
    ) == [("PjitFunction(step)", 9_710, 9_712, "cpu")]


def test_an_operator_keeps_what_is_within_it_and_memory_that_is_asked_for_is_of_no_known_resource() -> None:
    assert reported(
        event("PjRtStreamExecutorLoadedExecutable::EnqueueExecution", 0, 10),
        event("Build buffer allocations", 1, 6),
        event("dot.3", 7, 9, hlo_op="dot.3"),
        event("SlinkyThreadPool::Await", 8, 8.5),
    ) == [
        ("PjRtStreamExecutorLoadedExecutable::EnqueueExecution", 0, 1, "cpu"),
        ("Build buffer allocations", 1, 6, ""),
        ("PjRtStreamExecutorLoadedExecutable::EnqueueExecution", 6, 7, "cpu"),
        ("dot", 7, 9, "cpu"),
        ("PjRtStreamExecutorLoadedExecutable::EnqueueExecution", 9, 10, "cpu"),
    ]


def test_exchange_among_devices_of_one_process_is_not_computing() -> None:
    (found,) = of_line("process", Line("tf_XLAEigen/1", [event("all-reduce.2", 0, 5, hlo_op="all-reduce.2")]))
    assert (found.operator, found.kind, found.resource, found.likely) == ("all-reduce", "collective", "", "")


@pytest.mark.parametrize(("backend", "waits"), [("cpu", 10), ("gpu", 4)])
def test_lines_of_setup_mark_six_steps_and_wait_in_each_where_no_kernels_show_its_end(
    backend: str, waits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = MagicMock()
    fake.default_backend.return_value = backend
    monkeypatch.setitem(sys.modules, "jax", fake)
    exec(compile(get("jax").advisor.setup.text(Job(folder="/tmp/traces")), "setup", "exec"), {})
    options = fake.profiler.ProfileOptions.return_value
    fake.profiler.trace.assert_called_once_with("/tmp/traces", profiler_options=options)
    assert options.python_tracer_level == 0
    assert [each.kwargs["step_num"] for each in fake.profiler.StepTraceAnnotation.call_args_list] == [*range(6)]
    assert fake.block_until_ready.call_count == waits
