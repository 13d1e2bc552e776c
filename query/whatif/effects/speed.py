"""cpu_speed and the like: time on a device that is so many times as fast (Algorithm 1)."""

from __future__ import annotations

from dataclasses import replace

from query.model.world import World
from query.whatif.effects import State


def apply(state: State, world: World) -> State:
    """The state with time on every resource whose setting is a speed divided by its ratio, the coordinator's too."""
    execution = state.execution
    speeds = {
        column: world.ratio(each.setting)
        for column, each in enumerate(execution.resources)
        if each.unit == "speed" and world.ratio(each.setting) != 1
    }
    if not speeds:
        return state
    parts = state.parts_ms.copy()
    for column, ratio in speeds.items():
        parts[:, column] /= ratio
    nodes = dict(state.dag.nodes)
    for node_id, node in nodes.items():
        if node.kind == "coordinator":
            seen = execution.coordinator.between(node.start_ms, node.end_ms)
            saved = sum(float(seen[column]) * (1 - 1 / ratio) for column, ratio in speeds.items())
            nodes[node_id] = replace(node, end_ms=node.end_ms - saved)
    return replace(state, parts_ms=parts, dag=replace(state.dag, nodes=nodes))
