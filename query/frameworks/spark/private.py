"""Patterns of table names in Spark's plans, and of literals of a user's statement."""

from __future__ import annotations

from crystalperf.indexes.regex import regex

_ATTRIBUTE = r"[\w.`]+#\d+L?"
_FILTERS = (
    "EqualTo|EqualNullSafe|GreaterThan|GreaterThanOrEqual|LessThan|LessThanOrEqual|In|StringStartsWith|StringEndsWith"
    "|StringContains|StartsWith|EndsWith|Contains|Like|RLike"
)

PATTERNS = (
    regex(r"^Scan JDBCRelation\((?P<table>.+)\) \["),  # Scan JDBCRelation((SELECT …) t) [numPartitions=1]
    regex(r"^Scan (?!JDBCRelation)\S+ (?P<table>.+)$"),  # Scan parquet spark_catalog.shop.orders
    regex(r"^(?:Comet|Gpu|Photon)\w*Scan \S+ (?P<table>.+)$"),  # CometNativeScan parquet spark_catalog.shop.orders
    regex(r"^(?:\w*ScanExecTransformer \S+|Native\w+Scan(?: hive)?) (?P<table>.+)$"),
    regex(  # FileScan parquet shop.orders[id#1,day#2]
        r"\b(?:\w*(?:File|Native|Comet|Gpu|Photon)Scan \w+|\w*BatchScan|\w+ScanExecTransformer \w+)"
        r" (?P<table>[\w.`$-]+)\s?\["
    ),
    regex(r"\bHiveTableRelation \[(?P<table>[^,\]]+),"),
    regex(r"(?P<table>`[^`]+`(?:\.`[^`]+`)+)"),
    regex(rf"\b(?:{_FILTERS})\([^,()]*,\s*(?P<literal>[^)\]]+)\)"),  # StringContains(p_name,green)
    regex(  # (p_name#1 = green)
        rf"{_ATTRIBUTE}\)?\s(?:<=>|<=|>=|!=|=|<|>|IN|LIKE|RLIKE)\s\(?(?P<literal>(?!{_ATTRIBUTE})[^()#]+?)"
        r"(?=\)|,? AND |,? OR |$)"
    ),
)
