"""Bytes that crossed the network over bytes that units logged: frameworks count records before compression, or do not
count repeated reads."""

from __future__ import annotations

import numpy as np

from crystalperf.query.execution.dag import Units
from crystalperf.query.execution.volumes import Volumes
from crystalperf.query.execution.worker_loads import Loads

FRAME_DATA = 1448 / 1514
"""Payload share of Ethernet traffic, of a frame's 1514 bytes."""

COVERED = 0.9
"""Minimum share of the time of a worker's units that network measurements must cover."""

LEAST_BYTES = 4e6
"""Minimum logged bytes of all workers: with fewer, heartbeats and metrics may be most of the traffic."""

MOST_READ = 1.5
"""Maximum ratio of received to logged bytes, because of read-ahead and discarded data: above, other traffic is
included."""


def wire_ratio(loads: Loads, units: Units, volumes: Volumes) -> float | None:
    """Bytes that the networks of workers received, without headers, over those that their units logged as read from
    other machines; None if not measured, or if it is too much for these units.

    Workers of one host share its network devices, so the largest measurement counts.  Other traffic below half of the
    logged bytes goes unnoticed.
    """
    logged = (volumes.remote + volumes.far).astype(np.float64)
    received, logged_on = dict[int, float](), dict[int, float]()
    for each in np.unique(units.worker[(logged > 0) & (units.worker >= 0)]).tolist():
        own, measured = units.worker == each, (loads.worker == each) & ~np.isnan(loads.received_per_s)
        began, ended = float(units.launch_ms[own].min()), float(units.finish_ms[own].max())
        within_ms = np.clip(
            np.minimum(loads.until_ms[measured], ended) - np.maximum(loads.since_ms[measured], began), 0.0, None
        )
        if within_ms.sum() < COVERED * (ended - began):
            continue
        host, bytes_ = int(units.host[own][0]), float((loads.received_per_s[measured] * within_ms).sum()) / 1e3
        host = host if host >= 0 else -1 - each
        received[host] = max(received.get(host, 0.0), FRAME_DATA * bytes_)
        logged_on[host] = logged_on.get(host, 0.0) + float(logged[own].sum())
    whole, wire = sum(logged_on.values()), sum(received.values())
    return wire / whole if whole >= LEAST_BYTES and 0 < wire <= MOST_READ * whole else None
