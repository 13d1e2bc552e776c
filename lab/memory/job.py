"""The jobs whose memory the lab measures: ``spark-submit job.py NAME RESULT`` runs one and writes what it took.

They make their rows themselves, so that nothing but memory limits them.  The result has the CPU time of all processes
of the session, which a busy machine changes less than time, and the largest resident sizes.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

_TICKS = os.sysconf("SC_CLK_TCK")


def _rows(spark: SparkSession, count: int, parts: int = 4) -> DataFrame:
    """Rows of a number and 64 characters, different in each."""
    return spark.range(0, count, 1, parts).withColumn(
        "text", sf.repeat(sf.lpad(sf.col("id").cast("string"), 8, "0"), 8)
    )


def _use(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def sort(spark: SparkSession) -> None:
    _use(_rows(spark, 3_000_000).sort("text"))


def aggregate(spark: SparkSession) -> None:
    _use(_rows(spark, 3_000_000).groupBy("text").agg(sf.sum("id"), sf.max("id")))


def broadcast_join(spark: SparkSession) -> None:
    _use(_rows(spark, 3_000_000).join(sf.broadcast(_rows(spark, 2_000_000).withColumnRenamed("text", "other")), "id"))


def merge_join(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    _use(_rows(spark, 2_500_000).join(_rows(spark, 2_500_000).withColumnRenamed("text", "other"), "id"))


def cached_rows(spark: SparkSession) -> None:
    rows = _rows(spark, 4_000_000, 8).persist(StorageLevel.MEMORY_AND_DISK)
    for _ in range(3):
        rows.agg(sf.sum(sf.length("text"))).collect()


def collect_rows(spark: SparkSession) -> None:
    _rows(spark, 1_500_000).collect()


def collect_list(spark: SparkSession) -> None:
    rows = _rows(spark, 1_500_000).withColumn("text", sf.concat("text", "text", "text"))
    _use(rows.groupBy((sf.col("id") % 40).alias("key")).agg(sf.collect_list("text").alias("texts")))


def percentile(spark: SparkSession) -> None:
    rows = spark.range(0, 3_000_000, 1, 4).withColumn("value", sf.rand(7))
    rows.groupBy((sf.col("id") % 4).alias("key")).agg(sf.percentile("value", sf.lit(0.5))).collect()


def window(spark: SparkSession) -> None:
    rows = _rows(spark, 3_000_000).withColumn("key", sf.col("id") % 4)
    whole = Window.partitionBy("key")
    _use(rows.withColumn("most", sf.max("text").over(whole)))


def large_rows(spark: SparkSession) -> None:
    part = sf.concat(sf.lpad(sf.col("id").cast("string"), 63, "x"), sf.lit(","))
    texts = spark.range(0, 8, 1, 4).withColumn("text", sf.repeat(part, 800_000))
    parts = texts.withColumn("part", sf.explode(sf.split("text", ","))).select(sf.length("part").alias("size"))
    parts.groupBy("size").count().collect()


def python_groups(spark: SparkSession) -> None:
    rows = spark.sparkContext.range(0, 300_000, 1, 4).map(lambda each: (each % 50, str(each) * 150))
    rows.groupByKey(2).mapValues(lambda values: sum(map(len, values))).collect()


def pandas_groups(spark: SparkSession) -> None:
    def longest(frame: Any) -> Any:
        frame["text"] = frame["text"].str.upper()
        return frame.sort_values("text").head(1)

    rows = _rows(spark, 1_500_000).withColumn("key", sf.col("id") % 6)
    rows.groupBy("key").applyInPandas(longest, "id long, text string, key long").collect()


JOBS: dict[str, Callable[[SparkSession], None]] = {
    each.__name__.replace("_", "-"): each
    for each in (
        sort,
        aggregate,
        broadcast_join,
        merge_join,
        cached_rows,
        collect_rows,
        collect_list,
        percentile,
        window,
        large_rows,
        python_groups,
        pandas_groups,
    )
}


def _processes() -> Iterator[tuple[Path, list[str]]]:
    """The processes of this session: folder of /proc, and the fields of its ``stat`` after the name."""
    own = os.getsid(0)
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if int(fields[3]) == own:
            yield folder, fields


def _cpu_s() -> float:
    """CPU time of the session's processes and of those that ended."""
    return sum(sum(map(int, fields[11:15])) for _, fields in _processes()) / _TICKS


def _resident_bytes() -> dict[str, int]:
    """The largest resident sizes so far of the JVM, and of all Python workers together."""
    found = {"jvm": 0, "python": 0}
    for folder, _ in _processes():
        try:
            command = (folder / "cmdline").read_bytes()
            peak = next(line for line in (folder / "status").read_text().splitlines() if line.startswith("VmHWM"))
        except (OSError, StopIteration):
            continue
        kind = "jvm" if b"org.apache.spark.deploy.SparkSubmit" in command else "python" if b"daemon" in command else ""
        if kind:
            found[kind] += int(peak.split()[1]) << 10
    return found


def main() -> None:
    name, result = sys.argv[1:]
    with SparkSession.builder.appName(name).getOrCreate() as spark:
        before_s, begin = _cpu_s(), time.monotonic()
        JOBS[name](spark)
        took = {"wall_s": time.monotonic() - begin, "cpu_s": _cpu_s() - before_s, "resident_bytes": _resident_bytes()}
    Path(result).write_text(json.dumps(took))


if __name__ == "__main__":
    main()
