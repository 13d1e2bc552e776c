"""A run that is a flow of records rather than work with an end: stations, hops between them, and what they take.

A station is a group whose units work side by side, each on its own share of the records.  A hop is what lies between
two stations: a buffer that fills until it is full or due, the way to the next station, and the queue before it.  The
time of a record is the sum along its longest way, and the run's measure.

Everything is a mean over a stretch in which the flow was steady; ms, bytes, and records per second.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from crystalperf.query.trace.records import Floats

BUFFER_BYTES = 32768.0
"""Of a buffer that is full, where nothing says otherwise."""

VARIABILITY = 0.5
"""Half the sum of the squared variations of arrivals and of times, in Kingman's formula (query.streaming.predict)."""

FULLEST = 0.98
"""Utilisation beyond which a mean is no mean any more: a stretch of minutes does not settle."""

FULL = 0.95
"""A flow is at its limit where a station that holds up others is busy for this share of its time, or its source is
held up for what is left."""


HELD_UP = 0.2
"""… or something is held up for this share while a station has no time left: by more than what comes unevenly."""

BEHIND = 0.95
"""… or that station takes less than this share of what it is given: more than counters are off that are read at
different moments."""

COUNTED_OFF = 0.1
"""Relative error of a period that buffers are counted for: counters are looked at when they are up to ten seconds old.
The bases of the lab's five streams, whose timers run every 100 ms, gave 96 to 105."""

MANY_BURSTS = 64
"""Buffers that come while one fills, from which on they may as well come all the time: within 1.3 % of that."""


@dataclass(frozen=True)
class Station:
    """A group of a flow.

    Attributes:
        lanes: units side by side.
        records_per_s: records that come in, of a source those that it makes; all lanes together.
        busy: share of the lanes' time with work, in the mean over the lanes.
        busiest: the same of the lane that has most of it.
        blocked: share of the lanes' time in which nobody took their records.
        shares: of busy time by resource, (resources + 1,), the last what is not known; it sums to 1.
        keyed: whether records go to the lane that their key says, so that one lane may have more of them.
        waking: the part of `busy` that buffers take that are due, whatever is in them; likewise of `busiest`.
        held_ms: how long a record is held without work, until something outside the flow has answered.
        resting: share of busy time in which its lanes waited for no resource, asleep or for something outside the flow.
    """

    id: str
    name: str
    lanes: int
    records_per_s: float
    busy: float
    busiest: float
    blocked: float
    shares: Floats
    is_source: bool = False
    keyed: bool = False
    waking: float = 0.0
    held_ms: float = 0.0
    resting: float = 0.0

    @property
    def unseen(self) -> float:
        """Share of busy time of which nothing tells what it was on."""
        return max(float(self.shares[-1]) - self.resting, 0.0)

    @property
    def record_ms(self) -> float:
        """Busy time of one record."""
        return 1e3 * self.busy * self.lanes / self.records_per_s if self.records_per_s > 0 else 0.0


@dataclass(frozen=True)
class Hop:
    """What lies between two stations.

    Attributes:
        channels: pairs of lanes that exchange buffers.
        records_per_s, bytes_per_s, buffers_per_s: all channels together.
        remote: share of the bytes that cross a network.
        queued: buffers that wait, beside those that fill, in the mean.
        most_due_ms: how long a buffer fills at most by the settings.  The number of buffers does not tell it of a job
            at its limit, where those that are due wait with those that are full, nor of a channel so slow that many a
            buffer is due without a record in it: such a one is not sent.
        is_due_assumed: whether neither settings nor the number of buffers tell that.
        kept: share of the records that were given to it which came out at its end, at most 1; the others wait, more of
            them all the time.
        all_to_all: whether each lane of the source sends to each of the target.
    """

    source: str
    target: str
    channels: int
    records_per_s: float
    bytes_per_s: float
    buffers_per_s: float
    remote: float
    queued: float
    most_due_ms: float = math.inf
    is_due_assumed: bool = False
    kept: float = 1.0
    all_to_all: bool = True

    @property
    def records_per_buffer(self) -> float:
        return self.records_per_s / self.buffers_per_s if self.buffers_per_s > 0 else 1.0

    @property
    def due_ms(self) -> float:
        """How long a buffer fills at most before it is sent: what the number of buffers leaves beside full ones, unless
        `most_due_ms` is as near to that as buffers can be counted.

        Infinite where only full buffers were sent.
        """
        if self.buffers_per_s <= 0:
            return 0.0
        counted = self.counted_due_ms
        return counted if counted < (1 - COUNTED_OFF) * self.most_due_ms else self.most_due_ms

    @property
    def counted_due_ms(self) -> float:
        """How long a buffer fills at most by the number of buffers alone."""
        return 1e3 * self.channels / self.due_per_s if self.buffers_per_s > 1.02 * self.full_per_s else math.inf

    @property
    def full_per_s(self) -> float:
        """Buffers that are sent because they are full."""
        return self.bytes_per_s / BUFFER_BYTES

    @property
    def due_per_s(self) -> float:
        """Buffers that are sent because they are due."""
        return max(self.buffers_per_s - self.full_per_s, 0.0)


@dataclass(frozen=True)
class Place:
    """A worker of a flow, in cores: CPU that its process used, and what it has at most; infinite where nothing says.

    Of `cpu_cores`, `fixed_cores` do not grow with the records: compilers, metrics, timers.  Nor do `due_cores`, which
    buffers take that are due, whatever is in them.  What crosses the network takes `crossing_cores` of `growing_cores`
    and `crossing_due_cores` of `due_cores`; 0 where nothing tells them apart.
    """

    id: str
    cpu_cores: float
    most_cores: float
    fixed_cores: float = 0.0
    due_cores: float = 0.0
    crossing_cores: float = 0.0
    crossing_due_cores: float = 0.0

    @property
    def growing_cores(self) -> float:
        """What grows with the records."""
        return max(self.cpu_cores - self.fixed_cores - self.due_cores, 0.0)


@dataclass(frozen=True)
class Flow:
    """A steady stretch of a run that is a flow.

    Attributes:
        stations: in the order of the flow.
        places: the workers.
        start_ms, end_ms: the stretch, since the run's start.
        markers_ms: time of a record as the framework's own probes measured it; None where it has none.
    """

    stations: tuple[Station, ...]
    hops: tuple[Hop, ...]
    places: tuple[Place, ...]
    start_ms: float
    end_ms: float
    markers_ms: float | None = None

    @property
    def rate_per_s(self) -> float:
        """Records that the sources make."""
        return sum(each.records_per_s for each in self.stations if each.is_source)

    def station(self, wanted: str) -> Station:
        return next(each for each in self.stations if each.id == wanted)

    @property
    def at_limit(self) -> bool:
        """Whether the sources would have made more, had anybody taken it, or could not make more.

        A source whose busy time was not measured, or one of several lanes, is held up for less than FULL of its time by
        a station of which a lane has no time left.  Nor is it while buffers before that station have room: then that
        one takes less than it is given, or what lies between is held up.
        """
        if any(each.busy + each.blocked >= FULL for each in self.stations if each.is_source):
            return True
        full = {each.id for each in self.stations if each.busiest >= FULL and not each.is_source}
        return bool(full) and (
            any(each.blocked >= HELD_UP for each in self.stations)
            or any(each.kept < BEHIND for each in self.hops if each.target in full)
        )

    def time_ms(self, names: tuple[str, ...]) -> float:
        """Mean time of a record, queues as they were."""
        return sum(each.time_ms for each in legs(self, measured=True, names=names))


@dataclass(frozen=True)
class Leg:
    """One stretch of a record's way.

    Attributes:
        id: a station's, or SOURCE>TARGET of a hop.
        name: for readers.
        work_ms: busy time by resource, (resources + 1,), of a station; zeros of a hop.
        mates_ms: at a station, waiting for those of the same buffer.
        filling_ms: of a hop, in a buffer that is not yet sent.
        queue_ms: of a hop, in buffers that wait for the station, or for the way to it.
        way_ms: of a hop, on the network.
        held_ms: at a station, until something outside the flow has answered.
        resting_ms: of `work_ms` at a station, asleep or for something outside the flow.
    """

    id: str
    name: str
    work_ms: Floats
    mates_ms: float = 0.0
    filling_ms: float = 0.0
    queue_ms: float = 0.0
    way_ms: float = 0.0
    held_ms: float = 0.0
    resting_ms: float = 0.0

    @property
    def time_ms(self) -> float:
        waits_ms = self.mates_ms + self.filling_ms + self.queue_ms + self.way_ms + self.held_ms
        return float(self.work_ms.sum()) + waits_ms


def filling_ms(full_ms: float, due_ms: float, bursts: float = math.inf) -> float:
    """Mean time of a record in a buffer that fills in `full_ms`, and is sent when it is due if that is earlier.

    A buffer that is due every T and never full keeps its records T/2 in the mean.  A second cut at any place within T
    leaves T/3; that is what full buffers are to the due ones, and the other way round.

    Behind another exchange records come in bursts, a buffer each: so many within `due_ms`, at any time of it.  What
    fills a buffer is one of them then, and those of its records that still go into it do not wait at all.
    """
    short, long = min(full_ms, due_ms), max(full_ms, due_ms)
    if short <= 0:
        return 0.0
    if not np.isfinite(long):
        return short / 2
    if bursts > MANY_BURSTS:
        return short / 2 * (1 - short / long / 3)
    bursts = max(bursts, 1.0)
    whole = math.floor(bursts)
    fewer, more = (_filling_in_bursts_ms(full_ms, due_ms, each) for each in (whole, whole + 1))
    return fewer + (bursts - whole) * (more - fewer)


def _filling_in_bursts_ms(full_ms: float, due_ms: float, bursts: int) -> float:
    """The integral over 0 ≤ t ≤ T of the chance that a record still waits t after it came, of n equal bursts.

    It is not due by then with 1 − t/T, and k of the other bursts came meanwhile with the binomial chance of t/T.  What
    is left of its own burst is anything up to σ buffers, and so is the room in its buffer up to one: the room is not
    used up with the mean of max(0, 1 − x) over k σ ≤ x ≤ (k + 1) σ.  Of (1 − t/T) times the chance of k, the integral
    is T (n − k) / n / (n + 1).
    """
    come = np.arange(bursts + 1)
    share = due_ms / full_ms / bursts
    used = np.minimum(come * share, 1.0)
    room = np.diff(used - used**2 / 2) / share
    return float(due_ms * ((bursts - come[:-1]) * room).sum() / bursts / (bursts + 1))


def longest_way(flow: Flow, station_ms: Mapping[str, Leg], hop_ms: Mapping[tuple[str, str], Leg]) -> list[Leg]:
    """The legs of the way that takes longest, in order."""
    best: dict[str, tuple[float, list[Leg]]] = {}
    for each in flow.stations:
        here = station_ms[each.id]
        ways = [
            (best[hop.source][0] + hop_ms[hop.source, hop.target].time_ms, hop)
            for hop in flow.hops
            if hop.target == each.id and hop.source in best
        ]
        if ways:
            until_ms, hop = max(ways, key=lambda way: way[0])
            legs = [*best[hop.source][1], hop_ms[hop.source, hop.target], here]
        else:
            until_ms, legs = 0.0, [here]
        best[each.id] = (until_ms + here.time_ms, legs)
    ends = [each.id for each in flow.stations if not any(hop.source == each.id for hop in flow.hops)]
    return max((best[each] for each in ends), key=lambda each: each[0], default=(0.0, list[Leg]()))[1]


def legs(flow: Flow, *, measured: bool, names: tuple[str, ...], net_bytes_per_s: float | None = None) -> list[Leg]:
    """The longest way of a record; queues as they were `measured`, or as they follow from utilisation."""
    here = {each.id: _at(each, flow, names) for each in flow.stations}
    between = {(each.source, each.target): _between(each, flow, measured, names, net_bytes_per_s) for each in flow.hops}
    return longest_way(flow, here, between)


def _at(station: Station, flow: Flow, names: tuple[str, ...]) -> Leg:
    into = [each for each in flow.hops if each.target == station.id and each.buffers_per_s > 0]
    records = sum(each.records_per_s for each in into)
    buffers = sum(each.buffers_per_s for each in into)
    mates = max(records / buffers - 1, 0.0) / 2 if buffers > 0 else 0.0
    work = station.shares * station.record_ms
    return Leg(
        station.id,
        station.name,
        work,
        mates_ms=mates * station.record_ms,
        held_ms=station.held_ms,
        resting_ms=station.resting * station.record_ms,
    )


def _between(hop: Hop, flow: Flow, measured: bool, names: tuple[str, ...], net_bytes_per_s: float | None) -> Leg:
    target = flow.station(hop.target)
    full_ms = 1e3 * hop.channels / hop.full_per_s if hop.full_per_s > 0 else math.inf
    filling = filling_ms(full_ms, hop.due_ms, _bursts(hop, flow))
    if measured:
        queue = 1e3 * hop.queued / hop.buffers_per_s if hop.buffers_per_s > 0 else 0.0
    else:
        queue = _queue_ms(target, hop.records_per_buffer) + cpu_wait_ms(flow, hop)
    way = 0.0
    if net_bytes_per_s is not None and hop.buffers_per_s > 0:
        way = hop.remote * 1e3 * hop.bytes_per_s / hop.buffers_per_s / net_bytes_per_s
    nothing = np.zeros(len(names) + 1)
    return Leg(f"{hop.source}>{hop.target}", f"to {target.name}", nothing, 0.0, filling, queue, way)


def _bursts(hop: Hop, flow: Flow) -> float:
    """Buffers that a lane of the hop's source reads while one of the hop is not due; infinite of what makes records."""
    into = [each.buffers_per_s for each in flow.hops if each.target == hop.source]
    return sum(into) / flow.station(hop.source).lanes * hop.due_ms / 1e3 if into else math.inf


def cpu_wait_ms(flow: Flow, hop: Hop) -> float:
    """Waiting of a buffer for its worker's CPU, whose other threads use it too; 0 where nothing says how much there is.

    What one buffer takes of it in the mean waits as at c servers (Sakasegawa, 1977), of which c = 1 is Kingman's
    formula.  A lane sends its buffers to all lanes of the next station at once, when they are due: k together have a
    squared variation of arrivals of k.
    """
    known = [each for each in flow.places if 0 < each.most_cores < math.inf]
    buffers_per_s = sum(each.buffers_per_s for each in flow.hops) / max(len(flow.places), 1)
    if not known or buffers_per_s <= 0:
        return 0.0
    together = hop.channels / max(flow.station(hop.source).lanes, 1)
    waits = []
    for each in known:
        servers, rho = max(each.most_cores, 1.0), min(each.cpu_cores / each.most_cores, FULLEST)
        buffer_ms = 1e3 * max(each.cpu_cores - each.fixed_cores, 0.0) / buffers_per_s / min(each.most_cores, 1.0)
        waits.append(together / 2 * rho ** (math.sqrt(2 * (servers + 1)) - 1) / (1 - rho) / servers * buffer_ms)
    return float(sum(waits) / len(waits))


def _queue_ms(station: Station, records: float) -> float:
    """Waiting for buffers before one, in the mean over records: the busiest lane has more of them, and waits longer."""
    buffer_ms = records * station.record_ms

    def waits(rho: float) -> float:
        rho = min(rho, FULLEST)
        return VARIABILITY * rho / (1 - rho) * buffer_ms

    if station.busy <= 0:
        return 0.0
    hot = station.busiest / station.busy / station.lanes  # the busiest lane's share of the records
    if hot >= 1 or station.lanes == 1:
        return waits(station.busiest)
    others = (station.busy * station.lanes - station.busiest) / (station.lanes - 1)
    return hot * waits(station.busiest) + (1 - hot) * waits(others)
