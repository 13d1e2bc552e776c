"""CSV in, cleaned, joined and aggregated, Parquet out."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, regexp_replace, upper

spark = SparkSession.builder.appName("etl").getOrCreate()
rows = spark.read.csv(f"{sys.argv[1]}/events.csv", schema="id long, user long, kind string, value double, text string")
users = spark.read.parquet(f"{sys.argv[1]}/users.parquet")
clean = rows.withColumn("text", upper(regexp_replace(col("text"), "[0-9]+", "#"))).filter("value > 0.1").distinct()
clean.join(users, "user").groupBy("country", "kind").agg({"value": "avg", "text": "max"}).write.mode(
    "overwrite"
).parquet(f"{sys.argv[2]}/summary")
spark.stop()
