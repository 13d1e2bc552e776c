"""A sort of wide rows in a small heap."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, concat, sha2

spark = SparkSession.builder.appName("spill").getOrCreate()
events = spark.read.parquet(f"{sys.argv[1]}/events.parquet")
wide = events.withColumn("wide", concat(sha2(col("text"), 512), col("text")))
wide.repartition(2).sortWithinPartitions("wide").write.mode("overwrite").parquet(f"{sys.argv[2]}/sorted")
spark.stop()
