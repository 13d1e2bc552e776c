"""Paleo: a step of a training computes, and then sends; the two do not overlap.

    T = operations / (speed of the device) + bytes / bandwidth

Processes exchange their gradients over a ring, which sends 2 (n − 1) / n of the bytes over each link.  Computing is the
recorded time without sending, instead of operations over a nominal speed: this favours Paleo.
"""

from __future__ import annotations

from crystalperf.plugin import BandwidthNotStated, ExchangeUnknown, Execution, Predictor, RefusedError, Scenario

_SPEEDS = ("cpu_speed", "device.arithmetic")


def ring_ms(sent_bytes: float, processes: float, bytes_per_s: float) -> float:
    """The time in which a ring of processes sums their bytes, each process this many, ms."""
    return 1e3 * sent_bytes * 2 * (processes - 1) / processes / bytes_per_s


def step_ms(recorded_ms: float, sending_ms: float, speed: float, sending_then_ms: float) -> float:
    """The time with a factor on the device's speed and another time for sending, ms."""
    return max(recorded_ms - sending_ms, 0.0) / speed + sending_then_ms


def _predict(execution: Execution, scenario: Scenario) -> float:
    known, bytes_per_s = execution.exchange, execution.recorded.get("network")
    if known is None:
        raise RefusedError(ExchangeUnknown("paleo"))
    if not bytes_per_s:
        raise RefusedError(BandwidthNotStated("paleo", "network"))
    speed = 1.0
    for each in _SPEEDS:
        speed *= scenario.ratio(each)
    before_ms = ring_ms(known.sent_bytes, known.processes, bytes_per_s)
    processes = known.processes * scenario.ratio("workers")
    after_ms = ring_ms(known.sent_bytes, processes, bytes_per_s * scenario.ratio("network"))
    return step_ms(execution.runtime_ms, before_ms, speed, after_ms)


PALEO = Predictor(
    _predict,
    source="Qi et al., Paleo, ICLR 2017, sections 3 and 4",
    runs=frozenset(("training",)),
    settings=lambda _run: (*_SPEEDS, "network", "workers"),
)
