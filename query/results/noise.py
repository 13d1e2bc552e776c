"""The difference between repeated runs, as data; crystalperf.query.compare.noise computes it."""

from __future__ import annotations

from typing import Literal

from crystalperf.indexes.frozen import frozen

Source = Literal["repeated runs", "typical spread"]
"""The basis of a range: repeated runs of the job, or the usual spread of such jobs where no side has any."""

Change = Literal["longer", "shorter", "no change"]


@frozen
class Difference:
    """A duration before and after, each the median of its runs, ms.

    ratio, ratio_low, ratio_high  after / before, and its 90 % range
    source   the basis of the range
    runs_before, runs_after  runs of each side
    verdict  longer or shorter only if the 95 % range excludes an equal duration: if the 90 % range excludes it by
             little, there is still no change
    """

    before_ms: float
    after_ms: float
    ratio: float
    ratio_low: float
    ratio_high: float
    source: Source
    runs_before: int
    runs_after: int
    verdict: Change
