"""Sums over arrays that several parts of the model do alike."""

from __future__ import annotations

import numpy as np

from query.model.records import Floats, Ints


def over(part: Floats, whole: Floats, otherwise: float = 0.0) -> Floats:
    """Quotients, `otherwise` where there is nothing to divide by."""
    quotient: Floats = np.divide(part, whole, out=np.full(len(part), otherwise), where=whole > 0)
    return quotient


def members(group: Ints, count: int) -> list[Ints]:
    """The numbers of the units of each of groups 0 to `count` − 1, in their order."""
    order = np.argsort(group, kind="stable")
    bounds = np.searchsorted(group[order], np.arange(count + 1))
    return [order[bounds[number] : bounds[number + 1]] for number in range(count)]


def medians(group: Ints, columns: Floats, count: int) -> Floats:
    """The median of each column over the rows of each of groups 0 to `count` − 1, (groups, columns); NaN of none."""
    rows = np.bincount(group, minlength=count)
    begin, some = np.cumsum(rows) - rows, rows > 0
    low, high = (begin + (rows - 1) // 2)[some], (begin + rows // 2)[some]
    found = np.full((count, columns.shape[1]), np.nan)
    for number, column in enumerate(columns.T):
        ordered = column[np.lexsort((column, group))]
        found[some, number] = (ordered[low] + ordered[high]) / 2
    return found
