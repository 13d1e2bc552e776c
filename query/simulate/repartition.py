"""Repartitioning: the work of a group divided into another number of units, as another plan would have."""

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
"""Maximum fixed share of a unit's CPU time, which does not depend on its work: every unit did some work."""


def with_units(execution: Execution, counts: Mapping[int, int], fixed_ms: Floats | None = None) -> Execution:
    """The execution with other numbers of units in some groups, `counts` by the group's number.

    The work of a group is a line in its recorded order, cut into equal pieces: a piece does the share of each recorded
    unit that it covers.  The overhead of a unit (starting, deserialization and reporting) is the median of the recorded
    units of its group that were not the first on their worker, or of any group if all of its own were; overhead above
    that is paid once, so it is part of the work.  `fixed_ms` is the fixed CPU time of each recorded unit, (units,),
    which does not depend on its work.
    """
    units, volumes = execution.units, execution.volumes
    duration, cpu = units.duration_ms, execution.names.index(CPU)
    on_cpu = volumes.on_cpu_ms
    constant = np.zeros(len(units)) if fixed_ms is None else np.minimum(over(fixed_ms, on_cpu), MOST_FIXED)
    overhead_ms, later = np.minimum(volumes.overhead_ms, duration), np.ones(len(units), dtype=bool)
    if execution.starts:  # workers that had run nothing before
        later = ~before_any(units.worker + 1, units.launch_ms, units.finish_ms)
    columns = {name: getattr(volumes, name) for name in Volumes.__dataclass_fields__}
    pieces: list[Units] = []
    amounts: dict[str, list[Floats]] = {name: [] for name in columns}
    for number, rows in enumerate(members(units.group, len(execution.dag.groups))):
        if number not in counts:
            pieces.append(units.select(rows))
            for name, values in columns.items():
                amounts[name].append(values[rows].astype(np.float64))
            continue
        edges = np.arange(counts[number] + 1) / counts[number] * len(rows)
        usual = next(each for each in (rows[later[rows]], np.flatnonzero(later), rows) if len(each))
        overhead_share = over(np.minimum(overhead_ms[rows], np.median(overhead_ms[usual])), duration[rows])[:, None]
        work = units.parts_ms[rows] * (1 - overhead_share)
        fixed = (units.parts_ms[rows] * overhead_share).mean(axis=0)
        fixed[cpu] += (work[:, cpu] * constant[rows]).mean()
        work[:, cpu] *= 1 - constant[rows]
        parts = np.stack([_between(edges, column) for column in work.T], axis=1) + fixed
        launch = units.launch_ms[rows[edges[:-1].astype(np.int64)]]
        origin = rows[edges[:-1].astype(np.int64)]
        placement = units.placement[origin]
        worker, host = (np.where(placement == AT_HOME, each[origin], -1) for each in (units.worker, units.host))
        unknown, group = np.full(len(parts), -1), np.full(len(parts), number)
        finish, upstream = launch + parts.sum(axis=1), _between(edges, units.upstream_ms[rows])
        pieces.append(Units(unknown, group, worker, host, launch, finish, parts, placement, upstream, unknown))
        for name, values in columns.items():
            amounts[name].append(_between(edges, values[rows]))
        amounts["overhead_ms"][-1] = np.full(len(parts), fixed.sum())
        amounts["on_cpu_ms"][-1] = _between(edges, (on_cpu * (1 - constant))[rows]) + (on_cpu * constant)[rows].mean()
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
    """The execution with the CPU time of units, and their waits for a CPU, multiplied by `ratio`, (units,)."""
    units, cpu = execution.units, execution.names.index(CPU)
    parts = units.parts_ms.copy()
    parts[:, cpu] *= ratio
    volumes = replace(execution.volumes, on_cpu_ms=execution.volumes.on_cpu_ms * ratio)
    finish = units.launch_ms + parts.sum(axis=1)
    return replace(execution, units=replace(units, parts_ms=parts, finish_ms=finish), volumes=volumes)


def _between(edges: Floats, values: Floats | Ints) -> Floats:
    """Sums between edges of a line on which each value is spread evenly over a length of 1."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    found: Floats = np.diff(np.interp(edges, np.arange(len(sums)), sums))
    return found
