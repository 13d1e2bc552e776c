"""Workloads of the lab: each is a record of plain functions, by name in ``WORKLOADS``.

The TPC-H queries are those of the specification (revision 3) with its validation parameters; the Big Data Benchmark's
are those of AMPLab's page, with parameters that fit the size of the data. ``lab/runs/datasets.py`` makes the data.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lab.errors import LabError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Prepare = Callable[["SparkSession", str], None]
Run = Callable[["SparkSession"], int]


@dataclass(frozen=True)
class Workload:
    """One job of the lab.

    Attributes:
        name: its name on the command line.
        data: kind of data set that it reads (see ``lab/runs/datasets.py``).
        files: the files of the data set that it reads.
        prepare: registers the data at a path or URL in a session; its time does not count.
        run: does the work and returns the number of rows of its result; its time is measured.
        spark_conf: Spark settings that are part of the workload.
    """

    name: str
    data: str
    files: tuple[str, ...]
    prepare: Prepare
    run: Run
    spark_conf: dict[str, str] = field(default_factory=dict)


def _views(*tables: str) -> Prepare:
    def prepare(spark: SparkSession, folder: str) -> None:
        for table in tables:
            spark.read.parquet(f"{folder}/{table}.parquet").createOrReplaceTempView(table)

    return prepare


def _files(tables: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{table}.parquet" for table in tables)


def _query(text: str) -> Run:
    def run(spark: SparkSession) -> int:
        return len(spark.sql(text).collect())

    return run


def _sql(name: str, tables: tuple[str, ...], text: str, **spark_conf: str) -> Workload:
    return Workload(name, "tpch", _files(tables), _views(*tables), _query(text), spark_conf)


Q1 = """
SELECT l_returnflag, l_linestatus, SUM(l_quantity) AS sum_qty, SUM(l_extendedprice) AS sum_base_price,
       SUM(l_extendedprice * (1 - l_discount)) AS sum_disc_price,
       SUM(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge,
       AVG(l_quantity) AS avg_qty, AVG(l_extendedprice) AS avg_price, AVG(l_discount) AS avg_disc, COUNT(*) AS n
FROM lineitem
WHERE l_shipdate <= DATE '1998-12-01' - INTERVAL 90 DAY
GROUP BY l_returnflag, l_linestatus
ORDER BY l_returnflag, l_linestatus
"""

Q3 = """
SELECT l_orderkey, SUM(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority
FROM customer, orders, lineitem
WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
  AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
GROUP BY l_orderkey, o_orderdate, o_shippriority
ORDER BY revenue DESC, o_orderdate
LIMIT 10
"""

Q6 = """
SELECT SUM(l_extendedprice * l_discount) AS revenue
FROM lineitem
WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1994-01-01' + INTERVAL 1 YEAR
  AND l_discount BETWEEN 0.06 - 0.01 AND 0.06 + 0.01 AND l_quantity < 24
"""

Q9 = """
SELECT nation, o_year, SUM(amount) AS sum_profit
FROM (
    SELECT n_name AS nation, EXTRACT(YEAR FROM o_orderdate) AS o_year,
           l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity AS amount
    FROM part, supplier, lineitem, partsupp, orders, nation
    WHERE s_suppkey = l_suppkey AND ps_suppkey = l_suppkey AND ps_partkey = l_partkey
      AND p_partkey = l_partkey AND o_orderkey = l_orderkey AND s_nationkey = n_nationkey
      AND p_name LIKE '%green%'
) AS profit
GROUP BY nation, o_year
ORDER BY nation, o_year DESC
"""

Q18 = """
SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, SUM(l_quantity)
FROM customer, orders, lineitem
WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING SUM(l_quantity) > 300)
  AND c_custkey = o_custkey AND o_orderkey = l_orderkey
GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
ORDER BY o_totalprice DESC, o_orderdate
LIMIT 100
"""

Q5 = """
SELECT n_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue
FROM customer, orders, lineitem, supplier, nation, region
WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey
  AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'ASIA'
  AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'
GROUP BY n_name
ORDER BY revenue DESC
"""

Q12 = """
SELECT l_shipmode,
       SUM(IF(o_orderpriority IN ('1-URGENT', '2-HIGH'), 1, 0)) AS high_line_count,
       SUM(IF(o_orderpriority IN ('1-URGENT', '2-HIGH'), 0, 1)) AS low_line_count
FROM orders, lineitem
WHERE o_orderkey = l_orderkey AND l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate
  AND l_shipdate < l_commitdate AND l_receiptdate >= DATE '1994-01-01' AND l_receiptdate < DATE '1995-01-01'
GROUP BY l_shipmode
ORDER BY l_shipmode
"""

Q13 = """
SELECT c_count, COUNT(*) AS custdist
FROM (SELECT c_custkey, COUNT(o_orderkey) AS c_count
      FROM customer LEFT JOIN orders ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%'
      GROUP BY c_custkey)
GROUP BY c_count
ORDER BY custdist DESC, c_count DESC
"""

Q21 = """
SELECT s_name, COUNT(*) AS numwait
FROM supplier, lineitem l1, orders, nation
WHERE s_suppkey = l1.l_suppkey AND o_orderkey = l1.l_orderkey AND o_orderstatus = 'F'
  AND l1.l_receiptdate > l1.l_commitdate
  AND EXISTS (SELECT * FROM lineitem l2
              WHERE l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> l1.l_suppkey)
  AND NOT EXISTS (SELECT * FROM lineitem l3
                  WHERE l3.l_orderkey = l1.l_orderkey AND l3.l_suppkey <> l1.l_suppkey
                    AND l3.l_receiptdate > l3.l_commitdate)
  AND s_nationkey = n_nationkey AND n_name = 'SAUDI ARABIA'
GROUP BY s_name
ORDER BY numwait DESC, s_name
LIMIT 100
"""

# Six rows in ten have the key 0, so that one task of the join gets most of the work; the hint keeps the shuffle, and
# the partitions are smaller than the size from which Spark splits a skewed one.
SKEW = """
SELECT /*+ MERGE(o) */ COUNT(*) AS n, SUM(l_extendedprice * weight) AS total, MAX(LENGTH(l_comment)) AS longest
FROM (SELECT IF(l_orderkey % 10 < 6, 0, l_orderkey) AS k, l_extendedprice, l_comment FROM lineitem) l
JOIN (SELECT o_orderkey AS k, 1.0 AS weight FROM orders UNION ALL SELECT 0, 2.0) o ON l.k = o.k
"""

# The same without a frequent key.
EVEN = SKEW.replace("< 6", "< 0")

# The same with much work on each joined row, so that the key decides the runtime.
EVEN_HEAVY, SKEW_HEAVY = (
    each.replace("MAX(LENGTH(l_comment)) AS longest", "SUM(LENGTH(SHA2(REPEAT(l_comment, 40), 512))) AS hashed")
    for each in (EVEN, SKEW)
)


def count_vowels(text: str) -> int:
    """The work of the Python workload on each row: plain interpreter work."""
    return sum(text.count(vowel) for vowel in "aeiou")


def _python_udf(spark: SparkSession) -> int:
    from pyspark.sql import functions as f
    from pyspark.sql.types import IntegerType

    vowels = f.udf(count_vowels, IntegerType())
    counted = spark.table("orders").withColumn("vowels", vowels("o_comment"))
    return len(counted.groupBy("o_orderpriority").agg(f.sum("vowels"), f.max("vowels")).collect())


# The Big Data Benchmark (Pavlo et al., SIGMOD 2009, as AMPLab runs it): a scan, an aggregation, a join, and a script
# over raw text. There, queries 1 and 2 write their results; here the results are only counted.
BDB1 = "SELECT pageURL, pageRank FROM rankings WHERE pageRank > 100"
BDB2 = "SELECT SUBSTR(sourceIP, 1, 8), SUM(adRevenue) FROM uservisits GROUP BY SUBSTR(sourceIP, 1, 8)"
BDB3 = """
SELECT sourceIP, totalRevenue, avgPageRank
FROM (SELECT sourceIP, AVG(pageRank) AS avgPageRank, SUM(adRevenue) AS totalRevenue
      FROM rankings AS R, uservisits AS UV
      WHERE R.pageURL = UV.destURL AND UV.visitDate BETWEEN DATE '1980-01-01' AND DATE '1985-01-01'
      GROUP BY UV.sourceIP)
ORDER BY totalRevenue DESC
LIMIT 1
"""
RANKINGS = "pageURL STRING, pageRank INT, avgDuration INT"
USERVISITS = (
    "sourceIP STRING, destURL STRING, visitDate DATE, adRevenue DOUBLE, userAgent STRING, countryCode STRING, "
    "languageCode STRING, searchWord STRING, duration INT"
)
LINK = re.compile(r"https?://[\w./-]+")


def _bdb_views(spark: SparkSession, folder: str) -> None:
    _csv_view(spark, folder, "rankings", RANKINGS)
    _csv_view(spark, folder, "uservisits", USERVISITS)


def _csv_view(spark: SparkSession, folder: str, table: str, schema: str) -> None:
    spark.read.csv(f"{folder}/{table}", schema=schema).createOrReplaceTempView(table)


def _written_nowhere(text: str) -> Run:
    def run(spark: SparkSession) -> int:
        from pyspark.sql import Observation
        from pyspark.sql import functions as f

        rows = Observation("rows")
        spark.sql(text).observe(rows, f.count(f.lit(1)).alias("n")).write.format("noop").mode("overwrite").save()
        return int(rows.get["n"])

    return run


def links(lines: Iterable[str]) -> Iterator[tuple[str, int]]:
    """All links in some lines of crawled pages, like the script of query 4."""
    for line in lines:
        for link in LINK.findall(line):
            yield link, 1


def _add(one: int, other: int) -> int:
    return one + other


def _prepare_text(name: str) -> Prepare:
    def prepare(spark: SparkSession, folder: str) -> None:
        spark.read.text(f"{folder}/{name}").createOrReplaceTempView("input_text")
        spark.conf.set("crystalperf.lab.text", f"{folder}/{name}")

    return prepare


def _count_links(spark: SparkSession) -> int:
    text = spark.sparkContext.textFile(spark.conf.get("crystalperf.lab.text") or "", 8)
    return text.mapPartitions(links).reduceByKey(_add).count()


def _count_lines(spark: SparkSession) -> int:
    """Count lines as strings inside the JVM, where Hadoop's input format makes each of a Text (``Text.decode``)."""
    return int(spark.sparkContext._jsc.textFile(spark.conf.get("crystalperf.lab.text")).count())


# Two sorts that do not fit into the heap, without an aggregation that would reduce the sorted data.
SPILL = """
SELECT MAX(r), MAX(l_comment) FROM (
    SELECT ROW_NUMBER() OVER (PARTITION BY l_suppkey % 64 ORDER BY l_comment) AS r, l_comment FROM lineitem)
"""


def _many_small_jobs(spark: SparkSession) -> int:
    """A loop on the driver: a short job, then the driver's own work on the collected result, repeatedly."""
    total = 0
    for step in range(12):
        rows = spark.sql(
            f"SELECT c_custkey, c_acctbal, c_comment FROM customer WHERE c_custkey % 12 = {step}"
        ).collect()
        pairs: Counter[tuple[str, str]] = Counter()
        for row in rows:
            words = row["c_comment"].split()
            pairs.update(itertools.combinations(words, 2))
        total += len(pairs)
    return total


def _kmeans(spark: SparkSession) -> int:
    """k-means: cached input, and one job after another until the centres converge."""
    from pyspark.ml.clustering import KMeans
    from pyspark.ml.feature import VectorAssembler

    columns = ["l_quantity", "l_extendedprice", "l_discount", "l_tax"]
    doubles = spark.table("lineitem").selectExpr(*(f"CAST({each} AS DOUBLE) AS {each}" for each in columns))
    points = VectorAssembler(inputCols=columns, outputCol="features").transform(doubles).select("features").cache()
    model = KMeans(k=8, maxIter=6, tol=0.0, seed=1, initMode="random").fit(points)
    points.unpersist()
    return len(model.clusterCenters())


def _partitioned(spark: SparkSession) -> int:
    """Convert text to Parquet, in one folder per language, next to the input."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    rows = Observation("rows")
    visits = spark.table("uservisits").observe(rows, f.count(f.lit(1)).alias("n")).repartition(8, "languageCode")
    target = spark.conf.get("crystalperf.lab.output") or ""
    visits.write.mode("overwrite").partitionBy("languageCode").parquet(target)
    return int(rows.get["n"])


def _sorted(spark: SparkSession) -> int:
    """Sort a whole table by a text column (range partitioning by a sample), and read the result to the end."""

    rows = spark.table("lineitem").select("l_comment", "l_orderkey", "l_extendedprice").orderBy("l_comment")
    rows.write.format("noop").mode("overwrite").save()
    return 1


def _visits(spark: SparkSession, folder: str) -> None:
    _csv_view(spark, folder, "uservisits", USERVISITS)
    spark.conf.set("crystalperf.lab.output", f"{folder}/visits-by-language")


WORKLOADS: dict[str, Workload] = {
    workload.name: workload
    for workload in (
        _sql("q1", ("lineitem",), Q1),
        _sql("q3", ("customer", "orders", "lineitem"), Q3),
        _sql("q5", ("customer", "orders", "lineitem", "supplier", "nation", "region"), Q5),
        _sql("q6", ("lineitem",), Q6),
        _sql("q9", ("part", "supplier", "lineitem", "partsupp", "orders", "nation"), Q9),
        _sql("q12", ("orders", "lineitem"), Q12),
        _sql("q13", ("customer", "orders"), Q13),
        _sql("q18", ("customer", "orders", "lineitem"), Q18),
        _sql("q21", ("supplier", "lineitem", "orders", "nation"), Q21),
        _sql("skew", ("lineitem", "orders"), SKEW),
        _sql("even", ("lineitem", "orders"), EVEN),
        _sql("skew-heavy", ("lineitem", "orders"), SKEW_HEAVY),
        _sql("even-heavy", ("lineitem", "orders"), EVEN_HEAVY),
        _sql("spill", ("lineitem",), SPILL),
        Workload("udf", "tpch", ("orders.parquet",), _views("orders"), _python_udf),
        Workload("kmeans", "tpch", ("lineitem.parquet",), _views("lineitem"), _kmeans),
        Workload("partitioned", "bdb", ("uservisits",), _visits, _partitioned),
        Workload("sorted", "tpch", ("lineitem.parquet",), _views("lineitem"), _sorted),
        Workload("driver", "tpch", ("customer.parquet",), _views("customer"), _many_small_jobs),
        Workload("bdb1", "bdb", ("rankings", "uservisits"), _bdb_views, _written_nowhere(BDB1)),
        Workload("bdb2", "bdb", ("rankings", "uservisits"), _bdb_views, _written_nowhere(BDB2)),
        Workload("bdb3", "bdb", ("rankings", "uservisits"), _bdb_views, _query(BDB3)),
        Workload("bdb4", "bdb", ("documents",), _prepare_text("documents"), _count_links),
        Workload("gzip-text", "gzip-text", ("text",), _prepare_text("text"), _count_lines),
    )
}


def find_workload(name: str) -> Workload:
    """The workload of that name."""
    try:
        return WORKLOADS[name]
    except KeyError:
        raise LabError(f"There is no workload '{name}'; choose one of {', '.join(WORKLOADS)}.") from None
