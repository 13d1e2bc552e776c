"""Dependencies of streams: launches of their kernels, and kernels of other streams.

A kernel waits for its launch and for the kernel before it on its stream.  It also waits for a kernel on another stream
if its own stream continued as that one ended.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial

from crystalperf.indexes.resources import CPU
from crystalperf.query.frameworks.ml.pytorch.lanes import Built, Launched
from crystalperf.query.frameworks.ml.training.lanes import CLOSE_MS, MAX_SEGMENTS, WAIT_MS, Signal, filled
from crystalperf.query.frameworks.ml.training.program import Operation

_GAP_MS = 0.008
"""The device's own gap between two kernels that were both launched early enough."""

_APART_SHARE = 0.005
"""Maximum time between the first and the last launch of a segment of kernels, as a share of the accelerators' traced
time, because a faster device would wait for the last launch."""

_QUEUED_MS = (0.0, 0.01, 0.05, 0.2, 1.0, 5.0, 25.0, 100.0, 1000.0)
"""Candidates for how long after the start of a segment its last kernel may be launched, in the order of trying."""


def events(built: Built) -> Iterator[Signal]:
    """Signals from one stream to another of the same process: an idle stream whose next kernel had been launched
    continued as soon as a kernel on the other had ended.  (Traces have these events only if configured.)"""
    ends: dict[str, list[tuple[float, int]]] = {}
    for number, kernels in built.launches:
        ends.setdefault(built.lanes[number].process, []).extend((each.end_ms, number) for each, _ in kernels)
    for of_process in ends.values():
        of_process.sort()
    for number, kernels in built.launches:
        others = ends[built.lanes[number].process]
        until = float("-inf")
        for each, launch in kernels:
            # A call that waits for its copy does not record when it launched the copy.
            waits_for_it = launch is not None and launch[1] >= each.start_ms and each.kind == "copy"
            ready = until if launch is None or waits_for_it else max(until, launch[1])
            if launch is not None and each.start_ms - ready > WAIT_MS:
                first = bisect_left(others, (max(ready, each.start_ms - WAIT_MS), len(built.lanes)))
                last = bisect_right(others, (each.start_ms + CLOSE_MS, len(built.lanes)))
                end, other = next((one for one in reversed(others[first:last]) if one[1] != number), (0.0, number))
                if other != number:
                    yield Signal(other, min(end, each.start_ms), number, each.start_ms, "event of another stream")
            until = each.end_ms


def queued(built: Built) -> list[Signal]:
    """Launches as signals: kernels that had all been launched when the first of them began wait for nothing else.

    If that gives too many segments, kernels launched soon after count too.  The last of these for which the stream had
    to wait begins a segment of its own, so that time lost to the thread is not attributed to the stream.
    """

    def signals(slack: float, apart: float) -> tuple[list[Signal], list[tuple[float, Signal]]]:
        late: list[tuple[float, Signal]] = []
        return [s for number, of in built.launches for s in _launch_signals(number, of, slack, apart, late)], late

    for slack in _QUEUED_MS:
        found, late = signals(slack, math.inf)
        if 2 * len(found) <= MAX_SEGMENTS:
            break
    times = [each for _, kernels in built.launches for each, _ in kernels]
    traced_ms = max((each.end_ms for each in times), default=0.0) - min((each.start_ms for each in times), default=0.0)
    finer, finer_late = signals(slack, max(slack, _APART_SHARE * traced_ms))
    if 2 * len(finer) <= MAX_SEGMENTS:
        found, late = finer, finer_late
    late.sort(key=lambda each: -each[0])
    found += [signal for _, signal in late[: MAX_SEGMENTS // 4]]
    for number, kernels in built.launches:
        lane = built.lanes[number]
        launched_ms = {each.start_ms: launch[1] for each, launch in kernels if launch is not None}
        alone = {each.target_ms for each in found if each.target == number}
        lane.operations = filled(lane.operations, partial(_launch_gap, launched_ms, alone, max(slack, _GAP_MS)))
    return found


def _launch_gap(
    launched_ms: Mapping[float, float],
    alone: Collection[float],
    longest_ms: float,
    last: Operation,
    following: Operation,
) -> Iterator[Operation]:
    """A gap within one segment of kernels: until the next launch the device waited for the launching thread.

    `launched_ms` is when each kernel was launched, by its start; `alone` are starts of kernels with a launch signal of
    their own.
    """
    start, end = last.end_ms, following.start_ms
    if end - start > longest_ms or following.kind == "collective" or following.start_ms in alone:
        return
    launched = min(max(launched_ms.get(end, start), start), end)
    if launched > start:
        yield Operation(last.device, start, launched, "waiting for launches", resource=CPU, kind="runtime")
    if end > launched:
        yield Operation(last.device, launched, end, "between kernels", kind="runtime")


def _launch_signals(
    number: int, kernels: Sequence[Launched], slack: float, apart: float, late: list[tuple[float, Signal]]
) -> Iterator[Signal]:
    """Signals to segments of kernels; adds to `late` the signal to each segment's last kernel for which its stream
    waited, and how long after the segment's start that kernel began."""
    begin, last = float("-inf"), None
    until, first = float("-inf"), float("inf")
    awaited: list[tuple[float, Signal]] = []
    for each, launch in kernels:
        is_late = launch is not None and (launch[1] > begin + slack or launch[1] > first + apart)
        if is_late or each.start_ms > until + max(slack, _GAP_MS) or each.kind == "collective":
            if last is not None:
                yield last
            late += awaited[-1:]
            begin, last, first = each.start_ms, None, float("inf")
            awaited.clear()
        elif launch is not None and until <= launch[1] <= each.start_ms:
            awaited.append((each.start_ms - begin, Signal(launch[0], launch[1], number, each.start_ms, "launch")))
        if launch is not None:
            first = min(first, launch[1])
        if launch is not None and (last is None or launch[1] > last.source_ms):
            last = Signal(launch[0], min(launch[1], begin), number, begin, "launch")
        until = each.end_ms
    if last is not None:
        yield last
    late += awaited[-1:]
