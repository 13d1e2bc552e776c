"""Time that records spend in operators which emit them later, such as those of Flink's asynchronous I/O.

By Little's law: the mean number of records inside, over samples, divided by records per second.
"""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import numpy as np

from crystalperf.query.frameworks.flink.chained_operators import chained
from crystalperf.query.frameworks.flink.steady import MIN_SAMPLES
from crystalperf.query.trace.arrays import median
from crystalperf.query.trace.records import Floats

ASYNCHRONOUS = "org.apache.flink.streaming.api.operators.async.AsyncWaitOperator."

MIN_MS = 1.0
"""Shorter times are not reported: with a busy CPU, the two counters of an operator are read too far apart."""

GROWN = 0.2
"""Relative difference up to which the records that an operator holds are as many in the second half of the samples as
in the first.  If more accumulate with the records that arrive, these were dropped."""

ERRORS = 3.0
"""Standard errors within which two means do not differ."""

DEVIATION = 0.25
"""Share of the time between two samples: a sample is invalid if it deviates by more than the records of that time, or
is below 0, because the operator's two counters were not updated at once …"""

INVALID_SHARE = 0.1
"""… and if more than this share of samples is invalid, all are."""

EMPTY = 1 / 3
"""If this share of samples is at the minimum (within one record), the minimum counts as records dropped before."""

CAPACITY = 100
"""Default limit of a subtask's concurrent requests (`AsyncDataStream`)."""


def asynchronous_stages(connection: duckdb.DuckDBPyConnection) -> tuple[set[str], set[str]]:
    """Stages with an operator of Flink's asynchronous I/O on their stacks, and stages that have samples."""
    rows = connection.execute(
        """
        SELECT stage_id, bool_or(contains(array_to_string(frames, ' '), ?))
        FROM samples JOIN stacks USING (stack_id) JOIN tasks USING (task_id) GROUP BY stage_id
        """,
        [ASYNCHRONOUS],
    ).fetchall()
    return {stage for stage, asynchronous in rows if asynchronous}, {stage for stage, _ in rows}


def external_wait_ms(
    connection: duckdb.DuckDBPyConnection,
    interval: tuple[float, float],
    slots: Mapping[str, int],
    names: Mapping[str, str],
) -> dict[str, float]:
    """How long a record is held in each stage, ms, without stages for which it is unknown or 0.

    `slots` has the subtasks by stage, `names` the names of stages.  Samples show which stages make asynchronous
    requests.  In a stage without samples the number of held records has to vary like that of random arrivals, or else
    they may be records that were dropped earlier.
    """
    rows = connection.execute(
        """
        SELECT stage_id, operator, time_ms, records_in, records_in - records_out AS held FROM flink_operators
        WHERE time_ms BETWEEN ? AND ? AND held IS NOT NULL ORDER BY stage_id, operator, time_ms
        """,
        list(interval),
    ).fetchnumpy()
    stages, operators = rows["stage_id"], rows["operator"]
    time, taken, held = (np.asarray(rows[name], dtype=np.float64) for name in ("time_ms", "records_in", "held"))
    begins = np.flatnonzero((stages[1:] != stages[:-1]) | (operators[1:] != operators[:-1])) + 1
    asynchronous, sampled = asynchronous_stages(connection)
    found: dict[str, list[float]] = {}
    for own in np.split(np.arange(len(time)), begins) if len(time) else ():
        stage = str(stages[own[0]])
        if stage in slots and (stage in asynchronous or stage not in sampled):
            ms = _held_ms(time[own], taken[own], held[own], slots[stage], surely=stage in asynchronous)
            found.setdefault(stage, []).append(ms)
    # In a chain that forks, no record passes all operators.
    whole = {stage: sum(each) if len(chained(names[stage])) > 1 else max(each) for stage, each in found.items()}
    return {stage: ms for stage, ms in whole.items() if ms > 0}


def _held_ms(time_ms: Floats, taken: Floats, held: Floats, slots: int, *, surely: bool) -> float:
    """How long one operator holds a record, ms, from its samples; 0 if unknown."""
    new = np.append(True, np.diff(taken) > 0)  # Flink reports unchanged counters for a while
    time_ms, taken, held = time_ms[new], taken[new], held[new]
    if len(held) < MIN_SAMPLES:
        return 0.0
    passed = taken[-1] - taken[0]
    valid = (np.abs(held - median(held)) <= DEVIATION * passed / (len(held) - 1)) & (held >= 0)
    if np.mean(~valid) > INVALID_SHARE:
        return 0.0
    per_ms = passed / (time_ms[-1] - time_ms[0])
    taken, held = taken[valid], held[valid]
    least = held.min()
    if np.mean(held <= least + 1) >= EMPTY:
        held = held - least
    elif held.mean() > CAPACITY * slots and not _is_fresh(taken, held):
        return 0.0
    mean = held.mean()
    if (_has_grown if surely else _is_odd)(held):
        return 0.0
    return float(mean / per_ms) if mean / per_ms >= MIN_MS else 0.0


def _has_grown(held: Floats) -> bool:
    """Whether the mean and the minimum of held records grew in the second half of the samples: dropped records never
    leave.

    Samples may be nearly in phase with bursts of records, so that the means of the halves differ without growth.
    """
    first, second = np.array_split(held, 2)
    (grown, error), least = _growth(held), GROWN * held.mean()
    return bool(grown > max(least, ERRORS * error) and second.min() - first.min() > least)


def _is_odd(held: Floats) -> bool:
    """Whether the number of held records grows or shrinks, or does not vary like that of random arrivals."""
    mean, (grown, error) = held.mean(), _growth(held)
    if abs(grown) > max(GROWN * mean, ERRORS * error):
        return True
    return bool(held.var() < mean or mean < ERRORS * held.std() / np.sqrt(len(held)))


def _growth(held: Floats) -> tuple[float, float]:
    """The mean of the second half minus that of the first, and its standard error."""
    halves = np.array_split(held, 2)
    return float(halves[1].mean() - halves[0].mean()), float(np.sqrt(sum(each.var() / len(each) for each in halves)))


def _is_fresh(taken: Floats, held: Floats) -> bool:
    """Whether records dropped at a constant rate since the start would have grown more than these did."""
    grown, error = _growth(held)
    return bool(held.mean() / taken.mean() * _growth(taken)[0] > 2 * (grown + ERRORS * error))
