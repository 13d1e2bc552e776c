"""Missing observations of a run, and what would provide them."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from crystalperf.indexes.errors import Remedy
from crystalperf.indexes.frozen import frozen
from crystalperf.query.results.kinds import Kind


@frozen
class NotRecorded(Kind):
    """Something that the data of a run does not show; `remedy` is what would show it, None if nothing would."""

    remedy: Remedy | None = field(default=None, kw_only=True)


@frozen
class SequenceContradicted(NotRecorded):
    """Recorded times contradict what the log says of which stage waits for which; `problem` is the reader's."""

    kind: ClassVar[str] = "sequence-contradicted"

    problem: str


@frozen
class CodeUnlabelled(NotRecorded):
    """Sampled code that no index of its version labels: it is in no index, or in one of another version."""

    kind: ClassVar[str] = "code-unlabelled"

    problem: str


@frozen
class NoIndex(NotRecorded):
    """The run has samples, but no index of the sampled code."""

    kind: ClassVar[str] = "no-index"


@frozen
class NoSamples(NotRecorded):
    """The run has no stack samples."""

    kind: ClassVar[str] = "no-samples"


@frozen
class TimeUnmeasured(NotRecorded):
    """Time on no resource, because the framework does not measure it and the run has no samples.

    `storage` is whether reading and writing storage is part of that time.
    """

    kind: ClassVar[str] = "time-unmeasured"

    framework: str
    storage: bool


@frozen
class CodeUnsampled(TimeUnmeasured):
    """TimeUnmeasured for a framework whose processes can be sampled; `unusable` is whether recordings were given, but
    none was usable."""

    kind: ClassVar[str] = "code-unsampled"

    unusable: bool


@frozen
class DriverUnsampled(NotRecorded):
    """The driver left no recording."""

    kind: ClassVar[str] = "driver-unsampled"


@frozen
class AllWorkersUnsampled(NotRecorded):
    """No worker left a recording."""

    kind: ClassVar[str] = "all-workers-unsampled"

    framework: str


@frozen
class WorkersUnsampled(NotRecorded):
    """Some of the workers that ran tasks left no recording; the recordings of the others represent them."""

    kind: ClassVar[str] = "workers-unsampled"

    workers: tuple[str, ...]
    of_workers: int


@frozen
class OperatorsUnknown(NotRecorded):
    """`share` of task time could not be attributed to an operator: there are too few samples, or, if `framework` is
    set, no samples, and that framework times only some operators."""

    kind: ClassVar[str] = "operators-unknown"

    share: float
    framework: str | None


@frozen
class BlockedThreadsUnsampled(NotRecorded):
    """The recordings have neither wall-clock samples nor park events."""

    kind: ClassVar[str] = "blocked-threads-unsampled"


@frozen
class RecordingLeftOut(NotRecorded):
    """A recording that was not used: its file name, and the reason."""

    kind: ClassVar[str] = "recording-left-out"

    recording: str
    problem: str


@frozen
class MoreRecordingsLeftOut(NotRecorded):
    """`recordings` further recordings that were not used."""

    kind: ClassVar[str] = "more-recordings-left-out"

    recordings: int


@frozen
class CpuLimitUnknown(NotRecorded):
    """The CPU time of a stream's workers was not measured, so the rate that saturates them is unknown."""

    kind: ClassVar[str] = "cpu-limit-unknown"


@frozen
class RecordLatencyUnmeasured(NotRecorded):
    """No marker measured the latency of records; it is modelled from rates, busy time and queues."""

    kind: ClassVar[str] = "record-latency-unmeasured"
