"""Missing observations of a run, and what would provide them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from crystalperf.indexes.errors import Remedy
from crystalperf.query.results.kinds import Kind


@dataclass(frozen=True)
class Unseen(Kind):
    """Something that the data of a run does not show; `remedy` is what would show it, None if nothing would."""

    remedy: Remedy | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class SequenceContradicted(Unseen):
    """Recorded times contradict what the log says of which group waits for which; `problem` is the reader's."""

    kind: ClassVar[str] = "sequence-contradicted"

    problem: str


@dataclass(frozen=True)
class CodeUnlabelled(Unseen):
    """Sampled code that no index of its version labels: it is in no index, or in one of another version."""

    kind: ClassVar[str] = "code-unlabelled"

    problem: str


@dataclass(frozen=True)
class NoIndex(Unseen):
    """The run has samples, but no index of the sampled code."""

    kind: ClassVar[str] = "no-index"


@dataclass(frozen=True)
class NoSamples(Unseen):
    """The run has no stack samples."""

    kind: ClassVar[str] = "no-samples"


@dataclass(frozen=True)
class TimeUnmeasured(Unseen):
    """Time on no resource, because the framework does not measure it and the run has no samples.

    `storage` is whether reading and writing storage is part of that time.
    """

    kind: ClassVar[str] = "time-unmeasured"

    framework: str
    storage: bool


@dataclass(frozen=True)
class CodeUnsampled(TimeUnmeasured):
    """TimeUnmeasured for a framework whose processes can be sampled; `unusable` is whether recordings were given, but
    none was usable."""

    kind: ClassVar[str] = "code-unsampled"

    unusable: bool


@dataclass(frozen=True)
class CoordinatorUnsampled(Unseen):
    """The coordinator left no recording."""

    kind: ClassVar[str] = "coordinator-unsampled"


@dataclass(frozen=True)
class AllWorkersUnsampled(Unseen):
    """No worker left a recording."""

    kind: ClassVar[str] = "all-workers-unsampled"

    framework: str


@dataclass(frozen=True)
class WorkersUnsampled(Unseen):
    """Some of the workers that ran units left no recording; the recordings of the others represent them."""

    kind: ClassVar[str] = "workers-unsampled"

    workers: tuple[str, ...]
    of_workers: int


@dataclass(frozen=True)
class OperatorsUnknown(Unseen):
    """`share` of unit time could not be attributed to an operator: there are too few samples, or, if `framework` is
    set, no samples, and that framework times only some operators."""

    kind: ClassVar[str] = "operators-unknown"

    share: float
    framework: str | None


@dataclass(frozen=True)
class BlockedThreadsUnsampled(Unseen):
    """The recordings have neither wall-clock samples nor park events."""

    kind: ClassVar[str] = "blocked-threads-unsampled"


@dataclass(frozen=True)
class RecordingLeftOut(Unseen):
    """A recording that was not used: its file name, and the reason."""

    kind: ClassVar[str] = "recording-left-out"

    recording: str
    problem: str


@dataclass(frozen=True)
class MoreRecordingsLeftOut(Unseen):
    """`recordings` further recordings that were not used."""

    kind: ClassVar[str] = "more-recordings-left-out"

    recordings: int


@dataclass(frozen=True)
class CpuLimitUnknown(Unseen):
    """The CPU time of a stream's workers was not measured, so the rate that saturates them is unknown."""

    kind: ClassVar[str] = "cpu-limit-unknown"


@dataclass(frozen=True)
class RecordLatencyUnmeasured(Unseen):
    """No marker measured the latency of records; it is modelled from rates, busy time and queues."""

    kind: ClassVar[str] = "record-latency-unmeasured"
