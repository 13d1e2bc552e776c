"""Patterns of table names in Flink's plans; literals are in quotes or follow comparisons, as in any statement."""

from __future__ import annotations

import re

PATTERNS = (
    re.compile(r"\b(?:Source|Sink): (?P<table>[\w.$-]+)(?=\[| ->|$)"),  # Source: lineitem[4] -> Calc[5]
    re.compile(r"\btable=\[\[(?P<table>[^\]]+)\]"),  # TableSourceScan(table=[[catalog, database, lineitem]], …)
    re.compile(r"\btable=\[(?P<table>[\w.$-]+)\]"),
)
