"""``python -m lab.streams.job FOLDER``: one run of a streaming query, as FOLDER/configuration.json says.

The event log is left in FOLDER.  The query runs first for some seconds under another name, so that the measured one
finds compiled code.
"""

from __future__ import annotations

import json
import math
import shutil
import sys
import threading
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from lab.streams.suite import Configuration

WARM_UP_S = 15
_FILES_PER_S = 2
_EPOCH_S = 1_767_225_600  # of event times, 2026-01-01
_WAVE_S, _WAVE = 12, 0.6  # the rate of a varied stream is a wave around its mean
_DUPLICATES = 10  # one row in so many is a duplicate
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def session(one: Configuration, folder: Path) -> SparkSession:
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder.as_uri(),
        "spark.eventLog.compress": "true",
        "spark.eventLog.rolling.enabled": "false",
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1500m",
        "spark.sql.shuffle.partitions": str(one.partitions),
        "spark.sql.session.timeZone": "UTC",
        "spark.local.dir": str(folder / "scratch"),
    }
    if one.job == "windows":
        settings["spark.sql.streaming.stateStore.providerClass"] = _ROCKSDB
    builder = SparkSession.builder.master("local[2]").appName(one.name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


class Files(threading.Thread):
    """Moves files that are written before into the folder of a stream, at the rate of the configuration."""

    def __init__(self, one: Configuration, folder: Path, seconds: int) -> None:
        super().__init__(daemon=True)
        self._ready, self.folder = folder / "ready", folder / "arriving"
        for each in (self._ready, self.folder):
            each.mkdir(parents=True)
        self._count, number = seconds * _FILES_PER_S, 0
        for place in range(self._count):
            at_s = place / _FILES_PER_S
            wave = 1 + (_WAVE * math.sin(2 * math.pi * at_s / _WAVE_S) if one.varied else 0.0)
            rows = round(one.rate / _FILES_PER_S * wave)
            text = "".join(
                f'{{"id":{each - each % _DUPLICATES // (_DUPLICATES - 1)},"at":{_EPOCH_S + at_s:.3f},'
                f'"user":"u{each * 7919 % 100_000}","amount":{each % 1000}.25}}\n'
                for each in range(number, number + rows)
            )
            (self._ready / f"{place:05d}.json").write_text(text, encoding="utf-8")
            number += rows

    def run(self) -> None:
        begin = time.monotonic()
        for place in range(self._count):
            time.sleep(max(begin + place / _FILES_PER_S - time.monotonic(), 0.0))
            (self._ready / f"{place:05d}.json").rename(self.folder / f"{place:05d}.json")


def windows(spark: SparkSession, one: Configuration, seconds: int) -> DataFrame:
    """Counts and sums by key and window of 5 s, of rows of the rate source; most keys are new."""
    source = spark.readStream.format("rate").option("rowsPerSecond", 2 * one.rate if one.varied else one.rate)
    if one.varied:
        source = source.option("rampUpTime", f"{seconds}s")
    key = (sf.hash("value") % 5_000_000).alias("key")
    rows = source.load().withWatermark("timestamp", "5 seconds")
    return rows.groupBy(sf.window("timestamp", "5 seconds"), key).agg(sf.count("*"), sf.sum("value"))


def dedupe(spark: SparkSession, folder: Path) -> DataFrame:
    """Rows of JSON files without duplicates."""
    rows = spark.readStream.schema("id BIGINT, at DOUBLE, user STRING, amount DOUBLE").json(str(folder))
    at = rows.withColumn("at", sf.timestamp_seconds("at")).withWatermark("at", "10 seconds")
    return at.dropDuplicatesWithinWatermark(["id"])


def stream(spark: SparkSession, one: Configuration, folder: Path, name: str, seconds: int) -> None:
    """Run the query under a name for some seconds."""
    files = Files(one, folder, seconds) if one.job == "dedupe" else None
    frame = windows(spark, one, seconds) if files is None else dedupe(spark, files.folder)
    writer = frame.writeStream.format("noop").outputMode("update").queryName(name)
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(processingTime=f"{one.trigger_s} seconds").start()
    if files is not None:
        files.start()
    query.awaitTermination(seconds)
    query.stop()
    shutil.rmtree(folder)


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    one = Configuration(**json.loads((folder / "configuration.json").read_text(encoding="utf-8")))
    spark = session(one, folder)
    spark.sparkContext.setLogLevel("ERROR")
    for name, seconds in (("warm-up", WARM_UP_S), (one.job, one.seconds)):
        stream(spark, one, folder / name, name, seconds)
    spark.stop()


if __name__ == "__main__":
    main()
