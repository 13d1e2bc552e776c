"""What the model does not know: questions beyond its range get a bound instead of a figure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crystalperf.indexes.resources import CPU, Resource
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.scenario import World
from crystalperf.query.execution.volumes import most_spilling_ms
from crystalperf.query.predict.priors import waits_unknown
from crystalperf.query.results.refusals import (
    Refusal,
    RemoteReadsUnknown,
    SendersOutOfRange,
    SlotsOutOfRange,
    TasksWithoutEnd,
)
from crystalperf.query.simulate.caching import cache_refusal
from crystalperf.query.simulate.transfers import moves_known

MOST_SLOTS_RATIO = 16
"""Slots over recorded slots, or the reverse, beyond which nothing recorded tells how scheduling would do."""

MOST_WORKERS_RATIO = 8
"""The same for workers whose units read of each other: each would fetch from so many more senders."""

SLOW_BPS, NOTICED = 1e6, 0.02
"""A network slower than any cluster's, bytes a second, and the share of a runtime below which what crosses it is
nothing."""

UNSEEN_SHARE = 0.2
"""Share of unit time from which what is unknown may be what a question is about."""

SEEN_SHARE = 0.02
"""Share of unit time on a device from which the run says something about it."""


def beyond(execution: Execution, world: World) -> Refusal | None:
    """Why a question is outside the model's range, or None.

    Every speed of a device is inside: its time shrinks towards nothing, or grows with an interval that does.
    """
    slots, workers = world.ratio("cores") * world.ratio("workers"), world.ratio("workers")
    if max(slots, 1 / slots) > MOST_SLOTS_RATIO:
        return SlotsOutOfRange(slots, MOST_SLOTS_RATIO)
    if crosses_anew(execution, world):
        return RemoteReadsUnknown()
    if workers > MOST_WORKERS_RATIO and (execution.volumes.remote.any() or execution.volumes.local.any()):
        return SendersOutOfRange(workers, MOST_WORKERS_RATIO)
    return cache_refusal(execution, world)


def crosses_anew(execution: Execution, world: World) -> bool:
    """Whether units would fetch of other workers for the first time, and more than any network brings in no time."""
    volumes = execution.volumes
    if world.ratio("workers") <= 1 or volumes.remote.any():
        return False
    return float(volumes.local.sum()) / SLOW_BPS * 1e3 > NOTICED * execution.runtime_ms


def lost(execution: Execution) -> Refusal | None:
    """Why no question can be asked of a run whose log lacks most of its work, or None."""
    count = sum(each.lost for each in execution.lost)
    theirs = {each.group_id for each in execution.lost}
    groups = execution.dag.groups
    others = [number for number, each in enumerate(groups) if each.group_id not in theirs]
    total = sum(each.total for each in execution.lost) + int(np.isin(execution.units.group, others).sum())
    if count <= UNSEEN_SHARE * total:
        return None
    return TasksWithoutEnd(count, total)


def unseen(execution: Execution, world: World) -> list[tuple[Resource, float]]:
    """The changed resources that unknown time may be, with the share of unit time that may be each one's.

    Without samples logs time only some of what units do.  Of a device that was seen the run says something, and so do
    its bytes where its bandwidth is known; where CPU time was measured, what is unknown was no computing, but may have
    been waiting for a CPU.
    """
    if execution.has_samples:
        return []
    found = []
    seen = execution.units.parts_ms.sum(axis=0) / (execution.units.parts_ms.sum() or 1.0)
    for position, each in enumerate(execution.resources):
        if world.ratio(each.setting) == 1:
            continue
        share = execution.evidence.unseen
        if each.name == CPU:
            share = max(execution.evidence.unseen_cpu, waits_unknown(execution))
        is_seen = each.name != CPU and seen[position] >= SEEN_SHARE
        if share > UNSEEN_SHARE and not is_seen and not moves_known(execution, each):
            found.append((each, share))
    return found


def unseen_spills(execution: Execution, world: World) -> Execution | None:
    """The execution, had samples seen all unknown time that may be spilling; None where memory stays, or there is none.

    Without samples a log has the bytes that were spilled, and of the time that took only some.
    """
    volumes, units = execution.worker_volumes, execution.units
    if execution.has_samples or world.ratio("memory") == 1 or not volumes.spill_memory.any():
        return None
    spilling_ms = np.minimum(units.parts_ms[:, -1], most_spilling_ms(volumes.spill_disk, volumes.spill_memory))
    parts = units.parts_ms.copy()
    parts[:, -1] -= spilling_ms
    parts[:, execution.names.index(CPU)] += spilling_ms
    return replace(
        execution, units=replace(units, parts_ms=parts), volumes=replace(execution.volumes, spill_ms=spilling_ms)
    )
