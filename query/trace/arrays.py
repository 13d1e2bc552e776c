"""Array operations that several parts of the model share."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from crystalperf.query.trace.records import Floats, Ints

PLACES = 8
"""Maximum distinct places per task for which a table of all places is fastest."""


FEW = 8
"""Rows of a group from which on sorting each group by itself is faster than sorting all rows by group and value."""


AT_ONCE = 1 << 14
"""Rows for which several columns fit in a CPU's cache."""


def blocks(count: int) -> list[slice]:
    """The rows of long columns in blocks: chains of operations on each block do not wait for memory, and need none for
    their intermediate results."""
    return [slice(first, min(first + AT_ONCE, count)) for first in range(0, count, AT_ONCE)]


def constant(count: int, value: float) -> Floats:
    """A read-only column of one value, which takes no memory."""
    return np.broadcast_to(np.float64(value), (count,))


def safe_divide(part: Floats, whole: Floats, otherwise: float = 0.0) -> Floats:
    """Quotients, `otherwise` where the divisor is not above zero; NumPy divides slowly with a mask."""
    above = whole > 0
    if not above.any():
        return np.full(len(part), otherwise)
    if above.all():
        return np.divide(part, whole)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        quotient: Floats = np.where(above, np.divide(part, whole), otherwise)
    return quotient


def by_number(number: Ints) -> Ints:
    """The positions of whole numbers in ascending order, equal ones in theirs; faster if they need 16 bits only."""
    few = len(number) > 0 and number.min() >= 0 and number.max() < 1 << 16
    return np.argsort(number.astype(np.uint16) if few else number, kind="stable")


def members(group: Ints, count: int) -> list[Ints]:
    """The positions of the members of each of groups 0 to `count` − 1, in ascending order."""
    order = by_number(group)
    bounds = np.searchsorted(group[order], np.arange(count + 1))
    return [order[bounds[number] : bounds[number + 1]] for number in range(count)]


def median(values: Sequence[float] | Floats | Ints) -> float:
    """The median; NaN if a value is NaN, or without values.  That of numpy imports numpy.ma, 13 ms of CPU time."""
    known = np.asarray(values)
    half, odd = divmod(len(known), 2)
    if not len(known):
        return math.nan
    ordered = np.partition(known, (half - 1 + odd, half, -1))  # NaN is the last
    if np.isnan(ordered[-1]):
        return math.nan
    return (float(ordered[half - 1 + odd]) + float(ordered[half])) / 2


def order_within(values: Floats, rows: Ints) -> Ints:
    """The positions of values so that each of consecutive groups, of so many `rows`, is in ascending order."""
    if len(values) < FEW * len(rows):
        return np.lexsort((values, np.repeat(np.arange(len(rows)), rows)))
    order = np.empty(len(values), np.int64)
    begin = 0
    for end in np.cumsum(rows).tolist():
        np.add(values[begin:end].argsort(), begin, out=order[begin:end])
        begin = end
    return order


def _sorted_within(values: Floats, rows: Ints) -> Floats:
    """The values with each of consecutive groups in ascending order; sorts in place, or a copy."""
    if len(values) < FEW * len(rows):
        return values[order_within(values, rows)]
    begin = 0
    for end in np.cumsum(rows).tolist():
        values[begin:end].sort()
        begin = end
    return values


def medians(group: Ints, columns: Floats, count: int) -> Floats:
    """Medians of each column over the rows of each of groups 0 to `count` − 1, (groups, columns); NaN without rows."""
    rows, by_group = np.bincount(group, minlength=count), by_number(group)
    begin, some = np.cumsum(rows) - rows, rows > 0
    low, high = (begin + (rows - 1) // 2)[some], (begin + rows // 2)[some]
    found = np.full((count, columns.shape[1]), np.nan)
    for number, column in enumerate(columns.T):
        values = _sorted_within(column[by_group], rows)
        found[some, number] = (values[low] + values[high]) / 2
    return found


def before_any(place: Ints, launch_ms: Floats, finish_ms: Floats) -> NDArray[np.bool_]:
    """Whether each task was launched before any had ended in the same place."""
    count = int(place.max(initial=-1)) + 1
    if count > PLACES * len(place):
        used, place = np.unique(place, return_inverse=True)
        count = len(used)
    ended = np.full(count, np.inf)
    np.minimum.at(ended, place, finish_ms)
    return np.asarray(launch_ms < ended[place], np.bool_)
