"""Streams: runs that process records without an end, as stations, hops between them, and the time of a record in each.

A station is a stage whose tasks run in parallel, each on its own share of the records.  A hop connects two stations: a
buffer that is sent when it is full or due, the network to the next station, and the queue before it.  The latency of a
record is the sum along its longest path, and the run's measure.

All figures are means over an interval in which the stream was steady; ms, bytes, and records per second.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from crystalperf.indexes.frozen import frozen
from crystalperf.query.trace.records import Floats

BUFFER_BYTES = 32768.0
"""Default size of a full buffer."""

VARIABILITY = 0.5
"""Half the sum of the squared variations of arrivals and of times, in Kingman's formula (query.streaming.predict)."""

MAX_UTILIZATION = 0.98
"""Utilisation above which a mean is meaningless: queues do not reach a steady state within minutes."""

FULL = 0.95
"""A stream is at its limit if a station that blocks others is busy for this share of its time, or if its source is
blocked for the remainder of its time."""


HELD_UP = 0.2
"""… or if a station is blocked for this share while another has no time left: more than uneven arrivals cause."""

BEHIND = 0.95
"""… or if that station takes less than this share of the records it is given: more than the error of counters that are
read at different moments."""

COUNTED_OFF = 0.1
"""Relative error of a buffer timeout that follows from the number of buffers: counters are up to ten seconds old when
they are read.  The baselines of the lab's five streams, whose timers run every 100 ms, gave 96 to 105."""

MANY_BURSTS = 64
"""Number of buffers that arrive while one fills, from which arrivals count as continuous: the error is up to 1.3 %."""


@frozen
class Station:
    """A stage of a stream.

    Attributes:
        slots: number of parallel tasks.
        records_per_s: incoming records, or records that a source produces; sum over all slots.
        busy: busy share of the slots' time, mean over the slots.
        busiest: busy share of the busiest slot.
        blocked: share of the slots' time in which no downstream station took their records (backpressure).
        shares: shares of busy time by resource, (resources + 1,), the last is unknown time; they sum to 1.
        keyed: whether the key of a record decides its slot, so that one slot may have more records.
        due_buffer_share: the part of `busy` that due buffers cost, whatever their content; the same for `busiest`.
        external_wait_ms: how long a record waits, without work, for an answer from outside the stream.
        sleeping_share: share of busy time in which its slots used no resource: asleep, or waiting for something
            outside.
        heaviest_slot, heaviest_share: the slot with the most records, counted from 0, and its share of all of them.
    """

    id: str
    name: str
    slots: int
    records_per_s: float
    busy: float
    busiest: float
    blocked: float
    shares: Floats
    is_source: bool = False
    keyed: bool = False
    due_buffer_share: float = 0.0
    external_wait_ms: float = 0.0
    sleeping_share: float = 0.0
    heaviest_slot: int = 0
    heaviest_share: float = 0.0

    @property
    def unmeasured(self) -> float:
        """Share of busy time with unknown resource."""
        return max(float(self.shares[-1]) - self.sleeping_share, 0.0)

    @property
    def record_ms(self) -> float:
        """Busy time of one record, ms."""
        return 1e3 * self.busy * self.slots / self.records_per_s if self.records_per_s > 0 else 0.0


@frozen
class Hop:
    """The connection between two stations.

    Attributes:
        channels: pairs of slots that exchange buffers.
        records_per_s, bytes_per_s, buffers_per_s: sums over all channels.
        remote: share of the bytes that cross a network.
        queued: mean number of waiting buffers, without those that fill.
        most_due_ms: buffer timeout by the settings.  The number of buffers does not show the timeout of a job at its
            limit, where due buffers wait with full ones, nor of a slow channel, where many due buffers are empty: an
            empty buffer is not sent.
        is_due_assumed: whether the timeout is known neither from settings nor from the number of buffers.
        kept: records that left it over records that entered it, at most 1; the others wait in a queue that keeps
            growing.
        all_to_all: whether each slot of the source sends to each slot of the target.
        silent: channels over which no buffer came, so that their timeout is not counted.
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
    silent: int = 0

    @property
    def records_per_buffer(self) -> float:
        return self.records_per_s / self.buffers_per_s if self.buffers_per_s > 0 else 1.0

    @property
    def due_ms(self) -> float:
        """Buffer timeout, ms: from the number of buffers that were not full, or `most_due_ms` if both agree within the
        counting error.

        Infinite if only full buffers were sent.
        """
        if self.buffers_per_s <= 0:
            return 0.0
        counted = self.counted_due_ms
        return counted if counted < (1 - COUNTED_OFF) * self.most_due_ms else self.most_due_ms

    @property
    def counted_due_ms(self) -> float:
        """Buffer timeout, ms, by the number of buffers alone."""
        return (
            1e3 * max(self.channels - self.silent, 1) / self.due_per_s
            if self.buffers_per_s > 1.02 * self.full_per_s
            else math.inf
        )

    @property
    def full_per_s(self) -> float:
        """Buffers that are sent because they are full."""
        return self.bytes_per_s / BUFFER_BYTES

    @property
    def due_per_s(self) -> float:
        """Buffers that are sent because they are due."""
        return max(self.buffers_per_s - self.full_per_s, 0.0)


@frozen
class StreamWorker:
    """A worker of a stream, in cores: CPU that its process used, and its limit, infinite if unknown.

    Of `cpu_cores`, two parts do not grow with the records: `fixed_cores` (compilers, metrics, timers) and `due_cores`
    (due buffers, whatever their content).  Network traffic uses `crossing_cores` of `growing_cores` and
    `crossing_due_cores` of `due_cores`; 0 if they are not known apart.
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
        """CPU use that grows with the records, cores."""
        return max(self.cpu_cores - self.fixed_cores - self.due_cores, 0.0)


@frozen
class Stream:
    """A steady interval of a stream.

    Attributes:
        stations: in the order of the data flow.
        places: the workers.
        start_ms, end_ms: the interval, since the run's start.
        probe_latency_ms: latency of a record as the framework's own probes measured it; None without probes.
    """

    stations: tuple[Station, ...]
    hops: tuple[Hop, ...]
    places: tuple[StreamWorker, ...]
    start_ms: float
    end_ms: float
    probe_latency_ms: float | None = None

    @property
    def rate_per_s(self) -> float:
        """Records that the sources produce per second."""
        return sum(each.records_per_s for each in self.stations if each.is_source)

    def station(self, wanted: str) -> Station:
        return next(each for each in self.stations if each.id == wanted)

    @property
    def at_limit(self) -> bool:
        """Whether the stream runs at its highest rate: backpressure limits the sources, or they have no time left.

        A source whose busy time was not measured, or that has several slots, may be blocked for less than FULL of its
        time although a slot of another station has no time left.  While buffers before that station have space, its
        source is not blocked at all: then the station takes fewer records than it is given, or one between is blocked.
        """
        if any(each.busy + each.blocked >= FULL for each in self.stations if each.is_source):
            return True
        full = {each.id for each in self.stations if each.busiest >= FULL and not each.is_source}
        return bool(full) and (
            any(each.blocked >= HELD_UP for each in self.stations)
            or any(each.kept < BEHIND for each in self.hops if each.target in full)
        )

    def time_ms(self, names: tuple[str, ...]) -> float:
        """Mean latency of a record with the measured queues, ms."""
        return sum(each.time_ms for each in path_segments(self, measured=True, names=names))


@frozen
class PathSegment:
    """One segment of a record's path: a station or a hop.

    Attributes:
        id: a station's id, or SOURCE>TARGET of a hop.
        name: for readers.
        work_ms: busy time by resource at a station, (resources + 1,); zeros for a hop.
        same_buffer_ms: at a station, waiting for other records of the same buffer.
        filling_ms: in a hop, in a buffer before it is sent.
        queue_ms: in a hop, in buffers that wait for the station or for the network.
        way_ms: in a hop, on the network.
        external_wait_ms: at a station, waiting for an answer from outside the stream.
        sleeping_ms: the part of `work_ms` at a station that is asleep or waits for something outside the stream.
    """

    id: str
    name: str
    work_ms: Floats
    same_buffer_ms: float = 0.0
    filling_ms: float = 0.0
    queue_ms: float = 0.0
    way_ms: float = 0.0
    external_wait_ms: float = 0.0
    sleeping_ms: float = 0.0

    @property
    def time_ms(self) -> float:
        waits_ms = self.same_buffer_ms + self.filling_ms + self.queue_ms + self.way_ms + self.external_wait_ms
        return float(self.work_ms.sum()) + waits_ms


def filling_ms(full_ms: float, due_ms: float, bursts: float = math.inf) -> float:
    """Mean time of a record, ms, in a buffer that fills in `full_ms`, or is sent after `due_ms` if that is earlier.

    A buffer that is sent every T and never full holds its records for T/2 on average.  A second cut at a random time
    within T reduces that to T/3: full buffers do this to due ones, and vice versa.

    After another exchange, records arrive in bursts of a buffer each: `bursts` of them within `due_ms`, at random
    times.  Then one burst fills the buffer, and those of its records that still fit do not wait.
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
    """The integral over 0 ≤ t ≤ T of the probability that a record still waits t after its arrival, for n equal bursts.

    The buffer is not due by then with probability 1 − t/T, and k of the other bursts arrived meanwhile with binomial
    probability of t/T.  The rest of the record's own burst is uniform up to σ buffers, and the free space in its buffer
    uniform up to one: the probability that space is left is the mean of max(0, 1 − x) over k σ ≤ x ≤ (k + 1) σ.  The
    integral of (1 − t/T) times the probability of k is T (n − k) / n / (n + 1).
    """
    arrived = np.arange(bursts + 1)
    share = due_ms / full_ms / bursts
    used = np.minimum(arrived * share, 1.0)
    waits = np.diff(used - used**2 / 2) / share
    return float(due_ms * ((bursts - arrived[:-1]) * waits).sum() / bursts / (bursts + 1))


def longest_way(
    stream: Stream, station_ms: Mapping[str, PathSegment], hop_ms: Mapping[tuple[str, str], PathSegment]
) -> list[PathSegment]:
    """The legs of the longest path, in order."""
    best: dict[str, tuple[float, list[PathSegment]]] = {}
    for each in stream.stations:
        here = station_ms[each.id]
        paths = [
            (best[hop.source][0] + hop_ms[hop.source, hop.target].time_ms, hop)
            for hop in stream.hops
            if hop.target == each.id and hop.source in best
        ]
        if paths:
            until_ms, hop = max(paths, key=lambda path: path[0])
            path_segments = [*best[hop.source][1], hop_ms[hop.source, hop.target], here]
        else:
            until_ms, path_segments = 0.0, [here]
        best[each.id] = (until_ms + here.time_ms, path_segments)
    ends = [each.id for each in stream.stations if not any(hop.source == each.id for hop in stream.hops)]
    return max((best[each] for each in ends), key=lambda each: each[0], default=(0.0, list[PathSegment]()))[1]


def path_segments(
    stream: Stream, *, measured: bool, names: tuple[str, ...], net_bytes_per_s: float | None = None
) -> list[PathSegment]:
    """The longest path of a record, with `measured` queues, or with queues that follow from utilisation."""
    here = {each.id: _at(each, stream, names) for each in stream.stations}
    between = {
        (each.source, each.target): _between(each, stream, measured, names, net_bytes_per_s) for each in stream.hops
    }
    return longest_way(stream, here, between)


def _at(station: Station, stream: Stream, names: tuple[str, ...]) -> PathSegment:
    into = [each for each in stream.hops if each.target == station.id and each.buffers_per_s > 0]
    records = sum(each.records_per_s for each in into)
    buffers = sum(each.buffers_per_s for each in into)
    mates = max(records / buffers - 1, 0.0) / 2 if buffers > 0 else 0.0
    work = station.shares * station.record_ms
    return PathSegment(
        station.id,
        station.name,
        work,
        same_buffer_ms=mates * station.record_ms,
        external_wait_ms=station.external_wait_ms,
        sleeping_ms=station.sleeping_share * station.record_ms,
    )


def _between(
    hop: Hop, stream: Stream, measured: bool, names: tuple[str, ...], net_bytes_per_s: float | None
) -> PathSegment:
    target = stream.station(hop.target)
    full_ms = 1e3 * hop.channels / hop.full_per_s if hop.full_per_s > 0 else math.inf
    filling = filling_ms(full_ms, hop.due_ms, _bursts(hop, stream))
    if measured:
        queue = 1e3 * hop.queued / hop.buffers_per_s if hop.buffers_per_s > 0 else 0.0
    else:
        queue = _queueing_ms(target, hop.records_per_buffer) + cpu_wait_ms(stream, hop)
    way = 0.0
    if net_bytes_per_s is not None and hop.buffers_per_s > 0:
        way = hop.remote * 1e3 * hop.bytes_per_s / hop.buffers_per_s / net_bytes_per_s
    nothing = np.zeros(len(names) + 1)
    return PathSegment(f"{hop.source}>{hop.target}", f"to {target.name}", nothing, 0.0, filling, queue, way)


def _bursts(hop: Hop, stream: Stream) -> float:
    """Buffers that a slot of the hop's source station reads within the hop's timeout; infinite for a source."""
    into = [each.buffers_per_s for each in stream.hops if each.target == hop.source]
    return sum(into) / stream.station(hop.source).slots * hop.due_ms / 1e3 if into else math.inf


def cpu_wait_ms(stream: Stream, hop: Hop) -> float:
    """Mean wait of a buffer for its worker's CPU, which other threads use too, ms; 0 if no CPU limit is known.

    The mean CPU time of a buffer waits as at c servers (Sakasegawa, 1977); c = 1 is Kingman's formula.  A slot sends
    its due buffers to all slots of the next station at once: k buffers together have a squared variation of arrivals
    of k.
    """
    known = [each for each in stream.places if 0 < each.most_cores < math.inf]
    buffers_per_s = sum(each.buffers_per_s for each in stream.hops) / max(len(stream.places), 1)
    if not known or buffers_per_s <= 0:
        return 0.0
    together = hop.channels / max(stream.station(hop.source).slots, 1)
    waits = []
    for each in known:
        servers, rho = max(each.most_cores, 1.0), min(each.cpu_cores / each.most_cores, MAX_UTILIZATION)
        buffer_ms = 1e3 * max(each.cpu_cores - each.fixed_cores, 0.0) / buffers_per_s / min(each.most_cores, 1.0)
        waits.append(together / 2 * rho ** (math.sqrt(2 * (servers + 1)) - 1) / (1 - rho) / servers * buffer_ms)
    return float(sum(waits) / len(waits))


def _queueing_ms(station: Station, records: float) -> float:
    """Mean wait of a record in the queue, ms: the busiest slot has more records, and they wait longer."""
    buffer_ms = records * station.record_ms

    def waits(rho: float) -> float:
        rho = min(rho, MAX_UTILIZATION)
        return VARIABILITY * rho / (1 - rho) * buffer_ms

    if station.busy <= 0:
        return 0.0
    hot = station.busiest / station.busy / station.slots  # the busiest slot's share of the records
    if hot >= 1 or station.slots == 1:
        return waits(station.busiest)
    others = (station.busy * station.slots - station.busiest) / (station.slots - 1)
    return hot * waits(station.busiest) + (1 - hot) * waits(others)
