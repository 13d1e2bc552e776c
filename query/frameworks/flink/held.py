"""How long operators hold records that they let through, as those of Flink's asynchronous I/O do.

By Little's law: records that went in and have not come out, in the mean over looks, over records per second.
"""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import numpy as np

from crystalperf.query.frameworks.flink.chained_operators import chained
from crystalperf.query.frameworks.flink.steady import LEAST_LOOKS
from crystalperf.query.trace.records import Floats

ASYNCHRONOUS = "org.apache.flink.streaming.api.operators.async.AsyncWaitOperator."

LEAST_MS = 1.0
"""Less is not told: the two counters of an operator are read so far apart where a TaskManager's CPU is short."""

GROWN = 0.2
"""Records that an operator holds are as many in the second half of the looks as in the first, but for this share of
them.  More go with the records that come: they were dropped."""

ERRORS = 3.0
"""Standard errors of a mean within which one is no other."""

APART = 0.25
"""Records of so much of the time between two looks lie between an operator's two counters where these were not renewed
at once, or it seems to hold less than none: such a look tells nothing …"""

UNLIKE = 0.1
"""… and where more than this share of looks do, none of them."""

EMPTY = 1 / 3
"""The least of what seems to be held was dropped before, where this share of looks has no more (but for one record)."""

CAPACITY = 100
"""Requests of a subtask that are under way at most, where its user does not say (`AsyncDataStream`)."""


def asking(connection: duckdb.DuckDBPyConnection) -> tuple[set[str], set[str]]:
    """Groups on whose stacks an operator of Flink's asynchronous I/O was seen, and groups that have samples."""
    rows = connection.execute(
        """
        SELECT group_id, bool_or(contains(array_to_string(frames, ' '), ?))
        FROM samples JOIN stacks USING (stack_id) JOIN units USING (unit_id) GROUP BY group_id
        """,
        [ASYNCHRONOUS],
    ).fetchall()
    return {group for group, asks in rows if asks}, {group for group, _ in rows}


def held_ms(
    connection: duckdb.DuckDBPyConnection,
    stretch: tuple[float, float],
    lanes: Mapping[str, int],
    names: Mapping[str, str],
) -> dict[str, float]:
    """How long a record is held in each group, ms; groups of which that is not known, or is nothing, are left out.

    `lanes` are subtasks by group, `names` has what a group is called.  Samples tell which groups ask asynchronously.
    In one without samples what is held has to come and go as records do, lest it be what was dropped some time ago.
    """
    rows = connection.execute(
        """
        SELECT group_id, operator, time_ms, records_in, records_in - records_out AS held FROM flink_operators
        WHERE time_ms BETWEEN ? AND ? AND held IS NOT NULL ORDER BY group_id, operator, time_ms
        """,
        list(stretch),
    ).fetchnumpy()
    groups, operators = rows["group_id"], rows["operator"]
    time, taken, held = (np.asarray(rows[name], dtype=np.float64) for name in ("time_ms", "records_in", "held"))
    begins = np.flatnonzero((groups[1:] != groups[:-1]) | (operators[1:] != operators[:-1])) + 1
    asks, sampled = asking(connection)
    found: dict[str, list[float]] = {}
    for mine in np.split(np.arange(len(time)), begins) if len(time) else ():
        group = str(groups[mine[0]])
        if group in lanes and (group in asks or group not in sampled):
            ms = _held_ms(time[mine], taken[mine], held[mine], lanes[group], surely=group in asks)
            found.setdefault(group, []).append(ms)
    # Of a chain that forks no record passes all operators.
    whole = {group: sum(each) if len(chained(names[group])) > 1 else max(each) for group, each in found.items()}
    return {group: ms for group, ms in whole.items() if ms > 0}


def _held_ms(time_ms: Floats, taken: Floats, held: Floats, lanes: int, *, surely: bool) -> float:
    """The same of one operator, by its looks; 0 where it is not known."""
    new = np.append(True, np.diff(taken) > 0)  # Flink answers with the same ones for a while
    time_ms, taken, held = time_ms[new], taken[new], held[new]
    if len(held) < LEAST_LOOKS:
        return 0.0
    passed = taken[-1] - taken[0]
    alike = (np.abs(held - np.median(held)) <= APART * passed / (len(held) - 1)) & (held >= 0)
    if np.mean(~alike) > UNLIKE:
        return 0.0
    per_ms = passed / (time_ms[-1] - time_ms[0])
    taken, held = taken[alike], held[alike]
    least = held.min()
    if np.mean(held <= least + 1) >= EMPTY:
        held = held - least
    elif held.mean() > CAPACITY * lanes and not _is_fresh(taken, held):
        return 0.0
    mean = held.mean()
    if (_has_grown if surely else _is_odd)(held):
        return 0.0
    return float(mean / per_ms) if mean / per_ms >= LEAST_MS else 0.0


def _has_grown(held: Floats) -> bool:
    """Whether more is held in the second half of the looks, and at least: what was dropped never comes back.

    Looks may be nearly in step with bursts of records, so that the means of halves differ though nothing grows.
    """
    first, second = np.array_split(held, 2)
    (grown, error), least = _growth(held), GROWN * held.mean()
    return bool(grown > max(least, ERRORS * error) and second.min() - first.min() > least)


def _is_odd(held: Floats) -> bool:
    """Whether what seems to be held grows or shrinks, or does not come and go as records that come at random do."""
    mean, (grown, error) = held.mean(), _growth(held)
    if abs(grown) > max(GROWN * mean, ERRORS * error):
        return True
    return bool(held.var() < mean or mean < ERRORS * held.std() / np.sqrt(len(held)))


def _growth(held: Floats) -> tuple[float, float]:
    """By how much the mean of the second half is above that of the first, and the standard error of that."""
    halves = np.array_split(held, 2)
    return float(halves[1].mean() - halves[0].mean()), float(np.sqrt(sum(each.var() / len(each) for each in halves)))


def _is_fresh(taken: Floats, held: Floats) -> bool:
    """Whether records that are dropped in equal parts since the start would have become more than were seen to."""
    grown, error = _growth(held)
    return bool(held.mean() / taken.mean() * _growth(taken)[0] > 2 * (grown + ERRORS * error))
