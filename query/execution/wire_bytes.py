"""Bytes that crossed the network over bytes that tasks logged: frameworks count records before compression, or do not
count repeated reads."""

from __future__ import annotations

import numpy as np

from crystalperf.query.execution.dag import Tasks
from crystalperf.query.execution.volumes import Volumes
from crystalperf.query.execution.worker_loads import Loads

FRAME_DATA = 1448 / 1514
"""Payload share of Ethernet traffic, of a frame's 1514 bytes."""

COVERED = 0.9
"""Minimum share of the time of a worker's tasks that network measurements must cover."""

MIN_BYTES = 4e6
"""Minimum logged bytes of all workers: with fewer, heartbeats and metrics may be most of the traffic."""

MAX_READ = 1.5
"""Maximum ratio of received to logged bytes, because of read-ahead and discarded data: above, other traffic is
included."""


def wire_ratio(loads: Loads, tasks: Tasks, volumes: Volumes) -> float | None:
    """Bytes that the networks of workers received, without headers, over those that their tasks logged as read from
    other machines; None if not measured, or if it is too much for these tasks.

    Workers of one host share its network devices, so the largest measurement counts.  Other traffic below half of the
    logged bytes goes unnoticed.
    """
    if np.isnan(loads.received_per_s).all():
        return None
    logged = (volumes.remote_read + volumes.far).astype(np.float64)
    received, logged_on = dict[int, float](), dict[int, float]()
    for each in np.unique(tasks.worker[(logged > 0) & (tasks.worker >= 0)]).tolist():
        own, measured = tasks.worker == each, (loads.worker == each) & ~np.isnan(loads.received_per_s)
        began, ended = float(tasks.launch_ms[own].min()), float(tasks.finish_ms[own].max())
        within_ms = np.clip(
            np.minimum(loads.until_ms[measured], ended) - np.maximum(loads.since_ms[measured], began), 0.0, None
        )
        if within_ms.sum() < COVERED * (ended - began):
            continue
        host, bytes_ = int(tasks.host[own][0]), float((loads.received_per_s[measured] * within_ms).sum()) / 1e3
        host = host if host >= 0 else -1 - each
        received[host] = max(received.get(host, 0.0), FRAME_DATA * bytes_)
        logged_on[host] = logged_on.get(host, 0.0) + float(logged[own].sum())
    whole, wire_bytes_ratio = sum(logged_on.values()), sum(received.values())
    return wire_bytes_ratio / whole if whole >= MIN_BYTES and 0 < wire_bytes_ratio <= MAX_READ * whole else None
