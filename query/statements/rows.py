"""Formats the rows of a SQL answer as JSON and CSV, in parts, so that an answer may be larger than memory."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any

from crystalperf.indexes.regex import regex

Batches = Iterator[list[list[Any]]]
"""Batches of rows of values from json_value(), of some MB each."""

_FORMULAS = ("=", "+", "-", "@", "\t", "\r")
"""Prefixes of texts that a spreadsheet takes for a formula, or turns into one."""

_QUOTED = regex(r'[",\r\n]')
"""Characters that require quotes in a cell of CSV; Python's own writer does not quote a lone carriage return."""


def json_value(value: Any) -> Any:
    """A value of DuckDB as a JSON value: NaN and infinities become null, times and intervals text."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return float(value) if value.is_finite() else None
    if isinstance(value, dict):
        return {str(key): json_value(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(each) for each in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    isoformat = getattr(value, "isoformat", None)
    return isoformat() if isoformat is not None else str(value)


def json_parts(columns: Sequence[str], batches: Batches) -> Iterator[str]:
    """A JSON list of objects, one a line; repeated column names are numbered."""
    names = distinct(columns)
    separator = "[\n"
    for batch in batches:
        lines = [json.dumps(dict(zip(names, row, strict=True)), allow_nan=False) for row in batch]
        yield separator + ",\n".join(lines)
        separator = ",\n"
    yield "[]\n" if separator == "[\n" else "\n]\n"


def csv_parts(
    columns: Sequence[str],
    batches: Batches,
    *,
    escape_formulas: bool = False,
    plain: Callable[[str], str] = str,
) -> Iterator[str]:
    """CSV with a header; a NULL is an empty cell, and `plain` converts every text.

    With `escape_formulas` a text that a spreadsheet would evaluate gets an apostrophe as prefix.
    """

    def shown(text: str) -> str:
        return plain(f"'{text}" if escape_formulas and text.startswith(_FORMULAS) else text)

    def line(cells: Iterable[str]) -> str:
        texts = [f'"{each.replace(chr(34), chr(34) * 2)}"' if _QUOTED.search(each) else each for each in cells]
        return f"{','.join(texts) if texts != [''] else chr(34) * 2}\n"  # an empty line would not be a row

    yield line(shown(each) for each in columns)
    for batch in batches:
        yield "".join(line(_csv_cell(each, shown) for each in row) for row in batch)


def _csv_cell(value: Any, shown: Callable[[str], str]) -> str:
    if value is None:
        return ""
    return shown(value) if isinstance(value, str) else json.dumps(value)


def distinct(names: Sequence[str]) -> list[str]:
    """The names, with numbers for repeated ones: `m`, `m_2`."""
    found: list[str] = []
    for name in names:
        number, candidate = 1, name
        while candidate in found:
            number += 1
            candidate = f"{name}_{number}"
        found.append(candidate)
    return found
