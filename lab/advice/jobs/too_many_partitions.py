"""Two aggregations with far too many shuffle partitions."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import col

spark = SparkSession.builder.appName("too-many-partitions").getOrCreate()
events = spark.read.parquet(f"{sys.argv[1]}/events.parquet")
events.groupBy("user").sum("value").write.mode("overwrite").parquet(f"{sys.argv[2]}/users")
events.groupBy((col("user") % 97).alias("week")).count().collect()
spark.stop()
