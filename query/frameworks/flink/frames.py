"""Roles of Flink's frames, threads and processes."""

from __future__ import annotations

import re

from crystalperf.indexes.regex import regex
from crystalperf.query.frameworks import Names, Role, jvm

_ROLES: dict[Role, tuple[str, ...]] = {
    "task": (r"org\.apache\.flink\.runtime\.taskmanager\.Task\.(run|doRun)$",),
    "wait": (r"org\.apache\.flink\.streaming\.runtime\.tasks\.mailbox\.TaskMailboxImpl\.take",),
    # A subtask that waits for mail with a record to work on: its operator has reached its limit of concurrent requests.
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

_READERS = regex(r"(?:Source Data Fetcher for |Legacy Source Thread - )(?P<task>.+)")
"""Threads whose work a subtask waits for.  Threads that flush its buffers (OutputFlusher for …), and its timers, run
concurrently and sleep most of the time: their time is not the subtask's."""

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
"""Threads of a TaskManager that belong to no single subtask, by their task: patterns of their names."""

FIXED = ("buffers' flushers", "timers", "checkpoints", "metrics", "messages")
"""Those of HELPERS that run on a fixed schedule, at any rate of records."""

_MANAGER = regex(
    r"org\.apache\.flink\.(?:runtime\.taskexecutor|yarn|kubernetes\.taskmanager)"
    r"\.(?:Yarn|Kubernetes)?Task(?:Manager|Executor)Runner"
)
_DRIVER = regex(r"org\.apache\.flink\.\S*(?:Cluster|Job)\w*Entry[pP]oint")


annotate = jvm.roles(_ROLES)
"""The role of a frame of a Flink process, by class and method."""


def task_thread(name: str) -> str:
    """The name of the subtask's thread for which a thread works: its own, or that of the subtask for which it reads."""
    helped = _READERS.fullmatch(name)
    return name if helped is None else helped["task"]


def helper(thread: str) -> str | None:
    """The task of a TaskManager's thread that belongs to no single subtask, by its name, with or without a number."""
    name = thread.rpartition("#")[0] or thread
    return next((what for what, pattern in HELPERS.items() if re.fullmatch(pattern, name)), None)


def process(arguments: str | None, file_name: str) -> tuple[str | None, str] | None:
    """The TaskManager of a JVM by its arguments, or the JobManager; neither names a job.

    A recording without arguments is recognised by its file name if that is taskmanager-ID or jobmanager.
    """
    if arguments is None:
        named = re.search(r"taskmanager-(?P<id>[\w.:-]+?)\.|jobmanager\.", file_name)
        return None if named is None else (None, named["id"] or "jobmanager")
    if _MANAGER.match(arguments):
        found = re.search(r"taskmanager\.resource-id=(\S+)", arguments)
        return None, found[1] if found else "?"
    return (None, "jobmanager") if _DRIVER.match(arguments) else None


def sources(version: str | None) -> tuple[str, ...]:
    """The indexes that cover the functions of a Flink process."""
    number = re.match(r"v?(\d+\.\d+(?:\.\d+)?)", version or "")
    return (f"flink-{number[1] if number else _USUAL}",)


_USUAL = "1.20"  # archives do not record their version, and names of functions rarely change


NAMES = Names(
    relocated=(
        ("org.apache.flink.shaded.netty4.io.netty.", "io.netty."),
        ("org.apache.flink.shaded.guava31.com.google.common.", "com.google.common."),
        ("org.apache.flink.shaded.guava32.com.google.common.", "com.google.common."),
        ("org.apache.flink.shaded.jackson2.com.fasterxml.jackson.", "com.fasterxml.jackson."),
    ),
    generated=regex(r"^\w+\$\d+$"),
)
"""Prefixes of packages that Flink's build relocates (shading), and of classes of its code generator, which have no
package."""
