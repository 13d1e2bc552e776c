"""A job that writes 2 000 small files, reads them without a schema, and puts all rows into one task."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, length, sha2

spark = (
    SparkSession.builder.master("local[2]")
    .appName("small-files")
    .config("spark.ui.enabled", "false")
    .config("spark.eventLog.enabled", "true")
    .config("spark.eventLog.dir", sys.argv[1])
    .getOrCreate()
)
with tempfile.TemporaryDirectory() as folder:
    for number in range(2000):
        lines = (f"{number},{line},name-{number * line}\n" for line in range(400))
        Path(folder, f"part-{number:04}.csv").write_text("".join(lines))
    rows = spark.read.csv(folder, inferSchema=True)
    hashed = rows.coalesce(1).withColumn("hash", sha2(sha2(col("_c2"), 512), 512))
    hashed.filter(length("hash") > 0).write.parquet(f"{folder}/out")
    spark.read.parquet(f"{folder}/out").repartition(1).groupBy("_c0").count().collect()
spark.stop()
