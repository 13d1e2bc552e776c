"""Bytes over bandwidth: what a device that changes does to the time of a unit (docs/model.md).

Of the time that a unit was seen on a device, only the transfer of bytes changes with the bandwidth.  The rest is
latency: copies from the page cache, round trips, waiting for a peer that has no CPU.  Of a transfer that takes W, the
unit waits for

    X = W − min(W, R, max(α · min(W, R), h))

since it goes on with other things while bytes arrive: R is that other time, and all that can hide a transfer; α is the
least share of it that does, and h what was hidden in the recorded run.  X of the recorded run is never more than the
time that was seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from crystalperf.indexes.resources import DISK, NET, Resource
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.scenario import World
from crystalperf.query.execution.wire_bytes import FRAME_DATA, MOST_READ
from crystalperf.query.trace.arrays import over
from crystalperf.query.trace.records import Floats

OVERLAP = 0.2
"""α: the least share of a unit's other time in which bytes arrive that it would otherwise wait for; what the recorded
run hid counts beside it.  Even configurations hardly tell 0 from 0.3, and are worse with more."""

PAYLOAD = {NET: FRAME_DATA}
"""η by resource: the share of what crosses its device that is data."""

AT_RATE = (0.7, 1.1)
"""Of the stated bandwidth, what a device carried that was the limit; of more, some came from the page cache."""

ROUNDS = 4
"""Of transfers and the company that they are to each other in the recorded run, until the two agree."""


@dataclass(frozen=True)
class Physics:
    """Which terms of the model hold; an interval's ends are replays of other physics than the point.

    bytes     time scales by the bytes that cross a device; without, all time that was seen on it does (paper §5)
    overlap   α
    far       whether input on other machines crosses the network, rather than a disk
    rereads   whether it may cross more than once
    wire      whether what was measured of the network tells how many bytes crossed it
    written   whether what is written crosses a disk, rather than staying in memory
    company   whether units slow each other's transfers
    unseen    whether time of unknown cause may be a transfer's where no samples tell
    borrowed  whether what a log alone leaves open is shared out by the run's own starving and by recorded runs
    turns     whether units of a worker short of CPU wait alike for it where the slots are others
    cold      whether the first units on a worker take longer, for they load and compile what they run
    link_bps  what a network of unknown bandwidth carries at least, bytes a second (query.simulate.network_speed), where
              known
    end       best: what changes bandwidth brings the most or costs the least that it can; worst: the reverse; of a
              network with a link_bps neither
    """

    bytes: bool = True
    overlap: float = OVERLAP
    far: bool = True
    rereads: bool = True
    wire: bool = True
    written: bool = False
    company: bool = True
    unseen: bool = True
    borrowed: bool = True
    turns: bool = True
    cold: bool = True
    link_bps: float | None = None
    end: Literal["", "best", "worst"] = ""


MODEL = Physics()
PAPER = Physics(bytes=False)


@dataclass(frozen=True)
class Transfer:
    """The bytes of each unit that cross the device of a resource.

    `least_ms` and `most_ms` are what they take alone at the recorded bandwidth; what was seen says where between.
    `ratio` is how many times as fast each unit's cross in the changed world.
    """

    column: int
    shared_by: str
    least_ms: Floats
    most_ms: Floats
    ratio: Floats
    overlap: Floats
    measured_ms: Floats | None = None
    """Of the time seen on the device, what was measured as waiting: it tells how much was hidden."""


@dataclass(frozen=True)
class Known:
    """A transfer as it was in the recorded run, (units,): its company, ms beside that, ms that were seen and hidden,
    other time beside it, and the share of that which hides transfer."""

    transfer: Transfer
    company: Floats
    took_ms: Floats
    seen_ms: Floats
    hidden_ms: Floats
    rest_ms: Floats
    overlap: Floats

    def in_world(self, company_now: Floats, more_rest_ms: Floats) -> tuple[Floats, Floats]:
        """W and X in another world, ms: among other company, beside so much more other time."""
        took = self.took_ms * (company_now / self.company) / self.transfer.ratio
        return took, visible(took, self.rest_ms + more_rest_ms, self.hidden_ms, self.overlap)


def visible(took_ms: Floats, rest_ms: Floats, hidden_ms: Floats, overlap: Floats | float) -> Floats:
    """X: how long a unit waits for a transfer, beside its other time."""
    can = np.minimum(took_ms, np.maximum(rest_ms, 0.0))
    seen: Floats = took_ms - np.minimum(can, np.maximum(overlap * can, hidden_ms))
    return seen


def whole(seen_ms: Floats, rest_ms: Floats, overlap: Floats) -> Floats:
    """W of a transfer that a unit waited for `seen_ms` for, and that it hid as far as it can: visible() reversed."""
    short = np.divide(seen_ms, 1 - overlap, out=np.full(len(seen_ms), np.inf), where=overlap < 1)
    took: Floats = np.where(short <= rest_ms, short, seen_ms + overlap * rest_ms)
    return took


def transfers(execution: Execution, world: World, physics: Physics) -> tuple[Transfer, ...]:
    """The transfers of a run whose log has bytes; without such there is only the time that was seen."""
    if not physics.bytes or not execution.volumes.tell_bytes:
        return ()
    found = []
    for column, each in enumerate(execution.resources):
        rate_bps = execution.recorded.get(each.setting) or each.rate_bps
        if each.unit != "bytes per second" or rate_bps is None:
            continue
        ratio, its = world.ratio(each.setting), physics
        faster = np.full(len(execution.units), ratio)
        if each.name == NET:
            faster = over(faster, _spread(execution, world), np.inf)
        scales = (ratio > 1) == (physics.end == "best")  # of an end, whether as much changes as can
        has_link = each.name == NET and physics.link_bps is not None
        is_end, is_known = physics.end and ratio != 1 and not has_link, bool(execution.recorded.get(each.setting))
        if not is_known or (is_end and ratio > 1 and scales):  # all of the time that was seen is transfer, or none
            none = np.zeros(len(execution.units))
            most = none if is_end and not scales else _most_ms(execution, each, physics, is_known)
            hides = np.full(len(none), physics.overlap if np.isfinite(most).all() and not is_end else 0.0)
            found.append(Transfer(column, each.shared_by, none, most, faster, hides))
            continue
        if is_end:
            its = replace(physics, overlap=0.0 if scales else 1.0, written=scales)
        least, most = crossing(execution, each, its)
        hides = np.full(len(execution.units), its.overlap)
        if is_end and not scales and each.name == DISK:
            full = at_rate(execution, most, rate_bps)
            hides[full] = physics.overlap
            if ratio < 1:  # the rest is in the page cache
                least, most = 0 * least, np.where(full, most, 0.0)
        per_byte = 1e3 / (rate_bps * PAYLOAD.get(each.name, 1.0))
        measured = execution.volumes.peers_ms if each.name == NET and not is_end else None
        found.append(Transfer(column, each.shared_by, least * per_byte, most * per_byte, faster, hides, measured))
    return tuple(found)


def _spread(execution: Execution, world: World) -> Floats:
    """Bytes that cross the network of each unit over those that did: of what n workers exchange evenly, (n − 1) / n
    does."""
    volumes, many = execution.volumes, execution.recorded.get("workers") or 1
    now = many * world.ratio("workers")
    if now == many or many <= 1 or execution.in_order:
        return np.ones(len(execution.units))
    more = (1 - 1 / max(now, 1)) / (1 - 1 / many)
    crossed = (volumes.remote + volumes.far).astype(np.float64)
    now_crosses = volumes.far + more * volumes.remote.astype(np.float64)
    return over(now_crosses, crossed, 1.0)


def at_rate(execution: Execution, bytes_: Floats, rate_bps: float) -> NDArray[np.bool_]:
    """Whether each unit's group read about as fast on its host as the device can: then the bytes came from there.

    Bytes of the page cache come at a speed that has nothing to do with the device's.
    """
    units = execution.units
    hosts = int(units.host.max(initial=-1)) + 2  # -1 is one too: unknown
    places, which = np.unique(units.group * hosts + units.host + 1, return_inverse=True)
    count = len(places)
    begun, ended = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(begun, which, units.launch_ms)
    np.maximum.at(ended, which, units.finish_ms)
    carried = over(np.bincount(which, bytes_ * 1e3, count).astype(np.float64), (ended - begun) * rate_bps)
    is_full: NDArray[np.bool_] = ((carried >= AT_RATE[0]) & (carried <= AT_RATE[1]))[which]
    return is_full


def moves_known(execution: Execution, resource: Resource) -> bool:
    """Whether both the bytes that cross a device and its bandwidth are known."""
    return bool(resource.moves) and execution.volumes.tell_bytes and bool(execution.recorded.get(resource.setting))


def _most_ms(execution: Execution, resource: Resource, physics: Physics, is_known: bool) -> Floats:
    """What the bytes of units take alone at most, ms: no limit, but for a link that is known to carry so much."""
    if is_known or resource.name != NET or physics.link_bps is None:
        return np.full(len(execution.units), np.inf)
    _, most = crossing(execution, resource, physics)
    return most * (1e3 / (physics.link_bps * PAYLOAD[NET]))


def crossing(execution: Execution, resource: Resource, physics: Physics) -> tuple[Floats, Floats]:
    """The least and the most bytes of each unit that cross a device.

    How often bytes of files on other machines do is ω; where the network itself was measured, it tells of all bytes.
    """
    volumes, measured = execution.volumes, execution.wire if resource.name == NET and physics.wire else None
    certain = (volumes.moved(resource) if physics.written else volumes.read(resource)).astype(np.float64)
    if not physics.far:
        certain += {NET: -1.0, DISK: 1.0}.get(resource.name, 0.0) * volumes.far
    if measured is not None:
        return certain * measured, certain * measured
    again = (MOST_READ - 1) * volumes.far if resource.name == NET and physics.rereads and physics.far else 0.0
    return certain, certain + again


def as_recorded(
    found: Sequence[Transfer],
    parts_ms: Floats,
    unknown_ms: Floats,
    among: Sequence[Floats],
    beside: Callable[[Transfer, Floats], Floats] | None = None,
) -> list[Known]:
    """Transfers of units as they were in the recorded run.

    `unknown_ms` is time of each unit that may have been spent on them, unseen.  `among` is each transfer's company;
    `beside` works it out from the share of each unit's time in which its bytes were on their way.
    """
    among, whole_ms = list(among), parts_ms.sum(axis=1)
    nothing = np.zeros(len(parts_ms))
    seen, took = [nothing for _ in found], [each.least_ms for each in found]
    overlap = [each.overlap for each in found]
    for turn in range(ROUNDS):
        was = [*took, *seen]
        for position, each in enumerate(found):
            if beside is not None and turn:
                among[position] = beside(each, share_of(took[position], whole_ms))
            others = sum((seen[other] for other in range(len(found)) if other != position), nothing)
            has_ms, mine = whole_ms - others, parts_ms[:, each.column]
            tells = whole(mine, has_ms - mine, each.overlap)
            took[position] = np.clip(tells, each.least_ms * among[position], each.most_ms * among[position])
            took[position] = np.minimum(took[position], has_ms)  # what no time was left for came from elsewhere
            if each.measured_ms is not None:
                overlap[position] = shown(took[position], mine, each.measured_ms, has_ms - mine, each.overlap)
            seen[position] = np.minimum(within(took[position], has_ms, overlap[position]), mine + unknown_ms)
        if turn and all(map(np.array_equal, was, [*took, *seen])):
            break  # the next turn would find the same
    rest = whole_ms - sum(seen, nothing)
    known = []
    for each, company, took_ms, share in zip(found, among, took, overlap, strict=True):
        hidden = np.maximum(took_ms - (parts_ms[:, each.column] + unknown_ms), 0.0)
        known.append(Known(each, company, took_ms, visible(took_ms, rest, hidden, share), hidden, rest, share))
    return known


def shown(took_ms: Floats, seen_ms: Floats, measured_ms: Floats, rest_ms: Floats, overlap: Floats) -> Floats:
    """α of each unit: as measured waits show it, as far as the transfer is what they were spent on.

    Where bytes explain little of the time on a device, it says nothing of how much of them was hidden.
    """
    told = np.minimum(over(took_ms, seen_ms), 1.0) * np.minimum(over(measured_ms, seen_ms), 1.0)
    hid = np.clip(over(took_ms - seen_ms, np.minimum(took_ms, rest_ms)), 0.0, overlap)
    share: Floats = told * hid + (1 - told) * overlap
    return share


def within(took_ms: Floats, has_ms: Floats, overlap: Floats) -> Floats:
    """X of a transfer in a unit that has `has_ms` for it and for what goes on meanwhile."""
    short = (1 - overlap) * took_ms
    long = over(took_ms - overlap * has_ms, 1 - overlap)
    seen: Floats = np.where(took_ms + short <= has_ms, short, long)
    return seen


def share_of(took_ms: Floats, duration_ms: Floats) -> Floats:
    """The share of each unit's time in which its bytes are on their way."""
    return np.minimum(over(took_ms, duration_ms), 1.0)
