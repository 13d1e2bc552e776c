"""A streaming job as a flow: stations, hops between them, and their TaskManagers.

The samples of a subtask say on which resources its busy time was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import duckdb
import numpy as np

from crystalperf.query import sql
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.stream import Flow, Station
from crystalperf.query.frameworks.flink.advise import LOOP
from crystalperf.query.frameworks.flink.held import held_ms
from crystalperf.query.frameworks.flink.hops import edges_of, hops_of, ordered
from crystalperf.query.frameworks.flink.steady import steady_stretch, what_subtasks_did
from crystalperf.query.frameworks.flink.task_managers import awake, cores_by_thread, places_of
from crystalperf.query.frameworks.flink.timeout import due, in_bursts, stated_timeout_ms
from crystalperf.query.streaming.backlog import settled
from crystalperf.query.trace.records import Floats
from crystalperf.query.trace.sample_kinds import ON_CPU


def flow(connection: duckdb.DuckDBPyConnection, execution: Execution) -> Flow | None:
    """The flow of a run; None without collected metrics, or if no interval was steady."""
    if execution.measure != "latency" or any(each.name.startswith(LOOP) for each in execution.dag.groups):
        return None
    stretch = steady_stretch(connection, execution.scope.start_ms, execution.scope.end_ms)
    if stretch is None:
        return None
    found = what_subtasks_did(connection, *stretch)
    groups = [each.group_id for each in execution.dag.groups]
    edges = edges_of(connection)
    if not found or any(group not in found for group in groups):
        return None
    reads = {target for _, target, _ in edges}
    keyed = {target for _, target, why in edges if "HASH" in why.upper()}
    order = ordered(groups, [(source, target) for source, target, _ in edges])
    names = {each.group_id: each.name for each in execution.dag.groups}
    shares, resting = _shares(execution), _resting(connection)
    held = held_ms(connection, stretch, {group: len(found[group]) for group in groups}, names)
    plain = (
        _station(group, names[group], found[group], shares.get(group), group not in reads, group in keyed, execution)
        for group in order
    )
    stations = tuple(
        replace(each, held_ms=held.get(each.id, 0.0), resting=min(resting.get(each.id, 0.0), float(each.shares[-1])))
        for each in plain
    )
    whole = settled(Flow(stations, hops_of(edges, found), (), *stretch, _markers(connection, *stretch)))
    stated_ms = stated_timeout_ms(connection)
    bursts = in_bursts(connection, [(source, target) for source, target, _ in edges])
    whole = replace(
        whole,
        hops=tuple(due(each, stated_ms, at_limit=whole.at_limit, bursts=each.source in bursts) for each in whole.hops),
    )
    busy_lanes = sum(each.busy * each.lanes for each in stations)
    threads = cores_by_thread(connection, stretch)
    places = places_of(connection, stretch, threads, busy_lanes, at_limit=whole.at_limit)
    return awake(replace(whole, places=places), threads)


def _busy(each: Mapping[str, float], summed: str, mean: str) -> float:
    """A share of time: from sums, or from Flink's own means if it has no sums."""
    ms_per_s = each[summed] if np.isfinite(each[summed]) else each[mean]
    return float(np.clip(ms_per_s / 1e3, 0.0, 1.0)) if np.isfinite(ms_per_s) else 0.0


def _station(
    group: str,
    name: str,
    subtasks: list[dict[str, float]],
    shares: Floats | None,
    is_source: bool,
    keyed: bool,
    execution: Execution,
) -> Station:
    busy = [_busy(each, "busy_ms", "busy_per_s") for each in subtasks]
    unknown = np.zeros(len(execution.names) + 1)
    unknown[-1] = 1.0
    return Station(
        id=group,
        name=name,
        lanes=len(subtasks),
        records_per_s=float(np.nansum([each["records_out" if is_source else "records_in"] for each in subtasks])),
        busy=float(np.mean(busy)),
        busiest=max(busy),
        blocked=float(np.mean([_busy(each, "backpressured_ms", "backpressured_per_s") for each in subtasks])),
        shares=unknown if shares is None else shares,
        is_source=is_source,
        keyed=keyed,
    )


def _shares(execution: Execution) -> dict[str, Floats]:
    """By group, the resources of its units' own time; unknown without samples."""
    found = {}
    units = execution.units
    for number, group in enumerate(execution.dag.groups):
        mine = units.group == number
        parts = units.parts_ms[mine].sum(axis=0)
        parts[-1] = max(parts[-1] - units.upstream_ms[mine].sum() - execution.volumes.overhead_ms[mine].sum(), 0.0)
        if parts.sum() > 0:
            found[group.group_id] = parts / parts.sum()
    return found


def _resting(connection: duckdb.DuckDBPyConnection) -> dict[str, float]:
    """By group, the share of its units' own time in which their threads waited for no resource."""
    question = sql.text("resting", __package__)
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
