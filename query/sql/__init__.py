"""Questions to the data, a commented file each."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def text(name: str, package: str = __name__) -> str:
    """The statement of `name`.sql of a package; `{parts}` in it are the caller's to fill with str.format()."""
    return files(package).joinpath(f"{name}.sql").read_text(encoding="utf-8")


def summed(time_ms: str) -> str:
    """The sum of a time in ms, to the nanosecond, as an expression of DuckDB.

    Floats add up to other last digits in another order, and the order is that in which DuckDB's threads come; whole
    nanoseconds do not, and cost as little.
    """
    return f"(sum(round(({time_ms}) * 1e6)::HUGEINT) / 1e6)"
