"""Patterns of table names in Flink's plans; literals are in quotes or follow comparisons, as in any statement."""

from __future__ import annotations

from crystalperf.indexes.regex import regex

PATTERNS = (
    regex(r"\b(?:Source|Sink): (?P<table>[\w.$-]+)(?=\[| ->|$)"),  # Source: lineitem[4] -> Calc[5]
    regex(r"\btable=\[\[(?P<table>[^\]]+)\]"),  # TableSourceScan(table=[[catalog, database, lineitem]], …)
    regex(r"\btable=\[(?P<table>[\w.$-]+)\]"),
)
