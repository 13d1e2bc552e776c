"""The DAG of small runs, with numbers one can add up; times in ms."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

from crystalperf.indexes.resources import resources
from crystalperf.query.execution.critical_path import bottleneck, critical_path
from crystalperf.query.execution.dag import ANYWHERE, AT_HOME, ELSEWHERE, Dag, DagRules, Dependency, StageRun, Tasks
from crystalperf.query.execution.dag import build as build_dag
from crystalperf.query.execution.intervals import Timeline
from crystalperf.query.execution.scheduling import Policy, by_rank, fair_share
from crystalperf.query.execution.slots import Slots
from crystalperf.query.frameworks.spark.scheduling import JobBarriers
from crystalperf.query.simulate.replay import replay

OTHER_ONLY = (0.0, 0.0, 0.0, 1.0)

Stage = tuple[StageRun, dict[tuple[str, str], Dependency]]
"""A stage of Spark, and what the log states of its parents."""


def stage(
    number: int,
    start: float,
    end: float,
    *,
    attempt: int = 0,
    parents: tuple[int, ...] = (),
    submit: float | None = None,
    sql: int = 1,
) -> Stage:
    """Of several that could start, the one of the lowest number goes first; a later attempt follows the earlier one."""
    name = f"stage:{number}.{attempt}"
    run = StageRun(name, f"s{number}", f"sql:{sql}", number, start if submit is None else submit, start, end)
    stated = {(f"stage:{parent}.0", name): Dependency("barrier", "shuffle") for parent in parents}
    if attempt:
        stated[f"stage:{number}.{attempt - 1}", name] = Dependency("order", "earlier attempt")
    return run, stated


def build(stages: list[Stage], tasks: Tasks, start_ms: float, end_ms: float, slots: int) -> Dag:
    """The DAG as Spark's driver makes it."""
    stated = {pair: dependency for _, each in stages for pair, dependency in each.items()}
    runs = [run for run, _ in stages]
    return build_dag(runs, tasks, start_ms, end_ms, pool_of(slots), stated, DagRules(JobBarriers, "driver"))


def tasks_of(*rows: tuple[int, float, float], parts: tuple[float, ...] = OTHER_ONLY) -> Tasks:
    """(stage position, launch, finish) rows; every task splits its time by `parts`."""
    rows = tuple(sorted(rows, key=lambda row: row[1]))
    number = np.arange(len(rows))
    launch, finish = np.array([row[1] for row in rows], float), np.array([row[2] for row in rows], float)
    shares = np.outer(finish - launch, np.array(parts))
    zero = np.zeros(len(rows), dtype=np.int64)
    stages = np.array([row[0] for row in rows], dtype=np.int64)
    return Tasks(number, stages, zero - 1, zero, launch, finish, shares, zero, np.zeros(len(rows)), zero - 1)


def pool_of(count: int, executors: int = 1) -> Slots:
    executor = np.repeat(np.arange(executors), count)
    endless = np.full(len(executor), np.inf)
    return Slots(executor, executor, np.zeros(len(executor)), endless, endless)


def path_of(dag: Dag, tasks: Tasks) -> list[str]:
    def not_recorded(start: float, end: float) -> np.ndarray:  # type: ignore[type-arg]
        return np.array([0, 0, 0, end - start])

    return [piece.node.node_id for piece in critical_path(dag, tasks, not_recorded, resources())]


def test_driver_gaps_become_nodes_and_everything_tiles_the_scope() -> None:
    stages = [stage(0, 10, 30), stage(1, 35, 60, parents=(0,))]
    tasks = tasks_of((0, 10, 30), (1, 35, 60))
    dag = build(stages, tasks, 0, 70, slots=1)
    dag.check()
    lengths = [dag.nodes[node].end_ms - dag.nodes[node].start_ms for node in path_of(dag, tasks)]
    assert path_of(dag, tasks) == ["driver:0", "stage:0.0", "driver:1", "stage:1.0", "driver:2"]
    assert lengths == [10, 20, 5, 25, 10]


def test_the_longer_of_two_parallel_stages_is_on_the_path() -> None:
    stages = [stage(0, 0, 30), stage(1, 0, 50), stage(2, 50, 60, parents=(0, 1))]
    tasks = tasks_of((0, 0, 30), (1, 0, 50), (2, 50, 60))
    dag = build(stages, tasks, 0, 60, slots=2)
    assert [each for each in path_of(dag, tasks) if each.startswith("stage")] == ["stage:1.0", "stage:2.0"]
    assert {dag.edges[source, "driver:1"].why for source in ("stage:0.0", "stage:1.0")} == {"shuffle"}


def test_a_job_of_the_same_query_waits_for_all_that_ended_in_it() -> None:
    stages = [stage(0, 0, 10), stage(1, 0, 20), stage(2, 25, 30)]
    dag = build(stages, tasks_of((0, 0, 10), (1, 0, 20), (2, 25, 30)), 0, 30, slots=2)
    waited = {source for source, target in dag.edges if target == "driver:1"}
    assert waited == {"stage:0.0", "stage:1.0"}
    assert dag.edges["stage:0.0", "driver:1"].why == "job barrier"


def test_waiting_for_slots_is_not_driver_time() -> None:
    stages = [stage(0, 0, 40), stage(1, 40, 50, submit=5)]
    tasks = tasks_of((0, 0, 40), (1, 40, 50))
    dag = build(stages, tasks, 0, 50, slots=1)
    assert sum(node.end_ms - node.start_ms for node in dag.nodes.values() if node.kind == "driver") == 5
    assert replay(dag, tasks, tasks.duration_ms, pool_of(1)).makespan_ms == 50


def unsubmitted(number: int, start: float, end: float) -> Stage:
    return StageRun(f"step:{number}", f"s{number}", None, number, None, start, end), {}


def test_unsubmitted_stage_waited_for_a_slot_if_none_was_free() -> None:
    stages, tasks = [unsubmitted(0, 0, 40), unsubmitted(1, 40, 50)], tasks_of((0, 0, 40), (1, 40, 50))
    dag = build(stages, tasks, 0, 50, slots=1)
    assert replay(dag, tasks, tasks.duration_ms, pool_of(1)).makespan_ms == 50
    assert replay(dag, tasks, tasks.duration_ms, pool_of(2)).makespan_ms == 40


def test_unsubmitted_stage_was_delayed_if_a_slot_was_free() -> None:
    stages, tasks = [unsubmitted(0, 0, 40), unsubmitted(1, 42, 50)], tasks_of((0, 0, 40), (1, 42, 50))
    dag = build(stages, tasks, 0, 50, slots=1)
    assert replay(dag, tasks, tasks.duration_ms, pool_of(2)).makespan_ms == 50


def test_a_retried_stage_follows_its_earlier_attempt() -> None:
    first, again = stage(3, 0, 10), stage(3, 12, 20, attempt=1)
    dag = build([first, again], tasks_of((0, 0, 10), (1, 12, 20)), 0, 20, slots=1)
    assert nx.has_path(dag.graph(), "stage:3.0", "stage:3.1")


def test_an_empty_scope_is_the_driver_alone() -> None:
    dag = build([], tasks_of(), 0, 25, slots=2)
    assert [(node.node_id, node.end_ms) for node in dag.nodes.values()] == [("driver:0", 25)]


def test_build_time_is_linear_in_small_queries() -> None:
    count = 3000
    stages = [stage(i, 10 * i, 10 * i + 8, sql=i) for i in range(count)]
    tasks = tasks_of(*((i, 10 * i, 10 * i + 8) for i in range(count)))
    dag = build(stages, tasks, 0, 10 * count, slots=1)
    assert len(dag.nodes) == 2 * count + 1
    assert replay(dag, tasks, tasks.duration_ms, pool_of(1)).makespan_ms == pytest.approx(10 * count)


def test_the_slides_example_sums_the_path_and_not_the_other_operators() -> None:
    """Slides: 60 ms + 130 ms on the critical path is 190; all four operators together would be 218."""
    lengths = {0: 60.0, 1: 20.0, 2: 8.0, 3: 130.0}
    stages = [
        stage(0, 0, 60),
        stage(1, 60, 80, parents=(0,)),
        stage(2, 60, 68, parents=(0,)),
        stage(3, 60, 190, parents=(0,)),
    ]
    tasks = tasks_of(*((i, stages[i][0].start_ms, stages[i][0].end_ms) for i in range(4)), parts=(1.0, 0, 0, 0))
    dag = build(stages, tasks, 0, 190, slots=4)
    pieces = critical_path(dag, tasks, lambda start, end: np.array([0, 0, 0, end - start]), resources())
    assert sum(piece.parts_ms[0] for piece in pieces) == pytest.approx(190)
    assert sum(lengths.values()) == 218
    assert bottleneck(pieces, ("cpu", "disk", "net")) == "cpu"


def test_after_other_tasks_end_the_time_is_that_of_the_straggler() -> None:
    two = tasks_of((0, 0, 10), (0, 0, 30))
    two.parts_ms[:] = [[10, 0, 0, 0], [0, 0, 30, 0]]
    assert Timeline(two).between(0, 30).tolist() == pytest.approx([5, 0, 25, 0])


def test_replay_uses_slots_in_waves() -> None:
    dag = build([stage(0, 0, 20)], tasks_of(*((0, 0, 10) for _ in range(6))), 0, 20, slots=6)
    tasks = tasks_of(*((0, 0, 10) for _ in range(6)))
    assert [replay(dag, tasks, tasks.duration_ms, pool_of(n)).makespan_ms for n in (1, 2, 3, 6, 12)] == [
        60,
        30,
        20,
        10,
        10,
    ]


def test_tasks_spread_over_executors_before_sharing_one() -> None:
    tasks = tasks_of((0, 0, 10), (0, 0, 10))
    dag = build([stage(0, 0, 10)], tasks, 0, 10, slots=4)
    played = replay(dag, tasks, tasks.duration_ms, pool_of(2, executors=2))
    assert sorted(pool_of(2, executors=2).worker[played.slot]) == [0, 1]


def test_task_is_placed_where_it_ran_while_a_slot_is_free() -> None:
    tasks = replace(tasks_of((0, 0, 10), (0, 0, 10), (0, 0, 10)), worker=np.array([1, 1, 1]))
    dag = build([stage(0, 0, 10)], tasks, 0, 10, slots=4)
    pool = pool_of(2, executors=2)
    played = replay(dag, tasks, tasks.duration_ms, pool)
    assert sorted(pool.worker[played.slot]) == [0, 1, 1]


def test_a_limit_keeps_sequential_stages_sequential() -> None:
    tasks = tasks_of((0, 0, 10), (0, 10, 20), (0, 20, 30))
    dag = build([stage(0, 0, 30)], tasks, 0, 30, slots=4)
    assert replay(dag, tasks, tasks.duration_ms, pool_of(4), limits=[1]).makespan_ms == 30


def test_fifo_serves_the_earlier_job_and_fair_shares() -> None:
    stages = [stage(0, 0, 10, sql=1), stage(1, 0, 10, sql=2)]
    tasks = tasks_of(*((0, 0, 10) for _ in range(4)), *((1, 0, 10) for _ in range(4)))
    dag = build(stages, tasks, 0, 10, slots=8)
    first = replay(dag, tasks, tasks.duration_ms, pool_of(2), Policy(by_rank))
    shared = replay(dag, tasks, tasks.duration_ms, pool_of(2), Policy(fair_share))
    assert first.node_end_ms["stage:0.0"] == 20
    assert shared.node_end_ms["stage:0.0"] == 40 or shared.node_end_ms["stage:1.0"] == 40
    assert shared.launch_ms[tasks.stage == 1].min() == 0


def test_a_slot_is_used_only_while_its_executor_lives() -> None:
    tasks = tasks_of((0, 0, 10), (0, 0, 10), (0, 0, 10))
    dag = build([stage(0, 0, 10)], tasks, 0, 10, slots=3)
    pool = Slots(np.array([0, 1]), np.array([0, 1]), np.array([0.0, 5.0]), np.array([10.0, np.inf]), np.full(2, np.inf))
    played = replay(dag, tasks, tasks.duration_ms, pool)
    assert sorted(zip(played.slot.tolist(), played.launch_ms.tolist(), strict=True)) == [(0, 0.0), (1, 5.0), (1, 15.0)]


def test_a_stage_that_started_before_an_earlier_submitted_one_does_not_wait_for_its_driver() -> None:
    """Found by `make fuzz`: times of one executor shifted by an hour gave a stage that ended before it started."""
    stages = [stage(0, 5000, 5100, submit=1), stage(1, 20, 40, submit=2)]
    tasks = tasks_of((0, 5000, 5100), (1, 20, 40))
    dag = build(stages, tasks, 0, 5200, slots=1)
    dag.check()
    assert (dag.nodes["stage:1.0"].start_ms, dag.nodes["stage:1.0"].end_ms) == (20, 40)


def test_a_task_does_not_go_where_its_executor_is_lost_before_it_would_end() -> None:
    stages = [stage(0, 0, 60)]
    tasks = replace(tasks_of((0, 0, 10), (0, 30, 60)), worker=np.array([0, 1]))
    executor = np.array([0, 1])
    until = np.array([20.0, np.inf])
    given = Slots(executor, executor, np.array([0.0, 30.0]), until, np.full(2, np.inf))
    again = replay(build(stages, tasks, 0, 60, slots=2), tasks, tasks.duration_ms, given)
    assert again.launch_ms.tolist() == [0, 30]
    assert again.slot.tolist() == [0, 1]


def at_home(*rows: tuple[int, float, float, int], elsewhere: tuple[int, ...] = ()) -> Tasks:
    """(stage, launch, finish, host) rows of tasks that ran with their data, but for those that had given up on it."""
    tasks = tasks_of(*(row[:3] for row in rows))
    host = np.array([row[3] for row in sorted(rows, key=lambda row: row[1])])
    placement = np.array([ELSEWHERE if number in elsewhere else AT_HOME for number in range(len(rows))])
    return replace(tasks, worker=host, host=host, placement=placement)


def test_tasks_wait_for_the_host_of_their_data_while_other_slots_are_idle() -> None:
    tasks = at_home((0, 0, 10, 0), (0, 10, 20, 0), (0, 20, 30, 0), (0, 0, 5, 1))
    dag = build([stage(0, 0, 30)], tasks, 0, 30, slots=2)
    pool = pool_of(1, executors=2)
    patient = replay(dag, tasks, tasks.duration_ms, pool, Policy(by_rank, patience_ms=3000))
    assert patient.launch_ms.tolist() == tasks.launch_ms.tolist()
    assert pool.worker[patient.slot].tolist() == tasks.worker.tolist()
    assert replay(dag, tasks, tasks.duration_ms, pool, Policy(by_rank)).makespan_ms < 30


def test_locality_wait_ends_after_its_timeout_without_a_local_launch() -> None:
    tasks = at_home((0, 0, 5000, 0), (0, 3000, 5500, 1), (0, 5000, 6000, 0), elsewhere=(1,))
    dag = build([stage(0, 0, 6000)], tasks, 0, 6000, slots=2)
    pool = pool_of(1, executors=2)
    played = replay(dag, tasks, tasks.duration_ms, pool, Policy(by_rank, patience_ms=3000))
    assert played.launch_ms.tolist() == [0, 3000, 5000]
    home = at_home((0, 0, 5000, 0), (0, 5000, 6000, 0))
    dag = build([stage(0, 0, 6000)], home, 0, 6000, slots=2)
    played = replay(dag, home, home.duration_ms, pool, Policy(by_rank, patience_ms=3000))
    assert played.launch_ms.tolist() == [0, 3000]
    assert pool.worker[played.slot].tolist() == [0, 1]


def test_tasks_without_locality_run_before_those_that_wait() -> None:
    tasks = at_home((0, 0, 10, 0), (0, 1, 11, 0), (0, 2, 12, 1))
    tasks = replace(tasks, placement=np.array([AT_HOME, AT_HOME, ANYWHERE]))
    dag = build([stage(0, 0, 12)], tasks, 0, 12, slots=2)
    played = replay(dag, tasks, tasks.duration_ms, pool_of(1, executors=2), Policy(by_rank, patience_ms=3000))
    assert played.launch_ms.tolist() == [0, 10, 0]


def test_locality_wait_restarts_with_each_local_launch() -> None:
    """Tasks of a busy host go to an idle one 10 after the beginning, the time that it was left idle; or they stay, and
    10 after the last of them was launched another goes there, two later where idle slots are offered every 4."""
    tasks = at_home((0, 0, 8, 0), (0, 8, 16, 0), (0, 16, 24, 0), (0, 26, 36, 1), elsewhere=(3,))
    dag = build([stage(0, 0, 36)], tasks, 0, 36, slots=2)

    def launched(restarts: bool, offers_ms: float) -> list[float]:
        policy = Policy(by_rank, 10, restarts, offers_ms)
        return replay(dag, tasks, tasks.duration_ms, pool_of(1, executors=2), policy).launch_ms.tolist()

    assert launched(False, 0) == [0, 8, 10, 20]
    assert launched(True, 0) == [0, 8, 16, 26]
    assert launched(True, 4) == [0, 8, 16, 28]


def test_tasks_follow_others_to_where_these_are_replayed() -> None:
    """Of the first stage two tasks ran on each host; where one takes longer, the other host has three, and so of those
    that follow them."""
    rows = [(0, 0, 10, 0), (0, 0, 10, 1), (0, 10, 20, 0), (0, 10, 20, 1)]
    later = [(1, at + 20, end + 20, host) for _, at, end, host in rows]
    tasks = at_home(*rows, *later)
    tasks = replace(
        tasks,
        worker=np.full(8, -1),
        placement=np.repeat([ANYWHERE, AT_HOME], 4),
        follows=np.r_[np.full(4, -1), tasks.task_id[:4]],
    )
    dag = build([stage(0, 0, 20), stage(1, 20, 40)], tasks, 0, 40, slots=2)
    pool = pool_of(1, executors=2)
    durations = tasks.duration_ms.copy()
    durations[0] = 30.0
    played = replay(dag, tasks, durations, pool, Policy(by_rank, patience_ms=3000))
    where = pool.worker[played.slot].tolist()
    assert sorted(where[:4]) in ([0, 0, 0, 1], [0, 1, 1, 1])
    assert where[4:] == where[:4]
