"""A query of TPC-H: ``spark-submit tpch.py TABLES OUTPUT QUERY``."""

import sys

from pyspark.sql import SparkSession

from lab.runs.workloads import find_workload

workload = find_workload(sys.argv[3])
spark = SparkSession.builder.appName(f"tpch-{workload.name}").getOrCreate()
workload.prepare(spark, sys.argv[1])
workload.run(spark)
spark.stop()
