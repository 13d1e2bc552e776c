"""Finding logs: folders, globs, URLs and lists of them become items, which are read independently."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from glob import escape, glob, has_magic
from hashlib import sha256
from typing import Any

from crystalperf.fleet.recordings import logs_of
from crystalperf.fleet.tables import tables
from crystalperf.indexes.errors import CrystalPerfError, InputError
from crystalperf.query.frameworks.registry import frameworks
from crystalperf.query.inputs.containers import Part, filesystem, is_url, local, opened
from crystalperf.query.trace.records import as_text

RECORDINGS = (".jfr", ".jfr.gz", ".jfr.zst", ".collapsed", ".folded")
"""File name suffixes of recordings.  A fleet recognises them by name, because it has too many files to open."""

_PARTED = re.compile(r"eventlog_v2_.+")
"""A folder with one log in parts."""

_ROLLED = re.compile(r"eventlog-\d{4}-\d\d-.*")
"""An older part of a log in the folder of its newest part, `eventlog`, as Databricks stores them."""

_APPLICATION = re.compile(r"[a-z]+[-_][0-9a-f][0-9a-f_-]{7,}")
"""An application's id in a path."""

AT_ONCE = 5_000
"""Logs that are sorted by size, across days: about a batch."""

_BLOCK = 1 << 20
_LONGEST_LIST = 256 << 20


@dataclass(frozen=True, slots=True)
class Item:
    """A log and its companions: recordings of its application, and files that its framework stores with it.

    `state` changes if one of them changes: size and modification time, or the store's metadata.  `refused` is the
    reason why the path is unreadable, if already known.
    """

    path: str
    size_bytes: int
    changed_s: float
    state: str
    companions: tuple[str, ...] = ()
    refused: str = ""

    @property
    def name(self) -> str:
        """The path as text; invalid bytes in it are escaped."""
        return as_text(self.path)


def find_logs(paths: Sequence[str]) -> list[Item]:
    """The logs of all paths, without the recordings that belong to none; see find_logs_and_unmatched()."""
    return find_logs_and_unmatched(paths)[0]


def find_logs_and_unmatched(paths: Sequence[str]) -> tuple[list[Item], list[str]]:
    """The logs of all paths in the order of ordered(), each with its companions, and the recordings without a log.

    A path is a file, a folder, a glob, a URL, or @FILE, a list of them by line; items have absolute paths.  A missing
    path in a list, and an unreadable folder, become items with `refused`.  Raises InputError for any other missing
    path.
    """
    items: dict[str, Item] = {}
    recordings: dict[str, list[Item]] = {}
    left: dict[str, Item] = {}
    for each in _all_items(paths):
        if each.path.endswith(RECORDINGS):
            left[each.path] = each
            for application in _APPLICATION.findall(each.path)[-1:]:
                recordings.setdefault(application, []).append(each)
        else:
            items.setdefault(each.path, each)
    if not items:
        raise InputError(f"{', '.join(paths)}: contains no file that could be a log")
    logs = list(_with_companions(items, recordings, {}))
    unplaced = left.keys() - {each for log in logs for each in log.companions}
    if unplaced:
        by_log: dict[str, list[Item]] = {}
        for path, of in logs_of(sorted(unplaced), [each.path for each in logs]).items():
            for log in of:
                by_log.setdefault(log, []).append(left[path])
        logs = list(_with_companions({each.path: items[each.path] for each in logs}, recordings, by_log))
        unplaced = left.keys() - {each for log in logs for each in log.companions}
    return ordered(logs), sorted(unplaced)


def _with_companions(
    items: dict[str, Item], recordings: dict[str, list[Item]], by_log: dict[str, list[Item]]
) -> Iterator[Item]:
    """The items that are logs, each with its companions; a companion that was named alone brings its log.

    `recordings` are by application, `by_log` those of a log.
    """
    endings = tuple(ending for each in frameworks().values() for ending in each.reader.companions)
    companions_at: dict[str, Item] = {}
    for path in [each for each in items if endings and each.endswith(endings)]:
        log = path.removesuffix(next(each for each in endings if path.endswith(each)))
        if log not in items and os.path.isfile(log):
            items[log] = _local_item(log)
        if log in items:
            companions_at[path] = items.pop(path)
    for each in items.values():
        application = next(iter(_APPLICATION.findall(each.path)[-1:]), "") if recordings else ""
        own = [*recordings.get(application, ()), *by_log.get(each.path, ())]
        companions = sorted(own, key=lambda recording: recording.path)
        for path in (each.path + ending for ending in endings):
            if path in companions_at or os.path.isfile(path):
                companions.append(companions_at.get(path) or _local_item(path))
        if companions:
            states = repr([each.state, *((companion.path, companion.state) for companion in companions)])
            state = sha256(states.encode()).hexdigest()[:16]
            yield replace(each, state=state, companions=tuple(companion.path for companion in companions))
        else:
            yield each


def ordered(items: Iterable[Item]) -> list[Item]:
    """The order of reading: batches of `AT_ONCE` items by modification time, the largest first within a batch.

    So no process ends with a large log, and the rows of a batch of tables are of few days.
    """
    by_time = sorted(items, key=lambda each: (each.changed_s, each.path))
    many = [by_time[first : first + AT_ONCE] for first in range(0, len(by_time), AT_ONCE)]
    return [each for part in many for each in sorted(part, key=lambda each: (-each.size_bytes, each.path))]


def content_hash(item: Item) -> str:
    """SHA-256 of the content of a log and its companions; files in a store are not read for that.

    Raises InputError for a file that is not readable to its end.
    """
    total = sha256()
    for path in (item.path, *item.companions):
        if is_url(path):
            total.update(_url_state(_info(path)).encode() if path != item.path else item.state.encode())
            continue
        for file in _files_of(path):
            each = sha256()
            with opened(Part(file)) as source:
                while piece := source.read(_BLOCK):
                    each.update(piece)
            total.update(each.digest())
    return total.hexdigest()


def _all_items(paths: Iterable[str]) -> Iterator[Item]:
    for path in paths:
        if not path.startswith("@"):
            yield from _items(path)
            continue
        for line in _lines(path[1:]):
            try:
                yield from _items(line)
            except InputError as error:  # a list is long, and its paths may have been deleted since
                yield _refused(line if is_url(line) else os.path.abspath(line), str(error))


def _items(path: str) -> Iterator[Item]:
    path = local(path)
    if is_url(path):
        yield from _url_items(path)
    elif has_magic(path) and not os.path.exists(path):
        there = sorted(_globbed(path))
        if not there:
            raise InputError(f"{path}: no such file or folder")
        for each in there:
            yield from _local_items(each)
    else:
        yield from _local_items(path)


def _globbed(pattern: str) -> set[str]:
    """The paths of a glob.  `**` does not follow links to folders: a folder that links to itself has no end."""
    place, deep, rest = pattern.partition("**")
    if not deep:
        return set(glob(pattern))
    if (place and not place.endswith("/")) or (rest and not rest.startswith("/")):
        return _globbed(f"{place}*{rest.lstrip('*')}")  # as glob.glob() does: only a part that is `**` is deep
    found: set[str] = set()
    for start in glob(place) if place else ["."]:
        for where, folders, names in os.walk(start):
            folders[:] = [each for each in folders if not each.startswith(".")]
            if rest.strip("/"):
                found |= _globbed(os.path.join(escape(where), rest.lstrip("/")))
            else:
                found.update(os.path.join(where, each) for each in names if not each.startswith("."))
    return found


def _refused(path: str, why: str) -> Item:
    return Item(path, 0, 0.0, "", refused=as_text(why))


def _lines(path: str) -> list[str]:
    """The paths in a list; lists in lists are refused, because a list could contain itself."""
    try:
        with open(path, "rb") as source:  # may be a pipe
            content = source.read(_LONGEST_LIST + 1)
    except OSError as error:
        raise InputError(f"{path}: the list of logs cannot be read ({error.strerror or error})") from error
    if len(content) > _LONGEST_LIST:
        raise InputError(f"{path}: the list is larger than {_LONGEST_LIST >> 20} MiB; use folders or globs in it")
    lines = [line.strip() for line in content.decode(errors="surrogateescape").splitlines()]
    if any(line.startswith("@") for line in lines):
        raise InputError(f"{path}: this list of logs names another list; give both on the command line")
    return [line for line in lines if line and not line.startswith("#")]


def _local_items(path: str) -> Iterator[Item]:
    if not os.path.exists(path):
        raise InputError(f"{path}: no such file or folder")
    path = os.path.abspath(path)
    if not os.path.isdir(path) or _PARTED.fullmatch(os.path.basename(path)):
        yield _local_item(path)
        return
    marks = [each.reader.marks for each in frameworks().values() if each.reader.marks is not None]
    closed: list[OSError] = []
    for where, folders, names in os.walk(path, onerror=closed.append):  # never follows links to folders
        # Skip the tables of a fleet.
        if "_fleet" in folders and os.path.isdir(os.path.join(where, "_fleet", "batches")):
            folders[:] = set(folders) - {"_fleet", *(table.name for table in tables())}
        parted = [each for each in sorted(folders) if _PARTED.fullmatch(each)]
        folders[:] = sorted(each for each in folders if each not in parted and not each.startswith("."))
        if "eventlog" in names and any(map(_ROLLED.fullmatch, names)):
            yield _local_item(where)
            names = [each for each in names if each.endswith(RECORDINGS)]
        for name in (*parted, *sorted(names)):
            if name.startswith(".") or (name not in parted and any(each.match(name) for each in marks)):
                continue
            yield _local_item(os.path.join(where, name))
    for error in closed:
        yield _refused(error.filename, f"{error.filename}: cannot be read ({error.strerror})")


def _local_item(path: str) -> Item:
    facts = []
    for each in _files_of(path):
        try:
            status = os.stat(each)
        except OSError:  # deleted meanwhile, or a broken link: reading it reports that
            continue
        facts.append((os.path.relpath(each, path), status.st_size, status.st_mtime_ns))
    state = sha256(repr(facts).encode()).hexdigest()[:16]
    changed_s = max((changed for _, _, changed in facts), default=0) / 1e9
    return Item(path, sum(size for _, size, _ in facts), changed_s, state)


def _files_of(path: str) -> list[str]:
    if not os.path.isdir(path):
        return [path]
    return sorted(os.path.join(where, name) for where, _, names in os.walk(path) for name in names)


def _url_items(url: str) -> Iterator[Item]:
    system, inner = filesystem(url)
    try:
        if has_magic(inner):
            below = sorted(system.glob(inner))
        elif system.isdir(inner):
            below = sorted(system.find(inner))
        elif system.exists(inner):
            below = [inner]
        else:
            raise InputError(f"{url}: no such file or folder")
        folders: dict[str, list[dict[str, Any]]] = {}
        for each in below:
            parent = each.rpartition("/")[0]
            place = parent if _PARTED.fullmatch(parent.rpartition("/")[2]) else each
            folders.setdefault(place, []).append(system.info(each))
    except (CrystalPerfError, MemoryError):
        raise
    except Exception as error:  # each store's client has its own error classes
        raise InputError(f"{url}: cannot be read ({getattr(error, 'strerror', None) or error})") from error
    for place, facts in folders.items():
        size = sum(int(each.get("size") or 0) for each in facts)
        state = sha256("".join(_url_state(each) for each in facts).encode()).hexdigest()[:16]
        yield Item(system.unstrip_protocol(place), size, max(map(_changed_s, facts)), state)


def _info(url: str) -> dict[str, Any]:
    system, inner = filesystem(url)
    facts: dict[str, Any] = system.info(inner)
    return facts


def _url_state(facts: dict[str, Any]) -> str:
    """The state of a file in a store: its size and ETag, or its modification time."""
    tag = next((str(facts[key]) for key in ("ETag", "etag", "md5Hash", "mtime", "LastModified") if key in facts), "")
    return f"{facts.get('name')} {facts.get('size')} {tag}\n"


def _changed_s(facts: dict[str, Any]) -> float:
    changed = facts.get("mtime") or facts.get("LastModified") or 0.0
    return float(changed.timestamp()) if hasattr(changed, "timestamp") else float(changed)
