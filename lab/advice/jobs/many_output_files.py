"""2 000 output files for a few megabytes of rows."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("many-output-files").getOrCreate()
events = spark.read.parquet(f"{sys.argv[1]}/events.parquet")
events.groupBy("user").sum("value").repartition(1000).write.mode("overwrite").parquet(f"{sys.argv[2]}/users")
spark.stop()
