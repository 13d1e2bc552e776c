"""What the lab runs: each workload is a record of plain functions, found by name in ``WORKLOADS``.

The TPC-H queries are those of the specification (revision 3) with its validation parameters; the data comes from
``tpchgen-cli`` as one Parquet file a table.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from lab.host import LabError, cache_dir

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GENERATE_TIMEOUT_S = 1800

Prepare = Callable[["SparkSession", Path], None]
Run = Callable[["SparkSession"], int]


@dataclass(frozen=True)
class Workload:
    """One job of the lab.

    Attributes:
        name: what the command line calls it.
        tables: TPC-H tables that it reads.
        prepare: makes the data in a folder known to a session; its time does not count.
        run: does the work and returns the number of rows of its answer; this is what is timed.
        spark_conf: Spark settings without which it would not be this workload.
    """

    name: str
    tables: tuple[str, ...]
    prepare: Prepare
    run: Run
    spark_conf: dict[str, str] = field(default_factory=dict)


def data_folder(scale_factor: float) -> Path:
    """Where the TPC-H tables of a scale factor lie in the lab's cache."""
    return cache_dir() / "tpch" / f"sf{scale_factor:g}"


def generate_tpch(scale_factor: float, folder: Path | None = None) -> Path:
    """The folder of the TPC-H tables as Parquet, made with tpchgen-cli where it is not there yet (SF1: 8 s, 350 MB)."""
    if not 0.001 <= scale_factor <= 1000:
        raise LabError(f"A TPC-H scale factor of {scale_factor:g} makes no sense here; ask for 0.001 to 1000.")
    target = data_folder(scale_factor) if folder is None else folder
    if target.is_dir():
        return target
    beside = Path(sys.executable).with_name("tpchgen-cli")
    program = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
    if program is None:
        raise LabError("The lab needs tpchgen-cli; install it with 'pip install tpchgen-cli'.")
    partial = target.with_name(target.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    command = [program, "parquet", "-s", f"{scale_factor:g}", "--output-dir", str(partial)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=GENERATE_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise LabError(f"tpchgen-cli did not make scale factor {scale_factor:g} in {GENERATE_TIMEOUT_S} s.") from None
    if done.returncode != 0:
        reason = done.stderr.strip().split("\n")[0]
        raise LabError(f"tpchgen-cli failed ({reason}); the lab needs its version 4 or later.")
    partial.rename(target)
    return target


def _views(*tables: str) -> Prepare:
    def prepare(spark: SparkSession, folder: Path) -> None:
        for table in tables:
            spark.read.parquet(str(folder / f"{table}.parquet")).createOrReplaceTempView(table)

    return prepare


def _query(text: str) -> Run:
    def run(spark: SparkSession) -> int:
        return len(spark.sql(text).collect())

    return run


def _sql(name: str, tables: tuple[str, ...], text: str, **spark_conf: str) -> Workload:
    return Workload(name, tables, _views(*tables), _query(text), spark_conf)


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

# Six rows in ten carry the key 0, so that one task of the join gets most of the work; the hint keeps the shuffle,
# and the partitions stay below the size from which Spark would split a skewed one.
SKEW = """
SELECT /*+ MERGE(o) */ COUNT(*) AS n, SUM(l_extendedprice * weight) AS total, MAX(LENGTH(l_comment)) AS longest
FROM (SELECT IF(l_orderkey % 10 < 6, 0, l_orderkey) AS k, l_extendedprice, l_comment FROM lineitem) l
JOIN (SELECT o_orderkey AS k, 1.0 AS weight FROM orders UNION ALL SELECT 0, 2.0) o ON l.k = o.k
"""


def count_vowels(text: str) -> int:
    """What the Python workload does to each row: plain interpreter work."""
    return sum(text.count(vowel) for vowel in "aeiou")


def _python_udf(spark: SparkSession) -> int:
    from pyspark.sql import functions as f
    from pyspark.sql.types import IntegerType

    vowels = f.udf(count_vowels, IntegerType())
    counted = spark.table("orders").withColumn("vowels", vowels("o_comment"))
    return len(counted.groupBy("o_orderpriority").agg(f.sum("vowels"), f.max("vowels")).collect())


WORKLOADS: dict[str, Workload] = {
    workload.name: workload
    for workload in (
        _sql("q6", ("lineitem",), Q6),
        _sql("q9", ("part", "supplier", "lineitem", "partsupp", "orders", "nation"), Q9),
        _sql("q18", ("customer", "orders", "lineitem"), Q18),
        _sql("q21", ("supplier", "lineitem", "orders", "nation"), Q21),
        _sql("skew", ("lineitem", "orders"), SKEW),
        Workload("udf", ("orders",), _views("orders"), _python_udf),
    )
}


def find_workload(name: str) -> Workload:
    """The workload of that name."""
    try:
        return WORKLOADS[name]
    except KeyError:
        raise LabError(f"There is no workload '{name}'; choose one of {', '.join(WORKLOADS)}.") from None
