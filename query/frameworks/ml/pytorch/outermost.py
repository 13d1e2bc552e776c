"""The outermost operators of a thread, each with its part of the step, its module and its call site."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from crystalperf.indexes.regex import regex
from crystalperf.query.frameworks.ml.pytorch.kineto import Ran, Thread
from crystalperf.query.frameworks.ml.pytorch.names import MODULE, mark_phase

BACKWARD = "autograd::engine::evaluate_function: "
_NAMESPACED = regex(r"[\w.]+::")


@dataclass(slots=True)
class Outermost:
    """An operator that no other contains, with its call site; µs."""

    ran: Ran
    phase: str
    module: str | None = None
    place: str | None = None

    @property
    def operator(self) -> str:
        return self.ran.name.removeprefix(BACKWARD)


def outermost(thread: Thread) -> list[Outermost]:
    """The outermost operators of a thread in order, with the marks around them."""
    every = sorted(
        [
            *((each.start, -each.end, 0, each) for each in thread.functions),
            *((each.start, -each.end, 1, each) for each in thread.marks),
            *((each.start, -each.end, 2, each) for each in thread.operators),
        ],
        key=lambda one: one[:3],
    )
    found: list[Outermost] = []
    wrappers = _wrappers(thread.operators)
    functions: list[Ran] = []
    marks: list[Ran] = []
    until = float("-inf")
    for start, _, kind, each in every:
        for stack in (functions, marks):
            while stack and stack[-1].end <= start:
                stack.pop()
        if kind == 0:
            functions.append(each)
        elif kind == 1:
            marks.append(each)
        elif start >= until and id(each) not in wrappers:
            until = each.end
            found.append(Outermost(each, phase(each.name, marks), _module(functions), _place(functions)))
    return found


def _wrappers(operators: Sequence[Ran]) -> set[int]:
    """Operators without a namespace that contain others: compiled regions, a program's own annotations."""
    starts = sorted(each.start for each in operators)
    found = set()
    for each in operators:
        if not _NAMESPACED.match(each.name):
            inside = bisect_right(starts, each.end) - bisect_right(starts, each.start)
            if inside > 0:
                found.add(id(each))
    return found


def phase(operator: str, marks: Sequence[Ran]) -> str:
    """The part of a step to which an operator belongs."""
    for each in reversed(marks):
        if (named := mark_phase(each.name)) is not None:
            return named
    if operator.startswith(BACKWARD) or "Backward" in operator:
        return "backward"
    return "communication" if operator.startswith(("c10d::", "nccl:")) else "forward"


def _module(functions: Sequence[Ran]) -> str | None:
    names = (each.name.removeprefix(MODULE) for each in reversed(functions) if each.name.startswith(MODULE))
    return next(names, None)


def _place(functions: Sequence[Ran]) -> str | None:
    return next((each.name for each in reversed(functions) if not each.name.startswith(MODULE)), None)


def inputs(thread: Thread) -> Iterator[Ran]:
    """The times in which a thread requested its next batch."""
    return (each for each in thread.marks if mark_phase(each.name) == "input")
