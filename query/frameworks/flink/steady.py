"""The interval in which a streaming job was steady, and the rates of its subtasks in it.

Rates are differences of counters between two samples; queue lengths are means over samples.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import duckdb
import numpy as np

from crystalperf.query import sql
from crystalperf.query.trace.records import Floats

WARM_UP_MS = 15_000.0
"""Left out at the start: JVMs compile, and sources catch up."""

END_MS = 2_000.0
"""Left out at the end: sources stop one after the other."""

MIN_SAMPLES = 8

COUNTERS = (
    "records_in", "records_out", "bytes_in_local", "bytes_in_remote", "buffers_in_local", "buffers_in_remote",
    "busy_ms", "backpressured_ms",
)  # fmt: skip
QUEUES = ("input_buffers", "output_buffers", "busy_per_s", "backpressured_per_s")

Subtasks = dict[str, list[dict[str, float]]]
"""By stage and subtask: counters per second, and mean queue lengths."""


def steady_interval(
    connection: duckdb.DuckDBPyConnection, start_ms: float, end_ms: float
) -> tuple[float, float] | None:
    """The longest interval without a restart and with the same subtasks, without warm-up and end.

    None if it has too few samples.
    """
    question = sql.text("metric_samples", __package__)
    samples = connection.execute(question, {"start": start_ms, "end": end_ms}).fetchall()
    segments: list[list[float]] = [[]]
    for time_ms, begins in samples:
        if begins:
            segments.append([])
        segments[-1].append(time_ms)
    longest = max(segments, key=len)
    if not longest:
        return None
    first = min(longest[0] + WARM_UP_MS, (longest[0] + longest[-1]) / 2)
    steady = [each for each in longest if first <= each <= longest[-1] - END_MS]
    return (steady[0], steady[-1]) if len(steady) >= MIN_SAMPLES else None


def subtask_rates(connection: duckdb.DuckDBPyConnection, start_ms: float, end_ms: float) -> Subtasks:
    """Rates of the subtasks that ran, per second, between the first and the last sample at which their counters
    changed.
    """
    columns = ", ".join((*COUNTERS, *QUEUES))
    rows = connection.execute(
        f"SELECT stage_id, subtask, time_ms, {columns} FROM flink_series WHERE time_ms BETWEEN ? AND ? ORDER BY ALL",
        [start_ms, end_ms],
    ).fetchnumpy()
    stages, time = rows["stage_id"], np.asarray(rows["time_ms"], dtype=np.float64)
    values = {name: np.ma.filled(np.ma.asarray(rows[name], dtype=np.float64), np.nan) for name in (*COUNTERS, *QUEUES)}
    moved = values["records_in"] + values["records_out"]
    begins = np.flatnonzero((stages[1:] != stages[:-1]) | (rows["subtask"][1:] != rows["subtask"][:-1])) + 1
    found: Subtasks = {}
    for own in np.split(np.arange(len(time)), begins) if len(time) else ():
        if not np.isfinite(moved[own]).any():
            continue  # listed without running, as after a job was scaled down
        rates = _rates(time[own], moved[own], {name: each[own] for name, each in values.items()})
        found.setdefault(str(stages[own[0]]), []).append({**rates, "subtask": float(rows["subtask"][own[0]])})
    return found


def _rates(time_ms: Floats, moved: Floats, values: Mapping[str, Floats]) -> dict[str, float]:
    """Counters per second, over samples with new values: Flink reports unchanged counters for a while.

    So the values of the first sample may be older than it, and it counts only if no others do.  At least one of
    `moved`, the records in and out, is known.
    """
    known = np.flatnonzero(np.isfinite(moved))
    new = known[1:][np.diff(moved[known]) != 0]
    samples = new if len(new) > 1 else known
    rates = {name: _per_s(time_ms[samples], values[name][samples]) for name in COUNTERS}
    means = {name: float(np.nanmean(values[name])) if np.isfinite(values[name]).any() else np.nan for name in QUEUES}
    return {**rates, **means}


def _per_s(time_ms: Floats, sums: Floats) -> float:
    """The rate of a sum between its first and last known values; NaN if none is known."""
    known = np.flatnonzero(np.isfinite(sums))
    if not len(known):
        return math.nan
    first, last = known[0], known[-1]
    return float(sums[last] - sums[first]) / max(float(time_ms[last] - time_ms[first]) / 1e3, 1e-9)


def summed(subtasks: list[dict[str, float]], *names: str) -> float:
    """The sum over all subtasks; unknown values count as 0."""
    return float(np.nansum([each[name] for each in subtasks for name in names]))
