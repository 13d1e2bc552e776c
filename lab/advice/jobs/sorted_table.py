"""Filters on a column by which the files are not sorted, so that every query reads all rows."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("sorted-table").getOrCreate()
events = spark.read.parquet(f"{sys.argv[1]}/events.parquet")
for user in range(12):
    events.filter(f"user = {user * 1000}").groupBy("kind").agg({"text": "max"}).collect()
spark.stop()
