"""Everything CrystalPerf knows of Spark.

Reading an event log goes through three steps, each a module of its own in log/: events.py makes typed events of lines,
run.py collects what they say, tables.py makes tables of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from query.frameworks import Framework, Planned, Role
from query.frameworks.spark.log import operators
from query.frameworks.spark.log.run import collect
from query.frameworks.spark.log.tables import tables
from query.inputs.containers import LogFile
from query.model.records import RunTables
from query.whatif.replay import Policy, fair, fifo

if TYPE_CHECKING:
    from query.model.execution import Execution
    from query.model.world import World


def parse(log: LogFile) -> RunTables:
    """The tables of a run file that one attempt's event log fills.

    runs, executors, sql_executions, operators, operator_metrics, jobs, stages, tasks and import_stats, with the
    columns of indexes/schema.sql except those that samples and the analysis fill.  Raises InputError, one sentence,
    where the log cannot be read or holds no event of an application.
    """
    return tables(collect(log))


# What frames of a Spark process are besides functions: patterns of 'class.method' from its start, first role first.
_PATTERNS: dict[Role, tuple[str, ...]] = {
    "task": (r"org\.apache\.spark\.executor\.Executor\$TaskRunner\.run$",),
    "idle": (
        r"java\.util\.concurrent\.(ThreadPoolExecutor\.getTask|ForkJoinPool\.awaitWork)$",
        r"org\.apache\.spark\.util\.RedirectThread\.",  # copies the output of a child process, which is mostly silent
        r"org\.apache\.spark\.rpc\.netty\.MessageLoop\.receiveLoop$",
    ),
    "wait": (
        r"(jdk\.internal|sun)\.misc\.Unsafe\.park$",
        r"java\.lang\.Object\.wait",
        r"java\.lang\.Thread\.(sleep|join|yield|onSpinWait)",
        r"java\.lang\.ref\.ReferenceQueue\.",
        r"java\.util\.concurrent\.(locks\.|[A-Za-z]*(Queue|Deque|Latch|Semaphore|Barrier|Exchanger))",
        r"java\.util\.concurrent\.(FutureTask|CompletableFuture)\.(get|await|join|waiting)",
        r"scala\.concurrent\.(Await|impl\.Promise|package\$)",
        r"sun\.nio\.ch\.(EPoll|SelectorImpl)",
        r"io\.netty\.channel\.(epoll\.Native\.epollWait|nio\.NioEventLoop\.select)",
        r"org\.apache\.spark\.util\.(KeyLock\.|(Spark)?ThreadUtils\$?\.await)",
        r"org\.apache\.spark\.rpc\.RpcTimeout\.awaitResult",
    ),
    "scaffolding": (
        r"org\.apache\.spark\.executor\.Executor\$TaskRunner\.",
        r"org\.apache\.spark\.scheduler\.(Task|ShuffleMapTask|ResultTask)\.",
        r"org\.apache\.spark\.(TaskContext|TaskContextImpl|BarrierTaskContext)\.",
        r"org\.apache\.spark\.util\.(Utils|SparkErrorUtils|LexicalThreadLocal)\$?\.(\$anonfun\$)?(try|with|log|timeTaken)",
        r"org\.apache\.spark\.util\.(UninterruptibleThread|CompletionIterator|(Spark)?ThreadUtils)",
        r"org\.apache\.spark\.InterruptibleIterator\.",
        r"org\.apache\.spark\.rdd\.RDD\.(iterator|computeOrReadCheckpoint|getOrCompute|\$anonfun\$)",
        r"org\.apache\.spark\.rdd\.[A-Za-z]+RDD\.compute$",
        r"org\.apache\.spark\.shuffle\.ShuffleWriteProcessor\.",
        r"java\.util\.concurrent\.(ThreadPoolExecutor|FutureTask|ForkJoin|CompletableFuture|Executors)",
        r"java\.lang\.(Thread|reflect\.Method)\.",
        r"(jdk\.internal|sun)\.reflect\.",
        r"java\.security\.AccessController\.",
        r"scala\.util\.DynamicVariable\.",
    ),
    "compute": (
        r"net\.jpountz\.|org\.xerial\.snappy\.|com\.github\.luben\.zstd\.|com\.ning\.compress\.",
        r"java\.util\.zip\.(Inflater|Deflater|CRC32|Adler32)\.",
    ),
    "collection": (r"scala\.(collection|runtime)\.", r"java\.util\.(?!zip|concurrent|jar|regex)"),
    "generated": (
        r".*(GeneratedClass|\$\$Lambda|LambdaForm|Generated(Method|Constructor)Accessor|/0x)",
        r".*\.\$Proxy\d",
    ),
    # The loopback sockets and pipes between a task and its Python worker.
    "process": (r"org\.apache\.spark\.((api|sql\.execution)\.python\.|SparkEnv\.createPythonWorker)",),
}
_ROLES = tuple((role, re.compile("|".join(patterns))) for role, patterns in _PATTERNS.items())


def annotate(class_name: str, method: str) -> Role | None:
    """What a frame of a Spark process is besides a function; the first role whose pattern fits its name."""
    name = f"{class_name}.{method}"
    return next((role for role, pattern in _ROLES if pattern.match(name)), None)


def process(arguments: str | None, file_name: str) -> tuple[str | None, str] | None:
    """Application and executor of a JVM by its arguments; drivers do not name their application.

    A recording that was cut short may have lost the arguments: then the file's name says it, where it is of the form
    that `crystalperf setup spark` gives it.
    """
    if arguments is None:
        named = re.search(r"(?:(?P<app>app(?:lication)?[-_]\d[\w-]*?)-)?(?:executor-(?P<id>\d+)|driver)\.", file_name)
        return None if named is None else (named["app"], named["id"] or "driver")
    words = arguments.split()
    main = words[0] if words else ""
    if "ExecutorBackend" in main:  # CoarseGrained…, YarnCoarseGrained…, KubernetesExecutorBackend
        return _word_after(words, "--app-id"), _word_after(words, "--executor-id") or "?"
    if main.startswith(("org.apache.spark.deploy.worker.Worker", "org.apache.spark.deploy.master.Master")):
        return None
    return None, "driver"


def _word_after(words: list[str], option: str) -> str | None:
    return words[words.index(option) + 1] if option in words[:-1] else None


def sources(version: str | None) -> tuple[str, ...]:
    """The indexes whose functions a Spark process may be in, Spark's own first."""
    return (f"spark-{version}",) if version else ()


def replan(execution: Execution, world: World, wanted: bool) -> Planned:
    """The run with the tasks that Spark would cut for other slots; as recorded where that is not wanted."""
    if world.ratio("cores") == 1 and world.ratio("executors") == 1:
        return Planned(execution)
    if not wanted:
        return Planned(execution, ("stages keep their recorded tasks, though Spark might cut others for other slots",))
    from query.frameworks.spark.log.partitions import recut

    planned, changed = recut(execution, world)
    if not changed:
        return Planned(execution, ("Spark would cut the same tasks for these slots",))
    return Planned(
        planned,
        (
            f"Spark would cut {changed} stage{'s' if changed > 1 else ''} into other tasks for these slots"
            f" ({len(execution.tasks)} tasks become {len(planned.tasks)}), which share its work in the recorded order"
            " (--no-replan keeps the tasks)",
        ),
    )


_SPILLING = (
    r"^org\.apache\.spark\..*\b(UnsafeSorterSpill(Writer|Reader|Merger)\b|SpillReader\.|DiskMapIterator\."
    r"|(UnsafeExternalSorter|ShuffleExternalSorter|UnsafeKVExternalSorter|BytesToBytesMap\$MapIterator"
    r"|ExternalSorter|ExternalAppendOnlyMap)\.(spill|spillMemoryIteratorToDisk)(:|$))"
)
# What is spilled is sorted first, as it would be later.
_SORTING = r"^org\.apache\.spark\..*\b(Unsafe|Shuffle)InMemorySorter\.|\b(TimSort|RadixSort|collection\.Sorter)\b"

LOCALITY_WAIT_MS = 3000.0
"""Spark's default of spark.locality.wait."""

_TIME_MS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4, "min": 6e4, "h": 3.6e6, "d": 8.64e7}


def duration_ms(text: str) -> float | None:
    """A time as Spark's settings have it (`3s`, `500ms`, or plain milliseconds); None if it is none."""
    match = re.fullmatch(r"(\d+)\s*([a-z]*)", text.strip().lower())
    unit = _TIME_MS.get(match[2] or "ms") if match else None
    return None if match is None or unit is None else float(match[1]) * unit


def schedule(scheduler: str | None, properties: Mapping[str, str]) -> Policy:
    """How Spark gives out slots: FIFO unless the run says FAIR; tasks wait for the host of their data
    (spark.locality.wait, 3 s)."""
    wait = properties.get("spark.locality.wait.node") or properties.get("spark.locality.wait", "")
    patience_ms = duration_ms(wait)
    return Policy(fair if scheduler == "FAIR" else fifo, LOCALITY_WAIT_MS if patience_ms is None else patience_ms)


SPARK = Framework(
    name="spark",
    parse=parse,
    annotate=annotate,
    process=process,
    sources=sources,
    replan=replan,
    schedule=schedule,
    frame_operator=operators.of_frame,
    node_operator=operators.of_node,
    node_title=operators.title,
    titles=operators.TITLES,
    spilling=(_SPILLING, _SORTING),
)
