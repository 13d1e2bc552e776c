"""Splits of 128 kB: a thousand tasks read one file."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("small-splits").getOrCreate()
rows = spark.read.csv(f"{sys.argv[1]}/events.csv", schema="id long, user long, kind string, value double, text string")
rows.groupBy("kind").sum("value").collect()
spark.stop()
