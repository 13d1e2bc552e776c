"""What frames, threads and processes of Flink are."""

from __future__ import annotations

import re

from query.frameworks import Names, Role

# What frames of a Flink process are besides functions: patterns of 'class.method' from its start, first role first.
_PATTERNS: dict[Role, tuple[str, ...]] = {
    "unit": (r"org\.apache\.flink\.runtime\.taskmanager\.Task\.(run|doRun)$",),
    "idle": (r"java\.util\.concurrent\.(ThreadPoolExecutor\.getTask|ForkJoinPool\.awaitWork)$",),
    "wait": (
        r"(jdk\.internal|sun)\.misc\.Unsafe\.park$",
        r"java\.lang\.Object\.wait",
        r"java\.lang\.Thread\.(sleep|join|yield|onSpinWait)",
        r"java\.lang\.ref\.ReferenceQueue\.",
        r"java\.util\.concurrent\.(locks\.|[A-Za-z]*(Queue|Deque|Latch|Semaphore|Barrier|Exchanger))",
        r"java\.util\.concurrent\.(FutureTask|CompletableFuture)\.(get|await|join|waiting)",
        r"sun\.nio\.ch\.(EPoll|SelectorImpl)",
        r"io\.netty\.channel\.(epoll\.Native\.epollWait|nio\.NioEventLoop\.select)",
        r"org\.apache\.flink\.streaming\.runtime\.tasks\.mailbox\.TaskMailboxImpl\.take",
    ),
    "scaffolding": (
        r"org\.apache\.flink\.runtime\.taskmanager\.Task\.",
        r"org\.apache\.flink\.streaming\.runtime\.tasks\.(StreamTask\.|mailbox\.)",
        r"org\.apache\.flink\.streaming\.runtime\.io\.Stream(One|Multiple|Two)Input",
        r"org\.apache\.flink\.streaming\.runtime\.tasks\.(Chaining|Copying|Counting|Broadcasting)\w*Output\.",
        r"java\.util\.concurrent\.(ThreadPoolExecutor|FutureTask|ForkJoin|CompletableFuture|Executors)",
        r"java\.lang\.(Thread|reflect\.Method)\.",
        r"(jdk\.internal|sun)\.reflect\.",
        r"java\.security\.AccessController\.",
    ),
    "compute": (
        r"net\.jpountz\.|org\.xerial\.snappy\.|com\.github\.luben\.zstd\.|io\.airlift\.compress\.",
        r"java\.util\.zip\.(Inflater|Deflater|CRC32|Adler32)\.",
    ),
    "collection": (r"scala\.(collection|runtime)\.", r"java\.util\.(?!zip|concurrent|jar|regex)"),
    "generated": (
        r".*(\$\$Lambda|LambdaForm|Generated(Method|Constructor)Accessor|/0x)",
        r"(?:.*\.)?(StreamExecCalc|LocalHash\w*|BatchExec\w*|\w+Projection|\w+Comparator|\w+Computer|JoinConditionFunction)\$\d+",
        r".*\.\$Proxy\d",
    ),
}
_ROLES = tuple((role, re.compile("|".join(patterns))) for role, patterns in _PATTERNS.items())

_HELPERS = re.compile(r"(?:OutputFlusher|Source Data Fetcher|Time Trigger|System Time Trigger) for (?P<unit>.+)")
_MANAGER = re.compile(r"org\.apache\.flink\.(?:runtime\.taskexecutor|yarn)\.(?:Yarn)?Task(?:Manager|Executor)Runner")
_COORDINATOR = re.compile(r"org\.apache\.flink\.\S*(?:Cluster|Job)\w*Entry[pP]oint")


def annotate(class_name: str, method: str) -> Role | None:
    """What a frame of a Flink process is besides a function; the first role whose pattern fits its name."""
    name = f"{class_name}.{method}"
    return next((role for role, pattern in _ROLES if pattern.match(name)), None)


def unit_thread(name: str) -> str:
    """The thread of the subtask that a thread works for, by its name: its own, or that of whom it helps."""
    helped = _HELPERS.fullmatch(name)
    return name if helped is None else helped["unit"]


def process(arguments: str | None, file_name: str) -> tuple[str | None, str] | None:
    """The TaskManager of a JVM by its arguments, or the JobManager; neither names a job.

    A recording without arguments goes by its file's name, where that is taskmanager-ID or jobmanager.
    """
    if arguments is None:
        named = re.search(r"taskmanager-(?P<id>[\w.:-]+?)\.|jobmanager\.", file_name)
        return None if named is None else (None, named["id"] or "jobmanager")
    if _MANAGER.match(arguments):
        found = re.search(r"taskmanager\.resource-id=(\S+)", arguments)
        return None, found[1] if found else "?"
    return (None, "jobmanager") if _COORDINATOR.match(arguments) else None


def sources(version: str | None) -> tuple[str, ...]:
    """The indexes whose functions a Flink process may be in."""
    number = re.match(r"v?(\d+\.\d+(?:\.\d+)?)", version or "")
    return (f"flink-{number[1] if number else _USUAL}",)


_USUAL = "1.20"  # archives do not say their version, and functions keep their names for long


NAMES = Names(
    relocated=(
        ("org.apache.flink.shaded.netty4.io.netty.", "io.netty."),
        ("org.apache.flink.shaded.guava31.com.google.common.", "com.google.common."),
        ("org.apache.flink.shaded.guava32.com.google.common.", "com.google.common."),
        ("org.apache.flink.shaded.jackson2.com.fasterxml.jackson.", "com.fasterxml.jackson."),
    ),
    generated=re.compile(r"^\w+\$\d+$"),
)
"""Packages that Flink's build moves out of its users' way, and what its code generator calls classes: these are in no
package."""
