"""``python -m lab.runs.lakehouse delta|iceberg --out DIR``: the event log of a table's life in a lakehouse format.

A local run of two slots appends many small files, reads them twice, merges, deletes with deletion vectors (merge on
read), compacts the table, and reads it again.  The jars come from Maven; Delta 4.0 and Iceberg 1.10 are for Spark 4.0.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from lab.errors import LabError
from lab.runs import recorded
from lab.runs.cluster import find_spark, spark_environment
from lab.runs.maven import fetched

TIMEOUT_S = 300

JARS = {
    "delta": (("io.delta", "delta-spark_2.13", "4.0.0"), ("io.delta", "delta-storage", "4.0.0")),
    "iceberg": (("org.apache.iceberg", "iceberg-spark-runtime-4.0_2.13", "1.10.0"),),
}
SETTINGS = {
    "delta": {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    },
    "iceberg": {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
    },
}


def record(kind: str, out: Path) -> Path:
    """The log of a run with tables of a kind.  Raises LabError if it fails."""
    shutil.rmtree(out, ignore_errors=True)
    (out / "logs").mkdir(parents=True)
    jars = [str(fetched(*each, without="use the kept recording")) for each in JARS[kind]]
    settings = SETTINGS[kind] | {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "true",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.dir": (out / "logs").as_uri(),
        "spark.local.dir": str(out / "scratch"),
        "spark.sql.warehouse.dir": str(out / "warehouse"),
        "spark.sql.shuffle.partitions": "4",
        "spark.driver.memory": "2g",
        "spark.ui.enabled": "false",
    }
    if kind == "iceberg":
        settings["spark.sql.catalog.lake.warehouse"] = str(out / "lake")
    words = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    command = [str(find_spark() / "bin" / "spark-submit"), "--master", "local[2]", "--jars", ",".join(jars), *words]
    program = Path(__file__).with_name("lakehouse_job.py")
    environment = spark_environment()
    with (out / "spark.txt").open("wb") as log:
        try:
            done = subprocess.run(
                [*command, str(program), kind],
                env=environment, cwd=out, stdout=log, stderr=log, timeout=TIMEOUT_S, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise LabError(f"Spark did not end in {TIMEOUT_S} s; see {out / 'spark.txt'}.") from None
    logs = sorted((out / "logs").iterdir())
    if done.returncode or len(logs) != 1:
        raise LabError(f"Spark ended with exit status {done.returncode} and {len(logs)} logs; see {out / 'spark.txt'}.")
    return logs[0]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 0, or 1 with one sentence on stderr."""
    return recorded.run("lab.runs.lakehouse", __doc__, JARS, record, arguments)


if __name__ == "__main__":
    sys.exit(main())
