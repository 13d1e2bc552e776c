"""The difference of two accounts, split by cause.

A stage's wall-clock time is that of its tasks over the slots that worked at a time:

    wall of a component = data × (task time of the component / data) / (slots × availability × use)

The logarithmic mean of both sides (LMDI: Ang, Energy Policy 33, 2005) turns the ratio of each factor into ms, and these
sum to the difference without a rest.  Each factor has a cause: more data, more time for the same data on a device or
for a reason, fewer slots, slots without a task.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from statistics import median

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.resources import OTHER
from crystalperf.query.compare.accounts import (
    COLLECTION,
    COMPUTE,
    COMPUTE_WAIT,
    REPEATED,
    STARTING,
    Account,
    StageAccount,
)
from crystalperf.query.compare.matching import Pair
from crystalperf.query.diagnose.comparer import Comparer, Effect
from crystalperf.query.results.comparison import SettingChange

SAME = 0.02
"""Relative difference of bytes up to which two stages read the same data."""

SKEWED = 1.25
"""The factor by which the largest task's share of bytes has to differ to explain idle slots."""

SPILLED_BYTES = 2**20
"""Minimum difference of spilled bytes that explains a difference of times."""

SLOWER = math.log(1.2)
"""Logarithm of the factor from which on the time of starting a task shows that CPUs are slower, or shared by more."""

SPLIT = math.log(2.0) + 1e-6
"""Logarithm of the factor beyond which more tasks for the same data explain more time of any kind."""

_TINY_MS = 1.0

_UNEXPLAINED = ("unexplained", "")

_OWN = (COMPUTE, COMPUTE_WAIT, COLLECTION, STARTING, OTHER)
"""Components that a worker of its own needs again when it replaces another."""


@frozen
class CauseEffect:
    """ms of one cause in one stage; `subject` distinguishes causes of one kind."""

    cause: str
    subject: str
    ms: float
    pair: Pair


@frozen
class Sides:
    """Both accounts, the framework's part, and the settings that differ."""

    before: Account
    after: Account
    comparer: Comparer
    settings: Sequence[SettingChange]

    def changed(self, effect: Effect) -> tuple[SettingChange, ...]:
        """The settings that differ and have an effect."""
        return tuple(each for each in self.settings if effect in self.comparer.effects(each.key))

    @cached_property
    def has_other_input(self) -> bool:
        return _differs(self.before.input_bytes, self.after.input_bytes)

    @cached_property
    def has_other_memory(self) -> bool:
        return _differs(self.before.memory_bytes or 0.0, self.after.memory_bytes or 0.0) or bool(self.changed("memory"))

    @cached_property
    def starting_change(self) -> float:
        """The logarithm of how much longer starting and ending a task takes: the median over the tasks of stages."""
        one, other = (
            sorted(stage.task_ms[STARTING] / stage.tasks for stage in each.stages if stage.task_ms[STARTING] > 0)
            for each in (self.before, self.after)
        )
        return log_ratio(median(one), median(other)) if one and other else 0.0

    @property
    def lost_after(self) -> float:
        """Workers lost, after less before."""
        return self.after.lost_workers - self.before.lost_workers


def effects(sides: Sides, pairs: Iterable[Pair]) -> list[CauseEffect]:
    """The effects of all causes in all stages, and those of waiting; they sum to the difference."""
    found = [each for pair in pairs for each in _of_pair(sides, pair)]
    waits = {*sides.before.wait_ms, *sides.after.wait_ms}
    for cause in sorted(waits):
        ms = sides.after.wait_ms.get(cause, 0.0) - sides.before.wait_ms.get(cause, 0.0)
        by_loss = cause == "no worker" and sides.lost_after * ms > 0
        found.append(CauseEffect("lost-workers" if by_loss else "waiting", "" if by_loss else cause, ms, (None, None)))
    return found


def same_plan(one: StageAccount, other: StageAccount, adapters: Iterable[str]) -> bool:
    """Whether two stages run the same operators, besides adapters."""
    return not ({*one.operators} ^ {*other.operators}) - {*adapters}


def _of_pair(sides: Sides, pair: Pair) -> Iterator[CauseEffect]:
    before, after = pair
    if before is None or after is None:
        only = before or after
        assert only is not None
        yield CauseEffect(
            _of_one_side(sides, only, before is None), "", only.wall_ms if before is None else -only.wall_ms, pair
        )
        return
    if not same_plan(before, after, sides.comparer.adapters):
        yield CauseEffect("plan", "", after.wall_ms - before.wall_ms, pair)
        return
    yield from _of_same(sides, before, after)


def _of_one_side(sides: Sides, stage: StageAccount, is_after: bool) -> str:
    """Whether a stage without a counterpart is due to another plan of the same query, or to other work."""
    own, other = (sides.after, sides.before) if is_after else (sides.before, sides.after)
    ms = stage.wall_ms if is_after else -stage.wall_ms
    if sides.lost_after * ms > 0 and own.first_loss_ms is not None and stage.end_ms > own.first_loss_ms:
        return "lost-workers"
    known = {each.operators for each in other.stages if each.operators}
    if stage.operators and stage.operators in known:
        return "work"
    name = own.scopes.get(stage.scope or "")
    return "plan" if name is not None and name in other.scopes.values() else "work"


def _of_same(sides: Sides, before: StageAccount, after: StageAccount) -> Iterator[CauseEffect]:
    """The effects in a stage that both sides have with the same plan."""
    pair = (before, after)
    data = log_ratio(before.read_bytes, after.read_bytes)
    tasks = log_ratio(before.tasks, after.tasks)
    slots = -log_ratio(sides.before.slots, sides.after.slots)
    there = -log_ratio(before.slots / sides.before.slots, after.slots / sides.after.slots)
    use = -log_ratio(before.use, after.use)
    slots, use = netted(slots, use)
    sums: dict[tuple[str, str], float] = {}

    def add(cause: tuple[str, str], ms: float) -> None:
        sums[cause] = sums.get(cause, 0.0) + ms

    for name in {**before.task_ms, **after.task_ms}:
        one, other = (each.wall_ms * each.task_ms.get(name, 0.0) / max(each.whole_ms, _TINY_MS) for each in pair)
        if name == REPEATED:
            add(("lost-workers" if sides.lost_after * (other - one) > 0 else "retries", ""), other - one)
            continue
        if min(one, other) <= 0:
            add(_of_component(sides, before, after, name, other - one), other - one)
            continue
        weight = log_mean(one, other)
        add(("slots", ""), weight * slots)
        add(("lost-workers" if sides.lost_after * there > 0 else "slots", ""), weight * there)
        add(_of_use(before, after, use), weight * use)
        grown = weight * (tasks if name == STARTING else data)
        # Twice the data that takes 1.5 times as long is more data, not also cheaper data.
        grown, rest = netted(grown, other - one - grown - weight * (slots + there + use))
        add(("tasks" if name == STARTING else "input" if sides.has_other_input else "data", ""), grown)
        add(_of_component(sides, before, after, name, rest), rest)
    largest = max(sums, key=lambda each: abs(sums[each]))
    rest_ms = sums.get(_UNEXPLAINED, 0.0)
    if rest_ms * sums[largest] < 0:  # time that was unmeasured before is measured now, or the other way round
        sums[largest] += sums.pop(_UNEXPLAINED)
    for (cause, subject), ms in sums.items():
        yield CauseEffect(cause, subject, ms, pair)


def _of_component(sides: Sides, before: StageAccount, after: StageAccount, name: str, ms: float) -> tuple[str, str]:
    """The cause of more or less time on a component for the same data."""
    more = log_ratio(before.tasks, after.tasks)
    split = more - log_ratio(before.read_bytes, after.read_bytes)
    if (
        min(abs(more), abs(split)) > SPLIT and more * ms > 0 and split * ms > 0
    ):  # each task has costs that do not depend on its data
        return "tasks", ""
    spilled = after.spill_bytes - before.spill_bytes
    if sides.lost_after * ms > 0 and name in _OWN and _ran_after_loss(sides, before, after):
        return "lost-workers", ""
    if abs(spilled) > SPILLED_BYTES and spilled * ms > 0 and name != STARTING:
        return ("memory" if sides.has_other_memory else "spill"), ""
    if name == COLLECTION:
        return ("memory" if sides.has_other_memory else "gc"), ""
    if name == COMPUTE:
        return ("version" if sides.before.version != sides.after.version else "cpu-time"), ""
    if name == COMPUTE_WAIT:
        return "cpu-wait", ""
    if name == STARTING:
        return "task-overhead", ""
    if name == OTHER:
        return _of_unmeasured(sides, before, after, ms), ""
    return "device-rate", name


def _of_unmeasured(sides: Sides, before: StageAccount, after: StageAccount, ms: float) -> str:
    """The cause of more or less time that no measurement attributes: CPU waits, other processes, reading.

    Starting a task needs a CPU and little else: if it takes longer in all stages, CPUs are slower or shared.
    """
    if sides.starting_change * ms > 0 and abs(sides.starting_change) > SLOWER:
        return "cpu-wait"
    if before.delegates and after.delegates:
        return "delegate"
    if before.input_bytes > 0 and after.input_bytes > 0:
        return "reading"
    return "unexplained"


def _ran_after_loss(sides: Sides, before: StageAccount, after: StageAccount) -> bool:
    """Whether a stage ended after a worker was lost, on the side that lost more."""
    run, stage = (sides.after, after) if sides.lost_after > 0 else (sides.before, before)
    return run.first_loss_ms is not None and stage.end_ms > run.first_loss_ms


def _of_use(before: StageAccount, after: StageAccount, use: float) -> tuple[str, str]:
    """The cause of slots with or without a task."""
    skew = log_ratio(_skew(before), _skew(after))
    return ("skew" if abs(skew) > math.log(SKEWED) and skew * use > 0 else "balance"), ""


def _skew(stage: StageAccount) -> float:
    return stage.longest_bytes / stage.mean_bytes if stage.mean_bytes > 0 else 1.0


def netted(one: float, other: float) -> tuple[float, float]:
    """Two effects, the smaller one set against the other if they are opposite: fewer slots, all of them in use."""
    if one * other >= 0:
        return one, other
    rest = one + other
    return (rest, 0.0) if abs(one) >= abs(other) else (0.0, rest)


def log_ratio(before: float, after: float) -> float:
    return math.log(after / before) if before > 0 and after > 0 else 0.0


def log_mean(one: float, other: float) -> float:
    """The logarithmic mean of two positive numbers."""
    return one if math.isclose(one, other, rel_tol=1e-9) else (other - one) / math.log(other / one)


def _differs(before: float, after: float) -> bool:
    return abs(after - before) > SAME * max(before, after)


def totals(found: Iterable[CauseEffect]) -> Mapping[tuple[str, str], list[CauseEffect]]:
    """The effects by cause and subject."""
    sums: dict[tuple[str, str], list[CauseEffect]] = {}
    for each in found:
        sums.setdefault((each.cause, each.subject), []).append(each)
    return sums
