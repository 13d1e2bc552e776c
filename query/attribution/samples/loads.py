"""Process load from a recording: CPU time, throttling by the container's CPU quota, network traffic.

Recorders measure each of the three at its own period: once a second with CrystalPerf's flags (query.recordings.flags),
the network every 5 s and the quota every 30 s with the JDK's settings.  A measurement covers the time since the one
before; its amount is spread evenly over the measurements of CPU time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from crystalperf.indexes.regex import regex
from crystalperf.query.recordings import jfr
from crystalperf.query.recordings.jfr.merge import parse_period_ns
from crystalperf.query.trace.arrays import safe_divide
from crystalperf.query.trace.records import LARGEST, Columns, Floats, Ints, objects

_NOT_NETWORK = regex(r"lo\d*|(veth|docker|br-|cni|cali|flannel|virbr).*")
"""Devices that are not a network, or that carry the traffic of another device."""

_PERIOD_NS = 5_000_000_000
"""Period of network measurements if the recording does not state it: that of the JDK's settings."""

_ONE_MEASUREMENT_NS = 100_000_000
"""Events of one measurement are within this time."""

_MAX_BPS = 1e13
"""Maximum rate of a device; a higher one is damage."""

Known = np.ma.MaskedArray[Any, Any]


def process_loads(recording: jfr.Recording, worker_id: str, shift_ms: float) -> Columns:
    """Rows of `loads`: one per measurement of the process' CPU time, none if the recording does not state the number
    of processors.

    `quota_cores` is from the last configuration in the recording.
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


def heaps(recording: jfr.Recording, worker_id: str, shift_ms: float) -> Columns:
    """Rows of `heaps`: one per collection whose heap use the recording has, before and after it."""
    use = recording.heap_use
    pairs = np.flatnonzero(use.collection[1:] == use.collection[:-1])
    # No need to know which is which: what a collection leaves is the smaller of the two.
    used = np.minimum(use.used[pairs], use.used[pairs + 1])
    return {
        "worker_id": objects([worker_id] * len(pairs)),
        "time_ms": use.time_ns[pairs + 1] / 1e6 + shift_ms,
        "used_bytes": np.clip(used, 0, LARGEST),
    }


def _throttled(recording: jfr.Recording, time_ns: Ints) -> Known:
    """Share of the quota periods since the measurement before in which the container used up its CPU quota."""
    totals = recording.throttling
    elapsed, throttled = np.diff(totals.elapsed), np.diff(totals.throttled)
    counted = (elapsed > 0) & (throttled >= 0) & (throttled <= elapsed)  # else the counters were reset
    elapsed, throttled = (np.where(counted, each, 0).astype(np.float64) for each in (elapsed, throttled))
    used, periods = (_between(time_ns, totals.time_ns[:-1], totals.time_ns[1:], each) for each in (throttled, elapsed))
    return np.ma.MaskedArray(safe_divide(used, periods), ~(periods > 0))


def _carried(recording: jfr.Recording, time_ns: Ints) -> tuple[Known, Known]:
    """Bytes/s that the machine's network devices received and sent; a device without traffic has no event."""
    load, lasting_ns = recording.network_load, np.diff(time_ns, prepend=time_ns[:1])
    begins = np.diff(load.time_ns, prepend=np.iinfo(np.int64).min // 2) > _ONE_MEASUREMENT_NS
    look, until_ns = np.cumsum(begins) - 1, load.time_ns[begins]
    period_ns = parse_period_ns(recording.settings.get(("jdk.NetworkUtilization", "period"), "")) or _PERIOD_NS
    since_ns = np.maximum(until_ns - period_ns, np.concatenate([until_ns[:1] - period_ns, until_ns[:-1]]))
    known = np.zeros(len(time_ns), dtype=np.bool_)
    if len(until_ns):  # unknown before the first and after the last measurement, and at the first of CPU time
        within = (time_ns - lasting_ns >= since_ns[0] - _ONE_MEASUREMENT_NS) & (time_ns <= until_ns[-1] + period_ns)
        known = within & (lasting_ns > 0)
    is_network = np.array([_NOT_NETWORK.fullmatch(name) is None for name in recording.devices], dtype=np.bool_)
    found = []
    for bps in (load.received_bps, load.sent_bps):
        counts = is_network[load.device] & (bps >= 0) & (bps <= _MAX_BPS)
        rate = np.bincount(look[counts], bps[counts] / 8, len(until_ns))
        carried = _between(time_ns, since_ns, until_ns, rate * (until_ns - since_ns) / 1e9)
        per_s = safe_divide(carried, lasting_ns / 1e9)
        found.append(np.ma.MaskedArray(per_s, ~known))
    return found[0], found[1]


def _between(time_ns: Ints, since_ns: Ints, until_ns: Ints, amount: Floats) -> Floats:
    """The amount between each moment and the one before; amounts are spread evenly over their intervals."""
    if not len(amount) or not len(time_ns):
        return np.zeros(len(time_ns))
    sums = np.cumsum(amount)
    moments = np.stack([since_ns, until_ns], axis=1).reshape(-1)
    at = np.interp(time_ns, moments, np.stack([sums - amount, sums], axis=1).reshape(-1))
    found: Floats = np.diff(at, prepend=at[:1])
    return found
