"""Inserts columns of numpy arrays into tables of DuckDB."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np

from crystalperf.query.trace.records import Coded, Columns

_ROWS = 245_760
"""Rows per statement: two row groups of DuckDB, which keeps all input of a statement in memory uncompressed."""


def insert(connection: duckdb.DuckDBPyConnection, table: str, columns: Columns) -> None:
    """Append rows to a table; masked values and None become NULL, columns left out too."""
    for first in range(0, len(next(iter(columns.values()), ())), _ROWS):
        rows = slice(first, first + _ROWS)
        view, select, texts = readable({name: _at(rows, column) for name, column in columns.items()})  # noqa: RUF059
        connection.execute(f"INSERT INTO {table} BY NAME SELECT {select} FROM view", texts)  # read by its name


def _at(rows: slice, column: Any) -> Any:
    return Coded(column.codes[rows], column.texts) if isinstance(column, Coded) else column[rows]


def readable(columns: Columns) -> tuple[Columns, str, list[Any]]:
    """The columns as plain arrays, the select list that has NULL for masked values, and the parameters of its
    expressions.

    DuckDB before 2.0 ignores the masks of numpy, and would read every masked value as zero.
    """
    plain: Columns = {}
    selected = []
    texts: list[Any] = []
    for name, values in columns.items():
        if isinstance(values, Coded):  # for 100 000 rows a twentieth of the size of their texts as objects
            plain[name] = values.codes
            selected.append(f'list_extract(?::VARCHAR[], "{name}" + 1) AS "{name}"')
            texts.append(values.texts)
        elif isinstance(values, np.ma.MaskedArray):
            plain[name] = values.data
            plain[f"{name}_unknown"] = np.ma.getmaskarray(values)
            selected.append(f'CASE WHEN NOT "{name}_unknown" THEN "{name}" END AS "{name}"')
        else:
            plain[name] = values
            selected.append(f'"{name}"')
    return plain, ", ".join(selected), texts
