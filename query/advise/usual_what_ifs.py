"""Classification of the usual what-ifs: those that change the runtime, those that do not, and the unknown ones."""

from __future__ import annotations

from collections.abc import Sequence

from crystalperf.indexes.frozen import frozen
from crystalperf.query.frameworks.registry import get
from crystalperf.query.results.answers import Debug, Header, WhatIf

NOTICEABLE = 0.03
"""Minimum relative change of a runtime; a smaller one has no effect, because reruns of the same job differ by more."""

Bound = tuple[float | None, float | None]
"""Lower and upper bound of a runtime, ms; None if unknown."""


@frozen
class WhatIfEffects:
    """The usual what-ifs by their effect, each in their original order.

    changing  the predicted runtime differs by NOTICEABLE
    same      it does not, by its prediction, or by both bounds of a refused one
    unknown   refused, and its bounds do not exclude an effect
    """

    changing: tuple[WhatIf, ...]
    same: tuple[WhatIf, ...]
    unknown: tuple[WhatIf, ...]


def classify(what_ifs: Sequence[WhatIf], runtime_ms: float) -> WhatIfEffects:
    """Classify the what-ifs of a run that took `runtime_ms`."""
    changing, same, unknown = [], [], []
    for each in what_ifs:
        at_least_ms, at_most_ms = each.bound_ms or (None, None)
        if each.predicted_ms is not None:
            at_least_ms = at_most_ms = each.predicted_ms
        if (
            at_least_ms is not None
            and at_most_ms is not None
            and alike(at_least_ms, runtime_ms)
            and alike(at_most_ms, runtime_ms)
        ):
            same.append(each)
        elif each.predicted_ms is not None:
            changing.append(each)
        else:
            unknown.append(each)
    return WhatIfEffects(tuple(changing), tuple(same), tuple(unknown))


def alike(one_ms: float, runtime_ms: float) -> bool:
    """Whether a time does not differ noticeably from the runtime."""
    return abs(one_ms - runtime_ms) < NOTICEABLE * runtime_ms


def happens_once(debug: Debug, header: Header) -> bool:
    """Whether the run is complete, not an excerpt of a longer one such as a stream or some steps of a training."""
    return debug.stream is None and not get(header.framework).reader.excerpt


def informative(bound_ms: Bound | None, runtime_ms: float) -> Bound | None:
    """The bounds that say more than that an improvement does not slow the run down, or a reduction not speed it up."""
    low, high = bound_ms or (None, None)
    if low is not None and high is not None:
        return low, high
    if low is not None and low > runtime_ms and not alike(low, runtime_ms):
        return low, None
    if high is not None and high < runtime_ms and not alike(high, runtime_ms):
        return None, high
    return None
