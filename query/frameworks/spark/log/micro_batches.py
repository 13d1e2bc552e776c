"""The micro-batches of streaming queries, from the progress that Spark reports for each trigger.

A query that runs for weeks reports a million of them, so each batch is stored as a row of numbers, and so are its
sources and the operators that keep state.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

import numpy as np

from crystalperf.query.frameworks.spark.log import events as spark
from crystalperf.query.trace.records import Columns, Floats, numbers, objects, shortened

_UNKNOWN = float("nan")
_LARGEST_ID = 1 << 53
_MAX_QUERIES = 10_000
_MAX_NAMES = 10_000
_MAX_PARTS = 64  # sources, or operators with state, of one trigger
_MAX_MS = 1e12
_IDS = ("query_id", "run_id", "name", "sink")

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

ROCKSDB = {
    "rocksdb_get_ms": ("rocksdbGetLatency",),
    "rocksdb_put_ms": ("rocksdbPutLatency",),
    "rocksdb_flush_ms": ("rocksdbCommitFlushLatency",),
    "rocksdb_compact_ms": ("rocksdbCommitCompactLatency",),
    "rocksdb_checkpoint_ms": ("rocksdbCommitCheckpointLatency",),
    "rocksdb_file_sync_ms": ("rocksdbCommitFileSyncLatencyMs", "rocksdbFileSyncTime"),
    "rocksdb_stall_ms": ("rocksdbWriterStallLatencyMs",),
    "rocksdb_cache_hits": ("rocksdbReadBlockCacheHitCount",),
    "rocksdb_cache_misses": ("rocksdbReadBlockCacheMissCount",),
    "rocksdb_copied_bytes": ("rocksdbBytesCopied",),
    "rocksdb_file_bytes": ("rocksdbSstFileSize",),
}
"""Metrics of RocksDB state stores, by Spark's keys, of which a version has one."""

_WAITING = ("maxOffsetsBehindLatest", "numFilesOutstanding", "numMessagesBehindLatest")
"""Metrics of unread input in sources of Kafka, files and others."""

_TRIGGER = ("query", "batch_id", "start_ms")
_FIELDS = (
    *_TRIGGER,
    *("input_rows", "input_rows_per_s", "processed_rows_per_s"),
    *DURATIONS,
    *("backlog_rows", "state_rows", "state_bytes", "reads_files"),
)
_SOURCE_FIELDS = (
    *_TRIGGER,
    *("source", "description", "input_rows", "input_rows_per_s", "processed_rows_per_s", "backlog_rows"),
)
_STATE_FIELDS = (
    *_TRIGGER,
    *("operator", "name", "partitions", "rows", "bytes", "updated_rows", "removed_rows", "late_rows"),
    *("updates_ms", "removals_ms", "commit_ms"),
    *ROCKSDB,
)


class _Rows:
    """Rows of numbers of the same width."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names, self._values = names, array("d")

    def add(self, values: Iterable[float]) -> None:
        self._values.extend(values)

    def columns(self) -> dict[str, Floats]:
        rows = np.frombuffer(self._values, dtype=np.float64).reshape(-1, len(self._names))
        return dict(zip(self._names, rows.T, strict=True))


class Batches:
    """Triggers with a progress report, in the order of the log."""

    def __init__(self) -> None:
        self._queries: dict[tuple[str | None, ...], int] = {}
        self._names: dict[str | None, int] = {}
        self._rows, self._sources, self._states = _Rows(_FIELDS), _Rows(_SOURCE_FIELDS), _Rows(_STATE_FIELDS)

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
        trigger = (self._queries.setdefault(key, len(self._queries)), batch_id, start)
        self._rows.add(
            (
                *trigger,
                _sum([_number(each.rows) for each in sources]),
                _sum([_number(each.input_rate) for each in sources]),
                _sum([_number(each.processed_rate) for each in sources]),
                *(_sum([parts[name] for name in names if name in parts], _MAX_MS) for names in DURATIONS.values()),
                _sum([_waiting(each) for each in sources]),
                _sum([each.rows for each in states]),
                _sum([each.memory for each in states]),
                _reads_files([each.description for each in sources]),
            )
        )
        for number, source in enumerate(sources[:_MAX_PARTS]):
            self._sources.add((*trigger, number, *self._source(source)))
        for number, state in enumerate(states[:_MAX_PARTS]):
            self._states.add((*trigger, number, *self._state(state)))
        return True

    def _source(self, source: spark.StreamSource) -> Iterable[float]:
        rates = (source.rows, source.input_rate, source.processed_rate, _waiting(source))
        return self._named(source.description), *(_known(_number(each)) for each in rates)

    def _state(self, state: spark.StreamState) -> Iterable[float]:
        custom = state.custom or {}
        own = (
            *(state.partitions, state.rows, state.memory, state.updated_rows, state.removed_rows, state.late_rows),
            *(state.updates, state.removals, state.commit),
        )
        rocksdb = [_sum([custom[name] for name in names if name in custom]) for names in ROCKSDB.values()]
        return self._named(state.operator), *(_known(_number(each)) for each in own), *rocksdb

    def _named(self, text: str | None) -> float:
        """The number of a text, -1 if it is unknown or there are too many."""
        name = shortened(text)
        if name is None or (name not in self._names and len(self._names) >= _MAX_NAMES):
            return -1
        return self._names.setdefault(name, len(self._names))

    def columns(self, relative: Callable[[float | None], float | None]) -> Columns:
        """The table spark_batches; `relative` converts Unix milliseconds to the run's clock."""
        column = self._located(self._rows, relative, _IDS)
        files = column.pop("reads_files")
        return {
            **{name: values if values.dtype != np.float64 else numbers(values) for name, values in column.items()},
            "reads_files": np.ma.MaskedArray(files == 1.0, mask=np.isnan(files)),
        }

    def source_columns(self, relative: Callable[[float | None], float | None]) -> Columns:
        """The table spark_stream_sources."""
        return self._parts(self._sources, relative, "source", "description")

    def state_columns(self, relative: Callable[[float | None], float | None]) -> Columns:
        """The table spark_stream_states."""
        return self._parts(self._states, relative, "operator", "name")

    def _parts(self, rows: _Rows, relative: Callable[[float | None], float | None], part: str, named: str) -> Columns:
        """Columns of parts of triggers, whose number is in the column `part` and whose text is in `named`."""
        column = self._located(rows, relative, _IDS[:2])
        texts = np.array([*self._names, None], dtype=object)
        return {
            **{name: values if values.dtype != np.float64 else numbers(values) for name, values in column.items()},
            part: column[part].astype(np.int32),
            named: objects(list(texts[column[named].astype(np.int64)])),
        }

    def _located(self, rows: _Rows, relative: Callable[[float | None], float | None], ids: tuple[str, ...]) -> Columns:
        """The columns of rows with those `ids` of their queries and the run's clock; rows without a time are left
        out."""
        column = rows.columns()
        starts = [relative(each) for each in column["start_ms"].tolist()]
        kept = np.array([each is not None for each in starts], dtype=bool)
        column = {name: values[kept] for name, values in column.items()}
        queries = np.array([*self._queries, (None,) * len(_IDS)], dtype=object)[column.pop("query").astype(np.int64)]
        texts = queries.reshape(-1, len(_IDS))
        located: Columns = {name: objects(list(texts[:, place])) for place, name in enumerate(ids)}
        batch_id = column.pop("batch_id").astype(np.int64)
        column["start_ms"] = np.array([each for each in starts if each is not None], dtype=np.float64)
        return {**located, "batch_id": batch_id, **column}


def _reads_files(sources: list[str | None]) -> float:
    """Whether one of the sources reads files; unknown if none is described."""
    known = [each for each in sources if each]
    return float(any("File" in each for each in known)) if known else _UNKNOWN


def _waiting(source: spark.StreamSource) -> float | None:
    """The unread input of a source by its own count; None if it has none."""
    found = [_number(value) for name, value in (source.metrics or {}).items() if name in _WAITING]
    known = [each for each in found if each is not None]
    return sum(known) if known else None


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


def _known(value: float | None) -> float:
    return _UNKNOWN if value is None else value


def _sum(values: list[float | None], most: float = float("inf")) -> float:
    """The sum of known values; unknown if none is known."""
    known = [each for each in values if each is not None and 0 <= each <= most]
    return sum(known) if known else _UNKNOWN
