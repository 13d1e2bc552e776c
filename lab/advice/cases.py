"""The cases: a program with one trouble, how it is submitted, and the edits that advice on code asks for.

An edit is what a user would type after reading the recommendation.  It belongs to a kind of recommendation, and is
applied only if the run gets that kind.  One for a reason (``kind:reason``) or a line to paste (``kind@line``) precedes
one for the kind.  Programs with little work for a core start from one slot, so that advice on
slots can be tried on a machine of two cores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lab.advice.hinted import HINTED

Edit = tuple[tuple[str, str], ...]
"""Pairs of a text of the program and what replaces it."""


@dataclass(frozen=True)
class Case:
    """A program with a known trouble.

    Attributes:
        name: the case, also the name of its program in ``lab/advice/jobs`` unless ``program`` names another.
        trouble: what is wrong with it, in a few words.
        slots: slots of the local master that it starts with.
        conf: Spark settings that it is submitted with.
        edits: by kind of recommendation, what follows from it in the program's text.
        arguments: further arguments of the program.
        data: kind of data set, ``events`` or ``tpch``.
    """

    name: str
    trouble: str
    slots: int = 2
    conf: Mapping[str, str] = field(default_factory=dict)
    edits: Mapping[str, Edit] = field(default_factory=dict)
    program: str = ""
    arguments: tuple[str, ...] = ()
    data: str = "events"

    @property
    def file(self) -> str:
        """The file name of the program."""
        return f"{self.program or self.name.replace('-', '_')}.py"


_SCHEMA = 'schema="id long, user long, kind string, value double, text string", '
_EXPR = "from pyspark.sql import SparkSession\nfrom pyspark.sql.functions import expr"
_CACHED = {"follow-advice:repeated-reads": (('/events.parquet")', '/events.parquet").cache()'),)}
_NO_ADAPTIVE = {"spark.sql.adaptive.enabled": "false"}

_PLANS = (
    Case(
        "hinted-broadcast",
        "few rows of a large table are joined by sorting",
        edits={
            "broadcast-small-side": (
                ('join(active, "user")', 'join(broadcast(active), "user")'),
                ("import count", "import broadcast, count"),
            )
        },
    ),
    Case(
        "wrapped-filter",
        "a filter on a function of a column",
        edits={
            "filter-plain-column": (
                (
                    'f"floor(id / 10000) = {part * 10}"',
                    'f"id >= {part * 100000} AND id < {part * 100000 + 10000}"',
                ),
            ),
            **_CACHED,
        },
    ),
    Case(
        "udf-filter",
        "a filter by a Python function",
        edits={
            "filter-plain-column": (('recent(col("id"))', 'col("id") >= 1_900_000'),),
            "profile-python": (('recent(col("id"))', 'col("id") >= 1_900_000'),),
        },
    ),
    Case(
        "partition-column",
        "a filter that does not name the column of partitions",
        edits={
            "prune-partitions": (('f"floor(id', 'f"day = {day} AND floor(id'),),
            "follow-advice:repeated-reads": (('/by_day")', '/by_day").cache()'),),
        },
    ),
    Case(
        "sorted-table",
        "a filter on a column by which files are not sorted",
        edits={"sort-files": (("/events.parquet", "/by_user.parquet"),), **_CACHED},
    ),
    Case(
        "alternative-keys",
        "a join by one key or another",
        edits={
            "join-by-key": (
                (
                    "few.join(users, (few.id == users.key) | (few.user == users.key))",
                    "few.join(users, few.id == users.key).union(few.join(users, few.user == users.key)).distinct()",
                ),
            )
        },
    ),
    Case(
        "range-join",
        "a join of values with ranges",
        edits={
            "join-by-key": (
                ("events.user >= ranges.low)", "events.user >= ranges.low) & (expr('user div 125') == ranges.bucket)"),
                ('AS high")', 'AS high", "id AS bucket")'),
                ("from pyspark.sql import SparkSession", _EXPR),
            )
        },
    ),
    Case(
        "filtered-cross",
        "a cross join whose filter comes too late",
        edits={"join-by-key": (("crossJoin(users)", 'join(users, col("key") == col("user"))'),)},
    ),
    Case(
        "repeated-aggregate",
        "an aggregation that a query computes twice",
        edits={"reuse-exchange": (('alias("rows"))', 'alias("rows")).coalesce(2).cache()'),)},
    ),
    Case(
        "reuse-off",
        "reuse of exchanges is off",
        conf={"spark.sql.exchange.reuse": "false"},
    ),
    Case(
        "salted-repartition",
        "rows repartitioned by a hot key",
        edits={
            "split-keys": (
                ('repartition(8, "user")', 'repartition(8, "user", (rand() * 16).cast("int"))'),
                ("import col, sha2", "import col, rand, sha2"),
            )
        },
    ),
    Case(
        "skewed-join-adaptive",
        "a hot key that adaptive execution does not split",
        conf={
            "spark.sql.autoBroadcastJoinThreshold": "-1",
            "spark.sql.shuffle.partitions": "8",
            "spark.sql.adaptive.advisoryPartitionSizeInBytes": "16m",
            "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "32m",
        },
        edits={
            "split-keys": (
                (
                    '.join(users, "user")',
                    '.withColumn("salt", (rand() * 8).cast("int")).join('
                    'users.crossJoin(spark.range(8).selectExpr("int(id) AS salt")), ["user", "salt"])',
                ),
                ("import col, max, sha2", "import col, max, rand, sha2"),
            )
        },
    ),
    Case(
        "coalesce-off",
        "600 shuffle partitions that may not be merged",
        conf={
            "spark.sql.shuffle.partitions": "600",
            "spark.sql.adaptive.coalescePartitions.enabled": "false",
        },
    ),
    Case("hash-join", "a join that sorts both sides", conf={"spark.driver.memory": "1g"}),
)
"""Troubles of plans."""

_OWN = (
    Case(
        "too-many-partitions",
        "400 shuffle partitions for 2 slots",
        conf={"spark.sql.shuffle.partitions": "400", **_NO_ADAPTIVE},
    ),
    Case("builder-partitions", "450 shuffle partitions, set by the program's builder"),
    Case("one-partition", "one shuffle partition", conf={"spark.sql.shuffle.partitions": "1", **_NO_ADAPTIVE}),
    Case(
        "small-files",
        "1 500 small files, schema inferred",
        edits={
            "give-schema": (("inferSchema=True", 'schema="id long, user long, kind string, value double"'),),
            "follow-advice:small-files": (('/small"', '/merged"'),),
        },
    ),
    Case(
        "inferred-schema",
        "schema of a CSV file inferred",
        edits={"give-schema": (("inferSchema=True", _SCHEMA.rstrip(", ")),)},
    ),
    Case(
        "inferred-json",
        "schema of JSON lines inferred",
        edits={"give-schema": ((".read.json(", f".read.json({_SCHEMA}path="),)},
    ),
    Case(
        "coalesce-one",
        "coalesce(1) before the write",
        edits={"ask-for-partitions": (("coalesce(1)", "coalesce(2)"),)},
    ),
    Case(
        "repartition-one",
        "repartition(1) before an expensive step",
        edits={"ask-for-partitions": (("repartition(1)", "repartition(2)"),)},
    ),
    Case(
        "gzip-file",
        "one gzip file, which is not split",
        edits={"split-files": (("/events.csv.gz", "/events.csv"),)},
    ),
    Case(
        "large-splits",
        "one split of 2 GB",
        conf={"spark.sql.files.maxPartitionBytes": "2g", "spark.sql.files.openCostInBytes": "2g"},
    ),
    Case(
        "small-splits",
        "splits of 128 kB",
        conf={"spark.sql.files.maxPartitionBytes": "128k", "spark.sql.files.openCostInBytes": "1k"},
    ),
    Case(
        "scalar-udf",
        "a Python function for each row",
        edits={
            "profile-python": (
                ('vowels(col("text"))', 'length(regexp_replace(col("text"), "[^aeiou]", ""))'),
                ("import col, udf", "import col, length, regexp_replace, udf"),
            )
        },
    ),
    Case(
        "row-pandas-udf",
        "a pandas function that goes through its rows",
        edits={"profile-python": (("values.map(lambda value: (value * 3 + 1) ** 0.5)", "(values * 3 + 1) ** 0.5"),)},
    ),
    Case(
        "python-rdd",
        "an RDD of Python objects",
        edits={
            "profile-python": (
                ("spark.sparkContext.textFile(", "spark.read.text("),
                (
                    'lines.flatMap(lambda line: line.split(",")[4].split("-")).map(lambda word: (word, 1))'
                    ".reduceByKey(int.__add__)",
                    'lines.select(explode(split(split("value", ",")[4], "-")).alias("word")).groupBy("word").count()',
                ),
                (
                    "from pyspark.sql import SparkSession",
                    "from pyspark.sql import SparkSession\nfrom pyspark.sql.functions import explode, split",
                ),
            )
        },
    ),
    Case(
        "group-by-key",
        "groupByKey with a hot key",
        edits=dict.fromkeys(
            ("reduce-in-partitions", "profile-python"),
            ((".groupByKey(8).mapValues(sum)", ".reduceByKey(float.__add__, 8)"),),
        ),
    ),
    Case(
        "skewed-join",
        "a join with a hot key",
        conf={"spark.sql.autoBroadcastJoinThreshold": "-1", "spark.sql.shuffle.partitions": "8", **_NO_ADAPTIVE},
    ),
    Case("skewed-aggregation", "a window with a hot key", conf={"spark.sql.shuffle.partitions": "8"}),
    Case(
        "missed-broadcast",
        "a small table is shuffled",
        conf={"spark.sql.autoBroadcastJoinThreshold": "-1", **_NO_ADAPTIVE},
    ),
    Case(
        "large-broadcast",
        "a large table is broadcast",
        conf={"spark.driver.memory": "3g"},
        edits={"avoid-broadcast": (("broadcast(users)", "users"),)},
    ),
    Case("spill", "a sort in a small heap", conf={"spark.driver.memory": "600m"}),
    Case(
        "missing-cache",
        "the same rows computed five times",
        edits={"follow-advice:repeated-reads": (("512), 512))", "512), 512)).cache()"),)},
    ),
    Case("small-heap-cache", "a cache that does not fit", conf={"spark.driver.memory": "800m"}),
    Case("driver-loop", "Python work on the driver"),
    Case(
        "many-queries",
        "60 queries where one would do",
        edits={
            "follow-advice:repeated-reads": (('/events.parquet")', '/events.parquet").select("user").cache()'),),
            "sort-files": (("/events.parquet", "/by_user.parquet"),),
        },
    ),
    Case(
        "wide-window",
        "a window without a partition",
        edits={"partition-window": (("Window.orderBy", 'Window.partitionBy("kind").orderBy'),)},
    ),
    Case(
        "cartesian",
        "a cross join with a filter",
        edits={
            "join-by-key": (
                (
                    'events.crossJoin(users.withColumnRenamed("user", "other"))',
                    'events.join(users, "user").selectExpr("*", "user AS other")',
                ),
            )
        },
    ),
    Case(
        "collect-rows",
        "all rows collected into the driver",
        conf={"spark.driver.memory": "4g", "spark.driver.maxResultSize": "3g"},
        edits={
            "send-fewer-rows": (
                ("sum(row.value for row in events.collect())", 'events.selectExpr("sum(value)").first()[0]'),
            )
        },
    ),
    Case(
        "many-output-files",
        "1 000 output files",
        edits=dict.fromkeys(
            ("ask-for-partitions", "follow-advice:small-output"), ((".repartition(1000)", ".repartition(2)"),)
        ),
    ),
    Case("hash-rows", "computing, on one slot", slots=1),
    *_PLANS,
    Case("etl", "CSV to Parquet, with Spark's defaults"),
    Case("etl-one-slot", "CSV to Parquet, on one slot", slots=1, program="etl"),
)

_TPCH = tuple(
    Case(
        f"tpch-{query}",
        "TPC-H at scale factor 2, with Spark's defaults",
        1,
        edits={key: (("workload.run(spark)", program),) for key, program in HINTED.get(query, {}).items()},
        program="tpch",
        arguments=(query,),
        data="tpch",
    )
    for query in ("q1", "q3", "q5", "q6", "q9", "q12", "q13", "q18", "q21")
)

CASES = {case.name: case for case in (*_OWN, *_TPCH)}

NOT_TRIED = {
    "faster-device": "no faster CPU, disk or network is at hand",
    "more-workers": "the machine has two cores",
    "record-samples": "saves no time by itself",
    "check-capacity": "needs a cluster",
    "start-executors-earlier": "needs a cluster",
}
"""Kinds of recommendations that two cores cannot try, and why."""
