"""A flow that cannot take what comes, while its buffers still have room: what it takes once they are full.

Sources are held up only when every buffer before the station that is full has been filled, which takes minutes where
records are small.  Until then they make more records than come through.  Afterwards each station has as many as that
one leaves it, and is held up whenever it has nothing to do.
"""

from __future__ import annotations

from dataclasses import replace

from crystalperf.query.execution.stream import BEHIND, Flow, Hop, Station


def settled(flow: Flow) -> Flow:
    """The flow as it is once its buffers are full, where it is at its limit; any other as it is."""
    if not flow.at_limit:
        return flow
    come = _coming(flow)
    least = {name: min(come[each] for each in together) for name, together in _connected(flow).items()}
    ratio = {name: least[name] / share for name, share in come.items()}
    return replace(
        flow,
        stations=tuple(_slower(each, ratio[each.id]) for each in flow.stations),
        hops=tuple(_fewer(each, ratio[each.target]) for each in flow.hops),
    )


def _coming(flow: Flow) -> dict[str, float]:
    """By station, the share that comes to it of what its sources made for it, at most 1 and more than 0."""
    share: dict[str, float] = {}
    for each in flow.stations:  # in the order of the flow
        into = [hop for hop in flow.hops if hop.target == each.id and hop.records_per_s > 0]
        whole = sum(hop.records_per_s for hop in into)
        come = sum(share.get(hop.source, 1.0) * hop.kept * hop.records_per_s for hop in into)
        share[each.id] = come / whole if whole > 0 else 1.0
    return share


def _connected(flow: Flow) -> dict[str, frozenset[str]]:
    """By station, those that it has to do with: several parts of a flow may have nothing to do with each other."""
    found = {each.id: frozenset([each.id]) for each in flow.stations}
    for hop in flow.hops:
        together = found[hop.source] | found[hop.target]
        found |= dict.fromkeys(together, together)
    return found


def _slower(station: Station, ratio: float) -> Station:
    """A station with so many times the records, which is held up instead of working on the others."""
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
    """A hop with so many times the records, which are as many as come through."""
    return replace(
        hop,
        records_per_s=hop.records_per_s * ratio,
        bytes_per_s=hop.bytes_per_s * ratio,
        buffers_per_s=hop.buffers_per_s * ratio,
        kept=1.0,
    )
