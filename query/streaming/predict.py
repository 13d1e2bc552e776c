"""What a changed world would make of a flow: the time of a record, the highest rate, and what limits it.

Time at a station    its own busy time, and that of the records before it in its buffer: (b + 1) / 2 in the mean;
                     what it is held for until something outside has answered, which stays as it was
Time of a hop        filling until full or due (query.execution.stream.filling_ms), the queue before the station, the
                     network
Queue                Kingman's formula: ρ / (1 − ρ) / 2 of a buffer's time, as buffers come at random and are alike;
                     likewise for the worker's CPU (query.execution.stream.cpu_wait_ms)

Kingman's formula holds for any stream of arrivals, needs only utilisation, and is exact in heavy traffic, where queues
matter.  Its variability is that of random arrivals (1) and of equal buffers (0), for a queue is fed by several
channels that know nothing of each other.  More of it is in `queued` where the run shows it.

A flow is sustained up to the rate at which the first of these is busy all the time: the busiest lane of a station, the
CPU of a worker, a worker's network.  Beyond it records wait longer and longer, so there is no latency to tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from crystalperf.indexes.resources import CPU, NET
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.scenario import World, units_of
from crystalperf.query.execution.stream import FULL, FULLEST, Flow, Hop, Leg, Place, Station, legs
from crystalperf.query.predict.interval import MOST_APART
from crystalperf.query.results.answers import FlowChange, GroupPrediction, Prediction
from crystalperf.query.results.assumptions import (
    Assumption,
    BufferTimeout,
    CrossingCpuKept,
    NetworkFree,
    OneKey,
    OutsideLatencyKept,
    RecordsAlike,
    RestKept,
    SampledCpuScales,
    SlotsUnused,
    SpreadKept,
    TasksEvenOverWorkers,
)
from crystalperf.query.results.refusals import (
    AtLimit,
    BufferTimeUnknown,
    BusyTimeUnknown,
    LimitNotMeasured,
    NotModelledForStreams,
    RateBeyondMeasured,
    RateNearLimit,
    RateNotSustained,
    RateUnknown,
    Refusal,
    SpreadOutOfRange,
)

Z90 = 1.6449

RHO_SD = 0.15
"""Relative deviation of a measured utilisation from that of another run at the same rate, far from the limit: five
bases of one job within hours, on one machine, used 0.165 to 0.245 cores by the kernel (the lab's `ads`)."""

REPETITION_SD = 0.03
"""Of what a run at its limit takes, and of a latency without its queues."""

DISTANCE_SD = 0.2
"""Of a highest rate for each doubling that lies between it and the recorded one: records come in larger buffers then,
and threads wake up less often for each, so that each takes less.  Judged by three runs of one job of the lab at a
fortieth and a fifth of what it could do, after these had been seen (docs/flink.md), so nothing tests it yet."""

FARTHEST = 2.0
"""A highest rate that is so many times the recorded one is told as what is sustained at least."""

MODEL_SD = 0.10
"""Of the model itself, as for runs with an end (query.predict.interval)."""

MOST_LANES_RATIO = 16
"""Lanes over recorded ones, or the reverse, beyond which nothing recorded tells how records would be spread."""

UNSEEN_SHARE = 0.2
"""Share of a flow's busy time that may be of unknown cause where a resource's speed is asked about."""

DUE_SD = 0.3
"""Of the time in buffers of which nothing tells when they are due: 0.6 times what is taken or 1.6 times, at 90 %.  Few
jobs change it, and of those that do most state it where it is collected; no run has judged this."""

FULL_CPU = 0.9
"""A worker whose process used this share of its cores had none to spare; likewise the time of a station's lane."""

FULL_NET = 0.8
"""The same of a network, of which headers take some."""

RESTING = 0.05
"""Share of busy time, from which on it is worth a word that a station waits for no resource."""

SKEWED = 1.3
"""A lane with this many times the mean has a key of its own, which more lanes do not divide."""


@dataclass(frozen=True)
class Limit:
    """What is busy all the time first: at `rate_per_s`; `id` is a station's or a worker's, `resource` what of it."""

    rate_per_s: float
    id: str
    kind: str
    resource: str


def highest(flow: Flow, net_bytes_per_s: float | None = None) -> Limit:
    """The highest rate that is sustained, and by what that is limited."""
    rate = flow.rate_per_s
    found = [
        Limit(rate * max(1 - each.waking, 0.0) / (each.busiest - each.waking), each.id, "station", "")
        for each in flow.stations
        if each.busiest > each.waking
    ]
    found += [
        Limit(
            rate * max(each.most_cores - each.fixed_cores - each.due_cores, 0.0) / each.growing_cores,
            each.id,
            "worker",
            CPU,
        )
        for each in flow.places
        if each.growing_cores > 0 and math.isfinite(each.most_cores)
    ]
    if net_bytes_per_s is not None and flow.places:
        crossing = sum(each.bytes_per_s * each.remote for each in flow.hops) / len(flow.places)
        if crossing > 0:
            found.append(Limit(rate * net_bytes_per_s / crossing, flow.places[0].id, "worker", NET))
    return min(found, key=lambda each: each.rate_per_s, default=Limit(math.inf, "", "", ""))


def reached(flow: Flow, net_bytes_per_s: float | None = None) -> Limit:
    """What holds up a flow that is at its limit: a station or a worker, where one of them has no time left; else `hop`,
    SOURCE>TARGET: who gives is held up most, and who takes has time left, so it is what lies between.
    """
    rate, most = flow.rate_per_s, highest(flow, net_bytes_per_s)
    busiest = max(flow.stations, key=lambda each: each.busiest)
    if busiest.busiest >= FULL:
        return Limit(rate, busiest.id, "station", "")
    full = [each for each in flow.places if each.cpu_cores >= FULL_CPU * each.most_cores]
    if full:
        return Limit(rate, max(full, key=lambda each: each.cpu_cores / each.most_cores).id, "worker", CPU)
    if most.resource == NET and rate >= FULL_NET * most.rate_per_s:
        return replace(most, rate_per_s=rate)
    if busiest.busiest >= FULL_CPU or not flow.hops:
        return Limit(rate, busiest.id, "station", "")
    hop = max(flow.hops, key=lambda each: flow.station(each.source).blocked)
    return Limit(rate, f"{hop.source}>{hop.target}", "hop", "")


def main_resource(station: Station, names: tuple[str, ...]) -> str:
    """What most of a station's busy time is on; empty where that is not known, or is nothing."""
    found = int(np.argmax(station.shares))
    return names[found] if found < len(names) else ""


# A changed world ----------------------------------------------------------------------------------------------------


def changed(flow: Flow, execution: Execution, world: World) -> tuple[Flow, list[Assumption]]:
    """The flow in a changed world, as a flow that could be measured there, and what that assumes."""
    names, assumed = execution.names, list[Assumption]()
    rate = world.ratio("rate")
    lanes = {each.id: units_of(world, each.id, each.name) for each in flow.stations}
    faster = {each.name: world.ratio(each.setting) for each in execution.resources}
    stations = [_changed(each, rate, lanes[each.id], faster, names) for each in flow.stations]
    recorded = {each.id: each.lanes for each in flow.stations}
    if any(ratio != 1 for ratio in lanes.values()):
        assumed.append(SpreadKept())
        if any(each.keyed and each.busiest > SKEWED * each.busy for each in flow.stations if lanes[each.id] != 1):
            assumed.append(OneKey())
    count = {each.id: each.lanes for each in stations}
    hops = []
    for each in flow.hops:
        were, are = ((ends[each.source], ends[each.target]) for ends in (recorded, count))
        pairs = [gives * takes if each.all_to_all else max(gives, takes) for gives, takes in (were, are)]
        hops.append(_spread(each, rate, max(round(each.channels * pairs[1] / pairs[0]), 1)))
    workers, cpu = world.ratio("workers"), faster[CPU]
    places = flow.places
    # Fewer lanes than workers use so many workers only.
    used = min(max(round(len(places) * workers), 1), max(count.values()))
    if used != len(places) and places and max(recorded.values()) >= len(places):
        farther = [replace(each, remote=_crossing(each, len(places), used)) for each in flow.hops]
        places = _spread_out(places, used, _times_as_much(flow.hops, farther))
        hops = [replace(each, remote=other.remote) for each, other in zip(hops, farther, strict=True)]
        if farther != list(flow.hops) and not _tells_crossing(flow):
            assumed.append(CrossingCpuKept())
    places = tuple(
        replace(
            each,
            cpu_cores=(each.fixed_cores + each.due_cores + each.growing_cores * rate) / cpu,
            fixed_cores=each.fixed_cores / cpu,
            due_cores=each.due_cores / cpu,
            crossing_cores=each.crossing_cores * rate / cpu,
            crossing_due_cores=each.crossing_due_cores / cpu,
        )
        for each in places
    )
    assumed += _kept(flow, world)
    return replace(flow, stations=tuple(stations), hops=tuple(hops), places=places, markers_ms=None), assumed


def _kept(flow: Flow, world: World) -> Iterator[Assumption]:
    """What stays as it was in a changed world."""
    if world.ratio("cores") != 1:
        yield SlotsUnused()
    if world.ratio("workers") != 1:
        yield TasksEvenOverWorkers()
    if world.ratio("rate") != 1:
        yield RecordsAlike()
    if world.ratio("cpu_speed") != 1:
        yield SampledCpuScales()
    if held := [each.name for each in flow.stations if each.held_ms > 0]:
        yield OutsideLatencyKept(tuple(held))
    if resting := [each.name for each in flow.stations if each.resting > RESTING]:
        yield RestKept(tuple(resting))
    if due := [each.due_ms for each in flow.hops if each.is_due_assumed]:
        yield BufferTimeout(float(max(due)))


def _changed(
    station: Station, rate: float, lanes: float, faster: Mapping[str, float], names: tuple[str, ...]
) -> Station:
    speed = np.array([*(faster.get(name, 1.0) for name in names), 1.0])
    shares = station.shares / speed
    count = max(round(station.lanes * lanes), 1)
    slower = float(shares.sum())
    waking = station.waking * slower * station.lanes / count
    mean = waking + (station.busy - station.waking) * rate * slower * station.lanes / count
    if station.keyed and station.busiest > SKEWED * station.busy:
        # What a lane has more than the mean is one key's, less that key's own part of the mean.
        one_key = (station.busiest - station.busy) * rate * slower / (1 - 1 / station.lanes)
        busiest = mean + one_key * (1 - 1 / count)
    else:
        busiest = mean * (station.busiest / station.busy if station.busy > 0 else 1.0)
    return replace(
        station,
        lanes=count,
        records_per_s=station.records_per_s * rate,
        busy=mean,
        busiest=busiest,
        waking=waking,
        shares=shares / slower if slower > 0 else station.shares,
        resting=station.resting / slower if slower > 0 else station.resting,
    )


def _spread_out(places: tuple[Place, ...], count: int, crossing: tuple[float, float]) -> tuple[Place, ...]:
    """So many workers like these, each with an equal part of what records take of all.

    CPU time for what crosses the network is as much as crosses: `crossing` says how many times as much as it was, of
    bytes and of buffers that are due.
    """
    far = crossing[0] * sum(each.crossing_cores for each in places) / count
    far_due = crossing[1] * sum(each.crossing_due_cores for each in places) / count
    growing = sum(each.growing_cores - each.crossing_cores for each in places) / count + far
    due = sum(each.due_cores - each.crossing_due_cores for each in places) / count + far_due
    return tuple(
        replace(
            each,
            cpu_cores=each.fixed_cores + due + growing,
            due_cores=due,
            crossing_cores=far,
            crossing_due_cores=far_due,
        )
        for each in (places[number % len(places)] for number in range(count))
    )


def _tells_crossing(flow: Flow) -> bool:
    """Whether something crossed the network, and it is known what CPU time that took."""
    return any(each.remote > 0 for each in flow.hops) and any(each.crossing_cores > 0 for each in flow.places)


def _times_as_much(were: Sequence[Hop], are: Sequence[Hop]) -> tuple[float, float]:
    """How many times as much crosses the network where hops cross it in other shares: of bytes, and of buffers that are
    due; 1 where none did."""

    def times(amount: Callable[[Hop], float]) -> float:
        before, after = (sum(amount(each) * each.remote for each in hops) for hops in (were, are))
        return after / before if before > 0 else 1.0

    return times(lambda each: each.bytes_per_s), times(lambda each: each.due_per_s)


def _crossing(hop: Hop, were: int, are: int) -> float:
    """The share of a hop's bytes that crosses a network when its lanes lie on so many workers, and not on as many as
    they did: where each sends to each, 1 - 1 / n of it on n workers."""
    if min(were, are) <= 1:
        return 1 - 1 / are if hop.all_to_all and are > 1 else 0.0
    return min(hop.remote * (1 - 1 / are) / (1 - 1 / were), 1.0)


def _spread(hop: Hop, rate: float, channels: int) -> Hop:
    """A hop with other channels and another rate: a buffer is due as it was, and full the sooner the more comes.

    A buffer without a record is not sent.
    """
    were, are = _buffers_per_s(hop, 1.0, hop.channels), _buffers_per_s(hop, rate, channels)
    return replace(
        hop,
        channels=channels,
        records_per_s=hop.records_per_s * rate,
        bytes_per_s=hop.bytes_per_s * rate,
        buffers_per_s=hop.buffers_per_s * are / were if were > 0 else 0.0,
        most_due_ms=hop.due_ms,
    )


def _buffers_per_s(hop: Hop, rate: float, channels: int) -> float:
    """Those that are due and those that are full."""
    most = hop.records_per_s * rate if hop.buffers_per_s > 0 else 0.0
    due = min(channels * 1e3 / hop.due_ms, most) if hop.due_ms > 0 else most
    return due + hop.full_per_s * rate


@dataclass(frozen=True)
class _Limits:
    """What bounds the rate of a flow in the run and in a scenario.

    now         what the run is held up by, where it is at its limit
    before      what would limit the recorded flow, at the highest rate that it can take
    after       the same of the changed flow, which can take `most_per_s`
    """

    now: Limit | None
    before: Limit
    after: Limit
    most_per_s: float


def _limits(
    flow: Flow, after_flow: Flow, world: World, net: float | None, net_after: float | None
) -> _Limits | LimitNotMeasured:
    """The limits of a flow before and after a change; a run at its limit shows how much it can take."""
    before, after = highest(flow, net), highest(after_flow, net_after)
    now = reached(flow, net) if flow.at_limit else None
    most = after.rate_per_s
    if now is not None and 0 < before.rate_per_s < math.inf:  # what it took is what it can take
        if now.kind == "hop":
            if most > flow.rate_per_s and world.ratio("rate") >= 1 and set(world.changes) != {"rate"}:
                return _limit_not_measured(flow, now, net)
            if most > flow.rate_per_s:
                most, after = flow.rate_per_s, now
        else:
            most *= flow.rate_per_s / before.rate_per_s
        before = replace(before, rate_per_s=flow.rate_per_s)
    return _Limits(now, before, after, most)


def _flow_change(flow: Flow, after_flow: Flow, limits: _Limits, names: tuple[str, ...]) -> FlowChange:
    """The rates of a flow before and after a change, as an answer has them; None for no limit."""
    most, after, before_per_s = limits.most_per_s, limits.after, limits.before.rate_per_s
    repetition = REPETITION_SD if _same(limits.now, after) else RHO_SD
    return FlowChange(
        recorded_per_s=flow.rate_per_s,
        rate_per_s=after_flow.rate_per_s,
        most_per_s=most if math.isfinite(most) else None,
        recorded_most_per_s=before_per_s if math.isfinite(before_per_s) else None,
        most_per_s_interval=(
            _around(most, repetition, MODEL_SD, _far(most, flow.rate_per_s)) if math.isfinite(most) else None
        ),
        limit=after.id,
        limit_kind=after.kind,
        limit_resource=after.resource or _resource_of(after_flow, after, names),
        at_least=is_far(most, flow.rate_per_s),
    )


def predict_flow(execution: Execution, flow: Flow, world: World) -> Prediction:
    """The time of a record and the highest rate in a changed world; refused where the rate is beyond it."""
    names, net = execution.names, world.recorded.get("network")
    runtime_ms = sum(each.time_ms for each in legs(flow, measured=True, names=names, net_bytes_per_s=net))
    base = legs(flow, measured=False, names=names, net_bytes_per_s=net)
    base_ms = sum(each.time_ms for each in base)
    known = Prediction(
        scope=execution.scope.text,
        measure="throughput" if flow.at_limit else "latency",
        setting=world.describe(),
        runtime_ms=runtime_ms,
        replayed_ms=base_ms,
        predicted_ms=None,
        groups=_groups(base, None),
        words=execution.words,
    )
    if refusal := _beyond(flow, execution, world):
        return known.with_refusal(refusal)
    after_flow, assumed = changed(flow, execution, world)
    net_after = None if net is None else net * world.ratio("network")
    limits = _limits(flow, after_flow, world, net, net_after)
    if isinstance(limits, LimitNotMeasured):
        return known.with_refusal(limits)
    change = _flow_change(flow, after_flow, limits, names)
    most, far, rate, after = limits.most_per_s, change.at_least, after_flow.rate_per_s, limits.after
    known = replace(known, flow=change, assumptions=tuple(assumed))
    if flow.at_limit and world.ratio("rate") == 1:
        return known.with_refusal(AtLimit())
    if rate >= FULLEST * most:
        if far:
            return known.with_refusal(RateBeyondMeasured(rate, most, FARTHEST))
        return known.with_refusal(RateNotSustained(rate, most, after.id, after.kind))
    if world.ratio("network") != 1 and net is None:
        assumed.append(NetworkFree())
    path = legs(after_flow, measured=False, names=names, net_bytes_per_s=net_after)
    off = runtime_ms / base_ms if base_ms > 0 and not flow.at_limit else 1.0  # at the limit, queues are full
    predicted = sum(each.time_ms for each in path) * off
    changes_nothing = not world.changes
    sd = _deviation(after_flow, path, runtime_ms, base_ms)
    around = _around(predicted, *sd.values())
    if not changes_nothing and around[1] > MOST_APART * around[0]:
        why = BufferTimeUnknown() if sd["buffers"] > sd["queues"] else RateNearLimit(rate, most, far)
        return known.with_refusal(why, around)
    return replace(
        known,
        predicted_ms=runtime_ms if changes_nothing else predicted,
        interval_ms=None if changes_nothing else around,
        interval_shares={name: value**2 / sum(each**2 for each in sd.values()) for name, value in sd.items()},
        groups=_groups(base, path),
        assumptions=tuple(assumed),
    )


def _same(now: Limit | None, after: Limit) -> bool:
    """Whether a changed flow is held up by what holds it up now, of which the run shows how much that takes."""
    return now is not None and (now.id, now.kind, now.resource) == (after.id, after.kind, after.resource)


def _limit_not_measured(flow: Flow, limit: Limit, net_bytes_per_s: float | None) -> LimitNotMeasured:
    """Why a flow has no answer whose limit lies between two stations, and is no full network."""
    source, target = (flow.station(each) for each in limit.id.split(">"))
    return LimitNotMeasured(source.name, target.name, float(target.busiest), net_bytes_per_s is not None)


def _resource_of(flow: Flow, limit: Limit, names: tuple[str, ...]) -> str:
    return main_resource(flow.station(limit.id), names) if limit.kind == "station" else ""


def _beyond(flow: Flow, execution: Execution, world: World) -> Refusal | None:
    """Why a question cannot be asked of a flow, or None."""
    for key in world.changes:
        if key in ("memory", "input", "skew", "scheduler") or key.startswith("operator."):
            return NotModelledForStreams(world.changes[key].word)
    if flow.rate_per_s <= 0:
        return RateUnknown()
    for each in flow.stations:
        ratio = units_of(world, each.id, each.name)
        if max(ratio, 1 / ratio) > MOST_LANES_RATIO:
            return SpreadOutOfRange(each.name, ratio, MOST_LANES_RATIO)
    whole = sum(each.busy * each.lanes for each in flow.stations)
    unseen = sum(each.busy * each.lanes * each.unseen for each in flow.stations)
    asked = [each.device for each in execution.resources if world.ratio(each.setting) != 1]
    if asked and unseen > UNSEEN_SHARE * whole:
        return BusyTimeUnknown(float(unseen / whole), asked[0])
    return None


def _deviation(flow: Flow, path: list[Leg], runtime_ms: float, base_ms: float) -> dict[str, float]:
    """Standard deviations of log(actual / predicted) by what they come from.

    Queues grow as 1 / (1 − ρ), so an error of the utilisation is one of the queue ρ / (1 − ρ) times as large.
    """
    whole = sum(each.time_ms for each in path) or 1.0
    used = [each.cpu_cores / each.most_cores for each in flow.places if each.most_cores > 0]
    queue = 0.0
    assumed = {f"{each.source}>{each.target}" for each in flow.hops if each.is_due_assumed}
    for each in path:
        if each.queue_ms > 0:
            station = flow.station(each.id.partition(">")[2])
            rho = min(max(station.busiest, *used, 0.0), FULLEST)
            queue += each.queue_ms * min(RHO_SD * rho / (1 - rho), 1.0)
    return {
        "replay": abs(math.log(base_ms / runtime_ms)) / 2 if base_ms > 0 and runtime_ms > 0 else 0.0,
        "repetition": REPETITION_SD,
        "queues": queue / whole,
        "buffers": DUE_SD * sum(each.filling_ms for each in path if each.id in assumed) / whole,
        "model": MODEL_SD,
    }


def is_far(most_per_s: float, recorded_per_s: float) -> bool:
    """Whether a highest rate lies so far from the recorded one that it is one at least."""
    return most_per_s > FARTHEST * recorded_per_s


def _far(rate: float, recorded: float) -> float:
    """The deviation that comes from the distance of a rate to the recorded one."""
    return DISTANCE_SD * abs(math.log2(max(rate / recorded, 1.0))) if rate > 0 and recorded > 0 else 0.0


def _around(value: float, *deviations: float) -> tuple[float, float]:
    """The 90 % range around a value whose logarithm has these deviations."""
    factor = math.exp(Z90 * math.sqrt(sum(each**2 for each in deviations)))
    return value / factor, value * factor


def _groups(before: list[Leg], after: list[Leg] | None) -> tuple[GroupPrediction, ...]:
    then = {} if after is None else {each.id: each.time_ms for each in after}
    return tuple(GroupPrediction(each.id, each.name, each.time_ms, then.get(each.id)) for each in before)
