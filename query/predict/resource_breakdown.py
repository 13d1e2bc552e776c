"""Resource breakdown of a predicted run along its critical path."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crystalperf.query.execution.critical_path import WallClock, fill, path_by
from crystalperf.query.execution.dag import Node
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.scenario import Scenario
from crystalperf.query.simulate.effects import State
from crystalperf.query.simulate.fixed_point import FixedPoint
from crystalperf.query.trace.records import Floats


class _Predicted(WallClock):
    """Splits the driver's intervals in the recorded proportions, with each resource at the scenario's speed."""

    def __init__(self, state: State, fixed_point: FixedPoint, recorded: Execution, scenario: Scenario) -> None:
        now, tasks = fixed_point.replayed, state.execution.tasks
        nodes = {
            node_id: replace(node, start_ms=now.node_start_ms[node_id], end_ms=now.node_end_ms[node_id])
            for node_id, node in state.dag.nodes.items()
        }
        length = np.maximum(now.finish_ms - now.launch_ms, 0.0)
        ran = replace(
            tasks,
            launch_ms=now.launch_ms,
            finish_ms=now.finish_ms,
            parts_ms=fixed_point.parts_ms,
            pipeline_wait_ms=np.minimum(tasks.pipeline_wait_ms, length),
        )
        dag = replace(state.dag, start_ms=now.start_ms, end_ms=now.end_ms, nodes=nodes)
        super().__init__(dag, ran, recorded.driver.between, recorded.names)
        self._recorded = recorded
        self._faster = np.array([*(scenario.ratio(each.setting) for each in recorded.resources), 1.0])

    def parts(self, node: Node, start_ms: float, end_ms: float) -> Floats:
        """Wall-clock time by resource, (resources + 1,), that sums to end − start."""
        if node.kind != "driver":
            return super().parts(node, start_ms, end_ms)
        before = self._recorded.dag.nodes[node.node_id]
        parts = self._recorded.driver.between(before.start_ms, before.end_ms) / self._faster
        whole = float(parts.sum())
        return fill(parts * ((end_ms - start_ms) / whole if whole > 0 else 0.0), end_ms - start_ms)


def path_parts(state: State, fixed_point: FixedPoint, recorded: Execution, scenario: Scenario) -> Floats:
    """Time of a predicted run on each resource and `other` along its critical path, (resources + 1,) in ms.

    It sums to the replay's makespan.
    """
    pieces = path_by(_Predicted(state, fixed_point, recorded, scenario))
    found: Floats = np.sum([each.parts_ms for each in pieces], axis=0) if pieces else np.zeros(len(recorded.names) + 1)
    return found
