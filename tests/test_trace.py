"""The contract of readers: a trace of values, and what Spark's own tables become."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from crystalperf.indexes.resources import CPU, DISK, NET, Resource, known, resources
from crystalperf.indexes.schema import Table, table, tables
from crystalperf.query.frameworks.spark.raw import raw_tables
from crystalperf.query.frameworks.spark.trace import DATA_LOCALITY, bounds, scope_id, stage_key, trace
from crystalperf.query.trace.contract import Bounds, Edge, Scope, Stage, Task, Trace, Worker, of_rows
from crystalperf.query.trace.records import Columns, Problem
from crystalperf.query.trace.validate import validate
from tests.refusals import is_one_line, refused
from tests.spark_tables import DURATION_MS, START, spark_tables

RUN = {"app_id": "run-1", "framework": "toy", "started_at_ms": 5, "duration_ms": 9.0}


def listed(columns: Columns, *names: str) -> list[tuple[object, ...]]:
    """Rows of a table; what is unknown is None."""
    return list(zip(*(columns[name].tolist() for name in names), strict=True))


# Values ---------------------------------------------------------------------------------------------------------------


def test_contradictions_in_a_trace_are_named() -> None:
    assert validate(of_values()) == []
    wrong = of_rows(
        {"app_id": "run-1", "framework": "toy", "started_at_ms": 5},
        [Worker("w0", 2)],
        [Stage("op:0", 2, 0, 4)],
        [Task(0, "op:0", "w0", 4, 0), Task(0, "op:1", "w0", 0, 3), Task(1, "op:2", "w1", float("nan"), 3)],
        [Edge("op:0", "op:9", "barrier", "rows"), Edge("op:0", "op:0", "barier", "rows")],  # type: ignore[arg-type]
    )
    named = [
        ("duration_ms",),
        ("task 0", "2 times"),
        ("task 0", "op:1", "1 more"),
        ("task 1", "w1"),
        ("task 0", "4 to 0", "1 more"),
        ("op:0", "op:9"),
        ("op:0", "barier", "barrier", "pipelined", "order", "transfer"),
    ]
    for mistake, values in zip(validate(wrong), named, strict=True):
        is_one_line(mistake, *values)
    assert validate(of_rows(RUN, [], [], [])) == []


@pytest.mark.parametrize(
    ("column", "value"), [("task_functions", (("a.py", "read", 3),)), ("task_threads", ("task 0", "task 1"))]
)
def test_optional_task_columns_are_stated_for_all_or_none(column: str, value: tuple[object, ...]) -> None:
    with refused(ValueError, column, len(value), 3):
        replace(of_values(), **{column: value})  # type: ignore[arg-type]
    assert replace(of_values(), **{column: value[:1] * 3}).without_tasks().task_functions == ()  # type: ignore[arg-type]


def of_values() -> Trace:
    return of_rows(
        RUN,
        [Worker("w0", 2, host="a", memory_bytes=1 << 30), Worker("boss", None, kind="driver")],
        [Stage("op:0", 2, 0, 4, name="read"), Stage("op:1", 1, 1, 5, scope_id="step:0", priority=1)],
        [
            Task(0, "op:0", "w0", 0, 4, host="a", measured_ms={"net": 3}),
            Task(1, "op:0", "w0", 0, 3, measured_ms={"cpu": 1, "gpu": 2}),
            Task(2, "op:1", "w0", 1, 5, pipeline_wait_ms=2, remote_read_bytes=7, status="failed", reason="no luck"),
        ],
        [Edge("op:0", "op:1", "pipelined", "rows"), Edge("op:0", "op:1", "transfer", "all-reduce", "net")],
        [Scope("step:0", "step", 0, None, name="first")],
        more_resources=[Resource("gpu", "GPU", "gpu_speed", "speed")],
        problems=[Problem("odd", "info", "log", 1, None, "odd things were left out")],
    )


def test_values_become_columns() -> None:
    made = of_values()
    assert listed(made.workers, "worker_id", "kind", "slots", "host", "memory_bytes", "added_ms", "removed_ms") == [
        ("w0", "worker", 2, "a", 1 << 30, 0.0, None),
        ("boss", "driver", None, None, None, 0.0, None),
    ]
    assert listed(
        made.stages, "stage_id", "name", "scope_id", "priority", "submit_ms", "first_launch_ms", "status"
    ) == [
        ("op:0", "read", None, 0, None, 0, "succeeded"),
        ("op:1", None, "step:0", 1, None, 1, "succeeded"),
    ]
    assert listed(made.tasks, "task_id", "stage_id", "pipeline_wait_ms", "remote_read_bytes", "status", "reason") == [
        (0, "op:0", None, None, "succeeded", None),
        (1, "op:0", None, None, "succeeded", None),
        (2, "op:1", 2, 7, "failed", "no luck"),
    ]
    assert listed(made.dependencies, "source", "target", "kind", "why", "resource") == [
        ("op:0", "op:1", "pipelined", "rows", None),
        ("op:0", "op:1", "transfer", "all-reduce", "net"),
    ]
    assert listed(made.scopes, "scope_id", "kind", "end_ms", "status") == [("step:0", "step", None, "succeeded")]


def test_measured_time_is_a_lower_bound_and_waiting_upstream_is_other_time() -> None:
    made = of_values()
    assert made.names == ("cpu", "disk", "net", "gpu")
    assert made.bounds.slot_ms.tolist() == [4, 3, 4]
    assert made.bounds.floor_ms.tolist() == [[0, 0, 3, 0, 0], [1, 0, 0, 2, 0], [0, 0, 0, 0, 2]]
    assert not made.bounds.likely_ms.any()
    assert not made.bounds.outside_ms.any()


def test_run_states_the_measure_to_optimize() -> None:
    assert of_values().run == {**RUN, "measure": "makespan", "complete": True, "properties": {}, "libraries": []}
    assert of_rows({**RUN, "measure": "latency", "complete": False}, [], [], []).run["measure"] == "latency"


def test_a_time_on_a_resource_that_the_run_does_not_have_is_refused() -> None:
    with refused(ValueError, "task 0", "gpu"):
        of_rows(RUN, [], [], [Task(0, "op:0", "w0", 0, 4, measured_ms={"gpu": 3})])


def test_an_empty_run_is_a_trace() -> None:
    made = of_rows(RUN, [], [], [])
    assert (made.workers, made.stages, made.tasks) == ({}, {}, {})
    assert made.bounds.floor_ms.shape == (0, 4)


@pytest.mark.parametrize("made", [of_values(), trace(spark_tables())], ids=["values", "spark"])
def test_a_trace_has_columns_of_the_contract_only(made: Trace) -> None:
    contract = {each.name: each for each in (*tables("run", made.names), *raw_tables())}
    handed = {**made.tables(), "stages": made.stages, "tasks": made.tasks}
    handed["runs"] = {name: np.array([None]) for name in made.run}
    for name, columns in handed.items():
        assert set(columns) <= {column.name for column in contract[name].columns}, name
        assert len({len(values) for values in columns.values()}) <= 1, name


# Spark ----------------------------------------------------------------------------------------------------------------


def stages() -> list[dict[str, object]]:
    """Stages 1 and 2 read nothing of each other, 3 reads both and ran twice; 4 was never needed."""
    ran = {"job_id": 0, "sql_id": 7, "kind": "scan", "name": "count at /home/me/job.py:3", "pool": "etl"}
    return [
        {**ran, "stage_id": 1, "attempt": 0, "parents": [], "task_count": 1, "submit_ms": 1, "status": "succeeded"},
        {**ran, "stage_id": 2, "attempt": 0, "parents": [], "task_count": 1, "job_id": 1, "status": "succeeded"},
        {**ran, "stage_id": 3, "attempt": 0, "parents": [1, 2], "task_count": 2, "status": "failed", "failure": "lost"},
        {**ran, "stage_id": 3, "attempt": 1, "parents": [1, 2], "task_count": 1, "status": "succeeded"},
        {"stage_id": 4, "attempt": 0, "parents": [], "task_count": 9, "status": "skipped"},
    ]


def test_ids_are_texts() -> None:
    assert (stage_key(3, 1), scope_id(7), scope_id(None)) == ("stage:3.1", "sql:7", None)


def test_stages_are_stages() -> None:
    made = trace(spark_tables(stages=stages()))
    assert listed(
        made.stages, "stage_id", "scope_id", "name", "call_site", "io_kinds", "pool", "task_count", "status"
    ) == [
        *(
            (
                f"stage:{name}",
                "sql:7",
                "scan: count at job.py:3",
                "count at /home/me/job.py:3",
                "scan",
                "etl",
                n,
                status,
            )
            for name, n, status in (("1.0", 1, "succeeded"), ("2.0", 1, "succeeded"), ("3.0", 2, "failed"))
        ),
        ("stage:3.1", "sql:7", "scan: count at job.py:3", "count at /home/me/job.py:3", "scan", "etl", 1, "succeeded"),
        ("stage:4.0", None, "stage 4", None, None, None, 9, "skipped"),
    ]
    assert made.stages["failure"].tolist() == [None, None, "lost", None, None]
    # The earliest job first, within it the earliest stage; what no job needs is last.
    assert made.stages["priority"].tolist() == [0, 2, 1, 1, 3]
    assert made.stages["submit_ms"].tolist() == [1.0, None, None, None, None]


def test_shuffles_are_barriers_and_attempts_follow_each_other() -> None:
    found = listed(trace(spark_tables(stages=stages())).dependencies, "source", "target", "kind", "why")
    assert sorted(found) == sorted(
        [
            *((f"stage:{parent}.0", f"stage:3.{n}", "barrier", "shuffle") for parent in (1, 2) for n in (0, 1)),
            ("stage:3.0", "stage:3.1", "order", "earlier attempt"),
            ("stage:3.1", "stage:3.0", "order", "earlier attempt"),  # the times show which was first
        ]
    )


def test_rows_of_an_earlier_job_do_not_say_what_a_job_waited_for() -> None:
    """Stage 1 had ended when job 1 was submitted, which reads its rows again; stage 2 is of job 1 itself."""
    ran = {"attempt": 0, "task_count": 1, "status": "succeeded"}
    rows = [
        {**ran, "stage_id": 1, "job_id": 0, "parents": [], "submit_ms": 1, "end_ms": 10},
        {**ran, "stage_id": 2, "job_id": 1, "parents": [], "submit_ms": 20, "end_ms": 30},
        {**ran, "stage_id": 3, "job_id": 1, "parents": [1, 2], "submit_ms": 30, "end_ms": 40},
    ]
    jobs = [{"job_id": number, "submit_ms": time, "status": "succeeded"} for number, time in ((0, 1), (1, 20))]
    found = listed(trace(spark_tables(stages=rows, jobs=jobs)).dependencies, "source", "target", "why")
    assert found == [
        ("stage:1.0", "stage:3.0", "shuffle of an earlier job"),
        ("stage:2.0", "stage:3.0", "shuffle"),
    ]


def test_queries_and_jobs_are_scopes() -> None:
    made = trace(
        spark_tables(
            sql_executions=[
                {
                    "sql_id": 7,
                    "root_sql_id": 7,
                    "name": "count",
                    "call_site": "job.py:3",
                    "start_ms": 2,
                    "end_ms": 8,
                    "status": "succeeded",
                },
                {"sql_id": 8, "root_sql_id": 7, "start_ms": 3, "end_ms": None, "status": "unfinished"},
                {"sql_id": 9, "name": "write", "start_ms": 4, "end_ms": 5, "status": "failed", "error": "no space"},
            ],
            jobs=[
                {"job_id": 0, "name": "count", "sql_id": 7, "submit_ms": 3, "end_ms": 4, "status": "succeeded"},
                {"job_id": 1, "submit_ms": 5, "status": "failed", "error": "Error: no luck"},
            ],
        )
    )
    names = ("scope_id", "kind", "parent_id", "name", "call_site", "start_ms", "end_ms", "status", "error")
    assert listed(made.scopes, *names) == [
        ("sql:7", "sql", None, "count", "job.py:3", 2, 8, "succeeded", None),
        ("sql:8", "sql", "sql:7", "query 8", None, 3, None, "unfinished", None),
        ("sql:9", "sql", None, "write", None, 4, 5, "failed", "no space"),
        ("job:0", "job", "sql:7", "count", None, 3, 4, "succeeded", None),
        ("job:1", "job", None, None, None, 5, None, "failed", "Error: no luck"),
    ]


def test_executors_are_workers_and_the_driver_coordinates() -> None:
    executors = [
        {"executor_id": "driver", "host": "a", "slots": 0, "added_ms": 0},
        {"executor_id": "1", "host": "b", "slots": 2, "cores": 4, "memory_bytes": 9, "added_ms": 3, "removed_ms": 8},
    ]
    made = trace(spark_tables(executors=executors)).workers
    assert listed(made, "worker_id", "kind", "host", "slots", "cores", "memory_bytes", "added_ms", "removed_ms") == [
        ("driver", "driver", "a", 0, None, None, 0, None),
        ("1", "worker", "b", 2, 4, 9, 3, 8),
    ]


def test_tasks_are_tasks() -> None:
    task = {
        "task_id": 5, "stage_id": 3, "stage_attempt": 1, "partition": 2, "attempt": 0, "executor_id": "1",
        "launch_ms": 0, "finish_ms": 100, "status": "succeeded", "speculative": False,
        "scheduler_delay_ms": 10, "deserialize_ms": 5, "deserialize_cpu_ms": 4, "run_ms": 80, "run_cpu_ms": 30,
        "result_serialize_ms": 2, "getting_result_ms": 3, "gc_ms": 6, "fetch_wait_ms": 20,
        "shuffle_remote_bytes": 11, "shuffle_local_bytes": 12, "shuffle_write_bytes": 13, "result_bytes": 14,
    }  # fmt: skip
    localities = [*DATA_LOCALITY, "NO_PREF", None]
    bare = [{**task, "task_id": number, "locality": each} for number, each in enumerate(localities, 10)]
    nothing = {"task_id": 6, "stage_id": 3, "stage_attempt": 0, "launch_ms": 1, "finish_ms": 2, "status": "killed"}
    made = trace(spark_tables(tasks=[task, nothing, *bare]))
    times = (
        "slot_ms",
        "own_ms",
        "own_cpu_ms",
        "total_cpu_ms",
        "gc_ms",
        "fetch_wait_ms",
        "scheduler_delay_ms",
        "starting_ms",
    )
    assert listed(made.tasks, "task_id", "stage_id", "worker_id", "partition_index", *times, "overhead_ms")[:2] == [
        (5, "stage:3.1", "1", 2, 87, 80, 36, 40, 6, 20, 10, 15, 20),
        (6, "stage:3.0", None, None, *[None] * 9),
    ]
    assert listed(made.tasks, "remote_read_bytes", "local_read_bytes", "exchange_write_bytes", "input_bytes")[0] == (
        11, 12, 13, None,
    )  # fmt: skip
    assert made.tasks["data_locality"].tolist()[2:] == ["worker", "host", "rack", "any", None, None]
    raw = made.raw["spark_tasks"]
    assert listed(raw, "task_id", "shuffle_write_ms", "result_bytes", "run_cpu_ms", "speculative")[:2] == [
        (5, None, 14, 30, False),
        (6, None, None, None, False),
    ]


TIMES = (
    *("scheduler_delay_ms", "deserialize_ms", "deserialize_cpu_ms", "run_ms", "run_cpu_ms", "result_serialize_ms"),
    *("getting_result_ms", "gc_ms", "fetch_wait_ms", "shuffle_write_ms", "result_bytes"),
)


def bounds_of(**given: float) -> Bounds:
    """Of one task of which Spark measured so much, ms, and of the rest that it took no time."""
    return bounds({name: np.array([given.get(name, 0.0)]) for name in TIMES})


@pytest.mark.parametrize(("size", "net"), [(np.nan, 50.0), (1_250_000.0, 10.0), (1e9, 50.0)])
def test_a_result_crosses_the_network_for_as_long_as_its_bytes_take(size: float, net: float) -> None:
    """The driver unpacks it in the rest: at 1 Gbit/s 1.25 MB are there after 10 ms."""
    outside = bounds_of(run_ms=90, getting_result_ms=50, result_bytes=size).outside_ms
    assert outside[0].tolist() == [0, 0, net, 50 - net]


@pytest.mark.parametrize(
    ("measured", "held", "cpu", "net"),
    [
        # The split of these tasks before there were traces: held, on the CPU, waiting for blocks.
        ({"run_ms": 90, "run_cpu_ms": 30, "fetch_wait_ms": 20, "gc_ms": 5, "scheduler_delay_ms": 10}, 90, 35, 20),
        ({"run_ms": 80, "run_cpu_ms": 70, "gc_ms": 20, "fetch_wait_ms": 9}, 80, 80, 0),  # no more than it ran
        ({"run_ms": 50, "run_cpu_ms": 30, "fetch_wait_ms": 40}, 50, 30, 20),  # of what it was off the CPU
        ({"run_ms": 10, "deserialize_ms": 5, "deserialize_cpu_ms": 9, "result_serialize_ms": 2}, 17, 7, 0),
        ({"deserialize_ms": 4, "deserialize_cpu_ms": 3}, 4, 3, 0),
    ],
)
def test_time_measured_by_spark_is_a_lower_bound(
    measured: dict[str, float], held: float, cpu: float, net: float
) -> None:
    found = bounds_of(**measured)
    assert found.slot_ms.tolist() == [held]
    floor = dict(zip((*resources(), "other"), found.floor_ms[0].tolist(), strict=True))
    assert floor == {CPU: cpu, DISK: 0, NET: net, "other": 0}


def test_blocked_writes_are_likely_and_what_is_around_a_task_is_outside() -> None:
    found = bounds_of(run_ms=90, shuffle_write_ms=25, getting_result_ms=7, result_bytes=1e9, scheduler_delay_ms=3)
    assert found.likely_ms.tolist() == [[0, 25, 0, 0]]
    assert found.outside_ms.tolist() == [[0, 0, 7, 3]]


def test_a_task_without_metrics_was_not_measured() -> None:
    found = bounds({name: np.array([np.nan]) for name in TIMES})
    assert np.isnan(found.slot_ms).all()
    assert not found.floor_ms.any()
    assert not found.outside_ms.any()


def test_operators_know_the_stages_that_updated_their_metrics() -> None:
    made = trace(
        spark_tables(
            stages=[
                {**each, "accumulators": metrics}
                for each, metrics in zip(stages(), ([1, 2], [3], None, [4], [9]), strict=True)
            ],
            operators=[
                {"sql_id": 7, "node_id": 0, "name": "Sort", "accumulators": [2, 3]},
                {
                    "sql_id": 7,
                    "node_id": 1,
                    "parent_id": 0,
                    "name": "Scan",
                    "accumulators": [1],
                    "location": "[s3://b/t]",
                },
                {"sql_id": 8, "node_id": 0, "name": "Sort", "accumulators": [4]},  # of another query
            ],
            operator_metrics=[
                {
                    "sql_id": 7,
                    "node_id": 0,
                    "stage_id": 2,
                    "stage_attempt": 0,
                    "name": "sort time",
                    "unit": "ms",
                    "value": 6,
                },
            ],
        )
    )
    assert listed(made.operators, "scope_id", "node_id", "parent_id", "name") == [
        ("sql:7", 0, None, "Sort"),
        ("sql:7", 1, 0, "Scan"),
        ("sql:8", 0, None, "Sort"),
    ]
    assert sorted(listed(made.operator_stages, "scope_id", "node_id", "stage_id")) == [
        ("sql:7", 0, "stage:1.0"),
        ("sql:7", 0, "stage:2.0"),
        ("sql:7", 1, "stage:1.0"),
    ]
    assert listed(made.operator_metrics, "scope_id", "node_id", "stage_id", "name", "unit", "value") == [
        ("sql:7", 0, "stage:2.0", "sort time", "ms", 6)
    ]
    # Tasks without metrics of a scan may have read their query's input.
    roots = listed(made.stage_inputs, "stage_id", "root")
    assert roots == [(f"stage:{each}", "s3://b") for each in ("1.0", "2.0", "3.0", "3.1")]


def test_run_agrees_with_its_log() -> None:
    run = trace(spark_tables()).run
    assert (run["app_id"], run["framework"], run["framework_version"]) == ("app-1", "spark", "4.0.1")
    assert (run["started_at_ms"], run["duration_ms"], run["measure"]) == (START, DURATION_MS, "makespan")
    assert run["complete"] is True
    assert isinstance(run["properties"], dict)


OF_LOGS = [each for each in raw_tables() if not each.name.startswith("spark_python_")]  # those come from profiles


@pytest.mark.parametrize("of_spark", OF_LOGS, ids=lambda each: each.name)
def test_sparks_own_tables_are_as_its_schema_says(of_spark: Table) -> None:
    made = trace(spark_tables(stages=stages()))
    assert set(made.raw) == {each.name for each in OF_LOGS}
    assert list(made.raw[of_spark.name]) == [column.name for column in of_spark.columns]
    assert of_spark.name.startswith("spark_")


@pytest.mark.parametrize(("mine", "every", "key"), [("tasks", "tasks", "task_id"), ("stages", "stages", "stage_id")])
def test_facts_common_to_all_runs_are_not_stored_twice(mine: str, every: str, key: str) -> None:
    (own,) = (each for each in raw_tables() if each.name == f"spark_{mine}")
    shared = {column.name for column in own.columns} & {column.name for column in table("run", every).columns}
    assert shared == {key}


def test_every_run_has_the_known_resources() -> None:
    assert trace(spark_tables()).resources == known()
