"""Least squares with nonnegative factors (Lawson and Hanson, Solving Least Squares Problems, 1974, chapter 23)."""

from __future__ import annotations

import numpy as np

from crystalperf.query.trace.records import Floats

_ROUNDING = 1e-10


def nonnegative_fit(rows: Floats, values: Floats) -> Floats:
    """x ≥ 0 with the least |rows x − values|; `rows` is (n, factors), `values` (n,).

    If several x are equally good, the one whose factors came in first, each time the one with the steepest descent.
    """
    count = rows.shape[1]
    found, used = np.zeros(count), np.zeros(count, dtype=bool)
    tolerance = _ROUNDING * float(np.abs(rows.T @ values).max(initial=0.0))
    for _ in range(3 * count):
        descent = np.where(used, -np.inf, rows.T @ (values - rows @ found))
        if used.all() or descent.max() <= tolerance:
            break
        used[int(descent.argmax())] = True
        while True:
            best = np.zeros(count)
            best[used] = np.linalg.lstsq(rows[:, used], values, rcond=None)[0]
            negative = used & (best <= 0)
            if not negative.any():
                break
            step = float((found[negative] / (found[negative] - best[negative])).min())
            found = found + step * (best - found)
            used &= found > _ROUNDING * max(float(found.max()), 1e-300)
            found[~used] = 0.0
        found = best
    return found
