"""A streaming job as a flow: rates, busy time and queues of the stretch in which it was steady.

Sums of counters between two looks give rates; lengths of queues are means over looks.  A subtask's samples say what its
busy time is on.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files

import duckdb
import numpy as np

from query.frameworks.flink.frames import COMPILING, FIXED, NETWORK, helper
from query.model.execution import Execution
from query.model.flow import COUNTED_OFF, Flow, Hop, Place, Station
from query.model.records import Floats

WARM_UP_MS = 15_000.0
"""Left out at the start: JVMs compile, and sources catch up."""

END_MS = 2_000.0
"""Left out at the end: sources stop one after the other."""

LEAST_LOOKS = 8

_COUNTERS = (
    "records_in", "records_out", "bytes_in_local", "bytes_in_remote", "buffers_in_local", "buffers_in_remote",
    "busy_ms", "backpressured_ms",
)  # fmt: skip
_QUEUES = ("input_buffers", "output_buffers", "busy_per_s", "backpressured_per_s")

Subtasks = dict[str, list[dict[str, float]]]
"""By group, of each subtask: counters per second, and means of queues."""

Threads = Mapping[str, Mapping[str | None, float]]
"""By TaskManager, cores of its threads by what they do (frames.HELPERS), None for those of subtasks and all others."""


def flow(connection: duckdb.DuckDBPyConnection, execution: Execution) -> Flow | None:
    """The flow of a run; None where nothing was collected of it, or no stretch was steady."""
    if execution.measure != "latency":
        return None
    stretch = _stretch(connection, execution.scope.start_ms, execution.scope.end_ms)
    if stretch is None:
        return None
    found = _subtasks(connection, *stretch)
    groups = [each.group_id for each in execution.dag.groups]
    edges = _edges(connection)
    if not found or any(group not in found for group in groups):
        return None
    reads = {target for _, target, _ in edges}
    keyed = {target for _, target, why in edges if "HASH" in why.upper()}
    order = _ordered(
        [each.group_id for each in execution.dag.groups], [(source, target) for source, target, _ in edges]
    )
    names = {each.group_id: each.name for each in execution.dag.groups}
    shares = _shares(execution)
    stations = tuple(
        _station(group, names[group], found[group], shares.get(group), group not in reads, group in keyed, execution)
        for group in order
    )
    hops = _hops(edges, found)
    whole = Flow(stations, hops, (), stretch[0], stretch[1], _markers(connection, *stretch))
    timeout_ms = _timeout_ms(connection)
    whole = replace(whole, hops=tuple(_due(each, timeout_ms, at_limit=whole.at_limit) for each in hops))
    busy_lanes = sum(each.busy * each.lanes for each in stations)
    threads = _threads(connection, stretch)
    places = _places(connection, stretch, threads, busy_lanes, at_limit=whole.at_limit)
    return _awake(replace(whole, places=places), threads)


WAKING = 0.6
"""Cores that subtasks take for buffers as such, over those that the network's threads take in all: each is woken for a
buffer, and its thread finds cold caches.  By even configurations of `ads` that differ in rate alone (the kernel's CPU
time of subtasks' threads over 3 000 to 24 000 records/s, continued to none): 0.6 and 0.75."""


def _awake(flow: Flow, threads: Threads) -> Flow:
    """The flow, with what buffers take that are due: of network threads, and of subtasks that are woken for them.

    Of the latter as much goes to each group as it reads of these buffers.  A flow without a recording of threads is
    returned as it is.
    """
    every = sum(each.buffers_per_s for each in flow.hops)
    due = sum(each.due_per_s for each in flow.hops)
    if every <= 0 or due <= 0:
        return flow
    cores = {worker: doing.get(NETWORK, 0.0) * due / every for worker, doing in threads.items()}
    woken = WAKING * sum(cores.values()) / due
    stations = []
    for each in flow.stations:
        read = sum(hop.due_per_s for hop in flow.hops if hop.target == each.id)
        stations.append(replace(each, waking=min(woken * read / each.lanes, each.busy)))
    places = [
        replace(each, due_cores=min((1 + WAKING) * cores.get(each.id, 0.0), each.cpu_cores - each.fixed_cores))
        for each in flow.places
    ]
    return replace(flow, stations=tuple(stations), places=tuple(places))


TIMEOUT_MS = 100.0
"""Flink's own timeout of buffers, where the job's settings have none."""

FEW_RECORDS = 3.0
"""In a buffer, of which their number does not tell when they are due.  Of a channel with x records within the timeout,
1 - exp(-x) of the buffers that are due have one; at three in each buffer that are 94 %."""

_DURATION = re.compile(r"\s*(-?\d+(?:\.\d+)?)\s*([a-zµ]*)\s*")

_MS = {
    "": 1.0, "ns": 1e-6, "nano": 1e-6, "nanosecond": 1e-6, "µs": 1e-3, "micro": 1e-3, "microsecond": 1e-3,
    "ms": 1.0, "milli": 1.0, "millisecond": 1.0, "s": 1e3, "sec": 1e3, "second": 1e3,
    "m": 6e4, "min": 6e4, "minute": 6e4, "h": 3.6e6, "hour": 3.6e6, "d": 8.64e7, "day": 8.64e7,
}  # fmt: skip
"""Units of time as Flink's settings have them; longer words with an s too."""


def _timeout_ms(connection: duckdb.DuckDBPyConnection) -> float | None:
    """The timeout of buffers by the settings: infinite where only full ones are sent, None where they do not say."""
    row = connection.execute(
        """
        SELECT coalesce(properties['execution.buffer-timeout.enabled'], ''),
            coalesce(properties['execution.buffer-timeout.interval'], properties['execution.buffer-timeout'], '')
        FROM runs
        """
    ).fetchone()
    if row is None:
        return None
    if row[0].strip().lower() == "false":
        return math.inf
    stated = _DURATION.fullmatch(row[1].lower())
    if stated is None:
        return None
    unit = _MS.get(stated[2], _MS.get(stated[2].removesuffix("s")))
    value = float(stated[1])
    return math.inf if value < 0 else None if unit is None else value * unit


def _due(hop: Hop, stated_ms: float | None, *, at_limit: bool) -> Hop:
    """A hop whose buffers are due as the settings say; where these say nothing, and their number does not tell it or
    agrees, as Flink has it by itself."""
    if stated_ms is not None:
        return replace(hop, most_due_ms=stated_ms)
    few = hop.records_per_buffer < FEW_RECORDS
    usual = few or at_limit or abs(hop.counted_due_ms / TIMEOUT_MS - 1) < COUNTED_OFF
    return replace(hop, most_due_ms=TIMEOUT_MS, is_due_assumed=few) if usual else hop


def _stretch(connection: duckdb.DuckDBPyConnection, start_ms: float, end_ms: float) -> tuple[float, float] | None:
    """The longest stretch without a restart and with the same subtasks, warm-up and end left out.

    None where too few looks are in it.
    """
    question = files(__package__).joinpath("looks.sql").read_text(encoding="utf-8")
    looks = connection.execute(question, {"start": start_ms, "end": end_ms}).fetchall()
    stretches: list[list[float]] = [[]]
    for time_ms, anew in looks:
        if anew:
            stretches.append([])
        stretches[-1].append(time_ms)
    longest = max(stretches, key=len)
    if not longest:
        return None
    first = min(longest[0] + WARM_UP_MS, (longest[0] + longest[-1]) / 2)
    steady = [each for each in longest if first <= each <= longest[-1] - END_MS]
    return (steady[0], steady[-1]) if len(steady) >= LEAST_LOOKS else None


def _subtasks(connection: duckdb.DuckDBPyConnection, start_ms: float, end_ms: float) -> Subtasks:
    """What subtasks that ran did per second between the first and the last look at which their counters moved."""
    columns = ", ".join((*_COUNTERS, *_QUEUES))
    rows = connection.execute(
        f"SELECT group_id, subtask, time_ms, {columns} FROM flink_series WHERE time_ms BETWEEN ? AND ? ORDER BY ALL",
        [start_ms, end_ms],
    ).fetchnumpy()
    groups, time = rows["group_id"], np.asarray(rows["time_ms"], dtype=np.float64)
    values = {
        name: np.ma.filled(np.ma.asarray(rows[name], dtype=np.float64), np.nan) for name in (*_COUNTERS, *_QUEUES)
    }
    moved = values["records_in"] + values["records_out"]
    begins = np.flatnonzero((groups[1:] != groups[:-1]) | (rows["subtask"][1:] != rows["subtask"][:-1])) + 1
    found: Subtasks = {}
    for mine in np.split(np.arange(len(time)), begins) if len(time) else ():
        if not np.isfinite(moved[mine]).any():
            continue  # it is listed and does not run, as behind a job that was scaled down
        rates = _rates(time[mine], moved[mine], {name: each[mine] for name, each in values.items()})
        found.setdefault(str(groups[mine[0]]), []).append(rates)
    return found


def _rates(time_ms: Floats, moved: Floats, values: Mapping[str, Floats]) -> dict[str, float]:
    """Counters per second, over looks at which they were new: Flink answers with the same ones for a while.

    Of `moved`, the records in and out, at least one is known.
    """
    known = np.flatnonzero(np.isfinite(moved))
    new = known[np.concatenate([[True], np.diff(moved[known]) != 0])]
    looks = new if len(new) > 1 else known
    rates = {name: _per_s(time_ms[looks], values[name][looks]) for name in _COUNTERS}
    means = {name: float(np.nanmean(values[name])) if np.isfinite(values[name]).any() else np.nan for name in _QUEUES}
    return {**rates, **means}


def _per_s(time_ms: Floats, sums: Floats) -> float:
    """How fast a sum grew between its first and its last known value; NaN where none is known."""
    known = np.flatnonzero(np.isfinite(sums))
    if not len(known):
        return math.nan
    first, last = known[0], known[-1]
    return float(sums[last] - sums[first]) / max(float(time_ms[last] - time_ms[first]) / 1e3, 1e-9)


def _busy(each: Mapping[str, float], summed: str, mean: str) -> float:
    """A share of time: from sums, or from Flink's own means where it does not sum up."""
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
    """By group, what its units' own time was on; without samples it is not known."""
    found = {}
    units = execution.units
    for number, group in enumerate(execution.dag.groups):
        mine = units.group == number
        parts = units.parts_ms[mine].sum(axis=0)
        parts[-1] = max(parts[-1] - units.upstream_ms[mine].sum() - execution.volumes.overhead_ms[mine].sum(), 0.0)
        if parts.sum() > 0:
            found[group.group_id] = parts / parts.sum()
    return found


def _edges(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, str, str]]:
    return connection.execute("SELECT source, target, why FROM dependencies ORDER BY rowid").fetchall()


def _ordered(groups: list[str], edges: list[tuple[str, str]]) -> list[str]:
    """Each behind those that it reads."""
    order: list[str] = []
    left = list(groups)
    while left:
        ready = [
            each for each in left if all(source in order or source not in left for source, to in edges if to == each)
        ]
        order += ready or left[:1]
        left = [each for each in left if each not in order]
    return order


def _hops(edges: list[tuple[str, str, str]], found: Subtasks) -> tuple[Hop, ...]:
    """What goes between vertices; edges between the same two, as of a self-join, are one hop."""
    whys: dict[tuple[str, str], list[str]] = {}
    for source, target, why in edges:
        whys.setdefault((source, target), []).append(why.upper())
    lanes = {group: len(subtasks) for group, subtasks in found.items()}
    channels = {
        (source, target): sum(_channels(why, lanes[source], lanes[target]) for why in mine)
        for (source, target), mine in whys.items()
    }
    parts = _parts(whys, found)
    hops = []
    for (source, target), mine in whys.items():
        gives, takes, part = found[source], found[target], parts[source, target]
        local, far = _summed(takes, "bytes_in_local"), _summed(takes, "bytes_in_remote")
        remote = far / (local + far) if local + far > 0 else 0.0
        # Those of channels on one machine are seen from both ends.
        out = sum(count for (one, _), count in channels.items() if one == source)
        made = _summed(gives, "output_buffers") * channels[source, target] / out
        waiting = part * _summed(takes, "input_buffers")
        hops.append(
            Hop(
                source=source,
                target=target,
                channels=channels[source, target],
                records_per_s=part * _summed(takes, "records_in"),
                bytes_per_s=part * (local + far),
                buffers_per_s=part * _summed(takes, "buffers_in_local", "buffers_in_remote"),
                remote=remote,
                queued=max(made - channels[source, target], 0.0) + max(waiting - (1 - remote) * made, 0.0),
                all_to_all=not all(why in _POINTWISE for why in mine),
            )
        )
    return tuple(hops)


_POINTWISE = ("FORWARD", "RESCALE")
"""Strategies by which a subtask gives to few of the next ones, and each subtask on the wider side has one channel."""


def _channels(why: str, gives: int, takes: int) -> int:
    return max(gives, takes) if why in _POINTWISE else gives * takes


def _summed(subtasks: list[dict[str, float]], *names: str) -> float:
    return float(np.nansum([each[name] for each in subtasks for name in names]))


def _parts(whys: Mapping[tuple[str, str], list[str]], found: Subtasks) -> dict[tuple[str, str], float]:
    """By source and target, the share of what the target takes in that comes from there.

    It is by what the sources give.  One that gives to others too, as of side outputs, has what is left by those that
    give to this target only.
    """
    readers = Counter(source for source, _ in whys)
    parts: dict[tuple[str, str], float] = {}
    for target in {target for _, target in whys}:
        into = [source for source, other in whys if other == target]
        given = {source: _summed(found[source], "records_out") for source in into}
        for source in into:
            if "BROADCAST" in whys[source, target]:
                given[source] *= len(found[target])
        several = [source for source in into if readers[source] > 1]
        alone, shared = (sum(given[source] for source in some) for some in (set(into) - set(several), several))
        if alone > 0 and shared > 0:
            left = max(_summed(found[target], "records_in") - alone, 0.0)
            given |= {source: left * given[source] / shared for source in several}
        whole = sum(given.values())
        parts |= {(source, target): given[source] / whole if whole > 0 else 1 / len(into) for source in into}
    return parts


def _places(
    connection: duckdb.DuckDBPyConnection,
    stretch: tuple[float, float],
    threads: Threads,
    busy_lanes: float,
    *,
    at_limit: bool,
) -> tuple[Place, ...]:
    """TaskManagers, by the CPU time of their processes.

    What threads use that work by the clock does not grow with the records; nor does compiling, nor what the virtual
    machine does by itself, unless a job is at its limit, where both last the longer the slower records come.  Where no
    recording tells threads apart, it is what is beyond a share of `busy_lanes`, subtasks that have work in the mean.
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
        list(stretch),
    ).fetchall()
    found = []
    for worker, cpu_ns, lasting_ms, cores, stated, slots, quota in rows:
        most = min(float("inf") if cores is None else cores, float("inf") if quota is None else quota)
        if stated is not None and stated != slots:  # a standalone TaskManager states as many as it has slots
            most = min(most, stated)
        if lasting_ms > 0:
            used = cpu_ns / 1e6 / lasting_ms
            if (doing := threads.get(worker)) is None:
                beside = max(used - busy_lanes / len(rows), 0.0)
            else:
                beside = sum(doing.get(each, 0.0) for each in by_clock)
                if not at_limit:  # the virtual machine's own threads: collectors, the recorder
                    beside += max(used - sum(doing.values()), 0.0)
            found.append(Place(worker, used, most, min(beside, used)))
    return tuple(found)


def _threads(connection: duckdb.DuckDBPyConnection, stretch: tuple[float, float]) -> Threads:
    """What threads of Java used of a TaskManager's CPU; TaskManagers without a recording are left out."""
    rows = connection.execute(
        """
        SELECT worker_id, thread, sum(cpu_ms * (least(end_ms, $2) - greatest(start_ms, $1)) / (end_ms - start_ms))
        FROM thread_loads WHERE end_ms > $1 AND start_ms < $2 AND end_ms > start_ms GROUP BY worker_id, thread
        """,
        list(stretch),
    ).fetchall()
    found: dict[str, dict[str | None, float]] = {}
    for worker, thread, cpu_ms in rows:
        doing, does = found.setdefault(worker, {}), helper(thread)
        doing[does] = doing.get(does, 0.0) + cpu_ms / (stretch[1] - stretch[0])
    return found


def _markers(connection: duckdb.DuckDBPyConnection, start_ms: float, end_ms: float) -> float | None:
    """What latency markers say of the operator that they reach last, ms: the mean over its subtasks and the looks."""
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
