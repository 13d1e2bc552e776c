"""``coalesce(1)`` before the write, so that one task does all the work."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, sha2

spark = SparkSession.builder.appName("coalesce-one").getOrCreate()
events = spark.read.parquet(f"{sys.argv[1]}/events.parquet")
hashed = events.withColumn("hash", sha2(sha2(col("text"), 512), 512))
hashed.coalesce(1).write.mode("overwrite").parquet(f"{sys.argv[2]}/hashed")
spark.stop()
