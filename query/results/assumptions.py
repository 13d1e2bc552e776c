"""What an answer takes for granted: the kinds of assumptions that any framework's runs may have.

A kind has numbers and names only; query.text.assumptions words it.  A framework's own kinds are in its package.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from crystalperf.query.results.kinds import Kind
from crystalperf.query.results.refusals import Refusal


@dataclass(frozen=True)
class Assumption(Kind):
    """Something that an answer takes for granted."""


# The prediction -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OtherPredictor(Assumption):
    """Another package's model, by its name, made the prediction; it gives no interval."""

    kind: ClassVar[str] = "other-predictor"
    predictor: str


@dataclass(frozen=True)
class NoInterval(Assumption):
    """No reruns have checked predictions of these settings, by the user's words."""

    kind: ClassVar[str] = "no-interval"
    settings: tuple[str, ...]


@dataclass(frozen=True)
class BetweenEnds(Assumption):
    """What is unknown has two ends, near enough for an answer between them."""

    kind: ClassVar[str] = "between-ends"
    unknown: Refusal


@dataclass(frozen=True)
class TimeImputed(Assumption):
    """Task time that a log without samples leaves open, divided by the run's own evidence and by recorded runs.

    `devices_ms` of it goes to devices, as in `recordings` other runs, and `cpu_wait_ms` to waiting for a CPU:
    `waits_per_cpu_second` is how long the run's tasks without a device did, None where that is from recorded runs too.
    """

    kind: ClassVar[str] = "time-imputed"
    imputed_ms: float
    task_ms: float
    devices_ms: float
    cpu_wait_ms: float
    waits_per_cpu_second: float | None
    recordings: int


@dataclass(frozen=True)
class CacheMisses(Assumption):
    """`misses` of `reads` tasks read data again that workers were to cache.

    With room for `ratio` times as much, `misses_left` would.
    """

    kind: ClassVar[str] = "cache-misses"
    misses: int
    reads: int
    ratio: float
    misses_left: int


# Slots and tasks ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TasksKept(Assumption):
    """Stages keep their recorded tasks."""

    kind: ClassVar[str] = "tasks-kept"


@dataclass(frozen=True)
class WorkersStay(Assumption):
    """Workers that were lost or given back in the recorded run stay until others take their place."""

    kind: ClassVar[str] = "workers-stay"


@dataclass(frozen=True)
class AddedSlots(Assumption):
    """Whether added slots have a CPU core of their own; added workers have a node of their own."""

    kind: ClassVar[str] = "added-slots"
    with_cores: bool


@dataclass(frozen=True)
class NodeShared(Assumption):
    """Tasks on a node share its disk and its network equally."""

    kind: ClassVar[str] = "node-shared"


@dataclass(frozen=True)
class SlotsIdle(Assumption):
    """Of `slots` at most `busy` have a task at a time."""

    kind: ClassVar[str] = "slots-idle"
    slots: int
    busy: int


@dataclass(frozen=True)
class CpuLimited(Assumption):
    """A worker gets no more CPU than the recorded ones did at most, in cores per slot."""

    kind: ClassVar[str] = "cpu-limited"
    cores: float


@dataclass(frozen=True)
class WorkEven(Assumption):
    """The tasks of each stage take equally long, and spreading the work costs nothing."""

    kind: ClassVar[str] = "work-even"


@dataclass(frozen=True)
class OperatorTime(Assumption):
    """An operator, by the user's word, took `time_ms` of `task_ms`."""

    kind: ClassVar[str] = "operator-time"
    operator: str
    time_ms: float
    task_ms: float


# Devices --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CpuTimeScales(Assumption):
    """CPU time scales inversely with the speed of a core, the coordinator's too."""

    kind: ClassVar[str] = "cpu-time-scales"


@dataclass(frozen=True)
class DeviceTimeScales(Assumption):
    """Time on a device scales inversely with its speed."""

    kind: ClassVar[str] = "device-time-scales"
    device: str


@dataclass(frozen=True)
class DeviceBandwidth(Assumption):
    """Time on a device whose bytes are unknown scales with its bandwidth, less the processing of each buffer."""

    kind: ClassVar[str] = "device-bandwidth"
    device: str


@dataclass(frozen=True)
class TransferTime(Assumption):
    """Of `seen_ms` on a device what its bytes take at the recorded bandwidth changes; the rest is latency."""

    kind: ClassVar[str] = "transfer-time"
    device: str
    seen_ms: float
    moved_bytes: float


@dataclass(frozen=True)
class TransferTimeAtLeast(Assumption):
    """The same where the recorded bandwidth is unknown, and known to be `carried_bps` (bytes per second) at least."""

    kind: ClassVar[str] = "transfer-time-at-least"
    device: str
    seen_ms: float
    moved_bytes: float
    carried_bps: float


@dataclass(frozen=True)
class TransferTimeUnknown(Assumption):
    """Nothing has the recorded bandwidth: the answer is between all of `seen_ms` on the device changing, and none."""

    kind: ClassVar[str] = "transfer-time-unknown"
    device: str
    seen_ms: float


# Memory and input -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WorkGrows(Assumption):
    """All time that the data take grows with them; the plan and the coordinator's own time stay."""

    kind: ClassVar[str] = "work-grows"


@dataclass(frozen=True)
class MemorySuffices(Assumption):
    """More data still fit into memory, of which too little is known to say more."""

    kind: ClassVar[str] = "memory-suffices"


@dataclass(frozen=True)
class TasksFit(Assumption):
    """Every task still fits into memory with more data."""

    kind: ClassVar[str] = "tasks-fit"


@dataclass(frozen=True)
class TasksShortOfMemory(Assumption):
    """So many of all tasks would need more memory than they have, which costs nothing in the answer."""

    kind: ClassVar[str] = "tasks-short-of-memory"
    tasks: int
    total: int


@dataclass(frozen=True)
class MemorySufficed(Assumption):
    """Workers spilled nothing, and garbage collection took little; `delegates_spilled` is whether other processes did.

    `share` is that of garbage collection in task time.
    """

    kind: ClassVar[str] = "memory-sufficed"
    share: float
    delegates_spilled: bool


@dataclass(frozen=True)
class MissingMemory(Assumption):
    """Missing memory is written to disk and read once, at `rate_bps` bytes per second."""

    kind: ClassVar[str] = "missing-memory"
    rate_bps: float


@dataclass(frozen=True)
class SpillingScales(Assumption):
    """Spilling, `share` of task time, scales with its bytes."""

    kind: ClassVar[str] = "spilling-scales"
    share: float


@dataclass(frozen=True)
class PeakFits(Assumption):
    """Every task's peak memory still fits; cached and long-lived data do not count."""

    kind: ClassVar[str] = "peak-fits"


@dataclass(frozen=True)
class GarbageScales(Assumption):
    """Garbage collection, `share` of task time, runs `ratio` times as often."""

    kind: ClassVar[str] = "garbage-scales"
    share: float
    ratio: float


# Streams --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SpreadKept(Assumption):
    """Records spread over tasks as they did, whatever their number."""

    kind: ClassVar[str] = "spread-kept"


@dataclass(frozen=True)
class OneKey(Assumption):
    """The excess of the busiest task is one key's, which more tasks do not divide."""

    kind: ClassVar[str] = "one-key"


@dataclass(frozen=True)
class CrossingCpuKept(Assumption):
    """CPU time of network transfers, which is unknown, stays."""

    kind: ClassVar[str] = "crossing-cpu-kept"


@dataclass(frozen=True)
class SlotsUnused(Assumption):
    """More slots alone change nothing, for a job keeps its tasks."""

    kind: ClassVar[str] = "slots-unused"


@dataclass(frozen=True)
class TasksEvenOverWorkers(Assumption):
    """Tasks spread evenly over the workers."""

    kind: ClassVar[str] = "tasks-even-over-workers"


@dataclass(frozen=True)
class RecordsAlike(Assumption):
    """More records are of the same kind, and as unevenly spread over keys."""

    kind: ClassVar[str] = "records-alike"


@dataclass(frozen=True)
class SampledCpuScales(Assumption):
    """Time seen on the CPU scales inversely with its speed."""

    kind: ClassVar[str] = "sampled-cpu-scales"


@dataclass(frozen=True)
class OutsideLatencyKept(Assumption):
    """Answers from outside that these stations wait for take as long as they did."""

    kind: ClassVar[str] = "outside-latency-kept"
    stations: tuple[str, ...]


@dataclass(frozen=True)
class RestKept(Assumption):
    """What these stations sleep, or wait for outside, takes as long as it did."""

    kind: ClassVar[str] = "rest-kept"
    stations: tuple[str, ...]


@dataclass(frozen=True)
class BufferTimeout(Assumption):
    """Buffers are sent after `timeout_ms` at most, by default."""

    kind: ClassVar[str] = "buffer-timeout"
    timeout_ms: float


@dataclass(frozen=True)
class NetworkFree(Assumption):
    """The network, of unknown bandwidth, takes no time."""

    kind: ClassVar[str] = "network-free"


# Where recorded time went ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class InputCached(Assumption):
    """The input of so many stages was in the memory of workers: of `tasks` of their `total`."""

    kind: ClassVar[str] = "input-cached"
    stages: int
    tasks: int
    total: int


@dataclass(frozen=True)
class InputMixed(Assumption):
    """Input from a file system is read together with local files, so reading stays disk time."""

    kind: ClassVar[str] = "input-mixed"
    root: str


@dataclass(frozen=True)
class InputRemote(Assumption):
    """Input from a file system is read over the network; `unmeasured_by` is the framework that does not measure it."""

    kind: ClassVar[str] = "input-remote"
    root: str
    unmeasured_by: str | None


@dataclass(frozen=True)
class InputPartlyRemote(Assumption):
    """`tasks` of `total` read input from a file system on a machine without the data; the rest is as in InputRemote."""

    kind: ClassVar[str] = "input-partly-remote"
    root: str
    tasks: int
    total: int
    unmeasured_by: str | None


@dataclass(frozen=True)
class MoreInputs(Assumption):
    """Input from so many more file systems, likewise."""

    kind: ClassVar[str] = "more-inputs"
    count: int


@dataclass(frozen=True)
class DeviceNotModelled(Assumption):
    """A device computed for this run and is no resource of it."""

    kind: ClassVar[str] = "device-not-modelled"
    device: str
