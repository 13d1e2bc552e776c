"""Python work between queries, on the driver."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("driver-loop").getOrCreate()
events = spark.read.parquet(f"{sys.argv[1]}/events.parquet")
found = 0
for row in events.select("text").limit(400_000).collect():
    found += sum(letter in "aeiou" for letter in row.text)
events.filter(events.user < found % 100).count()
spark.stop()
