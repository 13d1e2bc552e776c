"""Where units can run, and when all of that was in use."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

import numpy as np

from crystalperf.query.trace.records import Floats, Ints


@dataclass(frozen=True)
class Slots:
    """Where units can run.  Arrays of one length, a row per slot.

    `available_ms` is when its worker registered, `until_ms` when it was lost; `cpu_cores` is the CPU that the slot
    brings to its worker, infinite where the run knows no limit.
    """

    worker: Ints
    host: Ints
    available_ms: Floats
    until_ms: Floats
    cpu_cores: Floats

    def __len__(self) -> int:
        return len(self.worker)

    def cpu_limit(self) -> float:
        """The CPU, cores, of a slot whose worker is known to be at its limit (the median); infinite where none is."""
        known = self.cpu_cores[np.isfinite(self.cpu_cores)]
        return float(np.median(known)) if len(known) else np.inf

    def staying(self) -> Slots:
        """The same slots, each worker there until another came in its place, or to the end.

        Who goes first has the place that is taken first, so there are never more workers than there were at most.
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


class Use:
    """When units held all the slots that there were.

    Slots come and go with their workers.  Where there is none yet, and so no unit, there is nothing to be full.
    """

    def __init__(self, launch_ms: Floats, finish_ms: Floats, available_ms: Floats, until_ms: Floats) -> None:
        self._moments: Floats = np.unique(np.concatenate([launch_ms, finish_ms, available_ms, until_ms]))

        def open_at(start_ms: Floats, end_ms: Floats) -> Floats:
            started = np.searchsorted(np.sort(start_ms), self._moments, side="right")
            ended = np.searchsorted(np.sort(end_ms), self._moments, side="right")  # what ends there makes room
            return (started - ended).astype(np.float64)

        busy, there = open_at(launch_ms, finish_ms), open_at(available_ms, until_ms)
        self._full = np.concatenate([[0], np.cumsum((busy > 0) & (busy >= there))])

    def is_full(self, start_ms: float, end_ms: float) -> bool:
        """Whether that was so at any time from start to just before end."""
        full, of = self._full_of(start_ms, end_ms)
        return of > 0 and full > 0

    def stays_full(self, start_ms: float, end_ms: float) -> bool:
        """Whether that was so all the time from start to just before end."""
        full, of = self._full_of(start_ms, end_ms)
        return of > 0 and full == of

    def _full_of(self, start_ms: float, end_ms: float) -> tuple[int, int]:
        """Of the times between two moments in which something changed, how many were full, and how many there were."""
        if end_ms <= start_ms:
            return 0, 0
        first = max(int(np.searchsorted(self._moments, start_ms, side="right")) - 1, 0)
        last = int(np.searchsorted(self._moments, end_ms, side="left"))
        return (int(self._full[last] - self._full[first]), last - first) if last > first else (0, 0)
