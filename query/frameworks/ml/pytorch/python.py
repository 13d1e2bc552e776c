"""Python on a thread between its operators: the innermost function at each moment, and its resource.

A C function's name shows on which device it blocks its thread (indexes/device_apis.toml).  Any other function counts as
computing, unless the label of the Python function that called it says otherwise.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.regex import regex
from crystalperf.indexes.resources import CPU
from crystalperf.query.frameworks.ml.pytorch.kineto import SHORTEST_US, Process, Thread
from crystalperf.query.frameworks.ml.pytorch.names import UNNAMED, Frame, device_of_c, frame_of, is_wait
from crystalperf.query.frameworks.ml.training.nesting import innermost
from crystalperf.query.frameworks.ml.training.program import Operation

NAMED_SHARE = 0.01
"""Minimum share of a thread's traced time for which a function becomes an operator of its own."""


_OF_PROCESSES = regex(r"(?:^|/)(?:subprocess|multiprocessing/connection)\.py$")
"""Files whose functions read and write pipes: their time is a wait for the other end, not for a disk."""

_OF_STREAMS = regex(r"(?:^|/)tqdm/\w+\.py$")
_LOGS = regex(r"(?:^|/)logging/__init__\.py$")
"""Files whose functions write to a program's output; those that log into a file call `emit` twice."""

_OF_DESCRIPTORS = regex(r"<built-in function (?:read|write)>")

_DISPATCHES = regex(r"/torch/_ops\.py$")
"""A file whose functions dispatch all operators, which compute: their labels fit no single operator."""

_OF_LOCKS = regex(r"(?:^|/)threading\.py$")
"""A file whose functions wait on behalf of their callers."""


@frozen
class Part:
    """Categories of a thread's time between two operators: the operator of Python that runs, the operator and kind of
    Python that waits, and the name of the instance."""

    operator: str
    waiting: str
    waiting_kind: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Function:
    """A Python function that ran on a thread, ms."""

    start_ms: float
    end_ms: float
    name: str


@dataclass(frozen=True, slots=True)
class Doing:
    """An interval in which a function was the innermost of its thread, ms.

    `place` is that function, or the Python function that called it; for a wait, the function that requested it.
    `resource` is the device of a C function; otherwise, `function` is the one whose label may say the resource.
    """

    start_ms: float
    end_ms: float
    place: str | None
    resource: str | None = None
    function: Frame | None = None
    waits: bool = False


class Python:
    """The recorded Python functions of a thread."""

    def __init__(self, process: Process, thread: Thread) -> None:
        ran = (
            Function(process.ms(each.start), process.ms(each.end), each.name)
            for each in (*thread.functions, *thread.library)
            if each.end - each.start >= SHORTEST_US
        )
        self._doing = [_doing(within, start, end) for within, start, end in innermost(ran)]
        self._starts = [each.start_ms for each in self._doing]

    def between(self, device: str, start_ms: float, end_ms: float, part: Part) -> Iterator[Operation]:
        """The operations of a span in which a thread ran only Python."""
        now = start_ms
        first = max(bisect_right(self._starts, start_ms) - 1, 0)
        for each in self._doing[first:]:
            if each.start_ms >= end_ms:
                break
            begin, until = max(each.start_ms, now), min(each.end_ms, end_ms)
            if until <= begin:
                continue
            if begin > now:
                yield Operation(device, now, begin, part.operator, part.name, likely=CPU, kind="python")
            yield _operation(device, begin, until, part, each)
            now = until
        if now < end_ms:
            yield Operation(device, now, end_ms, part.operator, part.name, likely=CPU, kind="python")


def _doing(within: Sequence[Function], start_ms: float, end_ms: float) -> Doing:
    """The activity of a thread within nested functions, the outermost first."""
    functions = [each.name for each in reversed(within)]
    known = takewhile(lambda each: each != UNNAMED, functions)  # a caller's label does not apply to an unnamed function
    frames = [(each, frame) for each in known if (frame := frame_of(each)) is not None]
    place, frame = frames[0] if frames else (None, None)
    if is_wait(functions[0]) or _is_piped(functions[0], [each for _, each in frames]):
        requester = next((each for each, of in frames if not _OF_LOCKS.search(of.file)), place)
        return Doing(start_ms, end_ms, requester, waits=True)
    if (on := device_of_c(functions[0])) is not None:
        return Doing(start_ms, end_ms, place, on)
    applies = frame is not None and not _DISPATCHES.search(frame.file)
    return Doing(start_ms, end_ms, place, function=frame if applies else None)


def _operation(device: str, start_ms: float, end_ms: float, part: Part, doing: Doing) -> Operation:
    if doing.waits:
        frame = frame_of(doing.place) if doing.place is not None else None
        name = part.name or (_label(frame) if frame is not None else "")
        return Operation(device, start_ms, end_ms, part.waiting, name, kind=part.waiting_kind, place=doing.place)
    return Operation(
        device, start_ms, end_ms, part.operator, part.name, likely=doing.resource or CPU, kind="python",
        place=doing.place, function=doing.function,
    )  # fmt: skip


def _is_piped(function: str, frames: Sequence[Frame]) -> bool:
    """Whether a C function reads or writes a pipe; `frames` are its callers, the innermost first."""
    if not frames or (device_of_c(function) is None and _OF_DESCRIPTORS.match(function) is None):
        return False
    if _LOGS.search(frames[0].file):
        return sum(each.name == "emit" and _LOGS.search(each.file) is not None for each in frames) == 1
    return any(each.search(frames[0].file) for each in (_OF_PROCESSES, _OF_STREAMS))


def _label(frame: Frame) -> str:
    """A function with its file, and with its line if its name is not unique."""
    line = f":{frame.line}" if frame.name.startswith("<") and frame.name != "<module>" else ""
    folder, _, file = frame.file.rpartition("/")
    if file == "__init__.py" and folder:  # every package has one
        file = f"{folder.rpartition('/')[2]}/{file}"
    return f"{frame.name}{line} ({file})"


def named(operations: Sequence[Operation]) -> list[Operation]:
    """A thread's operations, in which functions that took much of its time become operators of their own."""
    took: dict[tuple[str, str], float] = defaultdict(float)
    for each in operations:
        if each.kind != "op" and each.place is not None:
            took[each.operator, each.place] += each.end_ms - each.start_ms
    whole_ms = operations[-1].end_ms - operations[0].start_ms if operations else 0.0
    names = {
        (operator, place): f"{operator}: {_label(frame)}"
        for (operator, place), ms in took.items()
        if ms > NAMED_SHARE * whole_ms and (frame := frame_of(place)) is not None
    }
    return [
        replace(each, operator=names[key])
        if each.kind != "op" and (key := (each.operator, each.place or "")) in names
        else each
        for each in operations
    ]
