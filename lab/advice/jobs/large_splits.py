"""Splits of 2 GB: one task reads the whole file."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, sha2

spark = SparkSession.builder.appName("large-splits").getOrCreate()
rows = spark.read.csv(f"{sys.argv[1]}/events.csv", schema="id long, user long, kind string, value double, text string")
rows.withColumn("hash", sha2(sha2(col("text"), 512), 512)).groupBy("kind").agg({"hash": "max"}).collect()
spark.stop()
