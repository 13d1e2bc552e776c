"""Kinds of recommendations of Spark alone."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar, Literal

from crystalperf.indexes.frozen import frozen
from crystalperf.query.frameworks.spark.findings import Call
from crystalperf.query.results.findings import StageCost
from crystalperf.query.results.recommendations import (
    Affected,
    ChangeSetting,
    LessMemory,
    MoreMemory,
    MoreWorkers,
    Recommendation,
    Value,
)
from crystalperf.query.trace.vocabulary import Exhausted

# Numbers of tasks -----------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class SetPartitions(ChangeSetting):
    """Another number of partitions, by the setting that determined the tasks of these stages."""

    kind: ClassVar[str] = "set-partitions"

    stages: Affected


@frozen(kw_only=True)
class ListFoldersInFewerTasks(ChangeSetting):
    """Fewer tasks that list folders: Spark uses one task per folder."""

    kind: ClassVar[str] = "list-folders-in-fewer-tasks"

    stages: Affected


@frozen(kw_only=True)
class KeepPartitions(ChangeSetting):
    """Prevent adaptive execution from merging partitions to fewer than there are slots."""

    kind: ClassVar[str] = "keep-partitions"

    stages: Affected


@frozen(kw_only=True)
class CutFilesSmaller(ChangeSetting):
    """Have Spark split files into smaller partitions."""

    kind: ClassVar[str] = "cut-files-smaller"

    stages: Affected


@frozen(kw_only=True)
class CutFilesLarger(ChangeSetting):
    """Have Spark split files into larger partitions."""

    kind: ClassVar[str] = "cut-files-larger"

    stages: Affected


@frozen(kw_only=True)
class SkipLocalityWait(ChangeSetting):
    """Let idle executors run tasks whose data are on another executor.

    `on_one_executor` is the number of the stage's tasks that ran on one executor, None if most did not.
    """

    kind: ClassVar[str] = "skip-locality-wait"

    stages: Affected
    on_one_executor: int | None


@frozen(kw_only=True)
class InProgram(Recommendation):
    """A number of partitions that the program sets; `sql` is whether of a DataFrame, else of an RDD."""

    partitions: int
    stages: Affected
    sql: bool

    @property
    def changes(self) -> frozenset[Hashable]:
        """The partitions of DataFrames, or of RDDs: a program has one place that matters most for each."""
        return super().changes | {("partitions", self.sql)}


@frozen(kw_only=True)
class AskForPartitions(InProgram):
    """Request more partitions where the program requests few, with `call` if the plan shows it."""

    kind: ClassVar[str] = "ask-for-partitions"

    call: Call | None = None


@frozen(kw_only=True)
class ReadInPartitions(InProgram):
    """Request more partitions where the program reads files as an RDD."""

    kind: ClassVar[str] = "read-in-partitions"


@frozen(kw_only=True)
class SpreadRows(InProgram):
    """Repartition rows to more tasks after reading; `with_data` is the number of a stage's tasks with input."""

    kind: ClassVar[str] = "spread-rows"

    with_data: int


@frozen(kw_only=True)
class SplitFiles(Recommendation):
    """Store files so that Spark can split them, into `partitions` tasks or more.

    Repartitioning their rows takes longer: a task still reads and parses a whole file, and then shuffles all rows
    (research/2026-11-29-advice-proven.md).
    """

    kind: ClassVar[str] = "split-files"

    partitions: int
    stages: Affected


@frozen(kw_only=True)
class CutCollection(InProgram):
    """Another number of partitions of a local collection, or of data that the program partitions itself."""

    kind: ClassVar[str] = "cut-collection"

    more: bool


@frozen(kw_only=True)
class ReduceInPartitions(Recommendation):
    """Request more partitions where a shuffle of RDDs is written; `reads` is the call site that reads it."""

    kind: ClassVar[str] = "reduce-in-partitions"

    partitions: int
    stages: Affected
    reads: str


# Rows and files -------------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class GiveSchema(Recommendation):
    """Give the schema where files are read: `jobs` jobs only read it, or with `inferred` infer it from all rows."""

    kind: ClassVar[str] = "give-schema"

    jobs: int
    stage: str
    name: str
    inferred: bool


Splittable = Literal["join", "aggregation", "window", "repartition", "unknown"]
"""The operator that groups the rows of a key, by which the lines that add salt differ."""


@frozen(kw_only=True)
class SplitKeys(Recommendation):
    """Split the few keys that hold most rows of an `operator`; `evidence` is the stage that shows them best, and has
    `slots`."""

    kind: ClassVar[str] = "split-keys"

    evidence: StageCost
    operator: Splittable = "unknown"
    slots: int = 0


@frozen(kw_only=True)
class SplitSkewedJoin(ChangeSetting):
    """Have adaptive execution split the large partitions of a join.

    `threshold_bytes` is the minimum size that it splits, if `largest_bytes`, the largest partition, is smaller; else
    None.
    """

    kind: ClassVar[str] = "split-skewed-join"

    stage: str
    largest_bytes: float
    threshold_bytes: float | None


@frozen(kw_only=True)
class PartitionWindow(Recommendation):
    """Give a window a partitionBy, because without one a single task computes it."""

    kind: ClassVar[str] = "partition-window"

    stage: str


@frozen(kw_only=True)
class SendFewerRows(Recommendation):
    """Send fewer rows to the driver: a stage sent `sent_bytes`, as did `others` more."""

    kind: ClassVar[str] = "send-fewer-rows"

    stage: str
    name: str
    sent_bytes: float
    others: int


@frozen(kw_only=True)
class AvoidBroadcast(SendFewerRows):
    """Join without broadcasting a large table, which passes through the driver."""

    kind: ClassVar[str] = "avoid-broadcast"


@frozen(kw_only=True)
class ProfilePython(Recommendation):
    """Make the Python code faster that tasks wait for; with `scalar_udf` it has functions of one row at a time.

    `functions` are the names of its functions, those of the stage with the most time first; empty if no plan has them.
    """

    kind: ClassVar[str] = "profile-python"

    stage: str
    name: str
    scalar_udf: bool
    functions: tuple[str, ...] = ()


@frozen(kw_only=True)
class OfPython(Recommendation):
    """A change of a stage with Python workers, of whose task time a part has this `share`."""

    stage: str
    name: str
    share: float


@frozen(kw_only=True)
class SpeedUpPython(OfPython):
    """Make a user's Python function faster: the user's code has that share.

    `function` has the most time of its own, at `where`; `vectorizes` is whether it takes one row at a time.
    """

    kind: ClassVar[str] = "speed-up-python"

    function: str
    where: str | None
    vectorizes: bool


@frozen(kw_only=True)
class RewritePython(OfPython):
    """Replace a function of one row by Spark SQL functions, or by a pandas UDF: serialization has that share."""

    kind: ClassVar[str] = "rewrite-python"

    function: str | None


@frozen(kw_only=True)
class UseArrow(OfPython, ChangeSetting):
    """Send rows to functions of one row by Arrow instead of pickle: serialization has that share."""

    kind: ClassVar[str] = "use-arrow"


@frozen(kw_only=True)
class SendFewerColumns(OfPython):
    """Send fewer columns to functions of whole rows: serialization has that share, of `sent_bytes` if known."""

    kind: ClassVar[str] = "send-fewer-columns"

    sent_bytes: float | None


@frozen(kw_only=True)
class ReusePythonWorkers(OfPython, ChangeSetting):
    """Keep Python workers for later tasks: their start has that share."""

    kind: ClassVar[str] = "reuse-python-workers"


@frozen(kw_only=True)
class LessPythonMemory(Recommendation):
    """Use less memory in a user's Python function, because a worker or an executor ran out of it.

    The line at `where` raises a worker's memory by `grown_bytes`, to `most_bytes`: means over `calls`.  Python keeps
    memory that it freed, so often only the first calls of a worker raise it.  `settings` send it fewer rows at a time;
    they are empty if it gets whole groups (`by_groups`), or few rows already.
    """

    kind: ClassVar[str] = "less-python-memory"

    stage: str
    name: str
    function: str
    where: str | None
    calls: int
    grown_bytes: float
    most_bytes: float
    by_groups: bool


# Engines --------------------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class RunInEngine(Recommendation):
    """Let the `engine` run the `operators` of a plan that stayed on the JVM; the one nearest to the input comes first.
    `reason` is why they stayed, None if the log does not have it.

    The stage with most of their time has these shares of its task time: the operators' own, and conversions of rows and
    columns around them.  `others` is the number of further fallbacks like it.  Without a reason, `settings` has what
    makes the engine say it, in the event log or, if `in_event_log` is false, in the driver's.
    """

    kind: ClassVar[str] = "native-fallback"

    engine: str
    in_event_log: bool
    operators: tuple[str, ...]
    reason: str | None
    stage: str
    name: str
    jvm_share: float
    conversion_share: float
    others: int = 0


# Memory and executors -------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class FitTasksInMemory(ChangeSetting):
    """More partitions of a shuffle, so that a task's rows fit its memory."""

    kind: ClassVar[str] = "fit-tasks-in-memory"

    stage: str


@frozen(kw_only=True)
class ExtendMemory(MoreMemory):
    """More of the exhausted memory."""

    kind: ClassVar[str] = "extend-memory"

    exhausted: Exhausted


@frozen(kw_only=True)
class RightSizeMemory(LessMemory):
    """Heaps as large as they need to be: of `heap_bytes`, at most `used_bytes` were in use, garbage included.

    `share` is the share of the run's memory times time that this frees; with a heap below `floor_bytes`, an executor
    would likely have run out.
    """

    kind: ClassVar[str] = "right-size-memory"

    heap_bytes: float
    used_bytes: float
    floor_bytes: float
    share: float


@frozen(kw_only=True)
class FewerTasksPerGpu(ChangeSetting):
    """Fewer concurrent tasks on a GPU, whose memory was full."""

    kind: ClassVar[str] = "fewer-tasks-per-gpu"


@frozen(kw_only=True)
class MoreExecutors(MoreWorkers):
    """More executors; `asked` is how many the run requested, if more than started."""

    kind: ClassVar[str] = "more-executors"

    asked: int | None = None


@frozen(kw_only=True)
class MoreLocalSlots(ChangeSetting):
    """More slots of a local master."""

    kind: ClassVar[str] = "more-local-slots"


@frozen(kw_only=True)
class StartExecutorsEarlier(ChangeSetting):
    """Have dynamic allocation request all executors at the start."""

    kind: ClassVar[str] = "start-executors-earlier"


@frozen(kw_only=True)
class CheckCapacity(Recommendation):
    """Check that the cluster has capacity for one executor of these settings, because none ever started."""

    kind: ClassVar[str] = "check-capacity"

    executor_cores: Value
    executor_memory: str
    is_default_memory: bool


@frozen(kw_only=True)
class ReadDriverLog(Recommendation):
    """Look in the driver's log for why the program stopped Spark while work was running."""

    kind: ClassVar[str] = "read-driver-log"

    failed: str
