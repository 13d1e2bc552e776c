"""Splits the operations of threads and streams into segments that wait for each other.

A lane is a thread, a stream, or a library's own loop; its operations do not overlap.  A signal means that one lane let
another proceed: a launch, a wait that ended, a collective that all had reached.  Lanes are cut where signals come and
go.  The operations between two cuts are a segment, which waits for the one before it on its lane and for its signals.

If nothing recorded shows what a lane waited for, it is assumed to be what ended last before it in the same process.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from crystalperf.query.frameworks.ml.training.program import Operation, Segment, Source

CLOSE_MS = 0.002
"""Two moments of one clock this close count as one: profilers stamp whole microseconds, some only every second one."""

WAIT_MS = 0.05
"""A gap between two operators of a thread is Python, unless something else ended this shortly before its end."""

WAIT_SHARE = 0.1
"""The same as a share of the gap, for long ones."""

MAX_SEGMENTS = 3_000
"""Maximum segments: consecutive segments on a device are merged until there are no more."""


@dataclass(slots=True)
class Lane:
    """A thread or stream of a device; `process` owns the lanes that may wait for each other without a recorded
    signal."""

    device: str
    name: str
    process: str
    operations: list[Operation] = field(default_factory=list)
    infers: bool = True
    """Whether its waits are inferred if no signal is recorded."""
    releases: Literal["any", "devices", "none"] = "any"
    """Lanes that may be inferred to have waited for it: any; those of devices other than the process itself; or none,
    for a library's own thread that only polls the progress of a device."""
    cuts: list[float] = field(default_factory=list)
    """Additional cuts of its reader, ms."""


@dataclass(frozen=True, slots=True)
class Signal:
    """At `source_ms` a lane did what lets another proceed from `target_ms`; lanes by number."""

    source: int
    source_ms: float
    target: int
    target_ms: float
    why: str


def filled(
    operations: Iterable[Operation], between: Callable[[Operation, Operation], Iterable[Operation]] = lambda *_: ()
) -> list[Operation]:
    """Operations in order without overlap, with fillers of the gaps between them."""
    found: list[Operation] = []
    for each in sorted(operations, key=lambda one: (one.start_ms, one.end_ms)):
        if found:
            last = found[-1]
            if each.end_ms <= last.end_ms:
                continue  # within the one before: the trace has it twice
            if each.start_ms < last.end_ms:
                each = replace(each, start_ms=last.end_ms)
            elif each.start_ms > last.end_ms:
                found += between(last, each)
        found.append(each)
    return found


def without(operations: Sequence[Operation], holes: Sequence[tuple[float, float]]) -> Iterator[Operation]:
    """Operations without some intervals, which are sorted and disjoint."""
    ends = [end for _, end in holes]
    for each in operations:
        begin = each.start_ms
        for start, end in holes[bisect_right(ends, begin) :]:
            if start >= each.end_ms:
                break
            if start > begin:
                yield replace(each, start_ms=begin, end_ms=start)
            begin = max(begin, end)
        if begin < each.end_ms or each.start_ms == each.end_ms:
            yield replace(each, start_ms=begin)


def longest_of(operations: Sequence[Operation]) -> Operation:
    """The longest operation; the first of several."""
    return max(operations, key=lambda each: each.end_ms - each.start_ms)


def and_more(operations: Sequence[Operation]) -> str:
    """` and 3 more`, for all operations but one."""
    return f" and {len(operations) - 1} more" if len(operations) > 1 else ""


def named_by_longest(_lane: Lane, operations: Sequence[Operation]) -> str:
    """The name of a segment: that of its longest operation."""
    longest = longest_of(operations)
    return f"{longest.name or longest.operator}{and_more(operations)}"


def segments(
    lanes: Sequence[Lane],
    signals: Iterable[Signal],
    *,
    borders: Sequence[float] = (),
    name: Callable[[Lane, Sequence[Operation]], str],
    step: Callable[[Lane, float], str | None],
) -> list[Segment]:
    """The segments of lanes by start, each with what it waits for.

    `borders` cut all lanes that run at these times; `name` and `step` are called for each segment.
    """
    given = list(signals)
    ends = _Ends(lanes)
    for number, lane in enumerate(lanes):
        if lane.infers:
            given += _inferred(number, lane, given, ends)
    cuts: list[set[float]] = [{*borders, *lane.cuts} for lane in lanes]
    for each in given:
        cuts[each.source].add(each.source_ms)
        cuts[each.target].add(each.target_ms)
    of_lane = [_cut(lane.operations, sorted(cuts[number])) for number, lane in enumerate(lanes)]
    order = sorted(
        (
            (pieces[0].start_ms, number, position)
            for number, found in enumerate(of_lane)
            for position, pieces in enumerate(found)
        )
    )
    numbers = {(lane, position): rank for rank, (_, lane, position) in enumerate(order)}
    starts = [[pieces[0].start_ms for pieces in found] for found in of_lane]
    finishes = [[pieces[-1].end_ms for pieces in found] for found in of_lane]
    result = [
        Segment(
            name(lanes[number], of_lane[number][position]), of_lane[number][position], step=step(lanes[number], start)
        )
        for start, number, position in order
    ]
    for (number, position), rank in numbers.items():
        if position:
            result[rank].sources.append(Source(numbers[number, position - 1], "same thread or stream", "order"))
    for each in given:
        before = bisect_right(finishes[each.source], each.source_ms + CLOSE_MS) - 1
        after = bisect_left(starts[each.target], each.target_ms - CLOSE_MS)
        if before < 0 or after == len(starts[each.target]):
            continue
        source, target = numbers[each.source, before], numbers[each.target, after]
        known = {one.segment for one in result[target].sources}
        if source not in known and source < target and result[source].end_ms <= result[target].start_ms + CLOSE_MS:
            result[target].sources.append(Source(source, each.why))
    return result


class _Ends:
    """Ends of operations that the lanes of a process, or of its devices, may have waited for."""

    def __init__(self, lanes: Sequence[Lane]) -> None:
        found: dict[tuple[str, bool], list[tuple[float, int]]] = {}
        for number, lane in enumerate(lanes):
            for of_device in (False, True):
                if lane.releases == "any" or (of_device and lane.releases == "devices"):
                    ends = found.setdefault((lane.process, of_device), [])
                    ends.extend((each.end_ms, number) for each in lane.operations)
        self._of = {key: sorted(ends) for key, ends in found.items()}

    def last_before(self, lane: Lane, moment: float, but: int) -> tuple[float, int] | None:
        """The last end at or before a moment that a lane may have waited for, on any lane except `but`."""
        ends = self._of.get((lane.process, lane.device != lane.process), [])
        place = bisect_right(ends, (moment + CLOSE_MS, len(ends)))
        for end, number in reversed(ends[max(place - 64, 0) : place]):
            if number != but:
                return end, number
        return None


def _inferred(number: int, lane: Lane, known: Sequence[Signal], ends: _Ends) -> list[Signal]:
    """Signals to a lane's operations that began after a gap without a recorded signal."""
    targets = sorted(each.target_ms for each in known if each.target == number)
    found = []
    last_ms = float("-inf")
    for each in lane.operations:
        if each.start_ms > last_ms + CLOSE_MS:
            place = bisect_left(targets, each.start_ms - CLOSE_MS)
            is_known = place < len(targets) and targets[place] <= each.start_ms + CLOSE_MS
            before = None if is_known else ends.last_before(lane, each.start_ms, number)
            if before is not None and before[0] > last_ms:
                found.append(Signal(before[1], before[0], number, each.start_ms, "ended before it"))
        last_ms = max(last_ms, each.end_ms)
    return found


def _cut(operations: Sequence[Operation], cuts: Sequence[float]) -> list[list[Operation]]:
    """Runs of operations without a cut or a gap between them; an operation across a cut is split."""
    found: list[list[Operation]] = []
    place = 0
    for whole in operations:
        each = whole
        while place < len(cuts) and cuts[place] <= each.start_ms + CLOSE_MS:
            place += 1
            if found and found[-1]:
                found.append([])
        if not found or (found[-1] and each.start_ms > found[-1][-1].end_ms + CLOSE_MS):
            found.append([])
        while place < len(cuts) and cuts[place] < each.end_ms - CLOSE_MS:
            found[-1].append(replace(each, end_ms=cuts[place]))
            each = replace(each, start_ms=cuts[place])
            found.append([])
            place += 1
        found[-1].append(each)
    return [each for each in found if each]


def end_in_time(lane: Lane, others: Iterable[Lane]) -> None:
    """End collectives no later than the thread that waited for them continued.

    A collective's own thread stamps its end, and has to get a CPU first: the thread that it woke may be faster.  Then
    the collective covers at least half of a gap of that thread, and ends shortly after it.
    """
    found = [each for other in others for each in other.operations if each.kind == "collective"]
    for last, following in zip(lane.operations, lane.operations[1:], strict=False):
        begin, end = last.end_ms, following.start_ms
        slack = max(WAIT_MS, WAIT_SHARE * (end - begin))
        for each in found:
            if end < each.end_ms <= end + slack and each.start_ms <= (begin + end) / 2:
                each.end_ms = end


def waits(lane: Lane, others: Iterable[Lane]) -> list[tuple[float, float, int]]:
    """The gaps of a thread in which it waited: (its start, the end of what it waited for, number among the others).

    Something else ended just before the thread continued.
    """
    ends = sorted((each.end_ms, number) for number, other in enumerate(others) for each in other.operations)
    found = []
    for last, following in zip(lane.operations, lane.operations[1:], strict=False):
        gap = following.start_ms - last.end_ms
        if gap <= CLOSE_MS:
            continue
        place = bisect_right(ends, (following.start_ms + CLOSE_MS, len(ends)))
        if not place:
            continue
        end, number = ends[place - 1]
        if end > last.end_ms and following.start_ms - end <= max(WAIT_MS, WAIT_SHARE * gap):
            found.append((last.end_ms, end, number))
    return found
