"""A sort and an aggregation in one shuffle partition."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, max, sha2

spark = SparkSession.builder.appName("one-partition").getOrCreate()
events = spark.read.parquet(f"{sys.argv[1]}/events.parquet")
hashed = events.groupBy("user").agg(max("text").alias("text")).withColumn("hash", sha2(sha2(col("text"), 512), 512))
hashed.orderBy("hash").write.mode("overwrite").parquet(f"{sys.argv[2]}/hashed")
spark.stop()
