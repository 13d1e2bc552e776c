"""When a worker's samples were taken, if a profile has their order and length, but not their start.

py-spy samples every thread at each tick with `--idle`, so the position of a sample in its process is a time since that
process was first seen.  The start is that under which a worker is in tasks while Python tasks run, and between tasks
while none do.  Of equally good starts it is the one with which the recording ends with the run, as workers do.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crystalperf.query.frameworks.spark.python.stages import PythonStage, running
from crystalperf.query.trace.records import Floats

BIN_MS = 50.0
MOST_BINS = 1 << 20
INSIDE = 0.9
"""The share of a worker's time in tasks that has to be while Python tasks run; otherwise its start is unknown."""

_NEARER = 1e-3
"""The weight of a bin of distance from the end of the run, against a bin of agreement."""


def start_ms(at_ms: Floats, busy_ms: Floats, stages: Sequence[PythonStage], until_ms: float) -> float | None:
    """The start of a worker's samples, ms since the start of the run; None if no start fits its tasks.

    Samples begin `at_ms` after the first one; `busy_ms` is the part of each that the worker was in a task.
    """
    length = int(at_ms[-1] / BIN_MS) + 1 if len(at_ms) else 0
    whole = int(until_ms / BIN_MS) + 1
    if not length or not busy_ms.sum() > 0 or whole + 2 * length > MOST_BINS:
        return None
    place = np.minimum((at_ms / BIN_MS).astype(np.int64), length - 1)
    busy = np.minimum(np.bincount(place, weights=busy_ms, minlength=length) / BIN_MS, 1.0)
    level = np.zeros(whole + 2 * length)
    level[length : length + whole] = running(stages, np.arange(whole, dtype=np.float64) * BIN_MS + BIN_MS / 2)
    most = level.max()
    if most <= 0:
        return None
    agreement = _correlated(2.0 * level / most - 1.0, 2.0 * busy - 1.0)
    starts = np.arange(len(agreement)) - length
    best = int(np.argmax(agreement - _NEARER * np.abs(starts + length - whole)))
    inside = level[best : best + length] > 0
    if busy[inside].sum() < INSIDE * busy.sum():
        return None
    return float(starts[best] * BIN_MS)


def _correlated(long: Floats, short: Floats) -> Floats:
    """The sum of products of `short` with `long` at each place in it where it fits."""
    size = 1 << (len(long) + len(short) - 1).bit_length()
    found: Floats = np.fft.irfft(np.fft.rfft(long, size) * np.conj(np.fft.rfft(short, size)), size)
    return found[: len(long) - len(short) + 1]
