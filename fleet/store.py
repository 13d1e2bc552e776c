"""The folder of a fleet: tables of Parquet that grow by complete batches.

    DIR/runs/day=2026-11-22/BATCH.parquet      and so on for each table
    DIR/_fleet/read/LOG.json                   rows of logs that were read, until their batch is written
    DIR/_fleet/batches/BATCH                   the batches that are complete
    DIR/_fleet/version                         the version of the tables

A build that is killed can continue: a log that was read is not read again, and the next build first removes the files
of incomplete batches.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b, sha256
from pathlib import Path

import duckdb
import msgspec
import numpy as np

from crystalperf.fleet.logs import Item
from crystalperf.fleet.reading import Read
from crystalperf.fleet.summary import check_version, opened
from crystalperf.fleet.tables import VERSION, tables
from crystalperf.indexes import guard
from crystalperf.indexes.errors import InputError, Remedy
from crystalperf.indexes.schema import Table
from crystalperf.indexes.temporary import make_durable

BATCH_BYTES = 32 << 20
"""Size of a batch as JSON, some 4 500 logs; writing a batch takes eight times that in memory."""

_ROW_BYTES = 16 << 20

_FILE = re.compile(r"(?P<batch>[0-9a-f]{16})-\d+\.parquet")
"""The file names of a fleet's tables; other files are never touched."""


class Store:
    """The folder of one fleet, for building it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._state = folder / "_fleet"
        self._read = self._state / "read"
        self._batches = self._state / "batches"
        if not self._batches.is_dir() and (foreign := _foreign(folder)) is not None:
            raise InputError(
                f"{folder}: contains other files ({foreign}) and is not the folder of a fleet, because it has no"
                " `_fleet`; choose another folder"
            )
        check_version(folder)
        try:
            for each in (self._read, self._batches):
                each.mkdir(parents=True, exist_ok=True)
            if not (self._state / "version").exists():
                building = self._state / "version.part"
                building.write_text(f"{VERSION}\n", encoding="ascii")
                make_durable(building)
                os.replace(building, self._state / "version")
                make_durable(self._state)
        except OSError as error:
            raise _unwritable(folder, error) from error
        self._waiting = 0
        self._known: set[bytes] = set()  # known places with their state
        self._unread: set[bytes] = set()  # of these, those without a run
        self._contents: set[bytes] = set()  # of logs that have runs

    @contextmanager
    def building(self) -> Iterator[None]:
        """Lock the folder for the block, and first remove the incomplete files of an earlier build."""
        try:
            lock = (self._state / "lock").open("ab")
        except OSError as error:
            raise _unwritable(self.folder, error) from error
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(f"{self.folder}: another process is building this fleet; wait for it") from None
            except OSError:
                pass  # no locks on this file system
            self._recover()
            yield

    def new(self, items: Sequence[Item]) -> list[Item]:
        """The items whose place and state are not known yet."""
        return [each for each in items if _key(each.name, each.state) not in self._known]

    def unread(self, items: Sequence[Item]) -> list[Item]:
        """The items that are known to be unreadable."""
        return [each for each in items if _key(each.name, each.state) in self._unread]

    def keep(self, read: Read) -> None:
        """Store the rows of a log until its batch is written."""
        name = f"{read.log}-{sha256(read.path.encode()).hexdigest()[:8]}"
        building = self._read / f"{name}.part"
        building.write_bytes(read.rows)
        os.replace(building, self._read / f"{name}.json")
        self._waiting += len(read.rows)

    def scratch(self) -> Path:
        """A folder for temporary files; emptied at the next start."""
        place = self._state / "scratch"
        place.mkdir(exist_ok=True)
        return place

    @property
    def is_full(self) -> bool:
        """Whether the stored rows are enough for a batch."""
        return self._waiting >= BATCH_BYTES

    def write(self) -> None:
        """Write the stored rows as a batch."""
        waiting = sorted(self._read.glob("*.json"))
        if not waiting:
            return
        batch = sha256("".join(each.name for each in waiting).encode()).hexdigest()[:16]
        # DuckDB allocates memory for two rows of the declared maximum size before it reads any.
        most = max(_ROW_BYTES, *(each.stat().st_size + 1 for each in waiting))
        whole = _joined(waiting, self.scratch() / f"{batch}.json")
        with guard.shortage_as_error(self.folder), guard.fresh() as connection:
            connection.execute(f"SET temp_directory = {guard.quoted(str(self._state / 'spilled'))}")
            connection.execute("SET TimeZone = 'UTC'")
            columns = ", ".join(f"{table.name}: '{_struct(table)}[]'" for table in tables())
            connection.execute(
                f"CREATE TABLE whole AS FROM read_json({guard.quoted(str(whole))}, format = 'newline_delimited',"
                f" maximum_object_size = {most}, columns = {{{columns}}})"
            )
            # Of several logs with the same content, only the first by name gets rows; the others are marked as known.
            logs = {each.name.partition("-")[0] for each in waiting}
            again = [each for each in sorted(logs) if _digest(each) in self._contents]
            known = {"log": np.array(again, dtype=object)}  # noqa: F841 (read by DuckDB)
            connection.execute(
                """
                CREATE TABLE firsts AS SELECT logs[1].log AS log, min(logs[1].path) AS path
                FROM whole WHERE logs[1].runs > 0 AND logs[1].log NOT IN (SELECT log FROM known) GROUP BY ALL
                """
            )
            connection.execute(
                """
                CREATE VIEW fresh AS
                SELECT
                    *,
                    -- An unreadable log is always kept: its one row has the reason.
                    logs[1].runs = 0 OR (logs[1].log, logs[1].path) IN (SELECT (log, path) FROM firsts) AS is_first
                FROM whole
                """
            )
            for table in tables():
                self._write_table(connection, table, batch)
            self._remember(
                connection.execute(
                    "SELECT logs[1].path, logs[1].state, logs[1].log, logs[1].runs FROM whole"
                ).fetchall()
            )
        self._sync(batch)
        done = self._batches / f"{batch}.part"
        done.touch()
        os.replace(done, self._batches / batch)
        make_durable(self._batches)
        for each in (whole, *waiting):
            each.unlink()
        self._waiting = 0

    def _write_table(self, connection: duckdb.DuckDBPyConnection, table: Table, batch: str) -> None:
        target = self.folder / table.name
        target.mkdir(exist_ok=True)
        columns = ", ".join(each.name for each in table.columns)
        which = "" if table.name == "logs" else " WHERE is_first"
        connection.execute(
            f"COPY (SELECT {columns} FROM (SELECT unnest({table.name}, max_depth := 2) FROM fresh{which}) ORDER BY ALL)"
            f" TO {guard.quoted(str(target))} (FORMAT parquet, COMPRESSION zstd, PARTITION_BY (day),"
            f" OVERWRITE_OR_IGNORE, FILENAME_PATTERN '{batch}-{{i}}')"
        )

    def _sync(self, batch: str) -> None:
        """Sync the files of a batch and their folders to disk; from then on the stored rows are not needed."""
        files = [each for table in tables() for each in (self.folder / table.name).glob(f"day=*/{batch}-*.parquet")]
        days = {each.parent for each in files}
        for each in (*files, *sorted(days), *sorted({day.parent for day in days}), self.folder):
            make_durable(each)

    def _recover(self) -> None:
        """Remove the files of incomplete batches, and reload the known logs."""
        complete = {each.name for each in self._batches.iterdir() if not each.suffix}
        for table in tables():
            for each in (self.folder / table.name).glob("day=*/*.parquet"):
                named = _FILE.fullmatch(each.name)
                if named is not None and named["batch"] not in complete:
                    each.unlink()
        for each in self._read.glob("*.part"):
            each.unlink()
        shutil.rmtree(self._state / "scratch", ignore_errors=True)
        written = set[bytes]()
        if any((self.folder / "logs").glob("day=*/*.parquet")):
            with opened(self.folder) as connection:
                self._remember(connection.execute("SELECT path, state, log, runs FROM logs").fetchall())
                contents = connection.execute("SELECT DISTINCT log FROM all_logs WHERE runs > 0").fetchall()
                self._contents.update(_digest(log) for (log,) in contents)
                if any(self._read.glob("*.json")):
                    moments = "SELECT path, strftime(read_at, '%Y-%m-%d %H:%M:%S.%f') FROM logs"
                    written.update(_key(*row) for row in connection.execute(moments).fetchall())
        for each in self._read.glob("*.json"):
            try:
                (row,) = msgspec.json.decode(each.read_bytes())["logs"]
                moment = _key(row["path"], row["read_at"])
            except (msgspec.DecodeError, KeyError):  # after a power failure, or from an earlier version
                each.unlink()
                continue
            if moment in written:  # the build was killed after this batch was complete
                each.unlink()
            else:
                self._remember([(row["path"], row["state"], "", row["runs"])])
                self._waiting += each.stat().st_size

    def _remember(self, rows: Sequence[tuple[str, str, str, int]]) -> None:
        """Record logs as known: place, state, hash ('' until its runs are in a table) and number of runs."""
        for path, state, log, runs in rows:
            key = _key(path, state)
            self._known.add(key)
            if runs == 0:
                self._unread.add(key)
                continue
            self._unread.discard(key)
            if log:
                self._contents.add(_digest(log))


def _foreign(folder: Path) -> Path | None:
    """A foreign file in the place of a new fleet's tables; None if there is none."""
    there = (
        Path(where) / name for table in tables() for where, _, names in os.walk(folder / table.name) for name in names
    )
    return next(there, None)


def _key(path: str, state: str) -> bytes:
    return _digest(f"{path}\n{state}")


def _digest(text: str) -> bytes:
    """A short digest of a text, to save memory with a million texts."""
    return blake2b(text.encode(), digest_size=16).digest()


def _joined(files: Sequence[Path], target: Path) -> Path:
    """Concatenate the files, a line each.  DuckDB holds 0.7 MiB for each file that a statement reads."""
    with target.open("wb") as whole:
        for each in files:
            whole.write(each.read_bytes() + b"\n")
    return target


def _unwritable(folder: Path, error: OSError) -> InputError:
    return InputError(f"{folder}: cannot be written ({error.strerror or error})", Remedy("choose another place"))


def _struct(table: Table) -> str:
    """The row type of a table as a DuckDB STRUCT."""
    fields = ", ".join(f"{each.name} {each.type.removesuffix(' NOT NULL')}" for each in table.columns)
    return f"STRUCT({fields})"
