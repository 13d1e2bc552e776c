"""Kinds of remarks of Spark alone: streaming queries, Python functions, engines, and heaps near their limit."""

from __future__ import annotations

from typing import ClassVar, Literal

from crystalperf.indexes.frozen import frozen
from crystalperf.query.frameworks.spark.findings import SlotsAwaited
from crystalperf.query.results.remarks import Remark

Pace = Literal["falls-behind", "no-headroom", "keeps-up", "unknown"]
"""Whether a query keeps up.

falls-behind  more arrived than could be processed, or its sources' backlog grew
no-headroom   batches run nearly all the time: no spare capacity
keeps-up      less arrived than could be processed
unknown       the log has no rates
"""


@frozen
class BatchPart:
    """A part of a batch, by Spark's key, and its share of the time in triggers."""

    key: str
    share: float


@frozen
class StreamingQuery(Remark):
    """A streaming query's batches, what they spent most time on, and whether they keep up.

    `middle_ms` is the median batch.  Each is None if the log does not have it: rows per second that arrived and that
    could be processed, the sources' backlog in rows at the start and at the end, the interval between the starts of
    batches, and the share of that in which one runs; with few batches the last is None too.  `max_per_s` is the highest
    rate that its batches sustain, by their time per row; `is_lower_bound` is whether it may be higher.
    """

    kind: ClassVar[str] = "streaming-query"

    query: str
    triggers: int
    batches: int
    middle_ms: float | None
    longest_ms: float | None
    parts: tuple[BatchPart, ...]
    input_per_s: float | None
    processed_per_s: float | None
    waiting_first: float | None
    waiting_last: float | None
    interval_ms: float | None
    busy_share: float | None
    pace: Pace
    max_per_s: float | None = None
    is_lower_bound: bool = False


@frozen
class StreamState(Remark):
    """The operator with state of a streaming query whose commits take most time.

    Its state had `rows_first` rows after the first batch and `rows_last` after the last one, in `size_bytes` of memory.
    Per batch of `batch_ms`, each of its `partitions` takes `updates_ms` for changing rows and `commit_ms` for the
    commit, on average.  `others` is the number of further such operators.  With `fewer_partitions`, a batch would take
    `fewer_batch_ms`; None if that saves little, or is unknown.
    """

    kind: ClassVar[str] = "stream-state"

    query: str
    operator: str
    partitions: int
    rows_first: float | None
    rows_last: float | None
    size_bytes: float | None
    batch_ms: float
    updates_ms: float | None
    commit_ms: float
    in_rocksdb: bool
    others: int
    fewer_partitions: int | None = None
    fewer_batch_ms: float | None = None


@frozen
class FallsBehind(Remark):
    """A streaming query receives more than it processes, or its backlog grows."""

    kind: ClassVar[str] = "falls-behind"

    query: StreamingQuery


@frozen
class MoreQueries(Remark):
    """The number of further streaming queries in the table spark_batches."""

    kind: ClassVar[str] = "more-streaming-queries"

    count: int


@frozen
class HeavyStatement:
    """A statement of a server's client: its scope, and its share of the task time of all statements."""

    scope: str
    user: str | None
    text: str | None
    length_ms: float
    task_ms: float
    share: float


@frozen
class HeavySession:
    """A session of a server's client, and its share of the task time of all statements."""

    session: str | None
    user: str | None
    statements: int
    share: float


@frozen
class Statements(Remark):
    """The statements that clients sent to a Spark Connect or Thrift server: how many, in how many sessions, and those
    with most task time first; `failed` of them failed or were canceled."""

    kind: ClassVar[str] = "statements"
    on_first_screen: ClassVar[bool] = True

    count: int
    failed: int
    session_count: int
    heaviest: tuple[HeavyStatement, ...]
    sessions: tuple[HeavySession, ...]


@frozen
class TableChange(Remark):
    """A MERGE, UPDATE or DELETE of a Delta table (view spark_table_changes), with the number of others of the scope.

    `scan_ms` and `rewrite_ms` are parts of `whole_ms`.  Values that the log does not have are None.
    """

    kind: ClassVar[str] = "table-change"

    scope: str
    operation: Literal["merge", "update", "delete"]
    table: str | None
    whole_ms: float
    scan_ms: float | None
    rewrite_ms: float | None
    files: int | None
    files_scanned: int | None
    files_removed: int
    files_added: int
    deletion_vectors: int
    others: int = 0


@frozen
class AwaitedSlots(Remark):
    """The stage that waited longest for slots although others were free."""

    kind: ClassVar[str] = "awaited-slots"

    finding: SlotsAwaited


@frozen
class PythonGroup:
    """The Python functions that run in one stage, and the wall-clock time of all of them on the critical path, ms."""

    functions: tuple[str, ...]
    time_ms: float


@frozen
class PythonFunctions(Remark):
    """Python functions (UDFs) that tasks waited for, by stage, the most time first."""

    kind: ClassVar[str] = "python-functions"

    groups: tuple[PythonGroup, ...]


@frozen
class HeapNearLimit(Remark):
    """Executors had hardly more heap than they needed: with `floor_bytes` or less they would likely have run out.

    Their tasks spent `gc_share` of their time in garbage collection, and the heap was collected whole `full_gcs` times.
    """

    kind: ClassVar[str] = "heap-near-limit"
    on_first_screen: ClassVar[bool] = True

    heap_bytes: float
    floor_bytes: float
    gc_share: float
    full_gcs: int


@frozen
class HeapOversized(Remark):
    """Executors used at most `used_bytes` of a heap, garbage included; one of `safe_bytes` would do."""

    kind: ClassVar[str] = "heap-oversized"
    on_first_screen: ClassVar[bool] = True

    heap_bytes: float
    used_bytes: float
    safe_bytes: float


@frozen
class PythonParts:
    """The task time of a stage with Python workers, ms.

    `user` ran functions of users, `serialization` converted rows from and to Arrow or pickle, `start` prepared workers,
    `jvm` was on the CPU in the JVM while no worker was busy; in `wait` both waited.  If the profile has functions only,
    `serialization` and `start` are None, and part of `wait`.
    """

    user: float
    serialization: float | None
    start: float | None
    jvm: float
    wait: float

    @property
    def whole(self) -> float:
        return self.user + (self.serialization or 0.0) + (self.start or 0.0) + self.jvm + self.wait


@frozen
class ResourceShare:
    """The share of a resource, by name, in the time of a user's code."""

    resource: str
    share: float


@frozen
class PythonTime(Remark):
    """The task time of the stage with the most of it, of those of which there are profiles of Python workers.

    `function` is the user's function with the most time of its own, `where` its file and line, `function_ms` that time;
    None if no function was seen.  `others` is the number of such stages besides.  `user_uses` is what the user's code
    used by the labels of indexes, the most time first; empty if no index knows it.
    """

    kind: ClassVar[str] = "python-time"
    on_first_screen: ClassVar[bool] = True

    stage: str
    name: str
    parts_ms: PythonParts
    function: str | None
    where: str | None
    function_ms: float
    others: int = 0
    user_uses: tuple[ResourceShare, ...] = ()


@frozen
class PythonMemory(Remark):
    """The memory of Python workers during a user's function, bytes: means over its calls, as Spark's profiler adds
    them up.

    It is `start_bytes` at the function's start and `most_bytes` after the line with the most; the line at `where`
    raises it by `grown_bytes`, more than any other.  `limit_bytes` is what a worker may use, None without a limit.
    """

    kind: ClassVar[str] = "python-memory"
    on_first_screen: ClassVar[bool] = True

    stage: str
    name: str
    function: str
    where: str | None
    calls: int
    start_bytes: float
    most_bytes: float
    grown_bytes: float
    limit_bytes: float | None


@frozen
class EngineUse(Remark):
    """The task time of stages in which an engine ran operators, ms, and the parts of it: operators of the engine,
    operators on the JVM, and conversions between their rows and columns; the rest starts tasks or is unknown.

    `spilled_bytes` is what operators of the engine spilled, by their own metrics.  Tasks held a GPU for `gpu_held_ms`,
    and waited for one for `gpu_waited_ms`; 0 if none is known.
    """

    kind: ClassVar[str] = "engine-use"

    engine: str
    task_ms: float
    engine_ms: float
    jvm_ms: float
    conversion_ms: float
    spilled_bytes: float
    gpu_held_ms: float = 0.0
    gpu_waited_ms: float = 0.0


@frozen
class ProfileStages(Remark):
    """The stage with most task time of those with a resource profile of their own, and the number of `others`.

    `requests` are (executor or task, resource, amount) of the profile, memory in bytes.  Its tasks could use
    `usable_slots` of the run's `slots` at a time.
    """

    kind: ClassVar[str] = "profile-stages"

    stage: str
    others: int
    profile: int
    requests: tuple[tuple[str, str, float], ...]
    usable_slots: int
    slots: int


@frozen
class BarrierStages(Remark):
    """The barrier stage with most task time, whose `tasks` start together, and the number of `others`."""

    kind: ClassVar[str] = "barrier-stages"
    on_first_screen: ClassVar[bool] = True

    stage: str
    others: int
    tasks: int


@frozen
class Decommissioned(Remark):
    """Executors that the cluster took away after a notice, the first at `first_ms`, ms.

    `redone_tasks` of theirs ran again, which had run for `redone_ms`.  `moved` is whether executors were set to copy
    their shuffle files and cached rows to others first.
    """

    kind: ClassVar[str] = "decommissioned"
    on_first_screen: ClassVar[bool] = True

    executors: tuple[str, ...]
    first_ms: float
    redone_tasks: int
    redone_ms: float
    moved: bool


@frozen
class RemoteShuffle(Remark):
    """A remote shuffle service, by its name, kept the shuffled data that tasks wrote and read, bytes."""

    kind: ClassVar[str] = "remote-shuffle"
    on_first_screen: ClassVar[bool] = True

    service: str
    written_bytes: int
    read_bytes: int


@frozen
class PushedShuffle(Remark):
    """Push-based shuffle had merged `merged_bytes` of the `read_bytes` of shuffled data that tasks read.

    `fallbacks` merged blocks could not be read, so that tasks read the original ones.
    """

    kind: ClassVar[str] = "pushed-shuffle"

    merged_bytes: int
    read_bytes: int
    fallbacks: int
