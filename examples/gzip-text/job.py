"""Count the lines of gzip-compressed text: ``spark-submit job.py DATA``.

A gzip file cannot be split, so each file is one task, and a task mostly decompresses and decodes: Hadoop's input
format creates a ``Text`` for each line, and Spark converts it to a string.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

if __name__ == "__main__":
    spark = SparkSession.builder.appName("gzip-text").getOrCreate()
    # The Java context's RDD, because PySpark's own would pass every line to Python.
    print(spark.sparkContext._jsc.textFile(sys.argv[1]).count())
    spark.stop()
