"""Creation and opening of the DuckDB files of CrystalPerf.

A file is built in a temporary folder and then renamed, so that a reader sees the old or the new file, never a part.
"""

from __future__ import annotations

import json
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any
from weakref import WeakSet

import duckdb

import crystalperf
from crystalperf.indexes import compiled, guard
from crystalperf.indexes.cache import facts_if_checked, list_checked, spare_folder
from crystalperf.indexes.errors import IndexFileError, Remedy
from crystalperf.indexes.schema import SCHEMA_VERSIONS, Kind, Table, tables
from crystalperf.indexes.temporary import building_folder, make_durable
from crystalperf.indexes.values import check_values

_STORAGE = {
    "run": "STORAGE_VERSION 'v1.0.0'",
    # Indexes are mostly names: Zstandard and small blocks make them a third smaller.  Even smaller blocks make them
    # larger, because DuckDB cannot pack integers in them.
    "index": "STORAGE_VERSION 'v1.2.0', BLOCK_SIZE 32768",
}
"""Every DuckDB since 1.2 opens them."""

_created: dict[tuple[Path, Kind], tuple[tuple[int, ...], Mapping[str, str]]] = {}
"""The files that this process created: their state then, and their metadata.  They need no check."""

_ZSTD = {
    "functions": ("symbol", "qualified_name"),
    "classes": ("class_name", "file"),
    "runtime_names": ("class_name", "method"),
}
"""Columns of an index that always use this compression.  DuckDB would choose by a random sample: the same rows made
files of 10 and of 15 MB."""


@contextmanager
def create(
    path: Path,
    kind: Kind,
    metadata: Mapping[str, str],
    names: tuple[str, ...] | None = None,
    more: Sequence[Table] = (),
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Build a new file and put it in place of `path` when the block ends without an exception.

    Yields a connection whose current database holds the empty tables of schema.sql for the resources of these
    `names` (all known by default), and `more`.  `metadata` may be completed inside the block.  Raises IndexFileError
    where the place cannot be written.
    """
    path = path.absolute()
    _check_encodable(path)
    with ExitStack() as stack:
        folders: list[Path] = []
        _write_or_raise(path, lambda: folders.append(stack.enter_context(building_folder(path))))
        temporary = folders[0] / "built.duckdb"
        content = (*tables(kind, names), *more)
        parent = _empty(kind, content).connection()
        close = stack.enter_context(ExitStack())
        close.callback(parent.close)
        connection = stack.enter_context(parent.cursor())  # its temporary tables end with it
        _set_up(connection, kind, folders[0] / "spilled")
        empty = _empty(kind, content).content()
        if empty is not None:
            _write_or_raise(path, lambda: temporary.write_bytes(empty))
        _write_or_raise(path, lambda: connection.execute(f"ATTACH '{_sql(temporary)}' AS built ({_STORAGE[kind]})"))
        if empty is None:
            _write_or_raise(path, lambda: connection.execute(_statements(content, kind)))
        connection.execute("USE built")
        connection.execute("BEGIN")
        facts = {
            "schema_version": str(SCHEMA_VERSIONS[kind]),
            "kind": kind,
            "tool_version": crystalperf.__version__,
            "built_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            **metadata,
        }
        connection.executemany("INSERT INTO metadata VALUES (?, ?)", list(facts.items()))
        connection.execute("COMMIT")
        with guard.shortage_as_error(path):
            yield connection
            facts = dict(connection.execute("SELECT key, value FROM metadata").fetchall())
            connection.execute("USE memory; DETACH built")
            connection.close()
            if guard.pass_on(parent):
                close.pop_all()
        if kind == "run":
            temporary.chmod(0o600)  # names of tables and hosts, locations, texts of queries
        make_durable(temporary)
        created_state = _state(temporary.stat())
        _write_or_raise(path, lambda: os.replace(temporary, path))
        if facts["schema_version"] == str(SCHEMA_VERSIONS[kind]):
            _created[path, kind] = created_state, facts
            with suppress(OSError):
                status = path.stat()
                if _state(status) == created_state:
                    list_checked(status, kind, facts)


def _set_up(connection: duckdb.DuckDBPyConnection, kind: Kind, spilled: Path) -> None:
    """The settings for writing a file; without a folder of its own, DuckDB would write next to the user's files."""
    connection.execute(f"SET temp_directory = '{_sql(spilled)}'")
    if kind == "index":
        connection.execute("SET zstd_min_string_length = 1")
    else:  # trying it takes half of the time of writing, and other compressions are equally good for a run's texts
        connection.execute("SET disabled_compression_methods = 'fsst'")


@contextmanager
def scratch(
    folder: Path, kind: Kind, names: tuple[str, ...] | None = None, more: Sequence[Table] = ()
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to an empty file of this kind in a temporary folder, which nobody reads after the block.

    The file is not compressed or synced, and has no metadata.  The next call uses the same database in memory.
    """
    empty, place = _empty(kind, (*tables(kind, names), *more)), folder / "scratch.duckdb"
    parent = empty.connection()
    try:
        with parent.cursor() as connection, guard.shortage_as_error(place):
            connection.execute(f"SET temp_directory = '{_sql(folder / 'spilled')}'")
            content = empty.content()
            if content is None:
                raise IndexFileError(f"{folder}: cannot be written", Remedy("choose another place"))
            _write_or_raise(place, lambda: place.write_bytes(content))
            connection.execute("PRAGMA disable_checkpoint_on_shutdown")
            _write_or_raise(place, lambda: connection.execute(f"ATTACH '{_sql(place)}' AS built ({_STORAGE[kind]})"))
            connection.execute("USE built")
            yield connection
            connection.execute("USE memory; DETACH built")
            connection.execute("PRAGMA enable_checkpoint_on_shutdown; RESET temp_directory")
    except BaseException:
        parent.close()
        raise
    finally:
        for each in (place, place.with_name(f"{place.name}.wal")):
            each.unlink(missing_ok=True)
    empty.take_back(parent)


def prepare(kind: Kind, names: tuple[str, ...] | None = None, more: Sequence[Table] = ()) -> None:
    """Create the empty tables for a later create() in a thread; DuckDB takes 0.1 s without blocking Python."""
    _empty(kind, (*tables(kind, names), *more))


class _Empty:
    """A file without rows, made in a thread by 400 statements or by an earlier process; new files are copies of it."""

    def __init__(self, kind: Kind, content: Sequence[Table]) -> None:
        self._content: bytes | None = None
        self._used: list[duckdb.DuckDBPyConnection] = []
        self._thread = threading.Thread(target=self._make, args=(kind, content))
        self._thread.start()
        _made.add(self)

    def content(self) -> bytes | None:
        """The bytes of the file; None if no temporary file can be made."""
        self._thread.join()
        return self._content

    def connection(self) -> duckdb.DuckDBPyConnection:
        """The connection that made the file, for the first caller: opening another takes 15 ms."""
        self._thread.join()
        try:
            return self._used.pop()
        except IndexError:
            return guard.fresh()

    def take_back(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Keep a connection with an empty database in memory for the next caller."""
        self._used.append(connection)

    def close(self) -> None:
        """Close the connections that are kept, once the file is made."""
        self._thread.join()
        while self._used:
            self._used.pop().close()

    def _make(self, kind: Kind, content: Sequence[Table]) -> None:
        with suppress(OSError, duckdb.Error):
            connection = guard.fresh()
            statements = _statements(content, kind)
            made_from = f"{duckdb.__version__}\n{_STORAGE[kind]}\n{statements}"
            columns = [(table.name, [each.name for each in table.columns]) for table in content]
            name = f"{kind}-{sha256(repr(columns).encode()).hexdigest()[:16]}.empty"
            self._content = compiled.kept(name, made_from)
            if self._content is None:
                with building_folder(spare_folder() / "empty") as folder:
                    path = folder / "empty.duckdb"
                    connection.execute(f"ATTACH '{_sql(path)}' AS built ({_STORAGE[kind]})")
                    connection.execute(statements)
                    connection.execute("USE memory; DETACH built")
                    self._content = path.read_bytes()
                compiled.keep(name, made_from, self._content)
            self._used.append(connection)


_made: WeakSet[_Empty] = WeakSet()


def _close_spare() -> None:
    """Close all connections that are kept: see guard.close_spare()."""
    for each in list(_made):
        each.close()


os.register_at_fork(before=_close_spare)


@lru_cache(maxsize=8)
def _empty(kind: Kind, content: tuple[Table, ...]) -> _Empty:
    return _Empty(kind, content)


def _statements(content: Sequence[Table], kind: Kind) -> str:
    """The statements that create empty tables in the attached database `built`."""
    statements = [
        statement
        for table in content
        for statement in table.statements(zstd=_ZSTD.get(table.name, ()) if kind == "index" else ())
    ]
    # One text takes half the time of single statements, and one transaction avoids a sync to disk for each.
    return "; ".join(["USE built", "BEGIN", *statements, "COMMIT"])


def attach(connection: duckdb.DuckDBPyConnection, path: Path, kind: Kind, alias: str) -> dict[str, str]:
    """Attach a file read-only under an alias and return its metadata.

    Raises IndexFileError unless it is a `kind` file of the current schema version.  This does not lock the connection:
    call guard.lock() before running an untrusted statement on it.
    """
    facts = checked(path, kind)
    with guard.damage_as_error(path, kind):
        guard.attach_unread(connection, path, alias)
    return facts


def open_read_only(path: Path, kind: Kind) -> duckdb.DuckDBPyConnection:
    """A locked connection whose current database is the file, read-only."""
    checked(path, kind)
    connection = guard.connect()
    try:
        with guard.damage_as_error(path, kind):
            guard.attach_unread(connection, path, "opened")
            connection.execute("USE opened")
            guard.lock(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def kind_of(path: Path) -> str | None:
    """The kind that a file declares, of any schema version; None if it is not a file of CrystalPerf."""
    row = _first_row(path, "SELECT value FROM looked_at.metadata WHERE key = 'kind'")
    return None if row is None else row[0]


def application_of(path: Path) -> tuple[str, str] | None:
    """Framework and application of a run file of any schema version; None if it has neither."""
    row = _first_row(path, "SELECT framework, app_id FROM looked_at.runs")
    return None if row is None else (row[0], row[1])


def _first_row(path: Path, question: str) -> tuple[Any, ...] | None:
    """The first row of a query over a file with plain tables only; None if the query fails."""
    connection = guard.connect()
    try:
        guard.attach_unread(connection, path, "looked_at")
        guard.lock(connection)
        guard.check_nothing_runs(connection, path, "looked_at")
        row: tuple[Any, ...] | None = connection.execute(question).fetchone()
    except (duckdb.Error, IndexFileError):
        return None
    finally:
        connection.close()
    return row


def checked(path: Path, kind: Kind) -> dict[str, str]:
    """The metadata of a file that has the tables of a `kind` file and no code.  Raises IndexFileError for any other.

    The check uses a separate connection, which is locked before anything is read.  Results are cached until the file
    changes, for other processes of this user too (indexes.cache).
    """
    what = "a resource index" if kind == "index" else "a run file"
    _check_encodable(path)
    try:
        status = path.stat()
    except (OSError, ValueError):
        status = None
    if status is None or not stat.S_ISREG(status.st_mode):
        raise IndexFileError(f"{path}: no such file; expected {what}")
    place, state = path.absolute(), _state(status)
    made, facts = _created.get((place, kind), ((), {}))
    return dict(facts if made == state else _listed_or_checked(place, kind, (*state, status.st_ctime_ns)))


def check_again(path: Path, kind: Kind) -> None:
    """Check a file as another process would, although this process may have created it."""
    _checked(path.absolute(), kind)


def _state(status: os.stat_result) -> tuple[int, ...]:
    """Values that change when a file is replaced or written to."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


@lru_cache(maxsize=256)
def _listed_or_checked(path: Path, kind: Kind, _version: tuple[int, ...]) -> Mapping[str, str]:
    try:
        status = path.stat()
    except OSError:
        return _checked(path, kind)
    found = facts_if_checked(status, kind)
    if found is None or path.with_name(path.name + ".wal").exists():
        found = _checked(path, kind)
        list_checked(status, kind, found)
    return found


def _checked(path: Path, kind: Kind) -> dict[str, str]:
    what = "a resource index" if kind == "index" else "a run file"
    if path.with_name(path.name + ".wal").exists():
        raise IndexFileError(f"{path}: another program changed it and did not finish (its .wal file still exists)")
    connection = guard.connect()
    try:
        try:
            guard.attach_unread(connection, path, "checked")
        except duckdb.Error as error:
            reason = str(error).split("\n")[0]
            raise IndexFileError(f"{path}: not {what} of CrystalPerf, or damaged ({reason})") from error
        with guard.damage_as_error(path, kind):
            guard.lock(connection)
            found = guard.check_nothing_runs(connection, path, "checked")
            facts = _metadata(connection, path, kind, what)
            guard.check_tables(path, found, kind)
            if kind == "run":
                _check_resources(connection, path, found)
                _check_indexes(path, facts)
                check_values(connection, path, found, guard.expected(found, kind))
    finally:
        connection.close()
    return facts


def _metadata(connection: duckdb.DuckDBPyConnection, path: Path, kind: Kind, what: str) -> dict[str, str]:
    """The metadata of a file of this kind and schema version.  Raises IndexFileError for any other."""
    try:
        facts = dict(connection.execute("SELECT key, value FROM checked.metadata").fetchall())
    except (duckdb.CatalogException, duckdb.BinderException) as error:
        raise IndexFileError(f"{path}: a DuckDB file, but not {what} of CrystalPerf") from error
    if not all(isinstance(each, str) for pair in facts.items() for each in pair):
        raise IndexFileError(f"{path}: a DuckDB file, but not {what} of CrystalPerf")
    if facts.get("kind") != kind:
        raise IndexFileError(f"{path}: expected {what}, found one of kind '{facts.get('kind')}'")
    if facts.get("schema_version") != str(SCHEMA_VERSIONS[kind]):
        raise IndexFileError(
            f"{path}: schema version {facts.get('schema_version')}, this CrystalPerf reads version"
            f" {SCHEMA_VERSIONS[kind]}",
            Remedy("build the index again" if kind == "index" else "profile again"),
        )
    return facts


def _check_resources(connection: duckdb.DuckDBPyConnection, path: Path, found: Mapping[str, Mapping[str, str]]) -> None:
    """Refuse a run whose resources do not match its column names, because queries contain these names."""
    for name, moves in connection.execute("SELECT name, moves FROM checked.resources").fetchall():
        words = [name, *(moves or ())]
        known = name in found["stacks"] and found["tasks"].keys() >= set(moves or ())
        if not known or not all(guard.PLAIN_NAME.fullmatch(each) for each in words):
            raise IndexFileError(
                f"{path}: its resources do not match its tables; damaged, or not written by CrystalPerf"
            )


def _check_indexes(path: Path, facts: Mapping[str, str]) -> None:
    """Refuse a run file without a list of indexes."""
    try:
        names = json.loads(facts.get("indexes", "[]"))
    except (ValueError, RecursionError):
        names = None
    if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
        raise IndexFileError(f"{path}: damaged, or not written by CrystalPerf", Remedy("profile again"))


def _check_encodable(path: Path) -> None:
    """Raise IndexFileError for a path that DuckDB cannot open: it takes only UTF-8."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        shown = str(path).encode("utf-8", "backslashreplace").decode()
        raise IndexFileError(f"{shown}: the path is not valid UTF-8", Remedy("choose another place")) from error


def _write_or_raise(path: Path, action: Callable[[], object]) -> None:
    try:
        action()
    except (OSError, duckdb.Error) as error:
        reason = getattr(error, "strerror", None) or str(error).split("\n")[0]
        raise IndexFileError(f"{path}: cannot be written ({reason})", Remedy("choose another place")) from error


def _sql(path: Path) -> str:
    return str(path).replace("'", "''")
