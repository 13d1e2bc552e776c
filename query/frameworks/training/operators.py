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
    found: Columns = connection.execute(
        f"""
        WITH kinds AS (
            SELECT operator, row_number() OVER (ORDER BY min(unit_id)) AS node_id
            FROM training_operations GROUP BY operator
        )
        SELECT units.group_id, any_value(groups.scope_id) AS scope_id, node_id::INTEGER AS node_id,
            operator AS name, 'plan metrics' AS basis, {sums}
        FROM units
        JOIN training_operations USING (unit_id)
        JOIN kinds USING (operator)
        LEFT JOIN groups ON groups.group_id = units.group_id
        GROUP BY units.group_id, node_id, operator
        ORDER BY units.group_id, node_id
        """
    ).fetchnumpy()
    return found


OPERATORS = Operators(of_frame=lambda _class_name, _method: None, times=times)
