"""Collectives of several processes: which belong together, how long each process waited for the others.

No profiler gives one a name that all processes share, so they are joined by their order: the first all_reduce of a
process belongs to the first of each other.  Bytes move once the last process is there; before, the others wait for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from query.frameworks.training.lanes import Lane, Signal
from query.frameworks.training.program import Operation

CONTRADICTORY = 0.1
"""Share of collectives that ended somewhere before they could begin, from which clocks are taken to be apart."""


@dataclass(slots=True)
class Collective:
    """One process' part in a collective: `lane` it is on, `process`, and what the process did just before it.

    `key` is what tells it from others of its process that run beside it.  `launcher` is a lane and a moment on it.
    """

    lane: int
    process: str
    key: str
    operation: Operation
    launcher: tuple[int, float] | None = None


def rounds(found: Sequence[Collective]) -> list[list[Collective]]:
    """The parts of each collective, one of each process, as far as all processes have as many."""
    by_key: dict[str, dict[str, list[Collective]]] = {}
    for each in sorted(found, key=lambda one: one.operation.start_ms):
        by_key.setdefault(each.key, {}).setdefault(each.process, []).append(each)
    joined = []
    for of_process in by_key.values():
        if len({len(each) for each in of_process.values()}) == 1:
            joined += [list(each) for each in zip(*of_process.values(), strict=True)]
    return joined


def shifts(found: Sequence[Collective]) -> dict[str, float]:
    """What to add to the times of each process so that no collective ends before all were there, ms."""
    joined = [each for each in rounds(found) if len(each) > 1]
    wrong = [each for each in joined if min(one.operation.end_ms for one in each) < _began(each)]
    if not joined or len(wrong) <= CONTRADICTORY * len(joined):
        return {}
    first = joined[0][0].process
    apart: dict[str, list[float]] = {}
    for parts in joined:
        ends = {each.process: each.operation.end_ms for each in parts}
        for process, end in ends.items():
            if first in ends:
                apart.setdefault(process, []).append(ends[first] - end)
    return {process: median(each) for process, each in apart.items() if process != first}


def _began(parts: Sequence[Collective]) -> float:
    return max(each.operation.start_ms for each in parts)


def joined(found: Sequence[Collective], lanes: Sequence[Lane]) -> tuple[list[Signal], list[Mapping[str, Any]]]:
    """Signals to collectives from what each process did before, and what they were, for the raw table.

    A part of a process that waited for others begins when the last was there.
    """
    signals: list[Signal] = []
    told: list[Mapping[str, Any]] = []
    for parts in rounds(found):
        began = _began(parts)
        for each in parts:
            mine = each.operation
            arrived = mine.start_ms
            if arrived < began < mine.end_ms:
                mine.start_ms = began
            told.append(
                {
                    "name": mine.operator,
                    "worker_id": lanes[each.lane].device,
                    "bytes": mine.bytes,
                    "arrived_ms": arrived,
                    "began_ms": mine.start_ms,
                    "ended_ms": mine.end_ms,
                }
            )
            for other in parts:
                if other.launcher is not None and other.launcher[1] <= mine.start_ms + 1e-9:
                    lane, moment = other.launcher
                    signals.append(Signal(lane, moment, each.lane, mine.start_ms, "collective"))
    return signals, told
