"""Ends of tasks as columns, without objects for each task.

Most lines of a log are starts and ends of tasks, all alike.  This describes an end to query.inputs.line_rows by the
types that events.py decodes it with, so both read the same fields.  Ends of tasks that failed, and lines that are not
as Spark writes them, are left to the caller.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import fields

from crystalperf.query.frameworks.spark.log import events as spark
from crystalperf.query.frameworks.spark.log.peaks import NAMES, Peaks
from crystalperf.query.inputs.containers import Batch
from crystalperf.query.inputs.line_rows import Field, Kind, LineRows, Rows, is_compiled, scan
from crystalperf.query.trace.records import LARGEST, Floats

TASK_FIELDS = tuple(
    "task_id stage_id stage_attempt index partition attempt executor host locality status reason speculative"  # noqa: SIM905
    " launch finish getting_result deserialize deserialize_cpu_ns run run_cpu_ns result_serialize gc fetch_wait"
    " shuffle_write_ns input_bytes output_bytes remote_read_bytes local_read_bytes write_bytes spill_memory spill_disk"
    " peak_memory result_bytes input_rows shuffle_rows from_memory merged_bytes merge_fallbacks".split()
)
"""The columns of tasks, in order."""

MAX_TEXTS = 10_000
"""Distinct texts of a column."""

_PREFIX = b'{"Event":"SparkListenerTaskEnd",'
_START = (
    b'{"Event":"SparkListenerTaskStart","Stage ID":',
    b',"Stage Attempt ID":',
    b',"Task Info":{"Task ID":',
    b",",
    b"}}",
)
"""The start of a task: texts with a number between two, and the end of the line."""

_OBJECTS = (
    spark.TaskEnd,
    spark.EndReason,
    spark.TaskInfo,
    spark.TaskMetrics,
    spark.ShuffleRead,
    spark.PushRead,
    spark.ShuffleWrite,
    spark.Input,
    spark.Output,
    spark.ExecutorMetrics,
)
_INSIDE: dict[tuple[type[Any], str], type[Any]] = {
    (spark.TaskEnd, "reason"): spark.EndReason,
    (spark.TaskEnd, "info"): spark.TaskInfo,
    (spark.TaskEnd, "metrics"): spark.TaskMetrics,
    (spark.TaskEnd, "executor_metrics"): spark.ExecutorMetrics,
    (spark.TaskMetrics, "shuffle_read"): spark.ShuffleRead,
    (spark.TaskMetrics, "shuffle_write"): spark.ShuffleWrite,
    (spark.TaskMetrics, "input"): spark.Input,
    (spark.TaskMetrics, "output"): spark.Output,
    (spark.ShuffleRead, "push"): spark.PushRead,
}
_ZERO_IF_MISSING = (spark.TaskEnd, spark.PushRead, spark.ExecutorMetrics)
_REQUIRED: set[tuple[type[Any], str]] = {
    (spark.TaskEnd, "stage_id"),
    (spark.TaskEnd, "reason"),
    (spark.TaskEnd, "info"),
    (spark.TaskEnd, "metrics"),
    (spark.EndReason, "reason"),
    (spark.TaskInfo, "task_id"),
    (spark.TaskInfo, "launch"),
    (spark.TaskInfo, "executor"),
    (spark.TaskInfo, "host"),
    (spark.TaskInfo, "locality"),
}
_CODED = ("executor", "host", "locality")
_BOOLS = ("speculative", "failed", "killed")
_FROM_MEMORY = (b"Memory", b"Network")

_RENAMED: dict[tuple[type[Any], str], str] = {
    (spark.ShuffleRead, "rows"): "shuffle_rows",
    (spark.ShuffleWrite, "bytes"): "write_bytes",
    (spark.ShuffleWrite, "time_ns"): "shuffle_write_ns",
    (spark.Input, "bytes"): "input_bytes",
    (spark.Input, "rows"): "input_rows",
    (spark.Input, "method"): "from_memory",
    (spark.Output, "bytes"): "output_bytes",
}
"""Columns that have another name than the field."""

_ZEROS = "fetch_wait remote_read_bytes local_read_bytes shuffle_rows write_bytes shuffle_write_ns".split()  # noqa: SIM905
_ZEROS += ["input_bytes", "input_rows", "output_bytes"]
"""Columns of the parts of a task's metrics that some versions leave out where they are 0."""


class Codes(dict[bytes, int]):
    """Codes of texts by their bytes, from those of the texts."""

    def __init__(self, texts: dict[str | None, int]) -> None:
        super().__init__()
        self._texts = texts

    def __missing__(self, text: bytes) -> int:
        code = self._texts[text.decode("ascii")]
        if len(self) < MAX_TEXTS:
            self[text] = code
        return code


class TaskRows(NamedTuple):
    """The ends of tasks in a batch.

    `columns` (TASK_FIELDS, ends) have an end that was left to the caller as NaN; `rows` has the lines.
    """

    columns: Floats
    rows: Rows


class TaskLines:
    """Reads ends of tasks with the codes of these texts; `zeros` are parts of metrics that a log left out."""

    def __init__(self, texts: tuple[dict[str | None, int], ...], *, zeros: bool) -> None:
        coded = dict(zip(_CODED, map(Codes, texts), strict=True))
        self._columns: dict[str, int] = {}
        objects = tuple(
            (0.0 if each in _ZERO_IF_MISSING else spark.NAN, tuple(self._fields(each, coded))) for each in _OBJECTS
        )
        template = np.full(len(self._columns), np.nan)
        for name in (*NAMES, *(each.name for each in fields(spark.PushRead)), "stage_attempt"):
            template[self._columns[name]] = 0.0
        if zeros:
            template[[self._columns[each] for each in _ZEROS]] = 0.0
        self._lines = LineRows(_PREFIX, _START, objects, template)

    def _fields(self, kind: type[Any], coded: dict[str, Codes]) -> list[Field]:
        found = []
        for each in fields(kind):
            name, required = each.encode_name.encode(), (kind, each.name) in _REQUIRED
            inside = _INSIDE.get((kind, each.name))
            if inside is not None:
                found.append(Field(name, Kind.OBJECT, _OBJECTS.index(inside), required))
            elif kind is spark.EndReason:
                if each.name == "reason":
                    found.append(Field(name, Kind.EXACTLY, required=True, texts=(b"Success",)))
            else:
                column = self._columns.setdefault(_RENAMED.get((kind, each.name), each.name), len(self._columns))
                found.append(_field(name, each.name, column, required, coded))
        return found

    def read(self, batch: Batch, reason: int) -> TaskRows | None:
        """The ends of tasks in a batch, with the code of the reason of success; None if there are no compiled rows."""
        if not is_compiled() or batch.piece is None:
            return None
        rows = scan(batch, self._lines)
        values, places = rows.values.T, self._columns
        columns = np.empty((len(TASK_FIELDS), len(rows.values)))
        for place, name in enumerate(TASK_FIELDS):
            if name in places:
                columns[place] = values[places[name]]
        columns[TASK_FIELDS.index("status")] = 0
        columns[TASK_FIELDS.index("reason")] = reason
        columns[TASK_FIELDS.index("merged_bytes")] = values[places["remote_bytes"]] + values[places["local_bytes"]]
        columns[TASK_FIELDS.index("merge_fallbacks")] = values[places["fallbacks"]]
        return TaskRows(columns, rows)

    def add_peaks(self, rows: Rows, peaks: Peaks, executors: list[str | None]) -> None:
        """Add the peaks of executors' memory, by the names of executors."""
        first = self._columns[NAMES[0]]
        values = rows.values[:, first : first + len(NAMES)]
        peaked = np.flatnonzero((values[:, 0] > 0) & (values[:, 0] < LARGEST))
        if not len(peaked):
            return
        key = [self._columns[each] for each in ("executor", "stage_id", "stage_attempt")]
        keys, values = rows.values[peaked][:, key], values[peaked]
        places, at, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        most = np.zeros((len(places), len(NAMES)))
        np.maximum.at(most, inverse.reshape(-1), np.where((values >= 0) & (values < LARGEST), values, 0.0))
        for place in np.argsort(at).tolist():  # in the order of the log
            executor, stage, attempt = places[place].tolist()
            peaks.add(executors[int(executor)], stage, attempt, spark.ExecutorMetrics(*most[place].tolist()))


def _field(name: bytes, own: str, column: int, required: bool, coded: dict[str, Codes]) -> Field:
    if own in coded:
        return Field(name, Kind.TEXT, column, required, coded[own])
    if own == "method":
        return Field(name, Kind.AMONG, column, required, _FROM_MEMORY)
    return Field(name, Kind.BOOL if own in _BOOLS else Kind.NUMBER, column, required)
