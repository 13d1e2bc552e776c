"""What a changed world would make of a run (paper §5).

    1  replay the recorded tasks on the recorded slots: how far off is the model itself
    2  cut tasks anew where the framework would, having other slots (its own plan; left out on demand)
    3  number of devices: tasks on other slots (Algorithm 1), first waves warming up
    4  speed of devices: scale each task's part on a resource (Algorithms 1 and 2), a device of a node being shared
       by the tasks that run there at a time, and an executor's CPU by all of its threads
    5  memory: add or take away the transfers that missing memory causes (reversed roofline)
    6  replay again, slot order kept by the replay itself, until the sharing and the schedule agree

The prediction is the recorded runtime times the ratio of the two replays, so that no change predicts no change.
Resource use is sequential within a task (§4.1), speeds and bandwidths are constant (footnotes 9 and 10).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from indexes import resources
from indexes.errors import NoAnswerError
from query.answers.values import Prediction, StagePrediction
from query.frameworks import Framework
from query.model.dag import ANYWHERE, Dag, Floats, Ints
from query.model.execution import Execution
from query.model.world import KEY_OF_RESOURCE, KEYS, World
from query.whatif.bandwidth import io_scaled, moved_bytes
from query.whatif.interval import interval, variances
from query.whatif.limits import beyond, unseen
from query.whatif.memory import BoundedError, with_memory
from query.whatif.parallelism import changed_slots, first_wave, sequential_limits, warm_up_factors
from query.whatif.replay import NoExecutorLeftError, Policy, Replayed, Slots, replay
from query.whatif.sharing import company, mean_level

ROUNDS = 12
"""Most replays until sharing and schedule agree."""

SETTLED = 0.002
"""Change of the makespan, relative, below which they do."""


@dataclass(frozen=True)
class Unchanged:
    """The recorded tasks replayed on the recorded slots: where every question about a scope starts."""

    replayed: Replayed
    limits: list[int | None]
    """Per stage the tasks it may run at a time, see sequential_limits()."""
    policy: Policy
    """How the framework gave out slots."""


def replay_unchanged(execution: Execution, framework: Framework) -> Unchanged:
    """Replay a scope as it was recorded; how far it is off is the model's own error."""
    tasks, policy = execution.tasks, framework.schedule(execution.scheduler, execution.properties)
    limits = sequential_limits(execution, policy)
    return Unchanged(replay(execution.dag, tasks, tasks.duration_ms, execution.slots, policy, limits), limits, policy)


def predict(
    execution: Execution,
    world: World,
    framework: Framework,
    *,
    unchanged: Unchanged | None = None,
    replans: bool = True,
) -> Prediction:
    """The runtime of a scope in a changed world; a question that cannot be answered says why in `refused`.

    `unchanged` is replay_unchanged() of the scope, where several questions share it.  `replans` is whether the
    framework may cut its tasks anew for other slots; without, tasks stay as recorded, as in the paper.
    """
    unchanged = unchanged or replay_unchanged(execution, framework)
    base = unchanged.replayed
    execution = replace(execution, recorded=world.recorded)  # what the user states included
    known = Prediction(
        scope=execution.scope.text,
        setting=world.describe(),
        runtime_ms=execution.runtime_ms,
        replayed_ms=base.makespan_ms,
        predicted_ms=None,
    )
    stages = _stages(execution, base, None)
    try:
        predicted, outcome = _predicted(execution, world, framework, unchanged, replans)
        if reason := beyond(execution, world):
            kept, _ = _predicted(execution, world, framework, unchanged, replans=False)
            predicted = min(predicted, kept)  # cut anew, tasks may get too small to gain from so many slots
            return replace(known, refused=(reason,), bound_ms=_outside(execution, world, predicted), stages=stages)
        if device := unseen(execution, world):
            whole, _ = _predicted(_all_on(execution, device), world, framework, unchanged, replans)
            why = (
                f"{device}: the run left no samples, and {execution.evidence.unseen:.0%} of task time is of unknown"
                f" cause: the {device}, or not"
            )
            low, high = sorted((predicted, whole))
            return replace(known, refused=(why,), bound_ms=(low, high), stages=stages)
    except BoundedError as error:
        least, most = (None if ratio is None else ratio * execution.runtime_ms for ratio in (error.low, error.high))
        return replace(known, refused=(str(error),), bound_ms=(least, most), stages=stages)
    except NoAnswerError as error:
        return replace(known, refused=(str(error),), stages=stages)
    if predicted > 0:  # a run that was cut before anything ran takes no time, whatever it has
        variance = variances(execution.runtime_ms, base.makespan_ms, predicted, world, execution.evidence)
        likely, shares = interval(predicted, variance)
        known = replace(known, interval_ms=likely, interval_shares=shares)
    return replace(
        known,
        predicted_ms=predicted,
        stages=_stages(execution, base, outcome),
        assumptions=outcome.assumptions,
    )


def _predicted(
    execution: Execution, world: World, framework: Framework, unchanged: Unchanged, replans: bool
) -> tuple[float, _Outcome]:
    """The runtime that the model gives, ms, and the replay behind it."""
    try:
        outcome = _changed_replay(execution, world, framework, unchanged, replans)
    except NoExecutorLeftError:
        staying = replace(execution.slots, until_ms=np.full(len(execution.slots), np.inf))
        kept = replace(execution, slots=staying)
        again = replace(unchanged, limits=sequential_limits(kept, unchanged.policy))
        outcome = _changed_replay(kept, world, framework, again, replans)
        stay = "executors that were lost or given back in the recorded run stay to the end, for they would be needed"
        outcome = replace(outcome, assumptions=(*outcome.assumptions, stay))
    base_ms = unchanged.replayed.makespan_ms
    predicted = outcome.replayed.makespan_ms * (execution.runtime_ms / base_ms if base_ms > 0 else 1.0)
    if all(world.ratio(key) == 1 for key in ("cores", "executors")):
        # Other speeds alone change the order of ends, and list scheduling may then do worse with better devices
        # (Graham's anomaly); that is luck, not an answer.
        better, worse = _direction(world)
        predicted = min(predicted, execution.runtime_ms) if better else predicted
        predicted = max(predicted, execution.runtime_ms) if worse else predicted
    return predicted, outcome


def _direction(world: World) -> tuple[bool, bool]:
    """Whether no resource is less than recorded, and whether none is more."""
    ratios = [world.ratio(key) for key in KEYS]
    return min(ratios) >= 1, max(ratios) <= 1


def _outside(execution: Execution, world: World, predicted_ms: float) -> tuple[float | None, float | None]:
    """What holds beyond the model's range: more slots gain no more than the replay says, fewer gain nothing."""
    better, worse = _direction(world)
    if better:
        return min(predicted_ms, execution.runtime_ms), execution.runtime_ms
    return (execution.runtime_ms, None) if worse else (None, None)


def _all_on(execution: Execution, device: str) -> Execution:
    """The execution, all of its unexplained task time being time on a device."""
    parts = execution.tasks.parts_ms.copy()
    (column,) = (resources().index(name) for name, key in KEY_OF_RESOURCE.items() if key == device)
    parts[:, column] += parts[:, -1]
    parts[:, -1] = 0.0
    return replace(execution, tasks=replace(execution.tasks, parts_ms=parts))


@dataclass(frozen=True)
class _Outcome:
    execution: Execution
    """With the tasks that the changed world runs."""
    replayed: Replayed
    assumptions: tuple[str, ...]


def _changed_replay(
    recorded: Execution, world: World, framework: Framework, unchanged: Unchanged, replans: bool
) -> _Outcome:
    names = resources()
    cpu = names.index("cpu")
    base, limits, policy = unchanged.replayed, unchanged.limits, unchanged.policy
    slots = changed_slots(recorded, world)
    planned = framework.replan(recorded, world, replans)
    execution = planned.execution
    before = base
    if execution is not recorded:  # what the new tasks would share and when they would warm up on the recorded slots
        before = replay(execution.dag, execution.tasks, execution.tasks.duration_ms, recorded.slots, policy, limits)
    tasks = execution.tasks
    assumptions = list(planned.assumptions)
    parts, memory_assumption = with_memory(execution, world)
    assumptions += memory_assumption
    parts = parts.copy()
    parts[:, cpu] /= world.ratio("cpu_speed")
    shared = [name for name in names if name != "cpu"]
    company_before = {name: _company_before(recorded, base, execution, names.index(name)) for name in shared}
    for name in shared:
        parts[:, names.index(name)] = io_scaled(
            execution, parts[:, names.index(name)], name, KEY_OF_RESOURCE[name], world
        )
    unchanged_world = World({}, world.recorded, {})
    allowed = np.maximum(_pressure(execution, recorded.slots, before, unchanged_world), 1.0)
    wave_before, warm_up = first_wave(dag_stage=tasks.stage, replayed=before), warm_up_factors(recorded, base)
    driver_dag = _driver_scaled(recorded, world)

    placed = tasks
    if world.ratio("executors") != 1:  # other executors: tasks go where there is room
        placed = replace(tasks, executor=np.full(len(tasks), -1), placement=np.full(len(tasks), ANYWHERE))
    now = before
    factor = {name: np.ones(len(tasks)) for name in shared}
    stretch = np.ones(len(tasks))
    on_cpu = np.minimum(execution.volumes.on_cpu_ms / world.ratio("cpu_speed"), parts[:, cpu])
    waits, left = parts[:, cpu] - on_cpu, np.ones(len(tasks))
    has_more_cpu = world.ratio("cores") > 1
    if has_more_cpu:
        crowd_before = _crowd(recorded.slots, before, tasks.parts_ms, unchanged_world)
    for _ in range(ROUNDS):
        current = parts.copy()
        for name in shared:
            current[:, names.index(name)] *= factor[name]
        wave = first_wave(dag_stage=tasks.stage, replayed=now)
        warmth = np.where(wave & ~wave_before, warm_up[tasks.stage], 1.0)
        warmth = np.where(~wave & wave_before, 1.0 / warm_up[tasks.stage], warmth)
        current[:, cpu] += current.sum(axis=1) * (stretch - 1.0) - waits * (1.0 - left)
        last, now = now, replay(driver_dag, placed, current.sum(axis=1) * warmth, slots, policy, limits)
        for name in shared:
            after = _company(slots.host, now, current, names.index(name))
            factor[name] = (factor[name] + after / company_before[name]) / 2
        # What was hidden behind another device comes to light once its own is full.
        excess = _pressure(execution, slots, now, world) / allowed
        stretch = np.maximum(stretch * np.sqrt(excess), 1.0)
        if has_more_cpu:
            crowd = _over(_crowd(slots, now, current, world), crowd_before)
            eased = np.maximum(parts[:, cpu] * np.minimum(crowd, 1.0), on_cpu) - on_cpu
            left = (left + _over(eased, waits)) / 2
        if last is not before and abs(now.makespan_ms - last.makespan_ms) <= SETTLED * last.makespan_ms:
            break
    return _Outcome(execution, now, (*assumptions, *_assumed(execution, world, slots)))


def _assumed(execution: Execution, world: World, slots: Slots) -> list[str]:
    """What the model takes for granted in this world, in sentences."""
    said: list[str] = []
    if world.ratio("cpu_speed") != 1:
        said.append("CPU time scales inversely with the speed of a core; the driver's own time too")
    if world.ratio("cores") != 1 or world.ratio("executors") != 1:
        said.append("every task slot brings its own core, every added executor its own node")
        said.append("tasks that run on a node at a time share its disk and its network equally")
        widest = max(np.bincount(execution.tasks.stage), default=0)
        if len(slots) > widest:
            said.append(f"{len(slots)} slots for at most {widest} tasks of a stage: some slots stay idle")
    limit = slots.cpu_limit()
    if np.isfinite(limit):
        said.append(
            f"an executor gets no more CPU than the recorded ones did at most, {limit:.2f} cores a slot, for they"
            " waited for it"
        )
    for name, key in KEY_OF_RESOURCE.items():
        ratio = world.ratio(key)
        if name == "cpu" or ratio == 1:
            continue
        said.append(f"time on the {key} scales with its bandwidth, less the processing of each buffer")
        if key == "network" and ratio < 1 and execution.recorded.network is None:
            said.append(
                "the run does not tell its network bandwidth, so what arrived while tasks were computing may come to"
                " light: the true runtime may be longer (--recorded network=… would tell)"
            )
    return said


def _pressure(execution: Execution, slots: Slots, replayed: Replayed, world: World) -> Floats:
    """What is wanted of the fuller of CPU and network while a task runs, over what it can do in a world.

    An executor's CPU has the work of its tasks.  What its compilers and servers do besides takes turns with them, but
    they do not wait for it to be done: with less CPU, less of it gets done meanwhile.  A node's network has the
    shuffled bytes that its tasks fetched, as far as the run tells how much it can do: they may have arrived ahead of
    their reader.  What it sends, and input from other nodes, is not among them.  Of a disk that is read as needed,
    time waited says all; what is logged beyond that came from memory.
    """
    executor = slots.executor[replayed.slot]
    pressure = _wanted(executor, replayed, execution.volumes.on_cpu_ms) / _cores(slots, world)[executor]
    bandwidth = execution.recorded.network
    if bandwidth is not None:
        its = moved_bytes(execution.volumes, "net") / (bandwidth * world.ratio("network")) * 1e3
        pressure = np.maximum(pressure, _wanted(slots.host[replayed.slot], replayed, its))
    return pressure


def _crowd(slots: Slots, replayed: Replayed, parts: Floats, world: World) -> Floats:
    """How many tasks of its executor want a CPU while a task runs, itself counted as one, over the cores that the
    executor can get; 0 where no limit is known.

    A task's turn comes round the later the more want one.  An executor with more slots gets more CPU, and a task that
    runs there alone, as the last of its stage, waits less for it.
    """
    cores = _cores(slots, world)[slots.executor[replayed.slot]]
    crowd: Floats = _company(slots.executor, replayed, parts, resources().index("cpu")) / cores
    return crowd


def _cores(slots: Slots, world: World) -> Floats:
    """The CPU that each executor can get in a world, recorded cores; infinite where no limit is known."""
    return np.asarray(np.bincount(slots.executor, weights=slots.cpu_cores) * world.ratio("cpu_speed"), np.float64)


def _over(part: Floats, whole: Floats, otherwise: float = 1.0) -> Floats:
    """Quotients, `otherwise` where there is nothing to divide by."""
    quotient: Floats = np.divide(part, whole, out=np.full(len(part), otherwise), where=whole > 0)
    return quotient


def _wanted(group: Ints, replayed: Replayed, work_ms: Floats) -> Floats:
    """The work per time that all tasks of its group bring while a task runs."""
    length = replayed.finish_ms - replayed.launch_ms
    return mean_level(group, replayed.launch_ms, replayed.finish_ms, _over(work_ms, length, 0.0))


def _company(of_slot: Ints, replayed: Replayed, parts: Floats, column: int) -> Floats:
    """How many tasks share a resource with each task on average; `of_slot` is each slot's host or executor."""
    share = _over(parts[:, column], parts.sum(axis=1), 0.0)
    return company(of_slot[replayed.slot], replayed.launch_ms, replayed.finish_ms, share)


def _company_before(recorded: Execution, base: Replayed, execution: Execution, column: int) -> Floats:
    """The company in which the recorded time on a device was spent, for each task that is to run.

    Tasks that are cut anew are made of what the recorded ones of their stage did, in their company on average.
    """
    parts, stage = recorded.tasks.parts_ms, recorded.tasks.stage
    found = _company(recorded.slots.host, base, parts, column)
    if execution is recorded:
        return found
    count = len(recorded.dag.stages)
    weight = parts[:, column] + 1e-9
    mean = np.bincount(stage, found * weight, count) / np.maximum(np.bincount(stage, weight, count), 1e-9)
    of_stage: Floats = np.maximum(mean, 1.0)[execution.tasks.stage]
    return of_stage


def _driver_scaled(execution: Execution, world: World) -> Dag:
    """The DAG with the CPU part of the driver's intervals under the new CPU speed."""
    ratio = world.ratio("cpu_speed")
    if ratio == 1:
        return execution.dag
    cpu = resources().index("cpu")
    nodes = {}
    for node_id, node in execution.dag.nodes.items():
        if node.stage is None:
            parts = execution.driver.between(node.start_ms, node.end_ms)
            node = replace(node, end_ms=node.end_ms - float(parts[cpu]) * (1 - 1 / ratio))
        nodes[node_id] = node
    return replace(execution.dag, nodes=nodes)


def _stages(execution: Execution, base: Replayed, outcome: _Outcome | None) -> tuple[StagePrediction, ...]:
    """Every stage's recorded length, and that times the ratio of the two replays' lengths of it."""
    found = []
    for node_id, node in execution.dag.nodes.items():
        if node.stage is None:
            continue
        recorded, predicted = node.end_ms - node.start_ms, None
        if outcome is not None:
            before = _length(base, execution.tasks.stage == node.stage)
            after = _length(outcome.replayed, outcome.execution.tasks.stage == node.stage)
            predicted = recorded * after / before if before > 0 else recorded
        found.append(StagePrediction(node_id, node.name, recorded, predicted))
    return tuple(found)


def _length(replayed: Replayed, mine: NDArray[np.bool_]) -> float:
    return float(replayed.finish_ms[mine].max() - replayed.launch_ms[mine].min())
