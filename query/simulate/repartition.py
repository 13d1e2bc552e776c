"""The units of a group cut anew: as many pieces of its work as another plan of the framework would have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from crystalperf.indexes.resources import CPU
from crystalperf.query.execution.dag import AT_HOME, Units
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.volumes import Volumes
from crystalperf.query.trace.arrays import before_any, members, over
from crystalperf.query.trace.records import Floats, Ints

MOST_FIXED = 0.8
"""Of a unit's CPU time the most that may be the same whatever it gets to do: all of it did some work."""


def with_units(execution: Execution, counts: Mapping[int, int], fixed_ms: Floats | None = None) -> Execution:
    """The execution with other numbers of units in some groups, `counts` by the group's number.

    The work of a group is a line in its recorded order, cut anew: what a piece covers of a recorded unit it does.
    Starting, unpacking and reporting a unit take each as long as they took most of the recorded ones that were not the
    first on their worker, of any group where its own all were; what they took these longer is paid once, and so is part
    of the work.  `fixed_ms` is CPU time of each recorded unit, (units,), that one takes whatever it gets to do.
    """
    units, volumes = execution.units, execution.volumes
    duration, cpu = units.duration_ms, execution.names.index(CPU)
    on_cpu = volumes.on_cpu_ms
    again = np.zeros(len(units)) if fixed_ms is None else np.minimum(over(fixed_ms, on_cpu), MOST_FIXED)
    overhead_ms, later = np.minimum(volumes.overhead_ms, duration), np.ones(len(units), dtype=bool)
    if execution.starts:  # workers that had run nothing before
        later = ~before_any(units.worker + 1, units.launch_ms, units.finish_ms)
    columns = {name: getattr(volumes, name) for name in Volumes.__dataclass_fields__}
    pieces: list[Units] = []
    amounts: dict[str, list[Floats]] = {name: [] for name in columns}
    for number, mine in enumerate(members(units.group, len(execution.dag.groups))):
        if number not in counts:
            pieces.append(units.select(mine))
            for name, values in columns.items():
                amounts[name].append(values[mine].astype(np.float64))
            continue
        edges = np.arange(counts[number] + 1) / counts[number] * len(mine)
        usual = next(each for each in (mine[later[mine]], np.flatnonzero(later), mine) if len(each))
        around = over(np.minimum(overhead_ms[mine], np.median(overhead_ms[usual])), duration[mine])[:, None]
        own = units.parts_ms[mine] * (1 - around)
        fixed = (units.parts_ms[mine] * around).mean(axis=0)
        fixed[cpu] += (own[:, cpu] * again[mine]).mean()
        own[:, cpu] *= 1 - again[mine]
        parts = np.stack([_between(edges, column) for column in own.T], axis=1) + fixed
        launch = units.launch_ms[mine[edges[:-1].astype(np.int64)]]
        origin = mine[edges[:-1].astype(np.int64)]
        placement = units.placement[origin]
        worker, host = (np.where(placement == AT_HOME, each[origin], -1) for each in (units.worker, units.host))
        unknown, group = np.full(len(parts), -1), np.full(len(parts), number)
        finish, upstream = launch + parts.sum(axis=1), _between(edges, units.upstream_ms[mine])
        pieces.append(Units(unknown, group, worker, host, launch, finish, parts, placement, upstream, unknown))
        for name, values in columns.items():
            amounts[name].append(_between(edges, values[mine]))
        amounts["overhead_ms"][-1] = np.full(len(parts), fixed.sum())
        amounts["on_cpu_ms"][-1] = _between(edges, (on_cpu * (1 - again))[mine]) + (on_cpu * again)[mine].mean()
    names = Units.__dataclass_fields__
    joined = Units(*(np.concatenate([getattr(each, name) for each in pieces]) for name in names))
    order = np.argsort(joined.launch_ms, kind="stable")
    whole: dict[str, Any] = {name: np.concatenate(values)[order] for name, values in amounts.items()}
    for name, values in whole.items():
        if getattr(volumes, name).dtype.kind == "i":
            whole[name] = np.rint(values).astype(np.int64)
    return replace(
        execution,
        units=joined.select(order),
        volumes=Volumes(**whole),
    )


def with_cpu_time(execution: Execution, ratio: Floats) -> Execution:
    """The execution whose units each take so many times their CPU time, (units,), and wait for a CPU in proportion."""
    units, cpu = execution.units, execution.names.index(CPU)
    parts = units.parts_ms.copy()
    parts[:, cpu] *= ratio
    volumes = replace(execution.volumes, on_cpu_ms=execution.volumes.on_cpu_ms * ratio)
    finish = units.launch_ms + parts.sum(axis=1)
    return replace(execution, units=replace(units, parts_ms=parts, finish_ms=finish), volumes=volumes)


def _between(edges: Floats, values: Floats | Ints) -> Floats:
    """What lies between edges of a line along which each value is spread evenly over a length of 1."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    found: Floats = np.diff(np.interp(edges, np.arange(len(sums)), sums))
    return found
