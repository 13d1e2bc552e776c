"""The driver program of a lab run, started by spark-submit: ``driver.py WORKLOAD DATA RESULT``.

It prepares the data, runs the workload once, and writes when the query proper began and ended.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

from lab.workloads import find_workload


def main(name: str, data: Path, result: Path) -> None:
    """Run one workload and write ``result`` as JSON: start_ms and end_ms (epoch), rows, application_id, spark_conf."""
    workload = find_workload(name)
    spark = SparkSession.builder.appName(f"crystalperf-lab {name}").getOrCreate()
    context = spark.sparkContext
    workload.prepare(spark, data)
    context.setJobDescription(name)
    start_ns = time.time_ns()
    rows = workload.run(spark)
    end_ns = time.time_ns()
    record = {
        "start_ms": start_ns // 10**6,
        "end_ms": end_ns // 10**6,
        "wall_ms": (end_ns - start_ns) / 10**6,
        "rows": rows,
        "application_id": context.applicationId,
        "spark_conf": dict(sorted(context.getConf().getAll())),
        "spark_version": spark.version,
    }
    result.write_text(json.dumps(record, indent=2))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
