"""What a changed world would make of a run (paper §5).

    1  replay the recorded tasks on the recorded slots: how far off is the model itself
    2  number of devices: the same tasks on other slots (Algorithm 1), first waves warming up
    3  speed of devices: scale each task's part on a resource (Algorithms 1 and 2), a device of a node being shared
       by the tasks that run there at a time
    4  memory: add or take away the transfers that missing memory causes (reversed roofline)
    5  replay again, slot order kept by the replay itself, until the sharing and the schedule agree

The prediction is the recorded runtime times the ratio of the two replays, so that no change predicts no change.
Resource use is sequential within a task (§4.1), speeds and bandwidths are constant (footnotes 9 and 10).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from indexes import resources
from indexes.errors import NoAnswerError
from query.answers import Prediction, StagePrediction
from query.dag import Dag, Floats, Ints
from query.execution import Execution
from query.frameworks import Framework
from query.replay import NoExecutorLeftError, Replayed, Slots, replay
from query.timeline import company
from query.world import KEYS, World

ROUNDS = 6
"""Replays until sharing and schedule agree; each halves what is left of the difference, so 6 leave under 2 %."""

WARM_UP_TASKS = 4
"""Fewest tasks in the first wave and after it from which a stage's warm-up is estimated."""

WARM_UP_MOST = 2.0
"""A larger ratio between waves is other data, or executors still arriving, rather than warm-up."""


class BoundedError(NoAnswerError):
    """No figure, but a bound: the runtime is at least `low` or at most `high` times the recorded one."""

    def __init__(self, reason: str, *, low: float | None = None, high: float | None = None) -> None:
        super().__init__(reason)
        self.low, self.high = low, high


@dataclass(frozen=True)
class Buffering:
    """Buffered input or output of a device, for Algorithm 2.

    `buffer_bytes` is S_B and `overhead_ms` is o, the time to process one buffer, which no bandwidth changes.
    `rate_bps` (bytes per second) estimates the data behind a time where neither bytes nor bandwidth are known.
    """

    buffer_bytes: float
    overhead_ms: float
    rate_bps: float


BUFFERING = {
    # A page-cache read-ahead window (Linux: read_ahead_kb = 128); Arrakis (OSDI '14, §2.1) measures the kernel's
    # own share of a small write at several µs. The rate is a SATA disk's.
    "disk": Buffering(128 * 1024, 0.005, 150e6),
    # TCP's default receive buffer (tcp_rmem's 131072). Arrakis table 1: 3.36 µs of kernel time a packet; with
    # segmentation offload the kernel handles the buffer as two of 64 KiB. The rate is 1 Gbps.
    "net": Buffering(128 * 1024, 0.0067, 125e6),
}

KEY_OF_RESOURCE = {"cpu": "cpu_speed", "disk": "disk", "net": "network"}
"""The key that changes the speed of a resource."""

HEAP_RESERVED_BYTES = 300 * 2**20
"""Spark keeps this much of the heap for itself (UnifiedMemoryManager.RESERVED_SYSTEM_MEMORY_BYTES)."""

MEMORY_SPEED_RATIO = 30.0
"""In-memory over on-disk access speed: the slope of the reversed roofline where no disk rate is stated."""


def predict(execution: Execution, world: World, framework: Framework) -> Prediction:
    """The runtime of a scope in a changed world; a question that cannot be answered says why in `refused`."""
    base = _base_replay(execution, framework)
    known = Prediction(
        scope=execution.scope.text,
        setting=world.describe(),
        runtime_ms=execution.runtime_ms,
        replayed_ms=base.makespan_ms,
        predicted_ms=None,
    )
    try:
        outcome = _changed_replay(execution, world, framework, base)
    except NoExecutorLeftError:
        kept = replace(execution.slots, until_ms=np.full(len(execution.slots), np.inf))
        outcome = _changed_replay(replace(execution, slots=kept), world, framework, base)
        stay = "executors that were lost or given back in the recorded run stay to the end, for they would be needed"
        outcome = replace(outcome, assumptions=(*outcome.assumptions, stay))
    except BoundedError as error:
        low, high = (None if ratio is None else ratio * execution.runtime_ms for ratio in (error.low, error.high))
        return replace(known, refused=(str(error),), bound_ms=(low, high), stages=_stages(execution, base, None))
    except NoAnswerError as error:
        return replace(known, refused=(str(error),), stages=_stages(execution, base, None))
    correction = execution.runtime_ms / base.makespan_ms if base.makespan_ms > 0 else 1.0
    predicted = outcome.replayed.makespan_ms * correction
    if all(world.ratio(key) == 1 for key in ("cores", "executors")):
        # Other speeds alone change the order of ends, and list scheduling may then do worse with better devices
        # (Graham's anomaly); that is luck, not an answer.
        ratios = [world.ratio(key) for key in KEYS]
        predicted = min(predicted, execution.runtime_ms) if min(ratios) >= 1 else predicted
        predicted = max(predicted, execution.runtime_ms) if max(ratios) <= 1 else predicted
    return replace(
        known,
        predicted_ms=predicted,
        stages=_stages(execution, base, outcome.replayed),
        assumptions=outcome.assumptions,
    )


@dataclass(frozen=True)
class _Outcome:
    replayed: Replayed
    assumptions: tuple[str, ...]


def _base_replay(execution: Execution, framework: Framework) -> Replayed:
    schedule = framework.schedule(execution.scheduler)
    tasks = execution.tasks
    return replay(execution.dag, tasks, tasks.duration_ms, execution.slots, schedule, sequential_limits(execution))


def _changed_replay(execution: Execution, world: World, framework: Framework, base: Replayed) -> _Outcome:
    names = resources()
    tasks = execution.tasks
    schedule = framework.schedule(execution.scheduler)
    assumptions: list[str] = []
    slots = changed_slots(execution, world)
    limits = sequential_limits(execution)
    parts, memory_assumption = with_memory(execution, world)
    assumptions += memory_assumption
    parts = parts.copy()
    parts[:, names.index("cpu")] /= world.ratio("cpu_speed")
    if world.ratio("cpu_speed") != 1:
        assumptions.append("CPU time scales inversely with the speed of a core; the driver's own time too")
    shared = [name for name in names if name != "cpu"]
    before = {name: _company(execution, base, tasks.parts_ms, names.index(name)) for name in shared}
    scaled = {name: _io_scaled(execution, parts[:, names.index(name)], name, world) for name in shared}
    wave_before, warm_up = first_wave(dag_stage=tasks.stage, replayed=base), warm_up_factors(execution, base)
    driver_dag = _driver_scaled(execution, world)

    placed = tasks
    if world.ratio("executors") != 1:  # other executors: tasks go where there is room
        placed = replace(tasks, executor=np.full(len(tasks), -1))
    now = base
    factor = {name: np.ones(len(tasks)) for name in shared}
    current = parts
    for _ in range(ROUNDS):
        current = parts.copy()
        for name in shared:
            current[:, names.index(name)] = scaled[name] * factor[name]
        wave = first_wave(dag_stage=tasks.stage, replayed=now)
        warmth = np.where(wave & ~wave_before, warm_up[tasks.stage], 1.0)
        warmth = np.where(~wave & wave_before, 1.0 / warm_up[tasks.stage], warmth)
        now = replay(driver_dag, placed, current.sum(axis=1) * warmth, slots, schedule, limits)
        for name in shared:
            after = _company_of(slots.host[now.slot], now, current, names.index(name))
            factor[name] = (factor[name] + after / before[name]) / 2
    if world.ratio("cores") != 1 or world.ratio("executors") != 1:
        assumptions.append("every task slot brings its own core, every added executor its own node")
        assumptions.append("tasks that run on a node at a time share its disk and its network equally")
        widest = max(np.bincount(tasks.stage), default=0)
        if len(slots) > widest:
            assumptions.append(f"{len(slots)} slots for at most {widest} tasks of a stage: some slots stay idle")
    for name in shared:
        key = KEY_OF_RESOURCE[name]
        ratio = world.ratio(key)
        if ratio != 1:
            assumptions.append(f"time on the {key} scales with its bandwidth, less the processing of each buffer")
        if ratio < 1 and getattr(execution.recorded, key) is None:
            assumptions.append(
                f"the run does not tell its {key} bandwidth, so work that hid behind computing may come to light:"
                f" the true runtime may be longer (--recorded {key}=… would tell)"
            )
    assumptions += framework.replan(execution, world)
    return _Outcome(now, tuple(assumptions))


def changed_slots(execution: Execution, world: World) -> Slots:
    """The task slots of the changed world.

    Executors come and go as the recorded ones did.  Added ones are copies of these on nodes of their own; of fewer,
    as many are left out evenly.  Raises NoAnswerError where the run does not tell its executors.
    """
    if world.ratio("cores") == 1 and world.ratio("executors") == 1:
        return execution.slots
    old = execution.slots
    if not len(old):
        raise NoAnswerError("the log names no executors, so the number of task slots is unknown")
    recorded, first, width = np.unique(old.executor, return_index=True, return_counts=True)
    count = max(round(len(recorded) * world.ratio("executors")), 1)
    if count >= len(recorded):
        chosen, copy = np.arange(count) % len(recorded), np.arange(count) // len(recorded)
    else:
        chosen = np.floor(np.linspace(0, len(recorded), count, endpoint=False)).astype(np.int64)
        copy = np.zeros(count, dtype=np.int64)
    slots_of = np.maximum(np.rint(width[chosen] * world.ratio("cores")).astype(np.int64), 1)
    row = np.repeat(np.arange(count), slots_of)
    origin = first[chosen][row]
    return Slots(
        executor=row,
        host=old.host[origin] + copy[row] * (int(old.host.max()) + 1),
        available_ms=old.available_ms[origin],
        until_ms=old.until_ms[origin],
    )


def sequential_limits(execution: Execution) -> list[int | None]:
    """Per stage the tasks it may run at a time; None where slots were all that limited it.

    Tasks that ran one at a time beside idle slots stay so (the paper's Amdahl): something other than slots held
    them back.  That is so where a stage launched tasks after others of it had ended, and at every launch a slot of
    an executor then alive was still free.
    """
    tasks, slots = execution.tasks, execution.slots
    limits: list[int | None] = []
    order = np.argsort(tasks.stage, kind="stable")
    bounds = np.searchsorted(tasks.stage[order], np.arange(len(execution.dag.stages) + 1))
    all_launch, all_finish = np.sort(tasks.launch_ms), np.sort(tasks.finish_ms)
    arrivals, departures = np.sort(slots.available_ms), np.sort(slots.until_ms)
    for number in range(len(execution.dag.stages)):
        mine = order[bounds[number] : bounds[number + 1]]
        launch, finish = np.sort(tasks.launch_ms[mine]), np.sort(tasks.finish_ms[mine])
        own = np.arange(1, len(mine) + 1) - np.searchsorted(finish, launch, side="right")
        at_once = int(own.max(initial=0))
        busy = np.searchsorted(all_launch, launch, side="right") - np.searchsorted(all_finish, launch, side="right")
        alive = np.searchsorted(arrivals, launch, side="right") - np.searchsorted(departures, launch, side="right")
        held_back = at_once < len(mine) and bool((busy < alive).all())
        limits.append(at_once if held_back else None)
    return limits


def first_wave(*, dag_stage: Ints, replayed: Replayed) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which tasks are the first of their stage on their slot, (tasks,)."""
    order = np.lexsort((replayed.launch_ms, replayed.slot, dag_stage))
    stage, slot = dag_stage[order], replayed.slot[order]
    first = np.ones(len(order), dtype=bool)
    first[1:] = (stage[1:] != stage[:-1]) | (slot[1:] != slot[:-1])
    result = np.zeros(len(order), dtype=bool)
    result[order] = first
    return result


def warm_up_factors(execution: Execution, base: Replayed) -> Floats:
    """Per stage how much longer a task takes in its first wave than later (§5, w); 1 where too few tasks tell."""
    tasks = execution.tasks
    first = first_wave(dag_stage=tasks.stage, replayed=base)
    factors = np.ones(len(execution.dag.stages))
    for number in range(len(factors)):
        mine = tasks.stage == number
        early, late = tasks.duration_ms[mine & first], tasks.duration_ms[mine & ~first]
        if len(early) >= WARM_UP_TASKS and len(late) >= WARM_UP_TASKS and np.median(late) > 0:
            factors[number] = min(max(float(np.median(early) / np.median(late)), 1.0), WARM_UP_MOST)
    return factors


def scale_io(time_ms: Floats, ratio: float, data_bytes: Floats, buffering: Buffering) -> Floats:
    """Algorithm 2 for one device: `time_ms` of input and output under `ratio` times the bandwidth.

    t_p = D / S_B · o stays, t_c = t_io − t_p (never below 0) scales by B / B′.
    """
    processing = np.minimum(data_bytes / buffering.buffer_bytes * buffering.overhead_ms, time_ms)
    scaled: Floats = processing + (time_ms - processing) / ratio
    return scaled


def _io_scaled(execution: Execution, time_ms: Floats, resource: str, world: World) -> Floats:
    ratio = world.ratio(KEY_OF_RESOURCE[resource])
    if ratio == 1:
        return time_ms
    buffering, volumes = BUFFERING[resource], execution.volumes
    logged = volumes.remote if resource == "net" else volumes.input + volumes.shuffle_write + volumes.output
    rate = getattr(execution.recorded, KEY_OF_RESOURCE[resource]) or buffering.rate_bps
    data = np.where(logged > 0, np.minimum(logged, time_ms / 1e3 * rate), time_ms / 1e3 * rate)
    return scale_io(time_ms, ratio, data, buffering)


def with_memory(execution: Execution, world: World) -> tuple[Floats, list[str]]:
    """Task parts with the transfers that less memory adds or more memory saves, and what was assumed.

    The roofline is flat above the turning point: the execution memory that the slots of an executor hold at their
    peak.  Below it every missing byte is written and read again at disk speed (§5, ours for the seconds).  Raises
    NoAnswerError where the run does not tell how much it needed.
    """
    ratio, tasks, volumes = world.ratio("memory"), execution.tasks, execution.volumes
    if ratio == 1:
        return tasks.parts_ms, []
    disk = resources().index("disk")
    spilled = bool(volumes.spill_memory.any())
    busy = float(tasks.duration_ms.sum()) or 1.0
    gc = float(volumes.gc_ms.sum()) / busy
    if ratio > 1 and not spilled:
        if gc > 0.1:
            raise BoundedError(
                f"memory: {gc:.0%} of task time went to garbage collection, which more memory would shorten by an"
                " amount this run does not tell",
                high=1.0,
            )
        return tasks.parts_ms, [
            f"nothing was spilled and {gc:.0%} of task time was garbage collection: memory sufficed"
        ]
    memory = execution.recorded.memory
    if memory is None:
        raise NoAnswerError("memory: the run does not tell how much each executor had; add --recorded memory=…")
    fraction = float(execution.properties.get("spark.memory.fraction", "0.6"))
    usable = [max(size - HEAP_RESERVED_BYTES, 0.0) * fraction for size in (memory, memory * ratio)]
    if memory * ratio < 1.5 * HEAP_RESERVED_BYTES:
        raise NoAnswerError(f"memory: {memory * ratio / 2**20:.0f} MiB is less than Spark starts with (450 MiB)")
    if not volumes.peak_memory.any() and not spilled:
        raise BoundedError("memory: nothing in the run tells how much of its memory it needed", low=1.0)
    per_slot = [size / max(execution.recorded.cores or 1, 1) for size in usable]
    # A task that spilled lacked what it spilled, and every byte its slot gains or loses is one less or more of it;
    # one that did not spill lacks what of its peak no longer fits.
    missing = np.where(
        volumes.spill_memory > 0,
        np.maximum(volumes.spill_memory - (per_slot[1] - per_slot[0]), 0.0),
        np.maximum(volumes.peak_memory - per_slot[1], 0.0),
    )
    # On disk the data are as small as the spills were.
    squeeze = volumes.spill_disk.sum() / volumes.spill_memory.sum() if spilled else 0.5
    rate = execution.recorded.disk or BUFFERING["disk"].rate_bps
    change_ms = (missing - volumes.spill_memory) * squeeze * 2 / rate * 1e3
    parts = tasks.parts_ms.copy()
    saved = np.minimum(np.maximum(-change_ms, 0.0), parts[:, disk])
    parts[:, disk] += np.maximum(change_ms, 0.0) - saved
    if ratio < 1 and not missing.any():
        return parts, [
            "every task's peak memory still fits, so less memory changes nothing; cached blocks are not counted"
        ]
    return parts, [
        f"missing memory is written and read once at {rate / 1e6:.0f} MB/s; garbage collection is not modelled"
    ]


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


def _company(execution: Execution, replayed: Replayed, parts: Floats, column: int) -> Floats:
    return _company_of(execution.slots.host[replayed.slot], replayed, parts, column)


def _company_of(host: Ints, replayed: Replayed, parts: Floats, column: int) -> Floats:
    total = parts.sum(axis=1)
    share = np.divide(parts[:, column], total, out=np.zeros(len(total)), where=total > 0)
    return company(host, replayed.launch_ms, replayed.finish_ms, share)


def _stages(execution: Execution, base: Replayed, replayed: Replayed | None) -> tuple[StagePrediction, ...]:
    """Every stage's recorded length, and that times the ratio of the two replays' lengths of it."""
    found = []
    for node_id, node in execution.dag.nodes.items():
        if node.stage is None:
            continue
        recorded, predicted = node.end_ms - node.start_ms, None
        if replayed is not None:
            mine = execution.tasks.stage == node.stage
            before, after = (
                float(each.finish_ms[mine].max() - each.launch_ms[mine].min()) for each in (base, replayed)
            )
            predicted = recorded * after / before if before > 0 else recorded
        found.append(StagePrediction(node_id, node.name, recorded, predicted))
    return tuple(found)
