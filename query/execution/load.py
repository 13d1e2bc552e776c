"""Reading a scope of a run file into arrays."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import duckdb
import numpy as np

from crystalperf.indexes.errors import Remedy, SettingError
from crystalperf.indexes.resources import CPU, Resource, with_other
from crystalperf.query import sql
from crystalperf.query.attribution.locality import (
    CACHE_ROOT,
    PROCESS_LOCAL,
    REMOTE_LOCALITIES,
    REPLICATED,
    far_stages,
    kept_stages,
    reaches,
)
from crystalperf.query.execution import dag
from crystalperf.query.execution.clock import Clock, without_pauses
from crystalperf.query.execution.cpu_limits import background_cores, cpu_limits, starved_ms
from crystalperf.query.execution.dag import Dependency, SlotDemand, StageRun, Tasks, Unstarted
from crystalperf.query.execution.evidence import Evidence, gathered, missing_cpu_share, sampled_sums
from crystalperf.query.execution.execution import (
    DriverTime,
    Execution,
    Lost,
    MemoryUse,
    Planner,
    PlanningFramework,
    ScopeTime,
)
from crystalperf.query.execution.log_facts import log_facts
from crystalperf.query.execution.scenario import settings_of
from crystalperf.query.execution.slots import Slots
from crystalperf.query.execution.volumes import Volumes, no_volumes
from crystalperf.query.execution.wire_bytes import wire_ratio
from crystalperf.query.execution.worker_loads import measured_loads
from crystalperf.query.inputs.reader import Reader
from crystalperf.query.inputs.registry import find
from crystalperf.query.results.words import Words
from crystalperf.query.trace.arrays import safe_divide
from crystalperf.query.trace.records import Floats, Ints, uses_of

ALL, WHOLE = "all", "whole"
"""Names of the scopes for the whole run, without and with pauses."""

FOLLOWED = 0.9
"""Minimum share of tasks of a stage that reads cached data, of those with a preferred worker, that ran where their
partitions had been before: so many are not a coincidence."""

_IDS_SHOWN = 20
_OF_TASKS = (
    *("task_id", "stage_number", "worker_number", "host_number", "launch_ms", "finish_ms", "whole_ms"),
    *("placement", "pipeline_wait_ms", "follows"),
)
"""Columns of scope_tasks.sql for Tasks, besides their time by resource."""


def load(connection: duckdb.DuckDBPyConnection, scope: str = "all", *, with_evidence: bool = True) -> Execution:
    """Read a scope from a run file; `all` leaves pauses out (query.execution.clock).

    Without evidence the result has the execution DAG and its tasks, but nothing that only predictions and findings
    need: volumes (all are 0), uncertainty of resource shares, times by operator, lost tasks, CPU limits.  Raises
    SettingError if the scope is not in the run.
    """
    scope_time = find_scope(connection, scope)
    resources = run_resources(connection)
    names = tuple(each.name for each in resources)
    run = connection.execute("SELECT scheduler, properties, framework, measure, framework_version FROM runs").fetchone()
    assert run is not None
    framework: PlanningFramework = find(run[2])
    reader, properties = framework.reader, dict(run[1] or {})
    configured = {} if framework.planner.configured is None else framework.planner.configured(properties)
    workers, hosts, slots, recorded = _slots(connection, framework.planner)
    log, clock = log_facts(connection, reader), Clock()
    if scope == ALL:
        first = float(slots.available_ms.min()) if len(slots) else None
        clock = without_pauses(connection, reader, log, scope_time.end_ms, first)
        slots = replace(slots, available_ms=clock.at(slots.available_ms), until_ms=clock.at(slots.until_ms))
    stages, tasks, volumes = _stages_and_tasks(
        connection, scope_time, clock, workers, hosts, names, with_volumes=with_evidence
    )
    words, held = framework.vocabulary, set(framework.planner.held(connection))
    execution = Execution(
        words=Words(framework.name, words, resources),
        title=framework.title,
        planner=framework.planner,
        measure=run[3],
        version=run[4],
        scope=scope_time,
        dag=dag.build(
            _with_demands(stages, held, framework.planner.demands(connection)),
            tasks,
            clock.when(scope_time.start_ms),
            clock.when(scope_time.end_ms),
            slots,
            _stated(connection),
            dag.DagRules(framework.planner.barriers, words.driver, words.stage, reader.resolution_ms),
        ),
        tasks=tasks,
        volumes=volumes,
        slots=slots,
        hosts=tuple(hosts),
        driver=_driver(connection, scope_time, clock, names),
        recorded={**dict.fromkeys(settings_of(resources)), "cpu_speed": 1.0, **recorded, **configured},
        scheduler=run[0],
        properties=properties,
        has_samples=_has(connection, "samples"),
        has_peak_memory=_has(connection, "tasks WHERE peak_memory_bytes >= 0"),
        memory_use=_memory_use(connection, framework.planner, properties),
        evidence=Evidence(np.zeros(len(names)), np.zeros(len(names)), 1.0),
        clock=clock,
        in_order=reader.in_order,
        takes_recordings=reader.frames.process is not None,
        log=log,
    )
    execution = _with_unstarted(connection, execution, held) if held else execution
    return _with_evidence(connection, execution, workers, reader) if with_evidence else execution


def _with_demands(stages: list[StageRun], held: Collection[str], demands: Mapping[str, SlotDemand]) -> list[StageRun]:
    """The stages with the slots that they need, and whether they waited for some."""
    if not held and not demands:
        return stages
    return [
        replace(each, held=each.stage_id in held, demand=demands.get(each.stage_id, each.demand)) for each in stages
    ]


def _memory_use(
    connection: duckdb.DuckDBPyConnection, planner: Planner, properties: Mapping[str, str]
) -> MemoryUse | None:
    return None if planner.memory is None else planner.memory.use(connection, properties)


def _with_unstarted(connection: duckdb.DuckDBPyConnection, execution: Execution, held: Collection[str]) -> Execution:
    """The scope with the stages, of those that waited for slots, none of whose tasks ran."""
    scope, clock = execution.scope, execution.clock
    rows = connection.execute(
        """
        SELECT coalesce(name, stage_id), submit_ms, coalesce(end_ms, $2)
        FROM stages
        WHERE list_contains($3, stage_id) AND submit_ms < $2 AND coalesce(end_ms, $2) > $1
            AND stage_id NOT IN (SELECT stage_id FROM tasks)
        """,
        [scope.start_ms, scope.end_ms, list(held)],
    ).fetchall()
    unstarted = [
        Unstarted(name, clock.when(max(start, scope.start_ms)), clock.when(min(end, scope.end_ms)))
        for name, start, end in rows
    ]
    return replace(execution, dag=dag.with_unstarted(execution.dag, unstarted))


def _with_evidence(
    connection: duckdb.DuckDBPyConnection, execution: Execution, workers: dict[str, int], reader: Reader
) -> Execution:
    """A scope with measured loads, evidence, times by operator, and lost tasks."""
    scope, tasks, volumes, slots, stages = (
        execution.scope, execution.tasks, execution.volumes, execution.slots, execution.dag.stages
    )  # fmt: skip
    if volumes.spill_memory.any():
        volumes = replace(volumes, spill_ms=_spill_ms(connection, tasks, reader.frames.spilling))
    loads = measured_loads(connection, scope, execution.clock, workers)
    wire_bytes_ratio = wire_ratio(loads, tasks, volumes)
    volumes = replace(volumes, starved_ms=starved_ms(loads, tasks.worker, tasks.launch_ms, tasks.finish_ms))
    cpu = tasks.parts_ms[:, execution.names.index(CPU)]
    cores = cpu_limits(loads, tasks.worker, volumes.total_cpu_ms, cpu, len(workers))
    per_slot = cores / np.maximum(np.bincount(slots.worker, minlength=len(cores)), 1)
    return replace(
        execution,
        volumes=volumes,
        slots=replace(slots, cpu_cores=per_slot[slots.worker]),
        background_cores=background_cores(loads),
        wire_bytes_ratio=wire_bytes_ratio,
        evidence=_evidence(connection, scope, tasks, execution.names, reader),
        operators=_operators(connection, stages, execution.names),
        **_readers(connection, stages, reader),
        lost=_lost(connection, scope, execution.clock),
        repeated=_repeated(connection, stages),
        is_first_scope=not _has(connection, f"tasks WHERE launch_ms < {scope.start_ms}"),
    )


def _repeated(connection: duckdb.DuckDBPyConnection, stages: Sequence[StageRun]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    known = dict(connection.execute(sql.text("first_runs")).fetchall())
    return np.array([known.get(each.stage_id, False) for each in stages], np.bool_)


def _evidence(
    connection: duckdb.DuckDBPyConnection, scope: ScopeTime, tasks: Tasks, names: tuple[str, ...], reader: Reader
) -> Evidence:
    bounds = scope.start_ms, scope.end_ms
    return replace(
        gathered(connection, *bounds, tasks, names, has_upstream_waits=reader.has_upstream_waits),
        missing_cpu_share=missing_cpu_share(
            connection, *bounds, reader.delegates, has_upstream_waits=reader.has_upstream_waits
        ),
    )


def _lost(connection: duckdb.DuckDBPyConnection, scope: ScopeTime, clock: Clock) -> tuple[Lost, ...]:
    """The stages of a scope with tasks whose end is missing in the log, clipped to the scope."""

    def shown(recorded_ms: float) -> float:
        return clock.when(min(max(recorded_ms, scope.start_ms), scope.end_ms))

    rows = connection.execute(sql.text("missing_ends"), [scope.start_ms, scope.end_ms]).fetchall()
    return tuple(
        Lost(stage, lost, total, shown(start), shown(end), None if last is None else shown(last), share)
        for stage, lost, total, start, end, last, share in rows
    )


def _operators(
    connection: duckdb.DuckDBPyConnection, stages: Sequence[StageRun], names: Sequence[str]
) -> dict[str, Floats]:
    """Task time by operator: (stages, resources + 1) for each name."""
    sums = ", ".join(f"sum({name}_ms)" for name in with_other(names))
    rows = connection.execute(
        f"SELECT name, stage_id, {sums} FROM operator_times WHERE node_id IS NOT NULL GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    numbers = {stage.stage_id: number for number, stage in enumerate(stages)}
    found: dict[str, Floats] = {}
    for name, stage_id, *parts_ms in rows:
        if stage_id in numbers:
            of_stages = found.setdefault(name, np.zeros((len(stages), len(names) + 1)))
            of_stages[numbers[stage_id]] += parts_ms
    return found


def _readers(connection: duckdb.DuckDBPyConnection, stages: Sequence[StageRun], reader: Reader) -> dict[str, Any]:
    """Execution.readers, .delegating and .spilling_in_helpers.

    Processes that compute for tasks spill if they hold rows and run out of their own memory; within a scope, for
    example a query, they hold none.
    """
    rows = {row[0]: row[1:] for row in connection.execute(sql.text("stage_readers")).fetchall()}
    known = {number: rows[stage.stage_id] for number, stage in enumerate(stages) if stage.stage_id in rows}
    delegating = frozenset(number for number, (what, _) in known.items() if reader.delegates(uses_of(what)))
    return {
        "readers": {number: reads for number, (_, reads) in known.items() if reads},
        "delegating": delegating,
        "spilling_in_helpers": frozenset(number for number in delegating if stages[number].scope_id is None),
    }


def run_resources(connection: duckdb.DuckDBPyConnection) -> tuple[Resource, ...]:
    """The resources of a run, in the order of a resource vector."""
    rows = connection.execute("SELECT * FROM resources").fetchall()
    names = [each[0] for each in connection.description or ()]
    facts = [dict(zip(names, row, strict=True)) for row in rows]
    return tuple(Resource(**{**each, "moves": tuple(each["moves"])}) for each in facts)


def _has(connection: duckdb.DuckDBPyConnection, rows: str) -> bool:
    """Whether there are such rows: a table, and maybe a condition."""
    if " " not in rows:
        return sql.has_rows(connection, rows)
    return connection.execute(f"SELECT 1 FROM {rows} LIMIT 1").fetchone() is not None


def find_scope(connection: duckdb.DuckDBPyConnection, text: str) -> ScopeTime:
    """The times of a scope: `all` or `whole`, the id of a scope, a stage or an interval of the driver, or START..END.

    Raises SettingError, which names the known scopes.
    """
    duration = connection.execute("SELECT duration_ms FROM runs").fetchall()[0][0]
    if text in (ALL, WHOLE):
        return ScopeTime(text, 0.0, duration)
    if match := re.fullmatch(r"(\d+(?:\.\d*)?)\.\.(\d+(?:\.\d*)?)", text):
        start, end = float(match[1]), min(float(match[2]), duration)
        if not start < end:
            raise SettingError(
                f"scope {text}: START must be before END and within the run's {duration:.0f} ms",
                Remedy("change the scope"),
            )
        return ScopeTime(text, start, end)
    known: dict[str, tuple[str, float, float]] = {
        scope_id: (kind, start, end)
        for scope_id, kind, start, end in connection.execute(
            "SELECT scope_id, kind, start_ms, coalesce(end_ms, ?) FROM scopes ORDER BY rowid", [duration]
        ).fetchall()
    }
    if text in known:
        return ScopeTime(text, *known[text][1:])
    if (part := _part_of_path(connection, text, duration)) is not None:
        return part
    kind = text.partition(":")[0]
    kinds = list(dict.fromkeys(each for each, _, _ in known.values()))
    ids = [each for each, (its, _, _) in known.items() if its == kind]
    if ids:
        listed = ", ".join(ids[:_IDS_SHOWN]) + (" …" if len(ids) > _IDS_SHOWN else "")
        raise SettingError(f"scope {text}: not in this run; it has {listed}", Remedy("change the scope"))
    expected = ", ".join([ALL, WHOLE, *(f"{each}:ID" for each in kinds)])
    raise SettingError(
        f"scope {text}: not in this run; expected {expected} or START..END (ms since application start)",
        Remedy("change the scope"),
    )


def _part_of_path(connection: duckdb.DuckDBPyConnection, text: str, duration_ms: float) -> ScopeTime | None:
    """The time of a stage (`stage:4.0`) or of the driver (`driver:0`) by the ids in answers; None for another text."""
    if text.startswith("driver:"):
        whole = load(connection, ALL, with_evidence=False)
        if (node := whole.dag.nodes.get(text)) is None:
            return None
        spans = whole.clock.recorded(node.start_ms, node.end_ms)
        return ScopeTime(text, spans[0][0], spans[-1][1]) if spans and spans[0][0] < spans[-1][1] else None
    row = connection.execute(
        "SELECT submit_ms, coalesce(end_ms, ?) FROM stages WHERE stage_id = ? AND submit_ms IS NOT NULL",
        [duration_ms, text],
    ).fetchone()
    return None if row is None or not row[0] < row[1] else ScopeTime(text, float(row[0]), float(row[1]))


def _slots(
    connection: duckdb.DuckDBPyConnection, planner: Planner
) -> tuple[dict[str, int], dict[str, int], Slots, dict[str, float | None]]:
    """Workers and hosts by number, slots, and the recorded resources of the run."""
    rows = connection.execute(sql.text("worker_slots")).fetchall()
    working = [row for row in rows if row[2]]
    hosts: dict[str, int] = {}
    columns: list[tuple[int, int, float, float]] = []
    for number, (_, host, slots, added, removed, _) in enumerate(working):
        where = hosts.setdefault(host, len(hosts))
        columns += [(number, where, added, np.inf if removed is None else removed)] * int(slots)
    worker, host_of, added_ms, until_ms = zip(*columns, strict=True) if columns else ((), (), (), ())
    memory = {row[5] for row in working}
    recorded: dict[str, float | None] = {
        "workers": max_concurrent((row[3], row[4]) for row in working) or None,
        "cores": _slots_of_one([int(row[2]) for row in working], planner),
        "memory": float(memory.pop()) if len(memory) == 1 and None not in memory else None,
    }
    slots_table = Slots(
        worker=np.array(worker, dtype=np.int64),
        host=np.array(host_of, dtype=np.int64),
        available_ms=np.array(added_ms, dtype=np.float64),
        until_ms=np.array(until_ms, dtype=np.float64),
        cpu_cores=np.full(len(worker), np.inf),
    )
    return {row[0]: number for number, row in enumerate(working)}, hosts, slots_table, recorded


def _slots_of_one(sizes: Sequence[int], planner: Planner) -> float | None:
    """Slots of a worker; None without any.  If they differ by configuration, the mean: its ratios are those of all
    slots."""
    if not any(sizes):
        return None
    return sum(sizes) / len(sizes) if planner.sizes_workers else max(sizes)


def max_concurrent(intervals: Iterable[tuple[float, float | None]]) -> int:
    """The maximum number of workers at a time, by when each was added and removed; None for one that stayed.

    A worker that is added when another is removed replaces it.
    """
    known = list(intervals)
    moments = sorted([(added, 1) for added, _ in known] + [(gone, -1) for _, gone in known if gone is not None])
    count = most = 0
    for _, change in moments:
        count += change
        most = max(most, count)
    return most


def _stages_and_tasks(
    connection: duckdb.DuckDBPyConnection,
    scope: ScopeTime,
    clock: Clock,
    workers: dict[str, int],
    hosts: dict[str, int],
    names: tuple[str, ...],
    *,
    with_volumes: bool,
) -> tuple[list[StageRun], Tasks, Volumes]:
    """The stages with a task in the scope, and those tasks, clipped to it; times by the clock."""
    described = {
        row[0]: row
        for row in connection.execute(
            "SELECT stage_id, coalesce(name, stage_id), scope_id, priority, submit_ms, pool FROM stages"
        ).fetchall()
    }
    ids, wanted = list(described), {"workers": list(workers), "hosts": list(hosts)}
    columns = _task_columns(connection, scope, names, {**wanted, "stages": ids}, with_volumes)
    if (columns["stage_number"] < 0).any():  # a trace need not describe every stage
        ids = [row[0] for row in connection.execute("SELECT DISTINCT stage_id FROM tasks").fetchall()]
        columns = _task_columns(connection, scope, names, {**wanted, "stages": ids}, with_volumes)
    launch = np.clip(columns["launch_ms"], scope.start_ms, scope.end_ms)
    finish = np.clip(columns["finish_ms"], scope.start_ms, scope.end_ms)
    whole = columns["whole_ms"]
    kept = safe_divide(finish - launch, whole, 1.0)
    launch, finish, start_ms = clock.at(launch), clock.at(finish), clock.when(scope.start_ms)
    # Stages are numbered in the order of their first tasks.
    used, first_task, place = np.unique(columns["stage_number"], return_index=True, return_inverse=True)
    by_first = np.argsort(first_task, kind="stable")
    number = {ids[used[each]]: position for position, each in enumerate(by_first.tolist())}
    stage_of = np.argsort(by_first, kind="stable")[place.reshape(-1)]
    first_launch, last_finish = np.full(len(number), np.inf), np.full(len(number), -np.inf)
    np.minimum.at(first_launch, stage_of, launch)
    np.maximum.at(last_finish, stage_of, finish)
    rows = [described.get(stage_id, (stage_id, stage_id, None, 0, None, None)) for stage_id in number]
    stages = [
        _stage_run(row, float(first), float(last), clock, start_ms)
        for row, first, last in zip(rows, first_launch, last_finish, strict=True)
    ]
    parts_ms = np.stack([columns.pop(f"{name}_ms") for name in with_other(names)], axis=1, dtype=np.float64)
    parts_ms *= kept[:, None]
    tasks = Tasks(
        task_id=columns["task_id"].astype(np.int64, copy=False),
        stage=stage_of,
        worker=columns["worker_number"].astype(np.int64, copy=False),
        host=columns["host_number"].astype(np.int64, copy=False),
        launch_ms=launch,
        finish_ms=finish,
        parts_ms=parts_ms,
        placement=columns["placement"].astype(np.int64, copy=False),
        pipeline_wait_ms=np.asarray(columns["pipeline_wait_ms"], dtype=np.float64) * kept,
        follows=columns["follows"].astype(np.int64, copy=False),
    )
    if not with_volumes:
        return stages, tasks, no_volumes(len(tasks))
    return stages, tasks, _volumes(connection, columns, whole, kept, number, stage_of)


def _task_columns(
    connection: duckdb.DuckDBPyConnection,
    scope: ScopeTime,
    names: tuple[str, ...],
    ids: Mapping[str, list[str]],
    with_volumes: bool,
) -> dict[str, Any]:
    """The columns of scope_tasks.sql; `ids` are those of workers, hosts and stages, in the order of their numbers."""
    parts = ", ".join(f"coalesce({name}_ms, 0) AS {name}_ms" for name in with_other(names))
    columns = "*" if with_volumes else ", ".join([*_OF_TASKS, *(f"{name}_ms" for name in with_other(names))])
    question = sql.text("scope_tasks").format(
        parts=parts,
        far=REMOTE_LOCALITIES,
        in_worker=PROCESS_LOCAL,
        kept=CACHE_ROOT,
        replicated=REPLICATED,
        most=FOLLOWED,
        columns=columns,
    )
    found: dict[str, Any] = connection.execute(
        question, {"begin": scope.start_ms, "end": scope.end_ms, **ids}
    ).fetchnumpy()
    return _by_launch(found)


def _by_launch(columns: dict[str, Any]) -> dict[str, Any]:
    """The columns with the tasks in order of launch; each is written over an earlier one, so none needs new memory."""
    order = np.lexsort((columns["task_id"], columns["launch_ms"]))
    found: dict[str, Any] = {}
    done: dict[int, Any] = {}
    for name in list(columns):
        column = columns.pop(name)
        into = done.pop(column.itemsize, None)
        into = np.empty_like(column) if into is None else into.view(column.dtype)
        found[name] = np.take(column, order, out=into, mode="clip")
        done[column.itemsize] = column
    return found


def _stage_run(row: tuple[Any, ...], first_ms: float, last_ms: float, clock: Clock, start_ms: float) -> StageRun:
    """A stage from its row; its tasks ran from `first_ms` to `last_ms`, the scope from `start_ms`, by the clock."""
    stage_id, name, scope_id, priority, submit_ms, pool = row
    return StageRun(
        stage_id=stage_id,
        name=name,
        scope_id=scope_id,
        priority=priority,
        submit_ms=None if submit_ms is None else max(min(clock.when(submit_ms), first_ms), start_ms),
        start_ms=first_ms,
        end_ms=last_ms,
        pool=pool,
    )


def _volumes(
    connection: duckdb.DuckDBPyConnection,
    columns: dict[str, Any],
    whole_ms: Floats,
    kept: Floats,
    number: dict[str, int],
    stage_of: Ints,
) -> Volumes:
    """The logged volumes of tasks, in the scope; the share `kept` of a task's duration `whole_ms` is in it, and the
    same share of its bytes counts."""

    def whole(name: str) -> Ints:
        return np.asarray(columns[f"{name}_bytes"], dtype=np.int64)

    def volume(name: str) -> Ints:
        return whole(name) if is_whole else np.rint(whole(name) * kept).astype(np.int64)

    is_whole = bool((kept == 1.0).all())

    inputs = reaches(connection)
    far = far_stages(inputs)
    reads_far = np.array([each in far for each in number], dtype=bool)[stage_of]
    by_place = np.array([far.get(each, False) for each in number], dtype=bool)[stage_of]
    keeps = kept_stages(inputs)
    is_kept = np.array([each in keeps for each in number], dtype=bool)[stage_of]
    is_kept &= (
        columns["in_worker"].astype(bool) | ~np.array([keeps.get(each, False) for each in number], dtype=bool)[stage_of]
    )
    is_far = reads_far & (columns["is_far"].astype(bool) | ~(by_place | is_kept))
    return Volumes(
        input=volume("input"),
        far=np.where(is_far, volume("input"), 0),
        cached=np.where(is_kept, volume("input"), 0),
        remote_read=volume("remote_read"),
        local_read=volume("local_read"),
        exchange_write=volume("exchange_write"),
        output=volume("output"),
        spill_memory=volume("spill_memory"),
        spill_disk=volume("spill_disk"),
        peak_memory=whole("peak_memory"),
        gc_ms=np.asarray(columns["gc_ms"], dtype=np.float64) * kept,
        total_cpu_ms=np.minimum(np.asarray(columns["total_cpu_ms"], dtype=np.float64), whole_ms) * kept,
        overhead_ms=np.asarray(columns["overhead_ms"], dtype=np.float64) * kept,
        spill_ms=np.zeros(len(kept)),
        fetch_wait_ms=np.asarray(columns["fetch_wait_ms"], dtype=np.float64) * kept,
        starved_ms=np.zeros(len(kept)),
    )


def _stated(connection: duckdb.DuckDBPyConnection) -> dict[tuple[str, str], Dependency]:
    """The dependencies between stages that the trace states."""
    rows = connection.execute("SELECT source, target, kind, why, resource FROM dependencies ORDER BY rowid").fetchall()
    return {(source, target): Dependency(kind, why, resource) for source, target, kind, why, resource in rows}


def _spill_ms(connection: duckdb.DuckDBPyConnection, tasks: Tasks, spilling: tuple[str, str] | None) -> Floats:
    """Time of each task in spilling, (tasks,) in ms, by the share of its samples; 0 without samples."""
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


def _driver(
    connection: duckdb.DuckDBPyConnection, scope: ScopeTime, clock: Clock, names: tuple[str, ...]
) -> DriverTime:
    """Samples of the driver with an attributed function, without those of waiting threads."""
    if not _has(connection, "samples"):
        return DriverTime(np.empty(0), np.empty(0), np.empty((0, len(names) + 1)))
    columns = connection.execute(
        f"""
        SELECT time_ms, any_value(weight_ms) AS weight_ms, {sampled_sums(names)}
        FROM samples JOIN stacks USING (stack_id)
        WHERE worker_id IN (SELECT worker_id FROM workers WHERE workers.kind = 'driver')
            AND task_id IS NULL AND attributed_depth IS NOT NULL
            AND NOT contains(coalesce(skipped, ''), 'wait')
            AND time_ms BETWEEN ? AND ?
        GROUP BY samples.rowid, time_ms
        ORDER BY time_ms, samples.rowid  -- several threads are sampled at a time, and their sums are reported
        """,
        [scope.start_ms, scope.end_ms],
    ).fetchnumpy()
    weight = np.asarray(columns["weight_ms"], dtype=np.float64)
    parts = np.stack([np.asarray(columns[name], dtype=np.float64) for name in with_other(names)], axis=1)
    time = np.asarray(columns["time_ms"], dtype=np.float64)
    is_counted = clock.is_active(time)
    return DriverTime(clock.at(time[is_counted]), weight[is_counted], parts[is_counted])
