"""Spark's part in a search for a configuration: the settings that predictions cover, and the lines that set them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import duckdb
import numpy as np

from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.scenario import SPLIT
from crystalperf.query.execution.tunable import Knob, Tunable, Values
from crystalperf.query.frameworks.spark.advise.changes import changed, changed_size
from crystalperf.query.frameworks.spark.advise.executors import (
    CORES,
    DEFAULT_MEMORY,
    DRIVER_MEMORY,
    FIRST_EXECUTORS,
    INSTANCES,
    MEMORY,
    MIN_EXECUTORS,
)
from crystalperf.query.frameworks.spark.advise.files import MIN_PART_BYTES
from crystalperf.query.frameworks.spark.advise.memory import MIN_OVERHEAD, OVERHEAD, OVERHEAD_SHARE
from crystalperf.query.frameworks.spark.advise.partitions import PARALLELISM, PARTITIONS
from crystalperf.query.frameworks.spark.memory import heap_bytes
from crystalperf.query.frameworks.spark.partitions import (
    DEFAULT_PARTITIONS,
    FEW_MORE,
    LARGEST_PART,
    MIB,
    OPEN_COST,
    Parallelism,
    size_set,
    split_tasks,
)
from crystalperf.query.frameworks.spark.rules import MAX_EXECUTORS
from crystalperf.query.frameworks.spark.settings import flag, is_local, size_bytes, whole
from crystalperf.query.results.recommendations import SettingChange
from crystalperf.query.results.tuning import NotTuned, Unmodelled, ValueNotRecorded, WithoutEffect
from crystalperf.query.trace.arrays import members

MARGIN = 1.3
"""Memory of a tuned executor over the most that its tasks used."""

UNMODELLED = (
    "spark.sql.adaptive.enabled",
    "spark.sql.autoBroadcastJoinThreshold",
    OVERHEAD,
    "spark.memory.fraction",
)
"""Settings that users tune, and whose effect on the runtime CrystalPerf does not predict."""

_PARTITIONS = (0.0625, 0.125, 0.25, 0.5, 2.0)
"""Shuffle partitions to try, times the recorded ones."""

_OF_SLOTS = (1, 2, 3, 4, 8)
"""The same, times the slots of the run."""

_LARGER = (2.0, 4.0, 8.0, 16.0, 64.0, 256.0, 1024.0)
"""Sizes of file partitions to try, times the recorded one."""

MOST_PART_BYTES = 512 * MIB
"""Maximum size of file partitions to try: a task should not read more."""

_KIB = 1024


def tunable(connection: duckdb.DuckDBPyConnection, execution: Execution) -> Tunable:
    """The part of a Spark application that a search may change."""
    properties = execution.properties
    set_by = dict(connection.execute("SELECT name, set_by FROM spark_settings").fetchall())
    knobs: list[Knob] = []
    missing: list[NotTuned] = []
    for knob, name in _candidates(execution):
        if isinstance(knob, Knob):
            knobs.append(replace(knob, name=name))
        else:
            missing.append(knob)
    known = {each.key: each for each in knobs}
    known_tasks = known["tasks"].recorded if "tasks" in known else math.inf

    def changes(key: str, values: Values) -> Sequence[SettingChange]:
        found = _changes(properties, execution, known[key], values)
        return [replace(each, set_by=set_by.get(each.name, "")) for each in found]

    return Tunable(
        tuple(knobs),
        (*missing, *(Unmodelled(each) for each in _unmodelled(execution))),
        changes,
        is_possible=lambda values: values.get("tasks", math.inf) >= min(_slots(values), known_tasks),
        asked_bytes=lambda memory: _asked_bytes(properties, memory),
        least_bytes=(lambda slots: used_bytes(execution, slots)) if execution.has_peak_memory else None,
    )


def _slots(values: Values) -> float:
    """Slots of a configuration; a shuffle of fewer partitions would leave some idle when there is more data."""
    return values.get("workers", 1.0) * values.get("cores", 1.0)


def used_bytes(execution: Execution, slots: float) -> float:
    """The heap that an executor with so many slots needs at least, bytes: that of the tasks with the largest peaks at
    the same time, and of cached rows, with MARGIN; and no less than the heap that was in use, if it was recorded."""
    volumes = execution.worker_volumes
    peaks = np.sort(volumes.peak_memory + volumes.spill_memory)[::-1]
    together = float(peaks[: max(round(slots), 1)].sum()) + float(volumes.cached.max(initial=0)) * slots
    least, use = MARGIN * heap_bytes(together, execution.properties), execution.memory_use
    if use is None:
        return least
    # Part of a heap does not depend on slots, so fewer slots keep all of it.
    return max(least, use.safe_bytes * max(slots / (execution.recorded.get("cores") or slots), 1.0))


def _candidates(execution: Execution) -> Iterator[tuple[Knob | NotTuned, str]]:
    """The knobs of a run, or why it has none, each with the name of the setting."""
    recorded, local = execution.recorded, is_local(execution.properties)
    workers, cores, memory = (recorded.get(key) for key in ("workers", "cores", "memory"))
    if not local:
        name = _executors_setting(execution.properties)
        yield (Knob("workers", workers) if workers else ValueNotRecorded(name)), name
    name = "spark.master" if local else CORES
    yield (Knob("cores", cores) if cores else ValueNotRecorded(name)), name
    name = DRIVER_MEMORY if local else MEMORY
    yield (Knob("memory", memory, unit="bytes") if memory else ValueNotRecorded(name)), name
    yield _partitions(execution), PARTITIONS
    yield _file_partitions(execution), LARGEST_PART


def _partitions(execution: Execution) -> Knob | NotTuned:
    """Shuffle partitions, if a query of the run exchanges rows."""
    of_queries = np.array([each.scope_id is not None for each in execution.dag.stages], dtype=bool)
    exchanged = execution.volumes.remote_read + execution.volumes.local_read
    if not len(execution.tasks) or not exchanged[of_queries[execution.tasks.stage]].any():
        return WithoutEffect(PARTITIONS)
    recorded = float(execution.recorded.get("tasks") or DEFAULT_PARTITIONS)
    slots = (execution.recorded.get("workers") or 1.0) * (execution.recorded.get("cores") or 1.0)
    values = {max(round(each * recorded), 1) for each in _PARTITIONS} | {round(each * slots) for each in _OF_SLOTS}
    return Knob("tasks", recorded, tuple(float(each) for each in sorted(values)))


def _file_partitions(execution: Execution) -> Knob | NotTuned:
    """The size of file partitions, if it determined the tasks of a scan: larger ones for a scan in many tasks, smaller
    ones for a scan in fewer tasks than there are slots."""
    slots = max(round((execution.recorded.get("workers") or 1) * (execution.recorded.get("cores") or 1)), 1)
    recorded = size_set(execution.properties, LARGEST_PART)
    values: set[float] = set()
    for count, read in _scans(execution):
        if count > FEW_MORE * slots:
            values |= {recorded * each for each in _LARGER if recorded * each <= MOST_PART_BYTES}
        elif count < slots and read / slots >= MIN_PART_BYTES:
            values |= {math.ceil(read / slots / each / _KIB) * _KIB for each in (1, 2)}
    values = {each for each in values if each != recorded}
    plans = [Parallelism(max(slots, 2), max(slots, 2), execution.properties, split=each / recorded) for each in values]
    kept = [
        each
        for each, plan in zip(values, plans, strict=True)
        if any(split_tasks(plan, count, read) not in (None, count) for count, read in _scans(execution))
    ]
    return Knob(SPLIT, recorded, tuple(sorted(kept)), "bytes") if kept else WithoutEffect(LARGEST_PART)


def _scans(execution: Execution) -> Iterator[tuple[int, float]]:
    """The scans of queries: their numbers of tasks, and bytes."""
    volumes = execution.volumes
    exchanged = volumes.remote_read + volumes.local_read
    for number, tasks in enumerate(members(execution.tasks.stage, len(execution.dag.stages))):
        if execution.dag.stages[number].scope_id is None or exchanged[tasks].any() or volumes.cached[tasks].any():
            continue
        if len(tasks) and volumes.input[tasks].any():
            yield len(tasks), float(volumes.input[tasks].sum())


def _unmodelled(execution: Execution) -> Iterator[str]:
    """The unmodelled settings that may matter to a run."""
    has_queries = any(each.scope_id is not None for each in execution.dag.stages)
    for name in UNMODELLED:
        if name == OVERHEAD and is_local(execution.properties):
            continue
        if has_queries or not name.startswith("spark.sql."):
            yield name
    if any(each.scope_id is None for each in execution.dag.stages) and execution.volumes.exchange_write.any():
        yield PARALLELISM


def _executors_setting(properties: Mapping[str, str]) -> str:
    """The setting that bounds the number of executors."""
    if flag(properties.get("spark.dynamicAllocation.enabled")):
        return MAX_EXECUTORS
    is_standalone = properties.get("spark.master", "").startswith("spark:")
    return "spark.cores.max" if is_standalone or whole(properties.get("spark.cores.max")) else INSTANCES


def _asked_bytes(properties: Mapping[str, str], memory: float) -> float:
    """The memory that an executor with that heap asks of its cluster: with overhead, which local runs do not have."""
    if is_local(properties):
        return memory
    stated = size_bytes(properties.get(OVERHEAD), "m")
    return memory + (stated if stated is not None else max(MIN_OVERHEAD, OVERHEAD_SHARE * memory))


def _changes(properties: Mapping[str, str], execution: Execution, knob: Knob, values: Values) -> list[SettingChange]:
    """The settings that give a knob its value."""
    value = values[knob.key]
    if knob.key == "tasks":
        return [changed(properties, PARTITIONS, round(value), DEFAULT_PARTITIONS)]
    if knob.key == SPLIT:
        cost = size_set(properties, OPEN_COST)
        sizes = [LARGEST_PART, OPEN_COST] if cost > value else [LARGEST_PART]
        return [changed_size(properties, each, value) for each in sizes]
    if knob.key == "memory":
        before = size_bytes(properties.get(knob.name), "m") or knob.recorded or DEFAULT_MEMORY
        return [changed_size(properties, knob.name, value, before)]
    if knob.key == "cores" and knob.name == "spark.master":
        master = properties.get("spark.master", "")
        failures = re.fullmatch(r"local\[[^,\]]*(,[^\]]*)\]", master.replace(" ", ""))
        return [SettingChange("spark.master", master, f"local[{value:.0f}{failures[1] if failures else ''}]")]
    if knob.key == "cores":
        found = [SettingChange(CORES, whole(properties.get(CORES)) or round(knob.recorded), round(value))]
        return found + (_total(properties, knob, values) if _same_workers(execution, values) else [])
    return _executors(properties, knob, values)


def _same_workers(execution: Execution, values: Values) -> bool:
    return math.isclose(values.get("workers", 1.0), execution.recorded.get("workers") or 1.0)


def _total(properties: Mapping[str, str], knob: Knob, values: Values) -> list[SettingChange]:
    """The limit of all cores, which sets the number of executors on a standalone cluster."""
    if _executors_setting(properties) != "spark.cores.max":
        return []
    after = round(values.get("workers", 1.0) * values.get("cores", 1.0))
    before = whole(properties.get("spark.cores.max"))
    return [] if before == after else [SettingChange("spark.cores.max", before, after)]


def _executors(properties: Mapping[str, str], knob: Knob, values: Values) -> list[SettingChange]:
    """The settings for a number of executors; with dynamic allocation its bounds."""
    name, after = _executors_setting(properties), round(values["workers"])
    if name == "spark.cores.max":
        return _total(properties, knob, values)
    if name == INSTANCES:
        return [SettingChange(INSTANCES, whole(properties.get(INSTANCES)) or round(knob.recorded), after)]
    found = []
    most, least = whole(properties.get(MAX_EXECUTORS)), whole(properties.get(MIN_EXECUTORS))
    if after < knob.recorded or (most is not None and most < after):
        found.append(SettingChange(MAX_EXECUTORS, most, after))
    if after > knob.recorded or (least is not None and least > after):
        found.append(changed(properties, MIN_EXECUTORS, after, 0))
    first = whole(properties.get(FIRST_EXECUTORS))
    if first is not None and first > after:
        found.append(SettingChange(FIRST_EXECUTORS, first, after))
    return found
