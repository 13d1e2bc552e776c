"""The kinds of assumptions that answers about runs of any framework may have.

A kind has numbers and names only; query.text.assumptions writes the text.  A framework's own kinds are in its package.
"""

from __future__ import annotations

from typing import ClassVar

from crystalperf.indexes.frozen import frozen
from crystalperf.query.results.kinds import Kind
from crystalperf.query.results.refusals import Refusal


@frozen
class Assumption(Kind):
    """An assumption of an answer."""


# The prediction -------------------------------------------------------------------------------------------------------


@frozen
class OtherPredictor(Assumption):
    """Another predictor than CrystalPerf's own, by its name, made the prediction; it has no interval."""

    kind: ClassVar[str] = "other-predictor"
    predictor: str


@frozen
class NoTerm(Assumption):
    """A predictor has no term for these settings, by the user's words, so that they change nothing."""

    kind: ClassVar[str] = "no-term"
    predictor: str
    settings: tuple[str, ...]


@frozen
class NoInterval(Assumption):
    """No reruns have checked predictions of these settings, by the user's words."""

    kind: ClassVar[str] = "no-interval"
    settings: tuple[str, ...]


@frozen
class BetweenEnds(Assumption):
    """Unknown time has an optimistic and a pessimistic bound, close enough for a prediction between them."""

    kind: ClassVar[str] = "between-ends"
    unknown: Refusal


@frozen
class TimeImputed(Assumption):
    """Imputed task time: a log without samples does not show its resource, so other evidence divides it.

    `devices_ms` of it goes to devices, as in `recordings` other runs, and `cpu_wait_ms` to waiting for a CPU:
    `waits_per_cpu_second` is the CPU wait of the run's tasks without a device, None if that is from other runs, too.
    """

    kind: ClassVar[str] = "time-imputed"
    imputed_ms: float
    task_ms: float
    devices_ms: float
    cpu_wait_ms: float
    waits_per_cpu_second: float | None
    recordings: int


@frozen
class CacheMisses(Assumption):
    """`misses` of `reads` tasks had a cache miss and read the data again.

    With `ratio` times the memory for cached data, `misses_left` tasks would.
    """

    kind: ClassVar[str] = "cache-misses"
    misses: int
    reads: int
    ratio: float
    misses_left: int


# Slots and tasks ------------------------------------------------------------------------------------------------------


@frozen
class TasksKept(Assumption):
    """Stages keep their recorded tasks."""

    kind: ClassVar[str] = "tasks-kept"


@frozen
class WorkersStay(Assumption):
    """Workers that were lost or released in the recorded run stay until others replace them."""

    kind: ClassVar[str] = "workers-stay"


@frozen
class AddedSlots(Assumption):
    """Added slots have a CPU core of their own or share one; added workers have a node of their own."""

    kind: ClassVar[str] = "added-slots"
    with_cores: bool


@frozen
class NodeShared(Assumption):
    """Tasks on a node share its disk and its network equally."""

    kind: ClassVar[str] = "node-shared"


@frozen
class SlotsIdle(Assumption):
    """At most `busy` of `slots` slots have a task at a time."""

    kind: ClassVar[str] = "slots-idle"
    slots: int
    busy: int


@frozen
class CpuLimited(Assumption):
    """A worker gets at most as much CPU as the recorded ones used, in cores per slot."""

    kind: ClassVar[str] = "cpu-limited"
    cores: float


@frozen
class WorkEven(Assumption):
    """The tasks of each stage take equally long, and spreading the work costs nothing."""

    kind: ClassVar[str] = "work-even"


@frozen
class OperatorTime(Assumption):
    """An operator, by the user's word, took `time_ms` of `task_ms`."""

    kind: ClassVar[str] = "operator-time"
    operator: str
    time_ms: float
    task_ms: float


# Devices --------------------------------------------------------------------------------------------------------------


@frozen
class CpuTimeScales(Assumption):
    """CPU time scales inversely with the speed of a core, including the driver's."""

    kind: ClassVar[str] = "cpu-time-scales"


@frozen
class DeviceTimeScales(Assumption):
    """Time on a device scales inversely with its speed."""

    kind: ClassVar[str] = "device-time-scales"
    device: str


@frozen
class DeviceBandwidth(Assumption):
    """Time on a device whose bytes are unknown scales with its bandwidth, less the processing of each buffer."""

    kind: ClassVar[str] = "device-bandwidth"
    device: str


@frozen
class TransferTime(Assumption):
    """Of `seen_ms` on a device, the time of its bytes at the recorded bandwidth scales; the rest is latency."""

    kind: ClassVar[str] = "transfer-time"
    device: str
    seen_ms: float
    moved_bytes: float


@frozen
class TransferTimeAtLeast(Assumption):
    """TransferTime with an unknown recorded bandwidth, which is at least `carried_bps` (bytes per second)."""

    kind: ClassVar[str] = "transfer-time-at-least"
    device: str
    seen_ms: float
    moved_bytes: float
    carried_bps: float


@frozen
class TransferTimeUnknown(Assumption):
    """The recorded bandwidth is unknown: the prediction is between all of `seen_ms` on the device scaling, and none."""

    kind: ClassVar[str] = "transfer-time-unknown"
    device: str
    seen_ms: float


# Memory and input -----------------------------------------------------------------------------------------------------


@frozen
class WorkGrows(Assumption):
    """All time of processing data grows with the data; the plan and the driver's own time stay."""

    kind: ClassVar[str] = "work-grows"


@frozen
class MemorySuffices(Assumption):
    """More data still fit into memory, although too little is known about memory use to check that."""

    kind: ClassVar[str] = "memory-suffices"


@frozen
class TasksFit(Assumption):
    """Every task still fits into memory with more data."""

    kind: ClassVar[str] = "tasks-fit"


@frozen
class MemoryPressure(Assumption):
    """`tasks` of `total` tasks would need more memory than they have; the prediction adds no time for that."""

    kind: ClassVar[str] = "memory-pressure"
    tasks: int
    total: int


@frozen
class MemorySufficed(Assumption):
    """Workers spilled nothing, and garbage collection took little: `share` of task time.

    `delegates_spilled` is whether the processes that compute for them spilled.
    """

    kind: ClassVar[str] = "memory-sufficed"
    share: float
    delegates_spilled: bool


@frozen
class MissingMemory(Assumption):
    """Missing memory is written to disk and read once, at `rate_bps` bytes per second."""

    kind: ClassVar[str] = "missing-memory"
    rate_bps: float


@frozen
class SpillingScales(Assumption):
    """Spilling, `share` of task time, scales with its bytes."""

    kind: ClassVar[str] = "spilling-scales"
    share: float


@frozen
class LiveDataFits(Assumption):
    """Live data fits into `memory_bytes`, less than `safe_bytes`, in which all fits that was in use, garbage too."""

    kind: ClassVar[str] = "live-data-fits"
    memory_bytes: float
    safe_bytes: float


@frozen
class PeakFits(Assumption):
    """Every task's peak memory still fits; cached and long-lived data do not count."""

    kind: ClassVar[str] = "peak-fits"


@frozen
class GarbageCollectionScales(Assumption):
    """Garbage collection, `share` of task time, runs `ratio` times as often."""

    kind: ClassVar[str] = "garbage-collection-scales"
    share: float
    ratio: float


# Streams --------------------------------------------------------------------------------------------------------------


@frozen
class SpreadKept(Assumption):
    """Records are spread over tasks as in the recorded run, for any number of tasks."""

    kind: ClassVar[str] = "spread-kept"


@frozen
class OneKey(Assumption):
    """The excess of the busiest task belongs to one key, which more tasks do not divide."""

    kind: ClassVar[str] = "one-key"


@frozen
class CrossingCpuKept(Assumption):
    """The CPU time of network transfers is unknown and does not change."""

    kind: ClassVar[str] = "crossing-cpu-kept"


@frozen
class SlotsUnused(Assumption):
    """More slots alone change nothing, because a job keeps its tasks."""

    kind: ClassVar[str] = "slots-unused"


@frozen
class TasksEvenOverWorkers(Assumption):
    """Tasks spread evenly over the workers."""

    kind: ClassVar[str] = "tasks-even-over-workers"


@frozen
class RecordsAlike(Assumption):
    """More records are of the same kind and have the same key skew."""

    kind: ClassVar[str] = "records-alike"


@frozen
class SampledCpuScales(Assumption):
    """Time sampled on the CPU scales inversely with its speed."""

    kind: ClassVar[str] = "sampled-cpu-scales"


@frozen
class OutsideLatencyKept(Assumption):
    """External responses that these stations wait for take as long as in the recorded run."""

    kind: ClassVar[str] = "outside-latency-kept"
    stations: tuple[str, ...]


@frozen
class RestKept(Assumption):
    """Sleeping and external waiting in these stations take as long as in the recorded run."""

    kind: ClassVar[str] = "rest-kept"
    stations: tuple[str, ...]


@frozen
class BufferTimeout(Assumption):
    """Buffers are sent after `timeout_ms` at most, by default."""

    kind: ClassVar[str] = "buffer-timeout"
    timeout_ms: float


@frozen
class StateKept(Assumption):
    """The work for a row, and the state that it is compared with, are those of the recorded batches."""

    kind: ClassVar[str] = "state-kept"


@frozen
class BatchesUnlimited(Assumption):
    """No setting of the sources limits the rows of a batch."""

    kind: ClassVar[str] = "batches-unlimited"


@frozen
class RateProcessed(Assumption):
    """The recorded stream fell behind, so its recorded rate is that of the processed rows, not of those that came."""

    kind: ClassVar[str] = "rate-processed"


@frozen
class OtherStreamsKept(Assumption):
    """`count` other streams of the run keep their rates."""

    kind: ClassVar[str] = "other-streams-kept"
    count: int


@frozen
class RowsEvenOverTasks(Assumption):
    """The rows of a batch are spread evenly over the tasks of its stages."""

    kind: ClassVar[str] = "rows-even-over-tasks"


@frozen
class NetworkFree(Assumption):
    """The network, of unknown bandwidth, takes no time."""

    kind: ClassVar[str] = "network-free"


# Where recorded time went ---------------------------------------------------------------------------------------------


@frozen
class InputCached(Assumption):
    """The input of `tasks` of the `total` tasks of `stages` stages was cached in the memory of workers."""

    kind: ClassVar[str] = "input-cached"
    stages: int
    tasks: int
    total: int


@frozen
class InputMixed(Assumption):
    """Input from a file system is read together with local files, so reading stays disk time."""

    kind: ClassVar[str] = "input-mixed"
    root: str


@frozen
class InputRemote(Assumption):
    """Input from a file system is read over the network; `unmeasured_by` is the framework that does not measure it."""

    kind: ClassVar[str] = "input-remote"
    root: str
    unmeasured_by: str | None


@frozen
class InputPartlyRemote(Assumption):
    """`tasks` of `total` read input from a file system on a machine without the data; otherwise as InputRemote."""

    kind: ClassVar[str] = "input-partly-remote"
    root: str
    tasks: int
    total: int
    unmeasured_by: str | None


@frozen
class MoreInputs(Assumption):
    """The assumptions about input apply to `count` more file systems."""

    kind: ClassVar[str] = "more-inputs"
    count: int


@frozen
class DeviceNotModelled(Assumption):
    """A device computed for this run, but is not one of its resources."""

    kind: ClassVar[str] = "device-not-modelled"
    device: str
