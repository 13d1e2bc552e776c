"""A join by one key or another, which compares all pairs."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("alternative-keys").getOrCreate()
events = spark.read.parquet(f"{sys.argv[1]}/events.parquet")
few = events.filter("id < 20000").select("id", "user", "kind")
users = spark.read.parquet(f"{sys.argv[1]}/users.parquet").withColumnRenamed("user", "key")
joined = few.join(users, (few.id == users.key) | (few.user == users.key))
joined.groupBy("country").count().collect()
spark.stop()
