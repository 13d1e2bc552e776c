"""The program's builder sets the shuffle partitions, so that ``--conf`` has no effect."""

import sys

from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.appName("builder-partitions")
    .config("spark.sql.shuffle.partitions", "450")
    .config("spark.sql.adaptive.enabled", "false")
    .getOrCreate()
)
events = spark.read.parquet(f"{sys.argv[1]}/events.parquet")
events.groupBy("user").sum("value").orderBy("user").write.mode("overwrite").parquet(f"{sys.argv[2]}/users")
spark.stop()
