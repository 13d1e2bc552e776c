"""Extracts samples, intervals, processor loads, settings and JVMs from one chunk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from crystalperf.indexes.frozen import frozen

from . import model
from .chunk import CONSTANT_POOL, RawChunk, Walk, event_body
from .events import Columns, decode, epoch_ns, span_ns, within
from .merge import ASYNC_PROFILER_EVENT, Merged
from .metadata import Types
from .model import (
    I32,
    I64,
    U8,
    Bool,
    HeapUse,
    Intervals,
    Jvm,
    NetworkLoad,
    ProblemLog,
    ProcessLoad,
    Samples,
    ThreadCpuLoad,
    Throttling,
)
from .pools import PoolReader, Pools, Stacks
from .varint import distinct

BATCH_EVENTS = 1 << 18
HOUR_NS = 3_600_000_000_000
YEAR_NS = 8766 * HOUR_NS

SAMPLE_EVENTS = {
    "jdk.ExecutionSample": model.EXECUTION,
    "jdk.NativeMethodSample": model.NATIVE,
    "profiler.WallClockSample": model.WALL,
    "jdk.CPUTimeSample": model.CPU,
}
SAMPLE_FIELDS = {
    "startTime",
    "sampledThread",
    "eventThread",
    "stackTrace",
    "state",
    "samples",
    "samplingPeriod",
    "failed",
}


@frozen
class IntervalEvent:
    """How a duration event becomes an interval: kind, byte count, and the requested time."""

    kind: int
    bytes_field: str = ""
    asked_field: str = ""


INTERVAL_EVENTS = {
    "jdk.SocketRead": IntervalEvent(model.SOCKET_READ, "bytesRead"),
    "jdk.SocketWrite": IntervalEvent(model.SOCKET_WRITE, "bytesWritten"),
    "jdk.FileRead": IntervalEvent(model.FILE_READ, "bytesRead"),
    "jdk.FileWrite": IntervalEvent(model.FILE_WRITE, "bytesWritten"),
    "jdk.FileForce": IntervalEvent(model.FILE_FORCE),
    "jdk.ThreadPark": IntervalEvent(model.PARK),
    "jdk.ThreadSleep": IntervalEvent(model.SLEEP, asked_field="time"),
    "jdk.JavaMonitorWait": IntervalEvent(model.MONITOR_WAIT),
    "jdk.JavaMonitorEnter": IntervalEvent(model.MONITOR_ENTER),
    "jdk.GCPhasePause": IntervalEvent(model.GC_PAUSE),
    "jdk.GarbageCollection": IntervalEvent(model.GC_PAUSE),
    "jdk.ExecuteVMOperation": IntervalEvent(model.SAFEPOINT),
    "jdk.SafepointBegin": IntervalEvent(model.SAFEPOINT),
}
INTERVAL_FIELDS = {"startTime", "duration", "eventThread", "stackTrace", "gcId", "sumOfPauses", "safepoint"}
SCALAR_EVENTS = {
    "jdk.ThreadCPULoad": {"startTime", "eventThread", "user", "system"},
    "jdk.CPULoad": {"startTime", "jvmUser", "jvmSystem", "machineTotal"},
    "jdk.ContainerConfiguration": {"cpuSlicePeriod", "cpuQuota"},
    "jdk.ContainerCPUThrottling": {"startTime", "cpuElapsedSlices", "cpuThrottledSlices"},
    "jdk.NetworkUtilization": {"startTime", "networkInterface", "readRate", "writeRate"},
    "jdk.GCHeapSummary": {"startTime", "gcId", "heapUsed"},
    "jdk.CPUInformation": {"hwThreads"},
    "jdk.ActiveSetting": {"id", "name", "value"},
    "jdk.JVMInformation": {"javaArguments", "pid"},
    "jdk.DataLoss": {"amount"},
    "jdk.CPUTimeSamplesLost": {"lostSamples"},
}
KEPT_POOLS = (
    "jdk.types.Method",
    "java.lang.Class",
    "jdk.types.Symbol",
    "java.lang.Thread",
    "jdk.types.ThreadState",
    "java.lang.String",
)
NAMING_LEAVES = ("type", "name")


@dataclass
class ChunkReader:
    buf: memoryview
    raw: RawChunk
    types: Types
    walked: Walk
    chain: list[int]
    place: str
    merged: Merged
    log: ProblemLog

    def read(self) -> None:
        self.data: U8 = np.frombuffer(self.buf, np.uint8)
        samples = [(name, c) for name in SAMPLE_EVENTS for c in self._columns(name, SAMPLE_FIELDS)]
        intervals = [
            (name, c)
            for name, spec in INTERVAL_EVENTS.items()
            for c in self._columns(name, INTERVAL_FIELDS | {spec.bytes_field, spec.asked_field})
        ]
        scalars = {name: list(self._columns(name, fields)) for name, fields in SCALAR_EVENTS.items()}
        used = [distinct(c.integer("stackTrace"))[0] for _, c in samples + intervals]
        stack_keys = np.unique(np.concatenate([np.empty(0, np.int64), *used]))
        everything = [c for _, c in samples + intervals] + [c for each in scalars.values() for c in each]
        keep = {i for name in KEPT_POOLS for i in self.types.ids(name)}
        keep |= {leaf.ref for c in everything for leaf in c.leaves.values() if leaf.ref}
        for name in ("jdk.types.Method", "java.lang.Class", "java.lang.Thread"):
            for type_id in self.types.ids(name):
                keep |= {leaf.ref for leaf in self.types.layout(type_id) or () if leaf.path in NAMING_LEAVES}
        self.pools = Pools(self.types, Stacks(stack_keys))
        PoolReader(self.buf, self.pools, keep, self.log, self.place).read(self._pool_bodies())
        jvm = self._jvm(scalars)
        self.threads = self.merged.threads.add(self.pools, jvm)
        self.stack_keys, self.stack_rows = self.merged.stacks.add(self.pools, self.merged.frames)
        self._add_scalars(scalars)
        for name, columns in samples:
            self._add_samples(self._kind(name), columns)
        for name, columns in intervals:
            self._add_intervals(name, INTERVAL_EVENTS[name], columns)

    def _kind(self, event: str) -> int:
        # Before version 3 async-profiler wrote wall-clock samples, too, as jdk.ExecutionSample.
        kind = SAMPLE_EVENTS[event]
        wall = self.merged.settings.get(ASYNC_PROFILER_EVENT) == "wall"
        return model.WALL if wall and kind == model.EXECUTION else kind

    def _pool_bodies(self) -> list[tuple[int, int]]:
        kind = CONSTANT_POOL
        bodies = dict(zip(self.walked.starts.get(kind, ()), self.walked.ends.get(kind, ()), strict=True))
        for pos in self.chain:
            body = event_body(self.buf, pos, kind)
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
        """Whether events end near their chunk; with damaged times the run would seem to last centuries."""
        low = self.raw.start_ns - HOUR_NS
        length = self.raw.duration_ns + HOUR_NS if self.raw.complete else self.raw.duration_ns + YEAR_NS
        good = within(end_ns, low, self.raw.start_ns + length)
        meaning = "events far outside their chunk's time were left out"
        self.log.add("time implausible", "data loss", f"{self.place}, {name}", meaning, int(good.size - good.sum()))
        return good

    def _threads(self, keys: I64) -> I32:
        known, inverse = distinct(keys)
        found = np.array([self.threads.get(key, -1) for key in known.tolist()], np.int32)[inverse]
        meaning = "events of threads that the recording does not describe"
        unknown = int(((found < 0) & (keys != 0)).sum())
        self.log.add("unknown thread", "data loss", self.place, meaning, unknown)
        return found

    def _stacks(self, keys: I64) -> I32:
        if not self.stack_keys.size:
            found = np.full(keys.size, -1, np.int32)
        else:
            known, inverse = distinct(keys)
            at = np.minimum(np.searchsorted(self.stack_keys, known), self.stack_keys.size - 1)
            found = np.where(self.stack_keys[at] == known, self.stack_rows[at], -1).astype(np.int32)[inverse]
        meaning = "events whose stack is not in the recording"
        self.log.add("unknown stack", "data loss", self.place, meaning, int(((found < 0) & (keys != 0)).sum()))
        return found

    def _states(self, columns: Columns) -> U8:
        codes = self.merged.states
        leaf = columns.leaves.get("state")
        keys, inverse = distinct(columns.integer("state"))
        coded = np.zeros(keys.size, np.uint8)
        for i, key in enumerate(keys.tolist()):
            text = (self.pools.text(leaf.ref, key) if leaf else None) or ""
            if text in codes or len(codes) < 256:
                coded[i] = codes.setdefault(text, len(codes))
        return coded[inverse]

    def _add_samples(self, kind: int, columns: Columns) -> None:
        thread_field = "sampledThread" if "sampledThread" in columns.integers else "eventThread"
        time_ns = self._times(columns)
        ticks = columns.integer("samples", 1)
        keep = self._plausible(time_ns, model.SAMPLE_KINDS[kind]) & within(ticks, 0, 1 << 30)
        period_ns = self._span_ns(columns, "samplingPeriod")
        failed = int((columns.integer("failed") != 0).sum())
        self.log.add("failed samples", "data loss", self.place, "samples whose stack the JVM could not walk", failed)
        self.merged.samples.append(
            Samples(
                time_ns[keep],
                self._threads(columns.integer(thread_field))[keep],
                self._stacks(columns.integer("stackTrace"))[keep],
                ticks[keep].astype(np.int32),
                np.full(int(keep.sum()), kind, np.uint8),
                self._states(columns)[keep],
                period_ns[keep],
                (),
            )
        )

    def _add_intervals(self, name: str, spec: IntervalEvent, columns: Columns) -> None:
        start_ns = self._times(columns)
        span_field = "sumOfPauses" if name == "jdk.GarbageCollection" else "duration"
        length_ns = self._span_ns(columns, span_field)
        end_ns = start_ns + length_ns
        keep = self._plausible(end_ns, name) & within(length_ns, 0, 100 * YEAR_NS) & (start_ns >= 0)
        if name == "jdk.ExecuteVMOperation":
            keep &= columns.integer("safepoint", 1) != 0
        stops_all = spec.kind in (model.GC_PAUSE, model.SAFEPOINT)
        thread = np.full(columns.count, -1, np.int32) if stops_all else self._threads(columns.integer("eventThread"))
        amount = columns.integer(spec.bytes_field) if spec.bytes_field else np.zeros(columns.count, np.int64)
        intervals = Intervals(
            start_ns[keep],
            end_ns[keep],
            thread[keep],
            self._stacks(columns.integer("stackTrace"))[keep],
            np.full(int(keep.sum()), spec.kind, np.uint8),
            np.maximum(amount, 0)[keep],
            np.maximum(self._span_ns(columns, spec.asked_field), 0)[keep],
        )
        is_collection = np.full(len(intervals), name == "jdk.GarbageCollection", np.bool_)
        self.merged.intervals.append((intervals, columns.integer("gcId", -1)[keep], is_collection))

    def _span_ns(self, columns: Columns, name: str) -> I64:
        """A field that is a time span; 0 if the event has none."""
        leaf = columns.leaves.get(name)
        return span_ns(columns.integer(name), leaf.unit if leaf else "", self.raw)

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
            pids, arguments = columns.integer("pid").tolist(), self._texts(columns, "javaArguments")
            for pid, java_arguments in zip(pids, arguments, strict=True):
                self.merged.use_jvm(pid)
                self.merged.jvms.setdefault(pid, Jvm(pid, java_arguments))
        return self.merged.use_jvm(None)

    def _add_scalars(self, scalars: dict[str, list[Columns]]) -> None:
        self._add_loads(scalars)
        self._add_container(scalars)
        for columns in scalars["jdk.CPUInformation"]:
            threads = columns.integer("hwThreads")
            self.merged.processors = max([self.merged.processors, *threads[within(threads, 1, 1 << 16)].tolist()])
        for columns in scalars["jdk.ActiveSetting"]:
            ids = columns.integer("id").tolist()
            for type_id, key, value in zip(
                ids, self._texts(columns, "name"), self._texts(columns, "value"), strict=True
            ):
                self.merged.settings[self.types.name(type_id), key] = value
        lost = sum(int(np.clip(c.integer("lostSamples"), 0, 1 << 30).sum()) for c in scalars["jdk.CPUTimeSamplesLost"])
        self.log.add(
            "lost CPU samples",
            "data loss",
            self.place,
            "CPU-time samples that the JVM dropped because its buffer was full",
            lost,
        )
        lost = sum(int(np.clip(c.integer("amount"), 0, 1 << 50).sum()) for c in scalars["jdk.DataLoss"])
        self.log.add(
            "lost buffers",
            "data loss",
            self.place,
            "bytes of events that the JVM dropped because its buffer was full",
            lost,
        )

    def _add_loads(self, scalars: dict[str, list[Columns]]) -> None:
        for columns in scalars["jdk.ThreadCPULoad"]:
            time_ns = self._times(columns)
            keep = self._plausible(time_ns, "jdk.ThreadCPULoad")
            thread = self._threads(columns.integer("eventThread"))
            user, system = columns.real("user"), columns.real("system")
            self.merged.cpu_load.append(ThreadCpuLoad(time_ns[keep], thread[keep], user[keep], system[keep]))
        for columns in scalars["jdk.CPULoad"]:
            time_ns = self._times(columns)
            keep = self._plausible(time_ns, "jdk.CPULoad")
            shares = [columns.real(name)[keep] for name in ("jvmUser", "jvmSystem", "machineTotal")]
            self.merged.process_load.append(ProcessLoad(time_ns[keep], *shares))
        for columns in scalars["jdk.GCHeapSummary"]:
            time_ns = self._times(columns)
            keep = self._plausible(time_ns, "jdk.GCHeapSummary")
            counts = [columns.integer(name)[keep] for name in ("gcId", "heapUsed")]
            self.merged.heap_use.append(HeapUse(time_ns[keep], *counts))
        for columns in scalars["jdk.NetworkUtilization"]:
            time_ns = self._times(columns)
            keep = self._plausible(time_ns, "jdk.NetworkUtilization")
            codes = self.merged.devices
            names = [codes.setdefault(name, len(codes)) for name in self._texts(columns, "networkInterface")]
            received, sent = (columns.integer(name)[keep] for name in ("readRate", "writeRate"))
            self.merged.network_load.append(NetworkLoad(time_ns[keep], np.array(names, np.int32)[keep], received, sent))

    def _add_container(self, scalars: dict[str, list[Columns]]) -> None:
        for columns in scalars["jdk.ContainerConfiguration"]:
            pairs = zip(columns.integer("cpuQuota").tolist(), columns.integer("cpuSlicePeriod").tolist(), strict=True)
            for quota, period in pairs:
                # Both in one unit; without a quota it is -1, without a container all are.
                self.merged.quota_cores = quota / period if quota > 0 and period > 0 else None
        for columns in scalars["jdk.ContainerCPUThrottling"]:
            time_ns = self._times(columns)
            keep = self._plausible(time_ns, "jdk.ContainerCPUThrottling")
            counts = [columns.integer(name)[keep] for name in ("cpuElapsedSlices", "cpuThrottledSlices")]
            self.merged.throttling.append(Throttling(time_ns[keep], *counts))
