"""Collectives of several processes: which parts belong together, and how long each process waited for the others.

No profiler gives a collective a name that all processes share, so parts are matched by order: the first all_reduce of a
process in a process group belongs to the first of each other process in it.  Bytes move once the last process has
arrived; before, the others wait for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from crystalperf.query.frameworks.ml.training.lanes import WAIT_MS, Lane, Signal
from crystalperf.query.frameworks.ml.training.program import Exchange, Operation
from crystalperf.query.trace.records import Problems

CONTRADICTORY = 0.1
"""Share of collectives that ended in some process before they could begin, above which clocks count as skewed."""


@dataclass(slots=True)
class Collective:
    """One process's part in a collective; `lane` is the number of its lane.

    `key` separates it from concurrent collectives of its process: its kind and, if the trace names it, the process
    group that takes part.  `launcher` is the lane and the moment, ms, of the process's work just before it.
    """

    lane: int
    process: str
    key: str
    operation: Operation
    launcher: tuple[int, float] | None = None


def rounds(found: Sequence[Collective]) -> list[list[Collective]]:
    """The parts of each collective, one per process; keys whose number differs between processes are left out."""
    joined = []
    for of_process in _by_key(found).values():
        if len({len(each) for each in of_process.values()}) == 1:
            joined += [list(each) for each in zip(*of_process.values(), strict=True)]
    return joined


def _by_key(found: Sequence[Collective]) -> dict[str, dict[str, list[Collective]]]:
    """By key and process, in order of time."""
    by_key: dict[str, dict[str, list[Collective]]] = {}
    for each in sorted(found, key=lambda one: one.operation.start_ms):
        by_key.setdefault(each.key, {}).setdefault(each.process, []).append(each)
    return by_key


def report_uneven(found: Sequence[Collective], origin: str, problems: Problems) -> None:
    """Report collectives whose numbers differ between processes, because they are not matched."""
    for of_process in _by_key(found).values():
        counts = {process: len(each) for process, each in of_process.items()}
        fewest, most = min(counts, key=counts.__getitem__), max(counts, key=counts.__getitem__)
        if counts[fewest] != counts[most]:
            name = of_process[fewest][0].operation.operator
            meaning = (
                f"collectives whose number differs between processes, such as {name} ({counts[fewest]} on {fewest},"
                f" {counts[most]} on {most}): how long processes waited for each other in them is unknown"
            )
            problems.add("uneven collectives", "info", origin, name, meaning)


def shifts(found: Sequence[Collective]) -> dict[str, float]:
    """The shift of each process's times with which no collective ends before all processes have arrived, ms.

    A collective ends on all processes at once, so the skew of two clocks is the same at each collective.  If it varies
    by more than the time between two collectives does, these were not collectives of the same processes.
    """
    joined = [each for each in rounds(found) if len(each) > 1]
    wrong = [each for each in joined if not _possible(each)]
    if not joined or len(wrong) <= CONTRADICTORY * len(joined):
        return {}
    known: dict[str, float] = {}
    while left := [each for each in joined if any(one.process not in known for one in each)]:
        gaps: dict[str, list[float]] = {}
        ends: dict[str, list[float]] = {}
        for parts in left:
            known_ends = [one.operation.end_ms + known[one.process] for one in parts if one.process in known]
            for one in parts:
                if known_ends and one.process not in known:
                    gaps.setdefault(one.process, []).append(median(known_ends) - one.operation.end_ms)
                    ends.setdefault(one.process, []).append(one.operation.end_ms)
        if not gaps:  # the first process, or the first of a set without a common collective
            known[left[0][0].process] = 0.0
        known |= {process: _constant(each, ends[process]) for process, each in gaps.items()}
    return {process: shift for process, shift in known.items() if shift}


def _constant(gaps: Sequence[float], ends: Sequence[float]) -> float:
    """The median of gaps, or 0 if they vary by more than the time between ends does."""
    shift = median(gaps)
    lengths = [after - before for before, after in pairwise(ends)]
    if len(lengths) < 2:
        return shift
    usual = median(lengths)
    unsteady = median(abs(each - shift) for each in gaps)
    return shift if unsteady <= max(median(abs(each - usual) for each in lengths), WAIT_MS) else 0.0


def _possible(parts: Sequence[Collective]) -> bool:
    """Whether they can be one collective: none of them ended before all had begun."""
    return min(each.operation.end_ms for each in parts) >= _began(parts)


def _began(parts: Sequence[Collective]) -> float:
    return max(each.operation.start_ms for each in parts)


def joined(found: Sequence[Collective], lanes: Sequence[Lane]) -> tuple[list[Signal], list[Exchange]]:
    """Signals to collectives from each process's work before them, and the exchange of each process in them.

    The part of a process that waited for others begins when the last one arrived.  Parts that cannot belong to one
    collective waited for no other process.
    """
    signals: list[Signal] = []
    exchanges: list[Exchange] = []
    apart = [[each] for parts in rounds(found) if not _possible(parts) for each in parts]
    for parts in [*filter(_possible, rounds(found)), *apart]:
        began = _began(parts)
        for each in parts:
            own = each.operation
            arrived = own.start_ms
            if arrived < began < own.end_ms:
                own.start_ms = began
            exchanges.append(
                Exchange(own.operator, lanes[each.lane].device, own.bytes, arrived, own.start_ms, own.end_ms)
            )
            for other in parts:
                if other.launcher is not None and other.launcher[1] <= own.start_ms + 1e-9:
                    lane, moment = other.launcher
                    signals.append(Signal(lane, moment, each.lane, own.start_ms, "collective"))
    return signals, exchanges
