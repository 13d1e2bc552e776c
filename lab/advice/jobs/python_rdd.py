"""A word count with an RDD of Python objects."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("python-rdd").getOrCreate()
lines = spark.sparkContext.textFile(f"{sys.argv[1]}/events.csv")
counts = lines.flatMap(lambda line: line.split(",")[4].split("-")).map(lambda word: (word, 1)).reduceByKey(int.__add__)
counts.count()
spark.stop()
