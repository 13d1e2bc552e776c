"""Steps of a host that marks them and an accelerator that does their work later.

A host that is ahead marks a step when it has launched its work.  So a step ends when the accelerator has done its work
and the next one has begun, and it begins when the one before it ends.  If the accelerator limits all steps, the first
begins with its first kernel.  A first step that takes longer than each later one has the profiler's own start.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

from crystalperf.indexes.frozen import frozen
from crystalperf.query.frameworks.ml.training.program import Step

FIRST_STEP = 1.15
"""How much longer than each later step a first step is that has the profiler's own start."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """An operation of the accelerator, ms; `launched_ms` is when the host launched it."""

    launched_ms: float
    start_ms: float
    end_ms: float


@frozen
class Steady:
    """Steps as host and accelerator do them, the kernels launched in them, and waits of the host for results."""

    steps: Sequence[Step]
    kernels: Sequence[Kernel]
    waits: int

    @property
    def busy_ms(self) -> float:
        """How long at least one kernel ran."""
        total, until = 0.0, float("-inf")
        for each in sorted(self.kernels, key=lambda one: one.start_ms):
            total += max(each.end_ms - max(each.start_ms, until), 0.0)
            until = max(until, each.end_ms)
        return total

    def properties(self) -> dict[str, str]:
        """Facts of a mean step for the run file."""
        count = len(self.steps)
        return {
            "busy_ms": f"{self.busy_ms / count:.6g}",
            "launches": f"{len(self.kernels) / count:.6g}",
            "synchronisations": f"{self.waits / count:.6g}",
        }


def of_marks(marked: Sequence[Step], kernels: Sequence[Kernel], waits_ms: Sequence[float]) -> Steady | None:
    """Steps of one process from its marks, in order of time; None if a step launched no kernel.

    `waits_ms` is when the host began to wait for results.
    """
    starts = [each.start_ms for each in marked]
    by_step: list[list[Kernel]] = [[] for _ in marked]
    for each in kernels:
        if (number := bisect_right(starts, each.launched_ms) - 1) >= 0:
            by_step[number].append(each)
    if not by_step or not all(by_step):
        return None
    done = [max(one.end_ms for one in each) for each in by_step]
    borders = [starts[0], *(max(start, end) for start, end in zip(starts[1:], done, strict=False))]
    if all(end > start for start, end in zip(starts[1:], done, strict=False)) and len(marked) > 1:
        borders[0] = min(each.start_ms for each in by_step[0])
    borders.append(max(marked[-1].end_ms, done[-1]))
    steps = [replace(each, start_ms=borders[n], end_ms=borders[n + 1]) for n, each in enumerate(marked)]
    took = [each.end_ms - each.start_ms for each in steps]
    if len(took) > 2 and took[0] > FIRST_STEP * max(took[1:]):
        steps, by_step = steps[1:], by_step[1:]
    within = sum(steps[0].start_ms <= each < marked[-1].end_ms for each in waits_ms)
    return Steady(steps, [one for each in by_step for one in each], within)
