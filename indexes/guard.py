"""Checks of untrusted DuckDB files before reading them, and locked connections.

A run file may come from a stranger, and a DuckDB file can contain code: a view in place of a table reads other files, a
macro named `sum` replaces DuckDB's own, a generated column computes.  So CrystalPerf checks the catalogue first, with
DuckDB's own functions and on a locked connection.  It accepts plain tables with the columns of schema.sql only.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb

from crystalperf.indexes.errors import CrystalPerfError, IndexFileError, NoAnswerError, Remedy
from crystalperf.indexes.regex import regex
from crystalperf.indexes.schema import Kind, Table, tables

PLAIN_NAME = regex(r"[a-z][a-z0-9_]{0,100}")
"""Names of tables and resources: such a name needs no quotes in a query."""

THREADS: int | None = None
"""Threads of each connection that this process opens from now on; None: one for each CPU."""

# Before a file is attached: no part of its catalogue may make DuckDB fetch an extension for it.
_NO_EXTENSIONS = (
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET allow_community_extensions = false",
)

# DuckDB exempts the paths of attached files from enable_external_access, so that COPY … TO would overwrite them.
# So the file system is disabled too.  Attached files are open by then, read-only, and stay readable.
_LOCKS = (
    "SET temp_directory = ''",  # a large sort would write next to the user's files
    "SET enable_external_access = false",
    "SET disabled_filesystems = 'LocalFileSystem'",
    "SET lock_configuration = true",  # the last one
)

_OTHER_THINGS = """
    SELECT 'a view' AS what, view_name AS name FROM duckdb_views() WHERE database_name = $1 AND NOT internal
    UNION ALL
    SELECT 'a function', function_name FROM duckdb_functions() WHERE database_name = $1 AND NOT internal
    UNION ALL
    SELECT 'a type', type_name FROM duckdb_types() WHERE database_name = $1 AND NOT internal
    UNION ALL
    SELECT 'a sequence', sequence_name FROM duckdb_sequences() WHERE database_name = $1
    UNION ALL
    SELECT 'a schema', schema_name FROM duckdb_schemas() WHERE database_name = $1 AND NOT internal
        AND schema_name <> 'main'
    UNION ALL
    SELECT 'an index', index_name FROM duckdb_indexes() WHERE database_name = $1
    LIMIT 1
"""

_COLUMNS = """
    SELECT table_name, column_name, data_type, column_default
    FROM duckdb_columns()
    WHERE database_name = ? AND NOT internal
    ORDER BY table_name, column_index
"""

_SAME = {"BOOL": "BOOLEAN", "TEXT": "VARCHAR", "INT": "INTEGER", "REAL": "FLOAT"}


_passed_on: list[duckdb.DuckDBPyConnection] = []
"""A connection for the next connect()."""

_CHANGED = ("temp_directory", "disabled_compression_methods", "zstd_min_string_length")
"""Settings that building a file changes."""


_IS_EMPTY = """
    SELECT (SELECT count(*) FROM duckdb_databases() WHERE NOT internal) = 1
        AND (SELECT count(*) FROM duckdb_tables() WHERE NOT internal) = 0
"""
"""Whether a connection has only its own database in memory, without tables."""


def pass_on(connection: duckdb.DuckDBPyConnection) -> bool:
    """Let the next connect() use a connection that built a file, and return True: opening another takes 15 ms.

    Returns False if there is one already, or if it has more than an empty database in memory.
    """
    if _passed_on or not connection.execute(_IS_EMPTY).fetchall()[0][0]:
        return False
    connection.execute("; ".join(f"RESET {each}" for each in _CHANGED))
    _passed_on.append(connection)
    return True


def close_spare() -> None:
    """Close the connection that waits for the next connect().

    It must not survive a fork: the child would wait forever for DuckDB's threads, which exist in the parent only.
    """
    while _passed_on:
        _passed_on.pop().close()


os.register_at_fork(before=close_spare)


def connect() -> duckdb.DuckDBPyConnection:
    """A connection in memory that fetches and loads no extension, to attach files to."""
    try:
        connection = _passed_on.pop()
    except IndexError:
        connection = fresh()
    for each in _NO_EXTENSIONS:
        connection.execute(each)
    return connection


def fresh() -> duckdb.DuckDBPyConnection:
    """A connection in memory, without DuckDB's progress bar: it would go to stdout, between the answers."""
    connection = duckdb.connect(config={} if THREADS is None else {"threads": THREADS})
    connection.execute("SET enable_progress_bar = false")
    return connection


def lock(connection: duckdb.DuckDBPyConnection) -> None:
    """Restrict a connection to reading what is attached to it: no files, no network, no settings."""
    for each in (*_NO_EXTENSIONS, *_LOCKS):
        connection.execute(each)


def attach_unread(connection: duckdb.DuckDBPyConnection, path: Path, alias: str) -> None:
    """Attach a file read-only as a DuckDB database, whatever its content looks like, without reading its tables."""
    connection.execute(f"ATTACH {quoted(str(path.absolute()))} AS {alias} (READ_ONLY, TYPE duckdb)")


def check_nothing_runs(connection: duckdb.DuckDBPyConnection, path: Path, alias: str) -> dict[str, dict[str, str]]:
    """The tables of an attached file, with the types of their columns.

    Raises IndexFileError for a file with anything but plain tables.  The connection must be locked, because
    describing a view may read what the view names.
    """
    other = connection.execute(_OTHER_THINGS, [alias]).fetchone()
    if other is not None:
        raise IndexFileError(
            f"{path}: contains {other[0]}, '{_shown(other[1])}', but CrystalPerf opens files with plain tables only"
        )
    return _columns(connection, path, alias)


def check_tables(path: Path, found: Mapping[str, Mapping[str, str]], kind: Kind) -> None:
    """Raise IndexFileError if a table of this kind of file is missing or has other columns."""
    for each in expected(found, kind):
        _check_table(path, each, found.get(each.name))


def expected(found: Mapping[str, Mapping[str, str]], kind: Kind) -> Sequence[Table]:
    """The tables that such a file must have, for the resources that its own columns name."""
    source, prefix = ("stacks", "") if kind == "run" else ("functions", "code_")
    fixed = {each.name for table in tables(kind, ()) if table.name == source for each in table.columns}
    resource_columns = [each for each in found.get(source, {}) if each not in fixed and each.startswith(prefix)]
    names = tuple(each.removeprefix(prefix) for each in resource_columns)
    return tables(kind, tuple(each for each in names if PLAIN_NAME.fullmatch(each)))


def _columns(connection: duckdb.DuckDBPyConnection, path: Path, alias: str) -> dict[str, dict[str, str]]:
    """The types of the columns of each table, by name."""
    found: dict[str, dict[str, str]] = {}
    for table, column, type_, default in connection.execute(_COLUMNS, [alias]).fetchall():
        if not PLAIN_NAME.fullmatch(table):
            raise IndexFileError(f"{path}: contains a table with an invalid name, '{_shown(table)}'; not read")
        if default is not None:
            raise IndexFileError(f"{path}: the column {table}.{_shown(column)} has a computed default; not read")
        found.setdefault(table, {})[column] = type_
    return found


def _check_table(path: Path, table: Table, found: Mapping[str, str] | None) -> None:
    if found is None:
        raise IndexFileError(f"{path}: has no table '{table.name}'; it is damaged, or not written by CrystalPerf")
    declared = {each.name: _plain(each.type) for each in table.columns}
    if dict(found) != declared:
        odd = sorted({name for name, _ in declared.items() ^ found.items()})
        raise IndexFileError(
            f"{path}: its table '{table.name}' differs in {_shown(odd[0])}; damaged, or not written by CrystalPerf"
        )


def _plain(type_: str) -> str:
    bare = type_.removesuffix(" NOT NULL").removesuffix(" PRIMARY KEY")
    return _SAME.get(bare, bare)


@contextmanager
def damage_as_error(path: Path, kind: Kind) -> Iterator[None]:
    """Turn DuckDB's errors while reading a file into IndexFileError, or into NoAnswerError if memory is too small."""
    try:
        yield
    except CrystalPerfError:
        raise
    except duckdb.InterruptException:
        raise
    except (duckdb.Error, UnicodeDecodeError) as error:
        reason = str(error).split("\n")[0]
        if _is_memory(error):
            raise NoAnswerError(f"{path}: not enough memory; use a smaller scope of the run") from error
        if "Query interrupted" in reason:
            raise
        remedy = Remedy("profile again") if kind == "run" else None
        raise IndexFileError(f"{path}: damaged, or not written by CrystalPerf ({reason[:300]})", remedy) from error


@contextmanager
def shortage_as_error(path: Path) -> Iterator[None]:
    """Turn a lack of memory or disk space while building a file into NoAnswerError or IndexFileError."""
    try:
        yield
    except duckdb.Error as error:
        if _is_memory(error):
            raise NoAnswerError(f"{path}: not enough memory to write it; use a smaller part of the input") from error
        if is_full(error):
            raise IndexFileError(f"{path}: the disk is full", Remedy("choose another place")) from error
        raise


def is_full(error: Exception) -> bool:
    """Whether the disk was full; DuckDB has no error class for it."""
    return os.strerror(errno.ENOSPC) in str(error)


def _is_memory(error: Exception) -> bool:
    text = str(error)
    return isinstance(error, duckdb.OutOfMemoryException) or "Out of Memory" in text or "bad_alloc" in text


def quoted(text: str) -> str:
    """A text as a SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def _shown(name: str) -> str:
    """A name from an untrusted file, made safe for a sentence."""
    return name[:60].encode("unicode_escape").decode("ascii")
