"""Kinds of findings and advice of Spark alone."""

from __future__ import annotations

from typing import ClassVar, Literal

from crystalperf.indexes.frozen import frozen
from crystalperf.query.results.advice import Advice
from crystalperf.query.results.findings import Finding, IdleSlots, IdleStage
from crystalperf.query.results.kinds import Price

Scope = Literal["query", "job"]


@frozen
class UnaskedStage(IdleStage):
    """A stage for which dynamic allocation requested fewer slots than the run had at another time."""

    run_slots: int


@frozen
class UnaskedSlots(IdleSlots):
    """Slots that dynamic allocation did not request because stages had so few tasks."""

    stages: tuple[UnaskedStage, ...]


@frozen
class Compiling(Finding):
    """Tasks compiled generated code, or waited for another task's compilation."""

    kind: ClassVar[str] = "compiling"


@frozen
class ManySmallFiles(Finding):
    """`stage` and `other_stages` more read or wrote at most `files` files of `file_bytes` on average."""

    is_untimed: ClassVar[bool] = True

    stage: str
    other_stages: int
    files: int
    file_bytes: float


@frozen
class SmallFiles(ManySmallFiles):
    """Stages read many small files."""

    kind: ClassVar[str] = "small-files"


@frozen
class SmallOutput(ManySmallFiles):
    """Stages wrote many small files."""

    kind: ClassVar[str] = "small-output"


@frozen
class MergeScan(Finding):
    """MERGE commands scanned more files for matches than they changed: the one of `scope` scanned `files`, and replaced
    `replaced` of these."""

    kind: ClassVar[str] = "merge-scan"

    scope: str
    table: str | None
    files: int
    replaced: int


@frozen
class ReadAgain(Finding):
    """`readers` queries or jobs read the same rows from storage, in `stage` and `other_stages` more."""

    kind: ClassVar[str] = "repeated-reads"

    stage: str
    other_stages: int
    readers: int
    scope: Scope


@frozen
class Speculation(Finding):
    """Spark ran copies of slow tasks (speculation): `won` of `copies` copies ended before their originals.

    Attempts that lost ran for `lost_ms` of task time.  Without the copies, stages would have ended at least `saved_ms`
    later, because originals ran on for so long.  `stage` is the one with most losing time, `other_stages` are more.
    """

    kind: ClassVar[str] = "speculation"

    stage: str
    other_stages: int
    copies: int
    won: int
    lost_ms: float
    saved_ms: float

    @property
    def is_note(self) -> bool:
        return self.won > 0


Awaited = Literal["barrier", "profile", "executors", "unknown"]
"""The reason why a submitted stage waited although slots were free.

barrier    it is a barrier stage, whose tasks start together
profile    its resource profile needs executors of its own
executors  its tasks ran only on executors that came later
unknown    it never got a slot, and the log does not say why
"""


@frozen
class SlotsAwaited(Finding):
    """A submitted stage waited for slots although others were free, and `other_stages` more did.

    It has `tasks`.  Of the slots that it could use, `slots` were there when it was submitted, and `free` of them had no
    task.  `executor` is the last executor that was added before its first task, after `added_ms` of waiting; None if
    none was.  `profile` is its resource profile.
    """

    kind: ClassVar[str] = "slots-awaited"

    stage: str
    name: str
    other_stages: int
    why: Awaited
    tasks: int
    slots: int
    free: int
    profile: int
    started: bool
    executor: str | None
    added_ms: float | None


# Advice ---------------------------------------------------------------------------------------------------------------


@frozen
class GiveSchema(Advice):
    """Give the schema of files, which Spark otherwise reads or, with `inferred`, infers from all rows."""

    kind: ClassVar[str] = "give-schema"

    inferred: bool


@frozen
class PartitionWindow(Advice):
    """Give a window over all rows a partitionBy."""

    kind: ClassVar[str] = "partition-window"


Call = Literal["coalesce", "repartition"]
"""A call of a program that sets a number of partitions."""


@frozen
class RaisePartitions(Advice):
    """Raise the number of partitions that the program sets, or do without the call."""

    kind: ClassVar[str] = "raise-partitions"

    call: Call
    partitions: int


@frozen
class MergeFewerPartitions(Advice):
    """Let adaptive execution keep more of the small partitions that it merged."""

    kind: ClassVar[str] = "merge-fewer-partitions"
    requires: ClassVar[Price] = "setting"


@frozen
class SmallerFileParts(Advice):
    """Split files into smaller partitions."""

    kind: ClassVar[str] = "smaller-file-parts"
    requires: ClassVar[Price] = "setting"


@frozen
class MoreSlices(Advice):
    """Parallelize the collection into more slices."""

    kind: ClassVar[str] = "more-slices"


@frozen
class EvenCachedPartitions(Advice):
    """Repartition rows before they are cached."""

    kind: ClassVar[str] = "even-cached-partitions"


@frozen
class SplitKeys(Advice):
    """Split the few keys that hold most rows."""

    kind: ClassVar[str] = "split-keys"


@frozen
class SplittableFiles(Advice):
    """Write smaller files instead of one that cannot be split."""

    kind: ClassVar[str] = "splittable-files"


@frozen
class SmallerRowGroups(Advice):
    """Write smaller row groups: files have fewer of them than partitions."""

    kind: ClassVar[str] = "smaller-row-groups"


@frozen
class EvenFiles(Advice):
    """Write files of equal size."""

    kind: ClassVar[str] = "even-files"


@frozen
class CommitFewerFiles(Advice):
    """Write fewer files and partitions, or commit them without renames."""

    kind: ClassVar[str] = "commit-fewer-files"


@frozen
class ReuseGeneratedCode(Advice):
    """Keep executors, or run queries of the same shape together, so that code is compiled once."""

    kind: ClassVar[str] = "reuse-generated-code"
    requires: ClassVar[Price] = "setting"

    @property
    def at_start(self) -> bool:
        return True


@frozen
class MergeFiles(Advice):
    """Merge small files into large ones: those of `table`, if they belong to one of a lakehouse `format`."""

    kind: ClassVar[str] = "merge-files"

    format: Literal["delta", "iceberg"] | None = None
    table: str | None = None


@frozen
class NarrowMerge(Advice):
    """Let a MERGE skip files without rows that match."""

    kind: ClassVar[str] = "narrow-merge"


@frozen
class WriteFewerFiles(Advice):
    """Repartition rows before they are written; by the columns of partitionBy if there are `partitions` of these."""

    kind: ClassVar[str] = "write-fewer-files"

    partitions: int | None


@frozen
class CacheRows(Advice):
    """Cache the rows that several queries or jobs read."""

    kind: ClassVar[str] = "cache-rows"

    scope: Scope


@frozen
class ProvideSlots(Advice):
    """Let the slots that a stage needs be there before it is submitted."""

    kind: ClassVar[str] = "provide-slots"
    requires: ClassVar[Price] = "machine"

    why: Awaited
    tasks: int
    free: int


@frozen
class SpeculateLess(Advice):
    """Start copies of slow tasks later, or not at all."""

    kind: ClassVar[str] = "speculate-less"
    requires: ClassVar[Price] = "setting"
