"""Prediction of a stream in a scenario: the latency of a record, the highest rate, and what limits it.

Time at a station    the record's own busy time, and that of records before it in its buffer: (b + 1) / 2 on average;
                     the wait for an answer from outside the stream, which does not change
Time of a hop        filling until full or due (query.execution.stream.filling_ms), the queue before the station, the
                     network
Queue                Kingman's formula: ρ / (1 − ρ) / 2 of a buffer's time, as buffers arrive at random and are alike;
                     the same for the worker's CPU (query.execution.stream.cpu_wait_ms)

Kingman's formula holds for any arrival process, needs only utilisation, and is exact in heavy traffic, where queues
matter.  Its variability is that of random arrivals (1) and of equal buffers (0), because several independent channels
feed a queue.  If the variability of a run is higher, `queued` shows it.

A stream sustains rates up to the point at which the first of these has no time left: the busiest slot of a station, the
CPU of a worker, a worker's network.  Above that rate the queues grow without bound, so there is no latency to predict.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.resources import CPU, NET
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.scenario import Scenario, tasks_of
from crystalperf.query.execution.stream import (
    FULL,
    MAX_UTILIZATION,
    Hop,
    PathSegment,
    Station,
    Stream,
    StreamWorker,
    path_segments,
)
from crystalperf.query.predict.interval import MAX_APART
from crystalperf.query.results.answers import Prediction, StagePrediction, StreamPrediction
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
"""Relative standard deviation of utilisation between runs at the same rate, far from the limit: five baselines of one
job within hours, on one machine, used 0.165 to 0.245 cores by the kernel (the lab's `ads`)."""

REPETITION_SD = 0.03
"""Relative standard deviation of the throughput of a run at its limit, and of a latency without queues."""

DISTANCE_SD = 0.2
"""Relative standard deviation of a highest rate per doubling of the recorded rate: at higher rates records come in
larger buffers, and threads wake up less often per record, so each record costs less.  Tuned on three runs of one lab
job at a fortieth and a fifth of its highest rate, after their results were known (docs/flink.md); not tested on others
yet."""

FARTHEST = 2.0
"""Ratio of a highest rate to the recorded rate, above which the highest rate is reported as a lower bound."""

MODEL_SD = 0.10
"""Relative standard deviation of the model itself, as for runs with an end (query.predict.interval)."""

MAX_SLOTS_RATIO = 16
"""Maximum ratio of slots to recorded slots, or the reverse: beyond it, recorded data do not show the distribution of
records."""

MISSING_SHARE = 0.2
"""Maximum share of a stream's busy time with unknown cause for predictions about a resource's speed."""

DUE_SD = 0.3
"""Relative standard deviation of the time in buffers with an assumed timeout: 0.6 to 1.6 times the assumption, at 90 %.
Few jobs change the timeout, and most of those state it in the collected settings; no run has tested this."""

FULL_CPU = 0.9
"""Share of its cores from which a worker's process is at its CPU limit; the same for the time of a station's slot."""

FULL_NET = 0.8
"""The same for a network, where headers take some of the bandwidth."""

RESTING = 0.05
"""Minimum share of busy time at rest for an assumption to mention it."""

SKEWED = 1.3
"""Ratio of the busiest slot to the mean from which one key dominates the slot; more slots do not split it."""


@frozen
class Limit:
    """The limit of the rate, and the highest rate `rate_per_s`; `id` is a station's or a worker's, `resource` is its
    busy resource."""

    rate_per_s: float
    id: str
    kind: str
    resource: str


def max_throughput(stream: Stream, net_bytes_per_s: float | None = None) -> Limit:
    """The highest sustained rate, and what limits it."""
    rate = stream.rate_per_s
    found = [
        Limit(
            rate * max(1 - each.due_buffer_share, 0.0) / (each.busiest - each.due_buffer_share), each.id, "station", ""
        )
        for each in stream.stations
        if each.busiest > each.due_buffer_share
    ]
    found += [
        Limit(
            rate * max(each.most_cores - each.fixed_cores - each.due_cores, 0.0) / each.growing_cores,
            each.id,
            "worker",
            CPU,
        )
        for each in stream.places
        if each.growing_cores > 0 and math.isfinite(each.most_cores)
    ]
    if net_bytes_per_s is not None and stream.places:
        crossing = sum(each.bytes_per_s * each.remote for each in stream.hops) / len(stream.places)
        if crossing > 0:
            found.append(Limit(rate * net_bytes_per_s / crossing, stream.places[0].id, "worker", NET))
    return min(found, key=lambda each: each.rate_per_s, default=Limit(math.inf, "", "", ""))


def current_limit(stream: Stream, net_bytes_per_s: float | None = None) -> Limit:
    """The limit of a stream that is at its limit: a station or a worker, if one of them has no time left; otherwise a
    `hop`, SOURCE>TARGET: its source is blocked most, and its target has time left, so the connection limits it.
    """
    rate, most = stream.rate_per_s, max_throughput(stream, net_bytes_per_s)
    busiest = max(stream.stations, key=lambda each: each.busiest)
    if busiest.busiest >= FULL:
        return Limit(rate, busiest.id, "station", "")
    full = [each for each in stream.places if each.cpu_cores >= FULL_CPU * each.most_cores]
    if full:
        return Limit(rate, max(full, key=lambda each: each.cpu_cores / each.most_cores).id, "worker", CPU)
    if most.resource == NET and rate >= FULL_NET * most.rate_per_s:
        return replace(most, rate_per_s=rate)
    if busiest.busiest >= FULL_CPU or not stream.hops:
        return Limit(rate, busiest.id, "station", "")
    hop = max(stream.hops, key=lambda each: stream.station(each.source).blocked)
    return Limit(rate, f"{hop.source}>{hop.target}", "hop", "")


def main_resource(station: Station, names: tuple[str, ...]) -> str:
    """The resource with most of a station's busy time; empty if most of it is unknown, or there is none."""
    found = int(np.argmax(station.shares))
    return names[found] if found < len(names) else ""


# Scenarios ----------------------------------------------------------------------------------------------------------


def changed(stream: Stream, execution: Execution, scenario: Scenario) -> tuple[Stream, list[Assumption]]:
    """The stream in a scenario, with the figures that measurements would show there, and the assumptions behind it."""
    names, assumed = execution.names, list[Assumption]()
    rate = scenario.ratio("rate")
    slots = {each.id: tasks_of(scenario, each.id, each.name) for each in stream.stations}
    faster = {each.name: scenario.ratio(each.setting) for each in execution.resources}
    stations = [_changed(each, rate, slots[each.id], faster, names) for each in stream.stations]
    recorded = {each.id: each.slots for each in stream.stations}
    if any(ratio != 1 for ratio in slots.values()):
        assumed.append(SpreadKept())
        if any(each.keyed and each.busiest > SKEWED * each.busy for each in stream.stations if slots[each.id] != 1):
            assumed.append(OneKey())
    count = {each.id: each.slots for each in stations}
    hops = []
    for each in stream.hops:
        were, are = ((ends[each.source], ends[each.target]) for ends in (recorded, count))
        pairs = [gives * takes if each.all_to_all else max(gives, takes) for gives, takes in (were, are)]
        hops.append(_spread(each, rate, max(round(each.channels * pairs[1] / pairs[0]), 1)))
    workers, cpu = scenario.ratio("workers"), faster[CPU]
    places = stream.places
    # If there are fewer slots than workers, only that many workers are used.
    used = min(max(round(len(places) * workers), 1), max(count.values()))
    if used != len(places) and places and max(recorded.values()) >= len(places):
        farther = [replace(each, remote=_remote_share(each, len(places), used)) for each in stream.hops]
        places = _spread_out(places, used, _times_as_much(stream.hops, farther))
        hops = [replace(each, remote=other.remote) for each, other in zip(hops, farther, strict=True)]
        if farther != list(stream.hops) and not _crossing_cpu_known(stream):
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
    assumed += _kept(stream, scenario)
    return replace(stream, stations=tuple(stations), hops=tuple(hops), places=places, probe_latency_ms=None), assumed


def _kept(stream: Stream, scenario: Scenario) -> Iterator[Assumption]:
    """The assumptions about what does not change in a scenario."""
    if scenario.ratio("cores") != 1:
        yield SlotsUnused()
    if scenario.ratio("workers") != 1:
        yield TasksEvenOverWorkers()
    if scenario.ratio("rate") != 1:
        yield RecordsAlike()
    if scenario.ratio("cpu_speed") != 1:
        yield SampledCpuScales()
    if held := [each.name for each in stream.stations if each.external_wait_ms > 0]:
        yield OutsideLatencyKept(tuple(held))
    if sleeping_share := [each.name for each in stream.stations if each.sleeping_share > RESTING]:
        yield RestKept(tuple(sleeping_share))
    if due := [each.due_ms for each in stream.hops if each.is_due_assumed]:
        yield BufferTimeout(float(max(due)))


def _changed(
    station: Station, rate: float, slots: float, faster: Mapping[str, float], names: tuple[str, ...]
) -> Station:
    speed = np.array([*(faster.get(name, 1.0) for name in names), 1.0])
    shares = station.shares / speed
    count = max(round(station.slots * slots), 1)
    slower = float(shares.sum())
    due_buffer_share = station.due_buffer_share * slower * station.slots / count
    mean = due_buffer_share + (station.busy - station.due_buffer_share) * rate * slower * station.slots / count
    if station.keyed and station.busiest > SKEWED * station.busy:
        # One dominant key causes the excess of a slot over the mean, which includes the key's own part of the mean.
        one_key = (station.busiest - station.busy) * rate * slower / (1 - 1 / station.slots)
        busiest = mean + one_key * (1 - 1 / count)
    else:
        busiest = mean * (station.busiest / station.busy if station.busy > 0 else 1.0)
    return replace(
        station,
        slots=count,
        records_per_s=station.records_per_s * rate,
        busy=mean,
        busiest=busiest,
        due_buffer_share=due_buffer_share,
        shares=shares / slower if slower > 0 else station.shares,
        sleeping_share=station.sleeping_share / slower if slower > 0 else station.sleeping_share,
    )


def _spread_out(
    places: tuple[StreamWorker, ...], count: int, crossing: tuple[float, float]
) -> tuple[StreamWorker, ...]:
    """`count` workers like the recorded ones, each with an equal part of the CPU use for records.

    CPU time for network traffic is proportional to the traffic; `crossing` are the factors on it, for bytes and for due
    buffers.
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


def _crossing_cpu_known(stream: Stream) -> bool:
    """Whether anything crossed the network, and the CPU time of that is known."""
    return any(each.remote > 0 for each in stream.hops) and any(each.crossing_cores > 0 for each in stream.places)


def _times_as_much(were: Sequence[Hop], are: Sequence[Hop]) -> tuple[float, float]:
    """The factors on network traffic if hops have other remote shares: for bytes, and for due buffers; 1 if none
    crossed the network before."""

    def times(amount: Callable[[Hop], float]) -> float:
        before, after = (sum(amount(each) * each.remote for each in hops) for hops in (were, are))
        return after / before if before > 0 else 1.0

    return times(lambda each: each.bytes_per_s), times(lambda each: each.due_per_s)


def _remote_share(hop: Hop, were: int, are: int) -> float:
    """The share of a hop's bytes that crosses a network when its slots are on `are` workers instead of `were`: if each
    slot sends to each, it is 1 - 1 / n on n workers."""
    if min(were, are) <= 1:
        return 1 - 1 / are if hop.all_to_all and are > 1 else 0.0
    return min(hop.remote * (1 - 1 / are) / (1 - 1 / were), 1.0)


def _spread(hop: Hop, rate: float, channels: int) -> Hop:
    """A hop with other channels and another rate: the buffer timeout does not change, and buffers fill sooner at a
    higher rate.

    Empty buffers are not sent.
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
    """Due and full buffers per second."""
    most = hop.records_per_s * rate if hop.buffers_per_s > 0 else 0.0
    due = min(channels * 1e3 / hop.due_ms, most) if hop.due_ms > 0 else most
    return due + hop.full_per_s * rate


@frozen
class _Limits:
    """The limits of a stream's rate in the run and in a scenario.

    now         the limit of the recorded stream, if it is at its limit
    before      the limit of the recorded stream at its highest rate
    after       the same for the changed stream, whose highest rate is `max_per_s`
    """

    now: Limit | None
    before: Limit
    after: Limit
    max_per_s: float


def _limits(
    stream: Stream, after_stream: Stream, scenario: Scenario, net: float | None, net_after: float | None
) -> _Limits | LimitNotMeasured:
    """The limits of a stream before and after a change; a run at its limit shows its highest rate."""
    before, after = max_throughput(stream, net), max_throughput(after_stream, net_after)
    now = current_limit(stream, net) if stream.at_limit else None
    most = after.rate_per_s
    if now is not None and 0 < before.rate_per_s < math.inf:  # the recorded rate is its highest rate
        if now.kind == "hop":
            if most > stream.rate_per_s and scenario.ratio("rate") >= 1 and set(scenario.changes) != {"rate"}:
                return _limit_not_measured(stream, now, net)
            if most > stream.rate_per_s:
                most, after = stream.rate_per_s, now
        else:
            most *= stream.rate_per_s / before.rate_per_s
        before = replace(before, rate_per_s=stream.rate_per_s)
    return _Limits(now, before, after, most)


def _stream_prediction(
    stream: Stream, after_stream: Stream, limits: _Limits, names: tuple[str, ...]
) -> StreamPrediction:
    """The rates of a stream before and after a change, for a prediction; None without a limit."""
    most, after, before_per_s = limits.max_per_s, limits.after, limits.before.rate_per_s
    repetition = REPETITION_SD if _same(limits.now, after) else RHO_SD
    return StreamPrediction(
        recorded_per_s=stream.rate_per_s,
        rate_per_s=after_stream.rate_per_s,
        max_per_s=most if math.isfinite(most) else None,
        recorded_max_per_s=before_per_s if math.isfinite(before_per_s) else None,
        max_per_s_interval=(
            _interval(most, repetition, MODEL_SD, _distance_sd(most, stream.rate_per_s))
            if math.isfinite(most)
            else None
        ),
        limit=after.id,
        limit_kind=after.kind,
        limit_resource=after.resource or _resource_of(after_stream, after, names),
        is_lower_bound=is_far(most, stream.rate_per_s),
    )


def predict_stream(execution: Execution, stream: Stream, scenario: Scenario) -> Prediction:
    """The latency of a record and the highest rate in a scenario; refused if the rate is above the highest."""
    names, net = execution.names, scenario.recorded.get("network")
    runtime_ms = sum(each.time_ms for each in path_segments(stream, measured=True, names=names, net_bytes_per_s=net))
    base = path_segments(stream, measured=False, names=names, net_bytes_per_s=net)
    base_ms = sum(each.time_ms for each in base)
    known = Prediction(
        scope=execution.scope.text,
        measure="throughput" if stream.at_limit else "latency",
        setting=scenario.describe(),
        runtime_ms=runtime_ms,
        replayed_ms=base_ms,
        predicted_ms=None,
        stages=_stages(base, None),
        words=execution.words,
    )
    if refusal := _beyond(stream, execution, scenario):
        return known.with_refusal(refusal)
    after_stream, assumed = changed(stream, execution, scenario)
    net_after = None if net is None else net * scenario.ratio("network")
    limits = _limits(stream, after_stream, scenario, net, net_after)
    if isinstance(limits, LimitNotMeasured):
        return known.with_refusal(limits)
    change = _stream_prediction(stream, after_stream, limits, names)
    most, far, rate, after = limits.max_per_s, change.is_lower_bound, after_stream.rate_per_s, limits.after
    known = replace(known, stream=change, assumptions=tuple(assumed))
    if stream.at_limit and scenario.ratio("rate") == 1:
        return known.with_refusal(AtLimit())
    if rate >= MAX_UTILIZATION * most:
        if far:
            return known.with_refusal(RateBeyondMeasured(rate, most, FARTHEST))
        return known.with_refusal(RateNotSustained(rate, most, after.id, after.kind))
    if scenario.ratio("network") != 1 and net is None:
        assumed.append(NetworkFree())
    path = path_segments(after_stream, measured=False, names=names, net_bytes_per_s=net_after)
    off = runtime_ms / base_ms if base_ms > 0 and not stream.at_limit else 1.0  # at the limit, queues are full
    predicted = sum(each.time_ms for each in path) * off
    changes_nothing = not scenario.changes
    sd = _deviation(after_stream, path, runtime_ms, base_ms)
    likely = _interval(predicted, *sd.values())
    if not changes_nothing and likely[1] > MAX_APART * likely[0]:
        why = BufferTimeUnknown() if sd["buffers"] > sd["queues"] else RateNearLimit(rate, most, far)
        return known.with_refusal(why, likely)
    return replace(
        known,
        predicted_ms=runtime_ms if changes_nothing else predicted,
        interval_ms=None if changes_nothing else likely,
        interval_shares={name: value**2 / sum(each**2 for each in sd.values()) for name, value in sd.items()},
        stages=_stages(base, path),
        assumptions=tuple(assumed),
    )


def _same(now: Limit | None, after: Limit) -> bool:
    """Whether a changed stream has the same limit as the run, which shows the highest rate of that limit."""
    return now is not None and (now.id, now.kind, now.resource) == (after.id, after.kind, after.resource)


def _limit_not_measured(stream: Stream, limit: Limit, net_bytes_per_s: float | None) -> LimitNotMeasured:
    """Why a stream cannot be predicted if its limit is between two stations and the network is not full."""
    source, target = (stream.station(each) for each in limit.id.split(">"))
    return LimitNotMeasured(source.name, target.name, float(target.busiest), net_bytes_per_s is not None)


def _resource_of(stream: Stream, limit: Limit, names: tuple[str, ...]) -> str:
    return main_resource(stream.station(limit.id), names) if limit.kind == "station" else ""


def _beyond(stream: Stream, execution: Execution, scenario: Scenario) -> Refusal | None:
    """Why a scenario cannot be predicted for a stream, or None."""
    for key in scenario.changes:
        if key in ("memory", "input", "skew", "scheduler") or key.startswith("operator."):
            return NotModelledForStreams(scenario.changes[key].word)
    if stream.rate_per_s <= 0:
        return RateUnknown()
    for each in stream.stations:
        ratio = tasks_of(scenario, each.id, each.name)
        if max(ratio, 1 / ratio) > MAX_SLOTS_RATIO:
            return SpreadOutOfRange(each.name, ratio, MAX_SLOTS_RATIO)
    whole = sum(each.busy * each.slots for each in stream.stations)
    unmeasured = sum(each.busy * each.slots * each.unmeasured for each in stream.stations)
    devices = [each.device for each in execution.resources if scenario.ratio(each.setting) != 1]
    if devices and unmeasured > MISSING_SHARE * whole:
        return BusyTimeUnknown(float(unmeasured / whole), devices[0])
    return None


def _deviation(stream: Stream, path: list[PathSegment], runtime_ms: float, base_ms: float) -> dict[str, float]:
    """Standard deviations of log(actual / predicted), by source of error.

    Queues grow as 1 / (1 − ρ), so a relative error of the utilisation ρ makes an error of the queue that is ρ / (1 − ρ)
    times as large.
    """
    whole = sum(each.time_ms for each in path) or 1.0
    used = [each.cpu_cores / each.most_cores for each in stream.places if each.most_cores > 0]
    queue = 0.0
    assumed = {f"{each.source}>{each.target}" for each in stream.hops if each.is_due_assumed}
    for each in path:
        if each.queue_ms > 0:
            station = stream.station(each.id.partition(">")[2])
            rho = min(max(station.busiest, *used, 0.0), MAX_UTILIZATION)
            queue += each.queue_ms * min(RHO_SD * rho / (1 - rho), 1.0)
    return {
        "replay": abs(math.log(base_ms / runtime_ms)) / 2 if base_ms > 0 and runtime_ms > 0 else 0.0,
        "repetition": REPETITION_SD,
        "queues": queue / whole,
        "buffers": DUE_SD * sum(each.filling_ms for each in path if each.id in assumed) / whole,
        "model": MODEL_SD,
    }


def is_far(max_per_s: float, recorded_per_s: float) -> bool:
    """Whether a highest rate is so far above the recorded rate that it is only a lower bound."""
    return max_per_s > FARTHEST * recorded_per_s


def _distance_sd(rate: float, recorded: float) -> float:
    """The standard deviation of a rate because of its distance to the recorded rate."""
    return DISTANCE_SD * abs(math.log2(max(rate / recorded, 1.0))) if rate > 0 and recorded > 0 else 0.0


def _interval(value: float, *deviations: float) -> tuple[float, float]:
    """The 90 % interval of a value whose logarithm has these standard deviations."""
    factor = math.exp(Z90 * math.sqrt(sum(each**2 for each in deviations)))
    return value / factor, value * factor


def _stages(before: list[PathSegment], after: list[PathSegment] | None) -> tuple[StagePrediction, ...]:
    then = {} if after is None else {each.id: each.time_ms for each in after}
    return tuple(StagePrediction(each.id, each.name, each.time_ms, then.get(each.id)) for each in before)
