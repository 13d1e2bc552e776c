"""A small streaming query on real Spark, for its event log: rows from the rate source, counted by key.

    python -m lab.runs.streaming --out runs/streaming                      keeps up: a batch each second
    python -m lab.runs.streaming --out runs/behind --work-ms 2500          its batches take longer than their trigger

One JVM (local[2]) and no cluster: what is wanted is the log's progress events, not times to be trusted.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crystalperf.indexes.errors import report_errors
from lab.errors import LabError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LIMIT_S = 480.0


def record(folder: Path, batches: int, rows_per_second: int, work_ms: int) -> Path:
    """Run the query until it made so many batches; returns its event log.

    Raises LabError where pyspark is missing or it takes too long.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise LabError("The lab needs pyspark; install it with 'pip install pyspark==4.0.1'.") from None
    logs, checkpoint = folder / "log", folder / "checkpoint"
    logs.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(checkpoint, ignore_errors=True)
    settings = {
        "spark.master": "local[2]",
        "spark.app.name": "crystalperf-lab streaming",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": logs.resolve().as_uri(),
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    try:
        rows = session.readStream.format("rate").option("rowsPerSecond", rows_per_second).load()
        counted = rows.groupBy((rows.value % 10).alias("key")).count()

        def write(batch: DataFrame, _batch_id: int) -> None:
            time.sleep(work_ms / 1000)  # in the driver, which a batch waits for
            batch.write.format("noop").mode("overwrite").save()

        query = (
            counted.writeStream.outputMode("complete")
            .foreachBatch(write)
            .queryName("counted")
            .trigger(processingTime="1 second")
            .option("checkpointLocation", str(checkpoint))
            .start()
        )
        deadline = time.monotonic() + LIMIT_S
        while sum(each["numInputRows"] > 0 for each in query.recentProgress) < batches:
            if query.awaitTermination(1) or time.monotonic() > deadline:
                raise LabError(f"the query made no {batches} batches within {LIMIT_S:.0f} s: {query.exception()}")
        query.stop()
    finally:
        session.stop()
    return max(logs.iterdir(), key=lambda each: each.stat().st_mtime)


@report_errors
def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m lab.runs.streaming", description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where log and checkpoint go")
    parser.add_argument("--batches", type=int, default=10, metavar="N", help="default 10")
    parser.add_argument("--rows", type=int, default=1000, metavar="N", help="a second (default 1000)")
    parser.add_argument("--work-ms", type=int, default=0, metavar="N", help="what a batch waits for (default nothing)")
    given = parser.parse_args(arguments)
    print(record(given.out, given.batches, given.rows, given.work_ms))


if __name__ == "__main__":
    sys.exit(main())
