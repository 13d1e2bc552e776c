"""Merges chunks: frames, stacks and threads unique over the whole recording, events in order of time."""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

import numpy as np

from . import model
from .model import (
    I32,
    I64,
    Bool,
    Frames,
    HeapUse,
    Intervals,
    Jvm,
    NetworkLoad,
    ProblemLog,
    ProcessLoad,
    Recording,
    Samples,
    Stacks,
    Thread,
    ThreadCpuLoad,
    Throttling,
)
from .pools import Frames as ChunkFrames
from .pools import Pools

THREAD_LEAVES = ("javaName", "osName", "javaThreadId", "osThreadId")


class FrameTable:
    """Frames and their strings, coded in order of appearance."""

    def __init__(self) -> None:
        self._classes: dict[str, int] = {}
        self._names: dict[str, int] = {}
        self._methods: dict[tuple[int, int], int] = {}  # by class and name
        self._frames: dict[int, int] = {}  # by method code and line, packed into one integer

    def add(self, pools: Pools, frames: ChunkFrames) -> I32:
        """Add a chunk's frames; returns the code in this table for each of the chunk's frame codes."""
        method_keys, method_row = np.unique(frames.method, return_inverse=True)
        method = np.array(self._method_codes(pools, method_keys.tolist()), np.int64)
        if not frames.line.size:
            return np.empty(0, np.int32)
        packed = method[method_row] << 32 | frames.line.view(np.uint32).astype(np.int64)
        known = self._frames
        return np.array([known.setdefault(frame, len(known)) for frame in packed.tolist()], np.int32)

    def _method_codes(self, pools: Pools, keys: list[int]) -> list[int]:
        tables = [pools.by_type[i] for i in pools.types.ids("jdk.types.Method") if i in pools.by_type]
        columns = [[pool.column(name) for name in ("type", "name")] for pool in tables]
        codes = []
        for key in keys:
            owner, name = "", ""
            for pool, found in zip(tables, columns, strict=True):
                row = pool.row(key)
                if row is not None:
                    owner, name = (pools.named(pool.layout[c], row[c]) or "" if c >= 0 else "" for c in found)
                    break
            named = (
                self._classes.setdefault(owner.replace("/", "."), len(self._classes)),
                self._names.setdefault(name, len(self._names)),
            )
            codes.append(self._methods.setdefault(named, len(self._methods)))
        return codes

    def frames(self) -> Frames:
        packed = np.fromiter(self._frames, np.int64, len(self._frames))
        methods = np.array(list(self._methods), np.int32).reshape(-1, 2)[packed >> 32]
        line = (packed & 0xFFFFFFFF).astype(np.uint32).view(np.int32)
        class_id, method_id = (np.ascontiguousarray(methods[:, i]) for i in range(2))
        return Frames(class_id, method_id, line, tuple(self._classes), tuple(self._names))


class StackMerger:
    """Stacks by content: equal frames and truncation are one stack across chunks."""

    def __init__(self) -> None:
        self._stacks: dict[bytes, int] = {}
        self._depth = array("q")
        self._truncated = bytearray()

    def add(self, pools: Pools, frames: FrameTable) -> tuple[I64, I32]:
        """Add a chunk's stacks; returns (keys in ascending order, stack indexes)."""
        keys, truncated, offsets, codes, chunk_frames = pools.stacks.table()
        frame_codes = frames.add(pools, chunk_frames)
        content = frame_codes[codes].tobytes()
        indexes = np.empty(keys.size, np.int32)
        bounds = (offsets * 4).tolist()
        for i, cut in enumerate(truncated.tolist()):
            stack = content[bounds[i] : bounds[i + 1]] + (b"t" if cut else b"")
            index = self._stacks.get(stack)
            if index is None:
                index = self._stacks[stack] = len(self._stacks)
                self._depth.append((bounds[i + 1] - bounds[i]) // 4)
                self._truncated.append(cut)
            indexes[i] = index
        return keys, indexes

    def stacks(self) -> Stacks:
        offsets = np.zeros(len(self._depth) + 1, np.int64)
        np.cumsum(np.array(self._depth, np.int64), out=offsets[1:])
        frame_index = np.empty(int(offsets[-1]), np.int32)
        for i, content in enumerate(self._stacks):
            start, end = offsets[i], offsets[i + 1]
            frame_index[start:end] = np.frombuffer(content, np.int32, end - start)
        return Stacks(offsets, frame_index, np.array(self._truncated, np.uint8).astype(np.bool_))


@dataclass
class _ThreadRecord:
    java_tid: int
    jvm: int
    java_name: str = ""
    os_name: str = ""


class ThreadTable:
    """Threads by JVM and Java thread id, or OS thread id if there is no Java thread."""

    def __init__(self) -> None:
        self._index: dict[tuple[int, int, int], int] = {}
        self._threads: list[_ThreadRecord] = []

    def add(self, pools: Pools, jvm: int) -> dict[int, int]:
        """Add a chunk's threads; returns thread index by thread key. `jvm` numbers the JVMs of a joined recording."""
        by_key: dict[int, int] = {}
        for type_id in pools.types.ids("java.lang.Thread"):
            pool = pools.by_type.get(type_id)
            if pool is None:
                continue
            columns = [pool.column(name) for name in THREAD_LEAVES]
            for key, row in zip(pool.keys, pool.values, strict=True):
                java_name, os_name, java_tid, os_tid = (row[c] if c >= 0 else None for c in columns)
                java_tid = java_tid if isinstance(java_tid, int) else 0
                os_tid = os_tid if isinstance(os_tid, int) else 0
                identity = (jvm, 0, java_tid) if java_tid > 0 else (jvm, 1, os_tid)
                index = self._index.setdefault(identity, len(self._index))
                if index == len(self._threads):
                    self._threads.append(_ThreadRecord(java_tid, jvm))
                thread = self._threads[index]
                thread.java_name = pools.string(java_name) or thread.java_name
                thread.os_name = pools.string(os_name) or thread.os_name
                by_key[key] = index
        return by_key

    def threads(self, pids: list[int]) -> tuple[Thread, ...]:
        return tuple(
            Thread(each.java_name, each.os_name, each.java_tid, pids[each.jvm] if each.jvm < len(pids) else 0)
            for each in self._threads
        )


_NO_TIME, _NO_CODE, _NO_SHARE = np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.float32)
_NO_KIND = np.empty(0, np.uint8)

Timed = TypeVar("Timed", Samples, ThreadCpuLoad, ProcessLoad, Throttling, NetworkLoad, HeapUse)
Measured = TypeVar("Measured", Samples, Intervals, ThreadCpuLoad, ProcessLoad, Throttling, NetworkLoad, HeapUse)


def _joined(none: Measured, parts: list[Measured]) -> Measured:
    """All events of one kind; `none` has the type of each array, and the fields that are not arrays."""
    every = [none, *parts]
    joined: dict[str, Any] = {name: np.concatenate([getattr(each, name) for each in every]) for name in _arrays(none)}
    return replace(none, **joined)


def _chosen(events: Measured, rows: I64) -> Measured:
    return replace(events, **{name: each[rows] for name, each in _arrays(events).items()})


def _arrays(events: Measured) -> dict[str, Any]:
    values = {each.name: getattr(events, each.name) for each in fields(events)}
    return {name: each for name, each in values.items() if isinstance(each, np.ndarray)}


def _by_time(none: Timed, parts: list[Timed]) -> Timed:
    """All events of one kind in order of time."""
    every = _joined(none, parts)
    return _chosen(every, np.argsort(every.time_ns, kind="stable"))


@dataclass
class Merged:
    """The merged content of all chunks so far."""

    frames: FrameTable = field(default_factory=FrameTable)
    stacks: StackMerger = field(default_factory=StackMerger)
    threads: ThreadTable = field(default_factory=ThreadTable)
    samples: list[Samples] = field(default_factory=list)
    # Intervals with their collection's id (-1 for others) and whether they are jdk.GarbageCollection.
    intervals: list[tuple[Intervals, I64, Bool]] = field(default_factory=list)
    cpu_load: list[ThreadCpuLoad] = field(default_factory=list)
    process_load: list[ProcessLoad] = field(default_factory=list)
    throttling: list[Throttling] = field(default_factory=list)
    network_load: list[NetworkLoad] = field(default_factory=list)
    heap_use: list[HeapUse] = field(default_factory=list)
    devices: dict[str, int] = field(default_factory=dict)
    quota_cores: float | None = None
    processors: int = 0
    states: dict[str, int] = field(default_factory=lambda: {"": 0})
    settings: dict[tuple[str, str], str] = field(default_factory=dict)
    jvms: dict[int, Jvm] = field(default_factory=dict)
    pids: list[int] = field(default_factory=list)
    _current_jvm: int = 0

    def use_jvm(self, pid: int | None) -> int:
        """Number of the current chunk's JVM; a chunk without one belongs to the JVM of the chunk before it."""
        if pid is not None:
            if pid not in self.jvms:
                self.pids.append(pid)
            self._current_jvm = self.pids.index(pid)
        return self._current_jvm

    def recording(self, log: ProblemLog) -> Recording:
        jvms = tuple(self.jvms.values())
        if len(jvms) > 1:
            log.add("several JVMs", "info", "the recording", "recordings of several JVMs were joined", len(jvms))
        return Recording(
            jvms,
            self.frames.frames(),
            self.stacks.stacks(),
            self.threads.threads(self.pids),
            _by_time(
                Samples(_NO_TIME, _NO_CODE, _NO_CODE, _NO_CODE, _NO_KIND, _NO_KIND, _NO_TIME, tuple(self.states)),
                self.samples,
            ),
            self._intervals(),
            _by_time(ThreadCpuLoad(_NO_TIME, _NO_CODE, _NO_SHARE, _NO_SHARE), self.cpu_load),
            _by_time(ProcessLoad(_NO_TIME, _NO_SHARE, _NO_SHARE, _NO_SHARE), self.process_load),
            _by_time(Throttling(_NO_TIME, _NO_TIME, _NO_TIME), self.throttling),
            _by_time(NetworkLoad(_NO_TIME, _NO_CODE, _NO_TIME, _NO_TIME), self.network_load),
            _by_time(HeapUse(_NO_TIME, _NO_TIME, _NO_TIME), self.heap_use),
            tuple(self.devices),
            self.quota_cores,
            self.processors,
            self.settings,
            periods_ns(self.settings),
            log.problems(),
        )

    def _intervals(self) -> Intervals:
        parts = [part for part, _, _ in self.intervals]
        every = _joined(Intervals(_NO_TIME, _NO_TIME, _NO_CODE, _NO_CODE, _NO_KIND, _NO_TIME, _NO_TIME), parts)
        gc_id = np.concatenate([_NO_TIME, *(each for _, each, _ in self.intervals)])
        is_collection = np.concatenate([np.empty(0, np.bool_), *(each for _, _, each in self.intervals)])
        # A collection counts only if its pauses are not recorded.
        paused = gc_id[(every.kind == model.GC_PAUSE) & ~is_collection]
        kept = np.flatnonzero(~(is_collection & np.isin(gc_id, paused)))
        return _chosen(every, kept[np.argsort(every.start_ns[kept], kind="stable")])


ASYNC_PROFILER_EVENT = ("jdk.ActiveRecording", "event")
PERIOD_SETTINGS = {
    "EXECUTION": (("jdk.ExecutionSample", "period"), ("jdk.ExecutionSample", "interval")),
    "NATIVE": (("jdk.NativeMethodSample", "period"),),
    "WALL": (("profiler.WallClockSample", "interval"), ("profiler.WallClockSample", "wall")),
    "CPU": (("jdk.CPUTimeSample", "throttle"),),
}
UNIT_NS = {"": 1, "ns": 1, "us": 1000, "ms": 1_000_000, "s": 1_000_000_000, "m": 60_000_000_000}


def periods_ns(settings: dict[tuple[str, str], str]) -> dict[str, int]:
    """Sampling period by sample kind, if the settings have a time span for it."""
    periods: dict[str, int] = {}
    for kind, keys in PERIOD_SETTINGS.items():
        for key in keys:
            period_ns = parse_period_ns(settings.get(key, ""))
            if period_ns:
                periods.setdefault(kind, period_ns)
    if settings.get(ASYNC_PROFILER_EVENT) == "wall" and "EXECUTION" in periods:
        # async-profiler writes the interval of its only event, of any kind, as that of jdk.ExecutionSample.
        periods.setdefault("WALL", periods.pop("EXECUTION"))
    return periods


def parse_period_ns(text: str) -> int:
    """Nanoseconds in a setting: "20 ms" (JDK), "10000000" (async-profiler); 0 if it is not a time span."""
    match = re.fullmatch(r"\s*([0-9]{1,15})\s*(ns|us|ms|s|m|)\s*", text)
    return int(match[1]) * UNIT_NS[match[2]] if match else 0
