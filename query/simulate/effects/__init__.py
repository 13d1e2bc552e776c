"""Effects of a changed world, one a file: each is a function from a state of the run to the state with it.

    slots       cores, workers       units on other slots, cut anew where the framework would
    memory      memory               transfers that missing memory adds or more memory saves
    speed       cpu_speed and the like   time on a device that is so many times as fast
    bandwidth   disk, network        bytes over bandwidth; Algorithm 2 where no bytes are known
    input       input                more or less data of the same kind
    skew        skew                 a group's work spread evenly over its units
    operators   operator.NAME        an operator that is so many times as fast

How units share devices depends on when they run, so it is no effect but follows with each replay
(query.simulate.fixed_point).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from crystalperf.indexes.resources import CPU
from crystalperf.query.execution.dag import Dag
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.slots import Slots
from crystalperf.query.results.assumptions import Assumption
from crystalperf.query.trace.arrays import over
from crystalperf.query.trace.records import Floats


@dataclass(frozen=True)
class State:
    """A run on its way into a changed world.

    `parts_ms`, (units, resources + 1), are those of the units of `execution` as far as effects have changed them;
    `dag` has the coordinator's intervals likewise, and `slots` is where units can run.  `before_ms` are the parts as
    the recorded devices would have given them; None while no device has changed.
    """

    execution: Execution
    parts_ms: Floats
    dag: Dag
    slots: Slots
    before_ms: Floats | None = None
    assumptions: tuple[Assumption, ...] = ()

    def assuming(self, *assumed: Assumption) -> State:
        """The same state, with what was taken for granted on the way."""
        return replace(self, assumptions=(*self.assumptions, *assumed))


def around(state: State) -> Floats:
    """Of each unit's time, the share that starting, unpacking and reporting it take, (units,)."""
    whole = state.parts_ms.sum(axis=1)
    overhead = np.minimum(state.execution.volumes.overhead_ms, whole)
    return over(overhead, whole)


def computing(state: State, parts_ms: Floats) -> Execution:
    """The execution whose units compute as much more or less at least, by their CPU time, as such parts have of it."""
    execution = state.execution
    cpu = execution.names.index(CPU)
    before = state.parts_ms[:, cpu]
    left = over(parts_ms[:, cpu], before, 1.0)
    return replace(execution, volumes=replace(execution.volumes, on_cpu_ms=execution.volumes.on_cpu_ms * left))


def waiting(state: State) -> Floats:
    """Of each unit's parts, what it waited for the units that it shares a pipeline with, (units, resources + 1): how
    long that is in another world the replay finds."""
    found = np.zeros_like(state.parts_ms)
    found[:, -1] = np.minimum(state.execution.units.upstream_ms, state.parts_ms[:, -1])
    return found


def unchanged(execution: Execution) -> State:
    """The run as it was recorded."""
    return State(execution, execution.units.parts_ms.copy(), execution.dag, execution.slots)
