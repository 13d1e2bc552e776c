"""A run file whose values somebody changed is refused when it is opened, in one sentence, by every interface."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest

from crystalperf.indexes import cache, store
from crystalperf.indexes.errors import IndexFileError
from crystalperf.query.execution.dag import Dag, Node, StageRun, Tasks
from crystalperf.query.execution.scheduling import FIRST_COME
from crystalperf.query.execution.slots import Slots
from crystalperf.query.run import Run
from crystalperf.query.simulate import list_schedule
from crystalperf.query.simulate.replay import _Simulation, replay

Answer = Callable[..., tuple[int, str, str]]

CHANGED = {
    "no resources": "DELETE FROM resources",
    "no CPU": "DELETE FROM resources WHERE name = 'cpu'",
    "no bytes that move": "UPDATE resources SET moves = NULL",
    "workers twice": "INSERT INTO workers SELECT * FROM workers",
    "a unit that is NUL": "UPDATE resources SET unit = chr(0)",
    "a buffer below zero": "UPDATE resources SET buffer_bytes = '-inf'",
    "CPU time that is NaN": "UPDATE tasks SET cpu_ms = 'nan'",
    "one CPU time that is NaN": "UPDATE tasks SET cpu_ms = 'nan' WHERE rowid = 3",
    "time on nothing": "UPDATE tasks SET other_ms = 1e308",
    "time of an operator": "UPDATE operator_times SET other_ms = '-inf' WHERE rowid = 0",
    "times that do not sum": "UPDATE tasks SET cpu_ms = cpu_ms + 1000",
    "a task that ends first": "UPDATE tasks SET finish_ms = launch_ms - 1 WHERE rowid = 0",
    "no launch": "ALTER TABLE tasks ALTER launch_ms DROP NOT NULL; UPDATE tasks SET launch_ms = NULL",
    "tasks twice": "INSERT INTO tasks SELECT * FROM tasks",
    "stages that are missing": "DELETE FROM stages",
    "an edge to nowhere": "UPDATE edges SET target = 'x' || chr(10) || 'y' WHERE rowid = 0",
    "slots": "UPDATE workers SET slots = -1",
    "two runs": "INSERT INTO runs SELECT * FROM runs",
    "no run": "DELETE FROM runs",
    "a run of NaN": "UPDATE runs SET duration_ms = 'nan'",
    "a name with NUL": "UPDATE runs SET name = 'a' || chr(0) || 'b'",
}


@pytest.mark.few(5)
@pytest.mark.parametrize("how", CHANGED)
def test_changed_values_are_refused_in_one_sentence(how: str, crystalperf: Answer, run_copy: Path) -> None:
    with duckdb.connect(str(run_copy)) as connection:
        connection.execute(CHANGED[how])
    for arguments in (("analyze", run_copy), ("sql", "--run", run_copy, "SELECT 1")):
        code, out, err = crystalperf(*arguments)
        assert (code, out, err.count("\n")) == (1, "", 1)
        assert str(run_copy) in err
        assert "bug" not in err
    with pytest.raises(IndexFileError, match=r"run\.duckdb: "):
        Run(run_copy)


def test_files_that_crystalperf_wrote_pass_the_check(log_run: Run) -> None:
    store.check_again(log_run.path, "run")


def one_slot(tasks: int, length_ms: float) -> tuple[Dag, Tasks, np.ndarray, Slots]:
    """Tasks of one stage on one slot."""
    nodes = {"stage:0": Node("stage:0", "s", 0.0, 1.0, 0)}
    dag = Dag(0.0, 1.0, (StageRun("stage:0", "s", None, 0, 0.0, 0.0, 1.0),), nodes, {})
    zeros, none = np.zeros(tasks, dtype=np.int64), np.full(tasks, -1)
    made = Tasks(
        task_id=np.arange(tasks), stage=zeros, worker=zeros, host=zeros, launch_ms=np.zeros(tasks),
        finish_ms=np.ones(tasks), parts_ms=np.ones((tasks, 4)) / 4, placement=zeros,
        pipeline_wait_ms=np.zeros(tasks), follows=none,
    )  # fmt: skip
    one = np.zeros(1, dtype=np.int64)
    slots = Slots(one, one, np.zeros(1), np.full(1, np.inf), np.full(1, np.inf))
    return dag, made, np.full(tasks, length_ms), slots


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), float("-inf")])
def test_a_replay_rejects_durations_that_are_not_finite(wrong: float) -> None:
    dag, tasks, durations, slots = one_slot(3, 1.0)
    durations[1] = wrong
    with pytest.raises(ValueError, match="not finite"):
        _Simulation(dag, tasks, durations, slots, FIRST_COME, None)
    if list_schedule.has_compiled():
        with pytest.raises(ValueError, match="duration has a number that is not finite"):
            replay(dag, tasks, durations, slots)
    unknown = replace(slots, available_ms=np.array([np.nan]))
    with pytest.raises(ValueError, match="not finite"):
        replay(dag, tasks, np.ones(3), unknown)


@pytest.mark.skipif(not list_schedule.has_compiled(), reason="the loop was not compiled: there is no C compiler")
def test_compiled_replay_can_be_interrupted() -> None:
    """A signal that arrives inside the loop ends it: the handler's exception is the result."""

    class InterruptedError_(Exception): ...

    def interrupt(*_: object) -> None:
        raise InterruptedError_

    dag, tasks, durations, slots = one_slot(3_000_000, 1.0)
    found = list_schedule.ScheduleInput(dag, tasks, slots, FIRST_COME, None)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        with pytest.raises(InterruptedError_):
            found.run(durations)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_checked_file_is_checked_again_after_any_change(run_copy: Path, shared_home: Path) -> None:
    before = run_copy.stat()
    store.checked(run_copy, "run")
    assert cache.facts_if_checked(before, "run") == store.checked(run_copy, "run")
    with duckdb.connect(str(run_copy)) as connection:
        connection.execute(CHANGED["no run"])
    os.utime(run_copy, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert cache.facts_if_checked(run_copy.stat(), "run") is None
    with pytest.raises(IndexFileError):
        store.checked(run_copy, "run")


def test_a_copy_and_a_file_that_others_can_write_are_not_listed(
    run_copy: Path, shared_home: Path, tmp_path: Path
) -> None:
    store.checked(run_copy, "run")
    copy = shutil.copy2(run_copy, tmp_path / "copy.duckdb")
    assert cache.facts_if_checked(copy.stat(), "run") is None
    run_copy.chmod(0o666)
    store.checked(run_copy, "run")
    assert cache.facts_if_checked(run_copy.stat(), "run") is None
