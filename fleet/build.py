"""Building a fleet: read logs into tables, with any engine."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from crystalperf.fleet.engines import Engine
from crystalperf.fleet.logs import find_logs_and_unmatched, ordered
from crystalperf.fleet.reading import NOT_A_LOG
from crystalperf.fleet.store import Store
from crystalperf.indexes.errors import InputError
from crystalperf.indexes.frozen import frozen
from crystalperf.query.trace.records import as_text

REASONS = 3
"""Maximum unreadable logs whose reason is in the result; the table `problems` has all."""


@frozen
class Built:
    """The result of a build: logs found, known before, read now, unreadable among these, and the time it took.

    `not_logs` are other files.  `known_unread` are unreadable logs and other files of earlier builds, not tried again.
    `unplaced` are recordings without the application id of any log in their paths, so that they belong to none.
    `reasons` are those of the first unreadable logs of this build.
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
    not_logs: int = 0


LOCAL = Engine()


def build(
    paths: Sequence[str],
    folder: Path,
    engine: Engine = LOCAL,
    progress: Callable[[str], None] = lambda _: None,
    *,
    again: bool = False,
) -> Built:
    """Read the logs of all paths that are new to the fleet in `folder`, and add their rows to its tables.

    An unreadable log gets a row in `problems`; it is not tried again until it changes, unless `again`.  If a disk is
    full, the logs read so far are stored.  Raises InputError, which says how many logs were not read.
    """
    began = time.monotonic()
    progress("searching for logs")
    items, left = find_logs_and_unmatched(paths)
    store = Store(folder)
    with store.building():
        unread_before = store.unread(items)
        new = ordered([*store.new(items), *(unread_before if again else ())])
        count = unread = not_logs = disk_full = 0
        reasons: list[str] = []
        for each in engine.read_all(new, store.scratch()) if new else ():
            if not each.rows:  # the disk was full, and the log may be valid: the next build reads it
                disk_full += 1
                continue
            count += 1
            if b'"runs":[]' in each.rows:
                problem = msgspec.json.decode(each.rows)["problems"][0]
                if problem["severity"] == NOT_A_LOG:
                    not_logs += 1
                else:
                    unread += 1
                    reasons += [problem["text"]] if len(reasons) < REASONS else []
            store.keep(each)
            progress(f"{count} of {len(new)} logs read")
            if store.is_full:
                store.write()
        progress("writing tables")
        store.write()
    if disk_full:
        raise InputError(
            f"{folder}: this disk or the disk of temporary files is full, so {disk_full} of {len(new)} logs were not"
            " read; free space, then run the same command again"
        )
    known_unread = 0 if again else len(unread_before)
    seconds = time.monotonic() - began
    known = len(items) - len(new)
    return Built(
        str(folder),
        len(items),
        known,
        known_unread,
        count - not_logs,
        unread,
        seconds,
        tuple(map(as_text, left)),
        tuple(reasons),
        not_logs,
    )
