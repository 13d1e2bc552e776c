"""Memory of an accelerator: what held it at its peak, and how the peak grows with the batch.

With `profile_memory=True` a trace has an event for each block that PyTorch's allocator hands out or takes back, with
the total of all blocks.  A block belongs to the part of the step that asked for it: the forward pass (activations), the
backward pass, or the optimizer.  A block of the backward pass that is still there when the optimizer begins is a
gradient of parameters.  All that was there before the trace are parameters, the optimizer's state and data.

Blocks of the forward pass, and those of the backward pass that are not gradients of parameters, grow with the batch.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from crystalperf.query.frameworks.ml.pytorch.kineto import Allocation, Process
from crystalperf.query.frameworks.ml.pytorch.outermost import BACKWARD
from crystalperf.query.frameworks.ml.training.memory import BEFORE, DeviceMemory, Part

_OPTIMIZES = "Optimizer.step"


@dataclass
class _Block:
    """A block that was handed out within the trace: its bytes, its part of the step, and its interval by the trace's
    order of events; `until` is None if it was never taken back."""

    bytes: int
    part: Part
    since: int
    until: int | None = None


@dataclass
class _Spans:
    """Intervals that do not overlap, in order, µs."""

    starts: list[float] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)

    def holds(self, moment: float) -> bool:
        place = bisect_right(self.starts, moment) - 1
        return place >= 0 and moment < self.ends[place]


def of_processes(processes: Iterable[Process]) -> DeviceMemory | None:
    """The memory of the accelerator with the highest peak of all processes; None if no trace has events of it."""
    found = [memory for each in processes if (memory := of_process(each)) is not None]
    return max(found, key=lambda each: each.peak, default=None)


def of_process(process: Process) -> DeviceMemory | None:
    """The memory of the accelerator with the highest peak; None if the trace has no events of it."""
    by_device: dict[int, list[Allocation]] = defaultdict(list)
    for each in process.allocations:
        by_device[each.device].append(each)
    if not by_device:
        return None
    device, events = max(by_device.items(), key=lambda one: max(each.allocated for each in one[1]))
    events.sort(key=lambda each: each.moment)
    return _of_events(f"{process.label} GPU {device}", events, _capacity(process, device), _parts(process, events))


def _capacity(process: Process, device: int) -> int | None:
    listed = process.header.get("deviceProperties")
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict) and each.get("id") == device and isinstance(each.get("totalGlobalMem"), int):
            return int(each["totalGlobalMem"])
    return None


def _parts(process: Process, events: Sequence[Allocation]) -> list[Part]:
    """The part of the step in which each event was."""
    backward, optimizer = {}, {}
    for key, thread in process.threads.items():
        backward[key] = _spans((e.start, e.end) for e in thread.operators if e.name.startswith(BACKWARD))
        marked = (*thread.marks, *thread.operators)
        optimizer[key] = _spans((e.start, e.end) for e in marked if e.name.startswith(_OPTIMIZES))
    none = _Spans()
    return [
        "optimizer"
        if optimizer.get(each.thread, none).holds(each.moment)
        else "backward"
        if backward.get(each.thread, none).holds(each.moment)
        else "forward"
        for each in events
    ]


def _spans(pairs: Iterable[tuple[float, float]]) -> _Spans:
    """The outermost of nested intervals."""
    found = _Spans()
    for start, end in sorted(pairs, key=lambda one: (one[0], -one[1])):
        if not found.ends or start >= found.ends[-1]:
            found.starts.append(start)
            found.ends.append(end)
    return found


def _of_events(device: str, events: Sequence[Allocation], capacity: int | None, parts: Sequence[Part]) -> DeviceMemory:
    blocks: list[_Block] = []
    live: dict[int, _Block] = {}
    for number, (each, part) in enumerate(zip(events, parts, strict=True)):
        if each.bytes > 0:
            live[each.address] = block = _Block(each.bytes, part, number)
            blocks.append(block)
        elif (taken := live.pop(each.address, None)) is not None:
            taken.until = number
    _name_gradients(blocks, parts)
    starting: dict[int, _Block] = {each.since: each for each in blocks}
    ending: dict[int, _Block] = {each.until: each for each in blocks if each.until is not None}
    held: dict[Part, int] = defaultdict(int)
    at_peak: Mapping[Part, int] = {}
    peak = 0
    points: list[tuple[int, int]] = []
    for number, each in enumerate(events):
        if (begun := starting.get(number)) is not None:
            held[begun.part] += begun.bytes
        if (ended := ending.get(number)) is not None:
            held[ended.part] -= ended.bytes
        growing = min(held["forward"] + held["backward"], each.allocated)
        points.append((each.allocated - growing, growing))
        if each.allocated > peak:
            known = sum(held.values())
            peak, at_peak = each.allocated, {BEFORE: max(each.allocated - known, 0), **held}
    return DeviceMemory(
        device,
        peak,
        max(each.reserved for each in events),
        capacity,
        {part: size for part, size in at_peak.items() if size > 0},
        _highest(points),
    )


def _name_gradients(blocks: Sequence[_Block], parts: Sequence[Part]) -> None:
    """Name blocks of the backward pass that are still there when the optimizer begins, or at the end of a trace without
    one, as gradients."""
    optimizes = [number for number, part in enumerate(parts) if part == "optimizer"]
    for each in blocks:
        place = bisect_right(optimizes, each.since)
        following = optimizes[place] if place < len(optimizes) else len(parts)
        if each.part == "backward" and (each.until is None or each.until > following):
            each.part = "gradients"


def _highest(points: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Of (bytes that stay, bytes that grow) those that are the most for some batch."""
    found: list[tuple[int, int]] = []
    for stays, grows in sorted(set(points), reverse=True):
        while len(found) >= 2 and _below(found[-1], found[-2], (stays, grows)):
            found.pop()
        if not found or grows > found[-1][1]:
            found.append((stays, grows))
    return tuple(found)


def _below(middle: tuple[int, int], first: tuple[int, int], last: tuple[int, int]) -> bool:
    """Whether a point is on or below the line between two others."""
    return (first[0] - middle[0]) * (last[1] - first[1]) >= (middle[1] - first[1]) * (first[0] - last[0])
