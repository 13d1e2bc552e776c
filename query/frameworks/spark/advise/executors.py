"""Recommendations on executors: number, size, start, waits, and a program that stopped early."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from crystalperf.query.execution.execution import Execution
from crystalperf.query.frameworks.spark.advise.changes import changed, changed_size
from crystalperf.query.frameworks.spark.advise.stages import Stages, affected
from crystalperf.query.frameworks.spark.recommendations import (
    CheckCapacity,
    MoreExecutors,
    MoreLocalSlots,
    ReadDriverLog,
    SkipLocalityWait,
    StartExecutorsEarlier,
)
from crystalperf.query.frameworks.spark.rules import MAX_EXECUTORS
from crystalperf.query.frameworks.spark.scheduling import LOCALITY_WAIT
from crystalperf.query.frameworks.spark.settings import flag, is_local, size_bytes, size_text, whole
from crystalperf.query.results.answers import Debug
from crystalperf.query.results.findings import IdleStage, NoWorker
from crystalperf.query.results.recommendations import MEASURED, MODELLED, STOPPED, Candidate, MoreMemory, SettingChange

MEMORY = "spark.executor.memory"
DRIVER_MEMORY = "spark.driver.memory"
DEFAULT_MEMORY = 2.0**30
CORES = "spark.executor.cores"
INSTANCES = "spark.executor.instances"
MIN_EXECUTORS = "spark.dynamicAllocation.minExecutors"
FIRST_EXECUTORS = "spark.dynamicAllocation.initialExecutors"
_DYNAMIC = "spark.dynamicAllocation.enabled"


def stopped(debug: Debug) -> Iterator[Candidate]:
    """The program itself stopped Spark while work was running: no event records why."""
    outcome = debug.outcome
    if outcome is None or outcome.status != "failed" or not outcome.failures:
        return
    first = outcome.failures[0]
    if "SparkContext was shut down" in (first.error or ""):
        value = ReadDriverLog(price="inspect", because=STOPPED, saving=MEASURED, failed=first.id)
        yield Candidate(value, comes_first=True)


def locality(properties: Mapping[str, str], stages: Stages) -> Iterator[Candidate]:
    """Stages whose tasks left slots idle to wait for their data's location, and the most that no such wait saves."""
    found = [(detail, cost) for detail, cost in stages.pairs(IdleStage) if cost.cause == "bound-to-data"]
    if found:
        first, _ = max(found, key=lambda each: each[1].cost_ms)
        value = SkipLocalityWait(
            price="setting", because="idle-slots", saving=MODELLED,
            settings=(changed(properties, LOCALITY_WAIT, "0s", "3s"),),
            stages=affected(first, len(found) - 1),
            on_one_executor=first.on_busiest if first.on_busiest > first.facts.tasks / 2 else None,
        )  # fmt: skip
        yield Candidate(value, at_most_ms=sum(cost.cost_ms for _, cost in found))


def late(execution: Execution, debug: Debug) -> Iterator[Candidate]:
    """Executors that started late because Spark requests them one after the other."""
    properties, executors = execution.properties, execution.recorded.get("workers")
    cost_ms = _waited_ms(debug)
    if cost_ms is None or not executors or not flag(properties.get(_DYNAMIC)):
        return
    before = properties.get(FIRST_EXECUTORS) or properties.get(MIN_EXECUTORS) or "0"
    if (whole(before) or 0) < executors:
        change = SettingChange(FIRST_EXECUTORS, whole(before) or before, round(executors))
        value = StartExecutorsEarlier(price="setting", because="no-worker", saving=MEASURED, settings=(change,))
        yield Candidate(value, at_most_ms=cost_ms)


def missing(execution: Execution, debug: Debug) -> Iterator[Candidate]:
    """No executor ever started; with the resources that one requests."""
    properties, cost_ms = execution.properties, _waited_ms(debug)
    if cost_ms is None or execution.recorded.get("workers") or len(execution.tasks):
        return
    value = CheckCapacity(
        price="inspect", because="no-worker", saving=MEASURED,
        executor_cores=properties.get(CORES),
        executor_memory=properties.get(MEMORY) or size_text(DEFAULT_MEMORY),
        is_default_memory=not properties.get(MEMORY),
    )  # fmt: skip
    yield Candidate(value, at_most_ms=cost_ms)


def _waited_ms(debug: Debug) -> float | None:
    return next((each.cost_ms for each in debug.findings if isinstance(each, NoWorker)), None)


def resized(execution: Execution, key: str, ratio: float) -> Candidate | None:
    """More executors, or slots of the one process that a local master has; more memory."""
    if key == "memory":
        return _more_memory(execution, ratio)
    return _more_slots(execution, ratio) if is_local(execution.properties) else _more_executors(execution, ratio)


def _more_memory(execution: Execution, ratio: float) -> Candidate:
    properties, recorded = execution.properties, execution.recorded.get("memory")
    local = is_local(properties)
    name = DRIVER_MEMORY if local else MEMORY
    given = recorded if local else size_bytes(properties.get(MEMORY), "m") or recorded
    stated = properties.get(name)
    before = size_bytes(stated or (size_text(given) if given else ""), "m") or given or DEFAULT_MEMORY
    change = replace(changed_size(properties, name, ratio * before, before), is_default=not stated and not given)
    value = MoreMemory(price="machine", because="memory", saving=MODELLED, settings=(change,), ratio=ratio)
    return Candidate(value, f"memory={ratio:g}x")


def _more_slots(execution: Execution, ratio: float) -> Candidate | None:
    cores, master = execution.recorded.get("cores"), execution.properties.get("spark.master", "")
    if not cores:
        return None
    # local[N, how often a task may fail]
    failures = re.fullmatch(r"local\[[^,\]]*(,[^\]]*)\]", master.replace(" ", ""))
    wider = f"local[{ratio * cores:.0f}{failures[1] if failures else ''}]"
    change = SettingChange("spark.master", master, wider)
    value = MoreLocalSlots(price="machine", because="cores", saving=MODELLED, settings=(change,))
    return Candidate(value, f"cores={ratio:g}x")


def _more_executors(execution: Execution, ratio: float) -> Candidate | None:
    executors = execution.recorded.get("workers")
    if not executors:
        return None
    change, requested = _executor_setting(execution.properties, executors, ratio)
    value = MoreExecutors(
        price="machine", because="workers", saving=MODELLED,
        settings=() if change is None else (change,),
        ratio=ratio, before=round(executors), after=round(ratio * executors), asked=requested,
    )  # fmt: skip
    return Candidate(value, f"workers={ratio:g}x")


def _executor_setting(
    properties: Mapping[str, str], executors: float, ratio: float
) -> tuple[SettingChange | None, int | None]:
    """The setting for `ratio` times the executors, None if there is none; and the requested number if more than
    started."""
    then = round(ratio * executors)
    if flag(properties.get(_DYNAMIC)):
        largest = whole(properties.get(MAX_EXECUTORS))
        # Spark does not start if the minimum is above the maximum.
        name = MAX_EXECUTORS if largest is not None and largest < ratio * executors else MIN_EXECUTORS
        return changed(properties, name, then, 0), None
    if most := whole(properties.get("spark.cores.max")):
        return SettingChange("spark.cores.max", most, round(ratio * most)), None
    requested = whole(properties.get(INSTANCES))
    if requested is None or requested > executors:  # the cluster had no capacity for all that were requested
        return None, requested
    # A replacement may have run at the same time as the executor that it replaced.
    return SettingChange(INSTANCES, requested, round(ratio * requested)), None
