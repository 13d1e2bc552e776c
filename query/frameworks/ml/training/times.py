"""Times of events that cannot be right: such an event is left out, or its end is corrected, and both are reported.

A profiler that loses the end of an event writes 0 or a garbage duration; a clock that is set while it records moves the
events after that.  One such event would make hours of a run of milliseconds, so a reader checks its events first.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crystalperf.indexes.frozen import frozen
from crystalperf.query.trace.records import Problems

Doubt = Literal["unset", "invalid", "negative", "unpaired", "apart", "overlong", "corrected"]

APART_MS = 600_000.0
"""Minimum distance of an event from all others from which it may be of another clock."""

APART_RATIO = 100.0
"""The same, over the time that the others span."""

NEVER_MS = 86_400_000.0
"""An end this far behind the last start is never plausible."""

OVERLONG_RATIO = 10.0
"""How many times as long as others of its name an operation is that counts as overlong if later ones contradict it."""

_ALIKE = 2
"""Minimum number of others of its name."""

_RARE = 0.05
"""Maximum share of a stream's operations that may be overlong; more than that run concurrently."""

_MEANINGS: dict[Doubt, str] = {
    "unset": "an event without a time (start and duration are 0) is left out",
    "invalid": "an event whose time is not a finite number is left out",
    "negative": "an event with a negative duration is left out",
    "unpaired": "an event without its end, or an end without its event, is left out",
    "apart": "an event hours or years apart from all others, as by a clock that was set, is left out",
    "overlong": "an event that ends hours or years after all others is left out",
    "corrected": "the end of an operation lies behind later ones that waited for it; it is corrected to their start",
}


@dataclass
class Doubts:
    """Events with an impossible time, counted by kind."""

    counts: Counter[Doubt] = field(default_factory=Counter)

    def span(self, start: float | None, length: float | None) -> tuple[float, float] | None:
        """Start and duration of an event; None, and counted, if they cannot be right."""
        if start is None or length is None:
            self.counts["invalid"] += 1
        elif start == 0 and length == 0:
            self.counts["unset"] += 1
        elif length < 0:
            self.counts["negative"] += 1
        elif not np.isfinite(start + length):
            self.counts["invalid"] += 1
        else:
            return start, length
        return None

    def report(self, origin: str, problems: Problems) -> None:
        """Report each kind with its count."""
        for kind, count in self.counts.items():
            if count:
                problems.add(f"time {kind}", "data loss", origin, None, _MEANINGS[kind], count)


@frozen
class Window:
    """The plausible times of a recording, in the unit of its events."""

    first: float = -np.inf
    last: float = np.inf
    latest: float = np.inf

    def holds(self, start: float, end: float, doubts: Doubts) -> bool:
        """Whether an event is plausible; counted if not."""
        if not self.first <= start <= self.last:
            doubts.counts["apart"] += 1
            return False
        if end > self.latest:
            doubts.counts["overlong"] += 1
            return False
        return True


def window(starts: ArrayLike, ends: ArrayLike, *, per_ms: float = 1.0) -> Window:
    """The times around the most events of one clock, shape (events,) each; `per_ms` is how many units a ms has.

    Events far from them are of another clock, unless an event lasts from the one to the other.
    """
    begin, until = np.asarray(starts, np.float64), np.asarray(ends, np.float64)
    if begin.size < 2:
        return Window()
    order = np.argsort(begin, kind="stable")
    begin, until = begin[order], until[order]
    borders = np.flatnonzero(np.diff(begin) > APART_MS * per_ms) + 1
    groups = np.split(np.arange(begin.size), borders)
    place = max(range(len(groups)), key=lambda each: (groups[each].size, each))
    first, last = begin[groups[place][0]], begin[groups[place][-1]]
    apart = max(APART_MS * per_ms, APART_RATIO * (last - first))
    lower = upper = place
    while upper + 1 < len(groups) and (
        begin[groups[upper + 1][0]] - last <= apart
        or _lasts(until[groups[place][0] : groups[upper + 1][0]], begin[groups[upper + 1]], apart)
    ):
        upper, last = upper + 1, begin[groups[upper + 1][-1]]
    while lower > 0 and (
        first - begin[groups[lower - 1][-1]] <= apart
        or (begin[groups[lower - 1][0]] > 0 and _lasts(until[groups[lower - 1]], begin[groups[lower]], apart))
    ):
        lower, first = lower - 1, begin[groups[lower - 1][0]]
    return Window(first, last, _latest(begin, until, first, last, per_ms))


def _lasts(ends: NDArray[np.float64], following: NDArray[np.float64], apart: float) -> bool:
    """Whether an event of one group lasts until another group, whose starts are `following`."""
    return bool(np.any((ends >= following[0] - apart) & (ends <= following[-1] + apart)))


def _latest(begin: NDArray[np.float64], until: NDArray[np.float64], first: float, last: float, per_ms: float) -> float:
    """The latest plausible end of the events that start within a window."""
    ends = np.sort(until[(begin >= first) & (begin <= last)])
    slack = max(APART_MS * per_ms, APART_RATIO * (last - first))
    never = last + max(NEVER_MS * per_ms, APART_RATIO * (last - first))
    if ends.size > 1 and ends[-1] > max(ends[-2], last) + slack and ends[-2] <= last + slack:
        return float(ends[-2])
    return float(never)


def overlong(
    names: Sequence[str], starts: Sequence[float], ends: Sequence[float], tolerance: float
) -> dict[int, float]:
    """Ends of operations of one stream, in order of their starts, that later operations contradict: the right ends.

    A stream runs one operation after another.  An operation is overlong if it contains a later one, and it is ten
    times as long as others of its name.  Operations of a stream that run concurrently are many, so then none is.
    """
    lengths: dict[str, list[float]] = defaultdict(list)
    for name, start, end in zip(names, starts, ends, strict=True):
        lengths[name].append(end - start)
    usual = {name: median(each) for name, each in lengths.items() if len(each) > _ALIKE}
    found: dict[int, float] = {}
    contain = 0
    for place in range(len(starts) - 1):
        following = place + 1
        if ends[place] <= starts[following] + tolerance or ends[following] > ends[place]:
            continue
        contain += 1
        if ends[place] - starts[place] > OVERLONG_RATIO * usual.get(names[place], np.inf):
            found[place] = max(starts[following], starts[place])
    return found if contain <= max(1, _RARE * len(starts)) else {}
