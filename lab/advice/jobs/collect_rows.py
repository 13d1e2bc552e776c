"""All rows collected into the driver, for a sum."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("collect-rows").getOrCreate()
events = spark.read.parquet(f"{sys.argv[1]}/events.parquet")
total = sum(row.value for row in events.collect())
spark.stop()
