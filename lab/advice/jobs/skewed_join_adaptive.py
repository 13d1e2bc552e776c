"""A join with a hot key that adaptive execution does not split, because an aggregation by the key follows."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, max, sha2

spark = SparkSession.builder.appName("skewed-join-adaptive").getOrCreate()
skewed = spark.read.parquet(f"{sys.argv[1]}/skewed.parquet")
users = spark.read.parquet(f"{sys.argv[1]}/users.parquet")
joined = skewed.join(users, "user").withColumn("hash", sha2(sha2(sha2(col("text"), 512), 512), 512))
joined.groupBy("user").agg(max("hash").alias("hash"), max("country")).agg(max("hash")).collect()
spark.stop()
