"""A join of values with ranges, which compares all pairs."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("range-join").getOrCreate()
events = spark.read.parquet(f"{sys.argv[1]}/events.parquet")
ranges = spark.range(400).selectExpr("id AS range", "id * 125 AS low", "id * 125 + 125 AS high")
joined = events.join(ranges, (events.user >= ranges.low) & (events.user < ranges.high))
joined.groupBy("range").agg({"text": "max"}).collect()
spark.stop()
