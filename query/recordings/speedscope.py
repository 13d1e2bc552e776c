"""Reader of speedscope's file format: sampled and evented profiles of time.

Its times count from an arbitrary start, so stacks become collapsed ones; if they are Unix times, a recording, in which
each profile is a thread.  https://www.speedscope.app/file-format-schema.json
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from crystalperf.indexes.errors import InputError
from crystalperf.indexes.regex import regex
from crystalperf.query.recordings import jfr
from crystalperf.query.recordings.own_export import is_resource_frame
from crystalperf.query.recordings.stacktable import Collapsed, Frame, SampledThread, StackTable, TimedSample, frame_of
from crystalperf.query.recordings.whole import content
from crystalperf.query.trace.records import Problems

UNIT_NS = {"nanoseconds": 1.0, "microseconds": 1e3, "milliseconds": 1e6, "seconds": 1e9, "none": 1e6}
"""Units of time in ns; a weight of `none`, which counts samples, is read as ms."""

_MARK = regex(rb'"\$schema"\s*:\s*"https?://(?:www\.)?speedscope\.app/file-format-schema\.json"')
_UNIX_NS, _LAST_NS = 1e18, 4e18
"""Times between these are Unix times: from 2001 to 2096."""
_LABEL = regex(r"\[.*\]")
_MAX_LINE = 2**31 - 1


class _Frame(msgspec.Struct):
    name: str
    file: str | None = None
    line: float | None = None


class _Event(msgspec.Struct):
    type: str
    at: float
    frame: int


class _OneProfile(msgspec.Struct):
    type: str
    name: str = ""
    unit: str = "none"
    startValue: float = 0.0
    samples: list[list[int]] = []
    weights: list[float] = []
    events: list[_Event] = []


class _Shared(msgspec.Struct):
    frames: list[_Frame]


class _File(msgspec.Struct):
    shared: _Shared
    profiles: list[_OneProfile]
    exporter: str | None = None


def is_speedscope(beginning: bytes) -> bool:
    """Whether a file with this beginning is in speedscope's format."""
    return _MARK.search(beginning) is not None


def read(path: str, problems: Problems) -> Collapsed | jfr.Recording:
    """The stacks of all profiles of time in a file, their weights in ms.

    Raises InputError if the file is damaged, or has no profile of time.
    """
    data = content(path, "a speedscope file", problems)
    try:
        file = msgspec.json.decode(data, type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path}: not a complete speedscope file ({error}); export it again") from error
    timed = [each for each in file.profiles if each.unit in UNIT_NS]
    if not timed:
        raise InputError(f"{path}: its profiles are not of time; record a profile of CPU or wall time")
    try:
        return _stacks(path, file, timed)
    except IndexError as error:
        raise InputError(f"{path}: not a valid speedscope file (an unknown frame); export it again") from error


def _stacks(path: str, file: _File, profiles: list[_OneProfile]) -> Collapsed | jfr.Recording:
    table = StackTable(path)
    numbers: dict[int, int] = {}

    def number_of(frame: int) -> int:
        if frame not in numbers:  # frames of CrystalPerf's own that name stages and resources get no number
            numbers[frame] = table.frame(_frame(file.shared.frames[frame]))
        return numbers[frame]

    own = (file.exporter or "").startswith("crystalperf")
    resource = {at for at, each in enumerate(file.shared.frames) if is_resource_frame(each.name)} if own else set()
    labels = {at for at, each in enumerate(file.shared.frames) if _LABEL.fullmatch(each.name)} if own else set()
    samples: list[TimedSample] = []
    threads: list[SampledThread] = []
    unix = True
    for thread, profile in enumerate(profiles):
        unit_ns = UNIT_NS[profile.unit]
        order: list[tuple[int, float]] = []
        for start, length, stack in _intervals(path, profile):
            if stack and stack[-1] in resource:
                stack = stack[:-1]
            if stack and stack[0] in labels:
                stack = stack[1:]
            if not length > 0 or not stack or not math.isfinite(length * unit_ns):
                continue
            if min(stack) < 0:
                raise IndexError
            number = table.add([number_of(each) for each in reversed(stack)], length * unit_ns / 1e6)
            order.append((number, length * unit_ns / 1e6))
            unix = unix and _UNIX_NS < start * unit_ns < _LAST_NS
            if unix:
                samples.append(TimedSample(round(start * unit_ns), thread, number, round(length * unit_ns)))
        threads.append(_thread(profile.name, order))
    if not table:
        raise InputError(f"{path}: a speedscope file without a stack; record while the job is busy")
    if not unix:
        unit_ms = None if any(each.unit == "none" for each in profiles) else 1.0
        return table.collapsed(of_tasks=own, unit_ms=unit_ms, threads=threads)
    return table.timed(samples, [jfr.Thread(each.name, each.name, 0, 0) for each in profiles], on_cpu=False)


def _thread(name: str, order: Sequence[tuple[int, float]]) -> SampledThread:
    stacks = np.array([stack for stack, _ in order], dtype=np.int64)
    return SampledThread(name, stacks, np.array([weight for _, weight in order], dtype=np.float64))


def _frame(frame: _Frame) -> Frame:
    line = int(frame.line) if frame.line is not None and 0 < frame.line < _MAX_LINE else 0
    if frame.file and (frame.file.endswith((".py", ".pyx")) or frame.file.startswith("<frozen ")):
        return frame.file, frame.name, line
    owner, method, known = frame_of(frame.name)
    return owner, method, line or known


def _intervals(path: str, profile: _OneProfile) -> Iterator[tuple[float, float, list[int]]]:
    """Start, length and stack, the root first, of each interval, in the profile's unit."""
    if profile.type == "sampled":
        if len(profile.samples) != len(profile.weights):
            raise InputError(f"{path}: a profile has {len(profile.samples)} samples and {len(profile.weights)} weights")
        at = profile.startValue
        for stack, weight in zip(profile.samples, profile.weights, strict=True):
            yield at, weight, stack
            at += weight
        return
    open_frames: list[int] = []
    at = profile.startValue
    for event in profile.events:
        if open_frames and event.at > at:
            yield at, event.at - at, open_frames.copy()
        at = event.at
        if event.type == "O":
            open_frames.append(event.frame)
        elif not open_frames or open_frames.pop() != event.frame:
            raise InputError(f"{path}: not a valid speedscope file (a frame ends that is not open); export it again")
