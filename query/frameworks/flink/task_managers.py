"""TaskManagers of a streaming job: their CPU time, split into what grows with the records and what does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import duckdb

from crystalperf.query.execution.stream import Stream, StreamWorker
from crystalperf.query.frameworks.flink.frames import COMPILING, FIXED, NETWORK, helper

Threads = Mapping[str, Mapping[str | None, float]]
"""By TaskManager, cores used by its threads, by their task (frames.HELPERS); None for subtasks and all others."""


def places_of(
    connection: duckdb.DuckDBPyConnection,
    interval: tuple[float, float],
    threads: Threads,
    busy_slots: float,
    *,
    at_limit: bool,
) -> tuple[StreamWorker, ...]:
    """TaskManagers, from the CPU time of their processes.

    CPU time of threads on a fixed schedule does not grow with the records.  Nor does that of compilation and of the
    JVM's own threads, unless a job is at its limit, where both last longer the slower records arrive.  If no recording
    separates threads, the time that does not grow is what exceeds `busy_slots`, the mean number of subtasks that have
    work.
    """
    by_clock = FIXED if at_limit else (*FIXED, COMPILING)
    rows = connection.execute(
        """
        SELECT worker_id, arg_max(cpu_ns, time_ms) - arg_min(cpu_ns, time_ms), max(time_ms) - min(time_ms),
            any_value(cores), any_value(stated_cores), any_value(slots), any_value(quota_cores)
        FROM flink_loads LEFT JOIN flink_task_managers USING (worker_id)
            LEFT JOIN (
                SELECT worker_id, arg_max(quota_cores, time_ms) AS quota_cores FROM loads GROUP BY worker_id
            ) USING (worker_id)
        WHERE time_ms BETWEEN ? AND ? AND cpu_ns IS NOT NULL GROUP BY worker_id ORDER BY worker_id
        """,
        list(interval),
    ).fetchall()
    found = []
    for worker, cpu_ns, lasting_ms, cores, stated, slots, quota in rows:
        most = min(float("inf") if cores is None else cores, float("inf") if quota is None else quota)
        if stated is not None and stated != slots:  # a standalone TaskManager reports as many as its slots
            most = min(most, stated)
        if lasting_ms > 0:
            used = cpu_ns / 1e6 / lasting_ms
            if (doing := threads.get(worker)) is None:
                fixed = max(used - busy_slots / len(rows), 0.0)
            else:
                fixed = sum(doing.get(each, 0.0) for each in by_clock)
                if not at_limit:  # the JVM's own threads: garbage collectors, the recorder
                    fixed += max(used - sum(doing.values()), 0.0)
            found.append(StreamWorker(worker, used, most, min(fixed, used)))
    return tuple(found)


def cores_by_thread(connection: duckdb.DuckDBPyConnection, interval: tuple[float, float]) -> Threads:
    """Cores that Java threads of each TaskManager used; TaskManagers without a recording are left out."""
    rows = connection.execute(
        """
        SELECT worker_id, thread, sum(cpu_ms * (least(end_ms, $2) - greatest(start_ms, $1)) / (end_ms - start_ms))
        FROM thread_loads WHERE end_ms > $1 AND start_ms < $2 AND end_ms > start_ms GROUP BY worker_id, thread
        """,
        list(interval),
    ).fetchall()
    found: dict[str, dict[str | None, float]] = {}
    for worker, thread, cpu_ms in rows:
        doing, does = found.setdefault(worker, {}), helper(thread)
        doing[does] = doing.get(does, 0.0) + cpu_ms / (interval[1] - interval[0])
    return found


WAKING = 0.6
"""CPU of subtasks for handling buffers, relative to that of all network threads: each buffer wakes a subtask, whose
thread then has cold caches.  From configurations of the tuning set of `ads` that differ in rate alone (kernel CPU time
of subtasks' threads over 3 000 to 24 000 records/s, extrapolated to 0): 0.6 and 0.75."""


def with_buffer_costs(stream: Stream, threads: Threads) -> Stream:
    """The stream with the CPU cost of flushed buffers: of network threads, and of the subtasks that they wake.

    The cost of the subtasks is split over stages by the flushed buffers that they read.  Network threads handle only
    what crosses the network: between subtasks of one TaskManager, buffers are passed in memory.  A stream without a
    recording of threads is returned unchanged.
    """
    every = sum(each.buffers_per_s for each in stream.hops)
    due = sum(each.due_per_s for each in stream.hops)
    if every <= 0:
        return stream
    cores = {worker: doing.get(NETWORK, 0.0) for worker, doing in threads.items()}
    woken = WAKING * sum(cores.values()) / every
    stations = []
    for each in stream.stations:
        read = sum(hop.due_per_s for hop in stream.hops if hop.target == each.id)
        stations.append(replace(each, due_buffer_share=min(woken * read / each.slots, each.busy)))
    places = tuple(_with_network(each, cores.get(each.id, 0.0), due / every) for each in stream.places)
    return replace(stream, stations=tuple(stations), places=places)


def _with_network(place: StreamWorker, cores: float, due: float) -> StreamWorker:
    """A TaskManager whose network threads used `cores`, the share `due` of them for flushed buffers."""
    records = place.cpu_cores - place.fixed_cores
    due_cores = min((1 + WAKING) * cores * due, records)
    return replace(
        place,
        due_cores=due_cores,
        crossing_cores=min(cores * (1 - due), records - due_cores),
        crossing_due_cores=min(cores * due, due_cores),
    )
