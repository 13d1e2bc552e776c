"""SQL queries, a commented file each."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb


@cache
def text(name: str, package: str = __name__) -> str:
    """The statement of `name`.sql of a package; the caller fills its `{parts}` with str.format()."""
    return files(package).joinpath(f"{name}.sql").read_text(encoding="utf-8")


def summed(time_ms: str) -> str:
    """The sum of a time in ms, to the nanosecond, as an expression of DuckDB.

    The last digits of a sum of floats depend on their order, which varies with DuckDB's threads.  A sum of whole
    nanoseconds does not depend on it, and costs as little.
    """
    return f"(sum(round(({time_ms}) * 1e6)::HUGEINT) / 1e6)"


def has_rows(connection: duckdb.DuckDBPyConnection, table: str) -> bool:
    """Whether a table of a run has a row.  On a Run's connection this asks DuckDB once for all tables."""
    filled: frozenset[str] | None = getattr(connection, "filled", None)
    if filled is not None:
        return table in filled
    return connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is not None
