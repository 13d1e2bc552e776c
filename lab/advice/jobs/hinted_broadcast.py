"""A join with few rows of a large table: Spark does not know how few, so only a hint broadcasts them."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import count, max, min

spark = SparkSession.builder.appName("hinted-broadcast").getOrCreate()
events = spark.read.parquet(f"{sys.argv[1]}/events.parquet")
texts = [max("text").alias("last"), min("text").alias("first"), count("id").alias("rows")]
active = events.groupBy("user").agg(*texts).filter("rows > 60")
joined = events.join(active, "user")
joined.groupBy("kind").agg(max("text"), max("last"), min("first")).collect()
spark.stop()
