"""A window over a key of which one value has most rows."""

import sys

from pyspark.sql import SparkSession, Window
from pyspark.sql.functions import rank

spark = SparkSession.builder.appName("skewed-aggregation").getOrCreate()
skewed = spark.read.parquet(f"{sys.argv[1]}/skewed.parquet")
ranked = skewed.withColumn("rank", rank().over(Window.partitionBy("user").orderBy("value")))
ranked.filter("rank <= 3").write.mode("overwrite").parquet(f"{sys.argv[2]}/ranked")
spark.stop()
