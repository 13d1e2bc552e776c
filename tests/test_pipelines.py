"""Stages that run at a time, one reading what the other writes; times in ms, single digits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from crystalperf.indexes.resources import CPU, NET, resources
from crystalperf.query.execution.critical_path import Piece, WallClock, critical_path
from crystalperf.query.execution.dag import Dag, Dependency, StageRun, Tasks, build
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.scenario import Scenario, combinations, parse_settings, scenario_of, settings_of
from crystalperf.query.execution.slots import Slots
from crystalperf.query.frameworks import Framework, Reader
from crystalperf.query.predict.estimate import predict
from crystalperf.query.results.refusals import RefusedError, SlotsTooFew
from crystalperf.query.simulate.effects import bandwidth, baseline_state
from crystalperf.query.simulate.replay import Replayed, replay
from crystalperf.query.trace.contract import EdgeKind
from crystalperf.query.trace.records import Floats
from tests.hand_made import run_by
from tests.test_predict import execution

NAMES = resources()
NO_DRIVER = np.zeros(len(NAMES) + 1)

Edges = dict[tuple[str, str], Dependency]


def unread(_: object) -> None:
    """Made by hand in place of a reader of logs; these runs have none."""


TOY = Framework(
    name="toy",
    title="Toy",
    reader=Reader(recognise=unread, read=unread),
)  # type: ignore[arg-type]


class Stream:
    """A run of stages that nobody submits: (name, start, end, time waiting for those it shares a pipeline with)."""

    def __init__(
        self, *rows: tuple[str, float, float, float], end_ms: float, stated: Edges, ranks: str = "", slots: int = 9
    ) -> None:
        self.stages = [
            StageRun(name, name, None, ranks.find(name) if ranks else number, None, start, end)
            for number, (name, start, end, _) in enumerate(rows)
        ]
        order = sorted(range(len(rows)), key=lambda each: rows[each][1])
        chosen = [rows[each] for each in order]
        launch, finish, upstream = (np.array([row[column] for row in chosen], float) for column in (1, 2, 3))
        parts = np.zeros((len(rows), len(NAMES) + 1))
        parts[:, NAMES.index(CPU)], parts[:, -1] = finish - launch - upstream, upstream
        zero = np.zeros(len(rows), dtype=np.int64)
        stage = np.array(order, dtype=np.int64)
        self.tasks = Tasks(np.arange(len(rows)), stage, zero - 1, zero, launch, finish, parts, zero, upstream, zero - 1)
        pool = np.zeros(slots, dtype=np.int64)
        there = Slots(pool, pool, np.zeros(slots), np.full(slots, np.inf), np.full(slots, np.inf))
        self.dag: Dag = build(self.stages, self.tasks, 0, end_ms, there, stated)
        self.dag.check()

    def replayed(self, *, slots: int = 9, **times: float) -> Replayed:
        """Replayed where the own work of some stages takes so many times as long."""
        names = [self.stages[stage].stage_id for stage in self.tasks.stage.tolist()]
        factor = np.array([times.get(name, 1.0) for name in names])
        own = self.tasks.duration_ms - self.tasks.pipeline_wait_ms
        worker = np.zeros(slots, dtype=np.int64)
        pool = Slots(worker, worker, np.zeros(slots), np.full(slots, np.inf), np.full(slots, np.inf))
        return replay(self.dag, self.tasks, own * factor + self.tasks.pipeline_wait_ms, pool)

    def path(self) -> list[Piece]:
        def not_recorded(start: float, end: float) -> Floats:
            return np.array([0.0, 0.0, 0.0, end - start])

        return critical_path(self.dag, self.tasks, not_recorded, NAMES)


def edges(kind: EdgeKind, *pairs: str, resource: str | None = None) -> Edges:
    """`ab` is b after a."""
    return {(pair[0], pair[1]): Dependency(kind, "rows", resource) for pair in pairs}


def intervals(pieces: list[Piece]) -> list[tuple[str, float, float]]:
    """The path without the driver's intervals of no length."""
    return [(piece.node.node_id, piece.start_ms, piece.end_ms) for piece in pieces]


def busy_source(**given: object) -> Stream:
    """a works from 0 to 4; b, from 1 to 5, waits for it half of the time and has one row left when it ends."""
    return Stream(("a", 0, 4, 0), ("b", 1, 5, 2), end_ms=6, stated=edges("pipelined", "ab"), **given)  # type: ignore[arg-type]


def busy_sink() -> Stream:
    """a had to wait for b to take its rows: 1 of its own, 3 of waiting; b works all the time from 1 to 5."""
    return Stream(("a", 0, 4, 3), ("b", 1, 5, 0), end_ms=6, stated=edges("pipelined", "ab"))


# The graph ------------------------------------------------------------------------------------------------------------


def test_a_pipelined_stage_waits_for_no_end() -> None:
    dag = busy_source().dag
    assert {pair: each.kind for pair, each in dag.edges.items()} == {
        ("driver:0", "a"): "barrier",
        ("a", "b"): "pipelined",
        ("b", "driver:1"): "barrier",
    }
    assert (dag.nodes["b"].start_ms, dag.nodes["b"].end_ms) == (1, 5)


def test_order_is_a_wait_for_an_end() -> None:
    stream = Stream(("a", 0, 3, 0), ("b", 4, 6, 0), end_ms=6, stated=edges("order", "ab"))
    assert stream.dag.edges["a", "driver:1"].kind == "order"
    assert stream.replayed().node_start_ms["b"] == 4
    assert stream.replayed(a=2).node_start_ms["b"] == 7


def test_stated_end_that_came_too_late_is_not_a_dependency() -> None:
    """b began before a had ended, so it cannot have waited for that, whatever the trace says."""
    dag = Stream(("a", 0, 4, 0), ("b", 2, 6, 0), end_ms=6, stated=edges("barrier", "ab")).dag
    assert [target for source, target in dag.edges if source == "a"] == ["driver:2"]  # the end of the run


def test_a_transfer_is_a_node_of_its_device() -> None:
    dag = Stream(("a", 0, 3, 0), ("b", 7, 9, 0), end_ms=9, stated=edges("transfer", "ab", resource=NET)).dag
    (moved,) = (node for node in dag.nodes.values() if node.kind == "transfer")
    assert (moved.start_ms, moved.end_ms, moved.resource) == (3, 7, NET)
    assert dag.edges["a", moved.node_id].kind == "transfer"


# Replays --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [busy_source(), busy_sink()])
def test_baseline_replay_of_a_pipeline_is_the_recorded_run(stream: Stream) -> None:
    assert stream.replayed().makespan_ms == 6
    assert (stream.replayed().node_start_ms["b"], stream.replayed().node_end_ms["b"]) == (1, 5)


def test_faster_source_helps_until_the_sink_is_the_bottleneck() -> None:
    """b has 2 of its own from 1 on, and one row to go after a's end."""
    stream = busy_source()
    assert stream.replayed(a=1 / 2).makespan_ms == 4  # a ends at 2, b at 3 either way
    assert stream.replayed(a=1 / 4).makespan_ms == 4
    assert stream.replayed(a=2).makespan_ms == 10  # a ends at 8, b at 9


def test_a_faster_sink_gains_its_last_row_only() -> None:
    stream = busy_source()
    assert stream.replayed(b=1 / 2).makespan_ms == 5.5
    assert stream.replayed(b=4).makespan_ms == 10  # 8 of its own from 1 on, and one more to the end
    assert busy_sink().replayed(b=1 / 2).makespan_ms == 4
    assert busy_sink().replayed(a=1 / 2).makespan_ms == 6


def test_sink_with_two_inputs_waits_for_the_later_one() -> None:
    stream = Stream(("a", 0, 2, 0), ("b", 0, 4, 0), ("c", 1, 5, 3), end_ms=5, stated=edges("pipelined", "ac", "bc"))
    assert stream.replayed().makespan_ms == 5
    assert stream.replayed(b=1 / 2).makespan_ms == 3
    assert stream.replayed(a=3).makespan_ms == 7  # a ends at 6 then
    assert stream.replayed(a=1 / 2).makespan_ms == 5


def test_a_chain_is_as_fast_as_its_slowest() -> None:
    stream = Stream(("a", 0, 6, 0), ("b", 1, 7, 3), ("c", 2, 8, 4), end_ms=8, stated=edges("pipelined", "ab", "bc"))
    assert stream.replayed().makespan_ms == 8
    assert stream.replayed(a=1 / 2).makespan_ms == 5  # a ends at 3, b at 4, c at 5
    assert stream.replayed(a=1 / 6).makespan_ms == 5  # b has 3 of its own from 1 on


def test_successor_of_a_pipeline_waits_for_its_end() -> None:
    both = {**edges("pipelined", "ab"), **edges("barrier", "bc")}
    stream = Stream(("a", 0, 4, 0), ("b", 1, 5, 2), ("c", 6, 9, 0), end_ms=9, stated=both)
    assert stream.replayed().makespan_ms == 9
    assert stream.replayed(a=1 / 2).makespan_ms == 7


def test_concurrent_stages_need_concurrent_slots() -> None:
    """With one slot b, which goes first, waits for ever for a, which has no slot to run on."""
    together = Stream(("a", 0, 4, 0), ("b", 0, 5, 3), end_ms=5, stated=edges("pipelined", "ab"), ranks="ba")
    assert together.replayed(slots=2).makespan_ms == 5
    with pytest.raises(RefusedError) as refused:
        together.replayed(slots=1)
    assert refused.value.refusal == SlotsTooFew()
    # Where the source goes first, it ends before the sink has a slot: 2 of its own.
    first = Stream(("a", 0, 4, 0), ("b", 0, 5, 3), end_ms=5, stated=edges("pipelined", "ab"), ranks="ab")
    assert first.replayed(slots=1).makespan_ms == 6


# The critical path ----------------------------------------------------------------------------------------------------


def test_the_path_goes_through_the_busier_source() -> None:
    stream = busy_source()
    assert intervals(stream.path()) == [("a", 0, 4), ("b", 4, 5), ("driver:1", 5, 6)]


def test_the_path_goes_through_the_busier_sink() -> None:
    stream = busy_sink()
    assert intervals(stream.path()) == [("a", 0, 1), ("b", 1, 5), ("driver:1", 5, 6)]
    assert sum(piece.parts_ms[NAMES.index(CPU)] for piece in stream.path()) == pytest.approx(0.25 + 4)


def test_busy_share_of_a_stage_counts_its_own_work() -> None:
    stream = busy_source()
    clock = WallClock(stream.dag, stream.tasks, lambda _start, _end: NO_DRIVER, NAMES)
    assert [clock.busy(stream.dag.nodes[each]) for each in ("a", "b", "driver:0")] == [1.0, 0.5, 1.0]


def test_a_transfer_is_on_its_device_all_along() -> None:
    stream = Stream(("a", 0, 3, 0), ("b", 7, 9, 0), end_ms=9, stated=edges("transfer", "ab", resource=NET))
    moved = next(piece for piece in stream.path() if piece.node.kind == "transfer")
    assert (moved.start_ms, moved.end_ms) == (3, 7)
    assert moved.parts_ms.tolist() == [4.0 if name == NET else 0.0 for name in (*NAMES, "other")]


# Questions ------------------------------------------------------------------------------------------------------------


def asked(stream: Stream, setting: str) -> float:
    run = as_execution(stream)
    answer = predict(run, changed(run, setting))
    assert answer.predicted_ms is not None, answer.refused
    return answer.predicted_ms


def as_execution(stream: Stream) -> Execution:
    """The run of the toy framework on a worker with nine slots."""
    made = execution([(0, stream.dag.end_ms)] * len(stream.tasks), (1, 0, 0, 0), cores=9)
    return replace(made, **run_by(TOY), dag=stream.dag, tasks=stream.tasks)


def changed(run: Execution, *settings: str) -> Scenario:
    (changes,) = combinations(parse_settings(settings, settings_of(run.resources), {}, lists=False))
    return scenario_of(changes, run.recorded)


def test_a_prediction_halves_the_work_and_not_the_waiting() -> None:
    assert asked(busy_source(), "cpu_speed=1x") == pytest.approx(6)
    # a ends at 2, b's last row takes half a millisecond, the driver one.
    assert asked(busy_source(), "cpu_speed=2x") == pytest.approx(3.5)


def test_a_transfer_takes_the_time_that_its_device_gives() -> None:
    stream = Stream(("a", 0, 3, 0), ("b", 7, 9, 0), end_ms=9, stated=edges("transfer", "ab", resource=NET))
    assert asked(stream, "network=2x") == pytest.approx(7)
    assert asked(stream, "network=0.5x") == pytest.approx(13)
    assert asked(stream, "disk=2x") == pytest.approx(9)
    run = as_execution(stream)
    state = bandwidth.apply(baseline_state(run), changed(run, "network=4x"))
    (moved,) = (node for node in state.dag.nodes.values() if node.kind == "transfer")
    assert moved.end_ms - moved.start_ms == 1


def test_too_few_slots_for_a_pipeline_are_refused() -> None:
    together = Stream(("a", 0, 4, 0), ("b", 0, 5, 3), end_ms=5, stated=edges("pipelined", "ab"), ranks="ba")
    run = replace(execution([(0, 5)] * 2, (1, 0, 0, 0), cores=2), **run_by(TOY), dag=together.dag, tasks=together.tasks)
    answer = predict(run, changed(run, "cores=1"))
    assert answer.predicted_ms is None
    assert answer.refused == (SlotsTooFew(),)


def test_blocked_source_keeps_its_lead_over_its_sink() -> None:
    """a 0..4 waits 3 for b, which works from 2 to 8; c starts 2 after a ends."""
    stream = Stream(
        ("a", 0, 4, 3), ("b", 2, 8, 0), ("c", 6, 9, 0), end_ms=9,
        stated={**edges("pipelined", "ab"), **edges("barrier", "ac")},
    )  # fmt: skip
    found = stream.replayed()
    assert (found.node_end_ms["a"], found.node_start_ms["c"], found.makespan_ms) == (4, 6, 9)
    # b has 3 left to do and takes the last row 2 before it is done: a ends at 3, c begins at 5.
    faster = stream.replayed(b=0.5)
    assert (faster.node_end_ms["a"], faster.node_start_ms["c"], faster.makespan_ms) == (3, 5, 8)


def test_stated_dependencies_decide_when_a_pipelined_stage_starts() -> None:
    """j reads b as it comes, but begins 1 after a has ended: with a twice as fast, at 2."""
    stream = Stream(
        ("a", 0, 2, 0), ("b", 0, 6, 0), ("j", 3, 7, 2), end_ms=7,
        stated={**edges("barrier", "aj"), **edges("pipelined", "bj")},
    )  # fmt: skip
    assert stream.replayed().makespan_ms == 7
    assert stream.replayed(a=0.5).node_start_ms["j"] == 2
