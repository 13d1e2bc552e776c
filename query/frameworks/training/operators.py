"""Time of units by operator: each unit is an instance of one."""

from __future__ import annotations

from importlib.resources import files

import duckdb

from indexes.resources import with_other
from indexes.schema import Table, read
from query.frameworks import Operators
from query.model.records import Columns


def raw_tables() -> tuple[Table, ...]:
    """The tables in these frameworks' own words that a run file has beside the others."""
    return read(files(__package__).joinpath("schema.sql").read_text(encoding="utf-8"))


def times(connection: duckdb.DuckDBPyConnection, names: tuple[str, ...], _sampled: bool) -> Columns:
    """The table operator_times."""
    sums = ", ".join(f"coalesce(sum(units.{name}_ms), 0) AS {name}_ms" for name in with_other(names))
    question = files(__package__).joinpath("operator_times.sql").read_text(encoding="utf-8")
    found: Columns = connection.execute(question.format(sums=sums)).fetchnumpy()
    return found


OPERATORS = Operators(of_frame=lambda _class_name, _method: None, times=times)
