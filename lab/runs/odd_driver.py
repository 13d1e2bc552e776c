"""The driver programs of lab/runs/odd.py, started by spark-submit from a copy: ``odd_driver.py NAME WORK``.

WORK is the folder that holds the executors' local folders.  Everything here needs pyspark alone.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pyspark import InheritableThread, TaskContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def _numbers(spark: SparkSession, rows: int = 200_000, parts: int = 8) -> Any:
    return spark.range(0, rows, 1, parts).withColumn("key", F.col("id") % 97)


def _query(spark: SparkSession) -> None:
    """A scan, a shuffle, and a result."""
    _numbers(spark).groupBy("key").agg(F.sum("id").alias("total")).orderBy("total").collect()


def small(spark: SparkSession, work: Path) -> None:
    """Two small queries: what matters is how the log is written."""
    _query(spark)
    _query(spark)


def many(spark: SparkSession, work: Path) -> None:
    """Enough finished jobs to fill several parts of a rolled log."""
    context = spark.sparkContext._jsc.sc()
    for _ in range(16):
        context.range(0, 900, 1, 900).count()
    _query(spark)


def speculation(spark: SparkSession, work: Path) -> None:
    """One task whose first attempt is far slower than all others."""

    def slow(part: int, rows: Iterable[int]) -> Iterable[int]:
        context = TaskContext.get()
        assert context is not None
        time.sleep(12 if part == 3 and context.attemptNumber() == 0 else 0.4)
        return rows

    spark.sparkContext.range(0, 24, 1, 24).mapPartitionsWithIndex(slow).count()


def fetch_failure(spark: SparkSession, work: Path) -> None:
    """Shuffle files vanish between the stage that wrote them and the one that reads them."""
    pairs = spark.sparkContext.range(0, 40_000, 1, 8).map(lambda number: (number % 50, number))
    grouped = pairs.groupByKey(6)
    grouped.count()
    files = sorted(each for each in work.rglob("shuffle_*.data"))
    for each in files[: len(files) // 2]:
        each.unlink()
        index = each.with_suffix(".index")
        if index.exists():
            index.unlink()
    grouped.mapValues(lambda numbers: sum(1 for _ in numbers)).collect()


def killed_executor(spark: SparkSession, work: Path) -> None:
    """An executor is killed in the middle of a stage."""

    def busy(part: int, rows: Iterable[int]) -> Iterable[int]:
        time.sleep(0.6)
        return rows

    def kill() -> None:
        time.sleep(2.5)
        for process in Path("/proc").glob("[0-9]*"):
            try:
                words = (process / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            # Of this application only, and of its executors the first.
            application = spark.sparkContext.applicationId.encode()
            if b"--app-id" in words and application in words and words[words.index(b"--executor-id") + 1] == b"0":
                os.kill(int(process.name), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    pairs = spark.sparkContext.range(0, 4000, 1, 40).mapPartitionsWithIndex(busy).map(lambda n: (n % 10, 1))
    pairs.reduceByKey(lambda one, two: one + two, 4).collect()
    killer.join()


def dynamic_allocation(spark: SparkSession, work: Path) -> None:
    """Two bursts of work with a pause in which executors go."""

    def busy(part: int, rows: Iterable[int]) -> Iterable[int]:
        time.sleep(0.5)
        return rows

    for _ in range(2):
        spark.sparkContext.range(0, 48, 1, 48).mapPartitionsWithIndex(busy).count()
        time.sleep(8)


def cancelled_job(spark: SparkSession, work: Path) -> None:
    """A job that somebody cancels half-way, and one after it that ends well."""
    context = spark.sparkContext

    def busy(part: int, rows: Iterable[int]) -> Iterable[int]:
        time.sleep(0.7)
        return rows

    def run() -> None:
        context.setJobGroup("to-cancel", "a job that is cancelled", interruptOnCancel=True)
        try:
            context.range(0, 64, 1, 64).mapPartitionsWithIndex(busy).count()
        except Exception as error:
            print(f"cancelled: {type(error).__name__}")

    thread = InheritableThread(target=run)
    thread.start()
    time.sleep(3.5)
    context.cancelJobGroup("to-cancel")
    thread.join()
    _query(spark)


def several_queries(spark: SparkSession, work: Path) -> None:
    """Three users of one long-lived application, each in a pool of its own."""

    def user(number: int) -> None:
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", f"user-{number}")
        for _ in range(3):
            _numbers(spark, 3_000_000, 12).selectExpr("key", "sqrt(id) AS root").groupBy("key").avg("root").collect()

    threads = [InheritableThread(target=user, args=(number,)) for number in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()


def streaming(spark: SparkSession, work: Path) -> None:
    """Micro-batches of a streaming query with state."""
    rate = spark.readStream.format("rate").option("rowsPerSecond", 500).load()
    counted = rate.withColumn("key", F.col("value") % 7).groupBy("key").count()
    query = counted.writeStream.outputMode("complete").format("memory").queryName("counts")
    running = query.option("checkpointLocation", str(work / "checkpoint")).trigger(processingTime="1 second").start()
    time.sleep(14)
    running.stop()


def clock_off(spark: SparkSession, work: Path) -> None:
    """Waves of work with pauses between them, on executors of which one has another clock."""
    for wave in range(5):
        _numbers(spark, 6_000_000, 8).selectExpr("key", "log(id + 1) AS root").groupBy("key").sum("root").collect()
        time.sleep(0.4 + 0.3 * wave)


PROGRAMS: dict[str, Callable[[SparkSession, Path], None]] = {
    each.__name__: each
    for each in (
        small,
        many,
        speculation,
        fetch_failure,
        killed_executor,
        dynamic_allocation,
        cancelled_job,
        several_queries,
        streaming,
        clock_off,
    )
}


def main(name: str, work: Path) -> None:
    """Run one program to its end."""
    spark = SparkSession.builder.appName(f"odd run: {name}").getOrCreate()
    PROGRAMS[name](spark, work)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
