"""SQL queries, a commented file each."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


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
