"""disk, network and the like: input and output under another bandwidth (paper §5, Algorithm 2)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from indexes.resources import Resource
from query.model.execution import Execution
from query.model.records import Floats
from query.model.world import World
from query.whatif.effects import State


def apply(state: State, world: World) -> State:
    """The state with time on every resource of bytes under the bandwidth that the world gives it."""
    changed = {
        column: each
        for column, each in enumerate(state.execution.resources)
        if each.unit == "bytes per second" and world.ratio(each.setting) != 1
    }
    if not changed:
        return state
    parts, nodes = state.parts_ms.copy(), dict(state.dag.nodes)
    for column, each in changed.items():
        parts[:, column] = io_scaled(state.execution, parts[:, column], each, world)
        for node_id, node in nodes.items():
            if node.resource == each.name:
                length = (node.end_ms - node.start_ms) / world.ratio(each.setting)
                nodes[node_id] = replace(node, end_ms=node.start_ms + length)
    return replace(state, parts_ms=parts, dag=replace(state.dag, nodes=nodes))


def io_scaled(execution: Execution, time_ms: Floats, resource: Resource, world: World) -> Floats:
    """Each unit's time on a device under the bandwidth that it has in the world."""
    logged = execution.volumes.moved(resource)
    rate_bps = execution.recorded.get(resource.setting) or resource.rate_bps
    if rate_bps is None:
        return time_ms / world.ratio(resource.setting)
    data = np.where(logged > 0, np.minimum(logged, time_ms / 1e3 * rate_bps), time_ms / 1e3 * rate_bps)
    return scale_io(time_ms, world.ratio(resource.setting), data, resource)


def scale_io(time_ms: Floats, ratio: float, data_bytes: Floats, resource: Resource) -> Floats:
    """Algorithm 2 for one device: `time_ms` of input and output under `ratio` times the bandwidth.

    t_p = D / S_B · o stays, t_c = t_io − t_p (never below 0) scales by B / B′.
    """
    if resource.buffer_bytes is None or resource.overhead_ms is None:
        return time_ms / ratio
    processing = np.minimum(data_bytes / resource.buffer_bytes * resource.overhead_ms, time_ms)
    scaled: Floats = processing + (time_ms - processing) / ratio
    return scaled
