"""Transfers: bytes over bandwidth, the effect of a changed device on the time of a task (docs/model.md).

Of a task's recorded time on a device, only the transfer of bytes changes with the bandwidth.  The rest is latency:
copies from the page cache, round trips, waits for a peer that has no CPU.  Of a transfer that takes W, the task waits
for (exposed time)

    X = W − min(W, R, max(α · min(W, R), h))

because it does other work while bytes arrive: R is the time of that work, which is all that can overlap with the
transfer; α is the minimum share of it that does, and h the hidden time in the recorded run.  X of the recorded run is
never more than the recorded time on the device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.resources import DISK, NET, Resource
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.scenario import Scenario
from crystalperf.query.execution.wire_bytes import FRAME_DATA, MAX_READ
from crystalperf.query.trace.arrays import blocks, constant, safe_divide
from crystalperf.query.trace.records import Floats

OVERLAP = 0.2
"""α: the minimum share of a task's other time that overlaps with transfers; hidden time of the recorded run counts in
addition.  On the tuning set, values from 0 to 0.3 hardly differ, and larger ones are worse."""

PAYLOAD = {NET: FRAME_DATA}
"""η by resource: the payload share of the traffic on its device."""

AT_RATE = (0.7, 1.1)
"""Range of throughput over stated bandwidth of a device that was the limit; above it, some bytes came from the page
cache."""

ROUNDS = 4
"""Maximum iterations until transfers and their concurrency in the recorded run agree."""


@frozen
class Physics:
    """The terms of the model; the bounds of an interval are replays with other terms than the point estimate.

    bytes                whether only the transfer of bytes scales with a device; otherwise all recorded time on it
                         (paper §5)
    overlap              α
    far                  whether input on other machines crosses the network, rather than a disk
    rereads              whether such input may cross the network more than once
    wire_bytes_ratio     whether measurements of the network give the number of bytes that crossed it
    written              whether written bytes cross a disk, rather than stay in memory
    transfer_contention  whether concurrent transfers slow each other down
    unknown_time         whether time of unknown cause may be transfers, if there are no samples
    imputed              whether unknown time of a log without samples is imputed, from the run's own CPU waits and
                         from priors
    equal_cpu_waits      whether tasks of a worker short of CPU wait equally for it on other slots
    warmup               whether the first tasks on a worker take longer (JVM warm-up)
    link_bps             lower bound of an unknown network bandwidth, bytes per second
                         (query.simulate.network_speed), if known
    end                  best: changed bandwidths have the most favourable effect that is possible; worst: the least
                         favourable; neither applies to a network with a link_bps
    """

    bytes: bool = True
    overlap: float = OVERLAP
    far: bool = True
    rereads: bool = True
    wire_bytes_ratio: bool = True
    written: bool = False
    transfer_contention: bool = True
    unknown_time: bool = True
    imputed: bool = True
    equal_cpu_waits: bool = True
    warmup: bool = True
    link_bps: float | None = None
    end: Literal["", "best", "worst"] = ""


MODEL = Physics()
PAPER = Physics(bytes=False)


@frozen
class Transfer:
    """The transfer of each task's bytes over the device of a resource.

    `least_ms` and `most_ms` bound its time without contention at the recorded bandwidth; the recorded time on the
    device decides between them.  `ratio` is the speedup of each task's transfer in the scenario.
    """

    column: int
    shared_by: str
    least_ms: Floats
    most_ms: Floats
    ratio: Floats
    overlap: Floats
    measured_ms: Floats | None = None
    """Measured waits within the recorded time on the device: they show how much of the transfer was hidden."""


@frozen
class RecordedTransfer:
    """A transfer in the recorded run, (tasks,) each: its concurrency, its time under that contention, exposed time,
    hidden time, the task's other time, and the share of that which overlaps with the transfer; times in ms."""

    transfer: Transfer
    concurrency: Floats
    took_ms: Floats
    seen_ms: Floats
    hidden_ms: Floats
    rest_ms: Floats
    overlap: Floats

    def in_scenario(self, concurrency_now: Floats, more_rest_ms: Floats) -> tuple[Floats, Floats]:
        """W and X in a scenario, ms, with another concurrency and a change of the task's other time."""
        took, seen = np.empty(len(self.took_ms)), np.empty(len(self.took_ms))
        for rows in blocks(len(took)):
            now = concurrency_now[rows] / self.concurrency[rows]
            took[rows] = self.took_ms[rows] * now / self.transfer.ratio[rows]
            rest_ms = self.rest_ms[rows] + more_rest_ms[rows]
            seen[rows] = exposed_ms(took[rows], rest_ms, self.hidden_ms[rows], self.overlap[rows])
        return took, seen


def exposed_ms(took_ms: Floats, rest_ms: Floats, hidden_ms: Floats, overlap: Floats | float) -> Floats:
    """X: the exposed time of a transfer, for which a task waits in addition to its other time, ms."""
    can = np.minimum(took_ms, np.maximum(rest_ms, 0.0))
    seen: Floats = took_ms - np.minimum(can, np.maximum(overlap * can, hidden_ms))
    return seen


def total_ms(seen_ms: Floats, rest_ms: Floats, overlap: Floats) -> Floats:
    """W of a transfer with exposed time `seen_ms` and maximum hidden time, ms: the inverse of exposed_ms()."""
    short = np.divide(seen_ms, 1 - overlap, out=np.full(len(seen_ms), np.inf), where=overlap < 1)
    took: Floats = np.where(short <= rest_ms, short, seen_ms + overlap * rest_ms)
    return took


def transfers(execution: Execution, scenario: Scenario, physics: Physics) -> tuple[Transfer, ...]:
    """The transfers of a run whose log has bytes; empty for other runs, which have only recorded times."""
    if not physics.bytes or not execution.volumes.record_bytes:
        return ()
    found = []
    for column, each in enumerate(execution.resources):
        rate_bps = execution.recorded.get(each.setting) or each.rate_bps
        if each.unit != "bytes per second" or rate_bps is None:
            continue
        ratio, its = scenario.ratio(each.setting), physics
        count = len(execution.tasks)
        faster, spread = constant(count, ratio), _spread(execution, scenario) if each.name == NET else None
        if spread is not None:
            faster = safe_divide(faster, spread, np.inf)
        scales = (ratio > 1) == (physics.end == "best")  # for a bound, whether the largest possible share changes
        has_link = each.name == NET and physics.link_bps is not None
        is_end, is_known = physics.end and ratio != 1 and not has_link, bool(execution.recorded.get(each.setting))
        if not is_known or (is_end and ratio > 1 and scales):  # all recorded time is transfer, or none of it
            none = constant(count, 0.0)
            most = none if is_end and not scales else _most_ms(execution, each, physics, is_known)
            hides = constant(count, physics.overlap if np.isfinite(most).all() and not is_end else 0.0)
            found.append(Transfer(column, each.shared_by, none, most, faster, hides))
            continue
        if is_end:
            its = replace(physics, overlap=0.0 if scales else 1.0, written=scales)
        least, most = crossing(execution, each, its)
        hides = np.full(len(execution.tasks), its.overlap)
        if is_end and not scales and each.name == DISK:
            full = at_rate(execution, most, rate_bps)
            hides[full] = physics.overlap
            if ratio < 1:  # the other bytes are in the page cache
                least, most = 0 * least, np.where(full, most, 0.0)
        per_byte = 1e3 / (rate_bps * PAYLOAD.get(each.name, 1.0))
        measured = execution.volumes.fetch_wait_ms if each.name == NET and not is_end else None
        found.append(Transfer(column, each.shared_by, least * per_byte, most * per_byte, faster, hides, measured))
    return tuple(found)


def _spread(execution: Execution, scenario: Scenario) -> Floats | None:
    """The factor on each task's network bytes for another number of workers: of an even exchange between n workers,
    (n − 1) / n crosses the network; None for 1."""
    volumes, many = execution.volumes, execution.recorded.get("workers") or 1
    now = many * scenario.ratio("workers")
    if now == many or many <= 1 or execution.in_order:
        return None
    more = (1 - 1 / max(now, 1)) / (1 - 1 / many)
    crossed = (volumes.remote_read + volumes.far).astype(np.float64)
    now_crosses = volumes.far + more * volumes.remote_read.astype(np.float64)
    return safe_divide(now_crosses, crossed, 1.0)


def at_rate(execution: Execution, bytes_: Floats, rate_bps: float) -> NDArray[np.bool_]:
    """Whether each task's stage read on its host at about the bandwidth of the device: then the bytes came from it.

    The speed of bytes from the page cache does not depend on the device.
    """
    tasks = execution.tasks
    hosts = int(tasks.host.max(initial=-1)) + 2  # -1, unknown, counts as a host
    places, which = np.unique(tasks.stage * hosts + tasks.host + 1, return_inverse=True)
    count = len(places)
    begun, ended = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(begun, which, tasks.launch_ms)
    np.maximum.at(ended, which, tasks.finish_ms)
    carried = safe_divide(np.bincount(which, bytes_ * 1e3, count).astype(np.float64), (ended - begun) * rate_bps)
    is_full: NDArray[np.bool_] = ((carried >= AT_RATE[0]) & (carried <= AT_RATE[1]))[which]
    return is_full


def moves_known(execution: Execution, resource: Resource) -> bool:
    """Whether both the bytes that cross a device and its bandwidth are known."""
    return bool(resource.moves) and execution.volumes.record_bytes and bool(execution.recorded.get(resource.setting))


def _most_ms(execution: Execution, resource: Resource, physics: Physics, is_known: bool) -> Floats:
    """Maximum transfer time of tasks without contention, ms: infinite, except for a link with a known lower bound."""
    if is_known or resource.name != NET or physics.link_bps is None:
        return constant(len(execution.tasks), np.inf)
    _, most = crossing(execution, resource, physics)
    return most * (1e3 / (physics.link_bps * PAYLOAD[NET]))


def crossing(execution: Execution, resource: Resource, physics: Physics) -> tuple[Floats, Floats]:
    """The minimum and the maximum bytes of each task that cross a device.

    ω is how often bytes of files on other machines cross the network; measurements of the network decide for all bytes.
    """
    volumes, measured = (
        execution.volumes,
        execution.wire_bytes_ratio if resource.name == NET and physics.wire_bytes_ratio else None,
    )
    certain = (volumes.moved(resource) if physics.written else volumes.read(resource)).astype(np.float64)
    if not physics.far:
        certain += {NET: -1.0, DISK: 1.0}.get(resource.name, 0.0) * volumes.far
    if measured is not None:
        return certain * measured, certain * measured
    reread = (MAX_READ - 1) * volumes.far if resource.name == NET and physics.rereads and physics.far else 0.0
    return certain, certain + reread


def as_recorded(
    found: Sequence[Transfer],
    parts_ms: Floats,
    unknown_ms: Floats,
    among: Sequence[Floats],
    concurrency_of: Callable[[Transfer, Floats], Floats] | None = None,
) -> list[RecordedTransfer]:
    """Transfers of tasks in the recorded run.

    `unknown_ms` is unknown time of each task that may be transfers.  `among` is each transfer's concurrency;
    `concurrency_of` computes it from the share of each task's time in which its bytes are in transfer.
    """
    among, whole_ms = list(among), parts_ms.sum(axis=1)
    seen, took = ([np.zeros(len(parts_ms)) for _ in found] for _ in range(2))
    for own_ms, each in zip(took, found, strict=True):
        own_ms[:] = each.least_ms
    overlap = [each.overlap if each.measured_ms is None else each.overlap.copy() for each in found]
    for turn in range(ROUNDS):
        if concurrency_of is not None and turn:
            among = [concurrency_of(each, share_of(own_ms, whole_ms)) for each, own_ms in zip(found, took, strict=True)]
        same = True
        for rows in blocks(len(parts_ms)):
            was = [each[rows].copy() for each in (*took, *seen)]
            for position, each in enumerate(found):
                others = sum((seen[other][rows] for other in range(len(found)) if other != position), 0.0)
                has_ms, on_device_ms = whole_ms[rows] - others, parts_ms[rows, each.column]
                rest_ms, each_overlap = has_ms - on_device_ms, each.overlap[rows]
                implied_ms = total_ms(on_device_ms, rest_ms, each_overlap)
                least_ms, most_ms = (
                    each.least_ms[rows] * among[position][rows],
                    each.most_ms[rows] * among[position][rows],
                )
                # Bytes without time for them came from elsewhere.
                own_ms = took[position][rows] = np.minimum(np.clip(implied_ms, least_ms, most_ms), has_ms)
                if each.measured_ms is not None:
                    overlap[position][rows] = measured_overlap(
                        own_ms, on_device_ms, each.measured_ms[rows], rest_ms, each_overlap
                    )
                seen[position][rows] = np.minimum(
                    exposed_in_ms(own_ms, has_ms, overlap[position][rows]), on_device_ms + unknown_ms[rows]
                )
            same = same and all(map(np.array_equal, was, (each[rows] for each in (*took, *seen))))
        if turn and same:
            break  # the iteration has converged
    rest = whole_ms - sum(seen, np.zeros(len(parts_ms)))
    known = []
    for each, concurrency, took_ms, share in zip(found, among, took, overlap, strict=True):
        hidden = np.maximum(took_ms - (parts_ms[:, each.column] + unknown_ms), 0.0)
        known.append(
            RecordedTransfer(each, concurrency, took_ms, exposed_ms(took_ms, rest, hidden, share), hidden, rest, share)
        )
    return known


def measured_overlap(took_ms: Floats, seen_ms: Floats, measured_ms: Floats, rest_ms: Floats, overlap: Floats) -> Floats:
    """α of each task: from measured waits, weighted by how much of them the transfer explains.

    If bytes explain little of the time on a device, that time does not show how much of the transfer was hidden.
    """
    weight = np.minimum(safe_divide(took_ms, seen_ms), 1.0) * np.minimum(safe_divide(measured_ms, seen_ms), 1.0)
    hid = np.clip(safe_divide(took_ms - seen_ms, np.minimum(took_ms, rest_ms)), 0.0, overlap)
    share: Floats = weight * hid + (1 - weight) * overlap
    return share


def exposed_in_ms(took_ms: Floats, has_ms: Floats, overlap: Floats) -> Floats:
    """X of a transfer in a task that has `has_ms` for it and for the overlapping work, ms."""
    short = (1 - overlap) * took_ms
    long = safe_divide(took_ms - overlap * has_ms, 1 - overlap)
    seen: Floats = np.where(took_ms + short <= has_ms, short, long)
    return seen


def share_of(took_ms: Floats, duration_ms: Floats) -> Floats:
    """The share of each task's time in which its bytes are in transfer."""
    return np.minimum(safe_divide(took_ms, duration_ms), 1.0)
