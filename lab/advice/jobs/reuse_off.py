"""A join of a result with itself, where the reuse of exchanges is off."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import max, sum

spark = SparkSession.builder.appName("reuse-off").getOrCreate()
events = spark.read.parquet(f"{sys.argv[1]}/events.parquet")
users = events.groupBy("user").agg(sum("value").alias("sum"), max("text").alias("last"))
users.alias("a").join(users.alias("b"), "user").agg(sum("a.sum"), max("b.last")).collect()
spark.stop()
