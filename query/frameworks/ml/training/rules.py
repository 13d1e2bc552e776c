"""Findings and remarks of any training: step time, input, exposed and hidden communication."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import duckdb

from crystalperf.indexes.resources import CPU, DISK, OTHER
from crystalperf.query import sql
from crystalperf.query.diagnose.critical_operators import path_by_operator
from crystalperf.query.diagnose.stage_statistics import StageStats
from crystalperf.query.execution.execution import Execution
from crystalperf.query.frameworks import Advisor
from crystalperf.query.frameworks.ml.training import absent, memory
from crystalperf.query.frameworks.ml.training.assumptions import StepsByAccelerator, WithoutProfiler
from crystalperf.query.frameworks.ml.training.devices import GPU, HBM, LATENCY
from crystalperf.query.frameworks.ml.training.findings import Input, ReadAhead
from crystalperf.query.frameworks.ml.training.gaps import BETWEEN
from crystalperf.query.frameworks.ml.training.operator_times import kind_times
from crystalperf.query.frameworks.ml.training.remarks import (
    AcceleratorLimits,
    Communication,
    DeviceMemoryPeak,
    HostLaunches,
    HostWaitsForResults,
    InputWait,
    MayBePageCache,
    NoOperator,
    ProfilerIncluded,
    StepTime,
    UnevenSteps,
    WaitForSlowest,
)
from crystalperf.query.results.answers import NamedPart, PathItem
from crystalperf.query.results.assumptions import Assumption
from crystalperf.query.results.remarks import Remark

_UNEVEN = 2.0
"""How many times longer the longest traced step is than the shortest, from which a mean step is uncertain."""

_LAUNCH_MS = 0.25
"""Maximum time of a step per launch for which the host's time counts as launching: longer steps do other work."""

_OFTEN = 5
"""Synchronisations in a step from which they are a part of what the host does."""

_WORTH = 0.02
"""Minimum share of the time for which waiting for input is reported."""


def remarks(connection: duckdb.DuckDBPyConnection, execution: Execution) -> list[Remark]:
    """Measurements of the scope's steps."""
    properties, found = execution.properties, list[Remark]()
    if "step_ms" in properties:
        steps, processes = (int(properties.get(each, "1")) for each in ("steps", "processes"))
        found.append(StepTime(float(properties["step_ms"]), steps, processes))
        shortest, longest = (float(properties.get(f"{each}_step_ms", "0")) for each in ("shortest", "longest"))
        if longest > _UNEVEN * shortest > 0:
            found.append(UnevenSteps(steps, shortest, longest))
    found += _of_accelerator(connection, properties)
    start, end = execution.scope.start_ms, execution.scope.end_ms
    input_ms, _ = kind_times(connection, start, end).get("input", (0.0, 0.0))
    if input_ms >= _WORTH * (end - start):
        found.append(InputWait(input_ms))
    return [*found, *_communication(connection, start, end)]


def _of_accelerator(connection: duckdb.DuckDBPyConnection, properties: Mapping[str, str]) -> list[Remark]:
    """The highest use of its memory, and why steps include the cost of the profiler."""
    found: list[Remark] = []
    if memory.PEAK in properties:
        question = "SELECT part, bytes FROM training_memory ORDER BY bytes DESC, part"
        capacity = properties.get(memory.CAPACITY)
        found.append(
            DeviceMemoryPeak(
                int(properties[memory.PEAK]), int(properties[memory.RESERVED]),
                None if capacity is None else int(capacity), dict(connection.execute(question).fetchall()),
            )
        )  # fmt: skip
    if "step_ms" in properties and "accelerators" in properties and "traced_step_ms" not in properties:
        found.append(ProfilerIncluded(int(properties.get("processes", "1"))))
    return found


def launching(facts: Mapping[str, str]) -> HostLaunches | None:
    """The name of the CPU's time on the path if the steps launch work on an accelerator; None if they do more.

    `facts` are the run's properties, those of steady.py and pytorch/untraced.py among them.
    """
    launches, step_ms = (float(facts.get(each, 0.0)) for each in ("launches", "step_ms"))
    if launches <= 0 or step_ms > _LAUNCH_MS * launches:
        return None
    busy_ms, times = float(facts["busy_ms"]), float(facts["synchronisations"])
    if times < _OFTEN:
        return HostLaunches(busy_ms, step_ms)
    return HostWaitsForResults(busy_ms, step_ms, times, facts.get("synchronised_at"))


def of_accelerator(
    facts: Mapping[str, str], path: Sequence[PathItem], listed: Sequence[NamedPart] = ()
) -> list[NamedPart]:
    """The path's time on an accelerator, and the host's time for launches, without parts that are `listed` already."""
    found = []
    on_device = {
        name: sum(each.resource_ms.get(name, 0.0) for each in path) for name in (HBM.name, GPU.name, LATENCY.name)
    }
    if sum(on_device.values()) > 0:
        found.append(NamedPart(AcceleratorLimits(*on_device.values()), on_device))
    if (named := launching(facts)) is not None:
        total_ms = sum(each.resource_ms.get(CPU, 0.0) for each in path)
        rest_ms = total_ms - sum(each.resource_ms.get(CPU, 0.0) for each in (*listed, *found))
        found.append(NamedPart(named, {CPU: max(rest_ms, 0.0)}))
    return found


def named_parts(
    connection: duckdb.DuckDBPyConnection, execution: Execution, path: Sequence[PathItem]
) -> list[NamedPart]:
    """Parts of the path whose cause is known better than by a resource."""
    listed = []
    for each in path_by_operator(connection, execution, path):
        if each.name == BETWEEN:
            own = {name: ms for name, ms in each.resource_ms.items() if name in (CPU, OTHER)}
            listed.append(NamedPart(NoOperator(), own, "unknown"))
    return [*listed, *of_accelerator(execution.properties, path, listed)]


def taken(_connection: duckdb.DuckDBPyConnection, execution: Execution) -> list[Assumption]:
    """Assumptions about the measured time."""
    facts = execution.properties
    if "traced_step_ms" in facts:
        return [WithoutProfiler(float(facts["traced_step_ms"]), float(facts["step_ms"]))]
    queued = facts.get("queued_ms")
    return [StepsByAccelerator(float(queued))] if queued else []


def input_waits(connection: duckdb.DuckDBPyConnection, details: Sequence[StageStats]) -> list[Input]:
    """Steps that wait for their next batch.

    Evidence: operators that return a batch ran on the critical path, or the loop requested a batch from its loader,
    while only other threads computed.  Contradicted if the batch was ready, because then they take no time.
    """
    waited = dict(
        connection.execute(
            "SELECT stage_id, sum(pipeline_wait_ms) FROM tasks WHERE pipeline_wait_ms > 0 GROUP BY stage_id"
        ).fetchall()
    )
    cost_ms = sum(min(each.facts.path_ms, waited.get(each.facts.id, 0.0)) for each in details)
    return [Input(cost_ms, "measured", ReadAhead(None), cost_ms)] if cost_ms > 0 else []


def _communication(connection: duckdb.DuckDBPyConnection, start: float, end: float) -> list[Remark]:
    """How long bytes moved between processes, how much of it was exposed, and how long processes waited for others."""
    within = {"start": start, "end": end}
    moved, waited, last = connection.execute(sql.text("exchanged", __package__), within).fetchall()[0]
    if not moved and not waited:
        return []
    hidden = connection.execute(sql.text("hidden", __package__), within).fetchall()[0][0]
    moved = moved or 0.0
    found: list[Remark] = [Communication(moved, max(moved - hidden, 0.0))]
    return [*found, WaitForSlowest(waited, last)] if waited and waited > 0 else found


def other_causes(connection: duckdb.DuckDBPyConnection, execution: Execution) -> Mapping[str, Remark]:
    """By resource, other possible causes of time on it."""
    start, end = execution.scope.start_ms, execution.scope.end_ms
    _, reading_ms = kind_times(connection, start, end).get("python", (0.0, 0.0))
    found: dict[str, Remark] = dict(absent.other_causes(connection, execution))
    if reading_ms >= absent.WORTH * (end - start) > 0:
        found[DISK] = MayBePageCache()
    return found


RULES = Advisor(
    remarks=remarks,
    findings=input_waits,
    assumptions=taken,
    required_recording=absent.required_recording,
    other_causes=other_causes,
    named_parts=named_parts,
)
