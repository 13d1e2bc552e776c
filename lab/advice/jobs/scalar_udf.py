"""A Python function for each row, where Spark has a built-in function."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, udf

spark = SparkSession.builder.appName("scalar-udf").getOrCreate()


@udf("int")
def vowels(text: str) -> int:
    return sum(letter in "aeiou" for letter in text)


events = spark.read.parquet(f"{sys.argv[1]}/events.parquet")
events.withColumn("vowels", vowels(col("text"))).groupBy("kind").sum("vowels").collect()
spark.stop()
