"""Creating and opening the DuckDB files of CrystalPerf.

A file appears under its name only when it is complete: it is built beside its place and renamed, so that a reader
sees the old one or the new one, never a part.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path

import duckdb

from indexes.errors import IndexFileError
from indexes.schema import SCHEMA_VERSIONS, Kind, Table, tables

_TEMPORARY = re.compile(r"^\.(?P<name>.+)\.(?P<pid>\d+)\.building(\.wal)?$")

_STORAGE = {
    "run": "STORAGE_VERSION 'v1.0.0'",
    # Mostly names: Zstandard and small blocks take a third less.  Still smaller blocks take more: in them
    # DuckDB cannot pack integers.
    "index": "STORAGE_VERSION 'v1.2.0', BLOCK_SIZE 32768",
}
"""Every DuckDB since 1.2 opens them."""

_ZSTD = {
    "functions": ("symbol", "qualified_name"),
    "classes": ("class_name", "file"),
    "runtime_names": ("class_name", "method"),
}
"""Columns of an index that are always compressed so.  Left to itself DuckDB compares compressions on a random sample,
and the same rows make a file of 10 or of 15 MB."""


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
    temporary = path.with_name(f".{path.name}.{os.getpid()}.building")
    _write_or_say(path, lambda: path.parent.mkdir(parents=True, exist_ok=True))
    remove_stale_temporaries(path.parent)
    connection = duckdb.connect()
    try:
        if kind == "index":
            connection.execute("SET zstd_min_string_length = 1")
        _write_or_say(path, lambda: connection.execute(f"ATTACH '{_sql(temporary)}' AS built ({_STORAGE[kind]})"))
        connection.execute("USE built")
        connection.execute("BEGIN")  # two hundred statements, each of which would else be made durable by itself
        for table in (*tables(kind, names), *more):
            for statement in table.statements(zstd=_ZSTD.get(table.name, ()) if kind == "index" else ()):
                connection.execute(statement)
        facts = {
            "schema_version": str(SCHEMA_VERSIONS[kind]),
            "kind": kind,
            "tool_version": version("crystalperf"),
            "built_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            **metadata,
        }
        connection.executemany("INSERT INTO metadata VALUES (?, ?)", list(facts.items()))
        connection.execute("COMMIT")
        yield connection
        connection.execute("USE memory; DETACH built")
        _sync(temporary)
        _write_or_say(path, lambda: os.replace(temporary, path))
    finally:
        connection.close()
        for leftover in (temporary, temporary.with_name(temporary.name + ".wal")):
            with suppress(OSError):
                leftover.unlink()


def remove_stale_temporaries(folder: Path) -> None:
    """Remove what builds that were killed left in a folder; those of living processes stay."""
    for each in folder.iterdir():
        match = _TEMPORARY.match(each.name)
        if match and not _alive(int(match["pid"])):
            with suppress(OSError):
                each.unlink()


def attach(connection: duckdb.DuckDBPyConnection, path: Path, kind: Kind, alias: str) -> dict[str, str]:
    """Attach a file read-only under an alias and return its metadata; refuse what is not a current `kind` file."""
    what = "a resource index" if kind == "index" else "a run file"
    if not path.is_file():
        raise IndexFileError(f"{path}: no such file; expected {what}")
    try:
        connection.execute(f"ATTACH '{_sql(path)}' AS {alias} (READ_ONLY)")
    except duckdb.Error as error:
        reason = str(error).split("\n")[0]
        raise IndexFileError(f"{path}: not {what} of CrystalPerf, or damaged ({reason})") from error
    try:
        rows = connection.execute(f"SELECT key, value FROM {alias}.metadata").fetchall()
    except duckdb.Error as error:
        connection.execute(f"DETACH {alias}")
        raise IndexFileError(f"{path}: a DuckDB file, but not {what} of CrystalPerf") from error
    facts = dict(rows)
    if facts.get("kind") != kind:
        connection.execute(f"DETACH {alias}")
        raise IndexFileError(f"{path}: expected {what}, found one of kind '{facts.get('kind')}'")
    if facts.get("schema_version") != str(SCHEMA_VERSIONS[kind]):
        connection.execute(f"DETACH {alias}")
        again = "crystalperf index build" if kind == "index" else "crystalperf profile"
        raise IndexFileError(
            f"{path}: schema version {facts.get('schema_version')}, this CrystalPerf reads version"
            f" {SCHEMA_VERSIONS[kind]}; make it again with `{again}`"
        )
    return facts


def open_read_only(path: Path, kind: Kind) -> duckdb.DuckDBPyConnection:
    """A connection whose current database is the file, read-only."""
    connection = duckdb.connect()
    attach(connection, path, kind, "opened")
    connection.execute("USE opened")
    return connection


def _write_or_say(path: Path, action: Callable[[], object]) -> None:
    try:
        action()
    except (OSError, duckdb.Error) as error:
        reason = getattr(error, "strerror", None) or str(error).split("\n")[0]
        raise IndexFileError(f"{path}: cannot be written ({reason}); choose another place") from error


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _sql(path: Path) -> str:
    return str(path).replace("'", "''")
