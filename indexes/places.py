"""The rows of indexes for some classes, copied into memory.  Unpacking a prebuilt index would take seconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import duckdb

from crystalperf.indexes.errors import IndexFileError, Remedy
from crystalperf.indexes.exports import Available, at_hand, facts_of, first_line, locate, refuse_unpinned, unpacked_path
from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.packing import (
    CLASS,
    CLASS_OF_FUNCTION,
    NAME,
    NAME_IN_SYMBOL,
    PACKED_SHARES,
    SHARES,
    WHOLE_SHARES,
    read_parquet,
    unpacking,
)
from crystalperf.indexes.resources import resources
from crystalperf.indexes.schema import tables
from crystalperf.indexes.store import attach

QUALIFIED_NAME = f"coalesce(qualified_name, {NAME_IN_SYMBOL})"
"""SQL: the qualified name of a row of `functions` from load_places(); few rows need it."""


@frozen
class _Stored:
    """A stored index: a database attached under an alias, or an export."""

    index: Available
    attached: str | None
    has_python: bool

    def table(self, name: str) -> str:
        """SQL: a table as stored; that of an export is packed."""
        return read_parquet(self.index.path, name) if self.attached is None else f"{self.attached}.{name}"


def load_part(connection: duckdb.DuckDBPyConnection, index_name: str, alias: str, requested: str) -> str:
    """Copy all rows of an index about the files of some classes, as ALIAS.functions, .classes and .runtime_names.

    `requested` is a table whose column `name` has binary class names, and paths of Python files with at least their
    last folder.  Returns the schema.  Raises IndexFileError if the index is missing, not pinned or damaged.
    """
    schema = f"memory.{alias}"

    def load(stored: Sequence[_Stored]) -> None:
        (index,) = stored
        _add_places(connection, schema, stored, f"(SELECT name, 0 AS line, '' AS method FROM {requested})")
        for name, chosen in (
            ("functions", f"file IN (SELECT file FROM {schema}.files)"),
            ("classes", f"file IN (SELECT file FROM {schema}.files)"),
            ("runtime_names", f"function_id IN (SELECT function_id FROM {schema}.functions)"),
        ):
            columns = next(each for each in tables("index") if each.name == name).columns
            kept = ", ".join(f"{each.name}::{each.type.removesuffix(' NOT NULL')} AS {each.name}" for each in columns)
            if index.attached is None:
                rows = unpacking(name, index.index.path, f"{schema}.functions", chosen)
            else:
                rows = f"SELECT * FROM {index.table(name)} WHERE {chosen}"
            connection.execute(f"CREATE TABLE {schema}.{name} AS SELECT {kept} FROM ({rows})")

    _load(connection, schema, [index_name], load)
    return schema


def load_places(connection: duckdb.DuckDBPyConnection, names: Sequence[str], alias: str, requested: str) -> str:
    """Copy the rows that resolve frames to functions, as ALIAS.functions, .classes and .runtime_names.

    `requested` has `name` as in load_part(), `line` and `method`.  Only functions around such a line or with such a
    name are copied, a seventh of those in their files.  Returns the schema; raises IndexFileError as load_part() does.

    The tables have `turn`, the index's position in `names`.  Functions have `name`, the part after the last dot of
    their QUALIFIED_NAME, and a share for each resource.  They have a `class_name` only if no other table has it: those
    of Python, and those without a runtime name.  Only the requested runtime names are copied.
    """
    schema = f"memory.{alias}"

    def load(stored: Sequence[_Stored]) -> None:
        _add_places(connection, schema, stored, requested)
        connection.execute(_near_places(schema, stored))

    _load(connection, schema, names, load)
    return schema


def _union(stored: Sequence[_Stored], table: str, packed: str, whole: str) -> str:
    """SQL: rows of all indexes; `packed` are the columns for exports, `whole` those for databases."""
    return (
        "("
        + " UNION ALL ".join(
            f"SELECT {turn} AS turn, {packed if each.attached is None else whole}"
            f" FROM {each.table(table if each.attached is None else table.replace('vectors', 'functions'))}"
            for turn, each in enumerate(stored)
        )
        + ")"
    )


def _near_places(schema: str, stored: Sequence[_Stored]) -> str:
    """SQL: the tables of load_places(), made after `places` and `files`.

    One statement reads all indexes, because starting a statement takes 1 ms.  Expressions are evaluated after the
    joins, on few rows: most of the time goes to unpacking names.
    """
    columns = "function_id, symbol, language, kind, qualified_name, package, file, first_line"
    functions = _union(
        stored,
        "functions",
        f"{columns}, first_line + last_line AS last_line, class_name",
        f"{columns}, last_line, coalesce(class_name, '') AS class_name",
    )
    shares = _union(stored, "vectors", f"function_id, {PACKED_SHARES}", f"function_id, {WHOLE_SHARES}")
    both = ", ".join(f"{SHARES[each]} AS {each}" for each in resources())
    name_columns = "function_id, method AS own_method, class_name AS own_class"
    names = _union(stored, "runtime_names", name_columns, name_columns)
    return f"""
        CREATE TABLE {schema}.near AS
        SELECT *, {NAME} AS name FROM (FROM {functions} SEMI JOIN {schema}.files USING (turn, file));
        CREATE TABLE {schema}.named AS FROM {names} SEMI JOIN {schema}.near USING (turn, function_id);
        CREATE TABLE {schema}.needed AS
        SELECT turn, function_id FROM {schema}.near JOIN {schema}.places USING (turn, file)
        WHERE line BETWEEN first_line AND last_line OR name = method OR language = 'python'
        UNION
        SELECT turn, function_id FROM {schema}.named WHERE own_method IN (SELECT method FROM {schema}.places);
        CREATE TABLE {schema}.chosen AS FROM {schema}.near SEMI JOIN {schema}.needed USING (turn, function_id);
        CREATE TABLE {schema}.functions AS
        SELECT found.* REPLACE (CASE WHEN has_class THEN {CLASS} END AS class_name), {both}
        FROM (
            SELECT *, language = 'python' OR (language = 'java' AND kind = 'method' AND (turn, function_id)
                NOT IN (SELECT (turn, function_id) FROM {schema}.named)) AS has_class
            FROM {schema}.chosen
        ) found
        JOIN {shares} USING (turn, function_id);
        CREATE TABLE {schema}.runtime_names AS
        SELECT turn, function_id, method, coalesce(own_class, {CLASS_OF_FUNCTION}) AS class_name
        FROM (
            SELECT * REPLACE (CASE WHEN own_class IS NULL THEN {CLASS} END AS class_name)
            FROM (SELECT *, coalesce(own_method, name) AS method
                FROM {schema}.named JOIN {schema}.chosen USING (turn, function_id))
            SEMI JOIN {schema}.places USING (turn, file, method)
        ) f;
        CREATE TABLE {schema}.classes AS
        SELECT * FROM {_union(stored, "classes", "class_name, file", "class_name, file")}
        SEMI JOIN {schema}.files USING (turn, file);
        DROP TABLE {schema}.near; DROP TABLE {schema}.named; DROP TABLE {schema}.needed; DROP TABLE {schema}.chosen;
    """


def _add_places(connection: duckdb.DuckDBPyConnection, schema: str, stored: Sequence[_Stored], requested: str) -> None:
    """Create the schema with the tables `places` (the requested lines and methods, by file) and `files`."""
    python = [
        f"SELECT {turn} AS turn, file FROM {each.table('functions')} WHERE language = 'python'"
        for turn, each in enumerate(stored)
        if each.has_python
    ]
    classes = " UNION ALL ".join(
        f"SELECT {turn} AS turn, file, class_name AS name FROM {each.table('classes')}"
        for turn, each in enumerate(stored)
    )
    if python:
        classes += (
            " UNION ALL SELECT turn, file, unnest([file, array_to_string(string_split(file, '/')[-2:], '/')]) AS name"
            f" FROM (SELECT DISTINCT * FROM ({' UNION ALL '.join(python)}))"
        )
    connection.execute(
        f"""
        CREATE SCHEMA {schema};
        CREATE TABLE {schema}.places AS
        SELECT DISTINCT turn, file, line, method FROM ({classes}) JOIN {requested} USING (name);
        CREATE TABLE {schema}.files AS SELECT DISTINCT turn, file FROM {schema}.places;
        """
    )


_Loading = Callable[[Sequence[_Stored]], None]


def _load(connection: duckdb.DuckDBPyConnection, schema: str, names: Sequence[str], load: _Loading) -> None:
    """Load these indexes into the schema.  Raises IndexFileError, which names the damaged index."""
    try:
        _load_stored(connection, schema, names, load)
    except duckdb.Error:
        for name in names:
            _load_alone(connection, schema, name, load)
            connection.execute(f"DROP SCHEMA {schema} CASCADE")
        _load_stored(connection, schema, names, load)


def _load_alone(connection: duckdb.DuckDBPyConnection, schema: str, name: str, load: _Loading) -> None:
    """Load one index; remove an unpacked copy that is damaged, because the export can be unpacked again."""
    for copy in (unpacked_path(found) if (found := at_hand(name)).origin == "prebuilt" else None, None):
        try:
            return _load_stored(connection, schema, [name], load)
        except duckdb.Error as error:
            if copy is None or not copy.is_file():
                raise IndexFileError(
                    f"{name}: damaged ({first_line(error)})", Remedy("verify the index", {"index": name})
                ) from error
            copy.unlink()


def _load_stored(connection: duckdb.DuckDBPyConnection, schema: str, names: Sequence[str], load: _Loading) -> None:
    attached: list[str] = []
    try:
        stored = []
        for turn, name in enumerate(names):
            index = at_hand(name)
            if index.origin == "prebuilt" and not unpacked_path(index).is_file():
                facts = facts_of(index)
                refuse_unpinned(index.path, facts["content_hash"])
                alias = None
            else:
                alias = f"{schema.rpartition('.')[2]}_{turn}_whole"
                facts = attach(connection, locate(name), "index", alias)
                attached.append(alias)
            stored.append(_Stored(index, alias, '"python"' in facts.get("source_files", '"python"')))
        load(stored)
    except duckdb.Error:
        connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        raise
    finally:
        for alias in attached:
            connection.execute(f"DETACH {alias}")
