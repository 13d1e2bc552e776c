"""What a recording measured of its whole process: its CPU time, the CPU quota of its container, its network.

Recorders look at each of the three by a clock of its own: once a second where they have our flags (query.recordings
.flags), the network once in 5 s and the quota once in 30 s by the JDK's settings.  What one look says of the time since
the look before is spread evenly over the looks at the CPU time.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from crystalperf.query.recordings import jfr
from crystalperf.query.recordings.jfr.merge import parse_period_ns
from crystalperf.query.trace.arrays import over
from crystalperf.query.trace.records import Columns, Floats, Ints, objects

_HANDS_ON = re.compile(r"lo\d*|(veth|docker|br-|cni|cali|flannel|virbr).*")
"""Devices that are no network, or that carry what another one does."""

_PERIOD_NS = 5_000_000_000
"""Between two looks at the network where a recording does not say: what the JDK's own settings have."""

_ONE_LOOK_NS = 100_000_000
"""Events of one look lie within this."""

_MOST_BPS = 1e13
"""Of a device: beyond it a rate is damage."""

Known = np.ma.MaskedArray[Any, Any]


def process_loads(recording: jfr.Recording, worker_id: str, shift_ms: float) -> Columns:
    """Rows of `loads`: one per look at the process' CPU time, none where the recording does not say of how many
    processors it is.

    `quota_cores` is by the last configuration that the recording has.
    """
    load, processors = recording.process_load, recording.processors
    count = len(load) if processors else 0
    time_ns = load.time_ns[:count]
    received, sent = _carried(recording, time_ns)
    return {
        "worker_id": objects([worker_id] * count),
        "time_ms": time_ns / 1e6 + shift_ms,
        "cpu_cores": (load.user + load.system)[:count].astype(np.float64) * processors,
        "machine_cores": load.machine[:count].astype(np.float64) * processors,
        "processors": np.full(count, processors, dtype=np.int64),
        "quota_cores": objects([recording.quota_cores] * count),
        "throttled": _throttled(recording, time_ns),
        "received_bytes_per_s": received,
        "sent_bytes_per_s": sent,
    }


def _throttled(recording: jfr.Recording, time_ns: Ints) -> Known:
    """Share of the periods of the container's quota that ended with it used up, since the look before."""
    looks = recording.throttling
    elapsed, throttled = np.diff(looks.elapsed), np.diff(looks.throttled)
    counted = (elapsed > 0) & (throttled >= 0) & (throttled <= elapsed)  # else the counters began anew
    elapsed, throttled = (np.where(counted, each, 0).astype(np.float64) for each in (elapsed, throttled))
    used, periods = (_between(time_ns, looks.time_ns[:-1], looks.time_ns[1:], each) for each in (throttled, elapsed))
    return np.ma.MaskedArray(over(used, periods), ~(periods > 0))


def _carried(recording: jfr.Recording, time_ns: Ints) -> tuple[Known, Known]:
    """What the machine's network devices received and sent, bytes/s; one that carried nothing has no event."""
    load, lasting_ns = recording.network_load, np.diff(time_ns, prepend=time_ns[:1])
    begins = np.diff(load.time_ns, prepend=np.iinfo(np.int64).min // 2) > _ONE_LOOK_NS
    look, until_ns = np.cumsum(begins) - 1, load.time_ns[begins]
    period_ns = parse_period_ns(recording.settings.get(("jdk.NetworkUtilization", "period"), "")) or _PERIOD_NS
    since_ns = np.maximum(until_ns - period_ns, np.concatenate([until_ns[:1] - period_ns, until_ns[:-1]]))
    known = np.zeros(len(time_ns), dtype=np.bool_)
    if len(until_ns):  # before the first look nothing was measured, nor after the last; the first at CPU time has none
        within = (time_ns - lasting_ns >= since_ns[0] - _ONE_LOOK_NS) & (time_ns <= until_ns[-1] + period_ns)
        known = within & (lasting_ns > 0)
    is_network = np.array([_HANDS_ON.fullmatch(name) is None for name in recording.devices], dtype=np.bool_)
    found = []
    for bps in (load.received_bps, load.sent_bps):
        counts = is_network[load.device] & (bps >= 0) & (bps <= _MOST_BPS)
        rate = np.bincount(look[counts], bps[counts] / 8, len(until_ns))
        carried = _between(time_ns, since_ns, until_ns, rate * (until_ns - since_ns) / 1e9)
        per_s = over(carried, lasting_ns / 1e9)
        found.append(np.ma.MaskedArray(per_s, ~known))
    return found[0], found[1]


def _between(time_ns: Ints, since_ns: Ints, until_ns: Ints, amount: Floats) -> Floats:
    """Of amounts that are spread evenly over intervals in a row, what lies between each moment and the one before."""
    if not len(amount) or not len(time_ns):
        return np.zeros(len(time_ns))
    sums = np.cumsum(amount)
    moments = np.stack([since_ns, until_ns], axis=1).reshape(-1)
    at = np.interp(time_ns, moments, np.stack([sums - amount, sums], axis=1).reshape(-1))
    found: Floats = np.diff(at, prepend=at[:1])
    return found
