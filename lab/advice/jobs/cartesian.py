"""A cross join with a filter that a join on equal keys could do."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("cartesian").getOrCreate()
events = spark.read.parquet(f"{sys.argv[1]}/events.parquet").limit(60_000)
users = spark.read.parquet(f"{sys.argv[1]}/users.parquet").limit(2_000)
pairs = events.crossJoin(users.withColumnRenamed("user", "other"))
pairs.filter("user - other = 0").groupBy("country").count().collect()
spark.stop()
