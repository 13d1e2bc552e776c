"""The values of a differential flame graph: the sampled stacks of two sides of a comparison as one tree.

Times are ms of one run: for several runs of a side, the mean of its runs.
"""

from __future__ import annotations

from collections.abc import Mapping

from crystalperf.indexes.frozen import frozen
from crystalperf.query.results.page import Floats, Ints, Texts


@frozen
class SampledChange:
    """Sampled time before and after, a row for each node of the tree where stacks end.

    before_ms, after_ms  a column for each resource, by the label of the attributed function, then `waiting` and
                         `unknown` as in results.page.Sampled
    variance_ms2         variance of the change of a row's time from sampling alone, if samples are independent
    """

    node: Ints
    before_ms: Mapping[str, Floats]
    after_ms: Mapping[str, Floats]
    variance_ms2: Floats


@frozen
class FunctionChange:
    """The sampled time of a function before and after: stacks that are attributed to it, or end in it without a label.

    kind      the resource, or `waiting` or `unknown`, that changed most
    noise_ms  standard deviation of the change from sampling alone
    """

    name: str
    kind: str
    before_ms: float
    after_ms: float
    noise_ms: float

    @property
    def change_ms(self) -> float:
        return self.after_ms - self.before_ms

    @property
    def beyond_noise(self) -> bool:
        """Whether the change is larger than NOISE_DEVIATIONS of sampling."""
        return abs(self.change_ms) > NOISE_DEVIATIONS * self.noise_ms


NOISE_DEVIATIONS = 3.0
"""Standard deviations of sampling noise within which a change is shown as none."""


@frozen
class FlameDifference:
    """Sampled stacks of both sides as one tree, from the root of stacks; node 0 is the root of all.

    frames            names without line numbers, `package.Class.method`
    parent            parent of each node; -1 for node 0.  A parent comes before its children
    frame             row of `frames` for each node; -1 for node 0
    runs              number of runs with samples before and after; times are the mean of these
    total_ms          sampled time before and after
    noise_deviations  a change within so many standard deviations of sampling counts as none
    functions         functions whose time changed most, the largest change first
    coarsened         a sentence if small branches are cut, else ''
    """

    frames: Texts
    parent: Ints
    frame: Ints
    sampled: SampledChange
    runs: tuple[int, int]
    total_ms: tuple[float, float]
    noise_deviations: float
    functions: tuple[FunctionChange, ...]
    coarsened: str
