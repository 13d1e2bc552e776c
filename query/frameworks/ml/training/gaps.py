"""Gaps between the operations of a thread that calls operators: Python, as long as nothing else shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from crystalperf.query.frameworks.ml.training.lanes import CLOSE_MS, Lane
from crystalperf.query.frameworks.ml.training.program import Operation, Step

PYTHON = "Python"
"""The operator of a thread's time between two operators."""

BETWEEN = "between operators"
"""The operator of a longer gap without recorded activity: it may compute, read, sleep or wait."""

NOTICEABLE_GAP_MS = 1.0
"""Gaps from this length on have a name of their own; shorter ones are the overhead of calling operators."""

PYTHON_GAP_MS = 40.0
"""Maximum gap between two operators that counts as Python's computing if the program's Python was not traced: under the
lab's quotas of 25 ms such gaps last up to 22 ms, because a process lacks a CPU in them.  A longer gap may be anything.
"""


def brief(device: str, start: float, end: float) -> Iterator[Operation]:
    """The gap between two operators of a program whose Python was not traced."""
    if end - start > PYTHON_GAP_MS:
        yield Operation(device, start, end, BETWEEN, kind="runtime")
    elif end - start >= NOTICEABLE_GAP_MS:
        yield Operation(device, start, end, BETWEEN, likely="cpu", kind="python")
    elif end > start:
        yield Operation(device, start, end, PYTHON, likely="cpu", kind="python")


def fill_idle(lane: Lane, others: Iterable[Lane], steps: Sequence[Step]) -> None:
    """Fill the parts of steps in which no lane has an operation with Python of the thread that marks the steps."""
    busy = sorted((each.start_ms, each.end_ms) for one in (lane, *others) for each in one.operations)
    found, place, until = list[Operation](), 0, float("-inf")
    for step in sorted(steps, key=lambda each: each.start_ms):
        begin = max(step.start_ms, until)
        while place < len(busy) and busy[place][0] < step.end_ms:
            start, end = busy[place]
            if start > begin + CLOSE_MS:
                found += brief(lane.device, begin, start)
            begin = max(begin, end)
            place += 1
        if step.end_ms > begin + CLOSE_MS:
            found += brief(lane.device, begin, step.end_ms)
        until = max(until, begin)
    lane.operations = sorted([*lane.operations, *found], key=lambda each: (each.start_ms, each.end_ms))
