"""Threads: their operators and calls, and the time between them.

The thread that trains is never idle: between its operators it runs Python or waits for its data.  If the trace has no
Python functions, a long gap may be anything.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from crystalperf.query.frameworks.ml.pytorch.kineto import Process, Thread
from crystalperf.query.frameworks.ml.pytorch.lanes import Built
from crystalperf.query.frameworks.ml.pytorch.loaders import OWN_BATCHES
from crystalperf.query.frameworks.ml.pytorch.names import mark_phase
from crystalperf.query.frameworks.ml.pytorch.outermost import Outermost, inputs
from crystalperf.query.frameworks.ml.pytorch.python import Part, Python, named
from crystalperf.query.frameworks.ml.training.gaps import PYTHON, brief
from crystalperf.query.frameworks.ml.training.lanes import Lane, Signal, end_in_time, filled, waits
from crystalperf.query.frameworks.ml.training.program import Operation

WAIT_FOR_INPUT = "DataLoader"
"""The operator of its time outside of other operators while it requests its next batch."""

WAITING_IN_PYTHON = "waiting in Python"
"""The operator of its time in a Python function that computes nothing."""

UNTRACED = "between calls"
"""The operator of a gap between two calls of the runtime, of a thread whose operators were not traced."""

RUNTIME_GAP_MS = 0.2
"""Maximum gap between two operators of a thread other than the main one that counts as its engine's own time."""


def as_operations(process: Process, thread: Thread, operators: Iterable[Outermost]) -> Iterator[Operation]:
    """The operations of a thread: its operators, and calls of the runtime outside of them."""
    for each in operators:
        yield Operation(
            process.label, process.ms(each.ran.start), process.ms(each.ran.end), each.operator, each.phase,
            likely="cpu", kind="op", module=each.module, place=each.place,
        )  # fmt: skip
    inside = [(each.ran.start, each.ran.end) for each in operators]
    starts = [start for start, _ in inside]
    for call in thread.calls:  # calls within an operator are its own time
        place = bisect_right(starts, call.start) - 1
        if place < 0 or inside[place][1] < call.end:
            yield Operation(
                process.label, process.ms(call.start), process.ms(call.end), call.name, "", likely="cpu",
                kind="runtime",
            )  # fmt: skip


def fill_main(
    built: Built,
    process: Process,
    thread: Thread,
    number: int,
    others: Sequence[Lane],
    polled: Mapping[float, Signal],
) -> None:
    """Fill the gaps between the main thread's operators: waiting for another thread, waiting for data, or Python."""
    lane = built.lanes[number]
    lane.operations = sorted(
        [*lane.operations, *_sentinels(process, lane)], key=lambda each: (each.start_ms, each.end_ms)
    )
    others = [each for each in others if each.releases == "any" and each.operations]
    lanes = {id(each): position for position, each in enumerate(built.lanes)}
    end_in_time(lane, others)
    waited = waits(lane, others)
    for _, end, which in waited:
        built.signals.append(Signal(lanes[id(others[which])], end, number, end, "waited for it"))
    holes = {begin: end for begin, end, _ in waited}
    for begin, signal in polled.items():
        if begin not in holes:
            holes[begin] = signal.target_ms
            built.signals.append(signal)
    synchronised = {each.target_ms for each in built.signals if each.target == number and each.why == "synchronize"}
    requests = sorted((process.ms(each.start), process.ms(each.end), each.name) for each in inputs(thread))

    traced = Python(process, thread) if thread.has_python else None
    in_gap = partial(traced.between, part=Part(PYTHON, WAITING_IN_PYTHON, "runtime")) if traced is not None else None
    python = in_gap or (brief if process.has_host else _untraced)

    def between(last: Operation, following: Operation) -> Iterator[Operation]:
        begin = holes.get(last.end_ms, last.end_ms)
        if following.start_ms in synchronised:
            return
        place = bisect_right(requests, (begin, float("inf"), ""))
        for start, end, name in requests[max(place - 1, 0) : place + 2]:
            start, end = max(start, begin), min(end, following.start_ms)
            if end > start:
                yield from python(lane.device, begin, start)
                yield from _asking(lane.device, start, end, name, traced)
                begin = end
        yield from python(lane.device, begin, following.start_ms)

    lane.operations = named(filled(lane.operations, between))
    lane.cuts = list(_phase_cuts(lane.operations, process, thread))


def _sentinels(process: Process, lane: Lane) -> Iterator[Operation]:
    """Operations without a length at the ends of steps, so that a step begins and ends with Python.

    None is within an operation, or within the wait for an accelerator that ends the last step.
    """
    moments = sorted({process.ms(moment) for _, start, end in process.steps for moment in (start, end)})
    starts = [each.start_ms for each in lane.operations]
    ended = max((each.end_ms for each in lane.operations), default=0.0)
    for moment in moments:
        place = bisect_left(starts, moment) - 1
        is_inside = place >= 0 and lane.operations[place].end_ms > moment
        if not is_inside and (moment <= ended or moment == moments[-1]):
            yield Operation(lane.device, moment, moment, PYTHON, kind="python", likely="cpu")


def _untraced(device: str, start: float, end: float) -> Iterator[Operation]:
    """The gap between two calls of the runtime, of a thread whose operators were not traced."""
    if end > start:
        yield Operation(device, start, end, UNTRACED, kind="runtime")


def _asking(device: str, start: float, end: float, mark: str, traced: Python | None) -> Iterator[Operation]:
    """A thread requests its next batch: it waits for its loader's workers, or produces the batch itself.

    If its Python was not traced, its activity is unknown.
    """
    name = mark.partition("#")[2] or mark
    if "_SingleProcess" in mark:
        if traced is None:
            yield Operation(device, start, end, OWN_BATCHES, name, kind="input")
        else:
            yield from traced.between(device, start, end, Part(OWN_BATCHES, OWN_BATCHES, "input", name))
    elif traced is None or "_MultiProcess" in mark:
        yield Operation(device, start, end, WAIT_FOR_INPUT, name, kind="input")
    else:  # within a mark of the program or of a data pipe, its waits are waits for the batch
        yield from traced.between(device, start, end, Part(PYTHON, WAIT_FOR_INPUT, "input", name))


def engine(last: Operation, following: Operation) -> Iterator[Operation]:
    """Short gaps of the threads of autograd's engine: its own time."""
    if following.start_ms - last.end_ms <= RUNTIME_GAP_MS and "collective" not in (last.kind, following.kind):
        yield Operation(last.device, last.end_ms, following.start_ms, "autograd engine", likely="cpu", kind="runtime")


def _phase_cuts(operations: Sequence[Operation], process: Process, thread: Thread) -> Iterator[float]:
    """Where one part of a step ends and the next begins."""
    marks = sorted(
        (process.ms(each.start), process.ms(each.end), found)
        for each in thread.marks
        if (found := mark_phase(each.name)) is not None
    )
    last = ""
    for each in operations:
        place = bisect_right(marks, (each.start_ms, float("inf"), "")) - 1
        inside = place >= 0 and marks[place][1] > each.start_ms
        now = (
            marks[place][2] if inside else "input" if each.kind == "input" else each.name if each.kind == "op" else last
        )
        if now not in (last, "communication"):
            if last:
                yield each.start_ms
            last = now
