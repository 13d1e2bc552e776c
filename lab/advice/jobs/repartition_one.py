"""``repartition(1)`` before an expensive step."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, sha2

spark = SparkSession.builder.appName("repartition-one").getOrCreate()
events = spark.read.parquet(f"{sys.argv[1]}/events.parquet").repartition(1)
events.withColumn("hash", sha2(sha2(col("text"), 512), 512)).write.mode("overwrite").parquet(f"{sys.argv[2]}/hashed")
spark.stop()
