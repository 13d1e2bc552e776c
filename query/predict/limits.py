"""Limits of the model: scenarios outside its range get bounds instead of a prediction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crystalperf.indexes.resources import CPU, Resource, resources
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.scenario import Scenario
from crystalperf.query.execution.volumes import most_spilling_ms
from crystalperf.query.predict.priors import unknown_cpu_wait_share
from crystalperf.query.results.refusals import (
    Refusal,
    RemoteReadsUnknown,
    SendersOutOfRange,
    SlotsOutOfRange,
    TasksWithoutEnd,
)
from crystalperf.query.simulate.caching import cache_refusal
from crystalperf.query.simulate.transfers import moves_known

MAX_SLOTS_RATIO = 16
"""Maximum ratio of slots to recorded slots, or the reverse: beyond it, recorded data say nothing about scheduling."""

MAX_WORKERS_RATIO = 8
"""The same for workers that exchange data: each would fetch from so many more senders."""

SLOW_BPS, NOTICED = 1e6, 0.02
"""A network slower than any cluster's, bytes per second, and the share of the runtime below which its transfers are
negligible."""

MISSING_SHARE = 0.2
"""Maximum share of unknown task time that may be on a changed resource."""

RECORDED_SHARE = 0.02
"""Minimum share of task time on a device for the run to be evidence about it."""


def beyond(execution: Execution, scenario: Scenario) -> Refusal | None:
    """Why a scenario is outside the model's range, or None.

    Every device speed is inside: the time on the device shrinks towards 0, or grows, and the interval grows with it.
    """
    slots, workers = scenario.ratio("cores") * scenario.ratio("workers"), scenario.ratio("workers")
    if max(slots, 1 / slots) > MAX_SLOTS_RATIO:
        return SlotsOutOfRange(slots, MAX_SLOTS_RATIO)
    if adds_remote_reads(execution, scenario):
        return RemoteReadsUnknown()
    if workers > MAX_WORKERS_RATIO and (execution.volumes.remote_read.any() or execution.volumes.local_read.any()):
        return SendersOutOfRange(workers, MAX_WORKERS_RATIO)
    return cache_refusal(execution, scenario)


def adds_remote_reads(execution: Execution, scenario: Scenario) -> bool:
    """Whether tasks would fetch from other workers for the first time, and a noticeable amount on a slow network."""
    volumes = execution.volumes
    if scenario.ratio("workers") <= 1 or volumes.remote_read.any():
        return False
    return float(volumes.local_read.sum()) / SLOW_BPS * 1e3 > NOTICED * execution.runtime_ms


def lost(execution: Execution) -> Refusal | None:
    """Why a run whose log lacks too much of its work cannot be predicted, or None."""
    count = sum(each.lost for each in execution.lost)
    incomplete = {each.stage_id for each in execution.lost}
    stages = execution.dag.stages
    others = [number for number, each in enumerate(stages) if each.stage_id not in incomplete]
    total = sum(each.total for each in execution.lost) + int(np.isin(execution.tasks.stage, others).sum())
    if count <= MISSING_SHARE * total:
        return None
    return TasksWithoutEnd(count, total)


def unseen_resources(execution: Execution, scenario: Scenario) -> list[tuple[Resource, float]]:
    """The changed resources that may have used too much of the unknown time, with that share of task time.

    A log without samples has only part of the time of tasks.  It is evidence about a device with recorded time, or with
    bytes and a known bandwidth; a device that only the framework has, such as a GPU, is recorded by it.  If CPU time
    was measured, unknown time is not computing, but may be a wait for a CPU.
    """
    if execution.has_samples:
        return []
    found = []
    seen = execution.tasks.parts_ms.sum(axis=0) / (execution.tasks.parts_ms.sum() or 1.0)
    for position, each in enumerate(execution.resources):
        if scenario.ratio(each.setting) == 1:
            continue
        share = execution.evidence.unseen_resources
        if each.name == CPU:
            share = max(execution.evidence.missing_cpu_share, unknown_cpu_wait_share(execution))
        least = RECORDED_SHARE if each.name in resources() else np.finfo(float).tiny
        is_recorded = each.name != CPU and seen[position] >= least
        if share > MISSING_SHARE and not is_recorded and not moves_known(execution, each):
            found.append((each, share))
    return found


def missing_spills(execution: Execution, scenario: Scenario) -> Execution | None:
    """The execution with all unknown time that may be spilling counted as spilling; None if memory does not change, or
    nothing spilled.

    A log without samples has the spilled bytes, but only part of the time of spilling.
    """
    volumes, tasks = execution.worker_volumes, execution.tasks
    if execution.has_samples or scenario.ratio("memory") == 1 or not volumes.spill_memory.any():
        return None
    spilling_ms = np.minimum(tasks.parts_ms[:, -1], most_spilling_ms(volumes.spill_disk, volumes.spill_memory))
    parts = tasks.parts_ms.copy()
    parts[:, -1] -= spilling_ms
    parts[:, execution.names.index(CPU)] += spilling_ms
    return replace(
        execution, tasks=replace(tasks, parts_ms=parts), volumes=replace(execution.volumes, spill_ms=spilling_ms)
    )
