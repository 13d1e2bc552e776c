"""Flink workloads of the lab: a batch join, and streams (FlinkStreams.java) with a rate or without limit."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError
from lab.flink.cluster import PORT, FlinkCluster

SQL = """
CREATE TABLE orders (o_orderkey BIGINT, o_status STRING, o_priority STRING, o_comment STRING)
WITH ('connector' = 'filesystem', 'path' = 'file://{data}/orders.csv', 'format' = 'csv');
CREATE TABLE lineitem (l_orderkey BIGINT, l_price DOUBLE, l_discount DOUBLE, l_shipdate STRING, l_comment STRING)
WITH ('connector' = 'filesystem', 'path' = 'file://{data}/lineitem.csv', 'format' = 'csv');
CREATE TABLE revenues (priority STRING, shipdate STRING, revenue DOUBLE, lines BIGINT)
WITH ('connector' = 'filesystem', 'path' = 'file://{out}', 'format' = 'csv');
INSERT INTO revenues
SELECT o_priority, l_shipdate, SUM(l_price * (1 - l_discount)) AS revenue, COUNT(*)
FROM orders JOIN lineitem ON o_orderkey = l_orderkey
WHERE o_status <> 'P' GROUP BY o_priority, l_shipdate ORDER BY revenue DESC
"""
"""A join, an aggregate and a sort."""

STREAMS = ("ads", "words", "rocks", "skew", "async", "restart")
NAMES = ("join", *STREAMS)


@dataclass(frozen=True)
class Workload:
    """One job.

    Attributes:
        name: ``join``, or one of STREAMS.
        parallelism: of all vertices.
        parse: parallelism of the second vertex of a stream; None for that of the others.
        rate: records per second of a stream; None for no limit.
        seconds: duration of a stream with a rate.
        records: number of records of a stream without a rate; rows of the larger table of the join.
        work: number of times that each record is parsed and counted, so that small rates load the CPU.
        chaining: whether operators are chained.
    """

    name: str
    parallelism: int = 2
    parse: int | None = None
    rate: int | None = None
    seconds: int = 45
    records: int = 600_000
    work: int = 1
    chaining: bool = True
    markers: bool = False

    def __post_init__(self) -> None:
        if self.name not in NAMES:
            raise LabError(f"There is no workload '{self.name}'; choose one of {', '.join(NAMES)}.")

    @property
    def is_stream(self) -> bool:
        return self.name in STREAMS


def write_data(folder: Path, rows: int) -> None:
    """Two tables, always with the same content: lines of orders, and a quarter as many orders."""
    mark = folder / f"{rows}.rows"
    if mark.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    source = random.Random(1)
    orders = rows // 4
    with (folder / "orders.csv").open("w", encoding="ascii") as file:
        for key in range(orders):
            file.write(f"{key},{source.choice('OFP')},{source.randint(1, 5)}-PRIORITY,comment {source.random()}\n")
    with (folder / "lineitem.csv").open("w", encoding="ascii") as file:
        for _ in range(rows):
            day = f"1996-{source.randint(1, 12):02d}-{source.randint(1, 28):02d}"
            key, price, discount = source.randrange(orders), source.randint(100, 100_000) / 100, source.random() / 10
            file.write(f"{key},{price},{discount:.2f},{day},comment {source.random()}\n")
    mark.touch()


def client(workload: Workload, cluster: FlinkCluster, data: Path) -> list[str]:
    """The command that submits a job and waits for its end; `data` is the folder of the join's tables."""
    if not workload.is_stream:
        statements = cluster.out / "job.sql"
        statements.write_text(SQL.format(data=data, out=cluster.out / "revenues"), encoding="ascii")
        given = [str(statements), str(PORT), str(workload.parallelism), "join and sort", cluster.host]
        return cluster.client(["FlinkBatch", *given])
    facts: dict[str, object] = {
        "workload": workload.name,
        "host": cluster.host,
        "port": PORT,
        "out": cluster.out / "ages",
        "parallelism": workload.parallelism,
        "parse": workload.parse or workload.parallelism,
        "rate": workload.rate or 0,
        "count": workload.records if workload.rate is None else workload.rate * workload.seconds,
        "work": workload.work,
        "chaining": int(workload.chaining),
        "markers": 730 if workload.markers else 0,  # not a multiple of the buffer timeout
    }
    if workload.name == "restart":
        facts |= {"fail": workload.seconds // 2, "checkpoint": 5000}
    if workload.name == "rocks":
        facts |= {"checkpoint": 10_000}
    (cluster.out / "ages").mkdir(exist_ok=True)
    return cluster.client(["FlinkStreams", *(f"{key}={value}" for key, value in facts.items())])
