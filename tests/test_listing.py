"""List scheduling as machine code: the same steps as the replay that takes any order."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from crystalperf.query.execution.dag import Dag, Dependency, Node, StageRun, Tasks
from crystalperf.query.execution.scheduling import (
    FIRST_COME,
    LongestFirst,
    Order,
    Policy,
    by_rank,
    fair_share,
    remaining_path_ms,
)
from crystalperf.query.execution.slots import Slots
from crystalperf.query.simulate import list_schedule
from crystalperf.query.simulate import replay as replaying
from crystalperf.query.simulate.replay import NoWorkerLeftError, Replayed, _replayed, _Simulation, replay

pytestmark = pytest.mark.skipif(
    not list_schedule.has_compiled(), reason="the loop was not compiled: there is no C compiler"
)


@some.composite
def scenarios(draw: some.DrawFn) -> tuple[Dag, Tasks, Slots, Policy, list[int | None], np.ndarray]:
    """A random DAG with tasks that want hosts, workers that come and go, and a way of giving out slots."""
    number = np.random.default_rng(draw(some.integers(0, 2**32)))
    stages = draw(some.integers(1, 6))
    tasks = draw(some.integers(stages, 60))
    hosts, workers = draw(some.integers(1, 4)), draw(some.sampled_from([1, 2, 3, 4, 5, 6, 70]))
    nodes: dict[str, Node] = {"coordinator:0": Node("coordinator:0", "start", 0.0, float(number.integers(0, 9)))}
    edges: dict[tuple[str, str], Dependency] = {}
    named = []
    for each in range(stages):
        name = f"group:{each}"
        named.append(StageRun(name, name, None, int(number.integers(0, 3)), 0.0, 0.0, 10.0))
        nodes[name] = Node(name, name, 0.0, 10.0, each)
        earlier = [node for node in nodes if node != name]
        for source in number.choice(earlier, min(len(earlier), 2), replace=False).tolist():
            edges[source, name] = Dependency("barrier", "made")
    dag = Dag(0.0, 100.0, tuple(named), nodes, edges)
    of_worker = number.integers(0, hosts, workers)
    worker = np.repeat(np.arange(workers), number.integers(1, 4, workers))
    lost = draw(some.sampled_from([0.0, 0.3]))  # if none can be lost, the loop in C keeps workers in another way
    until = np.where(number.random(workers) < lost, number.integers(1, 80, workers).astype(float), np.inf)
    came = np.where(number.random(workers) < 0.3, number.integers(0, 40, workers).astype(float), 0.0)
    slots = Slots(worker, of_worker[worker], came[worker], until[worker], np.full(len(worker), np.inf))
    ran = number.integers(-1, workers, tasks)
    made = Tasks(
        task_id=np.arange(tasks),
        stage=np.r_[np.arange(stages), number.integers(0, stages, tasks - stages)],
        worker=ran,
        host=np.where(ran < 0, 0, of_worker[ran]),
        launch_ms=np.zeros(tasks),
        finish_ms=np.ones(tasks),
        parts_ms=np.ones((tasks, 4)) / 4,
        placement=number.integers(0, 3, tasks),
        pipeline_wait_ms=np.zeros(tasks),
        follows=np.where(number.random(tasks) < 0.5, number.integers(0, tasks, tasks), -1),
    )
    orders: list[Order] = [by_rank, fair_share, LongestFirst(remaining_path_ms(dag))]
    order = draw(some.sampled_from(orders))
    limits = [int(number.integers(1, 4)) if number.random() < 0.2 else None for _ in range(stages)]
    waits = some.sampled_from([0.0, 3.0, 30.0])
    offers = some.sampled_from([0.0, 1.0])
    policy = Policy(order, draw(waits), draw(some.booleans()), draw(offers), draw(some.booleans()))
    return dag, made, slots, policy, limits, number.integers(0, 12, tasks).astype(float)


def answer(of: Callable[[], Replayed]) -> Replayed | None:
    try:
        return of()
    except NoWorkerLeftError:
        return None


@settings(max_examples=400)
@given(scenario=scenarios())
def test_list_schedule_equals_the_general_replay(
    scenario: tuple[Dag, Tasks, Slots, Policy, list[int | None], np.ndarray],
) -> None:
    dag, tasks, slots, policy, limits, durations = scenario
    assert list_schedule.can_list(dag, policy)
    general = answer(lambda: _Simulation(dag, tasks, durations, slots, policy, limits).run())
    plan = list_schedule.ScheduleInput(dag, tasks, slots, policy, limits)
    listed = answer(lambda: _replayed(dag, plan.run(durations)))
    if general is None or listed is None:
        assert general is listed
        return
    for column in ("launch_ms", "finish_ms", "slot"):
        assert getattr(listed, column).tolist() == getattr(general, column).tolist()
    assert (listed.end_ms, listed.node_start_ms, listed.node_end_ms) == (
        general.end_ms,
        general.node_start_ms,
        general.node_end_ms,
    )


@pytest.mark.parametrize("is_compiled", [True, False])
def test_idle_workers_get_their_share_of_tasks_without_locality(
    is_compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of four ran something.  The next single tasks go there, to a new one (two halves), and four times later to
    the last (four quarters)."""
    names = [f"group:{each}" for each in range(7)]
    stages = tuple(StageRun(name, name, None, 0, 0.0, 0.0, 1.0) for name in names)
    nodes = {name: Node(name, name, 0.0, 1.0, number) for number, name in enumerate(names)}
    edges = {pair: Dependency("barrier", "made") for pair in itertools.pairwise(names)}
    stage = np.array([0, 0, 1, 2, 3, 4, 5, 6])
    nothing, one, any_ = np.zeros(8, dtype=np.int64), np.ones(8), np.full(8, -1)
    tasks = Tasks(np.arange(8), stage, any_, nothing, 0 * one, one, np.ones((8, 4)), nothing, 0 * one, any_)
    four = np.arange(4)
    slots = Slots(four, four, np.zeros(4), np.full(4, np.inf), np.full(4, np.inf))
    monkeypatch.setattr(replaying, "has_compiled", lambda: is_compiled)
    found = replay(Dag(0.0, 1.0, stages, nodes, edges), tasks, one, slots)
    assert found.slot.tolist() == [0, 1, 0, 2, 0, 0, 0, 3]


def test_workers_that_come_on_demand_all_get_work() -> None:
    """Four single tasks, of which the first goes to a worker that all others then go to as well."""
    names = [f"group:{each}" for each in range(4)]
    stages = tuple(StageRun(name, name, None, 0, 0.0, 0.0, 1.0) for name in names)
    nodes = {name: Node(name, name, 0.0, 1.0, number) for number, name in enumerate(names)}
    edges = {pair: Dependency("barrier", "made") for pair in itertools.pairwise(names)}
    four, one, any_ = np.arange(4), np.ones(4), np.full(4, -1)
    tasks = Tasks(four, four, any_, 0 * four, 0 * one, one, np.ones((4, 4)), 0 * four, 0 * one, any_)
    slots = Slots(four, four, np.zeros(4), np.full(4, np.inf), np.full(4, np.inf))
    found = replay(Dag(0.0, 1.0, stages, nodes, edges), tasks, one, slots, Policy(on_demand=True))
    assert found.slot.tolist() == [0, 0, 0, 0]


def test_pipelines_and_schedulers_of_other_packages_are_not_listed() -> None:
    nodes = {name: Node(name, name, 0.0, 1.0, position) for position, name in enumerate(("a", "b"))}
    stages = tuple(StageRun(name, name, None, 0, 0.0, 0.0, 1.0) for name in nodes)
    piped = Dag(0.0, 1.0, stages, nodes, {("a", "b"): Dependency("pipelined", "made")})
    plain = Dag(0.0, 1.0, stages, nodes, {("a", "b"): Dependency("barrier", "made")})
    assert list_schedule.can_list(plain, FIRST_COME)
    assert not list_schedule.can_list(piped, FIRST_COME)
    assert not list_schedule.can_list(plain, Policy(lambda ready: len(ready) - 1))


def test_schedule_without_the_compiled_loop_is_replayed_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    node = {"a": Node("a", "a", 0.0, 1.0, 0)}
    dag = Dag(0.0, 1.0, (StageRun("a", "a", None, 0, 0.0, 0.0, 1.0),), node)
    nothing, one = np.zeros(3, dtype=np.int64), np.ones(3)
    tasks = Tasks(nothing, nothing, nothing, nothing, 0 * one, one, np.ones((3, 4)), nothing, 0 * one, nothing - 1)
    slots = Slots(nothing[:1], nothing[:1], np.zeros(1), np.full(1, np.inf), np.full(1, np.inf))
    durations = np.array([1.0, 2.0, 4.0])
    listed = replay(dag, tasks, durations, slots)
    monkeypatch.setattr(replaying, "has_compiled", lambda: False)
    monkeypatch.setattr(list_schedule, "_listing", None)
    again = replay(dag, tasks, durations, slots)
    assert listed.makespan_ms == again.makespan_ms == 7


def test_missing_or_mistyped_column_is_reported_by_name() -> None:
    module, columns = list_schedule._listing, {"order": np.zeros(2, dtype=np.int64), "gap_ms": np.zeros(1)}
    with pytest.raises(KeyError, match="rate"):
        module.integrals(columns)
    with pytest.raises(TypeError, match="rate"):
        module.integrals({**columns, "rate": np.zeros(1, dtype=np.float32)})
    fixed = np.zeros(1)
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        module.integrals({**columns, "rate": np.zeros(1), "total": fixed})
