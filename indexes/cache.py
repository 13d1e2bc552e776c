"""The folder of files that CrystalPerf can make again, and its list of files that passed their check.

The check of a run file takes longer than an answer about a small run.  So a file that passed, or that CrystalPerf
wrote, is listed by its place on this machine: device, inode, size, and times of modification and of change.  A file
from elsewhere cannot have an entry, and any write to a file changes its time of change, which no program can set.
Only files that no other user can write are listed, and the entries are private to the user.
"""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from crystalperf.indexes.temporary import make_private

_CODE = ("guard.py", "store.py", "values.py", "resources.toml", "schema.sql")
"""Files that decide the result of a check: an entry is of one version of them, and of DuckDB."""

_MOST_ENTRIES = 2000


def cache_folder() -> Path:
    """The cache: the folder of files that CrystalPerf can make again.  This function does not create it."""
    try:
        if home := os.environ.get("CRYSTALPERF_HOME"):
            folder = Path(home).expanduser()
        else:
            base = os.environ.get("XDG_CACHE_HOME")
            folder = (Path(base) if base else Path.home() / ".cache") / "crystalperf"
        folder.exists()
    except (RuntimeError, PermissionError):  # a user without a home (as in containers), or with an unreadable home
        return spare_folder()
    return folder


@cache
def spare_folder() -> Path:
    """The fallback if the cache is not writable: a private folder of this user among the temporary files."""
    folder = Path(tempfile.gettempdir()) / f"crystalperf-{os.getuid()}"
    with suppress(OSError):
        folder.mkdir(mode=0o700)
    try:
        status = folder.lstat()
        is_private = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077
    except OSError:
        is_private = False
    # Another user may have put a folder or a link there, to read our files or to redirect them.
    return folder if is_private else Path(tempfile.mkdtemp(prefix="crystalperf-"))


@cache
def _version() -> str:
    import duckdb  # not at the top: a kept answer needs the cache, but no database

    whole = sha256(duckdb.__version__.encode())
    for each in _CODE:
        whole.update(files("crystalperf.indexes").joinpath(each).read_bytes())
    return whole.hexdigest()


def _entry(status: os.stat_result) -> Path:
    return cache_folder() / "checked" / f"{status.st_dev:x}-{status.st_ino:x}.json"


def _identity(status: os.stat_result, kind: str) -> list[object]:
    return [_version(), kind, status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def is_own(status: os.stat_result) -> bool:
    """Whether only this user can write a file."""
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def facts_if_checked(status: os.stat_result, kind: str) -> dict[str, str] | None:
    """The metadata of a file that passed its check and did not change since; None for any other."""
    if not is_own(status):
        return None
    try:
        place = _entry(status)
        with place.open("rb") as entry:
            if not is_own(os.fstat(entry.fileno())):
                return None
            found = json.load(entry)
        facts: dict[str, str] = found["facts"]
        return facts if found["identity"] == _identity(status, kind) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def list_checked(status: os.stat_result, kind: str, facts: Mapping[str, str]) -> None:
    """List a file as checked.  Does nothing if the cache is not writable."""
    if not is_own(status):
        return
    with suppress(OSError):
        place = _entry(status)
        make_private(place.parent)
        temporary = place.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps({"identity": _identity(status, kind), "facts": dict(facts)}), encoding="utf-8")
        temporary.replace(place)
        if len(listed := list(place.parent.iterdir())) > _MOST_ENTRIES:
            for each in sorted(listed, key=lambda path: path.stat().st_mtime)[: _MOST_ENTRIES // 2]:
                each.unlink()
