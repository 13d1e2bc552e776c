"""A streaming job as a `Stream`: stations, hops between them, and their TaskManagers.

The samples of a subtask say on which resources its busy time was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import duckdb
import numpy as np

from crystalperf.query import sql
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.stream import Station, Stream
from crystalperf.query.frameworks.flink.advise import LOOP
from crystalperf.query.frameworks.flink.held import external_wait_ms
from crystalperf.query.frameworks.flink.hops import edges_of, hops_of, ordered
from crystalperf.query.frameworks.flink.steady import steady_interval, subtask_rates
from crystalperf.query.frameworks.flink.task_managers import cores_by_thread, places_of, with_buffer_costs
from crystalperf.query.frameworks.flink.timeout import due, in_bursts, stated_timeout_ms
from crystalperf.query.streaming.backlog import with_full_buffers
from crystalperf.query.trace.records import Floats
from crystalperf.query.trace.sample_kinds import ON_CPU


def stream(connection: duckdb.DuckDBPyConnection, execution: Execution) -> Stream | None:
    """The stream of a run; None without collected metrics, or if no interval was steady."""
    if execution.measure != "latency" or any(each.name.startswith(LOOP) for each in execution.dag.stages):
        return None
    interval = steady_interval(connection, execution.scope.start_ms, execution.scope.end_ms)
    if interval is None:
        return None
    found = subtask_rates(connection, *interval)
    stages = [each.stage_id for each in execution.dag.stages]
    edges = edges_of(connection)
    if not found or any(stage not in found for stage in stages):
        return None
    reads = {target for _, target, _ in edges}
    keyed = {target for _, target, why in edges if "HASH" in why.upper()}
    order = ordered(stages, [(source, target) for source, target, _ in edges])
    names = {each.stage_id: each.name for each in execution.dag.stages}
    shares, sleeping_share = _shares(execution), _resting(connection)
    held = external_wait_ms(connection, interval, {stage: len(found[stage]) for stage in stages}, names)
    plain = (
        _station(stage, names[stage], found[stage], shares.get(stage), stage not in reads, stage in keyed, execution)
        for stage in order
    )
    stations = tuple(
        replace(
            each,
            external_wait_ms=held.get(each.id, 0.0),
            sleeping_share=min(sleeping_share.get(each.id, 0.0), float(each.shares[-1])),
        )
        for each in plain
    )
    whole = with_full_buffers(Stream(stations, hops_of(edges, found), (), *interval, _markers(connection, *interval)))
    stated_ms = stated_timeout_ms(connection)
    bursts = in_bursts(connection, [(source, target) for source, target, _ in edges])
    whole = replace(
        whole,
        hops=tuple(due(each, stated_ms, at_limit=whole.at_limit, bursts=each.source in bursts) for each in whole.hops),
    )
    busy_slots = sum(each.busy * each.slots for each in stations)
    threads = cores_by_thread(connection, interval)
    places = places_of(connection, interval, threads, busy_slots, at_limit=whole.at_limit)
    return with_buffer_costs(replace(whole, places=places), threads)


def _busy(each: Mapping[str, float], summed: str, mean: str) -> float:
    """A share of time: from sums, or from Flink's own means if it has no sums."""
    ms_per_s = each[summed] if np.isfinite(each[summed]) else each[mean]
    return float(np.clip(ms_per_s / 1e3, 0.0, 1.0)) if np.isfinite(ms_per_s) else 0.0


def _station(
    stage: str,
    name: str,
    subtasks: list[dict[str, float]],
    shares: Floats | None,
    is_source: bool,
    keyed: bool,
    execution: Execution,
) -> Station:
    busy = [_busy(each, "busy_ms", "busy_per_s") for each in subtasks]
    records = np.nan_to_num([each["records_out" if is_source else "records_in"] for each in subtasks])
    heaviest = int(np.argmax(records))
    unknown = np.zeros(len(execution.names) + 1)
    unknown[-1] = 1.0
    return Station(
        id=stage,
        name=name,
        slots=len(subtasks),
        records_per_s=float(records.sum()),
        busy=float(np.mean(busy)),
        busiest=max(busy),
        blocked=float(np.mean([_busy(each, "backpressured_ms", "backpressured_per_s") for each in subtasks])),
        shares=unknown if shares is None else shares,
        is_source=is_source,
        keyed=keyed,
        heaviest_slot=int(subtasks[heaviest]["subtask"]),
        heaviest_share=float(records[heaviest] / records.sum()) if records.sum() > 0 else 0.0,
    )


def _shares(execution: Execution) -> dict[str, Floats]:
    """By stage, the resources of its tasks' own time; unknown without samples."""
    found = {}
    tasks = execution.tasks
    for number, stage in enumerate(execution.dag.stages):
        own = tasks.stage == number
        parts = tasks.parts_ms[own].sum(axis=0)
        parts[-1] = max(parts[-1] - tasks.pipeline_wait_ms[own].sum() - execution.volumes.overhead_ms[own].sum(), 0.0)
        if parts.sum() > 0:
            found[stage.stage_id] = parts / parts.sum()
    return found


def _resting(connection: duckdb.DuckDBPyConnection) -> dict[str, float]:
    """By stage, the share of its tasks' own time in which their threads waited for no resource."""
    question = sql.text("sleeping", __package__)
    return dict(connection.execute(question, {"ready": list(ON_CPU)}).fetchall())


def _markers(connection: duckdb.DuckDBPyConnection, start_ms: float, end_ms: float) -> float | None:
    """Latency by the markers at the last operator that they reach, ms: the mean over its subtasks and samples."""
    row = connection.execute(
        """
        WITH operators AS (
            SELECT operator_id, avg(mean_ms) AS mean_ms FROM flink_latencies
            WHERE time_ms BETWEEN ? AND ? AND mean_ms IS NOT NULL GROUP BY operator_id
        )
        SELECT max(mean_ms) FROM operators
        """,
        [start_ms, end_ms],
    ).fetchone()
    return None if row is None or row[0] is None else float(row[0])
