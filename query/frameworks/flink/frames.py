"""What frames, threads and processes of Flink are."""

from __future__ import annotations

import re

from crystalperf.query.frameworks import Names, Role, jvm

_ROLES: dict[Role, tuple[str, ...]] = {
    "unit": (r"org\.apache\.flink\.runtime\.taskmanager\.Task\.(run|doRun)$",),
    "wait": (r"org\.apache\.flink\.streaming\.runtime\.tasks\.mailbox\.TaskMailboxImpl\.take",),
    # A subtask that has a record to work on waits for mail: its operator has as many requests under way as it may.
    "rest": (r"org\.apache\.flink\.streaming\.runtime\.tasks\.mailbox\.MailboxExecutorImpl\.yield",),
    "scaffolding": (
        r"org\.apache\.flink\.runtime\.taskmanager\.Task\.",
        r"org\.apache\.flink\.streaming\.runtime\.tasks\.(StreamTask\.|mailbox\.)",
        r"org\.apache\.flink\.streaming\.runtime\.io\.Stream(One|Multiple|Two)Input",
        r"org\.apache\.flink\.streaming\.runtime\.tasks\.(Chaining|Copying|Counting|Broadcasting)\w*Output\.",
    ),
    "generated": (
        r"(?:.*\.)?(StreamExecCalc|LocalHash\w*|BatchExec\w*|\w+Projection|\w+Comparator|\w+Computer|JoinConditionFunction)\$\d+",
    ),
}

_READERS = re.compile(r"(?:Source Data Fetcher for |Legacy Source Thread - )(?P<unit>.+)")
"""Threads whose work a subtask waits for.  Those that flush its buffers (OutputFlusher for …), and its timers, work
beside it and sleep most of the time: theirs is no time of the subtask's."""

COMPILING, NETWORK = "compiling", "network"

HELPERS: dict[str, str] = {
    "buffers' flushers": r"OutputFlusher for .*",
    "timers": r"(System )?Time Trigger for .*",
    NETWORK: r"Flink Netty .*|nioEventLoopGroup.*",
    "sorting and spilling": r"SortMerger .*|IOManager .*",
    "RocksDB": r"rocksdb.*",
    "checkpoints": r"AsyncOperations.*|.*[Cc]heckpoint.*|jobmanager-io.*|cluster-io.*",
    "metrics": r"flink-metrics.*|Flink-Metric.*",
    "messages": r"flink-(pekko|akka|scheduler).*|flink-\d+.*",
    COMPILING: r"C[12] CompilerThread\d+",
}
"""Threads of a TaskManager that work for no one subtask, by what they do: patterns of their names."""

FIXED = ("buffers' flushers", "timers", "checkpoints", "metrics", "messages")
"""Of these what they do by the clock, whatever records come."""

_MANAGER = re.compile(
    r"org\.apache\.flink\.(?:runtime\.taskexecutor|yarn|kubernetes\.taskmanager)"
    r"\.(?:Yarn|Kubernetes)?Task(?:Manager|Executor)Runner"
)
_COORDINATOR = re.compile(r"org\.apache\.flink\.\S*(?:Cluster|Job)\w*Entry[pP]oint")


annotate = jvm.roles(_ROLES)
"""What a frame of a Flink process is besides a function, by class and method."""


def unit_thread(name: str) -> str:
    """The thread of the subtask that a thread works for, by its name: its own, or that of whom it reads for."""
    helped = _READERS.fullmatch(name)
    return name if helped is None else helped["unit"]


def helper(thread: str) -> str | None:
    """What a thread of a TaskManager that works for no one subtask does, by its name, with its number or without."""
    name = thread.rpartition("#")[0] or thread
    return next((what for what, pattern in HELPERS.items() if re.fullmatch(pattern, name)), None)


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
