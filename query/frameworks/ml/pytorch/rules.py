"""Findings of PyTorch alone: losses of a step that its program can change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import duckdb

from crystalperf.indexes.resources import CPU, OTHER
from crystalperf.query import sql
from crystalperf.query.diagnose.critical_operators import path_by
from crystalperf.query.diagnose.stage_statistics import StageStats
from crystalperf.query.execution.execution import Execution
from crystalperf.query.frameworks.ml.pytorch.findings import (
    AllReduce,
    AskLater,
    DeviceMemoryBound,
    FirstUse,
    FirstUses,
    FreeingMemory,
    FreesMemory,
    LaunchBound,
    LaunchLess,
    Lost,
    MakesBatches,
    MoveFewerBytes,
    OneLink,
    OverlapPythonWaits,
    OwnBatches,
    ReuseDeviceMemory,
    SlowRank,
    Starting,
    StartsAccelerator,
    SynchroniseLess,
    Synchronises,
    TracePython,
    UnexplainedHostTime,
    UnexplainedWait,
    UseLoaders,
    WaitingInPython,
    WaitsForAccelerator,
    WaitsInPython,
    WarmUp,
)
from crystalperf.query.frameworks.ml.pytorch.first_uses import FIRST_USE
from crystalperf.query.frameworks.ml.pytorch.loaders import OWN_BATCHES
from crystalperf.query.frameworks.ml.pytorch.threads import UNTRACED, WAITING_IN_PYTHON
from crystalperf.query.frameworks.ml.pytorch.waits import FREEING, STARTING, WAITING
from crystalperf.query.frameworks.ml.training import rules
from crystalperf.query.frameworks.ml.training.devices import GPU, HBM, LATENCY
from crystalperf.query.frameworks.ml.training.findings import ReadAhead
from crystalperf.query.frameworks.ml.training.gaps import BETWEEN
from crystalperf.query.frameworks.ml.training.remarks import NoOperator
from crystalperf.query.frameworks.ml.training.rules import input_waits, launching, of_accelerator
from crystalperf.query.results.advice import Advice
from crystalperf.query.results.answers import Cause, NamedPart, PathItem
from crystalperf.query.results.findings import Finding
from crystalperf.query.results.remarks import Remark

_MOST = 0.5
"""Minimum share of an operator in the time on no resource for which it counts as the cause of all of it."""

_FINDINGS: Mapping[str, tuple[type[Lost], Advice]] = {
    WAITING: (UnexplainedWait, SynchroniseLess()),
    FREEING: (FreeingMemory, ReuseDeviceMemory()),
    STARTING: (Starting, WarmUp()),
    BETWEEN: (UnexplainedHostTime, TracePython()),
    WAITING_IN_PYTHON: (WaitingInPython, OverlapPythonWaits()),
    OWN_BATCHES: (OwnBatches, UseLoaders()),
    FIRST_USE: (FirstUse, WarmUp()),
}
"""For each operator the kind of finding for its time, and the advice."""

_NAMED = 2

_WORTH = 0.03
"""Minimum share of a step for which a loss of the steady state is reported."""

_MEMORY_SHARE = 0.25
"""Minimum share of the path on the accelerator's memory for which its kernels are reported."""

_MUCH = 0.25
"""Share of the path from which short gaps between operators are worth tracing Python."""


def findings(connection: duckdb.DuckDBPyConnection, details: Sequence[StageStats]) -> list[Finding]:
    """Critical-path time lost to each operator of _FINDINGS; `cost_ms` is at most the path's time in its segments."""
    lost = []
    question = sql.text("lost", __package__)
    on_path = {each.facts.id: each.facts.path_ms for each in details if each.facts.path_ms > 0}
    for operator, (kind, advice) in _FINDINGS.items():
        took = connection.execute(question, {"operator": operator}).fetchall()
        losses = [(min(ms, on_path[stage]), disk_ms, name) for stage, ms, disk_ms, name in took if stage in on_path]
        cost_ms, disk_ms = sum(ms for ms, _, _ in losses), sum(min(ms, on_disk) for ms, on_disk, _ in losses)
        if operator == BETWEEN and cost_ms < _MUCH * sum(on_path.values()) and not _has_long_gap(connection):
            continue
        if cost_ms > 0:
            names = tuple(dict.fromkeys(name for _, _, name in losses if name))[:_NAMED]
            lost.append(kind(cost_ms, "measured", advice, cost_ms, disk_ms, names))
    own_ms = sum(each.cost_ms for each in lost if isinstance(each, OwnBatches))
    path_ms = sum(on_path.values())
    waits = [
        replace(each, advice=ReadAhead(path_ms / (path_ms - each.cost_ms) if path_ms > each.cost_ms else None))
        for each in input_waits(connection, details)
        if each.cost_ms > own_ms
    ]
    return [*waits, *through_one(connection, details), *lost, *steady(connection, details)]


def _has_long_gap(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether a gap between operators is too long for Python's own time, so that it is on no resource."""
    question = "SELECT 1 FROM training_operations WHERE operator = ? AND kind = 'runtime' LIMIT 1"
    return connection.execute(question, [BETWEEN]).fetchone() is not None


def through_one(connection: duckdb.DuckDBPyConnection, details: Sequence[StageStats]) -> list[OneLink]:
    """Processes that exchange gradients through one of them, as with a parameter server.

    Evidence: they gather on one process and its result is sent back, on the critical path.  The link of that process
    carries n - 1 times the bytes each way.  A ring's links carry 2 (n - 1) / n of them, so n times less, and `cost_ms`
    is that saving if only bytes take time.  Contradicted if the gathered data are not gradients, which is assumed if
    reducing takes longer.
    """
    on_path = {each.facts.id: each.facts.path_ms for each in details if each.facts.path_ms > 0}
    rows = connection.execute(sql.text("through_one", __package__)).fetchall()
    gathers = [(min(ms, on_path[stage]), processes) for stage, ms, processes in rows if stage in on_path]
    took_ms = sum(ms for ms, _ in gathers)
    if not gathers or took_ms <= 0:
        return []
    count = gathers[0][1]
    return [OneLink(took_ms * (1 - 1 / count), "measured", AllReduce(count), count, took_ms)]


_NAMED_PARTS: Mapping[str, tuple[Remark, Cause]] = {
    BETWEEN: (NoOperator(), "unknown"),
    UNTRACED: (NoOperator(), "unknown"),
    STARTING: (StartsAccelerator(), "unknown"),
    WAITING: (WaitsForAccelerator(), "unknown"),
    FREEING: (FreesMemory(), "unknown"),
    FIRST_USE: (FirstUses(), "unknown"),
    OWN_BATCHES: (MakesBatches(), "upstream"),
}
"""For each operator the part of the path that it is, and the cause of that part's time on no resource."""


def named_parts(
    connection: duckdb.DuckDBPyConnection, execution: Execution, path: Sequence[PathItem]
) -> list[NamedPart]:
    """Parts of the path whose operators name them better than a resource does: their time on the CPU or on none."""
    listed = []
    for each in path_by(connection, execution, path, sql.text("named", __package__)):
        if each.name in _NAMED_PARTS:
            remark, cause = _NAMED_PARTS[each.name]
            own = {name: ms for name, ms in each.resource_ms.items() if name in (CPU, OTHER)}
            listed.append(NamedPart(remark, own, cause))
    if (slow := _slow_rank(connection, execution, path)) is not None:
        listed.append(slow)
    return [*listed, *of_accelerator(execution.properties, path, listed)]


def _slow_rank(
    connection: duckdb.DuckDBPyConnection, execution: Execution, path: Sequence[PathItem]
) -> NamedPart | None:
    """The time by which the slowest process delays the others, in proportion on what the path computes on."""
    within = {"start": execution.scope.start_ms, "end": execution.scope.end_ms}
    row = connection.execute(sql.text("slowest", rules.__package__), within).fetchone()
    computes = (CPU, GPU.name, HBM.name, LATENCY.name)
    own = {name: sum(each.resource_ms.get(name, 0.0) for each in path) for name in computes}
    whole_ms = sum(own.values())
    if row is None or row[1] <= 0 or whole_ms <= 0:
        return None
    share = min(row[1] / whole_ms, 1.0)
    return NamedPart(SlowRank(row[0]), {name: share * ms for name, ms in own.items() if ms > 0})


def steady(connection: duckdb.DuckDBPyConnection, details: Sequence[StageStats]) -> list[Finding]:
    """Losses of the steady state of a training on one accelerator.

    Half the bytes, as with 16-bit instead of 32-bit numbers, halve the time of kernels that memory limits.  Launches
    cost at most the time in which the accelerator was idle and the path was on the host; synchronisations what the
    steps would take less without these waits (pytorch/untraced.py).
    """
    facts = dict(connection.execute("SELECT properties FROM runs").fetchall()[0][0] or {})
    if "busy_ms" not in facts:
        return []
    steps, step_ms, busy_ms = float(facts["steps"]), float(facts["step_ms"]), float(facts["busy_ms"])
    host_ms, memory_ms = _on_path(details, CPU), _on_path(details, HBM.name)
    found: list[Finding] = []
    idle_ms = min((step_ms - busy_ms) * steps, host_ms)
    if launching(facts) is not None and idle_ms >= _WORTH * step_ms * steps:
        launches = float(facts["launches"])
        found.append(LaunchBound(idle_ms, "modelled", LaunchLess(), idle_ms / steps, launches))
    times = float(facts["synchronisations"])
    waited_ms = (step_ms - float(facts["unsynchronised_ms"])) * steps
    if times >= 1 and waited_ms >= _WORTH * step_ms * steps:
        found.append(Synchronises(waited_ms, "modelled", AskLater(), times, facts.get("synchronised_at")))
    if memory_ms >= _MEMORY_SHARE * step_ms * steps:
        found.append(DeviceMemoryBound(memory_ms / 2, "modelled", MoveFewerBytes(), memory_ms))
    return found


def _on_path(details: Sequence[StageStats], resource: str) -> float:
    """The path's time on a resource, ms: of each stage its share of the stage's time."""
    total = 0.0
    for each in details:
        whole = sum(each.facts.resource_ms.values())
        if whole > 0:
            total += each.facts.path_ms * each.facts.resource_ms.get(resource, 0.0) / whole
    return total


def other_causes(connection: duckdb.DuckDBPyConnection, execution: Execution) -> Mapping[str, Remark]:
    """By resource, other possible causes of time on it; for time on no resource, its main cause."""
    within = {"since": execution.scope.start_ms, "until": execution.scope.end_ms}
    row = connection.execute(sql.text("waited", __package__), {"operator": WAITING_IN_PYTHON, **within}).fetchone()
    found: dict[str, Remark] = dict(rules.other_causes(connection, execution))
    if row is not None and row[0] >= _MOST * row[1] > 0:
        found["unknown"] = WaitsInPython(row[2] or None)
    return found
