"""Where Flink's plans name tables; their literals stand in quotes or behind comparisons, as in any statement."""

from __future__ import annotations

import re

PATTERNS = (
    re.compile(r"\b(?:Source|Sink): (?P<table>[\w.$-]+)(?=\[| ->|$)"),  # Source: lineitem[4] -> Calc[5]
    re.compile(r"\btable=\[\[(?P<table>[^\]]+)\]"),  # TableSourceScan(table=[[catalog, database, lineitem]], …)
    re.compile(r"\btable=\[(?P<table>[\w.$-]+)\]"),
)
