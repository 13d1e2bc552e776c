"""What crossed the network, beside what units logged: frameworks count records before they are packed, or not at all
what is read twice."""

from __future__ import annotations

import numpy as np

from crystalperf.query.execution.dag import Units
from crystalperf.query.execution.volumes import Volumes
from crystalperf.query.execution.worker_loads import Loads

FRAME_DATA = 1448 / 1514
"""The share of what crosses an Ethernet that is data, of a frame's 1514 bytes."""

COVERED = 0.9
"""Share of the time of a worker's units that measurements of its network must cover to tell of all of it."""

LEAST_BYTES = 4e6
"""Logged bytes of all workers below which heartbeats and metrics may be most of what crossed."""

MOST_READ = 1.5
"""How many times their logged size bytes cross the network at most, read ahead or thrown away: of more, other traffic
is part."""


def wire_ratio(loads: Loads, units: Units, volumes: Volumes) -> float | None:
    """Bytes that the networks of workers received, headers left out, over those that their units logged as read from
    other machines; None where that was not measured, or is more than can be these units'.

    Workers of one host are taken to see the same devices, so the one that saw most counts.  Other traffic that is less
    than half of what units logged is not noticed.
    """
    logged = (volumes.remote + volumes.far).astype(np.float64)
    crossed, said = dict[int, float](), dict[int, float]()
    for each in np.unique(units.worker[(logged > 0) & (units.worker >= 0)]).tolist():
        mine, looks = units.worker == each, (loads.worker == each) & ~np.isnan(loads.received_per_s)
        began, ended = float(units.launch_ms[mine].min()), float(units.finish_ms[mine].max())
        within_ms = np.clip(
            np.minimum(loads.until_ms[looks], ended) - np.maximum(loads.since_ms[looks], began), 0.0, None
        )
        if within_ms.sum() < COVERED * (ended - began):
            continue
        host, bytes_ = int(units.host[mine][0]), float((loads.received_per_s[looks] * within_ms).sum()) / 1e3
        host = host if host >= 0 else -1 - each
        crossed[host] = max(crossed.get(host, 0.0), FRAME_DATA * bytes_)
        said[host] = said.get(host, 0.0) + float(logged[mine].sum())
    whole, wire = sum(said.values()), sum(crossed.values())
    return wire / whole if whole >= LEAST_BYTES and 0 < wire <= MOST_READ * whole else None
