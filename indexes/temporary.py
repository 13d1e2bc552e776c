"""Temporary folders for building files, and removal of the stale ones that killed processes left.

Processes of several containers may share a cache and have the same PID.  So a folder's name is random, and its builder
holds a lock on a file in it.  The lock ends with the process, however that ends.  Where locks do not work (some network
file systems), a folder is stale after a day.

A folder is renamed before its removal, because the remover may be killed after it removed the lock file and before the
rest.  A process that is killed before it takes the lock leaves an unlocked folder: that is stale after a minute, which
is ample time to take the lock.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from crystalperf.indexes.regex import regex

GIVEN_UP_S = 24 * 3600
"""Age after which a folder is stale where locks do not work."""
LOCKED_WITHIN_S = 60.0
"""Age after which a folder that was never locked is stale; locking takes a small part of that."""

# .wal and .exporting: left by earlier versions.
_TEMPORARY = regex(r"\..+\.[0-9a-f]+\.(building|exporting)(\.wal)?")
_REMOVED = regex(r"\..+\.[0-9a-f]+\.removed")
_LOCK = "lock"
_LONGEST_NAME = 100


@contextmanager
def building_folder(path: Path) -> Iterator[Path]:
    """A private temporary folder in the parent of `path`, so on the same file system; removed after the block.

    Raises OSError if it cannot be created.
    """
    if not path.name:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    make_private(path.parent)
    remove_stale(path.parent)
    folder = path.with_name(f".{path.name[:_LONGEST_NAME]}.{secrets.token_hex(8)}.building")
    folder.mkdir(mode=0o700)
    try:
        with (folder / _LOCK).open("wb") as held:
            with suppress(OSError):  # no locks on this file system: the age decides
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                held.write(b"1")  # from now on, a process that gets the lock knows that the builder has ended
                held.flush()
            yield folder
    finally:
        _remove(folder)


def make_private(folder: Path) -> None:
    """Create a folder and its missing parents, accessible to this user only."""
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        with suppress(FileExistsError):  # another process was quicker
            each.mkdir(mode=0o700)


def make_durable(path: Path) -> None:
    """Sync the content of a file, or the entries of a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_stale(folder: Path) -> None:
    """Remove the temporary folders of killed processes; keep those in use."""
    with suppress(OSError):
        for each in folder.iterdir():
            if _REMOVED.fullmatch(each.name) or (_TEMPORARY.fullmatch(each.name) and _given_up(each)):
                if each.is_dir() and not each.is_symlink():
                    _remove(each)
                else:
                    with suppress(OSError):
                        each.unlink()


def _remove(folder: Path) -> None:
    """Rename a folder as removed, then remove it; the name marks it as stale if the removal is interrupted."""
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
