"""The file of the ledger: a line of JSON for each entry, appended under a lock.

    {"crystalperf.ledger": 1}
    {"at_ms": 1795806328089, "by": "predict", "run": {…}, "predictions": [{…}], …}

A process appends a line with one write, so that one that is killed loses at most its own line.  The next writer ends an
incomplete line, and readers skip it.  Lines are removed by a new file that replaces the old one.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

import msgspec

from crystalperf.indexes.errors import InputError
from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.temporary import building_folder, make_private
from crystalperf.query.ledger.entries import Entry

VARIABLE = "CRYSTALPERF_LEDGER"
"""The environment variable with the path of the file; `off` keeps nothing."""

HEADER = b'{"crystalperf.ledger": 1}\n'
"""The first line; the number is the version of the lines."""

MOST_BYTES = 64 << 20
"""Size above which a writer drops the older half of the lines, those of some 15 000 analyses."""

_SEARCHED = 64 << 10
"""Bytes in which a writer looks for the first entry of a file whose first line is damaged."""

LOCKED_S = 2.0
"""Longest wait for other writers, each of which takes a millisecond."""


@frozen
class Kept:
    """The entries of a ledger, in the order of its lines, and the numbers of lines that are damaged."""

    entries: tuple[Entry, ...]
    damaged: tuple[int, ...] = ()


def place() -> Path | None:
    """The path of the user's ledger, which need not exist; None if nothing is to be kept.

    Unlike the cache, it cannot be made again, so it is in the folder of a user's state.
    """
    stated = os.environ.get(VARIABLE, "")
    if stated.lower() == "off":
        return None
    try:
        if stated:
            return Path(stated).expanduser()
        if home := os.environ.get("CRYSTALPERF_HOME"):
            return Path(home).expanduser() / "ledger.jsonl"
        base = os.environ.get("XDG_STATE_HOME")
        return (Path(base) if base else Path.home() / ".local" / "state") / "crystalperf" / "ledger.jsonl"
    except RuntimeError:  # a user without a home
        return None


def is_writable(path: Path) -> bool:
    """Whether entries can be added."""
    where = path
    while not where.exists() and where != where.parent:
        where = where.parent
    return os.access(where, os.W_OK)


def append(path: Path, entry: Entry) -> bytes:
    """Add an entry, and return its line.  Raises OSError if the file cannot be written, InputError if it is not a
    ledger."""
    line = msgspec.json.encode(entry)
    _append(path, line + b"\n")
    return line


def append_again(line: str) -> None:
    """Add an entry that was added before, with the present time, unless the ledger is off.  Raises as append() does."""
    path = place()
    if path is not None:
        entry = _decoder().decode(line.encode())
        append(path, replace(entry, at_ms=round(1e3 * time.time())))


def _append(path: Path, line: bytes) -> None:
    make_private(path.parent)
    with _locked(path) as file:
        size = os.fstat(file).st_size
        begin = os.pread(file, _SEARCHED, 0)
        if HEADER.startswith(begin) and begin != HEADER:
            os.ftruncate(file, size := 0)  # empty, or its first writer was killed
            line = HEADER + line
        elif not _is_ledger(begin.split(b"\n")):
            raise _not_a_ledger(path)
        elif os.pread(file, 1, size - 1) != b"\n":
            line = b"\n" + line
        try:
            if os.write(file, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError:
            with suppress(OSError):
                os.ftruncate(file, size)
            raise
        if size + len(line) > MOST_BYTES:
            lines = _lines(path)
            _replace(path, lines[len(lines) // 2 :])


def read(path: Path) -> Kept:
    """All entries; none if there is no file.  Raises InputError if it cannot be read, or is not a ledger."""
    entries, damaged = [], []
    for number, line in enumerate(_lines(path), 1):
        entry = _entry(line)
        if entry is not None:
            entries.append(entry)
        elif line and not (number == 1 and HEADER.startswith(line)):
            damaged.append(number)
    return Kept(tuple(entries), tuple(damaged))


def read_about(path: Path, app_id: str) -> list[Entry]:
    """The entries about runs with this id, found without decoding the others.  Raises as read() does."""
    wanted = msgspec.json.encode(app_id)
    found = (_entry(line) for line in _lines(path) if wanted in line)
    return [each for each in found if each is not None and each.run.app_id == app_id]


def remove(path: Path, is_removed: Callable[[Entry], bool] | None) -> int:
    """Remove entries, or the whole file without a condition; returns how many.  Damaged lines go with the file only.

    Raises OSError if the file cannot be written, and what read() raises.
    """
    lines = _lines(path)
    if not path.exists():
        return 0
    with _locked(path):
        lines = _lines(path)
        gone = [line for line in lines if (entry := _entry(line)) and (is_removed is None or is_removed(entry))]
        if is_removed is None:
            path.unlink()
        elif gone:
            left = set(gone)
            _replace(path, [line for line in lines if line not in left])
    return len(gone)


@cache
def _decoder() -> msgspec.json.Decoder[Entry]:
    """Made on first use, which takes some ms."""
    return msgspec.json.Decoder(Entry)


def _entry(line: bytes) -> Entry | None:
    try:
        return _decoder().decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _lines(path: Path) -> list[bytes]:
    """All lines.  Raises InputError."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(file, "rb") as opened:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise _not_a_ledger(path)
            lines = opened.read().split(b"\n")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror or error}); name another file in {VARIABLE}"
        ) from error
    if any(lines) and not _is_ledger(lines):
        raise _not_a_ledger(path)
    return lines


def _is_ledger(lines: Sequence[bytes]) -> bool:
    """Whether the first line is that of a ledger, or if that is damaged, whether another line is an entry."""
    if lines[0] + b"\n" == HEADER or (len(lines) == 1 and HEADER.startswith(lines[0])):
        return True
    return any(_entry(each) is not None for each in lines)


def _replace(path: Path, lines: Iterable[bytes]) -> None:
    """Replace the file by one with these lines.  A writer that waits for the lock of the old file opens the new one."""
    with building_folder(path) as folder:
        made = folder / "made"
        made.touch(mode=0o600)
        with made.open("wb") as file:
            file.write(HEADER)
            file.writelines(each + b"\n" for each in lines if each and each + b"\n" != HEADER)
        os.replace(made, path)


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """The descriptor of the file, locked and open for appending; made if it does not exist.

    Raises TimeoutError if another process holds the lock for long.
    """
    end = time.monotonic() + LOCKED_S
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise _not_a_ledger(path)
            _lock(file, end)
            if _is_current(file, path):
                yield file
                return
        finally:
            os.close(file)


def _lock(file: int, end: float) -> None:
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                raise TimeoutError(errno.EAGAIN, "another process holds its lock") from None
            time.sleep(0.002)
        except OSError:
            return  # no locks on this file system


def _is_current(file: int, path: Path) -> bool:
    """Whether the path still names this file: another process may have replaced or removed it before the lock."""
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


def _not_a_ledger(path: Path) -> InputError:
    return InputError(f"{path}: not a ledger, so CrystalPerf does not write to it; name another file in {VARIABLE}")
