"""A hint that broadcasts a large table."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import broadcast

spark = SparkSession.builder.appName("large-broadcast").getOrCreate()
events = spark.read.parquet(f"{sys.argv[1]}/events.parquet")
users = spark.read.parquet(f"{sys.argv[1]}/skewed.parquet").dropDuplicates(["value"])
events.join(broadcast(users), "value").groupBy(events.kind).count().collect()
spark.stop()
