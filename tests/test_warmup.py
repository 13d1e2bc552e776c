"""Tasks that are the first on their worker, each a sum that can be done by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from crystalperf.query.execution.execution import Execution
from crystalperf.query.predict.estimate import predict
from crystalperf.query.predict.scenario_replay import replay_baseline
from crystalperf.query.simulate.repartition import with_tasks
from crystalperf.query.simulate.warmup import (
    FIRST,
    LATER,
    NEW_MS,
    REPEATED_MS,
    STARTING,
    STARTING_MOST,
    FirstTasks,
    levels,
    others,
    placed_before,
    warmup_cost,
)
from tests.test_predict import execution, predicted, scenario


def waves(count: int, executors: int, *, repeated: bool = False, starts: bool = False, ms: float = 1000) -> Execution:
    """So many waves of one task on each executor of one slot, all of one length."""
    rows = [(wave * ms, (wave + 1) * ms) for wave in range(count) for _ in range(executors)]
    run = execution(rows, (1, 0, 0, 0), executors=executors)
    return replace(run, repeated=np.array([repeated]), is_first_scope=starts)


def test_tasks_warm_up_until_one_has_ended_on_their_worker() -> None:
    launch, finish = np.array([0.0, 0.0, 10.0, 10.0, 20.0]), np.array([10.0, 20.0, 20.0, 30.0, 30.0])
    stage, worker = np.array([0, 0, 0, 1, 1]), np.array([0, 1, 0, 0, 1])
    assert levels(stage, worker, launch, finish, starts=False).tolist() == [FIRST, FIRST, LATER, FIRST, FIRST]
    assert levels(stage, worker, launch, finish, starts=True).tolist() == [STARTING, STARTING, LATER, FIRST, FIRST]


@pytest.mark.parametrize(
    ("run", "more_ms"),
    [
        (waves(1, 4), NEW_MS),
        (waves(1, 4, repeated=True), REPEATED_MS),
        (waves(1, 4, starts=True), 1000 * STARTING_MOST / (STARTING_MOST + 1)),
    ],
)
def test_half_the_workers_warm_up_half_of_the_tasks(run: Execution, more_ms: float) -> None:
    assert predicted(run, "executors=0.5x") == pytest.approx(2000 - more_ms)


def test_twice_the_workers_warm_up_all_tasks() -> None:
    assert predicted(waves(2, 2), "executors=2x") == pytest.approx(1000 + NEW_MS)
    assert predicted(waves(2, 2, repeated=True), "executors=2x") == pytest.approx(1000 + REPEATED_MS)


def test_split_tasks_share_the_warmup_of_the_original() -> None:
    """Two executors of one slot had a task each, 1 000 ms of which 250 went to being first; four pieces have 375 ms of
    work each, and on four executors all of them are first."""
    run = waves(1, 2)
    cut = with_tasks(run, {0: 4})
    base = replay_baseline(run)
    costs = warmup_cost(run, base.replayed)
    assert costs is not None
    pieces = placed_before(costs, run, base.replayed, cut.tasks, replay_baseline(cut).replayed)
    assert pieces.is_cut.all()
    first = FirstTasks(np.full(4, FIRST), np.zeros(4, dtype=np.int64))
    assert pieces.moved(costs, first, cut.tasks.stage, cut.tasks.duration_ms) == pytest.approx([375 + NEW_MS] * 4)


def test_loading_and_compiling_is_computing() -> None:
    assert predicted(waves(2, 2), "executors=2x", "cpu_speed=2x") == pytest.approx((1000 + NEW_MS) / 2)


def test_unchanged_slots_keep_the_recorded_warmup() -> None:
    assert predicted(waves(1, 4, starts=True), "cpu_speed=2x") == pytest.approx(500)


def test_run_without_data_on_earlier_tasks_reports_no_warmup() -> None:
    run = replace(waves(1, 4), repeated=None)
    assert predicted(run, "executors=0.5x") == pytest.approx(2000)


def test_run_with_both_kinds_of_tasks_measures_its_own_warmup() -> None:
    """The first of each of four executors take 1 600 ms, later ones 1 000."""
    rows = [(0.0, 1600.0)] * 4 + [(1600.0, 2600.0)] * 4
    run = replace(execution(rows, (1, 0, 0, 0), executors=4), repeated=np.array([False]))
    costs = warmup_cost(run, replay_baseline(run).replayed)
    assert costs.more_ms[FIRST] == pytest.approx([600])
    assert predicted(run, "executors=2x") == pytest.approx(1600)
    assert predicted(run, "executors=0.5x") == pytest.approx(1600 + 3 * 1000)


def test_range_includes_no_warmup_cost() -> None:
    run = waves(1, 4, starts=True)
    reported = predict(run, scenario(run, "executors=0.5x"))
    assert reported.interval_ms[1] >= 2000
    assert reported.interval_shares["physics"] > 0.3
    surer = predict(replace(run, repeated=None), scenario(run, "executors=0.5x"))
    assert surer.interval_shares["physics"] == 0


def test_split_tasks_do_not_repeat_unpacking_on_a_worker() -> None:
    """Two workers have a task of 1 000 ms each, 800 of it unpacking, and then one with 100; eight pieces of the first
    stage take 100 each for that, and share the rest."""
    run = waves(2, 2, starts=True)
    tasks = replace(run.tasks, stage=np.array([0, 0, 1, 1]))
    volumes = replace(run.volumes, overhead_ms=np.array([800.0, 800.0, 100.0, 100.0]))
    stages = (run.dag.stages[0], replace(run.dag.stages[0], stage_id="stage:1.0"))
    run = replace(
        run, tasks=tasks, volumes=volumes, dag=replace(run.dag, stages=stages), repeated=np.array([False] * 2)
    )
    pieces = with_tasks(run, {0: 8})
    mine = pieces.tasks.stage == 0
    assert pieces.volumes.overhead_ms[mine] == pytest.approx([100] * 8)
    assert pieces.tasks.duration_ms[mine].sum() == pytest.approx(8 * 100 + 2 * 900)


def started(executors: int, unpacks_ms: float) -> Execution:
    """One wave of tasks that unpack for so long as the first on their executors, and one of 1 000 ms that do not."""
    first = unpacks_ms + 1000
    rows = [(0.0, first)] * executors + [(first, first + 1000)] * executors
    run = execution(rows, (1, 0, 0, 0), executors=executors)
    overhead = np.repeat([unpacks_ms, 0.0], executors)
    volumes = replace(run.volumes, overhead_ms=overhead)
    return replace(run, volumes=volumes, repeated=np.array([True]), is_first_scope=True)


def test_executors_that_start_together_share_the_download_bandwidth() -> None:
    """21 executors take twice as long as one alone, because each other executor adds a twentieth."""
    run = started(21, 2000.0)
    costs = warmup_cost(run, replay_baseline(run).replayed)
    assert costs.unpacks_ms.tolist() == pytest.approx([0, 0, 1000])
    assert costs.more_ms[STARTING] == pytest.approx([REPEATED_MS])  # they take no longer than unpacking
    alone = FirstTasks(np.array([STARTING]), np.array([0]))
    assert costs.at(alone, np.array([0]), np.array([1000.0])) == pytest.approx([2000 + REPEATED_MS])
    together = FirstTasks(np.array([STARTING]), np.array([20]))
    assert costs.at(together, np.array([0]), np.array([1000.0])) == pytest.approx([3000 + REPEATED_MS])
    assert costs.of(together, np.array([0]), np.array([3000.0 + REPEATED_MS])) == pytest.approx([2000 + REPEATED_MS])


def test_executors_that_start_apart_do_not_share_the_download_bandwidth() -> None:
    level, worker = np.array([STARTING, STARTING, STARTING, LATER]), np.array([0, 1, 2, 0])
    launch = np.array([0.0, 100.0, 5000.0, 6000.0])
    assert others(level, worker, launch, together_ms=1000.0).tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize(("reads", "more_ms"), [(True, 2000.0), (False, REPEATED_MS)])
def test_first_task_on_a_worker_loads_more_code_if_it_reads_files(reads: bool, more_ms: float) -> None:
    run = waves(2, 1, repeated=True, starts=True)
    overhead, read = np.array([500.0, 0.0]), np.full(2, 10**6 if reads else 0)
    costs = warmup_cost(
        replace(run, volumes=replace(run.volumes, overhead_ms=overhead, input=read)), replay_baseline(run).replayed
    )
    assert costs.more_ms[STARTING] == pytest.approx([more_ms])
