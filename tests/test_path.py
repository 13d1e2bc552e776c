"""The critical path separates the driver's time from that of tasks: on random runs, and on every public log.

The driver is on the path only while no task runs.  With any program (queries side by side or one within
another, parents that are cached or skipped, stages that are tried again, one long stage among many short ones), the
path's time with tasks is the time in which tasks ran, counted here once more by other means.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import networkx as nx
import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

import crystalperf as cp
from crystalperf.indexes.errors import InputError
from crystalperf.indexes.resources import CPU, OTHER, resources
from crystalperf.query.execution.critical_path import Piece, WallClock, _within, critical_path
from crystalperf.query.execution.dag import Dag, DagRules, Dependency, Node, StageRun, Tasks, build
from crystalperf.query.execution.intervals import merged
from crystalperf.query.execution.slots import Slots
from crystalperf.query.frameworks.spark.scheduling import EARLIER_JOB, SHUFFLE, JobBarriers
from crystalperf.query.run import Run
from crystalperf.query.simulate.replay import replay
from crystalperf.query.trace.records import Floats
from tests.conftest import ROOT

NAMES = resources()
END_MS = 60
TASKS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 20)), min_size=1, max_size=4)


@dataclass(frozen=True)
class Stage:
    """A stage of a query in a random run (None: of none), submitted some time after an earlier one's event.

    `compared` is whether it is submitted while that one runs, else when it has ended; `reads` are the earlier stages
    whose rows it reads; `again` is whether it is another attempt at that one; tasks are (wait after the submission,
    length).
    """

    query: int | None
    after: int
    compared: bool
    pause: int
    reads: tuple[int, ...]
    own_job: bool
    again: bool
    tasks: tuple[tuple[int, int], ...]


STAGES = st.builds(
    Stage,
    query=st.none() | st.integers(0, 2),
    after=st.integers(0, 9),
    compared=st.booleans(),
    pause=st.integers(0, 15),
    reads=st.lists(st.integers(0, 9), max_size=2).map(tuple),
    own_job=st.booleans(),
    again=st.booleans(),
    tasks=TASKS.map(tuple),
)


@dataclass
class Made:
    stages: list[StageRun]
    tasks: Tasks
    dag: Dag
    slots: Slots


def made(drawn: list[Stage], slots: int) -> Made:
    """The trace of such a run, all of whose tasks' time is on the CPU; what is past END_MS is cut off."""
    stages: list[StageRun] = []
    stated: dict[tuple[str, str], Dependency] = {}
    rows: list[tuple[int, float, float]] = []
    for number, each in enumerate(drawn):
        before = stages[each.after % number] if number else None
        since = 0.0 if before is None else before.start_ms if each.compared else before.end_ms
        sources = [stages[source] for source in each.reads if source < number]
        submit = min(max([since, *(source.end_ms for source in sources if not each.compared)]) + each.pause, END_MS)
        times = [(submit + wait, submit + wait + length) for wait, length in each.tasks]
        times = [(start, min(end, END_MS)) for start, end in times if start < END_MS] or [(END_MS, END_MS)]
        query = None if each.query is None else f"sql:{each.query}"
        start, end = min(start for start, _ in times), max(end for _, end in times)
        name = f"stage:{number}.0"
        stages.append(StageRun(name, name, query, number, float(min(submit, start)), float(start), float(end)))
        for source in sources:
            stated[source.stage_id, name] = Dependency("barrier", EARLIER_JOB if each.own_job else SHUFFLE)
        if each.again and before is not None:
            # Which of two attempts was the earlier the trace does not say; their times do.
            for pair in ((before.stage_id, name), (name, before.stage_id)):
                stated[pair] = Dependency("order", "earlier attempt")
        rows += [(number, float(start), float(end)) for start, end in times]
    rows.sort(key=lambda row: row[1])
    zero = np.zeros(len(rows), dtype=np.int64)
    launch, finish = np.array([row[1] for row in rows]), np.array([row[2] for row in rows])
    parts = np.zeros((len(rows), len(NAMES) + 1))
    parts[:, NAMES.index(CPU)] = finish - launch
    of_stage = np.array([row[0] for row in rows], dtype=np.int64)
    tasks = Tasks(
        np.arange(len(rows)), of_stage, zero - 1, zero, launch, finish, parts, zero, np.zeros(len(rows)), zero - 1
    )
    worker, endless = np.zeros(slots, dtype=np.int64), np.full(slots, np.inf)
    there = Slots(worker, worker, np.zeros(slots), endless, endless)
    dag = build(stages, tasks, 0, END_MS, there, stated, DagRules(JobBarriers, "driver"))
    return Made(stages, tasks, dag, there)


def not_recorded(start_ms: float, end_ms: float) -> Floats:
    """A driver of which there are no samples."""
    return np.array([*[0.0] * len(NAMES), end_ms - start_ms])


DRIVER = Node("driver:0", "driver", 0.0, 40.0)


def clock_of(rows: list[tuple[int, float, float]], end_ms: float) -> WallClock:
    """The clock of tasks (stage, launch, finish) between which nobody waits for another."""
    rows = sorted(rows, key=lambda row: row[1])
    zero, of_stage = np.zeros(len(rows), dtype=np.int64), np.array([row[0] for row in rows], dtype=np.int64)
    launch, finish = np.array([row[1:] for row in rows]).reshape(-1, 2).T
    parts = np.zeros((len(rows), len(NAMES) + 1))
    parts[:, NAMES.index(CPU)] = finish - launch
    tasks = Tasks(zero, of_stage, zero, zero, launch, finish, parts, zero, np.zeros(len(rows)), zero - 1)
    count = int(of_stage.max(initial=-1)) + 1
    stages = tuple(StageRun(f"g{number}", f"g{number}", None, number, 0.0, 0.0, end_ms) for number in range(count))
    nodes = {each.stage_id: Node(each.stage_id, each.name, 0.0, end_ms, each.priority) for each in stages}
    return WallClock(Dag(0.0, end_ms, stages, nodes), tasks, not_recorded, NAMES)


def path_of(run: Made) -> list[Piece]:
    return critical_path(run.dag, run.tasks, not_recorded, NAMES)


def ran(run: Made, start_ms: float, end_ms: float, stage: int | None = None) -> int:
    """Milliseconds of an interval in which a task ran, of a stage where one is given, counted one by one."""
    tasks = run.tasks if stage is None else run.tasks.select(run.tasks.stage == stage)
    tasks = list(zip(tasks.launch_ms.tolist(), tasks.finish_ms.tolist(), strict=True))
    return sum(any(launch <= ms < finish for launch, finish in tasks) for ms in range(int(start_ms), int(end_ms)))


runs = st.builds(made, st.lists(STAGES, min_size=1, max_size=10), st.integers(1, 12))


@settings(max_examples=400)
@given(runs)
def test_the_driver_is_on_the_path_only_while_no_task_runs(run: Made) -> None:
    run.dag.check()
    pieces = path_of(run)
    moments = [0.0, *(piece.end_ms for piece in pieces)]
    assert [piece.start_ms for piece in pieces] == moments[:-1]
    assert moments[-1] == END_MS
    assert all(before.node is not after.node for before, after in pairwise(pieces))
    for piece in pieces:
        assert piece.end_ms > piece.start_ms
        assert piece.parts_ms.sum() == pytest.approx(piece.end_ms - piece.start_ms)
        busy = ran(run, piece.start_ms, piece.end_ms)
        if piece.node.kind == "driver":
            assert busy == 0, f"{piece.node.node_id} is on the path while units run"
        else:
            mine = ran(run, piece.start_ms, piece.end_ms, piece.node.stage)
            assert mine == busy, f"{piece.node.node_id} is on the path while only others run"
        # All that tasks do is on the CPU, so the path is idle exactly while none of them runs.
        assert piece.parts_ms[NAMES.index(CPU)] == pytest.approx(busy)


def test_long_interval_is_walked_once_however_many_stages_ran_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a traced step of training, in which thousands of short stages ran, of which the path waited for none."""
    looks = 0

    def within(*given: Any) -> Floats:
        nonlocal looks
        looks += 1
        return _within(*given)

    monkeypatch.setattr("crystalperf.query.execution.critical_path._within", within)
    count = 500
    rows = [(number, float(number), number + 1.5) for number in range(count)]
    path = list(clock_of(rows, count + 1.0).seen(DRIVER, 0.0, count + 1.0))
    assert [(node.node_id, begin, end) for node, begin, end in path[:3]] == [
        ("driver:0", count + 0.5, count + 1.0),
        (f"g{count - 1}", count - 1.0, count + 0.5),
        (f"g{count - 2}", count - 2.0, count - 1.0),
    ]
    assert len(path) == count + 1
    assert looks <= 2 * count


def test_path_follows_stages_that_hold_the_slots_while_others_wait() -> None:
    """A task of half a second that waited six minutes for a slot took none of them in starting and ending."""
    before = [(0, float(launch), launch + 25.0) for launch in range(0, 100, 25)]
    late = [(1, 110.0, 111.0), (1, 114.0, 115.0)]
    clock = clock_of([*before, *late], 120.0)
    path = [(node.node_id, begin, end) for node, begin, end in clock.seen(clock.nodes[1], 10.0, 115.0)]
    # Time in which nothing ran is its own.
    assert path == [("g1", 100.0, 115.0), ("g0", 10.0, 100.0)]


@settings(max_examples=300)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 30), st.integers(0, 9)), max_size=25))
def test_path_reports_the_stage_that_ran_for_the_longest(given: list[tuple[int, int, int]]) -> None:
    rows = sorted((stage, float(launch), float(launch + length)) for stage, launch, length in given)
    clock = clock_of(rows, 40.0)
    reported = list(clock.seen(DRIVER, 5.0, 35.0))[::-1]
    assert [begin for _, begin, _ in reported] == [5.0, *(end for _, _, end in reported[:-1])]
    assert reported[-1][2] == 35.0
    since = {
        (stage, end): max(begin, 5.0)
        for stage in range(5)
        for begin, last in merged(*np.array([row[1:] for row in rows if row[0] == stage]).reshape(-1, 2).T).tolist()
        for end in np.arange(begin + 0.5, last + 0.5, 0.5)
    }
    for node, begin, end in reported:
        mine = {stage: since[stage, end] for stage in range(5) if (stage, end) in since}
        if node == DRIVER:
            assert not mine
        else:
            assert node.stage is not None
            assert mine[node.stage] == min(mine.values()) == begin


@settings(max_examples=200)
@given(runs)
def test_overlapping_stages_stay_concurrent(run: Made) -> None:
    """A stage that began before another ended is not its successor, and the replay finds an order for all of them."""
    graph = run.dag.graph()
    for each in run.stages:
        for later in nx.descendants(graph, each.stage_id):
            node = run.dag.nodes[later]
            if node.stage is not None:
                assert node.start_ms >= each.end_ms - 1
    assert set(replay(run.dag, run.tasks, run.tasks.duration_ms, run.slots).node_end_ms) == set(run.dag.nodes)


# By hand --------------------------------------------------------------------------------------------------------------


def stage(number: int, submit: float, end: float, *, sql: int | None = None) -> StageRun:
    return StageRun(f"s{number}", f"s{number}", None if sql is None else f"sql:{sql}", number, submit, submit, end)


def sources(stages: list[StageRun], **stated: str) -> dict[str, dict[str, str]]:
    """The stages that each stage waits for; `stated` says why it reads the rows of another: s2_s0=SHUFFLE."""
    barriers, found = JobBarriers(stages), {}
    for each in sorted(stages, key=lambda stage: stage.submit_ms or 0.0):
        known = {name.split("_")[1]: why for name, why in stated.items() if name.split("_")[0] == each.stage_id}
        found[each.stage_id] = barriers.sources(each, (each.submit_ms or 0.0) + 1, known) | known
        barriers.add(each, found[each.stage_id])
    return found


def test_a_query_waits_for_the_one_that_ran_within_it() -> None:
    stages = [stage(0, 0, 10, sql=0), stage(1, 20, 200, sql=1), stage(2, 205, 220, sql=0)]
    assert sources(stages)["s2"] == {"s0": "job barrier", "s1": "submission order"}


def test_job_that_reads_earlier_results_waits_for_jobs_run_since() -> None:
    """As `show` looks at ever more partitions: every job reads the shuffle of the first."""
    stages = [stage(0, 0, 10, sql=0), stage(1, 11, 50, sql=0), stage(2, 55, 90, sql=0)]
    found = sources(stages, s1_s0=SHUFFLE, s2_s0=EARLIER_JOB)
    assert found["s2"] == {"s0": EARLIER_JOB, "s1": "job barrier"}
    assert sources(stages, s1_s0=SHUFFLE, s2_s0=SHUFFLE)["s2"] == {"s0": SHUFFLE}


def test_stage_that_ran_alone_delayed_the_following_ones() -> None:
    """A model is trained in one long stage, while short jobs read what had been cached before."""
    training = [stage(0, 0, 10), stage(1, 20, 257), stage(2, 30, 35), stage(3, 100, 105), stage(4, 259, 270)]
    assert sources(training, s2_s0=EARLIER_JOB, s3_s0=EARLIER_JOB, s4_s0=EARLIER_JOB)["s4"] == {
        "s0": EARLIER_JOB,
        "s1": "submission order",
    }


def test_a_stage_that_ran_for_little_of_the_wait_did_not_cause_it() -> None:
    stages = [stage(0, 0, 100, sql=0), stage(1, 10, 103, sql=0), stage(2, 110, 120, sql=0)]
    assert sources(stages, s2_s0=EARLIER_JOB)["s2"] == {"s0": EARLIER_JOB}


def test_queries_of_two_threads_do_not_wait_for_each_other() -> None:
    """Each goes on submitting while the other runs; the third follows the one whose thread is free."""
    first = [stage(0, 0, 10, sql=0), stage(1, 12, 40, sql=0), stage(2, 45, 60, sql=0)]
    second = [stage(3, 1, 30, sql=1), stage(4, 32, 43, sql=1), stage(5, 50, 90, sql=1)]
    third = [stage(6, 65, 80, sql=2)]
    found = sources(first + second + third)
    assert found["s2"] == {"s1": "job barrier"}
    assert found["s4"] == {"s3": "job barrier"}
    assert found["s5"] == {"s4": "job barrier"}
    assert found["s6"] == {"s2": "submission order"}


# Every public log, by its own JSON ------------------------------------------------------------------------------------


def events(path: Path) -> Iterator[dict[str, Any]]:
    """The events of a log in one file or in parts; lines that are none are left out."""
    files = sorted(path.glob("events_*")) if path.is_dir() else [path]
    for each in files:
        raw: Any = each.open("rb")
        if raw.peek(4)[:4] == b"\x28\xb5\x2f\xfd":
            raw = io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True))
        with raw:
            try:
                for line in raw:
                    if line.startswith(b"{") and line.rstrip().endswith(b"}"):
                        try:
                            event = json.loads(line)
                        except ValueError:
                            continue
                        if isinstance(event, dict) and "Event" in event:
                            yield event
            except zstandard.ZstdError:
                return


def ended_tasks(path: Path) -> Floats:
    """Launch and finish of every task whose end the log has, Unix ms; nothing waits for a lost one after its stage."""
    every = list(events(path))
    stages = [each["Stage Info"] for each in every if each["Event"] == "SparkListenerStageCompleted"]
    over = {(each["Stage ID"], each.get("Stage Attempt ID", 0)): each.get("Completion Time") for each in stages}
    found = []
    for event in every:
        if event["Event"] != "SparkListenerTaskEnd" or not (info := event.get("Task Info")):
            continue
        finish = info["Finish Time"]
        if event.get("Task End Reason", {}).get("Reason") != "Success":
            finish = min(finish, over.get((event["Stage ID"], event.get("Stage Attempt ID", 0))) or finish)
        found.append((info["Launch Time"], finish))
    times = np.array(found, dtype=np.float64).reshape(-1, 2)
    return times[times[:, 1] > times[:, 0]]


def union_ms(times: Floats, start_ms: float, end_ms: float) -> float:
    """How much of an interval is in any of the intervals."""
    reached, total = start_ms, 0.0
    for start, end in sorted(np.clip(times, start_ms, end_ms).tolist()):
        total += max(end - max(start, reached), 0.0)
        reached = max(reached, end)
    return total


def contradictions(log: Path, run: Run) -> list[str]:
    """Claims of an answer about time without a task that the log's own events rule out."""
    answer = run.debug()
    with duckdb.connect(run.path, read_only=True) as connection:
        ((began, duration_ms),) = connection.execute("SELECT started_at_ms, duration_ms FROM runs").fetchall()
    without = answer.runtime_ms - union_ms(ended_tasks(log), began, began + duration_ms)
    path_ms = sum(each.end_ms - each.start_ms for each in answer.critical_path)
    waits = {"no worker", "no scope", "driver", "no task"}
    waited_ms = sum(ms for cause, ms in answer.other_ms.items() if cause in waits)
    checks = {
        "the path is as long as the run": abs(path_ms - answer.runtime_ms) < 0.01,
        "the coordinator": answer.driver_ms <= without + 0.01,
        "no task runs": answer.no_task_ms <= without + 0.01,
        "waiting": waited_ms <= without + 0.01,
        "other": sum(answer.other_ms.values()) == pytest.approx(answer.resource_ms[OTHER], abs=0.01),
    }
    return [f"{log.name}: {what}; {without:.0f} ms are without a task" for what, right in checks.items() if not right]


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["nested-queries", "threads", "survived-failure", "lost-executor", "cut-off"])
def test_no_odd_log_has_time_without_a_task_while_its_tasks_ran(name: str, tmp_path: Path) -> None:
    log = ROOT / "lab" / "recordings" / "odd" / f"{name}.zstd"
    assert not contradictions(log, cp.profile([log], output=tmp_path / "run.duckdb"))


def test_no_public_log_has_time_without_a_task_while_its_tasks_ran(real_inputs: Path, tmp_path: Path) -> None:
    compared, wrong = 0, []
    for number, log in enumerate(sorted(real_inputs.glob("spark-eventlog/*/*"))):
        try:
            run = cp.profile([log], output=tmp_path / f"{number}.duckdb")
        except InputError:
            continue
        wrong += contradictions(log, run)
        compared += len(ended_tasks(log)) > 0
    assert not wrong
    assert compared > 50
