"""A large CSV file whose schema Spark infers by reading it once more."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("inferred-schema").getOrCreate()
rows = spark.read.csv(f"{sys.argv[1]}/events.csv", header=True, inferSchema=True)
rows.groupBy("kind").sum("value").collect()
spark.stop()
