"""Waits of threads for their accelerators: calls that synchronise, calls that return when their launch has ended, and
polling loops."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise

from crystalperf.indexes.frozen import frozen
from crystalperf.query.frameworks.ml.pytorch.kineto import Process, Ran, Thread
from crystalperf.query.frameworks.ml.pytorch.lanes import Built
from crystalperf.query.frameworks.ml.pytorch.names import FREES, INQUIRES, SETS_UP, SYNCHRONIZES
from crystalperf.query.frameworks.ml.pytorch.queue import Queue
from crystalperf.query.frameworks.ml.pytorch.streams import Done
from crystalperf.query.frameworks.ml.pytorch.threads import RUNTIME_GAP_MS
from crystalperf.query.frameworks.ml.training.lanes import CLOSE_MS, WAIT_MS, Signal, without
from crystalperf.query.frameworks.ml.training.program import Operation

WAITING = "waiting for the accelerator"
"""The operator of a thread, or of a stream for which it waits, while no traced operation runs on an accelerator."""

FREEING = "freeing memory of the accelerator"
"""The operator of a call that frees memory, beyond waiting for running work to end."""

STARTING = "starting the accelerator"
"""The operator of a call that loads a driver or a library."""

STARTING_MS = 10.0
"""A query or a creation that takes longer loads what it needs."""

SYNCHRONOUS_MS = 0.005
"""A shorter call of the runtime did not wait."""

SYNCHRONOUS_LAG_MS = 0.1
"""Maximum time between the end of a copy and the return of a call that waits for it, in either order."""

POLLED_MS = 0.2
"""A longer gap of the main thread may be a loop that polls until a kernel has written a result."""


@frozen
class Wait:
    """A call in which a thread waited for its accelerator, ms: until `done_ms` for traced work, then until
    `untraced_ms` for untraced work."""

    start_ms: float
    done_ms: float
    untraced_ms: float
    what: str
    """WAITING, FREEING or STARTING."""
    call: str
    operator: str
    """The operator around the call; empty if there is none."""


def cut_synchronous(
    built: Built,
    process: Process,
    thread: Thread,
    number: int,
    streams: Sequence[Done],
    of_call: Mapping[int, Done],
    queue: Queue,
) -> list[Wait]:
    """Cut the calls in which a thread waited for its accelerator, or started it, out of the thread; returns them.

    Time beyond the traced work is on no known resource.
    """
    lane = built.lanes[number]
    found: list[Wait] = []
    until = float("-inf")
    calls = sorted(thread.calls, key=lambda each: each.start)
    for place, call in enumerate(calls):
        start, end = process.ms(call.start), process.ms(call.end)
        if end - start < SYNCHRONOUS_MS or start < until:
            continue
        copy = None if call.correlation is None else of_call.get(call.correlation)
        what = _done_in(calls, place)
        if queue.frees_slot(call, start, end, _last(streams, end)):
            what, (done, _, stream) = "", _last(streams, end)
        elif "Memcpy" in call.name and copy is not None:
            done, began, stream = copy
            if began >= end or abs(end - done) > SYNCHRONOUS_LAG_MS:
                continue  # an asynchronous copy
            if not start < _last(streams, began)[0] >= began - WAIT_MS:
                start = began  # the copy did not wait: the time before it was the call's own
        elif what:
            done, _, stream = (start, start, 0) if SETS_UP.match(call.name) else _last(streams, end)
        elif copy is not None and start < copy[1] and copy[0] <= end and copy[0] - copy[1] > SYNCHRONOUS_MS:
            done, start, stream = copy  # it returned when its launch had ended: launches block
        else:
            continue
        done = min(done, end)
        if done > start + CLOSE_MS:
            built.signals.append(Signal(stream, done, number, done, "synchronize"))
        else:
            done = start
        untraced = end if what and end - done > SYNCHRONOUS_LAG_MS else done
        if untraced > start:
            around = next((each.operator for each in lane.operations if each.start_ms <= start < each.end_ms), "")
            found.append(Wait(start, done, untraced, what or WAITING, call.name, around))
            until = untraced
    if found:
        lane.operations = list(without(lane.operations, [(each.start_ms, each.untraced_ms) for each in found]))
        lane.operations += [
            _waiting(lane.device, each.done_ms, each.untraced_ms, each)
            for each in found
            if each.untraced_ms > each.done_ms
        ]
        lane.operations.sort(key=lambda each: each.start_ms)
    return found


def _done_in(calls: Sequence[Ran], place: int) -> str:
    """The operator for a call's time beyond its own work: waiting, freeing memory or starting; '' if none.

    Libraries that initialise free null pointers, which loads their kernels, and query the device.
    """
    call = calls[place]
    if FREES.search(call.name):
        around = (range(place - 1, -1, -1), range(place + 1, len(calls)))
        neighbours = (next((calls[one].name for one in way if not FREES.search(calls[one].name)), "") for way in around)
        return STARTING if any(INQUIRES.search(each) for each in neighbours) else FREEING
    if SETS_UP.match(call.name):
        return STARTING if call.end - call.start > STARTING_MS * 1e3 else ""
    return WAITING if SYNCHRONIZES.search(call.name) else ""


def _waiting(device: str, start: float, end: float, wait: Wait) -> Operation:
    name = wait.call if wait.operator in ("", wait.call) else f"{wait.operator}: {wait.call}"
    return Operation(device, start, end, wait.what, name, kind="runtime")


def fill_idle(built: Built, label: str, waits_of: Sequence[Wait]) -> None:
    """Add waits where accelerators were idle while a thread waited for its launches on them.

    Something untraced, such as another process, let the next kernel start.
    """
    own = [(number, kernels) for number, kernels in built.launches if built.lanes[number].process == label]
    every = sorted(
        (each.start_ms, each.end_ms, number, each.start_ms if launch is None else launch[1])
        for number, kernels in own
        for each, launch in kernels
    )
    ordered = sorted(waits_of, key=lambda each: each.start_ms)
    starts = [each.start_ms for each in ordered]
    until = float("inf")
    for start, end, number, launched in every:
        place = bisect_right(starts, start) - 1
        if start - until > RUNTIME_GAP_MS and place >= 0 and ordered[place].done_ms > start:
            begin = max(until, ordered[place].start_ms, launched if launched < start else until)
            if start - begin > RUNTIME_GAP_MS:
                lane = built.lanes[number]
                lane.operations.append(_waiting(lane.device, begin, start, ordered[place]))
        until = end if math.isinf(until) else max(until, end)


def _last(streams: Sequence[Done], moment: float) -> Done:
    """The last operation that ended at or before a moment."""
    place = bisect_right(streams, (moment + CLOSE_MS, float("inf"), 0)) - 1
    return streams[place] if place >= 0 else (float("-inf"), float("-inf"), 0)


def polled(built: Built, number: int) -> dict[float, Signal]:
    """The gaps of a thread in which it polled until a kernel had written a result, by their start.

    The thread makes no calls in the gap, continues as that kernel ends, and had launched nothing after it on its
    stream: DeepEP waits like this for the numbers of tokens in transit.
    """
    of_lanes = []
    for stream, kernels in built.launches:
        if built.lanes[stream].process == built.lanes[number].process:
            known = [(launch[1], each.end_ms) for each, launch in kernels if launch is not None]
            of_lanes.append((stream, known, [launched for launched, _ in known]))
    found = {}
    operations = sorted(built.lanes[number].operations, key=lambda each: each.start_ms)
    for last, following in pairwise(operations):
        begin, end = last.end_ms, following.start_ms
        if end - begin <= POLLED_MS:
            continue
        for stream, known, launched in of_lanes:
            place = bisect_right(launched, begin) - 1
            done = known[place][1] if place >= 0 else begin
            if done > begin and abs(done - end) <= SYNCHRONOUS_LAG_MS:
                moment = min(done, end)
                found[begin] = Signal(stream, moment, number, moment, "polled")
    return found
