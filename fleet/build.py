"""Building a fleet: logs to tables, whatever engine reads them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fleet.engines import Engine
from fleet.logs import found, ordered
from fleet.store import Store


@dataclass(frozen=True)
class Built:
    """What building came to: logs found, known before, read now, and of these those that could not be; in what time.

    `known_unread` are those known before that could not be read then, and were not tried again.
    """

    folder: str
    logs: int
    known: int
    known_unread: int
    read: int
    unread: int
    seconds: float


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
    `again`.  Raises InputError.
    """
    began = time.monotonic()
    progress("looking for logs")
    items = found(paths)
    store = Store(folder)
    with store.building():
        unread_before = store.unread(items)
        new = ordered([*store.new(items), *(unread_before if again else ())])
        count = unread = 0
        for each in engine.read_all(new, store.scratch()) if new else ():
            count += 1
            unread += b'"runs":[]' in each.rows
            store.keep(each)
            progress(f"{count} of {len(new)} logs read")
            if store.is_full:
                store.write()
        progress("writing tables")
        store.write()
    known_unread = 0 if again else len(unread_before)
    return Built(str(folder), len(items), len(items) - len(new), known_unread, count, unread, time.monotonic() - began)
