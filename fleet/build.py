"""Building a fleet: logs to tables, whatever engine reads them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from crystalperf.fleet.engines import Engine
from crystalperf.fleet.logs import looked_at, ordered
from crystalperf.fleet.store import Store
from crystalperf.indexes.errors import InputError
from crystalperf.query.trace.records import as_text

REASONS = 3
"""Logs that could not be read whose reason a build tells itself; the table `problems` has all."""


@dataclass(frozen=True)
class Built:
    """What building came to: logs found, known before, read now, and of these those that could not be; in what time.

    `known_unread` are those known before that could not be read then, and were not tried again.  `unplaced` are
    recordings in whose paths no log's application is named, so that they went to none.  `reasons` says of the first
    logs that could not be read this time why.
    """

    folder: str
    logs: int
    known: int
    known_unread: int
    read: int
    unread: int
    seconds: float
    unplaced: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()


LOCAL = Engine()


def build(
    paths: Sequence[str],
    folder: Path,
    engine: Engine = LOCAL,
    progress: Callable[[str], None] = lambda _: None,
    *,
    again: bool = False,
) -> Built:
    """Read the logs of all paths that the fleet in `folder` does not know yet, and add their rows to its tables.

    A log that cannot be read has a row in `problems`; it is not tried again as long as it stays as it is, unless
    `again`.  Where a disk was full, what could be read is kept, and InputError says how many logs were not.
    Raises InputError.
    """
    began = time.monotonic()
    progress("looking for logs")
    items, left = looked_at(paths)
    store = Store(folder)
    with store.building():
        unread_before = store.unread(items)
        new = ordered([*store.new(items), *(unread_before if again else ())])
        count = unread = without_room = 0
        reasons: list[str] = []
        for each in engine.read_all(new, store.scratch()) if new else ():
            if not each.rows:  # to be read by the next build, for it says nothing of the log
                without_room += 1
                continue
            count += 1
            if b'"runs":[]' in each.rows:
                unread += 1
                if len(reasons) < REASONS:
                    reasons.append(msgspec.json.decode(each.rows)["problems"][0]["what"])
            store.keep(each)
            progress(f"{count} of {len(new)} logs read")
            if store.is_full:
                store.write()
        progress("writing tables")
        store.write()
    if without_room:
        raise InputError(
            f"{folder}: the disk was full, there or where temporary files are, so {without_room} of {len(new)} logs"
            " were not read; make room, and the same command reads them"
        )
    known_unread = 0 if again else len(unread_before)
    seconds = time.monotonic() - began
    known = len(items) - len(new)
    return Built(
        str(folder), len(items), known, known_unread, count, unread, seconds, tuple(map(as_text, left)), tuple(reasons)
    )
