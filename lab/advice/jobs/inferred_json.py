"""JSON lines whose schema Spark infers by reading them once more."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("inferred-json").getOrCreate()
rows = spark.read.json(f"{sys.argv[1]}/events.json")
rows.groupBy("kind").sum("value").collect()
spark.stop()
