"""What a changed world would make of a run (paper §5).

    1  replay the recorded units on the recorded slots: how far off is the model itself
    2  effects of the changed world, one after the other (query.whatif.effects): other slots, units cut anew, memory,
       speeds and bandwidths (Algorithms 1 and 2)
    3  replay again, slot order kept by the replay itself, until the sharing of devices and the schedule agree

The prediction is the recorded runtime times the ratio of the two replays, so that no change predicts no change.
Resource use is sequential within a unit (§4.1), speeds and bandwidths are constant (footnotes 9 and 10).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import numpy as np

from indexes.errors import NoAnswerError, SettingError
from indexes.resources import CPU, NET, Resource, with_other
from query.answers.values import GroupPrediction, Prediction
from query.frameworks import with_article
from query.model.execution import Execution
from query.model.keeping import anew, concerned, more_room, spared_share, with_room
from query.model.policy import Policy, chosen, policy_of
from query.model.records import Floats
from query.model.world import UNITS, World
from query.plugins import entries
from query.whatif.cold import NOTICED as COLD_NOTICED
from query.whatif.cold import Cold, cold
from query.whatif.effects import State, bandwidth, input, memory, operators, skew, slots, speed, unchanged
from query.whatif.effects.memory import BoundedError
from query.whatif.interval import MOST_APART, interval, variances
from query.whatif.limits import NOTICED, beyond, crosses_anew, lost, unseen, unseen_spills
from query.whatif.links import carried_bps
from query.whatif.path import path_parts
from query.whatif.priors import borrowed, waits_unknown
from query.whatif.replay import NoWorkerLeftError, Replayed, replay
from query.whatif.settle import Settled, settled
from query.whatif.sharing import Beside
from query.whatif.transfers import MODEL, Physics
from query.whatif.waves import sequential_limits

ROOM_KNOWN = 1.15
"""What workers have room for is known within this factor (docs/model.md)."""

NARROW = 1.25
"""Bounds that are no farther apart, most over least, make an answer: a usual range is wider."""

ENDS: tuple[Literal["best"], Literal["worst"]] = ("best", "worst")


@dataclass(frozen=True)
class Unchanged:
    """The recorded units replayed on the recorded slots: where every question about a scope starts."""

    replayed: Replayed
    limits: list[int | None]
    """Per group the units it may run at a time, see sequential_limits()."""
    policy: Policy
    """How the framework gave out slots."""
    beside: Beside
    """Which units ran beside each other."""
    first: Cold | None
    """What it costs units to be the first on their worker; None where none is (cold())."""
    carried_bps: Callable[[], float | None]
    """What the network of a host carried at least, bytes a second; None where nothing tells."""
    lent: Callable[[], tuple[Execution, tuple[str, ...]]]
    """The scope with what its log leaves open shared out, and how: see borrowed()."""


def replay_unchanged(execution: Execution) -> Unchanged:
    """Replay a scope as it was recorded; how far it is off is the model's own error."""
    units, policy = execution.units, policy_of(execution)
    limits = sequential_limits(execution, policy)
    slots = execution.slots
    try:
        replayed = replay(execution.dag, units, units.duration_ms, slots, policy, limits)
    except NoWorkerLeftError:  # the log lacks one, or the replay is a little longer than the run
        slots = slots.staying()
        replayed = replay(execution.dag, units, units.duration_ms, slots, policy, limits)
    beside = Beside(slots, replayed)
    carried, lent = cache(lambda: carried_bps(execution)), cache(lambda: borrowed(execution))
    return Unchanged(replayed, limits, policy, beside, cold(execution, replayed), carried, lent)


def predict(
    execution: Execution,
    world: World,
    *,
    base: Unchanged | None = None,
    replans: bool = True,
    physics: Physics = MODEL,
    path: bool = True,
) -> Prediction:
    """The runtime of a scope in a changed world; a question that cannot be answered says why in `refused`.

    `base` is replay_unchanged() of the scope, where several questions share it.  `replans` is whether the framework
    may cut its units anew for other slots; without, units stay as recorded, as in the paper.  `physics` are the terms
    of the model that hold.  `path` is whether to tell what the predicted runtime goes to (resource_ms), a quarter of
    the work.
    """
    base = base or replay_unchanged(execution)
    execution = replace(execution, recorded=world.recorded)  # what the user states included
    known = Prediction(
        scope=execution.scope.text,
        measure=execution.measure,
        setting=world.describe(),
        runtime_ms=execution.runtime_ms,
        replayed_ms=base.replayed.makespan_ms,
        predicted_ms=None,
    )
    groups = _groups(execution, base.replayed, None)
    execution, lent = _lent(execution, world, base, physics)
    tight, room = execution, more_room(execution, world)
    if room > 1 and anew(execution).any():
        execution, lent = with_room(execution, room), (*lent, _roomy(execution, room))
    if world.changes and (reason := execution.framework.endless(execution.properties) or lost(execution)):
        return replace(known, refused=(reason,), groups=groups)
    try:
        ends, unstated, at_least = None, _unstated(execution, world), physics
        link_bps = base.carried_bps() if physics == MODEL and _asks_for_link(execution, world) else None
        if unstated and physics == MODEL and _is_told(execution, world):
            ends = _ends(execution, world, base, replans, link_bps)
        between = None
        if ends is not None and any(each.name != NET or link_bps is None for each in unstated):
            between = ends
            if link_bps is not None and any(each.name == NET for each in unstated):
                between = sorted(_both(execution, world, base, replans, link_bps), key=_runtime)
        if between is not None:
            predicted, outcome = between[0]  # the answer is between the two, whatever the model says
        else:
            at_least = replace(physics, link_bps=link_bps) if link_bps else physics
            predicted, outcome = _predicted(execution, world, base, replans, at_least)
        if reason := beyond(execution, world):
            kept, _ = _predicted(execution, world, base, replans=False)
            predicted = min(predicted, kept)  # cut anew, units may get too small to gain from so many slots
            return replace(known, refused=(reason,), bound_ms=_outside(execution, world, predicted), groups=groups)
        if found := unseen(execution, world):
            wholes = [_predicted(_all_on(execution, each.name), world, base, replans)[0] for each, _ in found]
            word, share = execution.framework.vocabulary.unit, max(share for _, share in found)
            why = f"the run left no samples, and nothing else tells what {100 * share:.0f} % of {word} time went to"
            bound_ms = min(predicted, *wholes), max(predicted, *wholes)
            return replace(known, refused=(why,), bound_ms=bound_ms, groups=groups)
        bound_ms, open_ends = (predicted, predicted), list[str]()
        for why, other_ms in _otherwise(execution, world, base, replans):
            if abs(other_ms - predicted) <= NOTICED * execution.runtime_ms:
                continue
            bound_ms = min(bound_ms[0], other_ms), max(bound_ms[1], other_ms)
            open_ends.append(f"{why}; the answer is between both ends of that")
            if bound_ms[1] > NARROW * bound_ms[0]:
                return replace(known, refused=(why,), bound_ms=bound_ms, groups=groups)
        if ends is None and physics == MODEL:
            ends = _ends(execution, world, base, replans)
        if ends is not None and unstated and ends[1][0] > MOST_APART * ends[0][0]:
            return replace(
                known, refused=(_apart(unstated, execution),), bound_ms=(ends[0][0], ends[1][0]), groups=groups
            )
        if between is not None:
            (low, at_best), (high, at_worst) = between
            predicted = math.sqrt(low * high)
            groups = _between(_groups(execution, base.replayed, at_best), _groups(execution, base.replayed, at_worst))
            outcomes = [at_best, at_worst]
        else:
            predicted = math.sqrt(bound_ms[0] * bound_ms[1])
            groups = _groups(execution, base.replayed, outcome)
            outcomes = [outcome]
    except BoundedError as error:
        least, most = (None if ratio is None else ratio * execution.runtime_ms for ratio in (error.low, error.high))
        if len(world.changes) > 1:  # what else changes may bring or cost more
            least = most = None
        return replace(known, refused=(str(error),), bound_ms=(least, most), groups=groups)
    except NoAnswerError as error:
        return replace(known, refused=(str(error),), remedy=error.remedy, groups=groups)
    parts_ms = _path_parts(execution, world, outcomes, predicted) if path else None
    steady = execution.framework.steady(execution, world) if physics is MODEL else None
    if steady is not None:  # the recorded run changes as the settled one does
        changed = execution.runtime_ms * steady.after_ms / steady.before_ms
        if parts_ms is not None:
            parts_ms *= changed / predicted if predicted > 0 else 1.0
        predicted = changed
        known = replace(known, settled_step_ms=(steady.before_ms, steady.after_ms))
    unsure = world.unchecked(execution.framework.checked(execution))
    if predicted > 0 and not unsure:  # a run that was cut before anything ran takes no time, whatever it has
        variance = variances(
            execution.runtime_ms,
            base.replayed.makespan_ms,
            predicted,
            world,
            execution.evidence,
            execution.resources,
            bytes_known=ends is not None,
        )
        others_ms = [predicted, *bound_ms, *(each for each, _ in ends or ())]
        if execution is not tight:
            known_to = (with_room(tight, max(each, 1.0)) for each in (room / ROOM_KNOWN, room * ROOM_KNOWN))
            others_ms += [_predicted(each, world, base, replans, at_least)[0] for each in known_to]
        if at_least.cold and between is None and outcome.settled.cold_share > COLD_NOTICED:
            warm_ms, _ = _predicted(execution, world, base, replans, replace(at_least, cold=False))
            others_ms += [warm_ms, predicted**2 / warm_ms]
        sides = min(others_ms), max(others_ms)
        if steady is not None:
            low, high = (execution.runtime_ms * each / steady.before_ms for each in steady.ends_ms)
            sides = min(low, predicted), max(high, predicted)
        likely, shares = interval(predicted, variance, ends_ms=sides)
        known = replace(known, interval_ms=likely, interval_shares=shares)
    return replace(
        known,
        predicted_ms=predicted,
        resource_ms={} if parts_ms is None else dict(zip(with_other(execution.names), parts_ms.tolist(), strict=True)),
        groups=groups,
        assumptions=(
            *lent,
            *outcome.state.assumptions,
            *open_ends,
            *(() if steady is None else steady.assumptions),
            *_unchecked(unsure),
        ),
    )


def _otherwise(execution: Execution, world: World, base: Unchanged, replans: bool) -> Iterator[tuple[str, float]]:
    """What else a question may well come to, ms, and why that is not known."""
    if spilled := unseen_spills(execution, world):
        why = "the run left no samples, and nothing else tells how long it spilled"
        yield why, _predicted(spilled, world, base, replans)[0]
    if world.changes and (told := execution.framework.unsure(execution, world)) is not None:
        why, end = told
        yield why, _predicted(execution, end, base, replans)[0]


def _lent(execution: Execution, world: World, base: Unchanged, physics: Physics) -> tuple[Execution, tuple[str, ...]]:
    """The execution with what its log leaves open shared out, where that makes an answer of the question.

    Bounds hold whatever such time was, so they come of the log as it is.  What another CPU does to time that nobody saw
    is told by the run's own units alone.
    """
    if not world.changes or not (physics.borrowed and physics.bytes):
        return execution, ()
    if world.ratio("cpu_speed") != 1 and waits_unknown(execution) > 0:
        return execution, ()
    if beyond(execution, world) is not None:
        return execution, ()
    lent, said = base.lent()
    lent = replace(lent, recorded=execution.recorded)  # what the user states is of this question
    return (execution, ()) if unseen(lent, world) else (lent, said)


def _path_parts(execution: Execution, world: World, outcomes: Sequence[_Outcome], predicted_ms: float) -> Floats:
    """What a predicted runtime goes to along its critical path, (resources + 1,); the mean of several replays."""
    found = np.sum([path_parts(each.state, each.settled, execution, world) for each in outcomes], axis=0)
    whole_ms = float(found.sum())
    parts: Floats = found * (predicted_ms / whole_ms) if whole_ms > 0 else found
    return parts


def _ends(
    execution: Execution, world: World, base: Unchanged, replans: bool, link_bps: float | None = None
) -> list[tuple[float, _Outcome]] | None:
    """The least and the most that changed bandwidths may come to, ms, with the replays; None where none changes.

    A network that nobody stated takes the longest for its bytes if `link_bps`, what it carries at least, is all.
    """
    changed = any(world.ratio(each.setting) != 1 for each in execution.resources if each.unit == "bytes per second")
    if not changed or not execution.volumes.tell_bytes:
        return None
    best, worst = _both(execution, world, base, replans)
    for each in execution.resources if link_bps else ():
        if each.name == NET and world.ratio(each.setting) < 1:
            recorded = {**execution.recorded, each.setting: link_bps}
            slow, slowed = replace(execution, recorded=recorded), replace(world, recorded=recorded)
            full = _predicted(slow, slowed, base, replans, replace(MODEL, end="worst"))
            worst = max(worst, full, key=_runtime)
    return sorted((best, worst), key=_runtime)


def _both(
    execution: Execution, world: World, base: Unchanged, replans: bool, link_bps: float | None = None
) -> list[tuple[float, _Outcome]]:
    """What changed bandwidths may come to by the two ends of physics; where it is told what a network carries at
    least, that one is no end."""
    physics = replace(MODEL, link_bps=link_bps)
    return [_predicted(execution, world, base, replans, replace(physics, end=end)) for end in ENDS]


def _runtime(found: tuple[float, _Outcome]) -> float:
    return found[0]


def _roomy(execution: Execution, room: float) -> str:
    """A word on units that read anew what had no room in memory, where there is `room` times as much."""
    words, again = execution.framework.vocabulary, anew(execution)
    still = round(again.sum() * (1.0 - spared_share(execution, room)))
    then = f"about {still} would" if still > 0 else "none would"
    return (
        f"{again.sum()} of {concerned(execution).sum()} {words.units} read anew what {words.workers} were to keep; with"
        f" room for {room:.3g} times as much {then}"
    )


def _is_told(execution: Execution, world: World) -> bool:
    """Whether a question is within the model's range, and unknown time is not what it is about."""
    return beyond(execution, world) is None and not unseen(execution, world)


def _unstated(execution: Execution, world: World) -> list[Resource]:
    """The devices whose bandwidth changes and is not known of the recorded run."""
    return [
        each
        for each in execution.resources
        if each.unit == "bytes per second"
        and world.ratio(each.setting) != 1
        and not execution.recorded.get(each.setting)
    ]


def _asks_for_link(execution: Execution, world: World) -> bool:
    """Whether something changes and nobody stated how fast the network was."""
    stated = any(each.name == NET and execution.recorded.get(each.setting) for each in execution.resources)
    return bool(world.ratios) and not stated


def _apart(unstated: Sequence[Resource], execution: Execution) -> str:
    """Why bounds are all that can be said of a bandwidth that the run does not tell."""
    words, devices = execution.framework.vocabulary, [each.device for each in unstated]
    return (
        f"the run does not tell how fast its {' and '.join(devices)} was, so of the time that its {words.units} were"
        " seen there all may change with the bandwidth, or none"
    )


def _between(least: tuple[GroupPrediction, ...], most: tuple[GroupPrediction, ...]) -> tuple[GroupPrediction, ...]:
    """Groups halfway between two predictions, as their ratio goes."""
    return tuple(
        replace(low, predicted_ms=math.sqrt((low.predicted_ms or 0.0) * (high.predicted_ms or 0.0)))
        for low, high in zip(least, most, strict=True)
    )


def _unchecked(settings: Sequence[str]) -> list[str]:
    """A word on what has no interval, for nothing tells how far off it may be."""
    named = ", ".join(settings)
    return [f"no reruns have checked predictions of {named}, so there is no interval"] if settings else []


def predicted_by(name: str, execution: Execution, world: World, base: Unchanged) -> Prediction:
    """What the model of another package makes of a scope in a changed world, ms; without an interval.

    Raises SettingError where there is no predictor of that name.
    """
    known = entries("predictors")
    if name not in known:
        there = f"known are {', '.join(known)}" if known else "no package brings one in"
        raise SettingError(f"'{name}' is no predictor; {there}")
    return Prediction(
        scope=execution.scope.text,
        measure=execution.measure,
        setting=world.describe(),
        runtime_ms=execution.runtime_ms,
        replayed_ms=base.replayed.makespan_ms,
        predicted_ms=float(known[name](replace(execution, recorded=world.recorded), world)),
        assumptions=(f"predicted by {name}, which gives no interval",),
    )


@dataclass(frozen=True)
class _Outcome:
    state: State
    """With the units that the changed world runs."""
    settled: Settled

    @property
    def replayed(self) -> Replayed:
        return self.settled.replayed


def _predicted(
    execution: Execution, world: World, base: Unchanged, replans: bool, physics: Physics = MODEL
) -> tuple[float, _Outcome]:
    """The runtime that the model gives, ms, and the replay behind it."""
    better, worse = _direction(world)
    try:
        outcome = _changed_replay(execution, world, base, replans, physics)
    except NoWorkerLeftError:
        outcome = _staying(execution, world, base, replans, physics)
    else:
        if not better and (outcome.state.slots.until_ms < outcome.replayed.end_ms).any():
            # Workers were given back when nothing was left for them, which would have been later.
            kept = _staying(execution, world, base, replans, physics)
            outcome = min(outcome, kept, key=lambda each: each.replayed.makespan_ms)
    base_ms = base.replayed.makespan_ms
    predicted = outcome.replayed.makespan_ms * (execution.runtime_ms / base_ms if base_ms > 0 else 1.0)
    # Other speeds alone change the order of ends, and list scheduling may then do worse with better devices (Graham's
    # anomaly); that is luck, not an answer.  Nor do fewer slots help; fewer workers may, who fetch less of each other.
    same_workers = world.ratio("workers") == 1
    same_slots = same_workers and world.ratio("cores") == 1
    predicted = min(predicted, execution.runtime_ms) if better and same_slots else predicted
    predicted = max(predicted, execution.runtime_ms) if worse and same_workers else predicted
    return predicted, outcome


def _staying(execution: Execution, world: World, base: Unchanged, replans: bool, physics: Physics) -> _Outcome:
    """The replay in which workers that were lost or given back stay until another came in their place."""
    kept = replace(execution, slots=execution.slots.staying())
    again = replace(base, limits=sequential_limits(kept, base.policy))
    outcome = _changed_replay(kept, world, again, replans, physics)
    workers = execution.framework.vocabulary.workers
    stay = (
        f"{workers} that were lost or given back in the recorded run stay until another takes their place, for they"
        " would be needed"
    )
    return replace(outcome, state=outcome.state.assuming(stay))


def _changed_replay(execution: Execution, world: World, base: Unchanged, replans: bool, physics: Physics) -> _Outcome:
    state = slots.apply(unchanged(execution), world, replans=replans)
    for effect in (input, skew, operators, memory):
        state = effect.apply(state, world)
    state = speed.apply(replace(state, before_ms=state.parts_ms), world)
    state = bandwidth.apply(state, world, physics)
    policy, asked = base.policy, world.choice("scheduler")
    if asked is not None:
        policy = chosen(asked, execution.dag, policy)
    found = settled(state, execution, base.replayed, world, policy, base.limits, physics, base.beside, base.first)
    return _Outcome(state.assuming(*_assumed(state, world, found.replayed, physics.link_bps)), found)


def _direction(world: World) -> tuple[bool, bool]:
    """Whether nothing can take longer than recorded, and whether nothing can take less."""
    if any(
        key in ("units", "skew", "scheduler") or key.startswith(UNITS) for key in world.changes
    ):  # other is neither better nor worse
        return False, False
    ratios = [1.0, *(1 / ratio if key == "input" else ratio for key, ratio in world.ratios.items())]
    return min(ratios) >= 1, max(ratios) <= 1


def _outside(execution: Execution, world: World, predicted_ms: float) -> tuple[float | None, float | None]:
    """What holds beyond the model's range: more slots gain no more than the replay says, fewer gain nothing; what has
    never crossed the network may take any time there."""
    better, worse = _direction(world)
    if better:
        most_ms = None if crosses_anew(execution, world) else execution.runtime_ms
        return min(predicted_ms, execution.runtime_ms), most_ms
    return (execution.runtime_ms, None) if worse else (None, None)


def _all_on(execution: Execution, resource: str) -> Execution:
    """The execution, all of its unexplained time being time on a resource."""
    parts = execution.units.parts_ms.copy()
    parts[:, execution.names.index(resource)] += parts[:, -1]
    parts[:, -1] = 0.0
    return replace(execution, units=replace(execution.units, parts_ms=parts))


def _assumed(state: State, world: World, replayed: Replayed, link_bps: float | None) -> list[str]:
    """What the model takes for granted in this world, in sentences."""
    execution = state.execution
    words = execution.framework.vocabulary
    said: list[str] = []
    if world.ratio("cpu_speed") != 1:
        said.append(f"CPU time scales inversely with the speed of a core; the {words.coordinator}'s own time too")
    if world.ratio("cores") != 1 or world.ratio("workers") != 1:
        brings = f"every {words.unit} {words.lane} brings its own core"
        if not execution.framework.lanes_bring_cpu:
            brings = f"more {words.lanes} bring {with_article(words.worker)} no CPU"
        said.append(f"{brings}, every added {words.worker} its own node")
        said.append(f"{words.units} that run on a node at a time share its disk and its network equally")
        launched, ended = np.sort(replayed.launch_ms), np.sort(replayed.finish_ms)
        open_then = np.arange(1, len(launched) + 1) - np.searchsorted(ended, launched, side="right")
        busy = int(open_then.max(initial=0))
        if len(state.slots) > busy:
            said.append(
                f"of {len(state.slots)} {words.lanes} at most {busy} have {with_article(words.unit)} at a time; the"
                " rest stay idle"
            )
    limit = state.slots.cpu_limit()
    if np.isfinite(limit):
        said.append(
            f"{with_article(words.worker)} gets no more CPU than the recorded ones did at most, {limit:.2f} cores a"
            f" {words.lane}, for they waited for it"
        )
    for each in execution.resources:
        ratio = world.ratio(each.setting)
        if each.name == CPU or ratio == 1:
            continue
        if each.unit == "speed":
            said.append(f"time on the {each.device} scales inversely with its speed")
            continue
        if not execution.volumes.tell_bytes:
            said.append(f"time on the {each.device} scales with its bandwidth, less the processing of each buffer")
            continue
        said.append(_transferred(execution, each, link_bps))
    return said


def _transferred(execution: Execution, resource: Resource, link_bps: float | None) -> str:
    """What of the time on a device changes with its bandwidth."""
    words = execution.framework.vocabulary
    moved = execution.volumes.read(resource).sum() / 1e6
    seen = execution.units.parts_ms[:, execution.names.index(resource.name)].sum() / 1e3
    if execution.recorded.get(resource.setting):
        return (
            f"of the {seen:.1f} s that {words.units} were seen on the {resource.device}, what it took to bring"
            f" {moved:.0f} MB changes with the bandwidth; the rest is latency"
        )
    if resource.name == NET and link_bps is not None:
        return (
            f"the run does not tell how fast its {resource.device} was, but that it carried {8 * link_bps / 1e6:.1f}"
            f" Mbit/s: of the {seen:.1f} s that {words.units} were seen there, what {moved:.0f} MB take at that rate"
            f" changes with the bandwidth; if something else held the {words.units} up, none does, and the range"
            " reaches there"
        )
    return (
        f"the run does not tell how fast its {resource.device} was: the figure is the middle between all of the"
        f" {seen:.1f} s that {words.units} were seen there changing with the bandwidth, and none"
    )


def _groups(execution: Execution, base: Replayed, outcome: _Outcome | None) -> tuple[GroupPrediction, ...]:
    """Every group's recorded length, and that times the ratio of the two replays' lengths of it."""
    found = []
    if outcome is not None:
        before_ms = _lengths(base, execution)
        after_ms = _lengths(outcome.replayed, outcome.state.execution)
    for node_id, node in execution.dag.nodes.items():
        if node.group is None:
            continue
        recorded, predicted = node.end_ms - node.start_ms, None
        if outcome is not None:
            before, after = before_ms[node.group], after_ms[node.group]
            predicted = recorded * after / before if before > 0 else recorded
        found.append(GroupPrediction(node_id, node.name, recorded, predicted))
    return tuple(found)


def _lengths(replayed: Replayed, execution: Execution) -> list[float]:
    """From the first launch to the last end of each group's units, ms."""
    group, count = execution.units.group, len(execution.dag.groups)
    first, last = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(first, group, replayed.launch_ms)
    np.maximum.at(last, group, replayed.finish_ms)
    lengths: list[float] = (last - first).tolist()
    return lengths
