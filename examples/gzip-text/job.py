"""Count the lines of gzip-compressed text: ``spark-submit job.py DATA``.

A gzip file cannot be split, so each file is one task, and a task does little but decompress and decode: Hadoop's input
format makes a ``Text`` of each line, and Spark a string of it.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

if __name__ == "__main__":
    spark = SparkSession.builder.appName("gzip-text").getOrCreate()
    # The Java context's RDD: PySpark's own would hand every line to Python.
    print(spark.sparkContext._jsc.textFile(sys.argv[1]).count())
    spark.stop()
