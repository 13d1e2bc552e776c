"""600 shuffle partitions that adaptive execution may not merge."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("coalesce-off").getOrCreate()
events = spark.read.parquet(f"{sys.argv[1]}/events.parquet")
events.groupBy("user").sum("value").write.mode("overwrite").parquet(f"{sys.argv[2]}/users")
events.groupBy("kind").count().orderBy("kind").collect()
spark.stop()
