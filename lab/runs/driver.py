"""The driver program of a lab run, started by spark-submit: ``driver.py WORKLOAD DATA RESULT WARM_UPS``.

It prepares the data, runs the workload WARM_UPS times to warm up, creates RESULT.ready, waits for RESULT.go (the lab
limits the nodes in between), runs the workload, and writes the start and end times of the query itself.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

from lab.runs.workloads import find_workload

GO_TIMEOUT_S = 120
WARMUP_S = 2.0
"""Pause after the warm-up, for the JIT compiler's queue, s."""


def _wait_for(file: Path) -> None:
    deadline = time.monotonic() + GO_TIMEOUT_S
    while not file.exists():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{file} did not appear within {GO_TIMEOUT_S} s")
        time.sleep(0.02)


def main(name: str, data: str, result: Path, warm_ups: int) -> None:
    """Run one workload and write ``result`` as JSON: start_ms and end_ms (epoch), rows, application_id, spark_conf."""
    workload = find_workload(name)
    spark = SparkSession.builder.appName(f"crystalperf-lab {name}").getOrCreate()
    context = spark.sparkContext
    workload.prepare(spark, data)
    for number in range(warm_ups):
        # The warm-up excludes class loading and code generation, as the paper does (§7.3).
        context.setJobDescription(f"{name} (warm-up {number + 1})")
        workload.run(spark)
    if warm_ups:
        time.sleep(WARMUP_S)
    result.with_suffix(".ready").touch()
    _wait_for(result.with_suffix(".go"))
    context.setJobDescription(name)
    start_ns = time.time_ns()
    rows = workload.run(spark)
    end_ns = time.time_ns()
    record = {
        "start_ms": start_ns // 10**6,
        "end_ms": end_ns // 10**6,
        "wall_ms": (end_ns - start_ns) / 10**6,
        "rows": rows,
        "warm_ups": warm_ups,
        "application_id": context.applicationId,
        "spark_conf": dict(sorted(context.getConf().getAll())),
        "spark_version": spark.version,
    }
    result.write_text(json.dumps(record, indent=2))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
