"""A query for each of 120 users, where one would do."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("many-queries").getOrCreate()
events = spark.read.parquet(f"{sys.argv[1]}/events.parquet")
counts = {user: events.filter(events.user == user).count() for user in range(60)}
spark.stop()
