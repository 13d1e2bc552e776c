"""The clock of a scope: recorded time without the pauses of a person who submits the work.

A person at a shell or in a notebook thinks, types and goes home; no setting makes that shorter.  So answers about the
whole run leave such pauses out.  A pause is an interval of a second or longer in which no scope, stage or task runs.
Pauses are left out

- if the log says that a person submits the work: when they are a twentieth of the run or more
- if the log does not say who submits it: when they are more than half of the run, not counting the time before the
  first worker registers, because a program may have waited for it
- never while the program was busy with work that it had received (Reader.occupied)
- never if a program submits the work, or if parts of the log are missing that may contain work

If nothing was submitted in a run, all of its time is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import duckdb
import numpy as np
import numpy.typing as npt

from crystalperf.indexes.frozen import frozen
from crystalperf.query.execution.intervals import merged
from crystalperf.query.execution.log_facts import LogFacts
from crystalperf.query.inputs.reader import Reader
from crystalperf.query.trace.records import Floats

PAUSE_MS = 1000.0
"""Minimum length of a pause: shorter gaps are a program's, between two of its scopes; nobody types so fast."""

WORTH = 0.05
"""Minimum share of the run from which pauses of a person are left out."""

MOST = 0.5
"""Share of the run above which pauses are left out if the log does not say who submits the work."""


@frozen
class Clock:
    """Maps recorded times to times without pauses.

    `left_out` are the intervals in which the clock stops: sorted disjoint rows of (start, end), recorded ms.
    """

    left_out: Floats = field(default_factory=lambda: np.empty((0, 2)))

    @property
    def left_out_ms(self) -> float:
        return float((self.left_out[:, 1] - self.left_out[:, 0]).sum())

    def at(self, recorded_ms: Floats) -> Floats:
        """The clock's times at recorded times, ms."""
        if not len(self.left_out):
            return recorded_ms
        lengths = self.left_out[:, 1] - self.left_out[:, 0]
        until = np.cumsum(lengths)
        gone = np.column_stack([until - lengths, until])
        return recorded_ms - np.interp(recorded_ms, self.left_out.ravel(), gone.ravel())

    def is_active(self, recorded_ms: Floats) -> npt.NDArray[np.bool_]:
        """Whether the clock runs at recorded times, rather than stops."""
        goes: npt.NDArray[np.bool_] = np.searchsorted(self.left_out.ravel(), recorded_ms, side="right") % 2 == 0
        return goes

    def when(self, recorded_ms: float) -> float:
        """The clock's time at one recorded time, ms."""
        return float(self.at(np.array([recorded_ms]))[0])

    def recorded(self, start_ms: float, end_ms: float) -> list[tuple[float, float]]:
        """The recorded intervals of an interval by this clock, in order; their lengths sum to its length."""
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
    """The clock of a whole run, by the rules above; `first_worker_ms` is when the first worker registered, if any."""
    if log.unread_parts:
        return Clock()
    if not _has_work(connection):
        return Clock(np.array([[0.0, duration_ms]]) if duration_ms > 0 else np.empty((0, 2)))
    if log.interactive is False:
        return Clock()
    earliest = 0.0 if log.interactive else duration_ms if first_worker_ms is None else first_worker_ms
    pauses = _pauses(connection, earliest, duration_ms, reader.occupied(connection))
    share = float((pauses[:, 1] - pauses[:, 0]).sum()) / duration_ms if duration_ms > 0 else 0.0
    return Clock(pauses) if (share >= WORTH if log.interactive else share > MOST) else Clock()


def _has_work(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether anything was submitted; a run without work waits for nothing, not even for its workers."""
    row = connection.execute(
        "SELECT 1 WHERE EXISTS (FROM scopes) OR EXISTS (FROM stages) OR EXISTS (FROM tasks)"
    ).fetchone()
    return row is not None


def _pauses(
    connection: duckdb.DuckDBPyConnection, start_ms: float, end_ms: float, occupied: Sequence[tuple[float, float]]
) -> Floats:
    """The intervals in which nothing runs, (intervals, 2)."""
    columns = connection.execute(
        """
        SELECT start_ms, coalesce(end_ms, $1) AS end_ms FROM scopes
        UNION ALL SELECT submit_ms, coalesce(end_ms, $1) FROM stages WHERE submit_ms IS NOT NULL
        UNION ALL SELECT launch_ms, finish_ms FROM tasks
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
