"""Steps of ranks and of all ranks, and accelerators that fall behind the threads that mark the steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from crystalperf.indexes.frozen import frozen
from crystalperf.query.frameworks.ml.pytorch.kineto import Process
from crystalperf.query.frameworks.ml.pytorch.lanes import Built
from crystalperf.query.frameworks.ml.training.lanes import CLOSE_MS
from crystalperf.query.frameworks.ml.training.program import Step, numbered

_BEHIND_SHARE = 0.03
"""How much longer an accelerator took than its steps, as a share, above which marks do not show the step time."""


def of_process(process: Process, ranks: int) -> list[Step]:
    """Steps of one of `ranks` ranks, from its marks; a single rank's steps are of all."""
    return numbered(
        Step(number, process.label if ranks > 1 else "", process.ms(start), process.ms(end), f"step {number}")
        for number, start, end in sorted(process.steps, key=lambda each: each[1:])
    )


def common(of_ranks: Sequence[Step], ranks: int) -> list[Step]:
    """Steps of all ranks: from the first rank's start of the step to the first rank's start of the next."""
    by_number: dict[str, list[Step]] = {}
    for each in of_ranks:
        by_number.setdefault(each.number, []).append(each)
    found = [
        Step(number, "", min(e.start_ms for e in same), max(e.end_ms for e in same), f"step {number}")
        for number, same in by_number.items()
        if len({each.process for each in same}) == ranks
    ]
    found.sort(key=lambda each: each.start_ms)
    return [
        replace(each, end_ms=min(each.end_ms, following.start_ms))
        for each, following in zip(found, [*found[1:], replace(found[-1], start_ms=float("inf"))], strict=True)
    ] if found else []  # fmt: skip


@frozen
class Backlog:
    """An accelerator that fell behind the thread that marks a rank's steps, ms.

    It worked for these `steps` from `begin_ms`, when its earlier work had ended, to `end_ms`; when the last step was
    marked, `queued_ms` of that work was left.
    """

    process: str
    steps: int
    begin_ms: float
    end_ms: float
    queued_ms: float


def backlog(built: Built, steps: Sequence[Step], label: str) -> Backlog | None:
    """The backlog of an accelerator over a rank's steps; None if it did not grow since their start."""
    own = [each for each in steps if each.process in ("", label)]
    if not own:
        return None
    begin, end = min(each.start_ms for each in own), max(each.end_ms for each in own)
    of_rank = [each for number, kernels in built.launches if built.lanes[number].process == label for each in kernels]
    within = [each for each, launch in of_rank if launch is not None and begin <= launch[1] < end]
    if not within:
        return None
    last = max(each.end_ms for each in within)
    earlier = (each.end_ms for each, launch in of_rank if launch is None or launch[1] < begin)
    since = max(begin, max(earlier, default=begin))
    if last - since <= (1 + _BEHIND_SHARE) * (end - begin):
        return None
    return Backlog(own[0].process, len(own), since, last, last - end)


def with_backlogs(steps: Sequence[Step], behind: Iterable[Backlog]) -> list[Step]:
    """Steps by their marks; for each rank whose accelerator fell behind, one step of the mean length instead."""
    found = {each.process: each for each in behind}
    return [each for each in steps if each.process not in found] + [
        Step("", each.process, each.begin_ms, each.begin_ms + (each.end_ms - each.begin_ms) / each.steps)
        for each in found.values()
    ]


def keep_within(built: Built, steps: Sequence[Step], labels: Sequence[str], behind: Mapping[str, Backlog]) -> None:
    """Leave out operations before a rank's first step, and those that began or were launched after its last."""
    launches = dict(built.launches)
    for label in labels:
        own = [each for each in steps if each.process in ("", label)]
        if not own:
            continue
        begin, end = min(each.start_ms for each in own), max(each.end_ms for each in own)
        for number, lane in enumerate(built.lanes):
            if lane.process == label:
                until = end
                if label in behind:
                    ends = (
                        e.end_ms for e, launch in launches.get(number, ()) if launch is not None and launch[1] < end
                    )
                    until = max(end, max(ends, default=end))
                lane.operations = [each for each in lane.operations if begin - CLOSE_MS <= each.start_ms < until]
