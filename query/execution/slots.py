"""Slots of workers, and when all of them were in use."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import numpy as np

from crystalperf.indexes.frozen import frozen
from crystalperf.query.trace.arrays import median
from crystalperf.query.trace.records import Floats, Ints


@frozen
class Slots:
    """The slots that tasks run on.  Arrays of one length, a row per slot.

    `available_ms` is when its worker registered, `until_ms` when it was lost; `cpu_cores` is the CPU that the slot
    adds to its worker, infinite if no limit is known.
    """

    worker: Ints
    host: Ints
    available_ms: Floats
    until_ms: Floats
    cpu_cores: Floats

    def __len__(self) -> int:
        return len(self.worker)

    def cpu_limit(self) -> float:
        """The median CPU, cores, of slots on workers with a known CPU limit; infinite if there are none."""
        known = self.cpu_cores[np.isfinite(self.cpu_cores)]
        return median(known) if len(known) else np.inf

    def staying(self) -> Slots:
        """The same slots, where each lost worker stays until another replaces it, or to the end of the run.

        The first worker lost is the first replaced, so the number of workers never exceeds the recorded maximum.
        """
        workers, first = np.unique(self.worker, return_index=True)
        came, went = self.available_ms[first], self.until_ms[first]
        until = np.full(len(workers), np.inf)
        gone = deque[int]()
        moments = [(at, 0, each) for each, at in enumerate(went.tolist()) if at < np.inf]
        moments += [(at, 1, each) for each, at in enumerate(came.tolist())]
        for at, arrives, each in sorted(moments):
            if not arrives:
                gone.append(each)
            elif gone:
                until[gone.popleft()] = at
        return replace(self, until_ms=until[np.searchsorted(workers, self.worker)])


class SlotUse:
    """When tasks occupied all available slots.

    Slots come and go with their workers.  Before the first slot is available, nothing counts as full.
    """

    def __init__(self, launch_ms: Floats, finish_ms: Floats, available_ms: Floats, until_ms: Floats) -> None:
        # Sorted columns are merged in one pass.  All changes at a moment count at once: an end then frees its slot.
        columns = [np.sort(each) for each in (launch_ms, finish_ms, available_ms, until_ms)]
        moments = np.concatenate(columns)
        order = np.argsort(moments, kind="stable")
        moments, counts = moments[order], [len(each) for each in columns]
        last = np.concatenate([moments[1:] != moments[:-1], np.ones(min(len(moments), 1), np.bool_)])
        self._moments: Floats = moments[last]
        busy, available = (np.cumsum(np.repeat(each, counts)[order])[last] for each in ([1, -1, 0, 0], [0, 0, 1, -1]))
        self._full = np.concatenate([[0], np.cumsum((busy > 0) & (busy >= available))])

    def is_full(self, start_ms: float, end_ms: float) -> bool:
        """Whether all slots were in use at any time from start to just before end."""
        full, of = self._full_of(start_ms, end_ms)
        return of > 0 and full > 0

    def stays_full(self, start_ms: float, end_ms: float) -> bool:
        """Whether all slots were in use all the time from start to just before end."""
        full, of = self._full_of(start_ms, end_ms)
        return of > 0 and full == of

    def _full_of(self, start_ms: float, end_ms: float) -> tuple[int, int]:
        """Of the intervals between changes from start to end: how many were full, and how many there are."""
        if end_ms <= start_ms:
            return 0, 0
        first = max(int(np.searchsorted(self._moments, start_ms, side="right")) - 1, 0)
        last = int(np.searchsorted(self._moments, end_ms, side="left"))
        return (int(self._full[last] - self._full[first]), last - first) if last > first else (0, 0)
