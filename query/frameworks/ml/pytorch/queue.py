"""The queue of pending launches of an accelerator: if it is full, a launch waits for space."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping

from crystalperf.indexes.frozen import frozen
from crystalperf.query.frameworks.ml.pytorch.kineto import Process, Ran
from crystalperf.query.frameworks.ml.pytorch.names import LAUNCHES
from crystalperf.query.frameworks.ml.pytorch.streams import Done

FULL = 900
"""Pending launches from which the queue may be full: CUDA's has 1024 entries, some of which no trace has."""

WAITED_MS = 0.02
"""A longer launch while the queue was full waited for space."""

LAG_MS = 0.1
"""Maximum time between the end that frees space and the launch's return."""


@frozen
class Queue:
    """Calls of a process's launches, and their starts on its accelerator, in order, ms."""

    called: list[float]
    began: list[float]

    def frees_slot(self, call: Ran, start: float, end: float, last: Done) -> bool:
        """Whether a call of the runtime from `start` to `end` waited for space, which the end of `last` freed."""
        if end - start <= WAITED_MS or LAUNCHES.search(call.name) is None or not start < last[0] >= end - LAG_MS:
            return False
        return bisect_left(self.called, start) - bisect_right(self.began, start) >= FULL


def of_process(process: Process, of_call: Mapping[int, Done]) -> Queue:
    """The queue of a process; `of_call` has its kernels and copies by the number of their call."""
    launched = [
        (process.ms(call.start), of_call[call.correlation][1])
        for thread in process.threads.values()
        for call in thread.calls
        if call.correlation is not None and call.correlation in of_call
    ]
    return Queue(sorted(called for called, _ in launched), sorted(began for _, began in launched))
