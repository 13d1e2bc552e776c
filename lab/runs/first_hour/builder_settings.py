"""A job whose builder sets a number of shuffle partitions that is far too large, so that --conf does nothing."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import col

spark = (
    SparkSession.builder.master("local[2]")
    .appName("builder-settings")
    .config("spark.ui.enabled", "false")
    .config("spark.eventLog.enabled", "true")
    .config("spark.eventLog.dir", sys.argv[1])
    .config("spark.sql.shuffle.partitions", "800")
    .config("spark.sql.adaptive.enabled", "false")
    .getOrCreate()
)
orders = spark.range(0, 2_000_000, 1, 2).withColumn("key", col("id") % 1000)
orders.groupBy("key").count().collect()
orders.groupBy((col("key") % 7).alias("week")).sum("id").collect()
spark.stop()
