"""What the data of a run does not show, and what would show it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from crystalperf.indexes.errors import Remedy
from crystalperf.query.results.kinds import Kind


@dataclass(frozen=True)
class Unseen(Kind):
    """Something that the data of a run does not show; `remedy` is what would show it, None where nothing would."""

    remedy: Remedy | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class SequenceContradicted(Unseen):
    """Recorded times contradict what the log says of which group waits for which; `problem` is the reader's."""

    kind: ClassVar[str] = "sequence-contradicted"

    problem: str


@dataclass(frozen=True)
class CodeUnlabelled(Unseen):
    """Sampled code without a label of its own version: in no index, or in one of another version."""

    kind: ClassVar[str] = "code-unlabelled"

    problem: str


@dataclass(frozen=True)
class NoIndex(Unseen):
    """There are samples, and no index of the code that they are in."""

    kind: ClassVar[str] = "no-index"


@dataclass(frozen=True)
class NoSamples(Unseen):
    """The run has no stack samples."""

    kind: ClassVar[str] = "no-samples"


@dataclass(frozen=True)
class TimeUnmeasured(Unseen):
    """Time that is on no resource, for the framework does not measure it and there are no samples.

    `storage`: reading and writing storage is part of that.
    """

    kind: ClassVar[str] = "time-unmeasured"

    framework: str
    storage: bool


@dataclass(frozen=True)
class CodeUnsampled(TimeUnmeasured):
    """The same of a framework whose processes can be sampled; `unusable`: recordings were given, and none could be
    used."""

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
    """Some of the workers that ran units left no recording; the others stand for them."""

    kind: ClassVar[str] = "workers-unsampled"

    workers: tuple[str, ...]
    of_workers: int


@dataclass(frozen=True)
class OperatorsUnknown(Unseen):
    """This share of unit time could be given to no operator: for want of samples, or with `framework` because that
    times only some operators and there are no samples."""

    kind: ClassVar[str] = "operators-unknown"

    share: float
    framework: str | None


@dataclass(frozen=True)
class BlockedThreadsUnsampled(Unseen):
    """The recordings have neither wall-clock samples nor park events."""

    kind: ClassVar[str] = "blocked-threads-unsampled"


@dataclass(frozen=True)
class RecordingLeftOut(Unseen):
    """A recording that says nothing of the run, by its file's name, and why."""

    kind: ClassVar[str] = "recording-left-out"

    recording: str
    problem: str


@dataclass(frozen=True)
class MoreRecordingsLeftOut(Unseen):
    """So many more recordings say nothing of the run."""

    kind: ClassVar[str] = "more-recordings-left-out"

    recordings: int


@dataclass(frozen=True)
class CpuLimitUnknown(Unseen):
    """The CPU time of a stream's workers was not measured, so when it runs out is not known."""

    kind: ClassVar[str] = "cpu-limit-unknown"


@dataclass(frozen=True)
class RecordLatencyUnmeasured(Unseen):
    """No marker measured the time of a record through the stream; it follows from rates, busy time and queues."""

    kind: ClassVar[str] = "record-latency-unmeasured"
