"""Queries of TPC-H in which the small side of a join is a subquery, which is broadcast, as advice asks for."""

from __future__ import annotations

_Q5 = """
SELECT /*+ BROADCAST(small) */ n_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue
FROM (
    SELECT o_orderkey, c_nationkey FROM customer, orders
    WHERE c_custkey = o_custkey AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'
) AS small, lineitem, supplier, nation, region
WHERE l_orderkey = o_orderkey AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey
  AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'ASIA'
GROUP BY n_name
ORDER BY revenue DESC
"""

_Q9 = """
SELECT nation, o_year, SUM(amount) AS sum_profit
FROM (
    SELECT /*+ BROADCAST(small) */ n_name AS nation, EXTRACT(YEAR FROM o_orderdate) AS o_year,
           l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity AS amount
    FROM (
        SELECT s_nationkey, l_orderkey, l_extendedprice, l_discount, l_quantity, ps_supplycost
        FROM part, supplier, lineitem, partsupp
        WHERE s_suppkey = l_suppkey AND ps_suppkey = l_suppkey AND ps_partkey = l_partkey AND p_partkey = l_partkey
          AND p_name LIKE '%green%'
    ) AS small, orders, nation
    WHERE o_orderkey = l_orderkey AND s_nationkey = n_nationkey
) AS profit
GROUP BY nation, o_year
ORDER BY nation, o_year DESC
"""

_Q9_PARTS = """
SELECT nation, o_year, SUM(amount) AS sum_profit
FROM (
    SELECT /*+ BROADCAST(small) */ n_name AS nation, EXTRACT(YEAR FROM o_orderdate) AS o_year,
           l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity AS amount
    FROM (
        SELECT s_nationkey, l_orderkey, l_suppkey, l_partkey, l_extendedprice, l_discount, l_quantity
        FROM part, supplier, lineitem
        WHERE s_suppkey = l_suppkey AND p_partkey = l_partkey AND p_name LIKE '%green%'
    ) AS small, partsupp, orders, nation
    WHERE ps_suppkey = l_suppkey AND ps_partkey = l_partkey
      AND o_orderkey = l_orderkey AND s_nationkey = n_nationkey
) AS profit
GROUP BY nation, o_year
ORDER BY nation, o_year DESC
"""

_Q18 = """
SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, SUM(l_quantity)
FROM customer, orders, (
    SELECT /*+ BROADCAST(small) */ l_orderkey, l_quantity
    FROM lineitem LEFT SEMI JOIN (
        SELECT l_orderkey AS large_order FROM lineitem GROUP BY l_orderkey HAVING SUM(l_quantity) > 300
    ) AS small ON l_orderkey = large_order
) AS lines
WHERE c_custkey = o_custkey AND o_orderkey = l_orderkey
GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
ORDER BY o_totalprice DESC, o_orderdate
LIMIT 100
"""


def _run(query: str) -> str:
    """The line of a program that runs a query."""
    return f'spark.sql("""{query}""").collect()'


def _joined_by(keys: str) -> str:
    """The edit for the advice to broadcast the small side of a join by these keys."""
    return f"broadcast-small-side@df.join(broadcast(small), {keys})"


HINTED = {
    "q5": {_joined_by('"o_orderkey"'): _run(_Q5)},
    "q9": {_joined_by('"l_orderkey"'): _run(_Q9), _joined_by("keys"): _run(_Q9_PARTS)},
    "q18": {_joined_by('"l_orderkey", "left_semi"'): _run(_Q18)},
}
"""By query the lines that run it, by the edit that they are (lab.advice.cases)."""
