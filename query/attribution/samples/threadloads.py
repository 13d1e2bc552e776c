"""CPU time of threads from jdk.ThreadCPULoad: exact user and system time, but measured only every ten seconds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from crystalperf.query.recordings import jfr
from crystalperf.query.recordings.jfr.merge import parse_period_ns
from crystalperf.query.trace.records import Columns, Floats, Ints, objects

PERIOD_NS = 10_000_000_000
"""Period of the measurements of threads if the recording does not state it: that of the JDK's settings."""

MIN_MEASURED = 0.5
"""Minimum share of a task's time that measurements of its threads cover for an extrapolation of its CPU time."""

TICK_NS = 100_000_000
"""Events of one measurement are within this time."""

SLACK = 1.1
"""Maximum CPU time of all threads over that of their process: the two are not measured at the same moment."""


def thread_loads(
    recording: jfr.Recording, worker_id: str, shift_ms: float, names: Sequence[str]
) -> tuple[Columns, NDArray[np.bool_]]:
    """Rows of `thread_loads` without tasks, and which rows have a known start; none if the recording does not state
    the number of processors.

    A share refers to the time since the last measurement, or since the thread started: the recorder measures threads
    once a period and at their end, and a thread that used less than a millisecond leaves no event.  If a thread ended
    before its first measurement, its start is unknown, and the row has a period before its end instead.
    """
    load, whole = recording.cpu_load, len(recording.cpu_load) if recording.processors else 0
    period_ns = parse_period_ns(recording.settings.get(("jdk.ThreadCPULoad", "period"), "")) or PERIOD_NS
    order = np.lexsort((load.time_ns[:whole], load.thread[:whole]))
    end_ns, thread = load.time_ns[order], load.thread[order]
    share = (load.user + load.system)[order].astype(np.float64)
    is_look, look = _looks(end_ns, period_ns)
    used = share * _processors(end_ns, share, is_look, look, recording, period_ns)
    follows = np.concatenate([[False], thread[1:] == thread[:-1]])[:whole]
    since_ns = np.where(follows, np.maximum(np.roll(end_ns, 1), end_ns - period_ns), end_ns - period_ns)
    rows: Columns = {
        "worker_id": objects([worker_id] * len(thread)),
        "thread": objects([names[each] for each in thread.tolist()]),
        "start_ms": since_ns / 1e6 + shift_ms,
        "end_ms": end_ns / 1e6 + shift_ms,
        "cpu_ms": used * (end_ns - since_ns) / 1e6,
    }
    return rows, follows | is_look


def _looks(end_ns: Ints, period_ns: int) -> tuple[NDArray[np.bool_], Ints]:
    """Whether each event belongs to a periodic measurement of all threads, and the number of the last of these."""
    if not len(end_ns):
        return np.zeros(0, dtype=np.bool_), end_ns
    phases, counts = np.unique((end_ns % period_ns) // TICK_NS, return_counts=True)
    first_ns = int(phases[np.argmax(counts)]) * TICK_NS - TICK_NS
    number, after_ns = (end_ns - first_ns) // period_ns, (end_ns - first_ns) % period_ns
    return after_ns < 3 * TICK_NS, number


def _processors(
    end_ns: Ints, share: Floats, is_look: NDArray[np.bool_], look: Ints, recording: jfr.Recording, period_ns: int
) -> Floats:
    """The number of processors that each share refers to, (events,): those of the JVM, by its container's quota.

    No event has that number, and a quota may come later.  But all threads together use no more than their process,
    whose load refers to the processors of the machine.  So it is the largest number for which the threads fit.
    """
    process, processors = recording.process_load, recording.processors
    cores = (process.user + process.system).astype(np.float64) * processors
    numbers = np.unique(look[is_look])
    if processors <= 1 or not len(numbers) or not len(process):
        return np.full(len(end_ns), float(processors))
    found = np.full(len(numbers), float(processors))
    for place, each in enumerate(numbers):
        rows = is_look & (look == each)
        last_ns, shares = int(end_ns[rows].max()), float(share[rows].sum())
        during = (process.time_ns > last_ns - period_ns) & (process.time_ns <= last_ns)
        if during.any() and shares > 0:
            found[place] = np.clip(np.floor(SLACK * float(cores[during].mean()) / shares), 1, processors)
    known: Floats = found[np.clip(np.searchsorted(numbers, look, side="right") - 1, 0, len(numbers) - 1)]
    return known
