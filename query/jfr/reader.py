"""Reading a recording: chunk by chunk into columns, merged into one Recording."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from . import chunk as chunks_
from . import model
from .chunk import RawChunk, Walk
from .events import Columns, decode, epoch_ns, span_ns, within
from .merge import FrameTable, StackTable, ThreadTable
from .metadata import Types, read_types
from .model import I32, I64, U8, Bool, Chunk, Intervals, JfrError, Jvm, ProblemLog, Recording, Samples, ThreadCpuLoad
from .pools import Pools, read_pools
from .source import load
from .varint import Truncated

BATCH_EVENTS = 1 << 18
HOUR_NS = 3_600_000_000_000
YEAR_NS = 8766 * HOUR_NS

SAMPLE_EVENTS = {
    "jdk.ExecutionSample": model.EXECUTION,
    "jdk.NativeMethodSample": model.NATIVE,
    "profiler.WallClockSample": model.WALL,
    "jdk.CPUTimeSample": model.CPU,
}
SAMPLE_FIELDS = {"startTime", "sampledThread", "eventThread", "stackTrace", "state", "samples", "samplingPeriod", "failed"}


@dataclass(frozen=True)
class IntervalEvent:
    """How a duration event becomes an interval: its kind, its byte count and the fields that name its object."""

    kind: int
    bytes_field: str = ""
    details: tuple[str, ...] = ()


INTERVAL_EVENTS = {
    "jdk.SocketRead": IntervalEvent(model.SOCKET_READ, "bytesRead", ("host", "address", "port")),
    "jdk.SocketWrite": IntervalEvent(model.SOCKET_WRITE, "bytesWritten", ("host", "address", "port")),
    "jdk.FileRead": IntervalEvent(model.FILE_READ, "bytesRead", ("path",)),
    "jdk.FileWrite": IntervalEvent(model.FILE_WRITE, "bytesWritten", ("path",)),
    "jdk.FileForce": IntervalEvent(model.FILE_FORCE, "", ("path",)),
    "jdk.ThreadPark": IntervalEvent(model.PARK, "", ("parkedClass",)),
    "jdk.ThreadSleep": IntervalEvent(model.SLEEP),
    "jdk.JavaMonitorWait": IntervalEvent(model.MONITOR_WAIT, "", ("monitorClass",)),
    "jdk.JavaMonitorEnter": IntervalEvent(model.MONITOR_ENTER, "", ("monitorClass",)),
    "jdk.GCPhasePause": IntervalEvent(model.GC_PAUSE, "", ("name",)),
    "jdk.GarbageCollection": IntervalEvent(model.GC_PAUSE, "", ("name", "cause")),
    "jdk.ExecuteVMOperation": IntervalEvent(model.SAFEPOINT, "", ("operation",)),
    "jdk.SafepointBegin": IntervalEvent(model.SAFEPOINT),
}
INTERVAL_FIELDS = {"startTime", "duration", "eventThread", "stackTrace", "gcId", "sumOfPauses", "safepoint"}
SCALAR_EVENTS = {
    "jdk.ThreadCPULoad": {"startTime", "eventThread", "user", "system"},
    "jdk.ActiveSetting": {"id", "name", "value"},
    "jdk.JVMInformation": {"jvmName", "jvmVersion", "jvmArguments", "javaArguments", "jvmStartTime", "pid"},
    "jdk.InitialSystemProperty": {"key", "value"},
    "jdk.InitialEnvironmentVariable": {"key", "value"},
    "jdk.DataLoss": {"amount"},
    "jdk.CPUTimeSamplesLost": {"lostSamples"},
}
KEPT_POOLS = (
    "jdk.types.Method",
    "java.lang.Class",
    "jdk.types.Symbol",
    "java.lang.Thread",
    "jdk.types.ThreadGroup",
    "java.lang.ThreadGroup",
    "jdk.types.FrameType",
    "jdk.types.ThreadState",
    "java.lang.String",
)


def read(source: str | Path | bytes | BinaryIO) -> Recording:
    """Read a Java flight recording (JFR 2.x: JDK 9 to 25, 8u262 on, async-profiler), gzip and lz4 unwrapped.

    Several chunks and joined recordings give one Recording; a cut or damaged one gives what is whole in it, with
    `problems` saying what is not. Nothing is executed, memory is bounded by the input's size.

    Raises JfrError where nothing can be read: not a recording, an older format, no chunk with its metadata.
    """
    log = ProblemLog()
    view, name = load(source, log)
    raw_chunks = _without_duplicates(view, chunks_.split(view, name, log), log)
    merged = _Merged()
    readable = 0
    for number, raw in enumerate(raw_chunks, 1):
        readable += _read_chunk(view[raw.offset : raw.offset + raw.size], raw, f"chunk {number}", merged, log)
    if not readable:
        raise JfrError(
            f"{name}: no chunk has its type descriptions, which are written last: the recorder was killed or the "
            "file was cut, and nothing in it can be recovered."
        )
    return merged.recording(log)


def _without_duplicates(view: memoryview, raw_chunks: list[RawChunk], log: ProblemLog) -> list[RawChunk]:
    """Joined recordings of one JVM may hold the same chunk twice, which would count its samples twice."""
    by_header: dict[tuple[int, int], list[RawChunk]] = {}
    kept: list[RawChunk] = []
    hashes: dict[int, bytes] = {}

    def content(raw: RawChunk) -> bytes:
        if raw.offset not in hashes:
            hashes[raw.offset] = hashlib.blake2b(view[raw.offset : raw.offset + raw.size]).digest()
        return hashes[raw.offset]

    for raw in raw_chunks:
        same = by_header.setdefault((raw.start_ns, raw.size), [])
        if any(content(raw) == content(other) for other in same):
            log.add("duplicate chunk", "info", f"byte {raw.offset}", "a chunk that occurs twice was counted once")
            continue
        same.append(raw)
        kept.append(raw)
    return kept


@dataclass
class _Merged:
    """Everything collected so far, over all chunks."""

    chunks: list[Chunk] = field(default_factory=list)
    frames: FrameTable = field(default_factory=FrameTable)
    stacks: StackTable = field(default_factory=StackTable)
    threads: ThreadTable = field(default_factory=ThreadTable)
    samples: list[tuple[npt.NDArray[np.generic], ...]] = field(default_factory=list)
    intervals: list[tuple[npt.NDArray[np.generic], ...]] = field(default_factory=list)
    cpu_load: list[tuple[npt.NDArray[np.generic], ...]] = field(default_factory=list)
    states: dict[str, int] = field(default_factory=dict)
    details: dict[str, int] = field(default_factory=lambda: {"": 0})
    settings: dict[tuple[str, str], str] = field(default_factory=dict)
    event_counts: dict[str, int] = field(default_factory=dict)
    jvms: dict[int, Jvm] = field(default_factory=dict)
    pids: list[int] = field(default_factory=list)
    jvm_slot: int = 0
    properties: list[dict[str, str]] = field(default_factory=list)
    hosts: list[str | None] = field(default_factory=list)

    def use_jvm(self, pid: int | None) -> int:
        """Number of the JVM that the current chunk is of; a chunk that names none belongs to the one before it."""
        if pid is not None:
            if pid not in self.pids:
                self.pids.append(pid)
            self.jvm_slot = self.pids.index(pid)
        while len(self.properties) <= self.jvm_slot:
            self.properties.append({})
            self.hosts.append(None)
        return self.jvm_slot

    def recording(self, log: ProblemLog) -> Recording:
        jvms = []
        for pid, jvm in self.jvms.items():
            slot = self.pids.index(pid)
            properties = self.properties[slot]
            jvms.append(
                Jvm(
                    jvm.pid,
                    jvm.jvm_name,
                    jvm.jvm_version,
                    jvm.jvm_arguments,
                    jvm.java_arguments,
                    jvm.start_ns,
                    self.hosts[slot],
                    properties,
                )
            )
        if len(jvms) > 1:
            log.add("several JVMs", "info", "the recording", "recordings of several JVMs were joined", len(jvms))
        return Recording(
            tuple(self.chunks),
            tuple(jvms),
            self.frames.frames(),
            self.stacks.stacks(),
            self.threads.threads(self.pids),
            self._samples(),
            self._intervals(),
            self._cpu_load(),
            self.settings,
            _periods(self.settings, self.event_counts),
            self.event_counts,
            log.problems(),
        )

    def _samples(self) -> Samples:
        types: tuple[npt.DTypeLike, ...] = (np.int64, np.int32, np.int32, np.int32, np.uint8, np.uint8, np.int64)
        columns = _joined(self.samples, types, 0)
        return Samples(*columns, tuple(self.states))

    def _intervals(self) -> Intervals:
        types: tuple[npt.DTypeLike, ...] = (
            np.int64, np.int64, np.int32, np.int32, np.uint8, np.int64, np.int32, np.int64, np.bool_,
        )  # fmt: skip
        *columns, gc_id, is_collection = _joined(self.intervals, types, 0)
        # A collection stands in only where its pauses are not recorded.
        pause_ids = gc_id[(columns[4] == model.GC_PAUSE) & ~is_collection]
        keep = ~(is_collection & np.isin(gc_id, pause_ids))
        return Intervals(*(column[keep] for column in columns), tuple(self.details))

    def _cpu_load(self) -> ThreadCpuLoad:
        return ThreadCpuLoad(*_joined(self.cpu_load, (np.int64, np.int32, np.float32, np.float32), 0))


def _joined(
    parts: list[tuple[npt.NDArray[np.generic], ...]], types: tuple[npt.DTypeLike, ...], order_by: int
) -> list[npt.NDArray[np.generic]]:
    """The parts' columns end to end, in stable order of one column; `parts` is emptied on the way."""
    columns = [
        np.concatenate([np.empty(0, kind), *(part[i].astype(kind, copy=False) for part in parts)])
        for i, kind in enumerate(types)
    ]
    parts.clear()
    order = np.argsort(columns[order_by], kind="stable")
    for i in range(len(columns)):
        columns[i] = columns[i][order]
    return columns


def _read_chunk(buf: memoryview, raw: RawChunk, place: str, merged: _Merged, log: ProblemLog) -> bool:
    """Read one chunk into `merged`; False (and a problem) where it has no readable metadata."""
    complete = raw.complete
    chain = chunks_.pool_chain(buf, raw.pool_offset)
    types: Types | None = None
    walked: Walk | None = None
    if not raw.compressed:
        log.add("plain integers", "error", place, "a chunk whose integers are not compressed is not read")
    else:
        walked = chunks_.walk(buf, [*chain, raw.metadata_offset])
        types = _types(buf, raw, walked)
        if types is None:
            log.add("no metadata", "data loss", place, "a chunk without its type descriptions cannot be read")
        elif walked.lost_bytes:
            complete = False
            meaning = "bytes that are no event were skipped"
            log.add("damaged events", "data loss", f"{place}, byte {walked.first_lost}", meaning, walked.lost_bytes)
    merged.chunks.append(
        Chunk(
            raw.start_ns,
            raw.duration_ns,
            raw.ticks_per_s,
            raw.major,
            raw.minor,
            complete and types is not None,
            raw.offset,
            raw.size,
        )
    )
    if types is None or walked is None:
        return False
    _ChunkReader(buf, raw, types, walked, chain, place, merged, log).read()
    return True


def _types(buf: memoryview, raw: RawChunk, walked: Walk) -> Types | None:
    """The metadata that the header points to, else the last readable one in the chunk."""
    candidates = []
    if chunks_.HEADER_BYTES <= raw.metadata_offset < len(buf):
        body = chunks_.event_body(buf, raw.metadata_offset, chunks_.METADATA)
        candidates += [body] if body else []
    starts, ends = (each.get(chunks_.METADATA, ()) for each in (walked.starts, walked.ends))
    candidates += list(zip(starts, ends, strict=True))[:-9:-1]
    for start, end in candidates:
        try:
            return read_types(buf, start, end)
        except Truncated:
            continue
    return None


@dataclass
class _ChunkReader:
    buf: memoryview
    raw: RawChunk
    types: Types
    walked: Walk
    chain: list[int]
    place: str
    merged: _Merged
    log: ProblemLog

    def read(self) -> None:
        self.data: U8 = np.frombuffer(self.buf, np.uint8)
        for type_id, starts in self.walked.starts.items():
            name = self.types.name(type_id)
            if type_id > chunks_.CONSTANT_POOL or type_id < 0:
                self.merged.event_counts[name] = self.merged.event_counts.get(name, 0) + len(starts)
        samples = [(name, c) for name in SAMPLE_EVENTS for c in self._columns(name, SAMPLE_FIELDS)]
        intervals = [
            (name, c)
            for name, spec in INTERVAL_EVENTS.items()
            for c in self._columns(name, INTERVAL_FIELDS | {spec.bytes_field, *spec.details})
        ]
        scalars = {name: list(self._columns(name, fields)) for name, fields in SCALAR_EVENTS.items()}
        used = [c.integer("stackTrace") for _, c in samples + intervals]
        stack_keys = np.unique(np.concatenate([np.empty(0, np.int64), *used]))
        everything = [c for _, c in samples + intervals] + [c for each in scalars.values() for c in each]
        keep = {i for name in KEPT_POOLS for i in self.types.ids(name)}
        keep |= {leaf.ref for c in everything for leaf in c.leaves.values() if leaf.ref}
        for name in ("jdk.types.Method", "java.lang.Class", "java.lang.Thread"):
            for type_id in self.types.ids(name):
                keep |= {leaf.ref for leaf in self.types.layout(type_id) or () if leaf.path in NAMING_LEAVES}
        self.pools = read_pools(
            self.buf, self.data, self._pool_bodies(), self.types, keep, stack_keys, self.log, self.place
        )
        jvm = self._jvm(scalars)
        self.threads = self.merged.threads.add(self.pools, jvm)
        self.stack_keys, self.stack_rows = self.merged.stacks.add(self.pools, self.merged.frames.add(self.pools))
        for name, columns in samples:
            self._add_samples(SAMPLE_EVENTS[name], columns)
        for name, columns in intervals:
            self._add_intervals(name, INTERVAL_EVENTS[name], columns)
        self._add_scalars(scalars)

    def _pool_bodies(self) -> list[tuple[int, int]]:
        kind = chunks_.CONSTANT_POOL
        bodies = dict(zip(self.walked.starts.get(kind, ()), self.walked.ends.get(kind, ()), strict=True))
        for pos in self.chain:
            body = chunks_.event_body(self.buf, pos, kind)
            if body:
                bodies.setdefault(*body)
        return sorted(bodies.items())

    def _columns(self, name: str, fields: set[str]) -> Iterator[Columns]:
        for type_id in self.types.ids(name):
            starts = np.array(self.walked.starts.get(type_id, ()), np.int64)
            ends = np.array(self.walked.ends.get(type_id, ()), np.int64)
            if not starts.size:
                continue
            layout = self.types.layout(type_id)
            if layout is None:
                self.log.add("unknown fields", "data loss", self.place, f"{name} has undescribed fields", starts.size)
                continue
            for i in range(0, starts.size, BATCH_EVENTS):
                part = slice(i, i + BATCH_EVENTS)
                columns = decode(self.buf, self.data, starts[part], ends[part], layout, fields)
                meaning = "events whose fields do not fit their size were left out"
                self.log.add("damaged events", "data loss", f"{self.place}, {name}", meaning, columns.damaged)
                yield columns

    def _times(self, columns: Columns) -> I64:
        leaf = columns.leaves.get("startTime")
        return epoch_ns(columns.integer("startTime"), leaf.unit if leaf else "", self.raw)

    def _plausible(self, end_ns: I64, name: str) -> Bool:
        """Events that end near their chunk; damaged times would stretch the run over centuries."""
        low = self.raw.start_ns - HOUR_NS
        length = self.raw.duration_ns + HOUR_NS if self.raw.complete else self.raw.duration_ns + YEAR_NS
        good = within(end_ns, low, self.raw.start_ns + length)
        meaning = "events far outside their chunk's time were left out"
        self.log.add("time implausible", "data loss", f"{self.place}, {name}", meaning, int(good.size - good.sum()))
        return good

    def _threads(self, keys: I64) -> I32:
        distinct, inverse = np.unique(keys, return_inverse=True)
        found = np.array([self.threads.get(key, -1) for key in distinct.tolist()], np.int32)
        unknown = (found[inverse] < 0) & (keys != 0) if keys.size else np.zeros(0, np.bool_)
        meaning = "events of threads that the recording does not describe"
        self.log.add("unknown thread", "data loss", self.place, meaning, int(unknown.sum()))
        return found[inverse] if keys.size else np.empty(0, np.int32)

    def _stacks(self, keys: I64) -> I32:
        if not self.stack_keys.size:
            found = np.full(keys.size, -1, np.int32)
        else:
            at = np.minimum(np.searchsorted(self.stack_keys, keys), self.stack_keys.size - 1)
            found = np.where(self.stack_keys[at] == keys, self.stack_rows[at], -1).astype(np.int32)
        meaning = "events whose stack is not in the recording"
        self.log.add("unknown stack", "data loss", self.place, meaning, int(((found < 0) & (keys != 0)).sum()))
        return found

    def _coded(self, columns: Columns, name: str, codes: dict[str, int], most: int) -> I64:
        """Codes of the texts that a field's keys name; "" where unknown."""
        leaf = columns.leaves.get(name)
        distinct, inverse = np.unique(columns.integer(name), return_inverse=True)
        texts = [(self.pools.text(leaf.ref, key) or "") if leaf else "" for key in distinct.tolist()]
        coded = [codes.setdefault(text, len(codes)) if len(codes) < most or text in codes else 0 for text in texts]
        return np.array(coded, np.int64)[inverse] if coded else np.empty(0, np.int64)

    def _add_samples(self, kind: int, columns: Columns) -> None:
        thread_field = "sampledThread" if "sampledThread" in columns.integers else "eventThread"
        time_ns = self._times(columns)
        ticks = columns.integer("samples", 1)
        keep = self._plausible(time_ns, model.SAMPLE_KINDS[kind]) & within(ticks, 0, 1 << 30)
        leaf = columns.leaves.get("samplingPeriod")
        period_ns = span_ns(columns.integer("samplingPeriod"), leaf.unit if leaf else "", self.raw)
        failed = int((columns.integer("failed") != 0).sum())
        self.log.add("failed samples", "data loss", self.place, "samples whose stack the JVM could not walk", failed)
        parts = (
            time_ns,
            self._threads(columns.integer(thread_field)),
            self._stacks(columns.integer("stackTrace")),
            ticks,
            np.full(columns.count, kind, np.uint8),
            self._coded(columns, "state", self.merged.states, 256),
            period_ns,
        )
        types = (np.int64, np.int32, np.int32, np.int32, np.uint8, np.uint8, np.int64)
        self.merged.samples.append(tuple(p[keep].astype(t) for p, t in zip(parts, types, strict=True)))

    def _add_intervals(self, name: str, spec: IntervalEvent, columns: Columns) -> None:
        start_ns = self._times(columns)
        is_collection = name == "jdk.GarbageCollection"
        span_field = "sumOfPauses" if is_collection else "duration"
        leaf = columns.leaves.get(span_field)
        length_ns = span_ns(columns.integer(span_field), leaf.unit if leaf else "", self.raw)
        end_ns = start_ns + length_ns
        keep = self._plausible(end_ns, name) & within(length_ns, 0, 100 * YEAR_NS) & (start_ns >= 0)
        if name == "jdk.ExecuteVMOperation":
            keep &= columns.integer("safepoint", 1) != 0
        stops_all = spec.kind in (model.GC_PAUSE, model.SAFEPOINT)
        thread = np.full(columns.count, -1, np.int32) if stops_all else self._threads(columns.integer("eventThread"))
        parts = (
            start_ns,
            end_ns,
            thread,
            self._stacks(columns.integer("stackTrace")),
            np.full(columns.count, spec.kind, np.uint8),
            np.maximum(columns.integer(spec.bytes_field), 0) if spec.bytes_field else np.zeros(columns.count, np.int64),
            self._details(spec, columns),
            columns.integer("gcId", -1),
            np.full(columns.count, is_collection, np.bool_),
        )
        self.merged.intervals.append(tuple(part[keep] for part in parts))

    def _details(self, spec: IntervalEvent, columns: Columns) -> I32:
        codes = self.merged.details
        if not spec.details:
            return np.zeros(columns.count, np.int32)
        texts = [self._texts(columns, name) for name in spec.details if name != "port"]
        if spec.details[-1] == "port":
            host, address = texts
            ports = columns.integer("port").tolist()
            joined = [f"{h or a}:{p}" for h, a, p in zip(host, address, ports, strict=True)]
        else:
            joined = [" ".join(filter(None, parts)) for parts in zip(*texts, strict=True)]
        return np.array([codes.setdefault(text, len(codes)) for text in joined], np.int32)

    def _texts(self, columns: Columns, name: str) -> list[str]:
        leaf = columns.leaves.get(name)
        if leaf is None:
            return [""] * columns.count
        if leaf.code == "s":
            return [self.pools.string(value) or "" for value in columns.string(name)]
        is_class = self.types.name(leaf.ref) == "java.lang.Class"
        texts = [self.pools.text(leaf.ref, key) or "" for key in columns.integer(name).tolist()]
        return [text.replace("/", ".") for text in texts] if is_class else texts

    def _jvm(self, scalars: dict[str, list[Columns]]) -> int:
        for columns in scalars["jdk.JVMInformation"]:
            leaf = columns.leaves.get("jvmStartTime")
            starts = epoch_ns(columns.integer("jvmStartTime"), leaf.unit if leaf else "", self.raw).tolist()
            texts = [self._texts(columns, n) for n in ("jvmName", "jvmVersion", "jvmArguments", "javaArguments")]
            for pid, start_ns, *strings in zip(columns.integer("pid").tolist(), starts, *texts, strict=True):
                self.merged.use_jvm(pid)
                self.merged.jvms.setdefault(pid, Jvm(pid, *strings, start_ns, None, {}))
        slot = self.merged.use_jvm(None)
        for columns in scalars["jdk.InitialSystemProperty"]:
            pairs = zip(self._texts(columns, "key"), self._texts(columns, "value"), strict=True)
            self.merged.properties[slot].update(pairs)
        for columns in scalars["jdk.InitialEnvironmentVariable"]:
            for key, value in zip(self._texts(columns, "key"), self._texts(columns, "value"), strict=True):
                if key in ("HOSTNAME", "COMPUTERNAME") and value:
                    self.merged.hosts[slot] = value
        return slot

    def _add_scalars(self, scalars: dict[str, list[Columns]]) -> None:
        for columns in scalars["jdk.ThreadCPULoad"]:
            time_ns = self._times(columns)
            keep = self._plausible(time_ns, "jdk.ThreadCPULoad")
            parts = (time_ns, self._threads(columns.integer("eventThread")), columns.real("user"), columns.real("system"))
            self.merged.cpu_load.append(tuple(part[keep] for part in parts))
        for columns in scalars["jdk.ActiveSetting"]:
            ids = columns.integer("id").tolist()
            for type_id, key, value in zip(ids, self._texts(columns, "name"), self._texts(columns, "value"), strict=True):
                self.merged.settings[self.types.name(type_id), key] = value
        lost = sum(int(np.clip(c.integer("lostSamples"), 0, 1 << 30).sum()) for c in scalars["jdk.CPUTimeSamplesLost"])
        self.log.add("lost CPU samples", "data loss", self.place, "CPU-time samples that the JVM had no room for", lost)
        lost = sum(int(np.clip(c.integer("amount"), 0, 1 << 50).sum()) for c in scalars["jdk.DataLoss"])
        self.log.add("lost buffers", "data loss", self.place, "bytes of events that the JVM had no room for", lost)


NAMING_LEAVES = ("type", "name", "descriptor", "group")


def _periods(settings: dict[tuple[str, str], str], counts: dict[str, int]) -> dict[str, int]:
    periods: dict[str, int] = {}
    for event, kind in SAMPLE_EVENTS.items():
        for key in ("period", "interval"):
            period_ns = parse_period_ns(settings.get((event, key), ""))
            if period_ns:
                periods[model.SAMPLE_KINDS[kind]] = period_ns
    return periods


UNIT_NS = {"": 1, "ns": 1, "us": 1000, "ms": 1_000_000, "s": 1_000_000_000, "m": 60_000_000_000}


def parse_period_ns(text: str) -> int:
    """Nanoseconds of a setting such as "20 ms" (JDK) or "10000000" (async-profiler); 0 where it is no time span."""
    match = re.fullmatch(r"\s*([0-9]{1,15})\s*(ns|us|ms|s|m|)\s*", text)
    return int(match[1]) * UNIT_NS[match[2]] if match else 0
