"""Asynchronous workers with parameter servers: the step time in steady state.

Each worker fetches variables, computes, sends gradients, and starts its next step without waiting for the others.  So
the step time depends on which workers meet at a server's link.  A trace has a few steps, often the first ones, in which
all workers fetch at once and then all send at once, while one direction of the link is idle.  Later they drift apart:
some fetch while others send, and steps are shorter.  Some runs stay in step (docs/training.md).

Two workers that are apart never meet.  More cannot avoid it, as a link has two directions.  If the link serves them in
turn, it is never idle; if it shares its rate, they form two groups, one of which fetches while the other sends.  The
estimate is the mean of both; no recorded step decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from crystalperf.indexes.frozen import frozen
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.scenario import SPEED, Scenario
from crystalperf.query.frameworks import Steady
from crystalperf.query.frameworks.ml.training.assumptions import SendingCost, StepsReachSteadyState
from crystalperf.query.simulate.transfers import PAYLOAD

SENDING_MS_PER_MB = 1.35
SENDING_MOST = 1.3
"""CPU that either side of gRPC needs for 10⁶ bytes, on a whole core, and the factor by which other machines may differ
either way: TensorFlow 2.21, base runs of the lab's sweep on two machines.  Processes used 27 and 16 ms a step for
8.6 MB, of which operators took 10 and 5."""

_KEYS = (
    "fetched_bytes",
    "sent_bytes",
    "busiest_share",
    "computing_ms",
    "else_ms",
    "out_bytes_per_ms",
    "in_bytes_per_ms",
)


@frozen
class Demand:
    """The demand of one worker's step.

    `busiest_share` of its bytes go over the link of the server with the most; of the time that no transfer covers,
    `computing_ms` scales with the CPU and `else_ms` does not.  `out_bytes_per_ms` and `in_bytes_per_ms` are the
    capacities of a server's link.
    """

    fetched_bytes: float
    sent_bytes: float
    busiest_share: float
    computing_ms: float
    else_ms: float
    out_bytes_per_ms: float
    in_bytes_per_ms: float

    @property
    def properties(self) -> dict[str, str]:
        """The demand as properties of a run."""
        return {key: f"{getattr(self, key):.6g}" for key in _KEYS}


def demand_of(properties: Mapping[str, str]) -> Demand | None:
    """The demand of a run, from its properties."""
    return Demand(*(float(properties[key]) for key in _KEYS)) if all(key in properties for key in _KEYS) else None


def union_ms(spans: Iterable[tuple[float, float]]) -> float:
    """The length of the union of spans, ms."""
    total, until = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(end - max(start, until), 0.0)
        until = max(until, end)
    return total


@frozen
class Step:
    """The expected step time in steady state, ms, and its bounds."""

    mean_ms: float
    """Between workers apart and two groups of workers, of which one fetches while the other sends."""
    apart_ms: float
    """Lower bound: the server's link is never idle while a worker waits for it."""
    together_ms: float
    """Upper bound: all workers fetch at once and send at once, as at the start of a training."""


def steady_step(
    demand: Demand,
    workers: int,
    *,
    link: float = 1.0,
    speed: float = 1.0,
    share: float = 1.0,
    sending: float = SENDING_MS_PER_MB,
) -> Step:
    """The step time in steady state with `workers` workers; `link` and `speed` are ratios of the links and of the CPU.

    `share` is the part of a core that each process had in the recorded run; more than one core sends no faster.
    """
    cpu = min(share, 1.0) * speed * 1e6 / sending
    own = tuple(min(rate * link, cpu) for rate in (demand.out_bytes_per_ms, demand.in_bytes_per_ms))
    computing = demand.computing_ms / speed + demand.else_ms
    flows = (demand.fetched_bytes, demand.sent_bytes)
    capacity = {
        "out": demand.out_bytes_per_ms * link / demand.busiest_share,
        "in": demand.in_bytes_per_ms * link / demand.busiest_share,
        "serving": cpu / demand.busiest_share,
    }
    taken = [amount / rate for amount, rate in zip(flows, own, strict=True)]
    alone = sum(taken) + computing
    contended = (flows[0] / capacity["out"], flows[1] / capacity["in"], sum(flows) / capacity["serving"])
    apart = max(alone, workers * max(contended))
    half = (workers + 1) // 2

    def shared(fetching_at_once: int) -> float:
        """The step if that many workers fetch at once, and send at once, while the others do the opposite."""
        rates = (min(capacity[way] / fetching_at_once, capacity["serving"] / workers) for way in ("out", "in"))
        return computing + sum(max(took, each / rate) for took, each, rate in zip(taken, flows, rates, strict=True))

    together = max(shared(workers), apart)
    return Step((apart + min(max(shared(half), apart), together)) / 2, apart, together)


def steady(execution: Execution, scenario: Scenario) -> Steady | None:
    """The step time in steady state, as recorded and in the scenario.

    None without parameter servers, or if the scenario changes something that these flows do not model.
    """
    demand = demand_of(execution.properties)
    if demand is None or any(
        ratio != 1 and key not in ("network", SPEED, "workers") for key, ratio in scenario.ratios.items()
    ):
        return None
    workers, times = int(execution.properties.get("processes", "1")), scenario.ratio("workers")
    if workers * max(times, 1.0) < 2:
        return None
    if stated := execution.recorded.get("network"):
        rate = stated * PAYLOAD["net"] / 1e3
        demand = replace(demand, out_bytes_per_ms=rate, in_bytes_per_ms=rate)
    share = execution.recorded.get(SPEED) or 1.0
    before = steady_step(demand, workers, share=share).mean_ms
    link, speed = scenario.ratio("network"), scenario.ratio(SPEED)
    after, quick, slow = (
        steady_step(
            demand, round(workers * times), link=link, speed=speed, share=share, sending=SENDING_MS_PER_MB * each
        )
        for each in (1.0, 1 / SENDING_MOST, SENDING_MOST)
    )
    recorded = float(execution.properties.get("step_ms", before))
    assumed = (
        StepsReachSteadyState(before, recorded, slow.together_ms, quick.apart_ms),
        SendingCost(SENDING_MS_PER_MB / SENDING_MOST, SENDING_MS_PER_MB * SENDING_MOST, share),
    )
    return Steady(before, after.mean_ms, (quick.apart_ms, slow.together_ms), assumed)
