"""What Python did on a thread between its operators: its innermost function at each moment, and what that is on.

A function of C that hands its thread to a device says so by its name (indexes/device_apis.toml).  Any other is taken
to compute, unless the label of the function of Python that called it tells something else.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from crystalperf.indexes.resources import CPU
from crystalperf.query.frameworks.ml.pytorch.kineto import SHORTEST_US, Process, Thread
from crystalperf.query.frameworks.ml.pytorch.names import UNNAMED, Frame, device_of_c, frame_of, is_wait
from crystalperf.query.frameworks.ml.training.nesting import innermost
from crystalperf.query.frameworks.ml.training.program import Operation

NAMED_SHARE = 0.01
"""A function that took more than this share of all that is traced of its thread is an operator of its own."""


_OF_PROCESSES = re.compile(r"(?:^|/)(?:subprocess|multiprocessing/connection)\.py$")
"""Files whose functions read and write pipes: what is at the other end takes that time, and no disk."""

_OF_STREAMS = re.compile(r"(?:^|/)tqdm/\w+\.py$")
_LOGS = re.compile(r"(?:^|/)logging/__init__\.py$")
"""Files whose functions write to what a program was started with; logging into a file is two functions deep there."""

_OF_DESCRIPTORS = re.compile(r"<built-in function (?:read|write)>")

_DISPATCHES = re.compile(r"/torch/_ops\.py$")
"""A file whose functions call any operator, which computes: what their labels say is of no one of these."""

_OF_LOCKS = re.compile(r"(?:^|/)threading\.py$")
"""A file whose functions wait for whoever called them."""


@dataclass(frozen=True)
class Part:
    """What a thread does between two operators: the operator that this counts as, where it runs Python and where it
    waits there; the kind of the latter, and the name of the instance."""

    operator: str
    waiting: str
    waiting_kind: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Function:
    """A function of Python that ran on a thread, ms."""

    start_ms: float
    end_ms: float
    name: str


@dataclass(frozen=True, slots=True)
class Doing:
    """From when to when a thread was in a function and in no other within it, ms.

    `place` is that function, or the one of Python that called it; of a wait the one that asked for it.  `resource` is
    what a function of C hands the thread to; of another, `function` is the one whose label may tell it.
    """

    start_ms: float
    end_ms: float
    place: str | None
    resource: str | None = None
    function: Frame | None = None
    waits: bool = False


class Python:
    """What a thread's Python did, as far as the trace tells."""

    def __init__(self, process: Process, thread: Thread) -> None:
        ran = (
            Function(process.ms(each.start), process.ms(each.end), each.name)
            for each in (*thread.functions, *thread.library)
            if each.end - each.start >= SHORTEST_US
        )
        self._doing = [_doing(within, start, end) for within, start, end in innermost(ran)]
        self._starts = [each.start_ms for each in self._doing]

    def between(self, device: str, start_ms: float, end_ms: float, part: Part) -> Iterator[Operation]:
        """The operations of a span in which a thread ran nothing but Python."""
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
    """What a thread did within functions, the outermost first."""
    functions = [each.name for each in reversed(within)]
    known = takewhile(lambda each: each != UNNAMED, functions)  # who called it did not do what it did
    frames = [(each, frame) for each in known if (frame := frame_of(each)) is not None]
    place, frame = frames[0] if frames else (None, None)
    if is_wait(functions[0]) or _is_piped(functions[0], [each for _, each in frames]):
        asked = next((each for each, of in frames if not _OF_LOCKS.search(of.file)), place)
        return Doing(start_ms, end_ms, asked, waits=True)
    if (on := device_of_c(functions[0])) is not None:
        return Doing(start_ms, end_ms, place, on)
    tells = frame is not None and not _DISPATCHES.search(frame.file)
    return Doing(start_ms, end_ms, place, function=frame if tells else None)


def _operation(device: str, start_ms: float, end_ms: float, part: Part, doing: Doing) -> Operation:
    if doing.waits:
        frame = frame_of(doing.place) if doing.place is not None else None
        name = part.name or (_told(frame) if frame is not None else "")
        return Operation(device, start_ms, end_ms, part.waiting, name, kind=part.waiting_kind, place=doing.place)
    return Operation(
        device, start_ms, end_ms, part.operator, part.name, likely=doing.resource or CPU, kind="python",
        place=doing.place, function=doing.function,
    )  # fmt: skip


def _is_piped(function: str, frames: Sequence[Frame]) -> bool:
    """Whether a function of C that frames called, the innermost first, reads or writes a pipe."""
    if not frames or (device_of_c(function) is None and _OF_DESCRIPTORS.match(function) is None):
        return False
    if _LOGS.search(frames[0].file):
        return sum(each.name == "emit" and _LOGS.search(each.file) is not None for each in frames) == 1
    return any(each.search(frames[0].file) for each in (_OF_PROCESSES, _OF_STREAMS))


def _told(frame: Frame) -> str:
    """A function with its file, and with its line where others have its name."""
    line = f":{frame.line}" if frame.name.startswith("<") and frame.name != "<module>" else ""
    folder, _, file = frame.file.rpartition("/")
    if file == "__init__.py" and folder:  # every package has one
        file = f"{folder.rpartition('/')[2]}/{file}"
    return f"{frame.name}{line} ({file})"


def named(operations: Sequence[Operation]) -> list[Operation]:
    """A thread's operations, where functions that took much of its time are operators of their own."""
    took: dict[tuple[str, str], float] = defaultdict(float)
    for each in operations:
        if each.kind != "op" and each.place is not None:
            took[each.operator, each.place] += each.end_ms - each.start_ms
    whole_ms = operations[-1].end_ms - operations[0].start_ms if operations else 0.0
    names = {
        (operator, place): f"{operator}: {_told(frame)}"
        for (operator, place), ms in took.items()
        if ms > NAMED_SHARE * whole_ms and (frame := frame_of(place)) is not None
    }
    return [
        replace(each, operator=names[key])
        if each.kind != "op" and (key := (each.operator, each.place or "")) in names
        else each
        for each in operations
    ]
