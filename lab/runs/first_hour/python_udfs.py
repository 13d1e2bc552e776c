"""A job whose time is in two Python functions: one of a row at a time, one of pandas."""

from __future__ import annotations

import math
import sys

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, udf
from pyspark.sql.pandas.functions import pandas_udf

spark = (
    SparkSession.builder.master("local[2]")
    .appName("python-udfs")
    .config("spark.ui.enabled", "false")
    .config("spark.eventLog.enabled", "true")
    .config("spark.eventLog.dir", sys.argv[1])
    .getOrCreate()
)


@udf("double")
def normalise(value: int) -> float:
    """Some arithmetic on one row."""
    found = float(value % 997)
    for step in range(1, 30):
        found = math.sqrt(found * found + step)
    return found


@pandas_udf("double")  # type: ignore[call-overload, untyped-decorator]
def score(values: pd.Series) -> pd.Series:
    """The same on a column, row by row."""
    return values.map(lambda value: sum(math.sin(value + step) for step in range(12)))


rows = spark.range(0, 600_000, 1, 8).withColumn("normal", normalise(col("id")))
rows.withColumn("score", score(col("normal"))).groupBy((col("id") % 10).alias("key")).sum("score").collect()
spark.stop()
