"""Stack frames to functions, for all frames of a run at once (see sql/resolve_frames.sql for the rule)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from indexes.exports import at_hand, load_part
from indexes.names import demangle
from query import sql
from query.code.names import declaring_names, nature, runtime_class


def resolve(
    connection: duckdb.DuckDBPyConnection,
    frames_table: str,
    indexes: Sequence[tuple[str, str]],
    *,
    result: str = "resolved_frames",
    other_version: Collection[str] = (),
) -> str:
    """Look all frames up in the attached indexes and return the name of the temporary table with the answers.

    frames_table   has frame_id INTEGER (unique), class_name, method VARCHAR, line INTEGER (NULL or ≤ 0: unknown);
                   class_name is a binary class name, packages by '.' or '/', or the path of a Python file
    indexes        (alias it is attached under, name of the index); the first that knows a frame answers
    other_version  names of indexes whose version is not the one that ran: there names go before lines
    result         a temporary table, replaced, one row per frame:
                   (frame_id, index_name, function_id, symbol, how), where how is
                   line, name     found, by class and line or by class and method
                   native         found, by class and method: one without a body in the source
                   class          the class is indexed, but the frame falls in no function of it
                   hidden         a hidden class of the JVM: a lambda's or proxy's shell
                   generated      code generated while running
                   unknown        in none of the indexes
    """
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE frames_to_resolve AS"
        f" SELECT frame_id, class_name, method, coalesce(line, 0)::INTEGER AS line FROM {frames_table}"
    )
    _add_names(connection)
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE frames_given AS SELECT frame_id::BIGINT AS frame_id,"
        " CASE nature WHEN 'source' THEN 'unknown' ELSE nature END AS how"
        " FROM frames_to_resolve JOIN frame_natures USING (class_name);"
        " CREATE OR REPLACE TEMP TABLE answered"
        " (frame_id BIGINT, index_name VARCHAR, function_id INTEGER, symbol VARCHAR, how VARCHAR);"
        " CREATE OR REPLACE TEMP TABLE of_class (frame_id BIGINT, index_name VARCHAR, turn INTEGER)"
    )
    connection.execute(
        "DELETE FROM frames_to_resolve"
        " WHERE class_name IN (SELECT class_name FROM frame_natures WHERE nature = 'hidden')"
    )
    for turn, (alias, name) in enumerate(indexes):
        for exact in ("false", "true") if name in other_version else ("true",):
            for statement in _statements():
                connection.execute(statement.format(index=alias, exact=exact))
            _take(connection, turn, name, alias)
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE {result} AS
        SELECT
            frame_id, coalesce(answered.index_name, first.index_name) AS index_name, function_id, symbol,
            coalesce(answered.how, CASE WHEN first.index_name IS NOT NULL THEN 'class' END, given.how) AS how
        FROM frames_given AS given
        LEFT JOIN answered USING (frame_id)
        LEFT JOIN (SELECT frame_id, arg_min(index_name, turn) AS index_name FROM of_class GROUP BY frame_id) AS first
            USING (frame_id)
        """
    )
    made = ("frames_to_resolve", "frames_given", "answered", "of_class", "frame_classes", "frame_methods")
    for table in (*made, "frame_natures", "located", "blocks", "named"):
        connection.execute(f"DROP TABLE IF EXISTS temp.{table}")
    return result


def load_indexes(
    connection: duckdb.DuckDBPyConnection, names: Sequence[str], classes: Collection[str]
) -> list[tuple[str, str]]:
    """Copy what indexes know of these frames' classes into memory: (alias, index name), as `resolve` takes them.

    Those that know none are left out.  Raises IndexFileError where there is no such index.
    """
    if not classes:  # a log without samples
        for name in names:
            at_hand(name)
        return []
    known = {"name": _texts(sorted({name for each in classes for name in declaring_names(each)}))}
    _create(connection, "names_to_know", known)
    found = []
    for number, name in enumerate(names):
        alias = load_part(connection, name, f"index_{number}", "names_to_know", whole=False)
        if connection.execute(f"SELECT 1 FROM {alias}.functions LIMIT 1").fetchone() is not None:
            found.append((alias, name))
        else:
            connection.execute(f"DROP SCHEMA {alias} CASCADE")
    connection.execute("DROP TABLE names_to_know")
    return found


def _take(connection: duckdb.DuckDBPyConnection, turn: int, name: str, alias: str) -> None:
    """Keep what this index answered; of frames that it knows the class of only, that it does."""
    connection.execute(
        "INSERT INTO answered SELECT frame_id, ?, function_id, symbol, frames_found.how"
        f" FROM frames_found JOIN {alias}.functions USING (function_id)",
        [name],
    )
    connection.execute("INSERT INTO of_class SELECT DISTINCT frame_id, ?, ? FROM located", [name, turn])
    connection.execute("DELETE FROM frames_to_resolve WHERE frame_id IN (SELECT frame_id FROM frames_found)")


def _add_names(connection: duckdb.DuckDBPyConnection) -> None:
    """What `query.code.names` knows of the distinct classes and methods, as tables."""
    classes = [row[0] for row in connection.execute("SELECT DISTINCT class_name FROM frames_to_resolve").fetchall()]
    natures = {"class_name": _texts(classes), "nature": _texts([nature(each) for each in classes])}
    _create(connection, "frame_natures", natures)
    looked_up = [(each, rank, name) for each in classes for rank, name in enumerate(declaring_names(each))]
    _create(
        connection,
        "frame_classes",
        {
            "class_name": _texts([each for each, _, _ in looked_up]),
            "rank": np.array([rank for _, rank, _ in looked_up], np.int32),
            "looked_up": _texts([name for _, _, name in looked_up]),
            "runtime_class": _texts([runtime_class(each) for each, _, _ in looked_up]),
            "in_lambda": np.array(["$$anonfun$" in each for each, _, _ in looked_up], np.bool_),
        },
    )
    methods = [row[0] for row in connection.execute("SELECT DISTINCT method FROM frames_to_resolve").fetchall()]
    meanings = [demangle(each) for each in methods]
    _create(
        connection,
        "frame_methods",
        {
            "method": _texts(methods),
            "name": _texts([each.name for each in meanings]),
            "is_lambda": np.array([each.is_lambda for each in meanings], np.bool_),
        },
    )


def _create(connection: duckdb.DuckDBPyConnection, name: str, columns: dict[str, NDArray[Any]]) -> None:
    # DuckDB reads the dictionary `columns` by its name.
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT * FROM columns")


def _texts(values: list[str]) -> NDArray[np.object_]:
    return np.array([*values, ""], dtype=object)[:-1]


@cache
def _statements() -> tuple[str, ...]:
    text = sql.text("resolve_frames")
    lines = [line for line in text.split("\n") if not line.startswith("--")]
    return tuple(each.strip() for each in "\n".join(lines).split(";") if each.strip())
