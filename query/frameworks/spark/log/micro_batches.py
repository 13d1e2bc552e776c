"""The micro-batches of streaming queries, from the progress that Spark reports for each trigger.

A query that runs for weeks reports a million of them, so each batch is stored as a row of numbers.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from datetime import datetime

import numpy as np

from crystalperf.query.frameworks.spark.log import events as spark
from crystalperf.query.trace.records import Columns, numbers, objects, shortened

_UNKNOWN = float("nan")
_LARGEST_ID = 1 << 53
_MAX_QUERIES = 10_000
_MAX_MS = 1e12

DURATIONS = {
    "trigger_ms": ("triggerExecution",),
    "latest_offset_ms": ("latestOffset", "getOffset", "setOffsetRange", "getEndOffset"),
    "query_planning_ms": ("queryPlanning",),
    "wal_commit_ms": ("walCommit",),
    "get_batch_ms": ("getBatch",),
    "add_batch_ms": ("addBatch",),
    "commit_offsets_ms": ("commitOffsets", "commitBatch"),
}
"""Parts of a trigger, by Spark's keys; a column sums those that a version has."""

_WAITING = ("maxOffsetsBehindLatest", "numFilesOutstanding", "numMessagesBehindLatest")
"""Metrics of unread input in sources of Kafka, files and others."""

_FIELDS = (
    *("query", "batch_id", "start", "input_rows", "input_rows_per_s", "processed_rows_per_s"),
    *DURATIONS,
    *("backlog_rows", "state_rows", "state_bytes", "reads_files"),
)


class Batches:
    """Triggers with a progress report, in the order of the log."""

    def __init__(self) -> None:
        self._queries: dict[tuple[str | None, ...], int] = {}
        self._rows = array("d")

    def add(self, progress: spark.StreamProgress) -> bool:
        """Add one; False if it lacks the number or the time of its batch."""
        batch_id = spark.whole_number(progress.batch_id, _LARGEST_ID)
        start = _unix_ms(progress.timestamp)
        sink = progress.sink.description if progress.sink else None
        texts = (progress.query_id, progress.run_id, progress.name, sink)
        key = tuple(shortened(each) for each in texts)
        if key[0] is None or batch_id is None or start is None:
            return False
        if key not in self._queries and len(self._queries) >= _MAX_QUERIES:
            return True
        sources, states, parts = progress.sources or [], progress.states or [], progress.durations or {}
        waiting = [
            _number(value) for each in sources for name, value in (each.metrics or {}).items() if name in _WAITING
        ]
        row = (
            self._queries.setdefault(key, len(self._queries)),
            batch_id,
            start,
            _sum([_number(each.rows) for each in sources]),
            _sum([_number(each.input_rate) for each in sources]),
            _sum([_number(each.processed_rate) for each in sources]),
            *(_sum([parts[name] for name in names if name in parts], _MAX_MS) for names in DURATIONS.values()),
            _sum(waiting),
            _sum([each.rows for each in states]),
            _sum([each.memory for each in states]),
            _reads_files([each.description for each in sources]),
        )
        self._rows.extend(row)
        return True

    def columns(self, relative: Callable[[float | None], float | None]) -> Columns:
        """The table spark_batches; `relative` converts Unix milliseconds to the run's clock."""
        rows = np.frombuffer(self._rows, dtype=np.float64).reshape(-1, len(_FIELDS))
        column = dict(zip(_FIELDS, rows.T, strict=True))
        starts = [relative(each) for each in column.pop("start").tolist()]
        kept = np.array([each is not None for each in starts], dtype=bool)
        column = {name: values[kept] for name, values in column.items()}
        queries = np.array([*self._queries, (None,) * 4], dtype=object)[column.pop("query").astype(np.int64)]
        texts = queries.reshape(-1, 4)
        files = column.pop("reads_files")
        return {
            **{
                name: objects(list(texts[:, place]))
                for place, name in enumerate(("query_id", "run_id", "name", "sink"))
            },
            "batch_id": column.pop("batch_id").astype(np.int64),
            "start_ms": np.array([each for each in starts if each is not None], dtype=np.float64),
            **{name: numbers(values) for name, values in column.items()},
            "reads_files": np.ma.MaskedArray(files == 1.0, mask=np.isnan(files)),
        }


def _reads_files(sources: list[str | None]) -> float:
    """Whether one of the sources reads files; unknown if none is described."""
    known = [each for each in sources if each]
    return float(any("File" in each for each in known)) if known else _UNKNOWN


def _unix_ms(text: str | None) -> float | None:
    try:
        return datetime.fromisoformat(text or "").timestamp() * 1000
    except (ValueError, OverflowError, OSError):
        return None


def _number(value: float | str | None) -> float | None:
    """A number that is not negative; Spark writes NaN and Infinity as text."""
    try:
        number = _UNKNOWN if value is None else float(value)
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None


def _sum(values: list[float | None], most: float = float("inf")) -> float:
    """The sum of known values; unknown if none is known."""
    known = [each for each in values if each is not None and 0 <= each <= most]
    return sum(known) if known else _UNKNOWN
