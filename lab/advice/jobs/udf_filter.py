"""A filter by a Python function, where Spark can compare by itself."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, udf

spark = SparkSession.builder.appName("udf-filter").getOrCreate()


@udf("boolean")
def recent(number: int) -> bool:
    return number >= 1_900_000


events = spark.read.parquet(f"{sys.argv[1]}/events.parquet")
events.filter(recent(col("id"))).groupBy("kind").agg({"text": "max"}).collect()
spark.stop()
