"""Jobs for Comet: `python jobs.py NAME DATA FOLDER [JAR]` runs one and writes its event log and its time to FOLDER.

The input is made once, in DATA.  With JAR, Comet's, operators run in it.  A job runs twice in its process: the second
time, code is compiled and files are in the page cache.  It needs PySpark and nothing of CrystalPerf.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

ROWS = 12_000_000
ITEMS = 400_000
MEMORY = "1g"
"""Of Comet, outside the heap."""


def _sales(spark: SparkSession, data: Path) -> DataFrame:
    return spark.read.parquet(str(data / "sales"))


def native(spark: SparkSession, data: Path) -> DataFrame:
    """Only operators that Comet has: scan, filter, aggregation, exchange."""
    rows = _sales(spark, data).where("amount > 5")
    return rows.groupBy("item").agg(sf.sum("amount").alias("total"), sf.max("note")).agg(sf.sum("total"), sf.count("*"))


def python_udf(spark: SparkSession, data: Path) -> DataFrame:
    """A Python function between a native scan and a native aggregation."""
    spark.udf.register("band", lambda amount: int(amount) // 10, "int")
    rows = _sales(spark, data).where("item < 60000").selectExpr("band(amount) AS band", "item")
    return rows.groupBy("band").agg(sf.count("*").alias("sales"), sf.max("item"))


def unsupported(spark: SparkSession, data: Path) -> DataFrame:
    """An aggregate function that Comet 1.2 lacks: mode."""
    rows = _sales(spark, data).groupBy("item").agg(sf.mode("day").alias("day"))
    return rows.groupBy("day").agg(sf.count("*").alias("items"))


def spill(spark: SparkSession, data: Path) -> DataFrame:
    """A sort of more rows than fit the memory of its tasks."""
    rows = _sales(spark, data).repartition(2, "item").sortWithinPartitions("note", "amount")
    return rows.selectExpr("note", "amount", "sum(amount) OVER (PARTITION BY note ORDER BY amount) AS running").where(
        "running < 0"
    )


def merge_join(spark: SparkSession, data: Path) -> DataFrame:
    """A sort-merge join of two shuffled sides."""
    items = spark.read.parquet(str(data / "items"))
    rows = _sales(spark, data).join(items.hint("merge"), "item")
    return rows.groupBy("colour").agg(sf.sum("amount").alias("total"), sf.count("*"))


JOBS: dict[str, Callable[[SparkSession, Path], DataFrame]] = {
    each.__name__.replace("_", "-"): each for each in (native, python_udf, unsupported, spill, merge_join)
}


def _settings(name: str, folder: Path, jar: str) -> Iterator[tuple[str, str]]:
    yield "spark.ui.enabled", "false"
    yield "spark.driver.memory", "3g"
    yield "spark.eventLog.enabled", "true"
    yield "spark.eventLog.rolling.enabled", "false"
    yield "spark.eventLog.compress", "true"
    yield "spark.eventLog.dir", folder.as_uri()
    yield "spark.local.dir", str(folder / "scratch")
    yield "spark.sql.shuffle.partitions", "4"
    yield "spark.sql.autoBroadcastJoinThreshold", "-1"
    yield "spark.memory.offHeap.enabled", "true"
    yield "spark.memory.offHeap.size", "160m" if name == "spill" else MEMORY
    if name == "spill":
        yield "spark.memory.fraction", "0.1"
    if jar:
        yield "spark.jars", jar
        yield "spark.driver.extraClassPath", jar
        yield "spark.plugins", "org.apache.spark.CometPlugin"
        yield "spark.shuffle.manager", "org.apache.spark.sql.comet.execution.shuffle.CometShuffleManager"
        yield "spark.sql.extendedExplainProviders", "org.apache.comet.ExtendedExplainInfo"


def make_data(spark: SparkSession, data: Path) -> None:
    """Write the input: sales of items."""
    key = sf.pmod(sf.hash("id"), sf.lit(ITEMS))
    rows = spark.range(0, ROWS, 1, 8).select(
        key.alias("item"),
        (sf.col("id") % 365).cast("int").alias("day"),
        (sf.rand(7) * 100).alias("amount"),
        sf.lpad((sf.col("id") % 9973).cast("string"), 24, "x").alias("note"),
    )
    rows.write.mode("overwrite").parquet(str(data / "sales"))
    items = spark.range(0, ITEMS, 1, 4).select(
        sf.col("id").cast("int").alias("item"), (sf.col("id") % 17).cast("string").alias("colour")
    )
    items.write.mode("overwrite").parquet(str(data / "items"))


def main() -> None:
    name, data, folder = sys.argv[1], Path(sys.argv[2]).resolve(), Path(sys.argv[3]).resolve()
    jar = sys.argv[4] if len(sys.argv) > 4 else ""
    builder = SparkSession.builder.master("local[2]").appName(name)
    for key, value in _settings(name, folder, jar):
        builder = builder.config(key, value)
    with builder.getOrCreate() as spark:
        if name == "data":
            make_data(spark, data)
            return
        times_ms = []
        for _ in range(2):
            begin = time.monotonic()
            rows = JOBS[name](spark, data).collect()
            times_ms.append((time.monotonic() - begin) * 1000)
    found = {"wall_ms": times_ms[-1], "first_ms": times_ms[0], "rows": len(rows)}
    (folder / "run.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
