"""Input and output under another bandwidth (paper §5, Algorithm 2), for disk and network each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from query.model.dag import Floats, Ints
from query.model.execution import Execution, Volumes
from query.model.world import World


@dataclass(frozen=True)
class Buffering:
    """Buffered input or output of a device, for Algorithm 2.

    `buffer_bytes` is S_B and `overhead_ms` is o, the time to process one buffer, which no bandwidth changes.
    `rate_bps` (bytes per second) estimates the data behind a time where neither bytes nor bandwidth are known.
    """

    buffer_bytes: float
    overhead_ms: float
    rate_bps: float


BUFFERING = {
    # A page-cache read-ahead window (Linux: read_ahead_kb = 128); Arrakis (OSDI '14, §2.1) measures the kernel's
    # own share of a small write at several µs. The rate is a SATA disk's.
    "disk": Buffering(128 * 1024, 0.005, 150e6),
    # TCP's default receive buffer (tcp_rmem's 131072). Arrakis table 1: 3.36 µs of kernel time a packet; with
    # segmentation offload the kernel handles the buffer as two of 64 KiB. The rate is 1 Gbps.
    "net": Buffering(128 * 1024, 0.0067, 125e6),
}


def scale_io(time_ms: Floats, ratio: float, data_bytes: Floats, buffering: Buffering) -> Floats:
    """Algorithm 2 for one device: `time_ms` of input and output under `ratio` times the bandwidth.

    t_p = D / S_B · o stays, t_c = t_io − t_p (never below 0) scales by B / B′.
    """
    processing = np.minimum(data_bytes / buffering.buffer_bytes * buffering.overhead_ms, time_ms)
    scaled: Floats = processing + (time_ms - processing) / ratio
    return scaled


def moved_bytes(volumes: Volumes, resource: str) -> Ints:
    """Bytes that each task logged of a device; what the page cache took or gave is among those of the disk."""
    return volumes.remote if resource == "net" else volumes.input + volumes.shuffle_write + volumes.output


def io_scaled(execution: Execution, time_ms: Floats, resource: str, key: str, world: World) -> Floats:
    """Each task's time on a device under the bandwidth that `key` has in the world."""
    ratio = world.ratio(key)
    if ratio == 1:
        return time_ms
    buffering, logged = BUFFERING[resource], moved_bytes(execution.volumes, resource)
    rate = getattr(execution.recorded, key) or buffering.rate_bps
    data = np.where(logged > 0, np.minimum(logged, time_ms / 1e3 * rate), time_ms / 1e3 * rate)
    return scale_io(time_ms, ratio, data, buffering)
