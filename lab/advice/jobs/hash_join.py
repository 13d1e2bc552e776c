"""A join that sorts both sides, where hashing the smaller one suffices."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, max

spark = SparkSession.builder.appName("hash-join").getOrCreate()
events = spark.read.parquet(f"{sys.argv[1]}/events.parquet")
some = events.filter("id % 5 = 0").select(col("id"), col("text").alias("other"), col("value").alias("number"))
for part in range(2):
    events.join(some.filter(f"number > {part / 100}"), "id").agg(max("text"), max("other")).collect()
spark.stop()
