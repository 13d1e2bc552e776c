"""Which logs there are: folders, globs, URLs and lists of them, as items of which each is read by itself."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from glob import glob, has_magic
from hashlib import sha256
from typing import Any

from indexes.errors import CrystalPerfError, InputError
from query.frameworks.known import frameworks
from query.inputs.containers import Part, filesystem, is_url, opened
from query.model.records import as_text

RECORDINGS = (".jfr", ".jfr.gz", ".jfr.zst", ".collapsed", ".folded")
"""What recordings of stacks are called; within a fleet they are told by name, for there are too many files to open."""

_PARTED = re.compile(r"eventlog_v2_.+")
"""A folder that is one log in parts."""

_ROLLED = re.compile(r"eventlog-\d{4}-\d\d-.*")
"""A part of a log that lies beside its newest one, `eventlog`, as Databricks keeps them."""

_APPLICATION = re.compile(r"[a-z]+[-_][0-9a-f][0-9a-f_-]{7,}")
"""An application's id in a path."""

AT_ONCE = 5_000
"""Logs that are read in the order of their size, whatever their days: about a batch."""

_BLOCK = 1 << 20
_LONGEST_LIST = 256 << 20


@dataclass(frozen=True, slots=True)
class Item:
    """A log and the recordings of its application.

    `state` tells without reading it whether it changed: size and time of change, or what a store says of it.
    """

    path: str
    size_bytes: int
    changed_s: float
    state: str
    recordings: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The path as text; bytes in it that are none are shown."""
        return as_text(self.path)


def found(paths: Sequence[str]) -> list[Item]:
    """The logs of all paths, as `ordered` has them, each with the recordings that lie there for its application.

    A path is a file, a folder, a glob, a URL, or @FILE, a list of them by line.  Raises InputError for a path that
    leads nowhere.
    """
    items: dict[str, Item] = {}
    recordings: dict[str, list[str]] = {}
    for path in _listed(paths):
        for each in _url_items(path) if is_url(path) else _local_items(path):
            if each.path.endswith(RECORDINGS):
                for application in _APPLICATION.findall(each.path)[-1:]:
                    recordings.setdefault(application, []).append(each.path)
            else:
                items.setdefault(each.path, each)
    if not items:
        raise InputError(f"{', '.join(paths)}: no file is there that could be a log")
    matched = [
        replace(each, recordings=tuple(sorted(recordings[name])))
        if recordings and (name := next(iter(_APPLICATION.findall(each.path)[-1:]), "")) in recordings
        else each
        for each in items.values()
    ]
    return ordered(matched)


def ordered(items: Iterable[Item]) -> list[Item]:
    """The order in which items are read: `AT_ONCE` after `AT_ONCE` by time of change, of these the largest first.

    So no process is left with a large one at the end, and what becomes one batch of tables lies on few days.
    """
    by_time = sorted(items, key=lambda each: (each.changed_s, each.path))
    many = [by_time[first : first + AT_ONCE] for first in range(0, len(by_time), AT_ONCE)]
    return [each for part in many for each in sorted(part, key=lambda each: (-each.size_bytes, each.path))]


def content_hash(item: Item) -> str:
    """SHA-256 of a log's content, and of the recordings beside it; what lies in a store is not read for that.

    Raises InputError for what cannot be read to its end.
    """
    total = sha256()
    for path in (item.path, *item.recordings):
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


def _listed(paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        if path.startswith("@"):
            yield from _listed(_lines(path[1:]))
        elif has_magic(path) and not is_url(path) and not os.path.exists(path):
            there = sorted(glob(path, recursive=True))
            if not there:
                raise InputError(f"{path}: no file or folder is called so")
            yield from there
        else:
            yield path


def _lines(path: str) -> list[str]:
    """The paths in a list; one that names lists may name itself, so it may not."""
    try:
        with open(path, "rb") as source:  # which may be a pipe
            content = source.read(_LONGEST_LIST + 1)
    except OSError as error:
        raise InputError(f"{path}: the list of logs cannot be read ({error.strerror or error})") from error
    if len(content) > _LONGEST_LIST:
        raise InputError(f"{path}: a list of more than {_LONGEST_LIST >> 20} MiB; name folders or globs in it")
    lines = [line.strip() for line in content.decode(errors="surrogateescape").splitlines()]
    if any(line.startswith("@") for line in lines):
        raise InputError(f"{path}: a list of logs names another list; give both")
    return [line for line in lines if line and not line.startswith("#")]


def _local_items(path: str) -> Iterator[Item]:
    if not os.path.exists(path):
        raise InputError(f"{path}: no such file or folder")
    if not os.path.isdir(path) or _PARTED.fullmatch(os.path.basename(os.path.abspath(path))):
        yield _local_item(path)
        return
    marks = [each.marks for each in frameworks().values() if each.marks is not None]
    for where, folders, names in os.walk(path):  # never follows links to folders
        parted = [each for each in sorted(folders) if _PARTED.fullmatch(each)]
        folders[:] = sorted(each for each in folders if each not in parted and not each.startswith("."))
        if "eventlog" in names and any(map(_ROLLED.fullmatch, names)):
            yield _local_item(where)
            names = [each for each in names if each.endswith(RECORDINGS)]
        for name in (*parted, *sorted(names)):
            if name.startswith(".") or (name not in parted and any(each.match(name) for each in marks)):
                continue
            yield _local_item(os.path.join(where, name))


def _local_item(path: str) -> Item:
    facts = []
    for each in _files_of(path):
        try:
            status = os.stat(each)
        except OSError:  # it went while we looked, or leads nowhere: reading it says so
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
    except Exception as error:  # each store's client has errors of its own
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
    """What a store says of a file: its size and tag, or its time of change."""
    tag = next((str(facts[key]) for key in ("ETag", "etag", "md5Hash", "mtime", "LastModified") if key in facts), "")
    return f"{facts.get('name')} {facts.get('size')} {tag}\n"


def _changed_s(facts: dict[str, Any]) -> float:
    changed = facts.get("mtime") or facts.get("LastModified") or 0.0
    return float(changed.timestamp()) if hasattr(changed, "timestamp") else float(changed)
