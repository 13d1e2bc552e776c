"""``groupByKey`` where ``reduceByKey`` would do, over keys of which one is hot."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("group-by-key").getOrCreate()
rows = spark.read.parquet(f"{sys.argv[1]}/skewed.parquet").select("user", "value").rdd
rows.map(tuple).groupByKey(8).mapValues(sum).count()
spark.stop()
