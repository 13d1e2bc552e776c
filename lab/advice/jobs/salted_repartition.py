"""Rows repartitioned by a key of which one value has most rows, before an expensive step."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, sha2

spark = SparkSession.builder.appName("salted-repartition").getOrCreate()
skewed = spark.read.parquet(f"{sys.argv[1]}/skewed.parquet").repartition(8, "user")
hashed = skewed.withColumn("hash", sha2(sha2(sha2(col("text"), 512), 512), 512))
hashed.write.mode("overwrite").parquet(f"{sys.argv[2]}/hashed")
spark.stop()
