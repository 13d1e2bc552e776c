"""Spark event logs become tables: a real run to the number, everything else a log can hold, and damaged logs."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
import zstandard

from crystalperf.indexes.errors import InputError
from crystalperf.indexes.schema import tables as schema_tables
from crystalperf.query.frameworks.spark.log.collect import collect
from crystalperf.query.frameworks.spark.log.tables import tables as spark_tables
from crystalperf.query.frameworks.spark.trace import raw_tables, trace
from crystalperf.query.inputs.containers import LogFile, Part
from crystalperf.query.inputs.discover import choose, discover
from crystalperf.query.trace.inserting import insert
from crystalperf.query.trace.records import RunTables, objects
from tests.refusals import refused

DATA = Path(__file__).parent / "data" / "eventlog"
REAL = Path(__file__).parents[2] / "shared" / "real-inputs" / "spark-eventlog"
TEXT = zstandard.ZstdDecompressor().stream_reader((DATA / "q9.zstd").read_bytes(), read_across_frames=True).read()
LINES = TEXT.rstrip(b"\n").split(b"\n")
EVENTS: list[dict[str, Any]] = [json.loads(line) for line in LINES]
START = 1_795_257_733_277
STAGE_16 = 16  # a join of two shuffles that earlier jobs computed

Event = dict[str, Any]


def parse(log: LogFile) -> RunTables:
    """Spark's own tables of a log."""
    return spark_tables(collect(log))


@pytest.fixture
def write(tmp_path: Path) -> Callable[[Iterable[Event | bytes]], RunTables]:
    """Parses a log of these events or lines."""

    def parsed(events: Iterable[Event | bytes]) -> RunTables:
        lines = [
            each if isinstance(each, bytes) else json.dumps(each, separators=(",", ":")).encode() for each in events
        ]
        (tmp_path / "log").write_bytes(b"\n".join(lines) + b"\n")
        return parse(LogFile("log", (Part(str(tmp_path / "log")),)))

    return parsed


Parse = Callable[[Iterable[Event | bytes]], RunTables]


def copies(change: Callable[[Event], Event | None] = lambda event: event) -> list[Event]:
    """The events of the real run, changed; None leaves one out."""
    changed = (change(json.loads(line)) for line in LINES)
    return [event for event in changed if event is not None]


def kind(event: Event) -> str:
    return str(event["Event"]).rpartition("SparkListener")[2]


def rows(tables: RunTables, name: str, *columns: str) -> list[tuple[Any, ...]]:
    picked = [tables[name][column].tolist() for column in columns]
    return list(zip(*picked, strict=True))


def row(tables: RunTables, table: str, /, **key: object) -> dict[str, Any]:
    columns = {column: values.tolist() for column, values in tables[table].items()}
    for position in range(len(next(iter(columns.values())))):
        if all(columns[column][position] == value for column, value in key.items()):
            return {column: values[position] for column, values in columns.items()}
    raise AssertionError(f"no row of {table} with {key}")


def problems(tables: RunTables) -> dict[str, int]:
    return dict(rows(tables, "import_stats", "name", "count"))


def check(tables: RunTables, *, load: bool = False) -> None:
    """Laws of every log, however damaged."""
    (duration,) = tables["runs"]["duration_ms"].tolist()
    assert 0 <= duration < 1e13
    for name, columns in handed_over(tables).items():
        declared = {column.name for table in DECLARED if table.name == name for column in table.columns}
        assert set(columns) <= declared
        assert len({len(values) for values in columns.values()}) <= 1
    for name, columns in tables.items():
        assert len({len(values) for values in columns.values()}) == 1
        for column, values in columns.items():
            if column.endswith("_ms") and column not in ("started_at_ms",):
                known = np.ma.compressed(values) if isinstance(values, np.ma.MaskedArray) else values
                assert np.isfinite(known).all()
                assert (known >= 0).all(), (name, column)
                if column in (
                    "start_ms",
                    "end_ms",
                    "submit_ms",
                    "launch_ms",
                    "finish_ms",
                    "first_launch_ms",
                    "added_ms",
                ):
                    assert (known <= duration).all(), (name, column)
    for name, start, end in (
        ("tasks", "launch_ms", "finish_ms"),
        ("jobs", "submit_ms", "end_ms"),
        ("stages", "submit_ms", "end_ms"),
        ("stages", "submit_ms", "first_launch_ms"),
        ("sql_executions", "start_ms", "end_ms"),
        ("executors", "added_ms", "removed_ms"),
    ):
        assert not np.ma.filled(np.ma.asarray(tables[name][end]) < tables[name][start], False).any(), (name, end)
    tasks, stages = tables["tasks"], tables["stages"]
    assert len(set(tasks["task_id"].tolist())) == len(tasks["task_id"])
    attempts = set(rows(tables, "stages", "stage_id", "attempt"))
    assert len(attempts) == len(stages["stage_id"])
    assert set(rows(tables, "tasks", "stage_id", "stage_attempt")) <= attempts
    assert set(tasks["status"]) <= {"succeeded", "failed", "killed", "unfinished"}
    assert set(stages["status"]) <= {"succeeded", "failed", "skipped", "unfinished"}
    assert set(tables["jobs"]["status"]) <= {"succeeded", "failed", "unfinished"}
    executors = tables["executors"]["executor_id"].tolist()
    assert len(set(executors)) == len(executors)
    assert {name for name in tasks["executor_id"] if name is not None} <= set(executors)
    assert set(tables["import_stats"]["severity"]) <= {"info", "data loss", "error"}
    if load:
        loaded(tables)


DECLARED = (*schema_tables("run"), *raw_tables())
"""The tables of a run file of Spark."""


def handed_over(tables: RunTables) -> RunTables:
    """The trace of Spark's tables, as the tables of a run file."""
    found = trace(tables)
    run = {name: objects([value]) for name, value in found.run.items() if name != "properties"}
    return {**found.tables(), "runs": run, "stages": found.stages, "tasks": found.tasks}


def loaded(tables: RunTables) -> duckdb.DuckDBPyConnection:
    """A database with the tables of the trace, made as the schemas say."""
    connection = duckdb.connect()
    for table in DECLARED:
        for statement in table.statements():
            connection.execute(statement)
    for name, columns in handed_over(tables).items():
        assert columns
        insert(connection, name, columns)
    return connection


# A real run: TPC-H query 9 on two executors with two slots ---------------------------------------------------------


@pytest.fixture(scope="module")
def q9() -> RunTables:
    return parse(choose(discover([DATA / "q9.zstd"])).log)


def test_run(q9: RunTables) -> None:
    check(q9, load=True)
    assert problems(q9) == {}
    run = row(q9, "runs")
    assert run["app_id"] == "app-20261121104214-0000"
    assert (run["framework_version"], run["java_version"]) == ("4.0.1", "17.0.15 (Debian)")
    assert (run["started_at_ms"], run["duration_ms"], run["complete"]) == (START, 32_949.0, True)
    assert run["scheduler"] == "FIFO"
    kept = dict(zip(run["properties"]["key"], run["properties"]["value"], strict=True))
    assert kept["spark.executor.cores"] == "2"
    assert "do-not-keep" in TEXT.decode()
    assert "do-not-keep" not in repr(q9)


def test_executors(q9: RunTables) -> None:
    assert rows(q9, "executors", "executor_id", "slots", "cores", "memory_bytes", "added_ms", "removed_ms") == [
        ("driver", 0, None, None, 0.0, None),
        ("0", 2, 2, 1 << 30, 9785.0, None),
        ("1", 2, 2, 1 << 30, 9792.0, None),
    ]


def test_jobs_and_stages(q9: RunTables) -> None:
    statuses = q9["stages"]["status"].tolist()
    assert (statuses.count("succeeded"), statuses.count("skipped"), len(statuses)) == (19, 22, 41)
    job = row(q9, "jobs", job_id=8)
    assert (job["sql_id"], job["submit_ms"], job["end_ms"], job["status"]) == (8, 16_935.0, 20_516.0, "succeeded")
    stage = row(q9, "stages", stage_id=8)
    assert (stage["task_count"], stage["submit_ms"], stage["first_launch_ms"], stage["end_ms"]) == (
        4,
        16_951.0,
        17_012.0,
        20_481.0,
    )
    assert stage["kind"] == "scan, shuffle write"
    assert row(q9, "stages", stage_id=STAGE_16)["kind"] == "shuffle read, shuffle write"
    assert row(q9, "stages", stage_id=12)["kind"] == "scan, broadcast"


def test_parents_are_the_stages_that_computed_the_shuffle(q9: RunTables) -> None:
    """The log's own parents of stage 16 are 14 and 15, which were skipped: stages 13 and 9 had made their output."""
    (submitted,) = (e for e in EVENTS if kind(e) == "StageSubmitted" and e["Stage Info"]["Stage ID"] == STAGE_16)
    assert submitted["Stage Info"]["Parent IDs"] == [14, 15]
    assert sorted(row(q9, "stages", stage_id=STAGE_16)["parents"]) == [9, 13]
    ran = {stage for stage, status in rows(q9, "stages", "stage_id", "status") if status == "succeeded"}
    for stage, parents in rows(q9, "stages", "stage_id", "parents"):
        assert stage not in ran or set(parents) <= ran


def test_tasks_against_the_log(q9: RunTables) -> None:
    ends = {event["Task Info"]["Task ID"]: event for event in EVENTS if kind(event) == "TaskEnd"}
    assert sorted(q9["tasks"]["task_id"].tolist()) == sorted(ends)
    for task_id, event in ends.items():
        info, metrics = event["Task Info"], event["Task Metrics"]
        task = row(q9, "tasks", task_id=task_id)
        assert task["launch_ms"] == info["Launch Time"] - START
        assert task["finish_ms"] == info["Finish Time"] - START
        assert (task["executor_id"], task["partition"], task["locality"]) == (
            info["Executor ID"],
            info["Partition ID"],
            info["Locality"],
        )
        assert (task["status"], task["reason"], task["speculative"]) == ("succeeded", None, False)
        assert task["run_ms"] == metrics["Executor Run Time"]
        assert task["run_cpu_ms"] == pytest.approx(metrics["Executor CPU Time"] / 1e6)
        assert task["deserialize_cpu_ms"] == pytest.approx(metrics["Executor Deserialize CPU Time"] / 1e6)
        assert task["gc_ms"] == metrics["JVM GC Time"]
        assert task["fetch_wait_ms"] == metrics["Shuffle Read Metrics"]["Fetch Wait Time"]
        assert task["shuffle_write_ms"] == pytest.approx(metrics["Shuffle Write Metrics"]["Shuffle Write Time"] / 1e6)
        assert task["input_bytes"] == metrics["Input Metrics"]["Bytes Read"]
        assert task["shuffle_remote_bytes"] == metrics["Shuffle Read Metrics"]["Remote Bytes Read"]
        assert task["shuffle_local_bytes"] == metrics["Shuffle Read Metrics"]["Local Bytes Read"]
        assert task["shuffle_write_bytes"] == metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"]
        assert task["input_rows"] == (
            metrics["Input Metrics"]["Records Read"] + metrics["Shuffle Read Metrics"]["Total Records Read"]
        )
        parts = ("Executor Deserialize Time", "Executor Run Time", "Result Serialization Time")
        delay = info["Finish Time"] - info["Launch Time"] - sum(metrics[part] for part in parts)
        assert task["scheduler_delay_ms"] == max(0, delay)
        assert task["getting_result_ms"] == 0


def test_queries_and_operators(q9: RunTables) -> None:
    query = row(q9, "sql_executions", sql_id=8)
    assert (query["start_ms"], query["end_ms"], query["error"]) == (15_833.0, 32_908.0, None)
    plan = [each for each in rows(q9, "operators", "sql_id", "node_id", "parent_id", "name") if each[0] == 8]
    assert plan[0] == (8, 0, None, "AdaptiveSparkPlan")
    assert [each[1] for each in plan] == list(range(len(plan)))
    assert all(parent < node for _, node, parent, _ in plan[1:])
    assert row(q9, "operators", sql_id=8, node_id=0)["detail"] == "AdaptiveSparkPlan isFinalPlan=true"
    scans = [each for each in plan if each[3].startswith("Scan parquet")]
    assert len(scans) == 6
    found = loaded(q9).execute(
        """
        SELECT DISTINCT spark_stage_id FROM operators
        JOIN operator_stages USING (scope_id, node_id) JOIN spark_stages USING (stage_id)
        WHERE operators.name = 'SortMergeJoin' ORDER BY spark_stage_id
        """
    )
    assert [stage for (stage,) in found.fetchall()] == [16, 21]


# Other content of a log ------------------------------------------------------------------------------------------


def test_task_ends(write: Parse) -> None:
    ends = [event["Task Info"]["Task ID"] for event in EVENTS if kind(event) == "TaskEnd"]
    killed, failed, lost = ends[5], ends[6], ends[7]
    reasons = {
        killed: {"Reason": "TaskKilled", "Kill Reason": "another attempt succeeded"},
        failed: {"Reason": "ExceptionFailure", "Class Name": "java.lang.Error", "Description": "no\nluck"},
        lost: {"Reason": "ExecutorLostFailure", "Executor ID": "1", "Loss Reason": "it was"},
    }

    def change(event: Event) -> Event:
        if kind(event) == "TaskEnd":
            reason = reasons.get(event["Task Info"]["Task ID"])
            if reason:
                event["Task End Reason"] = reason
                event["Task Info"]["Speculative"] = True
                del event["Task Metrics"]
        return event

    tables = write(copies(change))
    check(tables, load=True)
    found = [(row(tables, "tasks", task_id=t)["status"], row(tables, "tasks", task_id=t)["reason"]) for t in reasons]
    assert found == [
        ("killed", "TaskKilled: another attempt succeeded"),
        ("failed", "Error: no"),
        ("failed", "ExecutorLostFailure: it was"),
    ]
    task = row(tables, "tasks", task_id=killed)
    assert task["speculative"] is True
    assert (task["run_ms"], task["input_bytes"], task["scheduler_delay_ms"]) == (None, None, None)


def test_lost_task_ends_are_noticed(write: Parse) -> None:
    rng = random.Random(3)
    ends = [event["Task Info"]["Task ID"] for event in EVENTS if kind(event) == "TaskEnd"]
    for share in (0.03, 0.2, 0.4):
        dropped = set(rng.sample(ends, max(1, int(share * len(ends)))))
        with_starts = copies(
            lambda e, d=dropped: None if kind(e) == "TaskEnd" and e["Task Info"]["Task ID"] in d else e
        )
        neither = [e for e in with_starts if kind(e) != "TaskStart" or e["Task Info"]["Task ID"] not in dropped]
        for events in (with_starts, neither):
            tables = write(events)
            check(tables)
            assert problems(tables)["missing_task_ends"] == len(dropped)
        tables = write(with_starts)
        assert tables["tasks"]["status"].tolist().count("unfinished") == len(dropped)
        for task in dropped:  # it cannot have run on after its stage
            found = row(tables, "tasks", task_id=task)
            assert found["finish_ms"] <= row(tables, "stages", stage_id=found["stage_id"])["end_ms"]
            assert found["run_ms"] is None
            assert found["launch_ms"] > 0


def stage_retry() -> list[Event]:
    """Stage 13 fails to fetch, its one lost partition runs again in attempt 1, and an executor dies."""
    events = copies()
    at = max(i for i, event in enumerate(events) if kind(event) == "StageCompleted" and stage_id(event) == 13)
    again = json.loads(json.dumps(events[at]))
    events[at]["Stage Info"]["Failure Reason"] = "FetchFailed: shuffle 3"
    task = json.loads(json.dumps(next(e for e in events if kind(e) == "TaskEnd" and e["Stage ID"] == 13)))
    lost = json.loads(json.dumps(task))
    lost["Task End Reason"] = {"Reason": "Resubmitted"}
    del lost["Task Metrics"]
    now = again["Stage Info"]["Completion Time"]
    again["Stage Info"] |= {
        "Stage Attempt ID": 1,
        "Number of Tasks": 1,
        "Submission Time": now,
        "Completion Time": now + 40,
    }
    submitted = {"Event": "SparkListenerStageSubmitted", "Stage Info": again["Stage Info"] | {"Completion Time": None}}
    task["Stage Attempt ID"] = 1
    task["Task Info"] |= {"Task ID": 1000, "Index": 0, "Launch Time": now + 5, "Finish Time": now + 35}
    task["Task Metrics"] |= {"Executor Run Time": 20, "Executor Deserialize Time": 5, "Result Serialization Time": 0}
    removed = {"Event": "SparkListenerExecutorRemoved", "Timestamp": now, "Executor ID": "1", "Removed Reason": "lost"}
    events[at + 1 : at + 1] = [removed, lost, submitted, task, again]
    return events


def stage_id(event: Event) -> int:
    return int(event["Stage Info"]["Stage ID"])


def test_stage_attempts_and_a_lost_executor(write: Parse) -> None:
    tables = write(stage_retry())
    check(tables, load=True)
    attempts = [each for each in rows(tables, "stages", "stage_id", "attempt", "status", "failure") if each[0] == 13]
    assert attempts == [(13, 0, "failed", "FetchFailed: shuffle 3"), (13, 1, "succeeded", None)]
    assert row(tables, "tasks", task_id=1000)["stage_attempt"] == 1
    assert problems(tables) == {"output_lost": 1}
    executor = row(tables, "executors", executor_id="1")
    assert executor["removed_reason"] == "lost"
    assert executor["removed_ms"] == row(tables, "stages", stage_id=13, attempt=1)["submit_ms"]
    assert len(tables["tasks"]["task_id"]) == 36


def test_running_application(write: Parse) -> None:
    last = max(i for i, event in enumerate(EVENTS) if kind(event) == "TaskStart")
    tables = write(copies()[: last + 1])
    check(tables, load=True)
    assert row(tables, "runs")["complete"] is False
    assert set(problems(tables)) == {"no_application_end"}
    severity = row(tables, "import_stats", name="no_application_end")["severity"]
    assert severity == "data loss"
    running = EVENTS[last]["Task Info"]["Task ID"]
    task = row(tables, "tasks", task_id=running)
    assert task["status"] == "unfinished"
    assert task["finish_ms"] == row(tables, "runs")["duration_ms"]
    assert rows(tables, "jobs", "status")[-1] == ("unfinished",)
    assert row(tables, "stages", stage_id=EVENTS[last]["Stage ID"])["status"] == "unfinished"


def test_failed_and_cancelled_jobs(write: Parse) -> None:
    def change(event: Event) -> Event | None:
        if kind(event) == "JobEnd" and event["Job ID"] == 18:
            event["Job Result"] = {"Result": "JobFailed", "Exception": {"Message": "Job 18 cancelled"}}
        return None if kind(event) == "JobStart" and event["Job ID"] == 3 else event

    tables = write(copies(change))
    check(tables)
    assert row(tables, "jobs", job_id=18)["status"] == "failed"
    assert problems(tables) == {"missing_job_start": 1}
    lost, its_stage = row(tables, "jobs", job_id=3), row(tables, "stages", stage_id=3)
    assert its_stage["job_id"] == 3  # no other job has it
    assert lost["submit_ms"] == its_stage["submit_ms"]
    assert (lost["stage_ids"], lost["status"]) == ([3], "succeeded")
    needed = row(tables, "jobs", job_id=18)["stage_ids"]
    assert "skipped" not in {s for i, s in rows(tables, "stages", "stage_id", "status") if i in needed[:-1] and i > 34}


def test_jobs_without_times_are_as_long_as_their_stages(write: Parse) -> None:
    """Versions before 1.3 log no times of jobs; one without an end would go on to the end of the application."""

    def untimed(event: Event) -> Event:
        if kind(event) in ("JobStart", "JobEnd"):
            return {key: value for key, value in event.items() if key not in ("Submission Time", "Completion Time")}
        return event

    tables = write(copies(untimed))
    ends: dict[int, float] = {}
    for job_id, end_ms in rows(tables, "stages", "job_id", "end_ms"):
        if end_ms is not None:
            ends[job_id] = max(ends.get(job_id, 0.0), end_ms)
    jobs = dict(rows(tables, "jobs", "job_id", "end_ms"))
    assert jobs == {job_id: ends[job_id] for job_id in jobs}
    assert problems(tables)["job_end_repaired"] == len(jobs)


def test_several_queries_at_once_and_streaming(write: Parse) -> None:
    def change(event: Event) -> Event:
        if kind(event) == "EnvironmentUpdate":
            event["Spark Properties"]["spark.scheduler.mode"] = "FAIR"
        if kind(event) in ("JobStart", "StageSubmitted"):
            event["Properties"] = (event.get("Properties") or {}) | {
                "spark.scheduler.pool": "etl",
                "spark.jobGroup.id": "b0e1",
                "spark.job.description": "id = b0e1\nrunId = 4711\nbatch = 3",
            }
        return event

    tables = write(copies(change))
    check(tables)
    assert row(tables, "runs")["scheduler"] == "FAIR"
    assert set(rows(tables, "jobs", "job_group", "name")) == {("b0e1", "id = b0e1 runId = 4711 batch = 3")}
    pools = {pool for pool, status in rows(tables, "stages", "pool", "status") if status != "skipped"}
    assert pools == {"etl"}


def test_resource_profiles_decide_slots(write: Parse) -> None:
    def amounts(**given: float) -> Event:
        return {name: {"Resource Name": name, "Amount": amount} for name, amount in given.items()}

    def change(event: Event) -> Event:
        if kind(event) == "ResourceProfileAdded":
            event["Executor Resource Requests"] = amounts(cores=16, memory=2048, gpu=1)
            event["Task Resource Requests"] = amounts(cpus=2.0, gpu=0.25)
        if kind(event) == "ExecutorAdded":
            event["Executor Info"]["Total Cores"] = 16
        return event

    found = rows(write(copies(change)), "executors", "executor_id", "cores", "slots", "memory_bytes")
    assert found[1] == ("0", 16, 4, 2 << 30)


def test_local_mode(write: Parse) -> None:
    def change(event: Event) -> Event | None:
        if kind(event) == "EnvironmentUpdate":
            event["Spark Properties"] |= {"spark.master": "local[3]", "spark.driver.memory": "1500m"}
        if kind(event) in ("TaskStart", "TaskEnd"):
            event["Task Info"]["Executor ID"] = "driver"
        return None if kind(event) in ("ExecutorAdded", "BlockManagerAdded") else event

    tables = write(copies(change))
    check(tables)
    assert rows(tables, "executors", "executor_id", "slots", "cores", "memory_bytes") == [("driver", 3, 3, 1500 << 20)]


def test_heap_of_a_local_master_is_known_by_its_block_manager_if_unstated(write: Parse) -> None:
    def change(event: Event) -> Event | None:
        if kind(event) == "EnvironmentUpdate":
            event["Spark Properties"] |= {"spark.master": "local[2]"}
            event["Spark Properties"].pop("spark.driver.memory", None)
        if kind(event) in ("TaskStart", "TaskEnd"):
            event["Task Info"]["Executor ID"] = "driver"
        if kind(event) == "BlockManagerAdded":
            if event["Block Manager ID"]["Executor ID"] != "driver":
                return None
            event["Maximum Memory"] = event["Maximum Onheap Memory"] = 4_185_076_531
        return None if kind(event) == "ExecutorAdded" else event

    tables = write(copies(change))
    check(tables)
    assert rows(tables, "executors", "executor_id", "memory_bytes") == [
        ("driver", 6952 << 20)
    ]  # 4185 MB / 0.6 + 300 MiB


def test_executor_that_never_registered(write: Parse) -> None:
    tables = write(copies(lambda event: None if kind(event) in ("ExecutorAdded", "BlockManagerAdded") else event))
    check(tables)
    assert problems(tables) == {"missing_executor_added": 2}
    first = min(launch for launch, name in rows(tables, "tasks", "launch_ms", "executor_id") if name == "0")
    executor = row(tables, "executors", executor_id="0")
    assert (executor["added_ms"], executor["cores"], executor["slots"]) == (first, 2, 2)


@pytest.mark.parametrize(
    ("launch", "finish", "name"),
    [
        (None, 0, "task_end_repaired"),  # Spark's zero for none
        (None, -500, "task_end_repaired"),  # before its launch
        (None, 5 * 365 * 86_400_000, "task_end_repaired"),  # five years later
        (0, None, "task_launch_repaired"),
        (-86_400_000, None, "task_end_repaired"),
    ],
)
def test_impossible_task_times(write: Parse, launch: int | None, finish: int | None, name: str) -> None:
    victim = next(event for event in EVENTS if kind(event) == "TaskEnd" and event["Stage ID"] == STAGE_16)["Task Info"]
    begin, end = victim["Launch Time"], victim["Finish Time"]

    def change(event: Event) -> Event:
        if kind(event) == "TaskEnd" and event["Task Info"]["Task ID"] == victim["Task ID"]:
            if launch is not None:
                event["Task Info"]["Launch Time"] = begin + launch if launch else 0
            if finish is not None:
                event["Task Info"]["Finish Time"] = begin + finish if finish else 0
        return event

    tables = write(copies(change))
    check(tables)
    assert problems(tables)[name] == 1
    task = row(tables, "tasks", task_id=victim["Task ID"])
    stage = row(tables, "stages", stage_id=STAGE_16)
    assert stage["submit_ms"] <= task["launch_ms"] <= task["finish_ms"] <= stage["end_ms"]
    measured = task["run_ms"] + task["deserialize_ms"] + task["result_serialize_ms"]
    assert measured <= task["finish_ms"] - task["launch_ms"] + 1 or finish is None
    assert task["finish_ms"] - task["launch_ms"] <= end - begin


def test_clock_that_steps_back(write: Parse) -> None:
    middle = len(EVENTS) // 2

    def shifted(value: Any, by: int) -> Any:
        if isinstance(value, dict):
            return {key: shifted(each, by) for key, each in value.items()}
        if isinstance(value, list):
            return [shifted(each, by) for each in value]
        is_time = isinstance(value, int) and START - 10**7 < value < START + 10**7
        return value + by if is_time else value

    events = [event if position < middle else shifted(event, -1000) for position, event in enumerate(copies())]
    check(write(events))


def test_missing_start_and_end(write: Parse) -> None:
    tables = write(copies(lambda event: None if kind(event).startswith("Application") else event))
    check(tables)
    assert {"application_start", "no_application_end"} == set(problems(tables))
    run = row(tables, "runs")
    assert run["app_id"] == "app-20261121104214-0000"  # of the environment
    assert abs(run["started_at_ms"] - START) < 10_000
    assert run["complete"] is False


def test_tasks_without_numbers_are_not_missing_ends(write: Parse) -> None:
    def change(event: Event) -> Event:
        if kind(event) in ("TaskStart", "TaskEnd"):
            for name in ("Index", "Partition ID"):
                event["Task Info"].pop(name, None)
        return event

    assert "missing_task_ends" not in problems(write(copies(change)))


def test_negative_and_absurd_measurements(write: Parse) -> None:
    def change(event: Event) -> Event:
        if kind(event) == "TaskEnd":
            event["Task Metrics"]["JVM GC Time"] = -5
            event["Task Metrics"]["Result Size"] = 10**30
        return event

    tables = write(copies(change))
    check(tables, load=True)
    assert set(rows(tables, "tasks", "gc_ms", "result_bytes")) == {(None, None)}
    assert problems(tables) == {"senseless_measurement": 70}


def test_odd_types_are_read_for_what_they_are_worth(write: Parse) -> None:
    def change(event: Event) -> Event:
        if kind(event) == "TaskEnd":
            event["Stage ID"] = str(event["Stage ID"])
            event["Task Info"]["Host"] = 17
            event["Task Metrics"]["Executor Run Time"] += 0.5
            event["Task Metrics"]["Peak Execution Memory"] = None
            event["Task Metrics"]["Disk Bytes Spilled"] = [1]
        return event

    tables = write(copies(change))
    check(tables, load=True)
    assert problems(tables) == {"odd_field": 35}
    assert set(tables["tasks"]["host"]) == {"17"}
    assert set(rows(tables, "tasks", "peak_memory_bytes", "spill_disk_bytes")) == {(None, None)}
    assert all(run % 1 == 0.5 for (run,) in rows(tables, "tasks", "run_ms"))


def test_both_parsers_agree(write: Parse) -> None:
    """Spaces after the brace take every line off the fast path."""
    fast, slow = write(copies()), write([b"{ " + line[1:] for line in LINES])
    for name, columns in fast.items():
        if name != "import_stats":
            for column, values in columns.items():
                assert values.tolist() == slow[name][column].tolist(), (name, column)


def test_lines_that_are_not_events(write: Parse) -> None:
    extra = [
        b"",
        b"   ",
        b"garbage-collection",
        b'{"Event":"SparkListenerTaskEnd","Sta',
        b"[]",
        b'{"a":1}',
        b"\0" * 50,
        b'"x"',
        b"\xff\xfe",
    ]
    tables = write([*LINES[:50], *extra, *LINES[50:]])
    check(tables)
    assert problems(tables) == {"damaged_line": 4, "not_an_event": 3}
    assert row(tables, "import_stats", name="damaged_line")["first_where"] == "line 53"
    assert len(tables["tasks"]["task_id"]) == 35


def test_json_that_only_python_parses(write: Parse) -> None:
    lines = [
        b'{"Event":"SparkListenerJobStart","Job ID":99,"Submission Time":NaN,"Stage IDs":[1e999,5]}',
        b'{"Event":"SparkListenerApplicationStart","App Name":"\\ud800","Timestamp":1795257733277}',
        b'{"Event":"SparkListenerExecutorAdded","Executor ID":"\xff\xfe","Timestamp":123456789012345678901234567890}',
    ]
    tables = write([*lines, *LINES])
    check(tables, load=True)
    assert row(tables, "jobs", job_id=99)["stage_ids"] == [5]
    assert row(tables, "runs")["name"] == "?"


def test_unknown_events_are_counted_by_name_and_bounded(write: Parse) -> None:
    unknown = [{"Event": f"com.vendor.Event{number}", "x": 1} for number in range(3000)]
    known = [{"Event": "SparkListenerBlockManagerRemoved"}, {"Event": "org.apache.spark.sql.streaming.Any$Progress"}]
    tables = write([*copies(), *unknown, *known])
    check(tables)
    assert problems(tables) == {"unknown_event": 3000}
    assert len(row(tables, "import_stats", name="unknown_event")["meaning"]) < 1000


def nested(depth: int) -> bytes:
    node = b'{"nodeName":"Union","simpleString":"Union","metrics":[],"children":['
    return node * depth + b"]}" * depth


@pytest.mark.parametrize("depth", [300, 10_000])
def test_deep_plans(write: Parse, depth: int) -> None:
    start = b'{"Event":"org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart","executionId":77,'
    start += b'"description":"deep \\"one\\"","details":"","physicalPlanDescription":"","sparkPlanInfo":'
    tables = write([*LINES[:-1], start + nested(depth) + b',"time":1795257760000}', LINES[-1]])
    check(tables)
    query = row(tables, "sql_executions", sql_id=77)
    assert (query["name"], query["start_ms"]) == ('deep "one"', 1_795_257_760_000 - START)
    plan = [node for sql_id, node in rows(tables, "operators", "sql_id", "node_id") if sql_id == 77]
    assert len(plan) == (300 if depth == 300 else 0)
    assert problems(tables) == ({} if depth == 300 else {"unreadable_plan": 1})


def test_old_spark(write: Parse) -> None:
    """Spark 1 leaves out what is zero, has no CPU times, and no ids of applications in local mode."""

    def change(event: Event) -> Event:
        if kind(event) == "LogStart":
            event["Spark Version"] = "1.5.2"
        if kind(event) == "TaskEnd":
            for field in ("Shuffle Read Metrics", "Shuffle Write Metrics", "Executor CPU Time", "Input Metrics"):
                del event["Task Metrics"][field]
        return event

    tables = write(copies(change))
    check(tables, load=True)
    found = set(rows(tables, "tasks", "shuffle_remote_bytes", "shuffle_write_bytes", "run_cpu_ms", "input_rows"))
    assert found == {(0, 0, None, 0)}


def test_nothing_to_read(tmp_path: Path, write: Parse) -> None:
    for lines in ([b""], [b'{"Event":"SparkListenerLogStart","Spark Version":"4.0.1"}'], [b"no", b"json"]):
        with refused(InputError, "log"):
            write(lines)


# Damaged logs -----------------------------------------------------------------------------------------------------

ODD = (None, 1.5, -1, 0, 10**30, 1e300, "", "x", [], {}, True, [[]], {"a": {}}, "\ud800")


def mutated(rng: random.Random) -> bytes:
    """The log with one kind of damage: cut, bytes flipped, fields deleted or retyped, events dropped or moved."""
    lines = list(LINES)
    how = rng.choice(("cut", "flip", "delete", "retype", "drop", "move"))
    if how == "cut":
        return TEXT[: rng.randrange(len(TEXT))]
    if how == "flip":
        damaged = bytearray(TEXT)
        for _ in range(rng.randrange(1, 200)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        return bytes(damaged)
    if how == "drop":
        share = rng.random() * 0.6
        return b"\n".join(line for line in lines if rng.random() > share) + b"\n"
    if how == "move":
        for _ in range(30):
            lines.insert(rng.randrange(len(lines)), lines.pop(rng.randrange(len(lines))))
        return b"\n".join([*lines, *rng.sample(lines, 5)]) + b"\n"
    for position in rng.sample(range(len(lines)), 20):
        event = json.loads(lines[position])
        holders: list[Any] = [event]
        for holder in holders:
            holders += [
                each
                for each in (holder.values() if isinstance(holder, dict) else holder)
                if isinstance(each, dict | list) and each
            ]
        holder = rng.choice(holders)
        key = rng.choice(list(holder)) if isinstance(holder, dict) else rng.randrange(len(holder))
        if how == "delete":
            del holder[key]
        else:
            holder[key] = rng.choice(ODD)
        lines[position] = json.dumps(event, separators=(",", ":")).encode()
    return b"\n".join(lines) + b"\n"


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(20_260, 20_264))
def test_damaged_logs_give_tables_or_one_sentence(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    path, answered, sentences = tmp_path / "log", 0, list[str]()
    for case in range(50):
        path.write_bytes(mutated(rng))
        try:
            tables = parse(LogFile("log", (Part(str(path)),)))
        except InputError as error:
            sentences.append(str(error))
        else:
            check(tables, load=case % 25 == 0)
            answered += 1
    assert answered > 45
    assert not any("\n" in sentence for sentence in sentences)


@pytest.mark.skipif(not REAL.is_dir(), reason="needs the corpus of real inputs next to the repository")
@pytest.mark.later
def test_every_real_log(tmp_path: Path) -> None:
    answered, sentences = [], []
    for path in sorted(REAL.rglob("*")):
        if not path.is_file() or path.stat().st_size > 2 << 20:
            continue
        try:
            tables = parse(discover([path]).applications[0].log)
        except InputError as error:
            sentences.append(str(error))
        else:
            check(tables, load=len(answered) % 10 == 0)
            answered.append(path.name)
    assert len(answered) > 65
    assert not any("\n" in sentence for sentence in sentences)
