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


def micro_batches(spark: SparkSession, work: Path) -> None:
    """A streaming query that is ended between two of its batches."""
    rate = spark.readStream.format("rate").option("rowsPerSecond", 500).load()
    query = rate.filter("value % 7 = 3").writeStream.format("noop").queryName("sevenths")
    running = query.option("checkpointLocation", str(work / "checkpoint")).trigger(processingTime="1 second").start()
    time.sleep(9)
    while running.status["isTriggerActive"]:
        time.sleep(0.01)
    running.stop()


def clock_off(spark: SparkSession, work: Path) -> None:
    """Waves of work with pauses between them, on executors of which one has another clock."""
    for wave in range(5):
        _numbers(spark, 6_000_000, 8).selectExpr("key", "log(id + 1) AS root").groupBy("key").sum("root").collect()
        time.sleep(0.4 + 0.3 * wave)


def idle_shell(spark: SparkSession, work: Path) -> None:
    """A shell: somebody types, thinks, types, and leaves it open."""
    time.sleep(6)
    _numbers(spark, 3_000_000).selectExpr("key", "sqrt(id) AS root").groupBy("key").avg("root").collect()
    time.sleep(9)
    _query(spark)
    time.sleep(7)


def _fail(part: int, rows: Iterable[int]) -> Iterable[int]:
    """A part of the data that no code was written for."""
    for row in rows:
        if row == 700:
            raise ValueError("row 700 has no price")
        yield row


def survived_failure(spark: SparkSession, work: Path) -> None:
    """A job fails after all retries, the program catches that and goes on."""
    _query(spark)
    try:
        spark.sparkContext.range(0, 1000, 1, 8).mapPartitionsWithIndex(_fail).count()
    except Exception as error:
        print(f"survived: {type(error).__name__}")
    _numbers(spark, 4_000_000).selectExpr("key", "sqrt(id) AS root").groupBy("key").avg("root").collect()


def failed_at_end(spark: SparkSession, work: Path) -> None:
    """Work that ends well, then a query that fails and ends the program with it."""
    _numbers(spark, 4_000_000).selectExpr("key", "sqrt(id) AS root").groupBy("key").avg("root").collect()
    priced = F.udf(lambda number: 1 // (number - 700), "long")
    _numbers(spark, 1000).select(priced("id").alias("price")).agg(F.sum("price")).collect()


def heap(spark: SparkSession, work: Path) -> None:
    """One task wants more memory than its executor's heap; the program goes on with less."""
    _query(spark)
    long = "CASE WHEN id = 5 THEN length(repeat('x', 180000000 * cast(id AS int))) ELSE id END AS size"
    try:
        spark.range(0, 8, 1, 8).selectExpr(long).agg(F.sum("size")).collect()
    except Exception as error:
        print(f"survived: {type(error).__name__}")
    _query(spark)


def cut_off(spark: SparkSession, work: Path) -> None:
    """The driver is killed in the middle of a stage: its log just stops."""
    _query(spark)

    def busy(part: int, rows: Iterable[int]) -> Iterable[int]:
        time.sleep(0.5)
        return rows

    def kill() -> None:
        time.sleep(5)
        os.kill(os.getppid(), signal.SIGKILL)

    threading.Thread(target=kill, daemon=True).start()
    spark.sparkContext.range(0, 200, 1, 200).mapPartitionsWithIndex(busy).count()


def dropped_events(spark: SparkSession, work: Path) -> None:
    """More events than the queue of the log holds: Spark drops some, and says so nowhere in the log."""
    context = spark.sparkContext._jsc.sc()
    _query(spark)
    context.range(0, 600, 1, 600).count()
    _query(spark)


def nested(spark: SparkSession, work: Path) -> None:
    """Commands that run queries of their own, on parents that are cached."""
    words = _numbers(spark, 4_000_000).selectExpr("key", "sha2(cast(id AS string), 256) AS word")
    cached = words.groupBy("key").agg(F.max("word").alias("word"), F.count("*").alias("all")).cache()
    names = spark.range(0, 97).selectExpr("id AS key", "concat('name ', id) AS name").cache()
    cached.createOrReplaceTempView("cached")
    names.createOrReplaceTempView("names")
    table = f"TABLE joined USING parquet LOCATION '{work / 'joined'}'"
    spark.sql(f"CREATE {table} AS SELECT * FROM cached JOIN names USING (key)")
    spark.sql("SELECT count(*) FROM joined JOIN cached USING (key)").collect()


def tiny_tasks(spark: SparkSession, work: Path) -> None:
    """A thousand tasks of next to nothing, as of a thousand small files."""
    for _ in range(2):
        spark.sparkContext._jsc.sc().range(0, 500, 1, 500).count()


def skewed_key(spark: SparkSession, work: Path) -> None:
    """Nearly all rows have the same key, so that one task has nearly all work."""
    rows = spark.range(0, 1_200_000, 1, 8).selectExpr("id", "if(id % 20 = 0, id % 97, 0) AS key")
    ranked = rows.selectExpr("key", "sha2(cast(id AS string), 512) AS word")
    ranked = ranked.selectExpr("key", "row_number() OVER (PARTITION BY key ORDER BY word) AS place")
    ranked.groupBy("place").count().agg(F.max("count")).collect()


def threads(spark: SparkSession, work: Path) -> None:
    """Jobs of different lengths from threads of one program, at once."""

    def user(number: int) -> None:
        for _ in range(2):
            rows = _numbers(spark, 2_000_000 * (number + 1), 6).selectExpr("key", "sqrt(id) AS root")
            rows.groupBy("key").avg("root").collect()
            time.sleep(0.5 * number)

    started = [InheritableThread(target=user, args=(number,)) for number in range(3)]
    for each in started:
        each.start()
    for each in started:
        each.join()


def python_udf(spark: SparkSession, work: Path) -> None:
    """A function of Python's on every row: the time is in Python's processes, which Spark does not time as CPU."""

    def digits(number: int) -> int:
        return sum(int(each) for each in str(number**20))

    counted = F.udf(digits, "int")
    _numbers(spark, 200_000, 4).select("key", counted("id").alias("digits")).groupBy("key").avg("digits").collect()


def driver_works(spark: SparkSession, work: Path) -> None:
    """Small queries whose results the program works on by itself, for longer than they took."""
    for _ in range(3):
        rows = _numbers(spark, 100_000).collect()
        begin = time.monotonic()
        while time.monotonic() - begin < 4:
            sorted(rows, key=lambda row: (row.key, -row.id))


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
        micro_batches,
        idle_shell,
        survived_failure,
        failed_at_end,
        heap,
        cut_off,
        dropped_events,
        nested,
        tiny_tasks,
        skewed_key,
        threads,
        python_udf,
        driver_works,
    )
}


def main(name: str, work: Path) -> None:
    """Run one program to its end."""
    spark = SparkSession.builder.appName(f"odd run: {name}").getOrCreate()
    PROGRAMS[name](spark, work)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
