"""What a call spends its time on, from the clocks of its runs and what it was blocked in.

A workload is run some times as it is, which gives wall clock, CPU time and time in the run queue of the calling thread.
The time a thread was off the processor without being ready to run is blocked time; it is divided among files, sockets
and other waits as the system calls were that strace or the JVM's recorder saw. What a call left to the kernel to write
later is disk time too: it is told by syncing the file system right after the call, and kept apart as `deferred`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from crystalperf.indexes.errors import InputError
from lab.measure.strace import Blocked


@dataclass(frozen=True, slots=True)
class Run:
    """One untraced run of a workload: the calling thread's clocks, milliseconds."""

    wall_ms: float
    cpu_ms: float
    queued_ms: float  # ready to run, but another thread had the processor
    deferred_ms: float  # what syncing the file system took right after


@dataclass(frozen=True, slots=True)
class Shares:
    """Of the time of a call without the run queue, plus the deferred writing; they sum to 1."""

    cpu: float
    disk: float
    net: float
    wait: float
    deferred: float  # the part of disk that came after the call

    def label(self) -> str:
        """The largest share's name."""
        return max(("cpu", "disk", "net", "wait"), key=lambda name: float(getattr(self, name)))


def shares(run: Run, blocked: Blocked) -> Shares:
    """Where a run's time went. Blocked time of which no traced call tells the kind counts as a wait."""
    off_ms = max(0.0, run.wall_ms - run.cpu_ms - run.queued_ms)
    known_ms = blocked.file_ms + blocked.socket_ms + blocked.wait_ms
    file_ms, socket_ms = (
        off_ms * each / known_ms if known_ms else 0.0 for each in (blocked.file_ms, blocked.socket_ms)
    )
    total_ms = run.cpu_ms + off_ms + run.deferred_ms
    if total_ms <= 0:
        raise InputError("a run that took no time cannot be divided; give its workload more to do")
    return Shares(
        run.cpu_ms / total_ms,
        (file_ms + run.deferred_ms) / total_ms,
        socket_ms / total_ms,
        max(0.0, off_ms - file_ms - socket_ms) / total_ms,
        run.deferred_ms / total_ms,
    )


def middle(runs: Sequence[Run]) -> Run:
    """The median of every clock: a run that another program disturbed does not count."""
    return Run(
        *(
            median(values)
            for values in zip(*((r.wall_ms, r.cpu_ms, r.queued_ms, r.deferred_ms) for r in runs), strict=True)
        )
    )


def middle_blocked(runs: Sequence[Blocked]) -> Blocked:
    """The median of every kind."""
    return Blocked(
        *(median(values) for values in zip(*((r.file_ms, r.socket_ms, r.wait_ms) for r in runs), strict=True))
    )
