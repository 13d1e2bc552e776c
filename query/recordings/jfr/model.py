"""The content of a recording, as structures of arrays.

Unknown indexes are -1. Times are nanoseconds since the Unix epoch (int64).
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from crystalperf.indexes.frozen import frozen

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
U8 = npt.NDArray[np.uint8]
F32 = npt.NDArray[np.float32]
Bool = npt.NDArray[np.bool_]
Severity = Literal["info", "data loss", "error"]

SAMPLE_KINDS: tuple[str, ...] = ("EXECUTION", "NATIVE", "WALL", "CPU")
EXECUTION, NATIVE, WALL, CPU = range(4)

INTERVAL_KINDS: tuple[str, ...] = (
    "SOCKET_READ",
    "SOCKET_WRITE",
    "FILE_READ",
    "FILE_WRITE",
    "FILE_FORCE",
    "PARK",
    "SLEEP",
    "MONITOR_WAIT",
    "MONITOR_ENTER",
    "GC_PAUSE",
    "SAFEPOINT",
)
(
    SOCKET_READ,
    SOCKET_WRITE,
    FILE_READ,
    FILE_WRITE,
    FILE_FORCE,
    PARK,
    SLEEP,
    MONITOR_WAIT,
    MONITOR_ENTER,
    GC_PAUSE,
    SAFEPOINT,
) = range(11)


class JfrError(ValueError):
    """The input cannot be read as a flight recording; the text is one sentence for the user."""


@frozen
class Problem:
    """A problem in the input that the reader reports.

    `count` is the number of occurrences, `first_place` the position of the first ("chunk 2, byte 4711").
    """

    name: str
    severity: Severity
    count: int
    first_place: str
    meaning: str


@frozen
class Jvm:
    """The virtual machine, from jdk.JVMInformation."""

    pid: int
    java_arguments: str


@frozen
class Thread:
    """A thread, one per JVM and Java thread id (or OS thread id if it has no Java id, and `java_tid` is 0).

    Spark renames its threads for every task: `java_name` is the last name. `pid` is 0 if the recording lacks it.
    """

    java_name: str
    os_name: str
    java_tid: int
    pid: int


@frozen
class Frames:
    """Unique frames. Arrays have length n; `*_id` index the string tables next to them.

    `line` is int32, 0 or -1 if unknown. Class names are dotted (`a.b.C$D`), empty for native functions.
    """

    class_id: I32
    method_id: I32
    line: I32
    class_names: tuple[str, ...]
    method_names: tuple[str, ...]

    def __len__(self) -> int:
        return int(self.line.size)

    def name(self, index: int) -> str:
        """`class.method` of one frame, or the bare function name of a native one."""
        class_name = self.class_names[self.class_id[index]]
        method = self.method_names[self.method_id[index]]
        return f"{class_name}.{method}" if class_name else method

    def owners(self) -> list[str]:
        """The class of every frame."""
        return [self.class_names[i] for i in self.class_id.tolist()]

    def methods(self) -> list[str]:
        """The method of every frame, without its class."""
        return [self.method_names[i] for i in self.method_id.tolist()]


@frozen
class Stacks:
    """Unique stacks: `frame_index[offsets[i]:offsets[i + 1]]` are stack i's frames, leaf first.

    offsets int64[n + 1], frame_index int32, truncated bool[n] (the recorder cut the stack's root end).
    """

    offsets: I64
    frame_index: I32
    truncated: Bool

    def __len__(self) -> int:
        return int(self.truncated.size)

    def frames(self, index: int) -> I32:
        return self.frame_index[self.offsets[index] : self.offsets[index + 1]]


@frozen
class Samples:
    """Sampled stacks sorted by time, arrays of one length.

    `ticks` is the number of sampler ticks that one event represents (`samples` of profiler.WallClockSample, else 1).
    `kind` codes SAMPLE_KINDS: EXECUTION jdk.ExecutionSample, NATIVE jdk.NativeMethodSample, CPU jdk.CPUTimeSample,
    WALL profiler.WallClockSample and the jdk.ExecutionSample of an async-profiler that sampled the wall clock (its
    other events, such as cpu, come as EXECUTION: see Recording.async_profiler_event). `state` codes `state_names`.
    `period_ns` is the time of one tick if the event itself states it (jdk.CPUTimeSample), else 0: see
    Recording.periods_ns.
    """

    time_ns: I64
    thread: I32
    stack: I32
    ticks: I32
    kind: U8
    state: U8
    period_ns: I64
    state_names: tuple[str, ...]

    def __len__(self) -> int:
        return int(self.time_ns.size)


@frozen
class Intervals:
    """Duration events sorted by start, arrays of one length.

    `kind` codes INTERVAL_KINDS; `bytes` is 0 if unknown; `asked_ns` is the requested time of a sleep, 0 for other
    kinds.

    GC_PAUSE is jdk.GCPhasePause; if a collection has none, jdk.GarbageCollection from its start for its
    sumOfPauses. SAFEPOINT is jdk.ExecuteVMOperation run at a safepoint plus jdk.SafepointBegin (reaching it);
    a collection is also a VM operation, so take the union of GC_PAUSE and SAFEPOINT, never their sum.
    Both have thread -1: they stop every thread.
    """

    start_ns: I64
    end_ns: I64
    thread: I32
    stack: I32
    kind: U8
    bytes: I64
    asked_ns: I64

    def __len__(self) -> int:
        return int(self.start_ns.size)


@frozen
class ThreadCpuLoad:
    """jdk.ThreadCPULoad sorted by time: shares (0 to 1 of all processors) since the last such event."""

    time_ns: I64
    thread: I32
    user: F32
    system: F32

    def __len__(self) -> int:
        return int(self.time_ns.size)


@frozen
class ProcessLoad:
    """jdk.CPULoad sorted by time: shares (0 to 1 of all processors of the machine) since the last such event."""

    time_ns: I64
    user: F32
    system: F32
    machine: F32
    """All processes of the machine."""

    def __len__(self) -> int:
        return int(self.time_ns.size)


@frozen
class Throttling:
    """jdk.ContainerCPUThrottling sorted by time: periods of the container's CPU quota since it began, counted up."""

    time_ns: I64
    elapsed: I64
    throttled: I64
    """The number of periods in which the quota was used up."""

    def __len__(self) -> int:
        return int(self.time_ns.size)


@frozen
class NetworkLoad:
    """jdk.NetworkUtilization sorted by time: traffic of network devices since the last such event.

    `device` indexes `Recording.devices`; a device without traffic has no event.  The devices are those of the
    process' machine or network namespace, so they include the traffic of other processes.
    """

    time_ns: I64
    device: I32
    received_bps: I64
    sent_bps: I64

    def __len__(self) -> int:
        return int(self.time_ns.size)


@frozen
class HeapUse:
    """jdk.GCHeapSummary sorted by time: bytes in use before and after each collection, by the collection's id."""

    time_ns: I64
    collection: I64
    used: I64

    def __len__(self) -> int:
        return int(self.time_ns.size)


@frozen
class Recording:
    """A whole recording.

    `settings` maps (event type, setting) to the text in jdk.ActiveSetting, the last one where it changed.
    `periods_ns` maps the name of a sample kind to its sampling period, if the settings state it.
    `quota_cores` is the CPU quota of the container by jdk.ContainerConfiguration, the last one, None without one.
    `processors` is the number of hardware threads of the machine, 0 if the recording does not state it.
    """

    jvms: tuple[Jvm, ...]
    frames: Frames
    stacks: Stacks
    threads: tuple[Thread, ...]
    samples: Samples
    intervals: Intervals
    cpu_load: ThreadCpuLoad
    process_load: ProcessLoad
    throttling: Throttling
    network_load: NetworkLoad
    heap_use: HeapUse
    devices: tuple[str, ...]
    quota_cores: float | None
    processors: int
    settings: dict[tuple[str, str], str]
    periods_ns: dict[str, int]
    problems: tuple[Problem, ...]

    @property
    def async_profiler_event(self) -> str | None:
        """The event that async-profiler sampled ("cpu", "wall", "itimer"), None for a recording by the JDK."""
        return self.settings.get(("jdk.ActiveRecording", "event"))

    @property
    def jvm(self) -> Jvm | None:
        """The recording's JVM; the first of a joined recording, None if it names none."""
        return self.jvms[0] if self.jvms else None


class ProblemLog:
    """Collects problems by name, with the position of the first."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[Severity, int, str, str]] = {}

    def add(self, name: str, severity: Severity, place: str, meaning: str, count: int = 1) -> None:
        if count <= 0:
            return
        old = self._seen.get(name)
        if old is None:
            self._seen[name] = (severity, count, place, meaning)
        else:
            self._seen[name] = (old[0], old[1] + count, old[2], old[3])

    def problems(self) -> tuple[Problem, ...]:
        return tuple(
            Problem(name, severity, count, place, meaning)
            for name, (severity, count, place, meaning) in self._seen.items()
        )
