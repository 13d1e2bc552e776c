"""Roles of Spark's frames, executors of processes, and names of relocated packages."""

from __future__ import annotations

import re

from crystalperf.indexes.regex import regex
from crystalperf.query.frameworks import Names, Role, jvm
from crystalperf.query.frameworks.spark.settings import version_number

_ROLES: dict[Role, tuple[str, ...]] = {
    "task": (r"org\.apache\.spark\.executor\.Executor\$TaskRunner\.run$",),
    "idle": (
        r"org\.apache\.spark\.util\.RedirectThread\.",  # copies the output of a child process, which is rare
        # In local-cluster mode, workers in the driver's process copy the output of executors, and wait for them.
        r"org\.apache\.spark\.util\.logging\.FileAppender\.",
        r"org\.apache\.spark\.deploy\.worker\.(ExecutorRunner|DriverRunner)\.",
        r"org\.apache\.spark\.rpc\.netty\.MessageLoop\.receiveLoop$",
    ),
    "wait": (
        r"scala\.concurrent\.(Await|impl\.Promise|package\$)",
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
        r"scala\.util\.DynamicVariable\.",
    ),
    "generated": (r".*GeneratedClass",),
    # The loopback sockets and pipes between a task and its Python worker.
    "process": (r"org\.apache\.spark\.((api|sql\.execution)\.python\.|SparkEnv\.createPythonWorker)",),
}


annotate = jvm.roles(_ROLES)
"""The role of a frame of a Spark process, by class and method."""


def process(arguments: str | None, file_name: str) -> tuple[str | None, str] | None:
    """Application and executor of a JVM by its arguments; drivers do not name their application.

    A truncated recording may lack the arguments: then its file name counts, if it has the form of
    `crystalperf setup spark`.
    """
    if arguments is None:
        named = re.search(r"(?:(?P<app>app(?:lication)?[-_]\d[\w-]*?)-)?(?:executor-(?P<id>\d+)|driver)\.", file_name)
        return None if named is None else (named["app"], named["id"] or "driver")
    words = arguments.split()
    main = words[0] if words else ""
    if "ExecutorBackend" in main:  # CoarseGrained…, YarnCoarseGrained…, KubernetesExecutorBackend
        return _word_after(words, "--app-id"), _word_after(words, "--executor-id") or "?"
    others = ("org.apache.spark.deploy.worker.Worker", "org.apache.spark.deploy.master.Master", "org.apache.flink.")
    if main.startswith(others):
        return None
    return None, "driver"


def _word_after(words: list[str], option: str) -> str | None:
    return words[words.index(option) + 1] if option in words[:-1] else None


def sources(version: str | None) -> tuple[str, ...]:
    """The indexes that cover the functions of a Spark process, Spark's own first."""
    number = version_number(version)
    return (f"spark-{number}",) if number else ()


NAMES = Names(
    relocated=(
        ("org.sparkproject.guava.", "com.google.common."),
        ("org.sparkproject.connect.guava.", "com.google.common."),
        ("org.sparkproject.connect.grpc.", "io.grpc."),
        ("org.sparkproject.connect.protobuf.", "com.google.protobuf."),
        ("org.sparkproject.connect.client.", ""),
        ("org.sparkproject.spark_core.protobuf.", "com.google.protobuf."),
        ("org.sparkproject.spark_protobuf.protobuf.", "com.google.protobuf."),
        ("org.sparkproject.jetty.", "org.eclipse.jetty."),
        ("org.sparkproject.jpmml.", "org.jpmml."),
        ("org.sparkproject.dmg.", "org.dmg."),
        ("org.sparkproject.", ""),
        ("org.spark_project.guava.", "com.google.common."),  # before Spark 3
        ("org.spark_project.jetty.", "org.eclipse.jetty."),
    ),
    generated=regex(
        r"(?:^|\.)Specific(?:Unsafe|Mutable|Internal|Safe)\w*(?:Projection|Row)\b|GeneratedIteratorForCodegenStage"
        r"|(?:^|\.)SC\$"
    ),
    python=(("pyspark/", "pyspark"),),
)
"""Prefixes of packages that Spark's build relocates (shading), and of classes of its code generator."""

_SPILLS = (
    r"^org\.apache\.spark\..*\b(UnsafeSorterSpill(Writer|Reader|Merger)\b|SpillReader\.|DiskMapIterator\."
    r"|(UnsafeExternalSorter|ShuffleExternalSorter|UnsafeKVExternalSorter|BytesToBytesMap\$MapIterator"
    r"|ExternalSorter|ExternalAppendOnlyMap)\.(spill|spillMemoryIteratorToDisk)(:|$))"
)
# Spilled data are sorted first, as they would be later without a spill.
_SORTING = r"^org\.apache\.spark\..*\b(Unsafe|Shuffle)InMemorySorter\.|\b(TimSort|RadixSort|collection\.Sorter)\b"
SPILLING = (_SPILLS, _SORTING)
"""Frames below which a task's work is caused by a lack of memory, except below those of the second pattern."""
