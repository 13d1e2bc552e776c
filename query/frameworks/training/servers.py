"""Workers that train beside each other with parameter servers: what a step takes once they have settled.

Each worker fetches variables, computes, sends gradients, and begins anew without waiting for the others.  So how long
a step takes depends on who meets whom at a server's link.  Traced are a few steps, often the first ones, in which all
workers fetch at once and then all send at once, while one direction of the link stands idle.  What began earlier
finishes earlier, so workers move apart, until while some fetch others send.  Recorded steps are thus longer than those
after them, and by more than tracing costs.

Here flows share a server's link and CPU (max-min fairly), beside their worker's own link and CPU, for as many rounds
as it takes to settle, from several beginnings.  The two directions of a link are not quite apart: what acknowledges a
flow waits behind the data that go the other way, so the direction with fewer flows is not filled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean

from query.frameworks import Steady
from query.model.execution import Execution
from query.model.world import SPEED, World
from query.whatif.transfers import PAYLOAD

SENDING_MS_PER_MB = 1.75
"""CPU that either side of gRPC needs for 10⁶ bytes, on a whole core: TensorFlow 2.21, bases of the lab's sweep, whose
processes used 26 to 29 ms a step, of which operators took 10, for 8.6 MB."""

OLDER = 1.1
"""How much more of a link a flow gets than one that began after it: in the lab's base, 47 ms short of being apart
became 36 within four flows of two workers."""

OPPOSED = 0.38
"""What the direction with fewer flows loses of what it would have, as a share of how far it is outnumbered: plain
sockets on the lab's cables of 100 to 400 Mbit/s, where one flow against two lost 19 % of the cable in the mean (3 to 36
% in eight trials), and one against one none."""

_KEYS = (
    "fetched_bytes",
    "sent_bytes",
    "busiest_share",
    "computing_ms",
    "else_ms",
    "out_bytes_per_ms",
    "in_bytes_per_ms",
)
_ROUNDS, _COUNTED, _BEGINNINGS = 26, 6, 8
_MOST_WORKERS = 32
"""Of more, the server's link is taken to be never idle."""
_GOLDEN = 0.6180339887


@dataclass(frozen=True)
class Demand:
    """What one step of a worker asks for.

    `busiest_share` of its bytes go over the link of the server that has most; of what no transfer covers,
    `computing_ms` scales with the CPU and `else_ms` does not.  `out_bytes_per_ms` and `in_bytes_per_ms` are what a
    server's link carries either way.
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
        """As properties of a run."""
        return {key: f"{getattr(self, key):.6g}" for key in _KEYS}


def demand_of(properties: Mapping[str, str]) -> Demand | None:
    """The demand that a run's properties tell."""
    return Demand(*(float(properties[key]) for key in _KEYS)) if all(key in properties for key in _KEYS) else None


def union_ms(spans: Iterable[tuple[float, float]]) -> float:
    """How long at least one of the spans lasts."""
    total, until = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(end - max(start, until), 0.0)
        until = max(until, end)
    return total


@dataclass(frozen=True)
class Step:
    """The mean step of workers that have settled, ms, and what it may lie between however they settle."""

    mean_ms: float
    apart_ms: float
    """With the server's link never idle while anybody waits for it."""
    together_ms: float
    """With all fetching at once and all sending at once, as they begin."""


def settled(demand: Demand, workers: int, *, link: float = 1.0, speed: float = 1.0, share: float = 1.0) -> Step:
    """The step of so many workers once they have settled, under so many times the links and the CPU.

    `share` is the part of a core that each process had in the recorded run; with more than one it sends no faster.
    """
    cpu = min(share, 1.0) * speed * 1e6 / SENDING_MS_PER_MB
    own = tuple(min(rate * link, cpu) for rate in (demand.out_bytes_per_ms, demand.in_bytes_per_ms))
    computing = demand.computing_ms / speed + demand.else_ms
    flows = (demand.fetched_bytes, demand.sent_bytes)
    room = {
        "out": demand.out_bytes_per_ms * link / demand.busiest_share,
        "in": demand.in_bytes_per_ms * link / demand.busiest_share,
        "serving": cpu / demand.busiest_share,
    }
    taken = [amount / rate for amount, rate in zip(flows, own, strict=True)]
    alone = sum(taken) + computing
    crowded = (flows[0] / room["out"], flows[1] / room["in"], sum(flows) / room["serving"])
    apart = max(alone, workers * max(crowded))
    shared = [min(room[way], room["serving"]) / workers for way in ("out", "in")]
    together = computing + sum(max(took, each / rate) for took, each, rate in zip(taken, flows, shared, strict=True))
    if not 1 < workers <= _MOST_WORKERS:
        return Step(apart, apart, max(apart, together))
    phases = (flows[0], computing, flows[1])
    found = mean(_settled(phases, workers, alone, begin / _BEGINNINGS, own, room) for begin in range(_BEGINNINGS))
    return Step(found, min(apart, found), max(together, found))


def _settled(
    phases: Sequence[float],
    workers: int,
    alone: float,
    begin: float,
    own: Sequence[float],
    shared: Mapping[str, float],
) -> float:
    """The mean step of the last rounds, from one beginning."""
    phase = [-1] * workers
    left = [alone * ((begin + number * _GOLDEN) % 1.0) for number in range(workers)]
    since, stepped = [0.0] * workers, [0.0] * workers
    steps: list[list[float]] = [[] for _ in range(workers)]
    now = 0.0
    while min(map(len, steps)) < _ROUNDS:
        rates = _rates(phase, since, own, shared)
        length = min(amount / rate for amount, rate in zip(left, rates, strict=True))
        now += length
        for number, rate in enumerate(rates):
            left[number] -= rate * length
            if left[number] > 1e-9 * max(rate, 1.0):
                continue
            if phase[number] == len(phases) - 1:
                steps[number].append(now - stepped[number])
            phase[number] = (phase[number] + 1) % len(phases)
            if phase[number] == 0:
                stepped[number] = now
            left[number], since[number] = phases[phase[number]], now
    return mean(mean(each[_ROUNDS - _COUNTED :]) for each in steps)


def _rates(
    phase: Sequence[int], since: Sequence[float], own: Sequence[float], shared: Mapping[str, float]
) -> list[float]:
    """Bytes (of who computes, milliseconds) per millisecond of each worker, max-min fair with weights by age."""
    rates = [1.0] * len(phase)
    uses: dict[int, tuple[str, ...]] = {}
    weight: dict[int, float] = {}
    room = dict(shared)
    going = {name: phase.count(way) for way, name in ((0, "out"), (2, "in"))}
    if all(going.values()):
        for name, number in going.items():
            room[name] *= 1 - OPPOSED * (1 - number / max(going.values()))
    for way, name, most in ((0, "out", own[0]), (2, "in", own[1])):
        flows = sorted((number for number, each in enumerate(phase) if each == way), key=lambda number: since[number])
        for rank, number in enumerate(flows):
            uses[number] = (name, "serving", f"own {number}")
            weight[number] = OLDER ** (len(flows) - 1 - rank)
            room[f"own {number}"] = most
    while uses:
        asked = {name: sum(weight[each] for each, used in uses.items() if name in used) for name in room}
        level, tight = min((room[name] / total, name) for name, total in asked.items() if total > 0)
        for number in [each for each, used in uses.items() if tight in used]:
            rates[number] = max(level * weight[number], 1e-6 * min(own))
            for name in uses.pop(number):
                room[name] = max(room[name] - rates[number], 0.0)
    return rates


def steady(execution: Execution, world: World) -> Steady | None:
    """A step once workers have settled, as recorded and in the changed world.

    None where that is no question of parameter servers, or the world changes what these flows do not tell.
    """
    demand = demand_of(execution.properties)
    if demand is None or any(
        ratio != 1 and key not in ("network", SPEED, "workers") for key, ratio in world.ratios.items()
    ):
        return None
    workers, times = int(execution.properties.get("processes", "1")), world.ratio("workers")
    if workers * max(times, 1.0) < 2:
        return None
    if stated := execution.recorded.get("network"):
        rate = stated * PAYLOAD["net"] / 1e3
        demand = replace(demand, out_bytes_per_ms=rate, in_bytes_per_ms=rate)
    share = execution.recorded.get(SPEED) or 1.0
    before = settled(demand, workers, share=share).mean_ms
    link, speed = world.ratio("network"), world.ratio(SPEED)
    after = settled(demand, round(workers * times), link=link, speed=speed, share=share)
    recorded = float(execution.properties.get("step_ms", before))
    had = "are taken to have had a core each" if share == 1 else f"had {share:g} of a core each"
    said = (
        f"steps of workers that have settled, while some fetch others send: {before:.0f} ms as recorded, where the"
        f" traced ones took {recorded:.0f} ms; workers that stay in step with each other would take"
        f" {after.together_ms:.0f} ms, and the range reaches there",
        f"sending and receiving take {SENDING_MS_PER_MB:g} ms of CPU for each MB, on a server too; processes {had}",
    )
    return Steady(before, after.mean_ms, (after.apart_ms, after.together_ms), said)
