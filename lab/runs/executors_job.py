"""Jobs for lab.runs.executors: ``spark-submit executors_job.py NAME``.

Their tasks wait more than they compute, so that a small machine can run several at a time.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import BarrierTaskContext, SparkContext
from pyspark.resource import ExecutorResourceRequests, ResourceProfileBuilder, TaskResourceRequests

WAIT_S = 0.4
TASKS = 12
STARVED_S = 40.0
BARRIER_TASKS = 4


def work(rows: Iterable[Any]) -> Iterable[int]:
    """A task of WAIT_S, of which some 50 ms are CPU time."""
    start = time.monotonic()
    for _ in range(20_000):
        hashlib.sha256(b"x" * 2_000).digest()
    time.sleep(max(WAIT_S - (time.monotonic() - start), 0.0))
    return iter([sum(1 for _ in rows)])


def together(rows: Iterable[Any]) -> Iterable[int]:
    """A task of a barrier stage, which waits for all others of it twice."""
    context = BarrierTaskContext.get()
    context.barrier()
    found = list(work(rows))
    context.barrier()
    return iter(found)


def plain(context: SparkContext) -> None:
    """A stage of TASKS tasks."""
    context.parallelize(range(TASKS), TASKS).mapPartitions(work).collect()


def task_profile(context: SparkContext) -> None:
    """A stage whose tasks request two cores each of the executors that there are, between two plain ones."""
    profile = ResourceProfileBuilder().require(TaskResourceRequests().cpus(2)).build
    plain(context)
    context.parallelize(range(TASKS), TASKS).mapPartitions(work).withResources(profile).collect()
    plain(context)


def profiles(context: SparkContext) -> None:
    """A stage that reads a shuffle on executors of its own, with less memory and two cores for each task."""
    plain(context)
    _on_own_executors(context)
    plain(context)


def _on_own_executors(context: SparkContext) -> None:
    requests = ExecutorResourceRequests().cores(2).memory("460m")
    profile = ResourceProfileBuilder().require(requests).require(TaskResourceRequests().cpus(2)).build
    pairs = context.parallelize(range(60_000), TASKS).map(lambda each: (each % 100, each))
    pairs.groupByKey(TASKS).map(lambda each: each[0]).mapPartitions(work).withResources(profile).collect()


def starved(context: SparkContext) -> None:
    """The same on a cluster that is full with executors of the first stages; cancelled after STARVED_S."""
    plain(context)
    threading.Timer(STARVED_S, context.cancelAllJobs).start()
    with suppress(Py4JJavaError):
        _on_own_executors(context)


def barrier(context: SparkContext) -> None:
    """A barrier stage of BARRIER_TASKS tasks between two plain ones."""
    plain(context)
    context.parallelize(range(BARRIER_TASKS), BARRIER_TASKS).barrier().mapPartitions(together).collect()
    plain(context)


def decommission(context: SparkContext) -> None:
    """A shuffle whose second stage runs while an executor gets the signal with which Kubernetes decommissions one."""
    pairs = context.parallelize(range(400_000), TASKS).map(lambda each: (each, "x" * 40))
    shuffled = pairs.partitionBy(TASKS)
    shuffled.mapPartitions(work).collect()
    os.kill(_executor(str(context.applicationId)), signal.SIGPWR)
    time.sleep(6)  # the executor copies its shuffle files to the other one
    shuffled.mapPartitions(work).collect()
    plain(context)


def _executor(application: str) -> int:
    """The process of an executor of the application, the one with the lowest id."""
    found = {}
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        words = each.read_bytes().split(b"\0") if each.exists() else []
        if application.encode() in words and b"--executor-id" in words:
            found[int(words[words.index(b"--executor-id") + 1])] = int(each.parent.name)
    return found[min(found)]


_JOBS = (task_profile, profiles, starved, barrier, decommission)
JOBS = {each.__name__.replace("_", "-"): each for each in _JOBS}


if __name__ == "__main__":
    started = SparkContext(appName=sys.argv[1])
    JOBS[sys.argv[1]](started)
    started.stop()
