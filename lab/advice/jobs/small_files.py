"""1 500 small CSV files, read with an inferred schema."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import sum

spark = SparkSession.builder.appName("small-files").getOrCreate()
rows = spark.read.csv(f"{sys.argv[1]}/small", header=True, inferSchema=True)
rows.groupBy("kind").agg(sum("value")).collect()
spark.stop()
