"""A join with a hot key, where adaptive execution is off."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, sha2

spark = SparkSession.builder.appName("skewed-join").getOrCreate()
skewed = spark.read.parquet(f"{sys.argv[1]}/skewed.parquet")
users = spark.read.parquet(f"{sys.argv[1]}/users.parquet")
joined = skewed.join(users, "user").withColumn("hash", sha2(sha2(sha2(col("text"), 512), 512), 512))
joined.groupBy("country").agg({"hash": "max"}).collect()
spark.stop()
