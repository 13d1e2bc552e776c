"""The clock of an answer: that of its run, or one that stands still while nothing is submitted.

A person at a shell or in a notebook thinks, types and goes home; nothing can make that shorter.  Such stretches are
left out of the whole run, and questions are about what is left.  A stretch is left out where no scope, no group and no
unit is under way for a second or longer, and

- where the log says that a person submits the work: if these are a twentieth of the run or more
- where it says nothing of that: if they are more than half of the run, not counting the time before the first worker
  is there, for which a program may have waited
- where the program worked at what it had been given (Reader.occupied): never
- where it says that a program does, or where parts of the log are missing that may have had work: never

A run in which nothing was submitted at all is left out whole, whoever was to submit it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import duckdb
import numpy as np
import numpy.typing as npt

from crystalperf.query.execution.intervals import merged
from crystalperf.query.execution.log_facts import LogFacts
from crystalperf.query.inputs.reader import Reader
from crystalperf.query.trace.records import Floats

PAUSE_MS = 1000.0
"""Shorter stretches are a program's between two of its scopes; nobody types so fast."""

WORTH = 0.05
"""Share of the run from which a person's pauses are left out."""

MOST = 0.5
"""Share of the run above which pauses are left out where nothing says whose they are."""


@dataclass(frozen=True)
class Clock:
    """`left_out` are stretches in which it stands still: sorted disjoint rows of (start, end), recorded ms."""

    left_out: Floats = field(default_factory=lambda: np.empty((0, 2)))

    @property
    def left_out_ms(self) -> float:
        return float((self.left_out[:, 1] - self.left_out[:, 0]).sum())

    def at(self, recorded_ms: Floats) -> Floats:
        """What it shows at recorded times, ms."""
        if not len(self.left_out):
            return recorded_ms
        lengths = self.left_out[:, 1] - self.left_out[:, 0]
        until = np.cumsum(lengths)
        gone = np.column_stack([until - lengths, until])
        return recorded_ms - np.interp(recorded_ms, self.left_out.ravel(), gone.ravel())

    def goes(self, recorded_ms: Floats) -> npt.NDArray[np.bool_]:
        """Whether it goes at recorded times."""
        goes: npt.NDArray[np.bool_] = np.searchsorted(self.left_out.ravel(), recorded_ms, side="right") % 2 == 0
        return goes

    def when(self, recorded_ms: float) -> float:
        """What it shows at one recorded time, ms."""
        return float(self.at(np.array([recorded_ms]))[0])

    def recorded(self, start_ms: float, end_ms: float) -> list[tuple[float, float]]:
        """The recorded stretches of one of its own, in order; their lengths sum to its length."""
        if not len(self.left_out):
            return [(start_ms, end_ms)]
        opens = np.concatenate([[-np.inf], self.left_out[:, 1]])
        shown = np.concatenate([[-np.inf], self.at(self.left_out[:, 1])])
        ahead = np.concatenate([[0.0], opens[1:] - shown[1:]])
        first = max(int(np.searchsorted(shown, start_ms, side="right")) - 1, 0)
        found = []
        for number in range(first, len(shown)):
            begin = max(start_ms, float(shown[number]))
            stop = min(end_ms, float(shown[number + 1])) if number + 1 < len(shown) else end_ms
            if stop > begin:
                found.append((begin + float(ahead[number]), stop + float(ahead[number])))
            if stop >= end_ms:
                break
        return found


def without_pauses(
    connection: duckdb.DuckDBPyConnection,
    reader: Reader,
    log: LogFacts,
    duration_ms: float,
    first_worker_ms: float | None,
) -> Clock:
    """The clock of a whole run, see above; `first_worker_ms` is when the first worker registered, if any did."""
    if log.unread_parts:
        return Clock()
    if not _has_work(connection):
        return Clock(np.array([[0.0, duration_ms]]) if duration_ms > 0 else np.empty((0, 2)))
    if log.attended is False:
        return Clock()
    earliest = 0.0 if log.attended else duration_ms if first_worker_ms is None else first_worker_ms
    pauses = _pauses(connection, earliest, duration_ms, reader.occupied(connection))
    share = float((pauses[:, 1] - pauses[:, 0]).sum()) / duration_ms if duration_ms > 0 else 0.0
    return Clock(pauses) if (share >= WORTH if log.attended else share > MOST) else Clock()


def _has_work(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether anything was submitted at all; a run without work waits for nothing, not even for its workers."""
    row = connection.execute(
        "SELECT 1 WHERE EXISTS (FROM scopes) OR EXISTS (FROM groups) OR EXISTS (FROM units)"
    ).fetchone()
    return row is not None


def _pauses(
    connection: duckdb.DuckDBPyConnection, start_ms: float, end_ms: float, occupied: Sequence[tuple[float, float]]
) -> Floats:
    """The stretches in which nothing is under way, (stretches, 2)."""
    columns = connection.execute(
        """
        SELECT start_ms, coalesce(end_ms, $1) AS end_ms FROM scopes
        UNION ALL SELECT submit_ms, coalesce(end_ms, $1) FROM groups WHERE submit_ms IS NOT NULL
        UNION ALL SELECT launch_ms, finish_ms FROM units
        """,
        [end_ms],
    ).fetchnumpy()
    more = np.array(occupied, dtype=np.float64).reshape(-1, 2)
    busy = merged(
        *(
            np.concatenate([np.asarray(columns[name], dtype=np.float64), more[:, place]])
            for place, name in enumerate(("start_ms", "end_ms"))
        )
    )
    opens = np.maximum(np.concatenate([[start_ms], busy[:, 1]]), start_ms)
    closes = np.minimum(np.concatenate([busy[:, 0], [end_ms]]), end_ms)
    long = closes - opens >= PAUSE_MS
    return np.column_stack([opens[long], closes[long]])
