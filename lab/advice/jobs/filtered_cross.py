"""A cross join, and a filter that Spark cannot move into it."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, rand

spark = SparkSession.builder.appName("filtered-cross").getOrCreate()
events = spark.read.parquet(f"{sys.argv[1]}/events.parquet")
few = events.filter("id < 4000").select("id", col("user").alias("key"))
users = spark.read.parquet(f"{sys.argv[1]}/users.parquet")
pairs = few.crossJoin(users).withColumn("draw", rand(1))
pairs.filter("key = user AND draw >= 0").groupBy("country").count().collect()
spark.stop()
