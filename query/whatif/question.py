"""A changed world asked of a scope: the replay of it, and what that takes for granted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal, NamedTuple

import numpy as np

from crystalperf.indexes.resources import CPU, NET, Resource
from crystalperf.query.model.execution import Execution
from crystalperf.query.model.policy import Policy, chosen, policy_of
from crystalperf.query.model.world import UNITS, World
from crystalperf.query.vocabulary import with_article
from crystalperf.query.whatif.cold import Cold, cold
from crystalperf.query.whatif.effects import State, bandwidth, input, memory, operators, skew, slots, speed, unchanged
from crystalperf.query.whatif.links import carried_bps
from crystalperf.query.whatif.priors import borrowed
from crystalperf.query.whatif.replay import NoWorkerLeftError, Replayed, replay
from crystalperf.query.whatif.settle import Settled, settled
from crystalperf.query.whatif.sharing import Beside
from crystalperf.query.whatif.transfers import MODEL, Physics
from crystalperf.query.whatif.waves import sequential_limits

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


class Answer(NamedTuple):
    """What the model makes of a question: the runtime in ms, and the replay behind it."""

    ms: float
    state: State
    """With the units that the changed world runs."""
    settled: Settled

    @property
    def replayed(self) -> Replayed:
        return self.settled.replayed


@dataclass(frozen=True)
class Question:
    """A changed world asked of a scope, whose unchanged replay is `base`; `replans` as in predict()."""

    execution: Execution
    world: World
    base: Unchanged
    replans: bool = True

    def of(self, execution: Execution) -> Question:
        """The same asked of the scope with other units."""
        return replace(self, execution=execution)

    def answer(self, physics: Physics = MODEL) -> Answer:
        """What the model gives."""
        better, worse = direction(self.world)
        try:
            found = self._replayed(physics)
        except NoWorkerLeftError:
            found = self._staying(physics)
        else:
            if not better and (found.state.slots.until_ms < found.replayed.end_ms).any():
                # Workers were given back when nothing was left for them, which would have been later.
                kept = self._staying(physics)
                found = min(found, kept, key=lambda each: each.replayed.makespan_ms)
        runtime_ms, base_ms = self.execution.runtime_ms, self.base.replayed.makespan_ms
        ms = found.replayed.makespan_ms * (runtime_ms / base_ms if base_ms > 0 else 1.0)
        # Other speeds alone change the order of ends, and list scheduling may then do worse with better devices
        # (Graham's anomaly); that is luck, not an answer.  Nor do fewer slots help; fewer workers may, who fetch less
        # of each other.
        same_workers = self.world.ratio("workers") == 1
        same_slots = same_workers and self.world.ratio("cores") == 1
        ms = min(ms, runtime_ms) if better and same_slots else ms
        ms = max(ms, runtime_ms) if worse and same_workers else ms
        return found._replace(ms=ms)

    def both(self, link_bps: float | None = None) -> list[Answer]:
        """What changed bandwidths may come to by the two ends of physics, the least first; where it is told what a
        network carries at least, that one is no end."""
        physics = replace(MODEL, link_bps=link_bps)
        return sorted((self.answer(replace(physics, end=end)) for end in ENDS), key=_ms)

    def ends(self, link_bps: float | None = None) -> list[Answer] | None:
        """The least and the most that changed bandwidths may come to; None where none changes.

        A network that nobody stated takes the longest for its bytes if `link_bps`, what it carries at least, is all.
        """
        execution, world = self.execution, self.world
        changed = any(world.ratio(each.setting) != 1 for each in execution.resources if each.unit == "bytes per second")
        if not changed or not execution.volumes.tell_bytes:
            return None
        found = self.both()
        for each in execution.resources if link_bps else ():
            if each.name == NET and world.ratio(each.setting) < 1:
                recorded = {**execution.recorded, each.setting: link_bps}
                slow = replace(execution, recorded=recorded)
                slowed = replace(self.of(slow), world=replace(world, recorded=recorded))
                found.append(slowed.answer(replace(MODEL, end="worst")))
        return [min(found, key=_ms), max(found, key=_ms)]

    def _staying(self, physics: Physics) -> Answer:
        """The replay in which workers that were lost or given back stay until another came in their place."""
        kept = replace(self.execution, slots=self.execution.slots.staying())
        again = replace(self.base, limits=sequential_limits(kept, self.base.policy))
        found = replace(self.of(kept), base=again)._replayed(physics)
        workers = self.execution.framework.vocabulary.workers
        stay = (
            f"{workers} that were lost or given back in the recorded run stay until another takes their place, for they"
            " would be needed"
        )
        return found._replace(state=found.state.assuming(stay))

    def _replayed(self, physics: Physics) -> Answer:
        """The replay, and its own makespan."""
        execution, world, base = self.execution, self.world, self.base
        state = slots.apply(unchanged(execution), world, replans=self.replans)
        for effect in (input, skew, operators, memory):
            state = effect.apply(state, world)
        state = speed.apply(replace(state, before_ms=state.parts_ms), world)
        state = bandwidth.apply(state, world, physics)
        policy, asked = base.policy, world.choice("scheduler")
        if asked is not None:
            policy = chosen(asked, execution.dag, policy)
        found = settled(state, execution, base.replayed, world, policy, base.limits, physics, base.beside, base.first)
        state = state.assuming(*_assumed(state, world, found.replayed, physics.link_bps))
        return Answer(found.replayed.makespan_ms, state, found)


def _ms(answer: Answer) -> float:
    return answer.ms


def direction(world: World) -> tuple[bool, bool]:
    """Whether nothing can take longer than recorded, and whether nothing can take less."""
    if any(
        key in ("units", "skew", "scheduler") or key.startswith(UNITS) for key in world.changes
    ):  # other is neither better nor worse
        return False, False
    ratios = [1.0, *(1 / ratio if key == "input" else ratio for key, ratio in world.ratios.items())]
    return min(ratios) >= 1, max(ratios) <= 1


def _assumed(state: State, world: World, replayed: Replayed, link_bps: float | None) -> list[str]:
    """What the model takes for granted in this world, in sentences."""
    execution = state.execution
    words = execution.framework.vocabulary
    said: list[str] = []
    if world.ratio("cpu_speed") != 1:
        said.append(f"CPU time scales inversely with the speed of a core; the {words.coordinator}'s own time too")
    if world.ratio("cores") != 1 or world.ratio("workers") != 1:
        brings = f"every {words.unit} {words.lane} brings its own core"
        if not execution.framework.planner.lanes_bring_cpu:
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
