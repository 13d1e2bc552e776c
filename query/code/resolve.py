"""Stack frames to functions, for all frames of a run at once (see sql/resolve_frames.sql for the rule)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from indexes.exports import RESOLVING, at_hand, load_part
from indexes.names import demangle
from query import sql
from query.code.names import declaring_names, nature, runtime_class

_TABLES = (
    *("frames_to_resolve", "frames_given", "frame_classes", "frame_methods", "frame_natures", "turns"),
    *("file_names", "located", "blocks", "named", "frames_found", "answered"),
)
_LOADING_AT_ONCE = 2
_VIEWS = ("indexed_functions", "indexed_classes", "indexed_names")


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
        " FROM frames_to_resolve JOIN frame_natures USING (class_name)"
    )
    connection.execute(
        "DELETE FROM frames_to_resolve"
        " WHERE class_name IN (SELECT class_name FROM frame_natures WHERE nature = 'hidden')"
    )
    if not indexes:
        connection.execute(
            f"CREATE OR REPLACE TEMP TABLE {result} AS SELECT frame_id, NULL::VARCHAR AS index_name,"
            " NULL::INTEGER AS function_id, NULL::VARCHAR AS symbol, how FROM frames_given"
        )
    else:
        _add_indexes(connection, indexes, other_version)
        connection.execute(sql.text("resolve_frames"))
        connection.execute(
            f"""
            CREATE OR REPLACE TEMP TABLE {result} AS
            WITH of_class AS (SELECT frame_id, min(turn) AS turn FROM located GROUP BY frame_id),
            known AS (
                SELECT frame_id, coalesce(answered.turn, of_class.turn) AS turn, function_id,
                    coalesce(how, 'class') AS how
                FROM of_class LEFT JOIN answered USING (frame_id)
            )
            SELECT frame_id, index_name, function_id, symbol, coalesce(known.how, given.how) AS how
            FROM frames_given AS given
            LEFT JOIN known USING (frame_id)
            LEFT JOIN turns USING (turn)
            LEFT JOIN indexed_functions USING (turn, function_id)
            """
        )
    for kind, names in (("TABLE", _TABLES), ("VIEW", _VIEWS)):
        connection.execute("; ".join(f"DROP {kind} IF EXISTS temp.{name}" for name in names))
    return result


def load_indexes(
    connection: duckdb.DuckDBPyConnection, names: Sequence[str], frames_table: str
) -> list[tuple[str, str]]:
    """Copy what it takes to resolve these frames from indexes into memory: (alias, index name), as `resolve` asks.

    Those that know none of their classes are left out.  Raises IndexFileError where there is no such index.
    """
    frames = connection.execute(f"SELECT DISTINCT class_name, method, coalesce(line, 0) FROM {frames_table}").fetchall()
    if not frames:  # a log without samples
        for name in names:
            at_hand(name)
        return []
    from concurrent.futures import ThreadPoolExecutor

    asked = sorted(
        {(name, line, demangle(method).name) for each, method, line in frames for name in declaring_names(each)}
    )
    columns = {  # noqa: F841 (read by DuckDB)
        "name": _texts([name for name, _, _ in asked]),
        "line": np.array([line for _, line, _ in asked], np.int32),
        "method": _texts([method for _, _, method in asked]),
    }
    connection.execute("CREATE TABLE memory.places_asked AS SELECT * FROM columns")
    try:
        # Half of the work is decompressing files of one row group, which one thread does.
        with ThreadPoolExecutor(_LOADING_AT_ONCE) as pool:
            loading = [pool.submit(_load, connection, name, f"index_{turn}") for turn, name in enumerate(names)]
        return [(alias, name) for each, name in zip(loading, names, strict=True) if (alias := each.result())]
    finally:
        connection.execute("DROP TABLE memory.places_asked")


def _load(connection: duckdb.DuckDBPyConnection, name: str, alias: str) -> str | None:
    """Load what an index knows under this alias, by a cursor of its own; None where it knows none of the classes."""
    with connection.cursor() as cursor:
        schema = load_part(cursor, name, alias, "memory.places_asked", whole=False)
        if cursor.execute(f"SELECT 1 FROM {schema}.classes LIMIT 1").fetchone() is not None:
            return schema
        cursor.execute(f"DROP SCHEMA {schema} CASCADE")
        return None


def _add_indexes(
    connection: duckdb.DuckDBPyConnection, indexes: Sequence[tuple[str, str]], other_version: Collection[str]
) -> None:
    """The indexes in their order, and views of what all of them have."""
    turns = {
        "turn": np.arange(len(indexes), dtype=np.int32),
        "index_name": _texts([name for _, name in indexes]),
        "is_exact": np.array([name not in other_version for _, name in indexes], np.bool_),
    }
    _create(connection, "turns", turns)
    for view, table, columns in (
        ("indexed_functions", "functions", ", ".join(RESOLVING)),
        ("indexed_classes", "classes", "class_name, file"),
        ("indexed_names", "runtime_names", "function_id, method, class_name"),
    ):
        parts = (f"SELECT {turn} AS turn, {columns} FROM {alias}.{table}" for turn, (alias, _) in enumerate(indexes))
        connection.execute(f"CREATE OR REPLACE TEMP VIEW {view} AS {' UNION ALL '.join(parts)}")


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
