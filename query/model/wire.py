"""What crossed the network, beside what units logged: frameworks count records before they are packed, or not at all
what is read twice."""

from __future__ import annotations

import numpy as np

from query.model.dag import Units
from query.model.execution import Volumes
from query.model.records import Floats, Ints

FRAME_DATA = 1448 / 1514
"""The share of what crosses an Ethernet that is data, of a frame's 1514 bytes."""

COVERED = 0.9
"""Share of the time of a worker's units that measurements of its network must cover to tell of all of it."""

LEAST_BYTES = 4e6
"""Logged bytes of all workers below which heartbeats and metrics may be most of what crossed."""

MOST_READ = 1.5
"""How many times their logged size bytes cross the network at most, read ahead or thrown away: of more, other traffic
is part."""


def wire_ratio(worker: Ints, lasting_ms: Floats, received_bps: Floats, units: Units, volumes: Volumes) -> float | None:
    """Bytes that the networks of workers received, headers left out, over those that their units logged as read from
    other machines; None where that was not measured, or other traffic is part of it.

    (looks,): each look's worker, the time since the look before, and bytes per second, NaN where not measured.
    """
    logged = (volumes.remote + volumes.far).astype(np.float64)
    crossed = said = 0.0
    for each in np.unique(units.worker[(logged > 0) & (units.worker >= 0)]).tolist():
        mine, looks = units.worker == each, (worker == each) & ~np.isnan(received_bps)
        life_ms = float(units.finish_ms[mine].max() - units.launch_ms[mine].min())
        if lasting_ms[looks].sum() < COVERED * life_ms:
            continue
        crossed += FRAME_DATA * float((received_bps[looks] * lasting_ms[looks]).sum()) / 1e3
        said += float(logged[mine].sum())
    if said < LEAST_BYTES or crossed > MOST_READ * said:
        return None
    return crossed / said
