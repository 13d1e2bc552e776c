"""Array operations that several parts of the model share."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from crystalperf.query.trace.records import Floats, Ints

PLACES = 8
"""Maximum distinct places per task for which a table of all places is fastest."""


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
    """Quotients, `otherwise` where the divisor is not above zero."""
    quotient: Floats = np.divide(part, whole, out=np.full(len(part), otherwise), where=whole > 0)
    return quotient


def members(group: Ints, count: int) -> list[Ints]:
    """The positions of the members of each of groups 0 to `count` − 1, in ascending order."""
    order = np.argsort(group, kind="stable")
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


def medians(group: Ints, columns: Floats, count: int) -> Floats:
    """Medians of each column over the rows of each of groups 0 to `count` − 1, (groups, columns); NaN without rows."""
    rows = np.bincount(group, minlength=count)
    begin, some = np.cumsum(rows) - rows, rows > 0
    low, high = (begin + (rows - 1) // 2)[some], (begin + rows // 2)[some]
    found = np.full((count, columns.shape[1]), np.nan)
    for number, column in enumerate(columns.T):
        ordered = column[np.lexsort((column, group))]
        found[some, number] = (ordered[low] + ordered[high]) / 2
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
