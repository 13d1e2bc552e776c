"""One aggregation whose columns a query uses in two parts, so that Spark computes it twice."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import count, max, sum

spark = SparkSession.builder.appName("repeated-aggregate").getOrCreate()
events = spark.read.parquet(f"{sys.argv[1]}/events.parquet")
users = events.groupBy("user").agg(sum("value").alias("sum"), max("text").alias("last"), count("id").alias("rows"))
sums = users.filter("rows > 40").select("user", "sum")
texts = users.select("user", "last")
sums.join(texts, "user").agg(max("sum"), max("last")).collect()
spark.stop()
