"""A scope of a profiled run as arrays: what the questions compute on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import numpy as np

from indexes import resources
from indexes.errors import SettingError
from query.frameworks import get
from query.model import dag
from query.model.critical import fill
from query.model.dag import ANYWHERE, AT_HOME, ELSEWHERE, Dag, Floats, Ints, Stage, Tasks
from query.model.world import Resources
from query.samples.threadtime import ON_CPU, TIMED_KINDS
from query.whatif.interval import Evidence
from query.whatif.replay import Slots
from query.whatif.sharing import Loads, cpu_limits

SCOPES = "all, sql:ID, job:ID or START..END (ms since application start)"


@dataclass(frozen=True)
class Scope:
    """The stretch of a run that a question is about; times in ms since application start."""

    text: str
    start_ms: float
    end_ms: float


@dataclass(frozen=True)
class Volumes:
    """What the framework logged per task, aligned with the tasks; 0 where it logged nothing.  Bytes unless named ms."""

    input: Ints
    remote: Ints
    local: Ints
    shuffle_write: Ints
    output: Ints
    spill_memory: Ints
    spill_disk: Ints
    peak_memory: Ints
    gc_ms: Floats
    on_cpu_ms: Floats
    overhead_ms: Floats
    spill_ms: Floats
    """Time in which a task was seen spilling or reading back what it had spilled."""


@dataclass(frozen=True)
class DriverTime:
    """What the driver was seen doing, rows sorted by time; `parts_ms` is (rows, resources + 1)."""

    start_ms: Floats
    weight_ms: Floats
    parts_ms: Floats

    def between(self, start_ms: float, end_ms: float) -> Floats:
        """(resources + 1,) that sum to end − start; time in which it was not seen working is `other`.

        Several of its threads may work at a time: their mixture fills the wall-clock that any of them covers.
        """
        length = max(end_ms - start_ms, 0.0)
        first, last = np.searchsorted(self.start_ms, [start_ms, end_ms])
        weight, parts = self.weight_ms[first:last], self.parts_ms[first:last]
        if last == first or weight.sum() <= 0:
            return fill(np.zeros(len(resources()) + 1), length)
        begin = self.start_ms[first:last]
        end = np.minimum(begin + weight, end_ms)
        reached = np.concatenate([[start_ms], np.maximum.accumulate(end)[:-1]])
        covered = float(np.maximum(end - np.maximum(begin, reached), 0.0).sum())
        mixture = parts.sum(axis=0) / weight.sum()
        return fill(mixture * min(covered, length), length)


@dataclass(frozen=True)
class Execution:
    """Everything that happened in a scope, ready to be walked or replayed."""

    scope: Scope
    dag: Dag
    tasks: Tasks
    volumes: Volumes
    slots: Slots
    hosts: tuple[str, ...]
    driver: DriverTime
    recorded: Resources
    scheduler: str | None
    properties: Mapping[str, str]
    has_samples: bool
    tells_memory: bool
    """Whether the log has the most execution memory that each task held, if it was none."""
    evidence: Evidence

    @property
    def runtime_ms(self) -> float:
        return self.scope.end_ms - self.scope.start_ms


def load(connection: duckdb.DuckDBPyConnection, scope: str = "all") -> Execution:
    """Read a scope from a run file.  Raises SettingError where the scope is not in the run."""
    stretch = find_scope(connection, scope)
    executors, hosts, slots, recorded = _slots(connection)
    stages, tasks, volumes = _stages_and_tasks(connection, stretch, executors, hosts)
    run = connection.execute("SELECT scheduler, properties, framework FROM runs").fetchone()
    assert run is not None
    if volumes.spill_memory.any():
        volumes = replace(volumes, spill_ms=_spill_ms(connection, tasks, get(run[2]).spilling))
    cores = _cpu_limits(connection, stretch, executors, tasks, volumes)
    per_slot = cores / np.maximum(np.bincount(slots.executor, minlength=len(cores)), 1)
    slots = replace(slots, cpu_cores=per_slot[slots.executor])
    return Execution(
        scope=stretch,
        dag=dag.build(stages, tasks, stretch.start_ms, stretch.end_ms, len(slots)),
        tasks=tasks,
        volumes=volumes,
        slots=slots,
        hosts=tuple(hosts),
        driver=_driver(connection, stretch),
        recorded=recorded,
        scheduler=run[0],
        properties=dict(run[1] or {}),
        has_samples=_has(connection, "samples"),
        tells_memory=_has(connection, "tasks WHERE peak_memory_bytes >= 0"),
        evidence=_evidence(connection, stretch, tasks),
    )


def _has(connection: duckdb.DuckDBPyConnection, rows: str) -> bool:
    return connection.execute(f"SELECT 1 FROM {rows} LIMIT 1").fetchone() is not None


def find_scope(connection: duckdb.DuckDBPyConnection, text: str) -> Scope:
    """The times of a scope.  Raises SettingError naming what the run has instead."""
    duration = connection.execute("SELECT duration_ms FROM runs").fetchall()[0][0]
    if text == "all":
        return Scope(text, 0.0, duration)
    if match := re.fullmatch(r"(sql|job):(\d+)", text):
        table, column = {"sql": ("sql_executions", "sql_id"), "job": ("jobs", "job_id")}[match[1]]
        begin = "start_ms" if match[1] == "sql" else "submit_ms"
        known = {
            each: (start, end)
            for each, start, end in connection.execute(
                f"SELECT {column}, {begin}, coalesce(end_ms, {float(duration)}) FROM {table} ORDER BY {column}"
            ).fetchall()
        }
        if int(match[2]) not in known:
            ids = ", ".join(f"{match[1]}:{each}" for each in list(known)[:20]) or "none"
            raise SettingError(f"--scope {text}: not in this run; it has {ids}{' …' if len(known) > 20 else ''}")
        return Scope(text, *known[int(match[2])])
    if match := re.fullmatch(r"(\d+(?:\.\d*)?)\.\.(\d+(?:\.\d*)?)", text):
        start, end = float(match[1]), min(float(match[2]), duration)
        if not start < end:
            raise SettingError(f"--scope {text}: START must lie before END, and within the run's {duration:.0f} ms")
        return Scope(text, start, end)
    raise SettingError(f"--scope {text}: expected {SCOPES}")


def _slots(
    connection: duckdb.DuckDBPyConnection,
) -> tuple[dict[str, int], dict[str, int], Slots, Resources]:
    """Executors and hosts by number, task slots, and what the log tells of the run's resources.

    An executor that only its tasks testify to gets as many slots as it ran tasks at a time.
    """
    rows = connection.execute(
        """
        WITH moments AS (
            SELECT executor_id, launch_ms AS at_ms, 1 AS change FROM tasks
            UNION ALL SELECT executor_id, finish_ms, -1 FROM tasks
        ),
        levels AS (
            SELECT executor_id, sum(change) OVER (PARTITION BY executor_id ORDER BY at_ms, change) AS level FROM moments
        ),
        used AS (SELECT executor_id, max(level) AS slots FROM levels GROUP BY executor_id),
        seen AS (
            SELECT executor_id, any_value(host) AS host, min(launch_ms) AS first_ms FROM tasks GROUP BY executor_id
        )
        SELECT
            coalesce(executors.executor_id, seen.executor_id) AS executor_id,
            coalesce(executors.host, seen.host, '?') AS host,
            coalesce(nullif(executors.slots, 0), used.slots) AS slots,
            least(coalesce(executors.added_ms, seen.first_ms), coalesce(seen.first_ms, executors.added_ms)) AS added_ms,
            executors.removed_ms,
            executors.memory_bytes
        FROM executors FULL JOIN seen USING (executor_id) LEFT JOIN used ON used.executor_id = seen.executor_id
        ORDER BY added_ms, executor_id
        """
    ).fetchall()
    working = [row for row in rows if row[2]]
    hosts: dict[str, int] = {}
    columns: list[tuple[int, int, float, float]] = []
    for number, (_, host, slots, added, removed, _) in enumerate(working):
        where = hosts.setdefault(host, len(hosts))
        columns += [(number, where, added, np.inf if removed is None else removed)] * int(slots)
    executor, host_of, added_ms, until_ms = zip(*columns, strict=True) if columns else ((), (), (), ())
    memory = {row[5] for row in working}
    recorded = Resources(
        executors=_most_alive(working) or None,
        cores=max((int(row[2]) for row in working), default=0) or None,
        memory=float(memory.pop()) if len(memory) == 1 and None not in memory else None,
    )
    slots_table = Slots(
        executor=np.array(executor, dtype=np.int64),
        host=np.array(host_of, dtype=np.int64),
        available_ms=np.array(added_ms, dtype=np.float64),
        until_ms=np.array(until_ms, dtype=np.float64),
        cpu_cores=np.full(len(executor), np.inf),
    )
    return {row[0]: number for number, row in enumerate(working)}, hosts, slots_table, recorded


def _most_alive(rows: list[Any]) -> int:
    """The most executors alive at a time, of (id, host, slots, added, removed, …) rows."""
    moments = sorted([(row[3], 1) for row in rows] + [(row[4], -1) for row in rows if row[4] is not None])
    alive = most = 0
    for _, change in moments:
        alive += change
        most = max(most, alive)
    return most


def _stages_and_tasks(
    connection: duckdb.DuckDBPyConnection, scope: Scope, executors: dict[str, int], hosts: dict[str, int]
) -> tuple[list[Stage], Tasks, Volumes]:
    """The stages with a task in the scope, and those tasks, clipped to it."""
    bounds = [scope.start_ms, scope.end_ms]
    parts = ", ".join(f"coalesce({name}_ms, 0) AS {name}_ms" for name in (*resources(), "other"))
    columns = connection.execute(
        f"""
        SELECT
            task_id, stage_id, stage_attempt, executor_id, coalesce(host, '?') AS host, launch_ms, finish_ms, {parts},
            CASE
                WHEN locality = 'NODE_LOCAL' THEN {AT_HOME}
                -- Beside such tasks, one that ran anywhere wanted a host too; Spark calls tasks that want none
                -- PROCESS_LOCAL, like those whose data an executor holds.
                WHEN locality IN ('RACK_LOCAL', 'ANY')
                    AND bool_or(locality = 'NODE_LOCAL') OVER (PARTITION BY stage_id, stage_attempt) THEN {ELSEWHERE}
                ELSE {ANYWHERE}
            END AS placement,
            coalesce(input_bytes, 0) AS input_bytes, coalesce(shuffle_remote_bytes, 0) AS shuffle_remote_bytes,
            coalesce(shuffle_local_bytes, 0) AS shuffle_local_bytes,
            coalesce(shuffle_write_bytes, 0) AS shuffle_write_bytes, coalesce(output_bytes, 0) AS output_bytes,
            coalesce(spill_memory_bytes, 0) AS spill_memory_bytes,
            coalesce(spill_disk_bytes, 0) AS spill_disk_bytes,
            coalesce(peak_memory_bytes, 0) AS peak_memory_bytes, coalesce(gc_ms, 0) AS gc_ms,
            coalesce(run_cpu_ms, 0) + coalesce(deserialize_cpu_ms, 0) + coalesce(gc_ms, 0) AS on_cpu_ms,
            coalesce(scheduler_delay_ms, 0) + coalesce(deserialize_ms, 0) + coalesce(result_serialize_ms, 0)
                + coalesce(getting_result_ms, 0) AS overhead_ms
        FROM tasks
        WHERE finish_ms > ? AND launch_ms < ?
        ORDER BY launch_ms, task_id
        """,
        bounds,
    ).fetchnumpy()
    rows = connection.execute(
        """
        SELECT
            stage_id, attempt, job_id, sql_id,
            concat_ws(': ', nullif(kind, ''), regexp_replace(coalesce(name, 'stage ' || stage_id), ' at /.*/', ' at '))
                AS name,
            parents, submit_ms, pool
        FROM stages
        WHERE first_launch_ms IS NOT NULL
        """
    ).fetchall()
    described = {(row[0], row[1]): row for row in rows}
    keys = list(zip(columns["stage_id"].tolist(), columns["stage_attempt"].tolist(), strict=True))
    launch = np.clip(columns["launch_ms"].astype(np.float64), scope.start_ms, scope.end_ms)
    finish = np.clip(columns["finish_ms"].astype(np.float64), scope.start_ms, scope.end_ms)
    number = {key: position for position, key in enumerate(dict.fromkeys(keys))}
    stage_of = np.array([number[key] for key in keys], dtype=np.int64)
    first_launch, last_finish = np.full(len(number), np.inf), np.full(len(number), -np.inf)
    np.minimum.at(first_launch, stage_of, launch)
    np.maximum.at(last_finish, stage_of, finish)
    stages: list[Stage] = []
    for position, key in enumerate(number):
        row = described.get(key, (*key, None, None, f"stage {key[0]}", [], None, None))
        first = float(first_launch[position])
        submit = first if row[6] is None else max(min(row[6], first), scope.start_ms)
        stages.append(
            Stage(
                stage_id=key[0],
                attempt=key[1],
                job_id=row[2],
                sql_id=row[3],
                name=row[4],
                parents=tuple(row[5]),
                submit_ms=submit,
                start_ms=first,
                end_ms=float(last_finish[position]),
                pool=row[7],
            )
        )
    whole = columns["finish_ms"] - columns["launch_ms"]
    kept = np.divide(finish - launch, whole, out=np.ones_like(launch), where=whole > 0)
    table = np.stack([columns[f"{name}_ms"] for name in (*resources(), "other")], axis=1).astype(np.float64)
    tasks = Tasks(
        task_id=columns["task_id"].astype(np.int64),
        stage=stage_of,
        executor=np.array([executors.get(name, -1) for name in columns["executor_id"].tolist()], dtype=np.int64),
        host=np.array([hosts.get(name, 0) for name in columns["host"].tolist()], dtype=np.int64),
        launch_ms=launch,
        finish_ms=finish,
        parts_ms=table * kept[:, None],
        placement=columns["placement"].astype(np.int64),
    )

    def volume(name: str) -> Ints:
        return np.asarray(columns[f"{name}_bytes"]).astype(np.int64)

    volumes = Volumes(
        input=volume("input"),
        remote=volume("shuffle_remote"),
        local=volume("shuffle_local"),
        shuffle_write=volume("shuffle_write"),
        output=volume("output"),
        spill_memory=volume("spill_memory"),
        spill_disk=volume("spill_disk"),
        peak_memory=volume("peak_memory"),
        gc_ms=np.asarray(columns["gc_ms"]).astype(np.float64),
        on_cpu_ms=np.minimum(np.asarray(columns["on_cpu_ms"]).astype(np.float64), whole) * kept,
        overhead_ms=np.asarray(columns["overhead_ms"]).astype(np.float64) * kept,
        spill_ms=np.zeros(len(launch)),
    )
    return stages, tasks, volumes


def _spill_ms(connection: duckdb.DuckDBPyConnection, tasks: Tasks, spilling: tuple[str, str] | None) -> Floats:
    """Of each task's time the share of its samples that were in spilling, (tasks,); 0 without samples."""
    if spilling is None:
        return np.zeros(len(tasks))
    found = connection.execute(
        """
        WITH spilling AS (
            SELECT stack_id FROM stacks
            WHERE len([frame FOR frame IN frames IF regexp_matches(frame, $1)]) > 0
                AND len([frame FOR frame IN frames IF regexp_matches(frame, $2)]) = 0
        )
        SELECT task_id, coalesce(sum(weight_ms) FILTER (stack_id IN (FROM spilling)), 0) / sum(weight_ms) AS share
        FROM samples
        WHERE task_id IS NOT NULL AND weight_ms > 0
        GROUP BY task_id
        """,
        list(spilling),
    ).fetchnumpy()
    share = dict(zip(found["task_id"].tolist(), found["share"].tolist(), strict=True))
    spilling_ms: Floats = tasks.duration_ms * np.array([share.get(each, 0.0) for each in tasks.task_id.tolist()])
    return spilling_ms


def _cpu_limits(
    connection: duckdb.DuckDBPyConnection, scope: Scope, executors: dict[str, int], tasks: Tasks, volumes: Volumes
) -> Floats:
    """The CPU that executors can use, cores, by the loads that recordings measured of their processes in the scope.

    Outside of it they may have had more or less: a container's quota changes, neighbours come and go.
    """
    columns = connection.execute(
        """
        SELECT executor_id, cpu_cores FROM loads
        QUALIFY time_ms <= ? AND coalesce(lag(time_ms) OVER (PARTITION BY executor_id ORDER BY time_ms), 0) >= ?
        """,
        [scope.end_ms, scope.start_ms],
    ).fetchnumpy()
    loads = Loads(
        np.array([executors.get(name, -1) for name in columns["executor_id"].tolist()], dtype=np.int64),
        np.asarray(columns["cpu_cores"], dtype=np.float64),
    )
    cpu = tasks.parts_ms[:, resources().index("cpu")]
    return cpu_limits(loads, tasks.executor, volumes.on_cpu_ms, cpu, len(executors))


def _evidence(connection: duckdb.DuckDBPyConnection, scope: Scope, tasks: Tasks) -> Evidence:
    """How far samples and labels of a scope determine its resource shares.

    Samples come like a Poisson process, so a share of n of them has a variance of about n.  A label counts where no
    thread state decides: the function is of one class or another, drawn once for all of its samples.  Of such time,
    what Spark measured to be waiting for shuffle blocks rests on no label.
    """
    names = resources()
    per_function = ", ".join(
        f"sum(weight_ms * weight_ms * {share} * {share}) FILTER (NOT {is_interval()}) AS sampling_{name}, "
        f"pow(sum(weight_ms) FILTER (NOT {_computes()}), 2) * coalesce(any_value({name}) * (1 - any_value({name})), 0)"
        f" AS labels_{name}"
        for name, share in zip(names, _shares(), strict=True)
    )
    sums = ", ".join(f"coalesce(sum({kind}_{name}), 0)" for kind in ("sampling", "labels") for name in names)
    row = connection.execute(
        f"""
        WITH functions AS (
            SELECT
                sum(weight_ms) AS total_ms, sum(weight_ms) FILTER (NOT {_computes()}) AS labelled_ms,
                {per_function}
            FROM samples JOIN stacks USING (stack_id)
            WHERE task_id IS NOT NULL AND time_ms BETWEEN ? AND ?
            GROUP BY symbol
        )
        SELECT coalesce(sum(total_ms), 0), coalesce(sum(labelled_ms), 0), {sums} FROM functions
        """,
        [scope.start_ms, scope.end_ms],
    ).fetchall()[0]
    total_ms, labelled_ms, *variances = row
    waited_ms = connection.execute(
        "SELECT coalesce(sum(fetch_wait_ms), 0) FROM tasks WHERE finish_ms > ? AND launch_ms < ?",
        [scope.start_ms, scope.end_ms],
    ).fetchall()[0][0]
    busy = float(tasks.duration_ms.sum()) or 1.0
    labelled = labelled_ms / total_ms if total_ms else 0.0
    open_share = max(labelled - waited_ms / busy, 0.0) / labelled if labelled else 0.0
    deviations = np.sqrt(np.array(variances, dtype=np.float64)).reshape(2, len(names)) / (total_ms or 1.0)
    return Evidence(deviations[0], deviations[1] * open_share, float(tasks.parts_ms[:, -1].sum()) / busy)


def sampled_sums() -> str:
    """SQL: the sampled time on each resource and `other`, over rows of samples joined with stacks.

    A thread that runs code, or could, is on the CPU or waits for one, whatever device its function is made for; so is
    one in native code that only computes.  Of any other, the function says what it waits for.
    """
    undecided = f"CASE WHEN {_computes()} OR deciding_depth IS NOT NULL THEN 0 ELSE 1 END"
    columns = zip((*resources(), "other"), (*_shares(), undecided), strict=True)
    return ", ".join(f"sum(weight_ms * {share}) AS {name}" for name, share in columns)


def _computes() -> str:
    """SQL: whether the state of a sampled thread says that it is on the CPU or waits for one."""
    return f"(kind IN ({_listed(ON_CPU)}) OR (kind = 'native' AND contains(coalesce(skipped, ''), 'compute')))"


def _shares() -> list[str]:
    """SQL: the share of a sample on each resource."""
    return [f"CASE WHEN {_computes()} THEN {float(name == 'cpu')} ELSE coalesce({name}, 0) END" for name in resources()]


def is_interval() -> str:
    """SQL: whether a row of samples is an interval that a recording measured, rather than a tick of its sampler."""
    return f"kind IN ({_listed(tuple(TIMED_KINDS.values()))})"


def _listed(texts: tuple[str, ...]) -> str:
    return ", ".join(f"'{text}'" for text in texts)


def _driver(connection: duckdb.DuckDBPyConnection, scope: Scope) -> DriverTime:
    """Samples of the driver whose stack some function decides; those of threads that wait say nothing."""
    columns = connection.execute(
        f"""
        SELECT time_ms, any_value(weight_ms) AS weight_ms, {sampled_sums()}
        FROM samples JOIN stacks USING (stack_id)
        WHERE executor_id = 'driver' AND task_id IS NULL AND deciding_depth IS NOT NULL
            AND NOT contains(coalesce(skipped, ''), 'wait')
            AND time_ms BETWEEN ? AND ?
        GROUP BY samples.rowid, time_ms
        ORDER BY time_ms
        """,
        [scope.start_ms, scope.end_ms],
    ).fetchnumpy()
    weight = np.asarray(columns["weight_ms"], dtype=np.float64)
    parts = np.stack([np.asarray(columns[name], dtype=np.float64) for name in (*resources(), "other")], axis=1)
    return DriverTime(np.asarray(columns["time_ms"], dtype=np.float64), weight, parts)
