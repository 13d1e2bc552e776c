"""What a recording measured of its whole process: its CPU time, the CPU quota of its container, its network."""

from __future__ import annotations

from typing import Any

import numpy as np

from query.model.records import Columns, Floats, Ints, objects
from query.recordings import jfr

LOOPBACK = "lo"


def process_loads(recording: jfr.Recording, worker_id: str, shift_ms: float) -> Columns:
    """Rows of `loads`: one per look at the process' CPU time, none where the recording does not say of how many
    processors it is.

    The other looks of a second fall within milliseconds of that at the CPU time.
    """
    load, processors = recording.process_load, recording.processors
    count = len(load) if processors else 0
    return {
        "worker_id": objects([worker_id] * count),
        "time_ms": load.time_ns[:count] / 1e6 + shift_ms,
        "cpu_cores": (load.user + load.system)[:count].astype(np.float64) * processors,
        "machine_cores": load.machine[:count].astype(np.float64) * processors,
        "processors": np.full(count, processors, dtype=np.int64),
        "quota_cores": objects([recording.quota_cores] * count),
        "throttled": _throttled(recording, load.time_ns[:count]),
        **_carried(recording, load.time_ns[:count]),
    }


def _throttled(recording: jfr.Recording, time_ns: Ints) -> Floats | np.ma.MaskedArray[Any, Any]:
    """Share of the periods of the container's quota that ended with it used up, since the look before."""
    looks = recording.throttling
    share = np.full(len(time_ns), np.nan)
    if len(looks) > 1 and len(time_ns):
        elapsed, throttled = np.diff(looks.elapsed), np.diff(looks.throttled)
        known = (elapsed > 0) & (throttled >= 0)
        share[_nearest(time_ns, looks.time_ns[1:][known])] = (throttled[known] / elapsed[known]).clip(0.0, 1.0)
    return np.ma.MaskedArray(share, np.isnan(share))


def _carried(recording: jfr.Recording, time_ns: Ints) -> Columns:
    """What the machine's network devices carried, bytes/s, but for the loopback: that is no network."""
    load = recording.network_load
    outside = np.array([name != LOOPBACK for name in recording.devices], dtype=np.bool_)[load.device]
    at = _nearest(time_ns, load.time_ns[outside])
    rates = {}
    for name, bps in (("received_bytes_per_s", load.received_bps), ("sent_bytes_per_s", load.sent_bps)):
        rate = np.bincount(at, bps[outside] / 8, len(time_ns)) if len(time_ns) else np.zeros(0)
        rates[name] = np.ma.MaskedArray(rate, np.full(len(time_ns), not outside.any()))
    return dict(rates)


def _nearest(time_ns: Ints, moments_ns: Ints) -> Ints:
    """The position in the rising `time_ns` that is nearest to each moment; none where there is nothing near."""
    if not len(time_ns):
        return np.zeros(0, dtype=np.int64)
    after = np.searchsorted(time_ns, moments_ns).clip(1, max(1, len(time_ns) - 1))
    before = after - 1
    after = np.minimum(after, len(time_ns) - 1)
    return np.where(moments_ns - time_ns[before] <= time_ns[after] - moments_ns, before, after)
