"""Effects of a scenario, one module each: a function from the state of a run to the state with the effect.

    slot_counts     cores, workers       tasks on other slots, repartitioned if the framework would do that
    memory          memory               transfers that missing memory adds or more memory saves
    device_speed    cpu_speed and others   time on a device, divided by its speedup
    bandwidth       disk, network        bytes over bandwidth; Algorithm 2 if no bytes are known
    input_size      input                more or less data of the same kind
    skew            skew                 a stage's work spread evenly over its tasks
    operator_speed  operator.NAME        time of an operator, divided by its speedup

Contention for devices depends on when tasks run, so it is not an effect: each replay computes it
(query.simulate.fixed_point).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.resources import CPU
from crystalperf.query.execution.dag import Dag
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.slots import Slots
from crystalperf.query.results.assumptions import Assumption
from crystalperf.query.trace.arrays import safe_divide
from crystalperf.query.trace.records import Floats


@frozen
class State:
    """A run with some of the effects of a scenario applied.

    `parts_ms`, (tasks, resources + 1), are the changed parts of the tasks of `execution`; `dag` has the changed
    intervals of the driver, and `slots` are the slots that tasks can run on.  `before_ms` are the parts on the
    recorded devices; None while no device has changed.
    """

    execution: Execution
    parts_ms: Floats
    dag: Dag
    slots: Slots
    before_ms: Floats | None = None
    assumptions: tuple[Assumption, ...] = ()

    def assuming(self, *assumed: Assumption) -> State:
        """The same state, with more assumptions."""
        return replace(self, assumptions=(*self.assumptions, *assumed))


def overhead_share(state: State) -> Floats:
    """The overhead share of each task's time: starting, deserialization and reporting, (tasks,)."""
    whole = state.parts_ms.sum(axis=1)
    overhead = np.minimum(state.execution.volumes.overhead_ms, whole)
    return safe_divide(overhead, whole)


def with_scaled_cpu_time(state: State, parts_ms: Floats) -> Execution:
    """The execution with its tasks' CPU time, the minimum that they compute, scaled like the CPU of `parts_ms`."""
    execution = state.execution
    cpu = execution.names.index(CPU)
    before = state.parts_ms[:, cpu]
    left = safe_divide(parts_ms[:, cpu], before, 1.0)
    return replace(execution, volumes=replace(execution.volumes, total_cpu_ms=execution.volumes.total_cpu_ms * left))


def pipeline_wait(state: State) -> Floats:
    """The time that each task waited for other tasks of its pipeline, as parts, (tasks, resources + 1); the replay
    computes this wait for a scenario."""
    found = np.zeros_like(state.parts_ms)
    found[:, -1] = np.minimum(state.execution.tasks.pipeline_wait_ms, state.parts_ms[:, -1])
    return found


def baseline_state(execution: Execution) -> State:
    """The state of the baseline: the run as it was recorded."""
    return State(execution, execution.tasks.parts_ms.copy(), execution.dag, execution.slots)
