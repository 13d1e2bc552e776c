"""What Python did on a thread between its operators: its innermost function at each moment, and what that is on.

A function of C that hands its thread to a device says so by its name (indexes/device_apis.toml).  Any other is taken
to compute, unless the label of the function of Python that called it tells something else.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from indexes.resources import CPU
from query.frameworks.pytorch.kineto import SHORTEST_US, Process, Thread
from query.frameworks.pytorch.names import device_of_c, frame_of
from query.frameworks.training.nesting import innermost
from query.frameworks.training.program import Operation

NAMED_SHARE = 0.01
"""A function that took more than this share of all that is traced of its thread is an operator of its own."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function of Python that ran on a thread, ms."""

    start_ms: float
    end_ms: float
    name: str


@dataclass(frozen=True, slots=True)
class Doing:
    """From when to when a thread was in a function and in no other within it, ms."""

    start_ms: float
    end_ms: float
    resource: str | None
    """That a function of C hands the thread to."""
    place: str | None
    """The function, or the one of Python that called it."""


class Python:
    """What a thread's Python did, as far as the trace tells."""

    def __init__(self, process: Process, thread: Thread, shift: float) -> None:
        ran = (
            Function(process.ms(each.start, shift), process.ms(each.end, shift), each.name)
            for each in (*thread.functions, *thread.library)
            if each.end - each.start >= SHORTEST_US
        )
        self._doing = [_doing(within, start, end) for within, start, end in innermost(ran)]
        self._starts = [each.start_ms for each in self._doing]

    def between(
        self, device: str, start_ms: float, end_ms: float, operator: str, name: str = ""
    ) -> Iterator[Operation]:
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
                yield Operation(device, now, begin, operator, name, likely=CPU, kind="python")
            yield Operation(
                device, begin, until, operator, name, likely=each.resource or CPU, kind="python", place=each.place,
                function=frame_of(each.place) if each.place is not None and each.resource is None else None,
            )  # fmt: skip
            now = until
        if now < end_ms:
            yield Operation(device, now, end_ms, operator, name, likely=CPU, kind="python")


def _doing(within: tuple[Function, ...], start_ms: float, end_ms: float) -> Doing:
    place = next((each.name for each in reversed(within) if frame_of(each.name) is not None), None)
    return Doing(start_ms, end_ms, device_of_c(within[-1].name), place)


def named(operations: Sequence[Operation]) -> list[Operation]:
    """A thread's operations, where functions that took much of its time are operators of their own."""
    took: dict[tuple[str, str], float] = defaultdict(float)
    for each in operations:
        if each.kind == "python" and each.place is not None:
            took[each.operator, each.place] += each.end_ms - each.start_ms
    whole_ms = operations[-1].end_ms - operations[0].start_ms if operations else 0.0
    names = {
        (operator, place): f"{operator}: {frame.name} ({frame.file.rpartition('/')[2]})"
        for (operator, place), ms in took.items()
        if ms > NAMED_SHARE * whole_ms and (frame := frame_of(place)) is not None
    }
    return [
        replace(each, operator=names[key]) if (key := (each.operator, each.place or "")) in names else each
        for each in operations
    ]
