"""Replay of a scope in a scenario, and the assumptions of the replay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Literal, NamedTuple

import numpy as np

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.resources import CPU, NET, Resource
from crystalperf.query.execution.execution import Execution, policy_of
from crystalperf.query.execution.scenario import SPLIT, TASKS, Scenario
from crystalperf.query.execution.scheduling import chosen
from crystalperf.query.predict.priors import impute_from_priors
from crystalperf.query.results.assumptions import (
    AddedSlots,
    Assumption,
    CpuLimited,
    CpuTimeScales,
    DeviceBandwidth,
    DeviceTimeScales,
    NodeShared,
    SlotsIdle,
    TransferTime,
    TransferTimeAtLeast,
    TransferTimeUnknown,
    WorkersStay,
)
from crystalperf.query.simulate.device_sharing import Concurrency
from crystalperf.query.simulate.effects import (
    State,
    bandwidth,
    baseline_state,
    device_speed,
    input_size,
    memory,
    operator_speed,
    skew,
)
from crystalperf.query.simulate.effects import (
    slot_counts as slots,
)
from crystalperf.query.simulate.fixed_point import Baseline, FixedPoint, solve_fixed_point
from crystalperf.query.simulate.network_speed import carried_bps
from crystalperf.query.simulate.replay import NoWorkerLeftError, Replayed, replay
from crystalperf.query.simulate.transfers import MODEL, Physics
from crystalperf.query.simulate.warmup import warmup_cost
from crystalperf.query.simulate.waves import sequential_limits

ENDS: tuple[Literal["best"], Literal["worst"]] = ("best", "worst")


@frozen
class SharedBaseline(Baseline):
    """The baseline of all predictions for a scope, with further inputs that only some of them need."""

    carried_bps: Callable[[], float | None]
    """A lower bound of the bandwidth of a host's network, bytes per second; None if unknown."""
    imputed: Callable[[], tuple[Execution, tuple[Assumption, ...]]]
    """The scope with imputed time, and the assumption behind it: see impute_from_priors()."""


def replay_baseline(execution: Execution) -> SharedBaseline:
    """Replay the baseline of a scope; the error of this replay is the model's own error."""
    tasks, policy = execution.tasks, policy_of(execution)
    limits = sequential_limits(execution, policy)
    slots = execution.slots
    try:
        replayed = replay(execution.dag, tasks, tasks.duration_ms, slots, policy, limits)
    except NoWorkerLeftError:  # a worker is missing in the log, or the replay is a little longer than the run
        slots = slots.staying()
        replayed = replay(execution.dag, tasks, tasks.duration_ms, slots, policy, limits)
    concurrency = Concurrency(slots, replayed)
    carried, imputed = cache(lambda: carried_bps(execution)), cache(lambda: impute_from_priors(execution))
    return SharedBaseline(replayed, limits, policy, concurrency, warmup_cost(execution, replayed), carried, imputed)


class Answer(NamedTuple):
    """The result of a prediction request: the runtime in ms, and the replay behind it."""

    ms: float
    state: State
    """The state after all effects, with the scenario's tasks."""
    fixed_point: FixedPoint

    @property
    def replayed(self) -> Replayed:
        return self.fixed_point.replayed


@frozen
class PredictionRequest:
    """A prediction request: a scope, a scenario, and the scope's baseline `base`; `replans` as in predict()."""

    execution: Execution
    scenario: Scenario
    base: SharedBaseline
    replans: bool = True

    def of(self, execution: Execution) -> PredictionRequest:
        """The same request for another execution of the scope."""
        return replace(self, execution=execution)

    def with_scenario(self, scenario: Scenario) -> PredictionRequest:
        """Another scenario of the same scope."""
        return replace(self, scenario=scenario)

    def answer(self, physics: Physics = MODEL) -> Answer:
        """The predicted runtime and its replay."""
        if self.scenario.choice("skew") is None:
            return self._answer(physics)
        # Even tasks may fill slots worse (two long ones after one), and share devices more; nobody would even them out.
        rest = {key: value for key, value in self.scenario.changes.items() if key != "skew"}
        uneven = replace(self, scenario=replace(self.scenario, changes=rest))
        return min(self._answer(physics), uneven._answer(physics), key=_ms)

    def _answer(self, physics: Physics) -> Answer:
        better, worse = direction(self.scenario)
        try:
            found = self._replayed(physics)
        except NoWorkerLeftError:
            found = self._staying(physics)
        else:
            if not better and (found.state.slots.until_ms < found.replayed.end_ms).any():
                # Workers were removed when they had no more work; in the scenario that may have been later.
                kept = self._staying(physics)
                found = min(found, kept, key=lambda each: each.replayed.makespan_ms)
        runtime_ms, base_ms = self.execution.runtime_ms, self.base.replayed.makespan_ms
        ms = found.replayed.makespan_ms * (runtime_ms / base_ms if base_ms > 0 else 1.0)
        # Other speeds alone change the order of ends, and list scheduling may then do worse with better devices
        # (Graham's anomaly); that is random, not an effect.  Fewer slots do not help either; fewer workers may, because
        # they fetch less from each other.
        same_workers = self.scenario.ratio("workers") == 1
        same_slots = same_workers and self.scenario.ratio("cores") == 1
        ms = min(ms, runtime_ms) if better and same_slots else ms
        ms = max(ms, runtime_ms) if worse and same_workers else ms
        return found._replace(ms=ms)

    def both(self, link_bps: float | None = None) -> list[Answer]:
        """The predictions for the optimistic and the pessimistic effect of changed bandwidths, the shorter first; a
        network with a lower bound `link_bps` has the same effect in both."""
        physics = replace(MODEL, link_bps=link_bps)
        return sorted((self.answer(replace(physics, end=end)) for end in ENDS), key=_ms)

    def ends(self, link_bps: float | None = None) -> list[Answer] | None:
        """The bounds of predictions for changed bandwidths, the shorter first; None if none changes.

        If the bandwidth of the network is unknown, its bytes take longest at `link_bps`, its lower bound.
        """
        execution, scenario = self.execution, self.scenario
        changed = any(
            scenario.ratio(each.setting) != 1 for each in execution.resources if each.unit == "bytes per second"
        )
        if not changed or not execution.volumes.record_bytes:
            return None
        found = self.both()
        for each in execution.resources if link_bps else ():
            if each.name == NET and scenario.ratio(each.setting) < 1:
                recorded = {**execution.recorded, each.setting: link_bps}
                slow = replace(execution, recorded=recorded)
                slowed = replace(self.of(slow), scenario=replace(scenario, recorded=recorded))
                found.append(slowed.answer(replace(MODEL, end="worst")))
        return [min(found, key=_ms), max(found, key=_ms)]

    def _staying(self, physics: Physics) -> Answer:
        """The replay in which lost or removed workers stay until another replaces them."""
        kept = replace(self.execution, slots=self.execution.slots.staying())
        base = replace(self.base, limits=sequential_limits(kept, self.base.policy))
        found = replace(self.of(kept), base=base)._replayed(physics)
        return found._replace(state=found.state.assuming(WorkersStay()))

    def _replayed(self, physics: Physics) -> Answer:
        """The replay of the scenario, with its own makespan as the runtime."""
        execution, scenario, base = self.execution, self.scenario, self.base
        state = slots.apply(baseline_state(execution), scenario, replans=self.replans)
        for effect in (input_size, skew, operator_speed, memory):
            state = effect.apply(state, scenario)
        state = device_speed.apply(replace(state, before_ms=state.parts_ms), scenario)
        state = bandwidth.apply(state, scenario, physics)
        policy, scheduler = base.policy, scenario.choice("scheduler")
        if scheduler is not None:
            policy = chosen(scheduler, execution.dag, policy)
        found = solve_fixed_point(state, execution, base, scenario, policy, physics)
        state = state.assuming(*_assumed(state, scenario, found.replayed, physics.link_bps))
        return Answer(found.replayed.makespan_ms, state, found)


def _ms(answer: Answer) -> float:
    return answer.ms


def direction(scenario: Scenario) -> tuple[bool, bool]:
    """Whether no resource is worse than recorded, and whether none is better."""
    if any(
        value.choice is not None or key in ("tasks", SPLIT) or key.startswith(TASKS)
        for key, value in scenario.changes.items()
    ):  # neither better nor worse
        return False, False
    ratios = [1.0, *(1 / ratio if key == "input" else ratio for key, ratio in scenario.ratios.items())]
    return min(ratios) >= 1, max(ratios) <= 1


def _assumed(state: State, scenario: Scenario, replayed: Replayed, link_bps: float | None) -> list[Assumption]:
    """The assumptions of the model in a scenario."""
    execution = state.execution
    found: list[Assumption] = []
    if scenario.ratio("cpu_speed") != 1:
        found.append(CpuTimeScales())
    if scenario.ratio("cores") != 1 or scenario.ratio("workers") != 1:
        found += [AddedSlots(with_cores=execution.planner.slots_bring_cpu), NodeShared()]
        launched, ended = np.sort(replayed.launch_ms), np.sort(replayed.finish_ms)
        open_then = np.arange(1, len(launched) + 1) - np.searchsorted(ended, launched, side="right")
        busy = int(open_then.max(initial=0))
        if len(state.slots) > busy:
            found.append(SlotsIdle(len(state.slots), busy))
    limit = state.slots.cpu_limit()
    if np.isfinite(limit):
        found.append(CpuLimited(float(limit)))
    for each in execution.resources:
        if each.name == CPU or scenario.ratio(each.setting) == 1:
            continue
        if each.unit == "speed":
            found.append(DeviceTimeScales(each.device))
        elif not execution.volumes.record_bytes:
            found.append(DeviceBandwidth(each.device))
        else:
            found.append(_transferred(execution, each, link_bps))
    return found


def _transferred(execution: Execution, resource: Resource, link_bps: float | None) -> Assumption:
    """The assumption about the share of time on a device that changes with its bandwidth."""
    moved_bytes = float(execution.volumes.read(resource).sum())
    seen_ms = float(execution.tasks.parts_ms[:, execution.names.index(resource.name)].sum())
    if execution.recorded.get(resource.setting):
        return TransferTime(resource.device, seen_ms, moved_bytes)
    if resource.name == NET and link_bps is not None:
        return TransferTimeAtLeast(resource.device, seen_ms, moved_bytes, float(link_bps))
    return TransferTimeUnknown(resource.device, seen_ms)
