"""Backlog: the throughput of an overloaded stream after its buffers have filled up.

Backpressure reaches the sources only when every buffer before the overloaded station is full, which takes minutes if
records are small.  Until then the sources produce more records than the stream processes.  After that, each station has
as many records as the overloaded station lets through, and is blocked whenever it is not busy.
"""

from __future__ import annotations

from dataclasses import replace

from crystalperf.query.execution.stream import BEHIND, Hop, Station, Stream


def with_full_buffers(stream: Stream) -> Stream:
    """The stream after its buffers have filled up, if it is at its limit; any other stream does not change."""
    if not stream.at_limit:
        return stream
    arriving = _arriving(stream)
    least = {name: min(arriving[each] for each in together) for name, together in _connected(stream).items()}
    ratio = {name: least[name] / share for name, share in arriving.items()}
    return replace(
        stream,
        stations=tuple(_slower(each, ratio[each.id]) for each in stream.stations),
        hops=tuple(_fewer(each, ratio[each.target]) for each in stream.hops),
    )


def _arriving(stream: Stream) -> dict[str, float]:
    """By station, arriving records over those that the sources produced for it, at most 1 and more than 0."""
    share: dict[str, float] = {}
    for each in stream.stations:  # in the order of the data flow
        into = [hop for hop in stream.hops if hop.target == each.id and hop.records_per_s > 0]
        whole = sum(hop.records_per_s for hop in into)
        arriving = sum(share.get(hop.source, 1.0) * hop.kept * hop.records_per_s for hop in into)
        share[each.id] = arriving / whole if whole > 0 else 1.0
    return share


def _connected(stream: Stream) -> dict[str, frozenset[str]]:
    """By station, the stations of its connected component: a stream may consist of several unconnected parts."""
    found = {each.id: frozenset([each.id]) for each in stream.stations}
    for hop in stream.hops:
        together = found[hop.source] | found[hop.target]
        found |= dict.fromkeys(together, together)
    return found


def _slower(station: Station, ratio: float) -> Station:
    """A station with `ratio` times the records, which is blocked for the time that the others took."""
    busy = station.busy * ratio
    blocked = 1 - busy if ratio < BEHIND else station.blocked + station.busy - busy
    return replace(
        station,
        records_per_s=station.records_per_s * ratio,
        busy=busy,
        busiest=station.busiest * ratio,
        blocked=min(blocked, 1.0),
    )


def _fewer(hop: Hop, ratio: float) -> Hop:
    """A hop with `ratio` times the records, all of which leave it."""
    return replace(
        hop,
        records_per_s=hop.records_per_s * ratio,
        bytes_per_s=hop.bytes_per_s * ratio,
        buffers_per_s=hop.buffers_per_s * ratio,
        kept=1.0,
    )
