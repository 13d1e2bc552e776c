"""Reader of pprof profiles (profile.proto, compressed or not), of Go, pprof exporters of other profilers, and our own.

Most profiles have sums by stack, without times: they become collapsed stacks.  If each sample has a thread and the time
of its end (labels `thread id` or `thread name`, and `end_timestamp_ns`), the profile becomes a recording.
https://github.com/google/pprof/blob/main/proto/profile.proto
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from crystalperf.indexes.errors import InputError
from crystalperf.query.inputs.unsupported import is_pprof as is_pprof
from crystalperf.query.recordings import jfr
from crystalperf.query.recordings.stacktable import MAX_FRAMES, Collapsed, Frame, StackTable, TimedSample, frame_of
from crystalperf.query.recordings.whole import content
from crystalperf.query.trace.records import Problems
from crystalperf.query.trace.wire import BYTES, DamagedMessageError, all_of, fields, last_number, numbers, signed, text

UNIT_NS = {"nanoseconds": 1.0, "microseconds": 1e3, "milliseconds": 1e6, "seconds": 1e9}
EXPORTER = "crystalperf "
"""Start of the comment of CrystalPerf's own exports."""

_END_NS, _THREADS = "end_timestamp_ns", ("thread id", "thread name", "thread_id", "thread_name", "tid", "thread")
_MAX_LINE = 2**31 - 1

_Values = dict[int, list[int | memoryview]]


@dataclass
class _Profile:
    """The fields of a Profile that are read: messages as they came, texts decoded."""

    types: list[_Values] = field(default_factory=list)
    samples: list[memoryview] = field(default_factory=list)
    locations: dict[int, memoryview] = field(default_factory=dict)
    functions: dict[int, _Values] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    comments: list[int] = field(default_factory=list)
    default_type: int = 0

    def text(self, number: int) -> str:
        return self.texts[number] if 0 <= number < len(self.texts) else ""


def read(path: str, problems: Problems) -> Collapsed | jfr.Recording:
    """The stacks of a profile; the weight of each is in ms, or its count if the profile has no time.

    Raises InputError if it is damaged, has no stack, or has neither time nor counts.
    """
    data = content(path, "a pprof profile", problems)
    try:
        profile = _parsed(data)
        chosen, unit_ns = _value(profile, path)
        found = _Reader(path, profile, chosen, unit_ns).read()
    except DamagedMessageError as error:
        raise InputError(f"{path}: not a complete pprof profile ({error}); record it again") from error
    return found


def _parsed(data: bytes) -> _Profile:
    found = _Profile()
    for number, wire, value in fields(data):
        if isinstance(value, int):
            if number == 14:
                found.default_type = value
            elif number == 13:
                found.comments.append(value)
        elif wire != BYTES:
            continue
        elif number == 1:
            found.types.append(all_of(value))
        elif number == 2:
            found.samples.append(value)
        elif number == 4:
            found.locations[last_number(_head(value), 1)] = value
        elif number == 5:
            function = all_of(value)
            found.functions[last_number(function, 1)] = function
        elif number == 6:
            found.texts.append(text(value))
        elif number == 13:
            found.comments += numbers(value)
    return found


def _head(message: memoryview) -> _Values:
    """The numbers of a message, without its parts."""
    return {number: [value] for number, _, value in fields(message) if isinstance(value, int)}


def _value(profile: _Profile, path: str) -> tuple[int, float | None]:
    """The position of the value to read, and its unit in ns; None for counts.  Raises InputError if there is none."""
    types = [(profile.text(last_number(each, 1)), profile.text(last_number(each, 2))) for each in profile.types]
    timed = [at for at, (_, unit) in enumerate(types) if unit in UNIT_NS]
    if timed:
        default = profile.text(profile.default_type)
        chosen = next((at for at in timed if types[at][0] == default), timed[0])
        return chosen, UNIT_NS[types[chosen][1]]
    counted = [at for at, (kind, unit) in enumerate(types) if unit == "count" and kind in ("samples", "cpu", "wall")]
    if not counted:
        kinds = ", ".join(kind for kind, _ in types[:4]) or "nothing"
        raise InputError(f"{path}: a pprof profile of {kinds[:100]}, not of time; record a profile of CPU or wall time")
    return counted[0], None


class _Reader:
    """Reads the samples of one profile."""

    def __init__(self, path: str, profile: _Profile, chosen: int, unit_ns: float | None) -> None:
        self._path, self._profile, self._chosen, self._unit_ns = path, profile, chosen, unit_ns
        self._table = StackTable(path)
        self._numbers: dict[int, list[int]] = {}
        self._threads: dict[str, int] = {}
        self._timed: list[TimedSample] = []

    def read(self) -> Collapsed | jfr.Recording:
        untimed = False
        for message in self._profile.samples:
            sample = all_of(message)
            values = [signed(one) for value in sample.get(2, ()) for one in numbers(value)]
            if self._chosen >= len(values) or values[self._chosen] <= 0:
                continue
            places = [one for value in sample.get(1, ()) for one in numbers(value)]
            weight = values[self._chosen] if self._unit_ns is None else values[self._chosen] * self._unit_ns / 1e6
            stack = self._table.add(self._leaf_first(places), weight)
            when = self._when(sample.get(3, ()))
            if when is None or self._unit_ns is None:
                untimed = True
            else:
                weight_ns = round(values[self._chosen] * self._unit_ns)
                self._timed.append(TimedSample(when[0] - weight_ns, self._thread(when[1]), stack, weight_ns))
        if not self._table:
            raise InputError(f"{self._path}: a pprof profile without a stack; record while the job is busy")
        if untimed or not self._timed:
            comments = map(self._profile.text, self._profile.comments)
            return self._table.collapsed(of_tasks=any(each.startswith(EXPORTER) for each in comments))
        names = [jfr.Thread(name, name, 0, 0) for name in self._threads]
        return self._table.timed(self._timed, names, on_cpu=False)

    def _leaf_first(self, places: Sequence[int]) -> list[int]:
        stack: list[int] = []
        for place in places:
            if place not in self._numbers:
                self._numbers[place] = self._frames(place)
            stack += self._numbers[place]
            if len(stack) >= MAX_FRAMES:
                break
        return stack

    def _frames(self, place: int) -> list[int]:
        """The numbers of the frames of a location, the innermost inlined function first."""
        message = self._profile.locations.get(place)
        if message is None:
            raise DamagedMessageError("a sample names a location that is not in it")
        lines = [value for value in all_of(message).get(4, ()) if not isinstance(value, int)][:MAX_FRAMES]
        if not lines:
            return [self._table.frame(("", "[unknown]", 0))]
        return [self._table.frame(self._frame(all_of(line))) for line in lines]

    def _frame(self, line: _Values) -> Frame:
        function = self._profile.functions.get(last_number(line, 1), {})
        name = self._profile.text(last_number(function, 2)) or "[unknown]"
        file = self._profile.text(last_number(function, 4))
        number = min(max(last_number(line, 2), 0), _MAX_LINE)
        if file.endswith((".py", ".pyx")) or file.startswith("<frozen "):
            return file, name, number
        owner, method, known = frame_of(name)
        return owner, method, number or known

    def _when(self, labels: Sequence[int | memoryview]) -> tuple[int, str] | None:
        """The end of a sample in Unix ns and its thread, None if it does not have both."""
        end_ns, thread = 0, ""
        for message in labels:
            if isinstance(message, int):
                continue
            label = all_of(message)
            key = self._profile.text(last_number(label, 1))
            if key == _END_NS:
                end_ns = last_number(label, 3)
            elif key in _THREADS:
                thread = self._profile.text(last_number(label, 2)) or str(last_number(label, 3)) or thread
        return (end_ns, thread) if end_ns > 0 and thread else None

    def _thread(self, name: str) -> int:
        return self._threads.setdefault(name, len(self._threads))
