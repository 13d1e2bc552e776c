"""A join with a small table, where the broadcast threshold is -1."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("missed-broadcast").getOrCreate()
events = spark.read.parquet(f"{sys.argv[1]}/events.parquet")
kinds = spark.read.parquet(f"{sys.argv[1]}/kinds.parquet")
events.join(kinds, "kind").groupBy("label").sum("value").collect()
spark.stop()
