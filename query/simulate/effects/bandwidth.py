"""disk, network and other bandwidths: bytes over bandwidth, and Algorithm 2 (paper §5) if no bytes are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crystalperf.indexes.resources import Resource
from crystalperf.query.execution.scenario import Scenario
from crystalperf.query.simulate.effects import State
from crystalperf.query.simulate.transfers import MODEL, Physics, transfers
from crystalperf.query.trace.records import Floats


def apply(state: State, scenario: Scenario, physics: Physics = MODEL) -> State:
    """The state with time on every resource of bytes scaled to the scenario's bandwidth.

    If bytes are known, their time follows from the schedule (query.simulate.fixed_point), and nothing changes here.
    """
    if all(each.unit != "bytes per second" or scenario.ratio(each.setting) == 1 for each in state.execution.resources):
        return state
    known = {each.column for each in transfers(state.execution, scenario, physics)}
    parts, nodes = state.parts_ms.copy(), dict(state.dag.nodes)
    for column, each in enumerate(state.execution.resources):
        ratio = scenario.ratio(each.setting)
        if each.unit != "bytes per second" or ratio == 1:
            continue
        if column not in known:
            rate_bps = state.execution.recorded.get(each.setting) or each.rate_bps
            parts[:, column] = scale_io(parts[:, column], ratio, rate_bps, each)
        for node_id, node in nodes.items():
            if node.resource == each.name:
                nodes[node_id] = replace(node, end_ms=node.start_ms + (node.end_ms - node.start_ms) / ratio)
    return replace(state, parts_ms=parts, dag=replace(state.dag, nodes=nodes))


def scale_io(time_ms: Floats, ratio: float, rate_bps: float | None, resource: Resource) -> Floats:
    """Algorithm 2 for one device: `time_ms` of input and output, scaled to `ratio` times the bandwidth.

    t_p = D / S_B · o stays, where D are the bytes that move in this time at the recorded rate; t_c = t_io − t_p (never
    below 0) scales by B / B′.
    """
    if resource.buffer_bytes is None or resource.overhead_ms is None or rate_bps is None:
        return time_ms / ratio
    processing = np.minimum(time_ms / 1e3 * rate_bps / resource.buffer_bytes * resource.overhead_ms, time_ms)
    scaled: Floats = processing + (time_ms - processing) / ratio
    return scaled
