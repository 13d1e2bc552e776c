"""Spark's own tables as a trace of the core (query.trace).

Each attempt of a Spark stage is a stage of the trace, each attempt of a task a task.  Executors are workers, the driver
is the driver; SQL queries and jobs are scopes.  Task metrics become bounds:

    duration = scheduler delay + deserialise + run + serialise + fetch the result

While the task has its thread (deserialise + run + serialise), CPU time and garbage collection count as measured cpu,
and waiting for shuffle blocks as measured net.  Time blocked in writing shuffle files counts as disk unless other data
contradict it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from crystalperf.indexes.regex import regex
from crystalperf.indexes.resources import CPU, DISK, NET, resources
from crystalperf.query.attribution.locality import CACHE_ROOT
from crystalperf.query.attribution.storage import roots
from crystalperf.query.frameworks.spark.engine_cpu import with_engine_cpu
from crystalperf.query.frameworks.spark.engines import configured
from crystalperf.query.frameworks.spark.fallbacks import Known, placed
from crystalperf.query.frameworks.spark.log.collect import collect
from crystalperf.query.frameworks.spark.log.tables import tables
from crystalperf.query.frameworks.spark.raw import raw_tables
from crystalperf.query.frameworks.spark.scheduling import EARLIER_JOB, SHUFFLE
from crystalperf.query.frameworks.spark.settings import is_local
from crystalperf.query.frameworks.spark.shuffle_services import remote_service
from crystalperf.query.inputs.containers import LogFile
from crystalperf.query.trace.contract import Bounds, Trace
from crystalperf.query.trace.records import (
    Columns,
    Floats,
    Problem,
    RunTables,
    coded,
    numbers,
    objects,
    renamed,
    table,
)

DATA_LOCALITY = {"PROCESS_LOCAL": "worker", "NODE_LOCAL": "host", "RACK_LOCAL": "rack", "ANY": "any"}
"""The distance of a task's data, by Spark's locality level; NO_PREF has none."""

_FOLDER = regex(r" at /.*/")
_NOWHERE = regex(r" at (<unknown>:0|NativeMethodAccessorImpl\.java:0|RBackendHandler\.scala:\d+)$")
"""Call sites without a line of Java: calls from Python or R, which use reflection."""

_OF_CONNECT = "Spark Connect - session_id"
"""The start of the description of a query of Spark Connect, which continues with the ids of its session and request."""

ASSUMED_BPS = 125e6
"""Assumed bandwidth of results, bytes per second: 1 Gbps, because Spark's logs do not record it."""

_IN_THREAD = regex(r"^\$anonfun\$withThreadLocalCaptured\$\d+ at \S+$")
"""Where Spark (SQLExecution) computes the broadcasts or the subqueries of a query."""


def read_log(log: LogFile) -> Trace:
    """The trace of one attempt's event log.

    Raises InputError if the log cannot be read or has no event of an application.
    """
    return trace(tables(collect(log)))


def trace(found: RunTables) -> Trace:
    """The trace of the tables that log/tables.py makes."""
    stages, tasks, jobs = found["stages"], found["tasks"], found["jobs"]
    computed = with_engine_cpu(tasks, found["operators"], found["operator_metrics"])
    keys = list(zip(_listed(stages, "stage_id"), _listed(stages, "attempt"), strict=True))
    run = {name: values.tolist()[0] for name, values in found["runs"].items()}
    properties = dict(zip(run["properties"]["key"], run["properties"]["value"], strict=True))
    return Trace(
        run={**run, "properties": properties, "measure": "makespan"},
        workers=_workers(found["executors"]),
        scopes=_scopes(found["sql_executions"], jobs, found["statements"]),
        stages=_stages(stages, keys, _texts(found["sql_executions"], found["statements"])),
        tasks=_tasks(computed),
        bounds=bounds(computed, local=is_local(properties), is_remote=remote_service(properties) is not None),
        dependencies=_dependencies(stages, keys, jobs),
        operators=_operators(found["operators"]),
        operator_stages=_operator_stages(found["operators"], stages, keys),
        operator_metrics=_operator_metrics(found["operator_metrics"]),
        stage_inputs=_stage_inputs(found["operators"], stages, keys, properties.get("spark.hadoop.fs.defaultFS") or ""),
        problems=tuple(Problem(**row) for row in _rows(found["import_stats"])),
        raw={
            "spark_jobs": {name: values for name, values in jobs.items() if name not in ("error", "statement")},
            "spark_statements": _statements(found["statements"]),
            "spark_stages": _raw_stages(stages, keys),
            "spark_tasks": _raw_tasks(tasks),
            "spark_batches": found["batches"],
            "spark_stream_sources": found["stream_sources"],
            "spark_stream_states": found["stream_states"],
            "spark_driver_metrics": _driver_metrics(found["driver_metrics"]),
            "spark_settings": found["settings"],
            "spark_resource_requests": found["requests"],
            "spark_executor_metrics": _executor_metrics(found["peaks"]),
            "spark_gpu_times": _gpu_times(found["gpu_times"]),
            "spark_engine_operators": _engine_operators(found["operators"], found["fallback_reasons"], properties),
        },
    )


def stage_key(stage_id: int, attempt: int) -> str:
    """The id of a stage attempt in the trace."""
    return f"stage:{stage_id}.{attempt}"


def scope_id(sql_id: int | None) -> str | None:
    """The id of a SQL query's scope."""
    return None if sql_id is None else f"sql:{sql_id}"


# Times ------------------------------------------------------------------------------------------------------------


def bounds(tasks: Columns, *, local: bool = False, is_remote: bool = False) -> Bounds:
    """Bounds of tasks' time from Spark's measurements; `local` is whether the driver ran them itself, `is_remote`
    whether they sent shuffled data to a remote service instead of writing files.

    Fetching a result includes its transfer over the network, if any, and its deserialisation in the driver.
    """
    names = resources()
    cpu, disk, net = names.index(CPU), names.index(DISK), names.index(NET)
    run, deserialize, serialize, fetch, gc, getting, delay = (
        np.nan_to_num(_column(tasks, name))
        for name in (
            "run_ms",
            "deserialize_ms",
            "result_serialize_ms",
            "fetch_wait_ms",
            "gc_ms",
            "getting_result_ms",
            "scheduler_delay_ms",
        )
    )
    held = run + deserialize + serialize
    # CPU time is of the task's own thread; garbage collection stops that thread, so the two do not overlap.
    running = np.minimum(np.nan_to_num(_column(tasks, "run_cpu_ms")) + gc, run)
    floor, likely, outside = np.zeros((3, len(held), len(names) + 1))
    floor[:, cpu] = running + np.minimum(np.nan_to_num(_column(tasks, "deserialize_cpu_ms")), deserialize) + serialize
    floor[:, net] = np.minimum(fetch, run - running)
    likely[:, net if is_remote else disk] = np.nan_to_num(_column(tasks, "shuffle_write_ms"))
    sent = np.zeros_like(getting) if local else _column(tasks, "result_bytes") * 1000 / ASSUMED_BPS
    crossing = np.where(np.isnan(sent), getting, np.minimum(getting, sent))
    outside[:, net], outside[:, -1] = crossing, delay + getting - crossing
    return Bounds(np.where(np.isnan(_column(tasks, "run_ms")), np.nan, held), floor, likely, outside)


def _column(table: Columns, name: str) -> Floats:
    return np.ma.filled(np.ma.asarray(table[name], dtype=np.float64), np.nan)


def _known(*columns: Floats) -> Any:
    """Their sum, with unknown values as 0; unknown if all are."""
    every = np.stack(columns)
    return numbers(np.where(np.isnan(every).all(axis=0), np.nan, np.nan_to_num(every).sum(axis=0)))


# Tables -----------------------------------------------------------------------------------------------------------


def _workers(executors: Columns) -> Columns:
    renamed = {"executor_id": "worker_id", "slots": "slots"}
    found = {renamed.get(name, name): values for name, values in executors.items()}
    kinds = ["driver" if each == "driver" else "worker" for each in executors["executor_id"].tolist()]
    return {**found, "kind": objects(kinds)}


def statement_scope(number: int | None) -> str | None:
    """The id of a statement's scope."""
    return None if number is None else f"statement:{number}"


def _scopes(queries: Columns, jobs: Columns, statements: Columns) -> Columns:
    rows: list[tuple[Any, ...]] = []
    for each in _rows(statements):
        scope = statement_scope(each["number"])
        times = each["start_ms"], each["end_ms"]
        status = "failed" if each["status"] == "canceled" else each["status"]
        rows.append((scope, "statement", None, each["text"] or scope, None, *times, status, each["error"]))
    known, texts = set(_listed(statements, "number")), _texts(queries, statements)
    for each in _rows(queries):
        statement = statement_scope(each["statement"]) if each["statement"] in known else None
        parent = statement if each["root_sql_id"] in (None, each["sql_id"]) else scope_id(int(each["root_sql_id"]))
        name = _NOWHERE.sub("", each["name"] or "") or f"query {each['sql_id']}"
        if name.startswith(_OF_CONNECT):
            name = texts.get(each["sql_id"], name)
        times = each["start_ms"], each["end_ms"]
        rows.append(
            (scope_id(each["sql_id"]), "sql", parent, name, each["call_site"], *times, each["status"], each["error"])
        )
    for each in _rows(jobs):
        times = each["submit_ms"], each["end_ms"]
        statement = statement_scope(each["statement"]) if each["statement"] in known else None
        parent = scope_id(each["sql_id"]) or statement
        rows.append((f"job:{each['job_id']}", "job", parent, each["name"], None, *times, each["status"], each["error"]))
    return table("scope_id kind parent_id name call_site start_ms end_ms status error", rows, real="start_ms end_ms")


def _texts(queries: Columns, statements: Columns) -> dict[int, str]:
    """The texts of statements by the ids of their queries, as far as known."""
    texts = dict(zip(_listed(statements, "number"), _listed(statements, "text"), strict=True))
    numbers = zip(_listed(queries, "sql_id"), _listed(queries, "statement"), strict=True)
    return {sql_id: texts[number] for sql_id, number in numbers if texts.get(number)}


def _statements(statements: Columns) -> Columns:
    scopes = objects([statement_scope(each) for each in _listed(statements, "number")])
    return {"scope_id": scopes, **{name: values for name, values in statements.items() if name != "number"}}


def _stages(stages: Columns, keys: list[tuple[int, int]], texts: Mapping[int, str]) -> Columns:
    rows = list(_rows(stages))
    order = {key: rank for rank, key in enumerate(sorted({_turn(each) for each in rows}))}
    names = []
    for each in rows:
        place = _readable(each["name"] or f"stage {each['stage_id']}")
        if place.startswith(_OF_CONNECT):
            place = texts.get(each["sql_id"], "Spark Connect")
        names.append(f"{each['kind']}: {place}" if each["kind"] else place)
    return {
        "stage_id": objects([stage_key(*key) for key in keys]),
        "scope_id": objects([scope_id(each["sql_id"]) for each in rows]),
        "name": objects(names),
        "call_site": stages["name"],
        "io_kinds": stages["kind"],
        "priority": np.array([order[_turn(each)] for each in rows], dtype=np.int64),
        "pool": stages["pool"],
        "task_count": stages["task_count"],
        **{name: stages[name] for name in ("submit_ms", "first_launch_ms", "end_ms", "status", "failure")},
    }


def _readable(place: str) -> str:
    """Where in the program a stage comes from, without parts that a reader does not need."""
    if _IN_THREAD.match(place):
        return "broadcast or subquery"
    return _NOWHERE.sub("", _FOLDER.sub(" at ", place, count=1))


def _turn(stage: Mapping[str, Any]) -> tuple[float, int]:
    """A sort key of ready stages: the earliest job's first, within it the earliest."""
    return (float("inf") if stage["job_id"] is None else stage["job_id"]), stage["stage_id"]


def _dependencies(stages: Columns, keys: list[tuple[int, int]], jobs: Columns) -> Columns:
    """The stages whose shuffled rows a stage reads.  Rows that existed before its job was submitted (the parent is
    cached, or skipped) do not show what the job waited for."""
    attempts: dict[int, list[str]] = {}
    for key in keys:
        attempts.setdefault(key[0], []).append(stage_key(*key))
    submit_ms = dict(zip(_listed(jobs, "job_id"), _listed(jobs, "submit_ms"), strict=True))
    end_ms = dict(zip((stage_key(*key) for key in keys), _listed(stages, "end_ms"), strict=True))
    rows = []
    for key, job, parents in zip(keys, _listed(stages, "job_id"), _listed(stages, "parents"), strict=True):
        target, submitted = stage_key(*key), submit_ms.get(job)
        for source in (source for each in parents for source in attempts.get(each, ())):
            ended = end_ms[source]
            earlier = submitted is not None and ended is not None and ended <= submitted
            rows.append((source, target, "barrier", EARLIER_JOB if earlier else SHUFFLE))
        rows += [(each, target, "order", "earlier attempt") for each in attempts[key[0]] if each != target]
    return table("source target kind why", dict.fromkeys(rows))


def _tasks(tasks: Columns) -> Columns:
    column = {name: _column(tasks, name) for name in tasks if name.endswith("_ms")}
    starting = (column["scheduler_delay_ms"], column["deserialize_ms"])
    same = (
        *("attempt", "host", "launch_ms", "finish_ms", "status", "reason", "recomputed", "gc_ms"),
        *("input_bytes", "output_bytes", "spill_memory_bytes", "spill_disk_bytes", "peak_memory_bytes", "input_rows"),
    )
    stage, attempt = (np.asarray(tasks[name], dtype=np.int64) for name in ("stage_id", "stage_attempt"))
    attempts = int(attempt.max(initial=0)) + 1
    keys, stage_of = np.unique(stage * attempts + attempt, return_inverse=True)
    return {
        **{name: tasks[name] for name in same},
        "task_id": tasks["task_id"],
        "stage_id": coded(stage_of.reshape(-1), [stage_key(*divmod(key, attempts)) for key in keys.tolist()]),
        "partition_index": tasks["partition"],
        "worker_id": tasks["executor_id"],
        "data_locality": renamed(tasks["locality"], DATA_LOCALITY),
        "slot_ms": _known(column["run_ms"], column["deserialize_ms"], column["result_serialize_ms"]),
        "own_ms": tasks["run_ms"],
        # Without CPU time (Spark before 2.1) garbage collection alone would count as all of it.
        "own_cpu_ms": numbers(column["run_cpu_ms"] + np.nan_to_num(column["gc_ms"])),
        "total_cpu_ms": _known(column["run_cpu_ms"], column["deserialize_cpu_ms"], column["gc_ms"]),
        "fetch_wait_ms": tasks["fetch_wait_ms"],
        "scheduler_delay_ms": tasks["scheduler_delay_ms"],
        "starting_ms": _known(*starting),
        "overhead_ms": _known(*starting, column["result_serialize_ms"], column["getting_result_ms"]),
        "remote_read_bytes": tasks["shuffle_remote_bytes"],
        "local_read_bytes": tasks["shuffle_local_bytes"],
        "exchange_write_bytes": tasks["shuffle_write_bytes"],
    }


def _raw_stages(stages: Columns, keys: list[tuple[int, int]]) -> Columns:
    kept = (
        *("attempt", "job_id", "sql_id", "parents", "resource_profile", "accumulators", "location"),
        *("waited_for", "slots_there", "slots_free", "barrier", "usable_slots", "slots_per_task", "push_mergers"),
    )
    return {
        "stage_id": objects([stage_key(*key) for key in keys]),
        "spark_stage_id": stages["stage_id"],
        **{name: stages[name] for name in kept},
    }


def _raw_tasks(tasks: Columns) -> Columns:
    kept = [column.name for table in raw_tables() if table.name == "spark_tasks" for column in table.columns]
    return {"task_id": tasks["task_id"], **{name: tasks[name] for name in kept if name != "task_id"}}


# Plans ------------------------------------------------------------------------------------------------------------


def _operators(operators: Columns) -> Columns:
    same = ("node_id", "parent_id", "name", "detail", "location")
    scopes = objects([scope_id(each) for each in _listed(operators, "sql_id")])
    return {"scope_id": scopes, **{name: operators[name] for name in same}}


def _operator_stages(operators: Columns, stages: Columns, keys: list[tuple[int, int]]) -> Columns:
    """Operators and the stages of their query whose tasks updated one of their metrics.

    `Coalesce` has no metrics: it runs in the stage of the first operator below it that has some.
    """
    of_query: dict[int, list[tuple[str, frozenset[int]]]] = {}
    for key, sql_id, updated in zip(keys, _listed(stages, "sql_id"), _listed(stages, "accumulators"), strict=True):
        if sql_id is not None and updated:
            of_query.setdefault(sql_id, []).append((stage_key(*key), frozenset(updated)))
    rows = [
        (scope_id(sql_id), node_id, stage)
        for sql_id, node_id, metrics in zip(
            _listed(operators, "sql_id"), _listed(operators, "node_id"), _listed(operators, "accumulators"), strict=True
        )
        for stage, updated in of_query.get(sql_id, ())
        if not updated.isdisjoint(metrics or ())
    ]
    stages_of: dict[tuple[str | None, int], list[str]] = {}
    for scope, node_id, stage in rows:
        stages_of.setdefault((scope, node_id), []).append(stage)
    names = zip(*(_listed(operators, each) for each in ("sql_id", "node_id", "name")), strict=True)
    known = [(scope_id(sql_id), node_id, name) for sql_id, node_id, name in names]
    for place, (scope, node_id, name) in enumerate(known):
        if name == "Coalesce":
            below = ((other, node) for other, node, _ in known[place + 1 :] if other == scope)
            first = next((stages_of[each] for each in below if each in stages_of), [])
            rows += [(scope, node_id, stage) for stage in first]
    return table("scope_id node_id stage_id", rows, whole="node_id")


def _operator_metrics(metrics: Columns) -> Columns:
    ids = zip(_listed(metrics, "stage_id"), _listed(metrics, "stage_attempt"), strict=True)
    return {
        "scope_id": objects([scope_id(each) for each in _listed(metrics, "sql_id")]),
        "stage_id": objects([stage_key(*key) for key in ids]),
        **{name: metrics[name] for name in ("node_id", "name", "unit", "value")},
    }


def _driver_metrics(metrics: Columns) -> Columns:
    scopes = objects([scope_id(each) for each in _listed(metrics, "sql_id")])
    return {"scope_id": scopes, **{name: metrics[name] for name in ("node_id", "name", "unit", "value")}}


def _engine_operators(operators: Columns, reasons: Columns, properties: Mapping[str, str]) -> Columns:
    """Where the operators of plans with an engine ran."""
    engine = configured(properties)
    given: dict[int, dict[str, list[str]]] = {}
    for each in _rows(reasons):
        given.setdefault(each["sql_id"], {}).setdefault(each["name"], []).append(each["reason"])
    plans: dict[int, list[Known]] = {}
    for each in _rows(operators):
        plans.setdefault(each["sql_id"], []).append(Known(each["node_id"], each["parent_id"], each["name"]))
    rows = [
        (scope_id(sql_id), each.node_id, each.engine, each.ran_in, each.named, each.fallback, each.reason)
        for sql_id, plan in plans.items()
        for each in placed(plan, engine, given.get(sql_id, {}))
    ]
    return table("scope_id node_id engine ran_in named fallback reason", rows, whole="node_id fallback")


def _gpu_times(times: Columns) -> Columns:
    ids = zip(_listed(times, "stage_id"), _listed(times, "attempt"), strict=True)
    return {"stage_id": objects([stage_key(*key) for key in ids]), **{it: times[it] for it in ("held_ms", "waited_ms")}}


def _executor_metrics(peaks: Columns) -> Columns:
    ids = zip(_listed(peaks, "stage_id"), _listed(peaks, "attempt"), strict=True)
    return {
        "worker_id": peaks["executor_id"],
        "stage_id": objects([None if stage is None else stage_key(stage, attempt) for stage, attempt in ids]),
        **{name: values for name, values in peaks.items() if name not in ("executor_id", "stage_id", "attempt")},
    }


def _stage_inputs(operators: Columns, stages: Columns, keys: list[tuple[int, int]], default: str) -> Columns:
    """The file systems that stages read, from their plans' scans and from the RDDs that are named after a file.

    A stage that scans, but whose metrics belong to no scan in the query's last plan (it was replanned), may have read
    any input of its query.
    """
    scans: dict[int, list[tuple[str, frozenset[int]]]] = {}
    for each in _rows(operators):
        if each["location"] is not None:
            scans.setdefault(each["sql_id"], []).append((each["location"], frozenset(each["accumulators"] or ())))
    rows: list[tuple[str, str]] = []
    for key, each in zip(keys, _rows(stages), strict=True):
        locations = [] if each["location"] is None else [each["location"]]
        if each["kind"] is None or "scan" in each["kind"]:
            updated = each["accumulators"]
            read_here = scans.get(each["sql_id"], [])
            here = [location for location, metrics in read_here if not metrics.isdisjoint(updated or ())]
            if locations == [f"{CACHE_ROOT}/"]:  # its query's scans produced rows that are cached since
                locations = here or locations
            else:
                locations += here or [location for location, _ in read_here]
        found = {root for location in locations for root in roots(location, default)}
        rows += [(stage_key(*key), root) for root in sorted(found)]
    return table("stage_id root", rows)


# Columns ----------------------------------------------------------------------------------------------------------


def _listed(table: Columns, name: str) -> list[Any]:
    return table[name].tolist()  # type: ignore[no-any-return]


def _rows(table: Columns) -> Iterator[dict[str, Any]]:
    names = list(table)
    for values in zip(*(_listed(table, name) for name in names), strict=True):
        yield dict(zip(names, values, strict=True))
