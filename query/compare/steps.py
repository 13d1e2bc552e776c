"""The difference of two mean steps, split by cause.

A step's length is its critical path, and an operator's part of that is a product:

    path time = work × (time / work) × (path time / time)

As for stages (query.compare.causes), the logarithmic mean turns each factor into ms.  More work has a cause of its own
(a larger batch, more operators), as has more time for the same work (another accelerator, other numbers, a slower
host).  The last factor is overlap: an operator that hid behind others is on the path now.  Overlap alone lengthens
nothing, so its sum belongs to the causes that made operators longer in the same direction, as far as they did; what is
left of it is set against the causes in the other direction, because work that is hidden costs less than it takes.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from crystalperf.indexes.frozen import frozen
from crystalperf.query.compare.causes import log_mean, log_ratio, netted
from crystalperf.query.diagnose.comparer import OperatorAccount, OperatorPlace, StepAccount
from crystalperf.query.results import step_comparison
from crystalperf.query.results import step_parts as results
from crystalperf.query.results.comparison import OperatorChange, Part, StageChange
from crystalperf.query.results.kinds import Basis

Cause = str
Pair = tuple[OperatorAccount, OperatorAccount]

OFTEN = 0.02
"""Relative difference of an operator's number of calls up to which it ran as often."""

SHOWN = 5
"""Maximum operators that a part lists, those with the largest contributions."""

_COUNTED = ("device", "copy", "collective")
"""Places where an operator's number is that of its calls."""

_OF_OPERATORS = ("device", "host")
"""Places where an operator that only one side has is a change of the program."""

_OWN: Mapping[OperatorPlace, Cause] = {"collective": "communication", "input": "input-wait", "copy": "copies"}
"""Places of which all time on the path has one cause."""

_TINY_MS = 1e-6


@frozen
class StepSides:
    """Both sides' mean steps, and their operators in pairs; an operator that one side lacks takes no time there."""

    before: StepAccount
    after: StepAccount

    def pairs(self) -> list[Pair]:
        one, other = ({each.key: each for each in side.operators} for side in (self.before, self.after))
        return [
            (one.get(key) or _absent(other[key]), other.get(key) or _absent(one[key])) for key in sorted({*one, *other})
        ]

    @property
    def batch(self) -> float:
        """The logarithm of the ratio of batches; 0 if one is not known."""
        return log_ratio(self.before.batch or 0.0, self.after.batch or 0.0)

    @property
    def has_other_accelerator(self) -> bool:
        return bool(self.before.accelerator and self.after.accelerator) and (
            self.before.accelerator != self.after.accelerator
        )

    @property
    def has_other_precision(self) -> bool:
        return bool(self.before.precision and self.after.precision) and self.before.precision != self.after.precision


@dataclass
class _Sum:
    """ms of a cause: on the path, by operator; and `busy_ms`, what it does to the time of operators, hidden or not."""

    ms: float = 0.0
    busy_ms: float = 0.0
    by: dict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))


def pooled_step(accounts: Sequence[StepAccount], length_ms: float) -> StepAccount:
    """The mean of several runs' steps; its path sums to a length, ms."""
    found: dict[tuple[str, str], list[OperatorAccount]] = defaultdict(list)
    for account in accounts:
        for each in account.operators:
            found[each.key].append(each)
    whole = sum(each.path_ms for account in accounts for each in account.operators) / len(accounts)
    scale = length_ms / whole if whole > 0 else 1.0
    return replace(
        accounts[0],
        operators=tuple(_mean(each, len(accounts), scale) for each in found.values()),
        steps=sum(each.steps for each in accounts),
    )


def _mean(same: Sequence[OperatorAccount], runs: int, scale: float) -> OperatorAccount:
    """The mean of an operator over runs, of which some may not have it."""

    def mean(values: Iterator[float]) -> float:
        return sum(values) / runs

    work = [each.work for each in same if each.work is not None]
    return replace(
        same[0],
        path_ms=scale * mean(each.path_ms for each in same),
        time_ms=mean(each.time_ms for each in same),
        count=mean(each.count for each in same),
        bytes=mean(each.bytes for each in same),
        work=fmean(work) * len(same) / runs if len(work) == len(same) else None,
    )


def step_parts(sides: StepSides, least_ms: float) -> list[Part]:
    """The parts of the difference of two steps, without those below `least_ms`; their sum lacks only those."""
    sums, hidden_ms = _effects(sides)
    sums = _with_overlap(sums, hidden_ms)
    return [_part(cause, each, sides) for cause, each in sums.items() if abs(each.ms) >= max(least_ms, _TINY_MS)]


def compared_steps(sides: StepSides) -> step_comparison.StepComparison:
    """Both sides' steps with all operators."""
    operators = [
        step_comparison.ComparedOperator(
            one.name, one.place, one.count, other.count, one.time_ms, other.time_ms, one.path_ms, other.path_ms
        )
        for one, other in sides.pairs()
        if one.name
    ]
    operators.sort(
        key=lambda each: (-abs(each.after_path_ms - each.before_path_ms), -abs(each.after_ms - each.before_ms))
    )
    return step_comparison.StepComparison(_side(sides.before), _side(sides.after), tuple(operators))


def _side(account: StepAccount) -> step_comparison.StepSide:
    return step_comparison.StepSide(
        account.steps, account.batch, account.accelerator, account.precision, account.processes
    )


def _absent(other: OperatorAccount) -> OperatorAccount:
    return replace(other, path_ms=0.0, time_ms=0.0, count=0.0, work=0.0, bytes=0.0)


def _effects(sides: StepSides) -> tuple[dict[Cause, _Sum], float]:
    """The effects of the causes, and the sum of overlap, ms."""
    sums: dict[Cause, _Sum] = defaultdict(_Sum)
    hidden_ms = 0.0
    for one, other in sides.pairs():
        change_ms = other.path_ms - one.path_ms
        if (own := _OWN.get(one.place)) is not None:
            _add(sums[own], one, change_ms, change_ms)
            continue
        if min(one.time_ms, other.time_ms) <= 0:
            replaced = one.place == "device" and sides.has_other_precision
            cause = "operators" if one.place in _OF_OPERATORS and not replaced else _of_rate(sides, one.place)
            _add(sums[cause], one, change_ms, other.time_ms - one.time_ms)
            continue
        longer = log_ratio(one.time_ms, other.time_ms)
        path = log_mean(one.path_ms, other.path_ms) if min(one.path_ms, other.path_ms) > 0 else 0.0
        busy = log_mean(one.time_ms, other.time_ms)
        for cause, share in _factors(sides, one, other, longer):
            _add(sums[cause], one, path * share, busy * share)
        hidden_ms += change_ms - path * longer
    return sums, hidden_ms


def _add(to: _Sum, operator: OperatorAccount, ms: float, busy_ms: float) -> None:
    to.ms += ms
    to.busy_ms += busy_ms
    to.by[operator.key] += ms


def _factors(
    sides: StepSides, one: OperatorAccount, other: OperatorAccount, longer: float
) -> Iterator[tuple[Cause, float]]:
    """The causes of an operator's longer time, as logarithms that sum to `longer`."""
    calls = log_ratio(one.count, other.count) if one.place in _COUNTED else 0.0
    batch = sides.batch if one.grows else 0.0
    rate = "precision" if one.unit != other.unit and sides.has_other_precision else _of_rate(sides, one.place)
    if one.work and other.work and bool(one.unit) == bool(other.unit):
        work = log_ratio(one.work, other.work)
        if not sides.has_other_precision:  # numbers of half the size would hide a batch of twice the size
            batch = math.copysign(min(abs(batch), abs(work)), batch) if batch * work > 0 else 0.0
        yield "batch", batch
        yield ("operators" if calls * (work - batch) > 0 and abs(calls) > OFTEN else _of_shapes(sides)), work - batch
        yield rate, longer - work
        return
    # Twice the examples in 1.5 times the time are a larger batch, not also faster operators.
    grown, left = netted(batch, longer - batch)
    yield "batch", grown
    if rate != "precision" and abs(calls) > OFTEN:
        more, left = netted(calls, left - calls)
        yield "operators", more
    yield rate, left


def _of_shapes(sides: StepSides) -> Cause:
    """The cause of more work for the same calls: numbers of half the size move half the bytes."""
    return "precision" if sides.has_other_precision else "shapes"


def _of_rate(sides: StepSides, place: OperatorPlace) -> Cause:
    """The cause of more time for the same work."""
    if place not in ("device", "gap"):
        return "host-time"
    if sides.has_other_accelerator:
        return "accelerator"
    return "precision" if sides.has_other_precision else "kernel-time"


def _with_overlap(sums: Mapping[Cause, _Sum], hidden_ms: float) -> dict[Cause, _Sum]:
    """The causes with overlap: see the module's description."""
    found = dict(sums)
    left_ms = hidden_ms
    room = {
        cause: each.busy_ms - each.ms
        for cause, each in found.items()
        if each.busy_ms * hidden_ms > 0 and (each.busy_ms - each.ms) * hidden_ms > 0
    }
    whole_ms = sum(room.values())
    if whole_ms:
        taken_ms = math.copysign(min(abs(whole_ms), abs(left_ms)), left_ms)
        for cause, ms in room.items():
            found[cause] = _plus(found[cause], taken_ms * ms / whole_ms)
        left_ms -= taken_ms
    against = {cause: each.ms for cause, each in found.items() if each.ms * left_ms < 0}
    whole_ms = sum(against.values())
    if whole_ms:
        taken_ms = math.copysign(min(abs(whole_ms), abs(left_ms)), left_ms)
        for cause, ms in against.items():
            found[cause] = _plus(found[cause], taken_ms * ms / whole_ms)
        left_ms -= taken_ms
    found["overlap"] = _Sum(left_ms)
    return found


def _plus(each: _Sum, ms: float) -> _Sum:
    return replace(each, ms=each.ms + ms)


# Parts ----------------------------------------------------------------------------------------------------------------

_BASIS: Mapping[Cause, Basis] = {"communication": "measured", "input-wait": "measured", "copies": "measured"}


def _part(cause: Cause, found: _Sum, sides: StepSides) -> Part:
    """A cause with its evidence."""
    base = found.ms, _BASIS.get(cause, "modelled"), _largest(found)
    before, after = sides.before, sides.after
    if cause == "batch":
        return results.ChangedBatch(*base, before.batch or 0.0, after.batch or 0.0)
    if cause == "accelerator":
        return results.ChangedAccelerator(
            *base, before.accelerator or "", after.accelerator or "", *_time(sides, "device")
        )
    if cause == "precision":
        return results.ChangedPrecision(*base, before.precision or "", after.precision or "", *_time(sides, "device"))
    if cause == "kernel-time":
        return results.KernelTime(*base, *_time(sides, "device"))
    if cause == "operators":
        return results.ChangedOperators(*base, _changed(found, sides))
    if cause == "shapes":
        return results.ChangedShapes(*base, _work_ratio(found, sides))
    if cause == "host-time":
        return results.HostTime(
            *base, *(sum(each) for each in zip(_time(sides, "host"), _time(sides, "program"), strict=True))
        )
    if cause == "communication":
        bytes_moved = _sums(sides, "collective", "bytes")
        return results.Communication(
            *base, *_sums(sides, "collective", "path_ms"), *bytes_moved, before.processes, after.processes
        )
    if cause == "input-wait":
        return results.LoaderWait(*base, *_sums(sides, "input", "path_ms"))
    if cause == "copies":
        return results.Copies(*base, *_sums(sides, "copy", "path_ms"))
    return results.Overlap(*base, *(sum(each.time_ms for each in side.operators) for side in (before, after)))


def _time(sides: StepSides, place: OperatorPlace) -> tuple[float, float]:
    return _sums(sides, place, "time_ms")


def _sums(sides: StepSides, place: OperatorPlace, name: str) -> tuple[float, float]:
    one, other = (
        sum(getattr(each, name) for each in side.operators if each.place == place)
        for side in (sides.before, sides.after)
    )
    return one, other


def _largest(found: _Sum) -> tuple[StageChange, ...]:
    """The operators with the largest contributions."""
    ranked = sorted(found.by.items(), key=lambda each: (-abs(each[1]), each[0]))
    return tuple(StageChange(name, name, name, ms) for (_, name), ms in ranked[:SHOWN] if name and ms)


def _changed(found: _Sum, sides: StepSides) -> tuple[OperatorChange, ...]:
    """The operators of another number, the largest contribution first, each name once; numbers are of ten steps."""
    counts = {one.key: (one.count, other.count) for one, other in sides.pairs()}
    ranked = {key[1]: key for key in sorted(found.by, key=lambda key: abs(found.by[key]))}
    return tuple(
        OperatorChange("", key[1], round(10 * counts[key][0]), round(10 * counts[key][1]))
        for key in reversed(ranked.values())
        if key[1] and (key[0] in _COUNTED or 0.0 in counts[key]) and counts[key][0] != counts[key][1]
    )


def _work_ratio(found: _Sum, sides: StepSides) -> float:
    """How many times as much work the operators do, weighted by their contributions."""
    weights = [
        (abs(found.by[one.key]), log_ratio(one.work, other.work))
        for one, other in sides.pairs()
        if one.key in found.by and one.work and other.work
    ]
    whole = sum(weight for weight, _ in weights)
    return math.exp(sum(weight * ratio for weight, ratio in weights) / whole) if whole > 0 else 1.0
