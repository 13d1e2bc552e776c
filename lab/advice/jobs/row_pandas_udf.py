"""A pandas function that goes through its rows in Python."""

import sys

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.functions import col
from pyspark.sql.pandas.functions import pandas_udf

spark = SparkSession.builder.appName("row-pandas-udf").getOrCreate()


@pandas_udf("double")
def score(values: pd.Series) -> pd.Series:
    return values.map(lambda value: (value * 3 + 1) ** 0.5)


events = spark.read.parquet(f"{sys.argv[1]}/events.parquet")
events.withColumn("score", score(col("value"))).groupBy("kind").sum("score").collect()
spark.stop()
