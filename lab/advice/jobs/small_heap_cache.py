"""A cache that does not fit into the heap, read by four queries."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, sha2

spark = SparkSession.builder.appName("small-heap-cache").getOrCreate()
events = spark.read.parquet(f"{sys.argv[1]}/events.parquet")
hashed = events.withColumn("hash", sha2(col("text"), 512)).cache()
for letter in "0123":
    hashed.filter(col("hash").startswith(letter)).groupBy("kind").count().collect()
spark.stop()
