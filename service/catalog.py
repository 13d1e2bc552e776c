"""The catalog of runs: the run files in the cache, and a summary row for each."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from crystalperf.indexes.errors import CrystalPerfError
from crystalperf.service.problems import ProblemError, sentence

_STABLE_NS = 2_000_000_000
"""A modification time older than this cannot hide a second change within the same clock tick."""

_LISTED_EVERY_NS = 30_000_000_000

_MOST_LISTS = 8
"""Sorted lists that are cached; of 10 000 rows each takes 80 kB."""

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")
"""The name of a run: its file name without `.duckdb`."""


@dataclass(frozen=True)
class Entry:
    """A run file as it is now."""

    name: str
    path: Path
    version: tuple[int, int, int]
    """Inode, size in bytes, and modification time in ns."""

    @property
    def bytes(self) -> int:
        return self.version[1]

    @property
    def kept_at_ms(self) -> int:
        """Unix time."""
        return self.version[2] // 1_000_000


class Row(msgspec.Struct, frozen=True):
    """A run in a list.  Times are ms; `state` is ready, pending (its answer is not computed yet) or unreadable.

    `bottleneck` is the name of the bottleneck, `sentence` describes it.  `advice` is the first recommendation,
    `advice_gain` and `advice_gain_ms` its saving.  `measure` is the quantity of `runtime_ms`: runtime or latency.
    `problem` says why a run is unreadable.  Unknown values are null.
    """

    run: str
    state: Literal["ready", "pending", "unreadable"]
    kept_at_ms: int
    bytes: int
    problem: str | None = None
    app_id: str | None = None
    app_name: str | None = None
    framework: str | None = None
    framework_title: str | None = None
    framework_version: str | None = None
    status: str | None = None
    complete: bool | None = None
    workers: int | None = None
    has_samples: bool | None = None
    duration_ms: float | None = None
    runtime_ms: float | None = None
    measure: str | None = None
    bottleneck: str | None = None
    bottleneck_ms: float | None = None
    resource_ms: dict[str, float] | None = None
    sentence: str | None = None
    advice: str | None = None
    advice_gain: str | None = None
    advice_gain_ms: float | None = None


SORTS = ("run", "app_name", "framework", "kept_at_ms", "duration_ms", "runtime_ms", "bottleneck", "advice_gain_ms")
"""Sort keys of the list of runs; a leading `-` sorts the largest first."""


@dataclass
class Catalog:
    """The runs of a folder and their rows; scan() updates them."""

    folder: Path
    entries: dict[str, Entry] = field(default_factory=dict)
    rows: dict[str, Row] = field(default_factory=dict)
    number: int = 0
    """The number of changes so far, which identifies a version of the list."""
    _listed_ns: int = -1
    _until_ns: int = 0
    _lists: dict[tuple[str, ...], list[Row]] = field(default_factory=dict)
    _lists_of: int = -1
    """The value of `number` for which `_lists` are."""

    def scan(self) -> list[Entry]:
        """Scan the folder: return the runs that are new or changed, and forget those that were deleted.

        An unchanged folder is listed every 30 s only: listing 1 000 runs takes 5 ms and delays other requests.  The
        folder's modification time shows runs that were replaced by renaming, but not files written in place.
        """
        now_ns = time.time_ns()
        try:
            changed_ns = self.folder.stat().st_mtime_ns
        except OSError:
            changed_ns = 0
        if changed_ns == self._listed_ns and now_ns < self._until_ns:
            return []
        self._listed_ns = changed_ns if now_ns - changed_ns > _STABLE_NS else -1  # it may change again within its tick
        self._until_ns = now_ns + _LISTED_EVERY_NS
        found: dict[str, Entry] = {}
        changed = []
        try:
            listed = list(self._listed())
        except OSError:  # the folder is unreadable now, but its runs may still exist
            self._listed_ns = -1
            return []
        for name, path, version in listed:
            entry = self.entries.get(name)
            if entry is None or entry.version != version:
                entry = Entry(name, Path(path), version)
                changed.append(entry)
            found[name] = entry
        is_other = bool(changed or self.entries.keys() - found.keys())
        rows = {name: row for name, row in self.rows.items() if name in found}
        rows |= {each.name: Row(each.name, "pending", each.kept_at_ms, each.bytes) for each in changed}
        self.entries, self.rows = found, rows
        if is_other:
            self.number += 1  # last: a list made meanwhile, in another thread, is of an earlier number
        return changed

    def _listed(self) -> Iterator[tuple[str, str, tuple[int, int, int]]]:
        """(name, path, version) of each run file; none if the folder is missing.  Raises OSError if unreadable."""
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(self.folder) as listed:
            for each in listed:
                name = each.name.removesuffix(".duckdb")
                with suppress(OSError):  # deleted just now, or unreadable: skip it
                    if name != each.name and NAME.fullmatch(name) and each.is_file(follow_symlinks=False):
                        status = each.stat()
                        yield name, each.path, (status.st_ino, status.st_size, status.st_mtime_ns)

    def get(self, name: str) -> Entry:
        """The current run of that name.  Raises ProblemError if there is none."""
        path = self.folder / f"{name}.duckdb"
        if NAME.fullmatch(name):
            with suppress(OSError):
                status = path.lstat()
                if stat.S_ISREG(status.st_mode):  # as in the list
                    return Entry(name, path, (status.st_ino, status.st_size, status.st_mtime_ns))
        raise ProblemError(404, f"there is no run '{name[:200]}'; /api/runs lists the runs")

    def fill(self, entry: Entry, facts: dict[str, object]) -> None:
        """Fill the row of a run with these facts."""
        if self.entries.get(entry.name) == entry:
            row = msgspec.structs.replace(self.rows[entry.name], state="ready", **facts)
            self.rows[entry.name] = row
            self.number += 1

    def fail(self, entry: Entry, error: CrystalPerfError | ProblemError) -> None:
        """Mark a run as unreadable."""
        if self.entries.get(entry.name) == entry:
            row = msgspec.structs.replace(
                self.rows[entry.name], state="unreadable", problem=sentence(str(error), error.remedy)
            )
            self.rows[entry.name] = row
            self.number += 1

    def listed(
        self, text: str = "", framework: str = "", bottleneck: str = "", status: str = "", sort: str = "-kept_at_ms"
    ) -> Sequence[Row]:
        """The rows that match the filters, sorted; unknown values come last, ties are sorted by name.

        The last lists are cached until a row changes: sorting 10 000 rows takes longer than all else of a request.
        """
        if self._lists_of != self.number:
            self._lists, self._lists_of = {}, self.number
        key = (text, framework, bottleneck, status, sort)
        found = self._lists.pop(key, None)
        if found is None:
            found = self._sorted(*key)
        self._lists[key] = found  # the latest is the last
        if len(self._lists) > _MOST_LISTS:
            del self._lists[next(iter(self._lists))]
        return found

    def _sorted(self, text: str, framework: str, bottleneck: str, status: str, sort: str) -> list[Row]:
        sought = text.casefold()
        found = [
            each
            for each in self.rows.values()
            if (not sought or sought in each.run.casefold() or sought in (each.app_name or "").casefold())
            and (not framework or each.framework == framework)
            and (not bottleneck or each.bottleneck == bottleneck)
            and (not status or each.status == status)
        ]
        name, largest_first = sort.removeprefix("-"), sort.startswith("-")
        found.sort(key=lambda each: each.run)
        known = [each for each in found if getattr(each, name) is not None]
        known.sort(key=lambda each: getattr(each, name), reverse=largest_first)
        return known + [each for each in found if getattr(each, name) is None]
