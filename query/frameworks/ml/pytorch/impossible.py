"""Events of a trace that other events contradict: left out, or their ends corrected.

Events in the order of a thread or stream bound each other: a stream runs one kernel after another, a call that
synchronises returns after the kernels launched before it, a step ends before the next one begins.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

from crystalperf.indexes.regex import regex
from crystalperf.query.frameworks.ml.pytorch.kineto import Process, Ran, Thread
from crystalperf.query.frameworks.ml.training import times

_TOLERANCE_US = 100.0
"""Clocks of a host and of its accelerator differ by less."""

_BEHIND_US = 1_000.0
"""Minimum time behind a single contradicting event."""

_WAITS_FOR_ALL = regex(r"(?:cuda|hip)DeviceSynchronize$|cuCtxSynchronize$")
_NAMESPACED = regex(r"[\w.]+::|(?:cuda|hip|cu)[A-Z]")


def correct(process: Process) -> None:
    """Leave out the events of other clocks, and end the overlong ones where later events show that they had ended."""
    _bound_streams(process)
    _bound_steps(process)
    _leave_out(process)


def _leave_out(process: Process) -> None:
    every = [each for events in process.events() for each in events]
    steps = process.steps
    if not every:
        return
    starts = [*(each.start for each in every), *(start for _, start, _ in steps)]
    ends = [*(each.end for each in every), *(end for _, _, end in steps)]
    window = times.window(starts, ends, per_ms=1e3)
    if window.first <= min(starts) and max(starts) <= window.last and max(ends) <= window.latest:
        return
    for events in process.events():
        events[:] = [each for each in events if window.holds(each.start, each.end, process.doubts)]
    process.steps = [each for each in steps if window.holds(each[1], each[2], process.doubts)]
    process.drop_empty()


def _bound_streams(process: Process) -> None:
    """End kernels before the later ones of their stream, and before the return of a call that waited for all."""
    calls = [call for thread in process.threads.values() for call in thread.calls]
    called: dict[int | None, float] = {call.correlation: call.start for call in calls if call.correlation is not None}
    alone = len({device for device, _ in process.streams}) == 1  # such a call waits for the kernels of one device
    waits = sorted((each.start, each.end) for each in calls if alone and _WAITS_FOR_ALL.match(each.name))
    for kernels in process.streams.values():
        kernels.sort(key=lambda each: each.start)
        for each, end in _ends(kernels, called, waits):
            each.end = max(end, each.start)
            process.doubts.counts["corrected"] += 1


def _ends(
    kernels: Sequence[Ran], called: Mapping[int | None, float], waits: Sequence[tuple[float, float]]
) -> Iterator[tuple[Ran, float]]:
    """The kernels of a stream, in order, that ended earlier than recorded, with their right ends."""
    starts, ends = [each.start for each in kernels], [each.end for each in kernels]
    contained = times.overlong([each.name for each in kernels], starts, ends, _TOLERANCE_US)
    for place, each in enumerate(kernels):
        following = starts[place + 1] if place + 1 < len(starts) else float("inf")
        returned = _returned(each, called, waits)
        overlaps = each.end > following + _TOLERANCE_US
        if overlaps and each.end > returned + _TOLERANCE_US:
            yield each, min(following, returned)
        elif place in contained and _launched_apart(each, kernels[place + 1]):
            yield each, contained[place]
        elif following == float("inf") and each.end - returned > max(_BEHIND_US, (returned - each.start) / 2):
            yield each, returned


def _launched_apart(one: Ran, other: Ran) -> bool:
    """Whether two operations are not of one graph, whose operations run concurrently."""
    return one.correlation is None or one.correlation != other.correlation


def _returned(kernel: Ran, called: Mapping[int | None, float], waits: Sequence[tuple[float, float]]) -> float:
    """When the first call returned that began after a kernel's launch and waited for all kernels; else infinite."""
    launched = called.get(kernel.correlation, kernel.start)
    place = bisect_left(waits, (launched, launched))
    return waits[place][1] if place < len(waits) and waits[place][1] > kernel.start else float("inf")


def _bound_steps(process: Process) -> None:
    """End steps, and the operators and calls of the thread that marks them, before the next step begins."""
    in_order = sorted(process.steps, key=lambda each: each[1])
    starts = [start for _, start, _ in in_order]
    bounded = []
    for place, (number, start, end) in enumerate(in_order):
        following = starts[place + 1] if place + 1 < len(starts) else float("inf")
        if end > following + _BEHIND_US and start < following:
            process.doubts.counts["corrected"] += 1
            end = following
        bounded.append((number, start, end))
    if bounded != in_order:
        process.steps = bounded
    thread = process.threads.get(process.main) if process.main is not None else None
    if thread is not None and len(starts) > 1:
        _bound_operators(process, thread, starts)


def _bound_operators(process: Process, thread: Thread, starts: Sequence[float]) -> None:
    for each in (*thread.operators, *thread.calls):
        place = bisect_left(starts, each.start + _TOLERANCE_US)
        lasts = place < len(starts) and each.start >= starts[0] and each.end > starts[place] + _BEHIND_US
        if lasts and _NAMESPACED.match(each.name):  # other names may be a program's own marks, of several steps
            each.end = starts[place]
            process.doubts.counts["corrected"] += 1
