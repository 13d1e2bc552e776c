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
from crystalperf.query.frameworks.ml.training.assumptions import MoreProcesses
from crystalperf.query.frameworks.ml.training.refusals import FewerProcesses, OperatorsFixed, SingleProcess, SlotsFixed
from crystalperf.query.results.refusals import Refusal


def configured(properties: Mapping[str, str]) -> dict[str, float]:
    """The number of processes of a run: its table of workers lists their accelerators, servers and links as well."""
    return {"workers": float(properties.get("processes", "1"))}


def shown_workers(workers: int, properties: Mapping[str, str]) -> int:
    """The devices of a run: its accelerators, or without any its processes."""
    return min(int(properties.get("accelerators", workers)), workers)


def replan(execution: Execution, scenario: Scenario, _wanted: bool) -> Planned | Refusal:
    """The run with the communication of another number of processes."""
    if scenario.ratio("tasks") != 1:
        return OperatorsFixed()
    if scenario.ratio("cores") != 1:
        return SlotsFixed()
    ratio = scenario.ratio("workers")
    if ratio == 1:
        return Planned(execution)
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
