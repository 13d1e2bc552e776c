"""``python -m lab.streams.job FOLDER``: one run of a streaming query, as FOLDER/configuration.json says.

The event log is left in FOLDER.  The query runs first for some seconds under another name, so that the measured one
finds compiled code.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from lab.streams.feeds import Files, Topic, broker, connector_jars
from lab.streams.suite import Configuration

WARM_UP_S = 12
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_SCHEMA = "id BIGINT, at DOUBLE, user STRING, amount DOUBLE"


def session(one: Configuration, folder: Path) -> SparkSession:
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder.as_uri(),
        "spark.eventLog.compress": "true",
        "spark.eventLog.rolling.enabled": "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1500m",
        "spark.sql.shuffle.partitions": str(one.partitions),
        "spark.sql.session.timeZone": "UTC",
        "spark.local.dir": str(folder / "scratch"),
    }
    if one.job == "windows":
        settings["spark.sql.streaming.stateStore.providerClass"] = _ROCKSDB
    if one.job == "kafka":
        settings["spark.jars"] = connector_jars()
    builder = SparkSession.builder.master("local[2]").appName(one.name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def windows(spark: SparkSession, one: Configuration, seconds: int) -> DataFrame:
    """Counts and sums by key and window of 5 s, of rows of the rate source; most keys are new."""
    source = spark.readStream.format("rate").option("rowsPerSecond", 2 * one.rate if one.varied else one.rate)
    if one.varied:
        source = source.option("rampUpTime", f"{seconds}s")
    key = (sf.hash("value") % 5_000_000).alias("key")
    rows = source.load().withWatermark("timestamp", "5 seconds")
    return rows.groupBy(sf.window("timestamp", "5 seconds"), key).agg(sf.count("*"), sf.sum("value"))


def of_files(spark: SparkSession, folder: Path) -> DataFrame:
    """Rows of JSON files."""
    return spark.readStream.schema(_SCHEMA).json(str(folder))


def of_topic(spark: SparkSession, address: str, topic: str) -> DataFrame:
    """Rows of a topic, from its beginning."""
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", address)
    found = source.option("subscribe", topic).option("startingOffsets", "earliest").load()
    return found.select(sf.from_json(sf.col("value").cast("string"), _SCHEMA).alias("row")).select("row.*")


def deduplicated(rows: DataFrame) -> DataFrame:
    """Rows without duplicates within 10 s of event time."""
    at = rows.withColumn("at", sf.timestamp_seconds("at")).withWatermark("at", "10 seconds")
    return at.dropDuplicatesWithinWatermark(["id"])


def stream(spark: SparkSession, one: Configuration, folder: Path, name: str, seconds: int, address: str | None) -> None:
    """Run the query under a name for some seconds."""
    files = Files(one, folder, seconds) if one.job == "dedupe" else None
    topic = None if address is None else Topic(one, address, name, seconds)
    if files is not None:
        frame = deduplicated(of_files(spark, files.folder))
    elif address is not None:
        frame = deduplicated(of_topic(spark, address, name))
    else:
        frame = windows(spark, one, seconds)
    writer = frame.writeStream.format("noop").outputMode("update").queryName(name)
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(processingTime=f"{one.trigger_s} seconds").start()
    if files is not None:
        files.start()
    query.awaitTermination(seconds)
    query.stop()
    for feed in (files, topic):
        if feed is not None:
            feed.stop()
    shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    one = Configuration(**json.loads((folder / "configuration.json").read_text(encoding="utf-8")))
    spark = session(one, folder)
    spark.sparkContext.setLogLevel("ERROR")
    with broker(folder / "kafka") if one.job == "kafka" else contextlib.nullcontext() as address:
        for name, seconds in (("warm-up", WARM_UP_S), (one.job, one.seconds)):
            stream(spark, one, folder / name, name, seconds, address)
        spark.stop()
    shutil.rmtree(folder / "kafka", ignore_errors=True)


if __name__ == "__main__":
    main()
