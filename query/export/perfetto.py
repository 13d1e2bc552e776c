"""Perfetto's trace format: tasks on the slots of their workers, stages, scopes, the driver, the critical path, loads.

A trace is a list of TracePackets (protos/perfetto/trace/trace_packet.proto of github.com/google/perfetto).  Times are
nanoseconds since the start of the run; a clock snapshot has the start in Unix time.  Names that repeat are interned.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, BinaryIO

import numpy as np

from crystalperf.query.execution.lanes import lanes
from crystalperf.query.export.source import Source, stage_label
from crystalperf.query.trace.records import Floats
from crystalperf.query.trace.wire import bytes_field, double_field, fixed64_field, number_field, text_field

NS_PER_MS = 1_000_000

# Fields of TracePacket.
_CLOCKS, _TIMESTAMP, _SEQUENCE, _EVENT, _INTERNED, _FLAGS, _DESCRIPTOR = 6, 8, 10, 11, 12, 13, 60
_CLEARED, _NEEDED = 1, 2
"""Flags of a sequence: interned names start afresh; a packet uses interned names."""
_REALTIME, _BOOTTIME = 1, 6
"""Perfetto's numbers of clocks; BOOTTIME is the default clock of packets."""

# Fields and types of TrackEvent.
_ANNOTATION, _TYPE, _NAME_IID, _TRACK, _COUNTER, _FLOW = 4, 9, 10, 11, 44, 47
_BEGIN, _END, _COUNT = 1, 2, 4

_RUN_PID = 1
_EXPLICIT = 3
"""TrackDescriptor.child_ordering: by the rank of each child."""

_BYTES_UNIT = 3

TASK_FACTS = {
    "partition_index": "partition",
    "attempt": "attempt",
    "data_locality": "data locality",
    "gc_ms": "gc_ms",
    "scheduler_delay_ms": "scheduler_delay_ms",
    "input_bytes": "input_bytes",
    "remote_read_bytes": "remote_read_bytes",
    "exchange_write_bytes": "exchange_write_bytes",
    "spill_disk_bytes": "spill_disk_bytes",
    "reason": "reason",
}
"""Columns of `tasks` that become annotations, if they have a value, and their names there."""


def write(source: Source, out: BinaryIO) -> None:
    """Write the trace of a run."""
    trace = _Trace(out)
    trace.start(source)
    flows = _flows(source)
    _write_run(trace, source, flows)
    _write_tasks(trace, source)
    _write_loads(trace, source)


class _Trace:
    """Writes packets of one sequence, and gives tracks and names their numbers."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._tracks = 0
        self._names: dict[str, int] = {}
        self._keys: dict[str, int] = {}
        self._new = b""

    def start(self, source: Source) -> None:
        """Write the clocks, and begin the sequence."""
        clocks = (_clock(_BOOTTIME, 0), _clock(_REALTIME, source.started_at_ms * NS_PER_MS))
        self._packet(bytes_field(_CLOCKS, b"".join(bytes_field(1, each) for each in clocks)) + _timestamp(0))
        self._packet(number_field(_FLAGS, _CLEARED | _NEEDED) + _timestamp(0))

    def process(self, pid: int, name: str) -> int:
        """A group of tracks, in the order in which they are made; returns its number."""
        process = number_field(1, pid) + text_field(6, name)
        return self._track(bytes_field(3, process) + number_field(11, _EXPLICIT))

    def track(self, parent: int, name: str) -> int:
        """A track of slices within a group."""
        return self._track(text_field(2, name) + number_field(5, parent) + number_field(12, self._tracks))

    def counter(self, parent: int, name: str, *, in_bytes: bool) -> int:
        """A track of values within a group."""
        unit = number_field(3, _BYTES_UNIT) if in_bytes else text_field(6, "cores")
        return self._track(
            text_field(2, name) + number_field(5, parent) + number_field(12, self._tracks) + bytes_field(8, unit)
        )

    def _track(self, body: bytes) -> int:
        self._tracks += 1
        self._packet(bytes_field(_DESCRIPTOR, number_field(1, self._tracks) + body) + _timestamp(0))
        return self._tracks

    def slice(
        self,
        track: int,
        name: str,
        start_ms: float,
        end_ms: float,
        facts: Mapping[str, Any],
        flows: Iterable[int] = (),
    ) -> None:
        """A slice; those of one track must come in order and may not overlap."""
        event = number_field(_TYPE, _BEGIN) + number_field(_TRACK, track) + number_field(_NAME_IID, self._name(name))
        event += b"".join(self._annotation(key, value) for key, value in facts.items() if value is not None)
        event += b"".join(fixed64_field(_FLOW, each) for each in flows)
        self._event(start_ms, event)
        self._event(end_ms, number_field(_TYPE, _END) + number_field(_TRACK, track))

    def value(self, track: int, at_ms: float, value: float) -> None:
        """A value of a counter."""
        self._event(at_ms, number_field(_TYPE, _COUNT) + number_field(_TRACK, track) + double_field(_COUNTER, value))

    def _event(self, at_ms: float, event: bytes) -> None:
        interned, self._new = (bytes_field(_INTERNED, self._new) if self._new else b""), b""
        self._packet(interned + bytes_field(_EVENT, event) + number_field(_FLAGS, _NEEDED) + _timestamp(at_ms))

    def _packet(self, body: bytes) -> None:
        self._out.write(bytes_field(1, body + _ON_SEQUENCE))

    def _name(self, name: str) -> int:
        return self._interned(self._names, 2, name)

    def _interned(self, known: dict[str, int], field: int, text: str) -> int:
        number = known.get(text)
        if number is None:
            number = known[text] = len(known) + 1
            self._new += bytes_field(field, number_field(1, number) + text_field(2, text))
        return number

    def _annotation(self, key: str, value: Any) -> bytes:
        body = number_field(1, self._interned(self._keys, 3, key))
        if isinstance(value, bool):
            body += number_field(2, value)
        elif isinstance(value, int):
            body += number_field(4, value)
        elif isinstance(value, float):
            body += double_field(5, value)
        else:
            body += text_field(6, str(value))
        return bytes_field(_ANNOTATION, body)


_ON_SEQUENCE = number_field(_SEQUENCE, 1)


def _clock(number: int, value_ns: int) -> bytes:
    return number_field(1, number) + number_field(2, value_ns)


def _timestamp(at_ms: float) -> bytes:
    return number_field(_TIMESTAMP, max(round(at_ms * NS_PER_MS), 0))


def _times(source: Source, times_ms: Iterable[float | None]) -> dict[str, float | None]:
    """Times by resource as annotations; zeros are left out."""
    return {f"{name}_ms": time_ms or None for name, time_ms in zip(source.resources, times_ms, strict=True)}


# The run ----------------------------------------------------------------------------------------------------------


def _write_run(trace: _Trace, source: Source, flows: Mapping[str, list[int]]) -> None:
    """The critical path, scopes, stages and the driver, in one group."""
    words = source.vocabulary
    group = trace.process(_RUN_PID, source.name)
    track = trace.track(group, "critical path")
    for item in source.critical_path():
        trace.slice(track, item.name, item.start_ms, item.end_ms, _times(source, item.resource_ms.values()))
    sums = ", ".join(f"{name}_ms" for name in source.resources)
    waits = source.connection.execute(
        f"""
        SELECT coalesce(name, node_id), start_ms, end_ms, {sums} FROM nodes
        WHERE kind = 'driver' AND end_ms > start_ms ORDER BY start_ms, end_ms, node_id
        """
    ).fetchall()
    starts, ends = (np.array([row[at] for row in waits], dtype=np.float64) for at in (1, 2))
    for (name, start, end, *parts), track in zip(waits, _laned(trace, group, words.driver, starts, ends), strict=True):
        trace.slice(track, name, start, end, _times(source, parts))
    scopes = source.connection.execute(
        "SELECT scope_id, name, kind, status, start_ms, coalesce(end_ms, ?), call_site, error FROM scopes"
        " ORDER BY start_ms, scope_id",
        [source.duration_ms],
    ).fetchall()
    starts, ends = (np.array([row[at] for row in scopes], dtype=np.float64) for at in (4, 5))
    for row, track in zip(scopes, _laned(trace, group, words.scope, starts, ends), strict=True):
        facts = {"kind": row[2], "status": row[3], "call site": row[6], "error": row[7]}
        trace.slice(track, f"{row[0]} {row[1]}" if row[1] else row[0], row[4], row[5], facts)
    stages = source.connection.execute(
        f"""
        SELECT stage_id, name, status, first_launch_ms, greatest(end_ms, first_launch_ms), task_count, scope_id,
            failure, {sums}
        FROM stages WHERE first_launch_ms IS NOT NULL AND end_ms IS NOT NULL
        ORDER BY first_launch_ms, stage_id
        """
    ).fetchall()
    starts, ends = (np.array([row[at] for row in stages], dtype=np.float64) for at in (3, 4))
    for row, track in zip(stages, _laned(trace, group, words.stage, starts, ends), strict=True):
        facts = {"status": row[2], words.tasks: row[5], "scope": row[6], "failure": row[7]}
        label = stage_label(source, row[0], row[1])
        trace.slice(track, label, row[3], row[4], facts | _times(source, row[8:]), flows.get(row[0], ()))


def _laned(trace: _Trace, group: int, name: str, starts: Floats, ends: Floats) -> list[int]:
    """The track of each interval, so that no two on a track overlap; sorted by start."""
    lane, of_lane = lanes(np.zeros(len(starts), dtype=np.int64), starts, ends)
    tracks = [trace.track(group, f"{name} {number}" if number else name) for number in range(len(of_lane))]
    return [tracks[each] for each in lane.tolist()]


def _flows(source: Source) -> dict[str, list[int]]:
    """By stage, the numbers of the dependencies that it takes part in; Perfetto draws an arrow for each."""
    found: dict[str, list[int]] = {}
    rows = source.rows(
        """
        SELECT source, target FROM dependencies
        JOIN stages AS before ON before.stage_id = source JOIN stages AS after ON after.stage_id = target
        WHERE kind <> 'order' AND before.first_launch_ms <= after.first_launch_ms
        ORDER BY before.first_launch_ms, source, target
        """
    )
    for number, ends in enumerate(rows, 1):
        for each in ends:
            found.setdefault(each, []).append(number)
    return found


# Workers ----------------------------------------------------------------------------------------------------------


def _write_tasks(trace: _Trace, source: Source) -> None:
    """Tasks, each on a slot of its worker: a group for each worker, a track for each slot."""
    order = "ORDER BY worker, launch_ms, finish_ms, task_id"
    ranked = """
        (SELECT *, dense_rank() OVER (ORDER BY length(worker_id), worker_id) - 1 AS worker FROM tasks) AS ran
    """
    times = source.connection.execute(f"SELECT worker, launch_ms, finish_ms FROM {ranked} {order}").fetchnumpy()
    launch, finish = (np.asarray(times[each], dtype=np.float64) for each in ("launch_ms", "finish_ms"))
    lane, of_lane = lanes(np.asarray(times["worker"]).astype(np.int64), launch, np.maximum(finish, launch))
    names = source.connection.execute(
        f"""
        SELECT DISTINCT worker, ran.worker_id, workers.kind, workers.host FROM {ranked}
        LEFT JOIN workers ON workers.worker_id = ran.worker_id ORDER BY worker
        """
    ).fetchall()
    tracks: list[int] = []
    slot = 0
    for at, number in enumerate(of_lane):
        if at == 0 or of_lane[at - 1] != number:
            _, worker_id, kind, host = names[number]
            title = source.worker(worker_id or "?", kind)
            group = trace.process(_RUN_PID + 1 + number, f"{title} ({host})" if host else title)
            slot = 0
        tracks.append(trace.track(group, f"{source.vocabulary.slot} {slot}"))
        slot += 1
    sums = ", ".join(f"ran.{name}_ms" for name in source.resources)
    facts = list(TASK_FACTS.values())
    rows = source.rows(
        f"""
        SELECT task_id, ran.stage_id, names.name, launch_ms, greatest(finish_ms, launch_ms), ran.status,
            {", ".join(f"ran.{each}" for each in TASK_FACTS)}, {sums}
        FROM {ranked} LEFT JOIN (SELECT stage_id, name FROM stages) AS names USING (stage_id) {order}
        """
    )
    first = 6 + len(facts)
    for row, place in zip(rows, lane.tolist(), strict=True):
        found = {"task": row[0], "status": row[5], **dict(zip(facts, row[6:first], strict=True))}
        found |= _times(source, row[first:])
        trace.slice(tracks[place], stage_label(source, row[1], row[2]), row[3], row[4], found)


_LOADS = {
    "cpu_cores": ("CPU of the process", False),
    "machine_cores": ("CPU of the machine", False),
    "received_bytes_per_s": ("bytes received per second", True),
    "sent_bytes_per_s": ("bytes sent per second", True),
}
"""Columns of `loads`: the title of the counter, and whether it counts bytes."""


def _write_loads(trace: _Trace, source: Source) -> None:
    """The CPU and network loads of workers, as counters; each worker has a group of its own."""
    found = source.connection.execute(
        "SELECT DISTINCT worker_id, kind FROM loads LEFT JOIN workers USING (worker_id) ORDER BY worker_id"
    ).fetchall()
    tracks: dict[tuple[str | None, str], int] = {}
    for number, (worker_id, kind) in enumerate(found):
        group = trace.process((1 << 30) + number, f"{source.worker(worker_id, kind)}: load")
        for column, (title, in_bytes) in _LOADS.items():
            tracks[worker_id, column] = trace.counter(group, title, in_bytes=in_bytes)
    columns = ", ".join(_LOADS)
    for worker_id, time_ms, *values in source.rows(f"SELECT worker_id, time_ms, {columns} FROM loads ORDER BY time_ms"):
        for column, value in zip(_LOADS, values, strict=True):
            if value is not None and time_ms >= 0:
                trace.value(tracks[worker_id, column], time_ms, value)
