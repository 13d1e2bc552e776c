"""Resolves stack frames to functions, all frames of a run at once (sql/resolve_frames.sql has the rule)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from crystalperf.indexes.exports import at_hand
from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.names import demangle
from crystalperf.indexes.places import load_places
from crystalperf.query import sql
from crystalperf.query.attribution.code.names import declaring_names, nature, runtime_class

_TABLES = (
    *("frames_to_resolve", "frames_given", "frame_classes", "frame_methods", "frame_natures", "turns"),
    *("file_names", "located", "blocks", "named", "frames_found", "answered"),
)
_VIEWS = ("indexed_functions", "indexed_classes", "indexed_names")


@frozen
class Indexes:
    """Indexes to look up frames in, by priority: their names, and their tables as SQL.

    Rows have a `turn`, the index's position among the names.  Functions have the columns of
    indexes.places.load_places().
    """

    names: tuple[str, ...]
    functions: str = ""
    classes: str = ""
    runtime_names: str = ""
    known: tuple[str, ...] = ()
    """The names of the indexes that know a class of the loaded frames."""


def attached(indexes: Sequence[tuple[str, str]]) -> Indexes:
    """Indexes that are attached to the connection, given as (alias, name)."""

    def union(table: str, columns: str) -> str:
        parts = (f"SELECT {turn} AS turn, {columns} FROM {alias}.{table}" for turn, (alias, _) in enumerate(indexes))
        return f"({' UNION ALL '.join(parts)})"

    return Indexes(
        tuple(name for _, name in indexes),
        union("functions", "*, split_part(qualified_name, '.', -1) AS name"),
        union("classes", "class_name, file"),
        union("runtime_names", "function_id, method, class_name"),
    )


_UNINDEXED = """
    SELECT frame_id, NULL::INTEGER AS turn, NULL::VARCHAR AS index_name, NULL::INTEGER AS function_id,
        NULL::VARCHAR AS symbol, how
    FROM frames_given
"""

_RESOLVED = """
    WITH of_class AS (SELECT frame_id, min(turn) AS turn FROM located GROUP BY frame_id),
    known AS (
        SELECT frame_id, coalesce(answered.turn, of_class.turn) AS turn, function_id, coalesce(how, 'class') AS how
        FROM of_class LEFT JOIN answered USING (frame_id)
    )
    SELECT frame_id, turn, index_name, function_id, symbol, coalesce(known.how, given.how) AS how
    FROM frames_given AS given
    LEFT JOIN known USING (frame_id)
    LEFT JOIN turns USING (turn)
    LEFT JOIN indexed_functions USING (turn, function_id)
"""


def resolve(
    connection: duckdb.DuckDBPyConnection,
    frames_table: str,
    indexes: Indexes,
    *,
    result: str = "resolved_frames",
    other_version: Collection[str] = (),
) -> str:
    """Look up all frames in indexes; returns the name of the temporary table with the results.

    frames_table   has frame_id INTEGER (unique), class_name, method VARCHAR, line INTEGER (NULL or ≤ 0: unknown);
                   class_name is a binary class name, packages by '.' or '/', or the path of a Python file
    other_version  names of indexes of another version than the one that ran: there names precede lines
    result         a temporary table, replaced, one row per frame:
                   (frame_id, turn, index_name, function_id, symbol, how), where how is
                   line, name     found, by class and line or by class and method
                   native         found, by class and method: one without a body in the source
                   class          the class is indexed, but the frame is outside its functions
                   hidden         a hidden class of the JVM: a lambda's or proxy's shell
                   generated      code generated at run time
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
        " FROM frames_to_resolve JOIN frame_natures USING (class_name)"
    )
    connection.execute(
        "DELETE FROM frames_to_resolve"
        " WHERE class_name IN (SELECT class_name FROM frame_natures WHERE nature = 'hidden')"
    )
    answers = _UNINDEXED
    if indexes.names:
        _add_indexes(connection, indexes, other_version)
        connection.execute(sql.text("resolve_frames"))
        answers = _RESOLVED
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {result} AS {answers}")
    for kind, names in (("TABLE", _TABLES), ("VIEW", _VIEWS)):
        connection.execute("; ".join(f"DROP {kind} IF EXISTS temp.{name}" for name in names))
    return result


def load_indexes(connection: duckdb.DuckDBPyConnection, names: Sequence[str], frames_table: str) -> Indexes:
    """Copy the functions for these frames from indexes into memory, as tables of a schema `places`.

    Raises IndexFileError if an index does not exist.
    """
    names = list(dict.fromkeys(names))  # one index may serve for two wanted versions
    for name in names:
        at_hand(name)
    classes = [row[0] for row in connection.execute(f"SELECT DISTINCT class_name FROM {frames_table}").fetchall()]
    methods = [row[0] for row in connection.execute(f"SELECT DISTINCT method FROM {frames_table}").fetchall()]
    if not classes or not names:  # a log without samples
        return Indexes(())
    looked_up = [(each, name) for each in classes for name in declaring_names(each)]
    _create(
        connection,
        "wanted_classes",
        {"class_name": _texts([each for each, _ in looked_up]), "name": _texts([name for _, name in looked_up])},
    )
    _create(
        connection,
        "wanted_methods",
        {"method": _texts(methods), "plain": _texts([demangle(each).name for each in methods])},
    )
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE wanted_places AS"
        " SELECT DISTINCT name, coalesce(line, 0)::INTEGER AS line, plain AS method"
        f" FROM {frames_table} JOIN wanted_classes USING (class_name) JOIN wanted_methods USING (method)"
    )
    try:
        schema = load_places(connection, names, "places", "wanted_places")
    finally:
        connection.execute("DROP TABLE wanted_places; DROP TABLE wanted_classes; DROP TABLE wanted_methods")
    known = {turn for (turn,) in connection.execute(f"SELECT DISTINCT turn FROM {schema}.files").fetchall()}
    return Indexes(
        tuple(names),
        f"{schema}.functions",
        f"{schema}.classes",
        f"{schema}.runtime_names",
        known=tuple(name for turn, name in enumerate(names) if turn in known),
    )


def _add_indexes(connection: duckdb.DuckDBPyConnection, indexes: Indexes, other_version: Collection[str]) -> None:
    """Create the table `turns` of the indexes by priority, and views of their tables under the names in the SQL."""
    turns = {
        "turn": np.arange(len(indexes.names), dtype=np.int32),
        "index_name": _texts(list(indexes.names)),
        "is_exact": np.array([name not in other_version for name in indexes.names], np.bool_),
    }
    _create(connection, "turns", turns)
    for view, rows in zip(_VIEWS, (indexes.functions, indexes.classes, indexes.runtime_names), strict=True):
        connection.execute(f"CREATE OR REPLACE TEMP VIEW {view} AS SELECT * FROM {rows}")


def _add_names(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the tables of the names that `query.attribution.code.names` finds for distinct classes and methods."""
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
