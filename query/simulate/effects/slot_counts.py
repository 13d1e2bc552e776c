"""cores, workers, tasks: tasks on other slots, repartitioned if the framework would do that (Algorithm 1)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crystalperf.query.execution.execution import Execution, Planned
from crystalperf.query.execution.scenario import TASKS, Scenario
from crystalperf.query.execution.slots import Slots
from crystalperf.query.results.assumptions import TasksKept
from crystalperf.query.results.refusals import PlanUnknown, Refusal, RefusedError, WorkersUnknown
from crystalperf.query.simulate.effects import State


def apply(state: State, scenario: Scenario, *, replans: bool) -> State:
    """The state with the scenario's slots.  Raises RefusedError if the run has no workers."""
    planned = _planned(state.execution, scenario, replans)
    slots = changed_slots(state.execution, scenario, planned.slots)
    parts = state.parts_ms
    if planned.execution is not state.execution:
        parts = planned.execution.tasks.parts_ms.copy()
    dag = state.dag if planned.execution.dag is state.execution.dag else planned.execution.dag
    changed = replace(state, execution=planned.execution, parts_ms=parts, dag=dag, slots=slots)
    return changed.assuming(*planned.assumptions)


def _planned(execution: Execution, scenario: Scenario, wanted: bool) -> Planned:
    """The run as its framework would plan it for the scenario's slots.  Raises RefusedError if it cannot plan."""
    same = all(scenario.ratio(key) == 1 for key in ("cores", "workers", "input", "tasks"))
    own = execution.planner.settings.keys() & scenario.changes.keys()
    if same and not own and not any(key.startswith(TASKS) for key in scenario.ratios):
        return Planned(execution)
    if execution.planner.replan is not None:
        planned = execution.planner.replan(execution, scenario, wanted)
        if isinstance(planned, Refusal):
            raise RefusedError(planned)
        return planned
    if scenario.ratio("tasks") != 1:
        raise RefusedError(PlanUnknown(execution.title))
    return Planned(execution, (TasksKept(),))


def changed_slots(execution: Execution, scenario: Scenario, times: float = 1.0) -> Slots:
    """The scenario's slots, with `times` as many for each worker.

    An absolute number of slots is that of every worker, whatever the recorded ones had; a ratio changes each by itself.
    Workers come and go as the recorded ones did.  Added workers are copies of recorded ones on hosts of their own;
    removed workers are spread evenly over the recorded ones.  Raises RefusedError if the run has no workers.
    """
    # If each worker has its own operators, added workers do not run them: replan decides what they change.
    more_workers = 1.0 if execution.in_order else scenario.ratio("workers")
    cores = scenario.ratio("cores") * times
    if cores == 1 and more_workers == 1 and scenario.amount("cores") is None:
        return execution.slots
    old = execution.slots
    if not len(old):
        raise RefusedError(WorkersUnknown())
    recorded, first, width = np.unique(old.worker, return_index=True, return_counts=True)
    count = max(round(len(recorded) * more_workers), 1)
    if count >= len(recorded):
        chosen, copy = np.arange(count) % len(recorded), np.arange(count) // len(recorded)
    else:
        chosen = np.floor(np.linspace(0, len(recorded), count, endpoint=False)).astype(np.int64)
        copy = np.zeros(count, dtype=np.int64)
    slots_of = np.maximum(np.rint(width[chosen] * cores).astype(np.int64), 1)
    each = scenario.amount("cores")
    if each is not None and len(np.unique(width)) > 1:
        slots_of = np.full(count, max(round(each * times), 1))
    row = np.repeat(np.arange(count), slots_of)
    origin = first[chosen][row]
    shared = 1.0 if execution.planner.slots_bring_cpu else (width[chosen] / slots_of)[row]
    return Slots(
        worker=row,
        host=old.host[origin] + copy[row] * (int(old.host.max()) + 1),
        available_ms=old.available_ms[origin],
        until_ms=old.until_ms[origin],
        cpu_cores=old.cpu_cores[origin] * shared,
    )
