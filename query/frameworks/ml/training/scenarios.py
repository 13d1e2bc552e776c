"""Planner of trainings with other numbers of processes: data parallelism, and parameter servers.

Every process keeps its batch, so with more processes a step does more work, and only its communication changes.  A ring
all-reduce sends 2 (n - 1) / n of its bytes over each link (Patarasuk and Yuan, 2009); a parameter server's link carries
the tensors of all workers.  Links and the balance between processes stay the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from crystalperf.indexes.resources import NET
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.scenario import Scenario
from crystalperf.query.frameworks import Planned
from crystalperf.query.frameworks.ml.training import absent, memory
from crystalperf.query.frameworks.ml.training.assumptions import MoreProcesses, Narrower, OtherHost
from crystalperf.query.frameworks.ml.training.devices import GPU, HBM, HOST, PRECISION, narrowed
from crystalperf.query.frameworks.ml.training.refusals import (
    FewerProcesses,
    OperatorsFixed,
    PrecisionUnknown,
    SingleProcess,
    SlotsFixed,
)
from crystalperf.query.results.assumptions import Assumption
from crystalperf.query.results.refusals import Refusal


def configured(properties: Mapping[str, str]) -> dict[str, float]:
    """The number of processes of a run: its table of workers lists their accelerators, servers and links as well."""
    return {"workers": float(properties.get("processes", "1"))}


def shown_workers(workers: int, properties: Mapping[str, str]) -> int:
    """The devices of a run: its accelerators, or without any its processes."""
    return min(int(properties.get("accelerators", workers)), workers)


def other_bound(execution: Execution, scenario: Scenario) -> tuple[Refusal, Scenario] | None:
    """Why a prediction with 16-bit numbers is a range, and the scenario of its other bound: numbers stay."""
    if scenario.choice(PRECISION) is None:
        return absent.other_bound(execution, scenario)
    kept = {key: each for key, each in scenario.changes.items() if key != PRECISION}
    return PrecisionUnknown(), replace(scenario, changes=kept)


def _on_accelerator(execution: Execution, scenario: Scenario) -> Planned:
    """The run with another host, whose speed is not known, with 16-bit numbers, or with another batch's memory."""
    assumed: list[Assumption] = [] if scenario.choice(HOST) is None else [OtherHost()]
    batch = scenario.ratio("input")
    if batch != 1 and (needs := memory.needed(execution.properties, batch)) is not None:
        assumed.append(needs)
    if scenario.choice(PRECISION) is None:
        return Planned(execution, tuple(assumed))
    parts = execution.tasks.parts_ms.copy()
    faster = narrowed(execution.properties)
    for name, times in faster.items():
        parts[:, execution.names.index(name)] /= times
    tasks = execution.tasks
    saved = (tasks.parts_ms - parts).sum(axis=1)
    changed = replace(execution, tasks=replace(tasks, parts_ms=parts, finish_ms=tasks.finish_ms - saved))
    return Planned(changed, (*assumed, Narrower(faster[GPU.name], faster[HBM.name])))


def replan(execution: Execution, scenario: Scenario, _wanted: bool) -> Planned | Refusal:
    """The run with the communication of another number of processes."""
    if scenario.ratio("tasks") != 1:
        return OperatorsFixed()
    if scenario.ratio("cores") != 1:
        return SlotsFixed()
    ratio = scenario.ratio("workers")
    if ratio == 1:
        return _on_accelerator(execution, scenario)
    count = int(execution.properties.get("processes", "1"))
    if ratio < 1:
        return FewerProcesses(count)
    after = count * ratio
    synchronous = execution.properties.get("synchronous") != "no"
    if synchronous and count == 1:
        return SingleProcess()
    factor = ((after - 1) / after) / ((count - 1) / count) if synchronous else ratio
    net = execution.names.index(NET)
    parts = execution.tasks.parts_ms.copy()
    longer = parts[:, net] * (factor - 1)
    parts[:, net] += longer
    tasks = execution.tasks
    changed = replace(execution, tasks=replace(tasks, parts_ms=parts, finish_ms=tasks.finish_ms + longer))
    return Planned(changed, (MoreProcesses(count, after, ratio, synchronous),))
