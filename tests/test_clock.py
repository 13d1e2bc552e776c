"""The clock that stands still while nothing is submitted, against counting milliseconds, and runs made by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crystalperf.query.diagnose.advisor import Advisor
from crystalperf.query.diagnose.diagnose import diagnosed
from crystalperf.query.execution.clock import Clock
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.intervals import merged
from crystalperf.query.execution.load import load
from crystalperf.query.frameworks import Framework, Reader
from crystalperf.query.frameworks.registry import frameworks
from crystalperf.query.frameworks.spark.interactive import interactive
from crystalperf.query.runfile.pipeline import gather, write_run
from crystalperf.query.trace.contract import Edge, Scope, Stage, Task, Worker, of_rows
from crystalperf.query.trace.records import Problems
from crystalperf.query.trace.vocabulary import Vocabulary

LAST_MS = 15
moments = st.integers(0, LAST_MS)
intervals = st.tuples(moments, moments).map(sorted)
left_out = st.lists(intervals, max_size=4)


def clock_of(rows: list[list[int]]) -> Clock:
    lasting = np.array([row for row in rows if row[1] > row[0]], dtype=np.float64).reshape(-1, 2)
    return Clock(merged(lasting[:, 0], lasting[:, 1]))


@given(left_out, intervals)
def test_shows_elapsed_milliseconds(rows: list[list[int]], interval: list[int]) -> None:
    clock = clock_of(rows)
    goes = [not any(start <= ms < end for start, end in rows) for ms in range(LAST_MS + 1)]
    assert clock.is_active(np.arange(LAST_MS + 1.0)).tolist() == goes
    for ms in range(LAST_MS + 1):
        assert clock.when(ms) == sum(goes[:ms])
    assert clock.at(np.array([np.inf])).tolist() == [np.inf]
    start, end = map(clock.when, map(float, interval))
    back = clock.recorded(start, end)
    assert sum(high - low for low, high in back) == pytest.approx(end - start)
    inside = {ms for low, high in back for ms in range(int(low), int(high))}
    assert inside == {ms for ms in range(interval[0], interval[1]) if goes[ms]}


# Runs made by hand ----------------------------------------------------------------------------------------------------

SHELL = Framework(
    name="shell",
    title="Shell",
    reader=Reader(
        recognise=lambda _head: None,
        read=lambda _log: of_rows({}, [], [], []),
        interactive=lambda name, _properties: {"shell": True, "program": False}.get(name or ""),
        unread_work=frozenset({"hole"}),
    ),
    vocabulary=Vocabulary(scope="step", scopes=("step",)),
)


@pytest.fixture(autouse=True)
def known() -> Iterator[None]:
    frameworks()[SHELL.name] = SHELL
    yield
    del frameworks()[SHELL.name]


def made(folder: Path, name: str, steps: list[tuple[float, float]], duration_ms: float, *problems: str) -> Path:
    """A run whose steps each have two stages of a task, one after the other, and then 100 ms of their own."""
    stages, tasks, edges, scopes = [], [], [], []
    for number, (start, end) in enumerate(steps):
        middle, last = (start + end - 100) / 2, end - 100
        for part, (begin, stop) in enumerate([(start + 50, middle), (middle + 10, last)]):
            stage = f"{number}.{part}"
            stages.append(
                Stage(stage, 1, begin, stop, stage, f"step:{number}", submit_ms=begin - 10, priority=len(stages))
            )
            tasks.append(Task(len(tasks), stage, "w", begin, stop, measured_ms={"cpu": (stop - begin) / 2}))
        edges.append(Edge(f"{number}.0", f"{number}.1", "barrier", "rows"))
        edges += [Edge(f"{number - 1}.1", f"{number}.0", "order", "the program")] if number else []
        scopes.append(Scope(f"step:{number}", "step", start, end))
    run = {"app_id": "made", "name": name, "framework": "shell", "started_at_ms": 0, "duration_ms": duration_ms}
    trace = of_rows(run, [Worker("w", 2, added_ms=2000.0)], stages, tasks, edges, scopes)
    found = Problems()
    for each in problems:
        found.add(each, "data loss", "log", None, "something is missing")
    path = folder / f"{name}-{len(steps)}-{int(duration_ms)}-{len(problems)}.duckdb"
    write_run(gather(trace, SHELL, found), path)
    return path


def loaded(path: Path, scope: str = "all") -> Execution:
    with duckdb.connect(str(path), read_only=True) as connection:
        return load(connection, scope)


WORK = [(10_000.0, 12_000.0), (12_500.0, 14_000.0), (30_000.0, 31_000.0)]


def test_pauses_of_a_shell_are_left_out(tmp_path: Path) -> None:
    path = made(tmp_path, "shell", WORK, 40_000.0)
    run = loaded(path)
    assert run.clock.left_out.tolist() == [[0, 10_000], [14_000, 30_000], [31_000, 40_000]]  # 0.5 s is too short
    assert run.runtime_ms == 5000
    with duckdb.connect(str(path), read_only=True) as connection:
        answer = diagnosed(connection, run, Advisor()).debug
        whole = diagnosed(connection, load(connection, "whole"), Advisor()).debug
    assert answer.unsubmitted is not None
    assert (answer.unsubmitted.left_out_ms, answer.unsubmitted.total_ms, answer.unsubmitted.intervals) == (
        35_000,
        40_000,
        3,
    )
    assert sum(answer.resource_ms.values()) == pytest.approx(5000)
    assert answer.other_ms["no scope"] == pytest.approx(500)
    assert answer.resource_ms["cpu"] == pytest.approx(whole.resource_ms["cpu"])
    # The path uses recorded time, and no interval of it is in a pause.
    for item in answer.critical_path:
        assert sum(item.resource_ms.values()) == pytest.approx(item.end_ms - item.start_ms)
        assert run.clock.when(item.end_ms) - run.clock.when(item.start_ms) == item.end_ms - item.start_ms
    assert sum(item.end_ms - item.start_ms for item in answer.critical_path) == pytest.approx(5000)
    assert {item.id for item in answer.critical_path if "." in item.id} == {
        f"{n}.{part}" for n in range(3) for part in "01"
    }
    assert whole.unsubmitted is None
    assert whole.runtime_ms == 40_000


@pytest.mark.parametrize("scope", ["whole", "step:2", "0..40000"])
def test_a_scope_that_is_named_keeps_its_pauses(tmp_path: Path, scope: str) -> None:
    assert loaded(made(tmp_path, "shell", WORK, 40_000.0), scope).clock.left_out_ms == 0


def test_program_keeps_its_pauses_and_unknown_submitter_the_short_ones(tmp_path: Path) -> None:
    assert loaded(made(tmp_path, "program", WORK, 40_000.0)).clock.left_out_ms == 0
    # Until the first worker is there, at 2 s, a program may have waited for it.
    assert loaded(made(tmp_path, "", WORK, 40_000.0)).clock.left_out.tolist()[0] == [2000, 10_000]
    assert loaded(made(tmp_path, "", [(3000.0, 12_000.0)], 20_000.0)).clock.left_out_ms == 0  # 9 of 20 s
    assert loaded(made(tmp_path, "shell", [(3000.0, 12_000.0)], 20_000.0)).clock.left_out_ms == 11_000
    assert loaded(made(tmp_path, "shell", [(0.0, 97_000.0)], 100_000.0)).clock.left_out_ms == 0  # 3 of 100 s


def test_nothing_is_left_out_of_a_log_with_holes(tmp_path: Path) -> None:
    assert loaded(made(tmp_path, "shell", WORK, 40_000.0, "hole")).clock.left_out_ms == 0
    assert loaded(made(tmp_path, "shell", WORK, 40_000.0, "dent")).clock.left_out_ms == 35_000


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_cutting_pauses_keeps_durations_order_and_dependencies(tmp_path: Path, seed: int) -> None:
    """Time of every task, order of every two, and the dependencies, with and without the pauses."""
    chosen = np.random.default_rng(seed)
    begins, work = 0.0, []
    for pause, length in zip(chosen.integers(0, 5000, 6), chosen.integers(400, 3000, 6), strict=True):
        work.append((begins + pause, begins + pause + length))
        begins += float(pause + length)
    path = made(tmp_path, "shell", work, begins + chosen.integers(0, 9000))
    run, whole = loaded(path), loaded(path, "whole")
    assert run.clock.left_out_ms > 0
    assert run.runtime_ms == pytest.approx(whole.runtime_ms - run.clock.left_out_ms)
    assert run.tasks.duration_ms.tolist() == pytest.approx(whole.tasks.duration_ms.tolist())
    assert (
        np.argsort(run.tasks.launch_ms, kind="stable").tolist()
        == np.argsort(whole.tasks.launch_ms, kind="stable").tolist()
    )
    assert set(run.dag.edges) == set(whole.dag.edges)
    run.dag.check()
    for node_id, node in run.dag.nodes.items():
        if node.stage is not None:
            assert node.end_ms - node.start_ms == pytest.approx(
                whole.dag.nodes[node_id].end_ms - whole.dag.nodes[node_id].start_ms
            )


# Spark ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "properties", "reported"),
    [
        ("Spark shell", {}, True),
        ("GraphX", {"spark.repl.class.uri": "http://10.0.0.1:1"}, True),
        ("Databricks Shell", {"spark.databricks.clusterSource": "UI"}, True),
        ("Databricks Shell", {"spark.databricks.clusterSource": "JOB", "spark.repl.class.uri": "x"}, False),
        ("nightly", {"spark.submit.deployMode": "cluster"}, False),
        ("nightly", {"spark.submit.deployMode": "client"}, None),
        (None, {}, None),
    ],
)
def test_attended_sessions_are_known_by_name_and_properties(
    name: str | None, properties: dict[str, str], reported: bool | None
) -> None:
    assert interactive(name, properties) is reported


# Public logs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("log", "left_out_s", "whole_s"),
    [
        ("rapids-tools/dataset_eventlog", 353.3, 355.6),
        ("apache-spark/app-20161115172038-0000", 100.7, 101.8),
        ("rapids-tools/pandas_execs_eventlog.zstd", 113.9, 133.7),  # PySpark's shell
        ("rapids-tools/e2e_photon_eventlog.zstd", 0, 0),  # a job's notebook
        ("dr-elephant/event_log_1", 0, 0),  # a program that waited for executors
    ],
)
def test_shells_among_public_logs(
    real_inputs: Path, crystalperf: Callable[..., tuple[int, str, str]], log: str, left_out_s: float, whole_s: float
) -> None:
    code, out, _ = crystalperf("analyze", real_inputs / "spark-eventlog" / log, "--json")
    reported = json.loads(out)["debug"]
    assert code == 0
    if not left_out_s:
        assert reported["unsubmitted"] is None
        return
    assert reported["unsubmitted"]["left_out_ms"] == pytest.approx(left_out_s * 1000, abs=100)
    assert reported["runtime_ms"] == pytest.approx((whole_s - left_out_s) * 1000, abs=100)
    assert reported["other_ms"].get("no scope", 0) < 0.35 * reported["runtime_ms"]
    _, out, _ = crystalperf("analyze", real_inputs / "spark-eventlog" / log)
    assert f" {left_out_s} of {whole_s} s" in " ".join(out.split())


def test_public_shell_log_without_work(real_inputs: Path, crystalperf: Callable[..., tuple[int, str, str]]) -> None:
    log = real_inputs / "spark-eventlog/apache-spark/application_1555004656427_0144"
    code, out, _ = crystalperf("analyze", log, "--json")
    assert code == 0
    assert "no scope" not in json.loads(out)["debug"]["other_ms"]
