"""Batches and launches in a scenario: processes that make batches, batches of the training's thread, launches.

A loader process makes one batch after the other, so a step that waits for input takes as long as its loaders need for
a batch.  That period is the whole step, not the wait: it grows with the batch and shrinks with the number of
processes, and a step waits for what host and accelerator leave of it.  Their own time in the scenario comes from a
replay, and so does the wait: the one with which the replay takes as long as the period, or none.

Without launches, as if a CUDA graph held the whole step, only the accelerator's work and the making of batches are
left: a lower bound, because a graph has launches of its own, and few programs fit into one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

import numpy as np

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.resources import CPU
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.scenario import Scenario, Setting
from crystalperf.query.frameworks import Ends, Planned
from crystalperf.query.frameworks.ml.pytorch import ranges
from crystalperf.query.frameworks.ml.pytorch.assumptions import BatchesMade, LaunchesRemoved
from crystalperf.query.frameworks.ml.pytorch.refusals import GraphUnknown, LoadersAhead, NoKernels, NoLoaders
from crystalperf.query.frameworks.ml.training import devices, scenarios
from crystalperf.query.frameworks.ml.training.devices import GPU, HBM, LATENCY
from crystalperf.query.results.refusals import Refusal, RefusedError
from crystalperf.query.trace.arrays import safe_divide
from crystalperf.query.trace.records import Floats

OWN_BATCHES = "own batches"
"""The operator of a training's thread outside of other operators while it makes a batch itself."""

LOADERS = "loader_workers"
LAUNCH = "launch"

SETTINGS: Mapping[str, Setting] = {
    **devices.SETTINGS,
    LOADERS: Setting("count", "processes that make batches (`num_workers` of a DataLoader)"),
    LAUNCH: Setting("choice", "launches of kernels, 0 for none of them, as with CUDA graphs", ("0",)),
}

WAITS_SHARE = 0.05
"""Minimum share of waits for loaders in the steps from which the loaders limit them."""

_CLOSE = 0.003
"""How close to the loaders' period a step is predicted, as a share."""

_ROUNDS = 8

_NOTICED_MS = 0.3
"""A shorter gap of a thread is not a wait for a batch."""


@frozen
class _Waits:
    """Waits for input of each task, ms: for loader processes, and for batches that the thread makes itself."""

    loaders_ms: Floats
    own_ms: Floats
    own_cpu_share: Floats
    """The share of each task's CPU that makes batches."""
    gaps_ms: Mapping[str, float]
    """By node, how long other threads, such as the one that pins memory, had nothing to do during waits for loaders."""


def replan(execution: Execution, scenario: Scenario, wanted: bool) -> Planned | Refusal:
    """The run with the scenario's processes, loaders and launches."""
    planned = scenarios.replan(execution, scenario, wanted)
    if isinstance(planned, Refusal):
        return planned
    batch, loaders = scenario.ratio("input"), scenario.ratio(LOADERS)
    without_launches = scenario.choice(LAUNCH) is not None
    if batch == loaders == 1 and not without_launches:
        return planned
    waits = _waits(planned.execution)
    limits = _limits(waits, execution)
    if loaders != 1 and not limits:
        _refuse(waits, loaders)
    if without_launches and GPU.name not in execution.names:
        return NoKernels()
    changed = planned.execution
    assumed = list(planned.assumptions)
    if without_launches:
        changed = _without_launches(changed, waits)
        assumed.append(LaunchesRemoved())
    waits = replace(waits, own_ms=waits.own_ms * batch)
    if not limits:
        return Planned(_waiting(changed, waits, 1.0), tuple(assumed), planned.slots)
    period_ms = execution.runtime_ms * batch / loaders
    alone_ms, times = _share_of_waits(changed, scenario, waits, period_ms)
    steps = max(int(execution.properties.get("steps", "1")), 1)
    assumed.append(BatchesMade(execution.runtime_ms / steps, period_ms / steps, alone_ms / steps))
    return Planned(_waiting(changed, waits, times), tuple(assumed), planned.slots)


def other_bound(execution: Execution, scenario: Scenario) -> tuple[Refusal, Scenario] | None:
    """Why a prediction is a range, and the scenario of its other bound: launches stay as they are."""
    if scenario.choice(LAUNCH) is None:
        return scenarios.other_bound(execution, scenario)
    busy_ms = execution.properties.get("busy_ms")
    return GraphUnknown(None if busy_ms is None else float(busy_ms)), replace(
        scenario, changes={key: each for key, each in scenario.changes.items() if key != LAUNCH}
    )


def ends(execution: Execution, scenario: Scenario) -> Iterator[Ends] | None:
    """See ranges.ends."""
    if ranges.RETIMED not in execution.properties:
        return None
    host = float(execution.properties.get(ranges.HOST_TERM, ranges.FITTED.host))
    return ranges.ends(scenario, LOADERS if _limits(_waits(execution), execution) else None, host)


def checked(execution: Execution) -> Collection[str]:
    """Settings that have been checked: batches on CPUs, and all of one accelerator (docs/training.md)."""
    if GPU.name not in execution.names:
        return ("input",)
    if ranges.RETIMED not in execution.properties:
        return ()
    return ("input", *(each.setting for each in (GPU, HBM, LATENCY)), *devices.SETTINGS)


def _limits(waits: _Waits, execution: Execution) -> bool:
    """Whether loader processes limit the steps."""
    return float(waits.loaders_ms.sum()) >= WAITS_SHARE * execution.runtime_ms


def _refuse(waits: _Waits, loaders: float) -> None:
    """Raise RefusedError if other numbers of loader processes have no known effect on steps that hardly wait."""
    if waits.own_ms.sum() > 0 or (waits.own_cpu_share > 0).any():
        raise RefusedError(NoLoaders())
    if loaders < 1:
        raise RefusedError(LoadersAhead(), low=1.0, high=1 / loaders)


def _waits(execution: Execution) -> _Waits:
    tasks, shape = execution.tasks, (len(execution.dag.stages), execution.tasks.parts_ms.shape[1])
    own, whole = np.zeros(shape), np.zeros(shape)
    for name, times_ms in execution.operators.items():
        whole += times_ms
        if name.startswith(OWN_BATCHES):
            own += times_ms
    cpu = execution.names.index(CPU)
    share = safe_divide(own[:, cpu], whole[:, cpu])[tasks.stage]
    own_ms = np.minimum(tasks.pipeline_wait_ms, own[:, -1][tasks.stage])
    loaders_ms = tasks.pipeline_wait_ms - own_ms
    return _Waits(loaders_ms, own_ms, share, _gaps(execution, loaders_ms))


def _gaps(execution: Execution, loaders_ms: Floats) -> dict[str, float]:
    """Gaps of threads that lie mostly within waits for loaders, ms within them by node."""
    tasks = execution.tasks
    spans = sorted(
        (float(tasks.launch_ms[each]), float(tasks.finish_ms[each]))
        for each in np.flatnonzero(loaders_ms > _NOTICED_MS)
    )
    starts = [start for start, _ in spans]
    found = {}
    for node_id, node in execution.dag.nodes.items():
        length = node.end_ms - node.start_ms
        if node.kind != "driver" or length <= _NOTICED_MS:
            continue
        near = spans[max(bisect_right(starts, node.start_ms) - 1, 0) : bisect_right(starts, node.end_ms)]
        within = sum(max(min(end, node.end_ms) - max(start, node.start_ms), 0.0) for start, end in near)
        if within >= length / 2:
            found[node_id] = within
    return found


def _waiting(execution: Execution, waits: _Waits, times: float) -> Execution:
    """The run with so many times the recorded waits for loaders."""
    tasks = execution.tasks
    waits_ms = times * waits.loaders_ms + waits.own_ms
    longer = waits_ms - tasks.pipeline_wait_ms
    parts = tasks.parts_ms.copy()
    parts[:, -1] += longer
    changed = replace(tasks, parts_ms=parts, pipeline_wait_ms=waits_ms, finish_ms=tasks.finish_ms + longer)
    nodes = dict(execution.dag.nodes)
    for node_id, within_ms in waits.gaps_ms.items():
        nodes[node_id] = replace(nodes[node_id], end_ms=nodes[node_id].end_ms + (times - 1) * within_ms)
    return replace(execution, tasks=changed, dag=replace(execution.dag, nodes=nodes))


def _without_launches(execution: Execution, waits: _Waits) -> Execution:
    """The run without the host's time, except that for batches."""
    tasks, cpu = execution.tasks, execution.names.index(CPU)
    parts = tasks.parts_ms.copy()
    parts[:, cpu] *= waits.own_cpu_share
    parts[:, -1] = np.minimum(parts[:, -1], tasks.pipeline_wait_ms)
    left = safe_divide(parts[:, cpu], tasks.parts_ms[:, cpu])
    volumes = replace(execution.volumes, total_cpu_ms=execution.volumes.total_cpu_ms * left)
    saved = (tasks.parts_ms - parts).sum(axis=1)
    nodes = {  # a stream's gaps between its kernels are launches too
        node_id: replace(node, end_ms=node.start_ms) if node.kind == "driver" and node_id not in waits.gaps_ms else node
        for node_id, node in execution.dag.nodes.items()
    }
    return replace(
        execution,
        tasks=replace(tasks, parts_ms=parts, finish_ms=tasks.finish_ms - saved),
        volumes=volumes,
        dag=replace(execution.dag, nodes=nodes),
    )


def _share_of_waits(execution: Execution, scenario: Scenario, waits: _Waits, period_ms: float) -> tuple[float, float]:
    """The steps' time without waits for loaders, ms, and how many times the recorded waits they have if they take as
    long as the loaders' period, 0 if they take longer anyway."""
    # Only predictions need the simulation, and every command loads this package.
    from crystalperf.query.predict.scenario_replay import PredictionRequest, replay_baseline

    kept = {"input", devices.PRECISION, *(each.setting for each in execution.resources)}
    inner = Scenario(
        {key: each for key, each in scenario.changes.items() if key in kept},
        scenario.recorded,
        {key: each for key, each in scenario.ratios.items() if key in kept},
    )
    plain = replace(execution, planner=replace(execution.planner, replan=scenarios.replan))

    def length(times: float) -> float:
        changed = _waiting(plain, waits, times)
        return PredictionRequest(changed, inner, replay_baseline(changed)).answer().replayed.makespan_ms

    alone_ms = length(0.0)
    if alone_ms >= period_ms:
        return alone_ms, 0.0
    times, total = 0.0, float(waits.loaders_ms.sum())
    took = alone_ms
    for _ in range(_ROUNDS):
        if abs(took - period_ms) <= _CLOSE * period_ms:
            break
        times = max(times + (period_ms - took) / total, 0.0)
        took = length(times)
    return alone_ms, times
