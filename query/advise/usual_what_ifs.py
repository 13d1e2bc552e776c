"""What the answers to the usual questions say: which change the runtime, which do not, and which are not known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crystalperf.query.frameworks.registry import get
from crystalperf.query.results.answers import Debug, Header, WhatIf

NOTICEABLE = 0.03
"""What changes a runtime by less is no effect: reruns of the same job differ by more."""

Bound = tuple[float | None, float | None]
"""At least and at most, ms."""


@dataclass(frozen=True)
class WhatIfGroups:
    """The usual questions by what their answers say, each in the order in which they were asked.

    changing  the runtime differs by NOTICEABLE
    same      it does not: the answer says so, or both bounds of a refused one do
    unknown   refused, and what is known does not rule an effect out
    """

    changing: tuple[WhatIf, ...]
    same: tuple[WhatIf, ...]
    unknown: tuple[WhatIf, ...]


def classify(what_ifs: Sequence[WhatIf], runtime_ms: float) -> WhatIfGroups:
    """What the answers say of a run that took so long."""
    changing, same, unknown = [], [], []
    for each in what_ifs:
        at_least, at_most = each.bound_ms or (None, None)
        if each.predicted_ms is not None:
            at_least = at_most = each.predicted_ms
        if at_least is not None and at_most is not None and alike(at_least, runtime_ms) and alike(at_most, runtime_ms):
            same.append(each)
        elif each.predicted_ms is not None:
            changing.append(each)
        else:
            unknown.append(each)
    return WhatIfGroups(tuple(changing), tuple(same), tuple(unknown))


def alike(one_ms: float, runtime_ms: float) -> bool:
    """Whether a time is no noticeable change of the runtime."""
    return abs(one_ms - runtime_ms) < NOTICEABLE * runtime_ms


def happens_once(debug: Debug, header: Header) -> bool:
    """Whether the run is all there is, rather than a moment of what goes on for hours: a flow, some of a training."""
    return debug.flow is None and not get(header.framework).reader.excerpt


def telling(bound_ms: Bound | None, runtime_ms: float) -> Bound | None:
    """A bound where it tells more than that a change for the better does no harm, or one for the worse no good."""
    low, high = bound_ms or (None, None)
    if low is not None and high is not None:
        return low, high
    if low is not None and low > runtime_ms and not alike(low, runtime_ms):
        return low, None
    if high is not None and high < runtime_ms and not alike(high, runtime_ms):
        return None, high
    return None
