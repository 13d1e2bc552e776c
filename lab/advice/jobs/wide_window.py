"""A window without a partition: one task sorts all rows."""

import sys

from pyspark.sql import SparkSession, Window
from pyspark.sql.functions import row_number

spark = SparkSession.builder.appName("wide-window").getOrCreate()
events = spark.read.parquet(f"{sys.argv[1]}/events.parquet")
numbered = events.withColumn("number", row_number().over(Window.orderBy("value")))
numbered.filter("number % 1000 = 0").write.mode("overwrite").parquet(f"{sys.argv[2]}/numbered")
spark.stop()
