"""Folders in which files are made before they get their name, and how those of killed processes are told apart.

Processes of several containers may share a cache, and there all have the same number; so a folder's name is random,
and whoever builds in it holds a lock on a file in it.  The lock goes with the process, however it ends.  Where locks
do not work (some network file systems), a folder is given up after a day.

A folder that goes is renamed first, for who removes it may be killed as well, after the lock is gone and before the
rest is.  Who is killed before the lock is held leaves a folder that nobody holds and that does not say so: it is given
up after a minute, in which whoever has just made it would have locked it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

GIVEN_UP_S = 24 * 3600
"""Age after which what nobody can be seen to build is taken for left behind, where locks do not work."""
LOCKED_WITHIN_S = 60.0
"""The same where locks work and none was ever held: the time from making a folder to locking it, with much to spare."""

# With .wal and .exporting: what earlier versions left.
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]+\.(building|exporting)(\.wal)?")
_REMOVED = re.compile(r"\..+\.[0-9a-f]+\.removed")
_LOCK = "lock"
_LONGEST_NAME = 100


@contextmanager
def building_folder(path: Path) -> Iterator[Path]:
    """A private folder beside a path, on the same file system, to build in; it is gone after the block.

    Raises OSError where none can be made.
    """
    if not path.name:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    make_private(path.parent)
    remove_stale(path.parent)
    folder = path.with_name(f".{path.name[:_LONGEST_NAME]}.{secrets.token_hex(8)}.building")
    folder.mkdir(mode=0o700)
    try:
        with (folder / _LOCK).open("wb") as held:
            with suppress(OSError):  # no locks here: age tells
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                held.write(b"1")  # from now on whoever can lock it knows that nobody builds here any more
                held.flush()
            yield folder
    finally:
        _remove(folder)


def make_private(folder: Path) -> None:
    """Create a folder, and those above it that are missing, for this user alone."""
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        with suppress(FileExistsError):  # another process was quicker
            each.mkdir(mode=0o700)


def make_durable(path: Path) -> None:
    """Have the content of a file, or the names in a folder, on disk before anything else happens."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_stale(folder: Path) -> None:
    """Remove what killed processes left in a folder; what is being built stays."""
    with suppress(OSError):
        for each in folder.iterdir():
            if _REMOVED.fullmatch(each.name) or (_TEMPORARY.fullmatch(each.name) and _given_up(each)):
                if each.is_dir() and not each.is_symlink():
                    _remove(each)
                else:
                    with suppress(OSError):
                        each.unlink()


def _remove(folder: Path) -> None:
    """Remove a folder; where that is cut short, its new name says that nobody builds in it."""
    with suppress(OSError):
        folder = folder.rename(folder.with_name(f"{folder.name.rpartition('.')[0]}.removed"))
    shutil.rmtree(folder, ignore_errors=True)


def _given_up(temporary: Path) -> bool:
    try:
        with (temporary / _LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock.seek(0, os.SEEK_END) > 0 or _age_s(temporary) > LOCKED_WITHIN_S
    except BlockingIOError:
        return False
    except FileNotFoundError:
        return _age_s(temporary) > LOCKED_WITHIN_S
    except OSError:
        return _age_s(temporary) > GIVEN_UP_S


def _age_s(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return 0.0
