"""A table that is partitioned by day, and a filter that does not name the day."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("partition-column").getOrCreate()
days = spark.read.parquet(f"{sys.argv[1]}/by_day")
for day in range(8):
    rows = days.filter(f"floor(id / 40000) = {day}")
    rows.groupBy("kind").agg({"text": "max"}).collect()
spark.stop()
