"""The kinds of refusals that runs of any framework may have: why there is no prediction.

A kind has numbers and names only; query.text.refusals writes the text.  Known bounds are in Prediction.bound_ms.  A
framework's own kinds are in its package.
"""

from __future__ import annotations

from typing import ClassVar

from crystalperf.indexes.errors import NoAnswerError, Remedy
from crystalperf.indexes.frozen import frozen
from crystalperf.query.results.kinds import Kind


@frozen
class Refusal(Kind):
    """The reason why there is no prediction."""

    @property
    def remedy(self) -> Remedy | None:
        """The remedy for the user; None if nothing helps."""
        return None


class RefusedError(NoAnswerError):
    """A refusal, raised by the simulation; predict() and Run.predict() return it as a value.

    The runtime is at least `low` or at most `high` times the recorded one, if these are given.
    """

    def __init__(self, refusal: Refusal, *, low: float | None = None, high: float | None = None) -> None:
        super().__init__(refusal.kind, refusal.remedy)
        self.refusal, self.low, self.high = refusal, low, high


# The setting ----------------------------------------------------------------------------------------------------------


@frozen
class InvalidQuestion(Refusal):
    """One of several settings is invalid for this run, such as half a worker; `error` says why."""

    kind: ClassVar[str] = "invalid-question"
    error: str


@frozen
class RecordedValueUnknown(Refusal):
    """An absolute value, `asked` as KEY=VALUE, of a `setting` whose recorded value is unknown."""

    kind: ClassVar[str] = "recorded-value-unknown"
    asked: str
    setting: str

    @property
    def remedy(self) -> Remedy:
        return Remedy("state what the run had", {"setting": self.setting})


@frozen
class PredictorNotForRun(Refusal):
    """A predictor, by its name, has terms for these kinds of runs only, and the run is of another `kind_of_run`."""

    kind: ClassVar[str] = "predictor-not-for-run"
    predictor: str
    kinds: tuple[str, ...]
    kind_of_run: str


@frozen
class PredictorNeedsRuns(Refusal):
    """A predictor needs at least `least` other runs of the job, and `given` are given."""

    kind: ClassVar[str] = "predictor-needs-runs"
    predictor: str
    least: int
    given: int

    @property
    def remedy(self) -> Remedy:
        return Remedy("name other runs")


@frozen
class RunsAlike(Refusal):
    """A predictor is fitted to runs that all have the same `what`, slots or input, and the scenario changes it."""

    kind: ClassVar[str] = "runs-alike"
    predictor: str
    what: str

    @property
    def remedy(self) -> Remedy:
        return Remedy("name other runs")


@frozen
class UsefulTimeUnknown(Refusal):
    """A predictor needs the useful time of a stream's stations, and none was recorded."""

    kind: ClassVar[str] = "useful-time-unknown"
    predictor: str


@frozen
class ExchangeUnknown(Refusal):
    """A predictor needs the bytes that the processes of a training exchange, and the trace has none."""

    kind: ClassVar[str] = "exchange-unknown"
    predictor: str


@frozen
class BandwidthNotStated(Refusal):
    """A predictor needs the recorded bandwidth of a device, by its `setting`, and it is unknown."""

    kind: ClassVar[str] = "bandwidth-not-stated"
    predictor: str
    setting: str

    @property
    def remedy(self) -> Remedy:
        return Remedy("state a setting", {"setting": self.setting})


@frozen
class LatencyNotPredicted(Refusal):
    """A predictor, by its name, gives the highest rate of a stream and no time of a record."""

    kind: ClassVar[str] = "latency-not-predicted"
    predictor: str


@frozen
class RerunNotPredicted(Refusal):
    """Another run of the job whose scenario has no prediction for `refusals`, or no interval where there are none."""

    kind: ClassVar[str] = "rerun-not-predicted"
    run: str
    setting: str
    refusals: tuple[Refusal, ...]


# Extrapolation --------------------------------------------------------------------------------------------------------


@frozen
class SlotsOutOfRange(Refusal):
    """`ratio` times the slots, more than `most_ratio` times either way."""

    kind: ClassVar[str] = "slots-out-of-range"
    ratio: float
    most_ratio: float


@frozen
class SendersOutOfRange(Refusal):
    """`ratio` times the workers, so that each task reads from more than `most_ratio` times the recorded senders."""

    kind: ClassVar[str] = "senders-out-of-range"
    ratio: float
    most_ratio: float


@frozen
class RemoteReadsUnknown(Refusal):
    """All exchanged data were local in the recorded run, but would cross the network with more workers."""

    kind: ClassVar[str] = "remote-reads-unknown"


@frozen
class CacheFull(Refusal):
    """Cached data did not fit into memory in the recorded run, and would have less memory."""

    kind: ClassVar[str] = "cache-full"


@frozen
class CacheTooSmall(Refusal):
    """Workers cached so many bytes, but would have memory for fewer, or for hardly more than an uneven spread needs."""

    kind: ClassVar[str] = "cache-too-small"
    cached_bytes: float
    capacity_bytes: float


@frozen
class PlanUnknown(Refusal):
    """How a framework, by its title, would repartition its stages is unknown."""

    kind: ClassVar[str] = "plan-unknown"
    framework: str


@frozen
class WorkersUnknown(Refusal):
    """The log names no workers, so the number of slots is unknown."""

    kind: ClassVar[str] = "workers-unknown"


@frozen
class SlotsTooFew(Refusal):
    """The tasks of one pipeline need more slots at a time than there are."""

    kind: ClassVar[str] = "slots-too-few"


@frozen
class NoWorkerLeft(Refusal):
    """The recorded workers had ended before all tasks had run in the replay."""

    kind: ClassVar[str] = "no-worker-left"


# Missing from the log -------------------------------------------------------------------------------------------------


@frozen
class TasksWithoutEnd(Refusal):
    """`tasks` of `total` tasks have no end in the log."""

    kind: ClassVar[str] = "tasks-without-end"
    tasks: int
    total: int


@frozen
class TimeUnknown(Refusal):
    """The run has no samples, and for `share` of its task time nothing else shows the resource."""

    kind: ClassVar[str] = "time-unknown"
    share: float


@frozen
class SpillTimeUnknown(Refusal):
    """The run has no samples, and nothing else shows how long it spilled."""

    kind: ClassVar[str] = "spill-time-unknown"


@frozen
class BandwidthUnknown(Refusal):
    """The speed of the run's devices, by name, is unknown."""

    kind: ClassVar[str] = "bandwidth-unknown"
    devices: tuple[str, ...]


# Memory ---------------------------------------------------------------------------------------------------------------


@frozen
class MemoryUnknown(Refusal):
    """The memory of each worker is unknown; `setting` is the user's word for it."""

    kind: ClassVar[str] = "memory-unknown"
    setting: str

    @property
    def remedy(self) -> Remedy:
        return Remedy("state a setting", {"setting": self.setting})


@frozen
class MemoryBelowMinimum(Refusal):
    """The memory is below the minimum with which a worker of the framework, by its title, starts."""

    kind: ClassVar[str] = "memory-below-minimum"
    framework: str
    memory_bytes: float
    least_bytes: float


@frozen
class MemoryRunsOut(Refusal):
    """With this memory, a worker would likely run out: it needed at least `floor_bytes`, garbage left out."""

    kind: ClassVar[str] = "memory-runs-out"
    memory_bytes: float
    floor_bytes: float


@frozen
class MemoryNeedUnknown(Refusal):
    """The memory that the run needed is unknown."""

    kind: ClassVar[str] = "memory-need-unknown"


@frozen
class SpilledMemoryUnknown(Refusal):
    """The memory that the spilled data, `disk_bytes` on disk, had taken is not in the log."""

    kind: ClassVar[str] = "spilled-memory-unknown"
    disk_bytes: float


@frozen
class GarbageCollectionSavingUnknown(Refusal):
    """The effect of more memory on garbage collection, which took `share` of task time, is unknown."""

    kind: ClassVar[str] = "garbage-collection-saving-unknown"
    share: float


@frozen
class LiveHeapUnknown(Refusal):
    """The size of the live heap is unknown, and garbage collection took `share` of task time already."""

    kind: ClassVar[str] = "live-heap-unknown"
    share: float


# Streams --------------------------------------------------------------------------------------------------------------


@frozen
class NotModelledForStreams(Refusal):
    """The effect of a setting, by the user's word, on a stream is not modelled."""

    kind: ClassVar[str] = "not-modelled-for-streams"
    setting: str


@frozen
class RateUnknown(Refusal):
    """The rate of the stream's sources is unknown."""

    kind: ClassVar[str] = "rate-unknown"


@frozen
class SpreadOutOfRange(Refusal):
    """`ratio` times the tasks of a station, more than `most_ratio` times either way."""

    kind: ClassVar[str] = "spread-out-of-range"
    station: str
    ratio: float
    most_ratio: float


@frozen
class BusyTimeUnknown(Refusal):
    """For `share` of the stations' busy time no resource was recorded, and the speed of a device changes."""

    kind: ClassVar[str] = "busy-time-unknown"
    share: float
    device: str


@frozen
class LimitNotMeasured(Refusal):
    """The stream is limited between two stations, unmeasured: the source waits, and the target has time left."""

    kind: ClassVar[str] = "limit-not-measured"
    source: str
    target: str
    target_busy_share: float
    network_known: bool


@frozen
class AtLimit(Refusal):
    """The recorded run was at its limit, so the latency is that of full buffers."""

    kind: ClassVar[str] = "at-limit"


@frozen
class RateBeyondMeasured(Refusal):
    """A rate above `sustained_per_s`, which is a lower bound: it is more than `most_ratio` times the recorded rate."""

    kind: ClassVar[str] = "rate-beyond-measured"
    rate_per_s: float
    sustained_per_s: float
    most_ratio: float


@frozen
class RateNotSustained(Refusal):
    """A rate above the highest, `sustained_per_s`; `limit` is full first: a station, worker or hop, SOURCE>TARGET."""

    kind: ClassVar[str] = "rate-not-sustained"
    rate_per_s: float
    sustained_per_s: float
    limit: str
    limit_kind: str


@frozen
class RateNearLimit(Refusal):
    """A rate so near the sustained one that a small error in that changes the latency by a large factor.

    `is_lower_bound` is whether `sustained_per_s` is a lower bound.
    """

    kind: ClassVar[str] = "rate-near-limit"
    rate_per_s: float
    sustained_per_s: float
    is_lower_bound: bool


@frozen
class TooFewBatches(Refusal):
    """After its warm-up, the stream has only so many batches with rows; `least` show how their time depends on rows."""

    kind: ClassVar[str] = "too-few-batches"
    batches: int
    least: int


@frozen
class BatchesAlike(Refusal):
    """All batches have about the same number of rows, so how much of their time is per row is unknown."""

    kind: ClassVar[str] = "batches-alike"
    batches: int
    rows: float


@frozen
class RowTimeUncertain(Refusal):
    """The time of a batch varies for other reasons than its rows, so that the time of a row is within a wide range."""

    kind: ClassVar[str] = "row-time-uncertain"
    batches: int
    low_row_ms: float
    high_row_ms: float


@frozen
class BatchStagesDiffer(Refusal):
    """Batches run different stages, or the number of slots is unknown; so the effect of a setting is unknown."""

    kind: ClassVar[str] = "batch-stages-differ"
    setting: str


@frozen
class BufferTimeUnknown(Refusal):
    """Most of the latency is time in buffers that fill, whose timeout is unknown."""

    kind: ClassVar[str] = "buffer-time-unknown"
