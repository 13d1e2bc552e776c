"""Traces in Chrome's JSON format as a stream of events: PyTorch's, TensorFlow's timeline, MXNet's.

A trace is {"traceEvents": [EVENT, …], …} or the list alone, in one line or in many, and may be larger than memory.  So
the reader splits it between events, and decodes each chunk of whole events at once.  The content outside of the list is
small and is decoded by itself.

Some writers do not escape text (backslashes of Windows' paths, line ends) and write numbers that JSON does not have
(inf, nan); the reader fixes both.  A chunk that still cannot be decoded is read event by event, and its damaged events
are left out and counted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import msgspec

from crystalperf.indexes.regex import regex
from crystalperf.query.frameworks.ml.training.times import Doubts
from crystalperf.query.inputs.bounds import check_undecodable
from crystalperf.query.inputs.containers import LogFile, Part, pieces
from crystalperf.query.trace.records import LARGEST, Problems

CHUNK_BYTES = 4 << 20
"""Text that is decoded at once."""

_MAX_TRIES = 40
"""Maximum ends of objects that are tried, from the last one backwards, until one is the end of an event."""

_MAX_PIECES = 8
"""In a damaged chunk, the maximum places within an event that may look like its end."""

_MAX_BYTES = 4 * CHUNK_BYTES
"""Maximum text without the end of an event; more of it is left out."""

_MAX_HEADER_BYTES = 16 << 20
_EVENTS = regex(rb'"traceEvents"\s*:\s*\[')
_BETWEEN = regex(rb"\}\s*,\s*\{")
_LAST = regex(rb'\}\s*(?=\]\s*(?:,\s*"|\}?\s*\Z))')
_CONTROLS = bytes.maketrans(bytes(range(32)), b" " * 32)
_UNESCAPED = regex(rb'(?<!\\)((?:\\\\)*+)\\(?!["/bfnrt]|u[0-9a-fA-F]{4}|u?[0-9a-fA-F]{0,3}\Z)')
"""A backslash that begins no escape; pairs of them before it.  Valid escapes match nothing: there may be millions."""

_NO_NUMBER = regex(rb"([:\[,]\s*)[-+]?(?:inf(?:inity)?|nan(?:\(\w*\))?)(?=\s*[,}\]])", re.IGNORECASE)


class Args(msgspec.Struct, gc=False, frozen=True):
    """The arguments of an event besides its times; profilers name them differently."""

    name: Any = None
    op: Any = None
    correlation: Any = None
    stream: Any = None
    bytes: Any = None
    dims: Any = msgspec.field(default=None, name="Input Dims")
    types: Any = msgspec.field(default=None, name="Input type")
    strides: Any = msgspec.field(default=None, name="Input Strides")
    arguments: Any = msgspec.field(default=None, name="Concrete Inputs")
    grid: Any = None
    block: Any = None
    collective: Any = msgspec.field(default=None, name="Collective name")
    group: Any = msgspec.field(default=None, name="Process Group Name")
    ranks: Any = msgspec.field(default=None, name="Process Group Ranks")
    in_elements: Any = msgspec.field(default=None, name="In msg nelems")
    element_type: Any = msgspec.field(default=None, name="dtype")
    allocated: Any = msgspec.field(default=None, name="Total Allocated")
    reserved: Any = msgspec.field(default=None, name="Total Reserved")
    size: Any = msgspec.field(default=None, name="Bytes")
    address: Any = msgspec.field(default=None, name="Addr")
    device: Any = msgspec.field(default=None, name="Device Id")
    device_type: Any = msgspec.field(default=None, name="Device Type")
    step_num: Any = None
    hlo_op: Any = None
    hlo_module: Any = None
    tf_op: Any = None
    correlation_id: Any = None
    memcpy_details: Any = None
    input0: Any = None
    input1: Any = None
    input2: Any = None
    input3: Any = None
    input4: Any = None
    input5: Any = None
    input6: Any = None
    input7: Any = None
    input8: Any = None
    input9: Any = None

    @property
    def inputs(self) -> list[str]:
        """Names of the operators whose outputs this one takes, in TensorFlow's timeline."""
        found = (getattr(self, f"input{number}") for number in range(10))
        return [each for each in found if isinstance(each, str)]

    @property
    def stats(self) -> dict[str, str]:
        """The stats of the event's XPlane that its trace viewer's file has."""
        found = ((name, getattr(self, name)) for name in _STATS)
        return {name: str(value) for name, value in found if isinstance(value, str | int | float)}


_STATS = ("step_num", "hlo_op", "hlo_module", "tf_op", "correlation_id", "memcpy_details")
NO_ARGS = Args()


class Event(msgspec.Struct, gc=False, frozen=True):
    """One event; times in µs.  Fields that are missing or of another kind are None."""

    ph: str = ""
    name: Any = None
    cat: Any = None
    ts: float | str | None = None
    dur: float | str | None = None
    pid: int | str | float | None = None
    tid: int | str | float | None = None
    id: Any = None
    args: Any = None

    @property
    def facts(self) -> Args:
        """Its known arguments."""
        if not isinstance(self.args, dict):
            return NO_ARGS
        try:
            return msgspec.convert(self.args, Args, strict=False)
        except msgspec.ValidationError:
            return NO_ARGS


class _Typed(Event, gc=False, frozen=True):
    args: Args | None = None

    @property
    def facts(self) -> Args:
        return self.args or NO_ARGS


class _Timed(msgspec.Struct, gc=False, frozen=True):
    """Of an event only what shows that it is later than others."""

    ph: str = ""
    ts: float = math.nan
    dur: float = math.nan


_timed = msgspec.json.Decoder(list[_Timed])
_typed = msgspec.json.Decoder(list[_Typed], strict=False)
_loose = msgspec.json.Decoder(list[Event], strict=False)


def read(
    log: LogFile,
    part: Part,
    problems: Problems,
    header: dict[str, Any],
    until_us: Callable[[], float] = lambda: math.inf,
) -> Iterator[list[Event]]:
    """The events of one file in order, many at a time; `header` gets the members outside of the list.

    Damaged events are left out and reported in `problems`, and many at once that all begin at `until_us` or later.
    """
    stream = pieces(part, problems)
    text = b""
    inside = False
    enough = CHUNK_BYTES
    damaged = 0
    for piece in stream:
        text += piece
        if not inside:
            start = _start(text)
            if start is None:
                if len(text) > _MAX_HEADER_BYTES:
                    break
                continue
            _take_header(text[: start[0]], header)
            text, inside = text[start[1] :], True
        if len(text) >= enough:
            events, text, lost = _whole_events(text, part.name, until_us())
            damaged += lost
            if len(text) > _MAX_BYTES:
                _report_damage(problems, part, "a section without complete events was left out")
                text = b""
            enough = max(CHUNK_BYTES, 2 * len(text))  # an incomplete event is not searched again for every piece
            yield events
    if inside:
        events, lost = _rest(text, part, problems, header)
        damaged += lost
        yield events
    if damaged:
        events_are = "1 event that cannot be read was" if damaged == 1 else f"{damaged} events that cannot be read were"
        _report_damage(problems, part, f"{events_are} left out")


def _start(text: bytes) -> tuple[int, int] | None:
    """Where the header ends, and where the events begin; None if the text does not reach that far."""
    if text.lstrip()[:1] == b"[":
        return 0, text.index(b"[") + 1
    found = _EVENTS.search(text)
    return None if found is None else (found.start(), found.end())


def _take_header(text: bytes, header: dict[str, Any]) -> None:
    """The members before the list of events: `{"a": 1, "b": {…},`."""
    found = _decoded_members(text.strip().rstrip(b","), b"", b"}")
    header.update(found)


def _decoded_members(text: bytes, before: bytes, after: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(before + text + after)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return found if isinstance(found, dict) else {}


def _whole_events(text: bytes, name: str, until_us: float) -> tuple[list[Event], bytes, int]:
    """The whole events at the beginning of a text, the rest of it, and the number of damaged events."""
    found = _at_once(text, until_us)
    if found is None:
        text = _repaired(text)
        found = _at_once(text, until_us)
    return _one_by_one(text, name) if found is None else (*found, 0)


def _at_once(text: bytes, until_us: float) -> tuple[list[Event], bytes] | None:
    """The whole events and the rest; None if some are damaged, or no end of an event was found."""
    end = len(text)
    for _ in range(_MAX_TRIES):
        brace = text.rfind(b"}", 0, end)
        if brace < 0:
            break
        if (between := _BETWEEN.match(text, brace)) is not None:
            events = [] if _are_later(text[: brace + 1], until_us) else _decode(text[: brace + 1])
            if not isinstance(events, str):
                return events, text[between.end() - 1 :]
            if events == "damaged":
                break
        end = brace
    return None


def _one_by_one(text: bytes, name: str, *, goes_on: bool = True) -> tuple[list[Event], bytes, int]:
    """The valid events, the rest after the last border between two events, and the number of damaged events.

    At a border one object of a list ends and the next begins.  Lists within an event have borders too, and its texts
    may have what looks like one.  If the text goes on, an incomplete event stays in the rest.
    Raises InputError if too many events are damaged.
    """
    borders = [(each.start() + 1, each.end() - 1) for each in _BETWEEN.finditer(text)]
    found: list[Event] = []
    begin = place = damaged = unreadable = 0
    while place < len(borders):
        events: list[Event] | Literal["cut", "damaged"] = "cut"
        last = place
        while events == "cut" and last < min(place + _MAX_PIECES, len(borders)):
            events = _decode(text[begin : borders[last][0]])
            last += 1
        if events == "cut" and last == len(borders) and goes_on:
            break
        if isinstance(events, str):
            last = place + 1  # the next candidate may be the next event
            unreadable += 1
            check_undecodable(unreadable, unreadable + len(found), name, "events")
            damaged += b'"ph"' in text[begin : borders[place][0]]
        else:
            found += events
        begin, place = borders[last - 1][1], last
    return found, text[begin:], damaged


def _repaired(text: bytes) -> bytes:
    """The text with backslashes escaped, and null in place of numbers that JSON does not have."""
    text = text.translate(_CONTROLS)
    if b"\\" in text:
        text = _UNESCAPED.sub(rb"\1\\\\", text)
    return _NO_NUMBER.sub(rb"\1null", text)


def _decode(text: bytes) -> list[Event] | Literal["cut", "damaged"]:
    """Events separated by commas; "cut" if the text ends within one, "damaged" if it is invalid."""
    whole = b"[" + text + b"]"
    try:
        return _typed.decode(whole)  # type: ignore[return-value]
    except msgspec.ValidationError:
        pass
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return "cut" if "truncated" in str(error) else "damaged"
    try:
        return _loose.decode(whole)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "damaged"


def _are_later(text: bytes, until_us: float) -> bool:
    """Whether a reader needs none of these events: all are undamaged, and begin at a time or later.

    An event without a time of its own, or one half of a pair, may change others.
    """
    if until_us == math.inf or not text.isascii() or b"\\" in text or b"async_npu" in text:
        return False  # a text without its decoding could be damaged, and flows of Ascend's profiler name it
    try:
        events = _timed.decode(b"[" + text + b"]")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    least = max(until_us, 1.0)
    return all(
        (each.ph == "X" and least <= each.ts <= LARGEST and 0 <= each.dur <= LARGEST) or each.ph in ("s", "t", "f")
        for each in events
    )


def _rest(text: bytes, part: Part, problems: Problems, header: dict[str, Any]) -> tuple[list[Event], int]:
    """The last events, and how many of them are damaged; `header` gets the members after them."""
    if (events := _closed(text, header)) is not None:
        return events, 0
    text = _repaired(text)
    if (events := _closed(text, header)) is not None:
        return events, 0
    found, left, damaged = _one_by_one(text, part.name)
    events = _closed(left, header)
    if events is None:
        more, left, lost = _one_by_one(left, part.name, goes_on=False)
        found, damaged = [*found, *more], damaged + lost
        read = _decode(left.rstrip().rstrip(b","))  # Chrome's format permits a list without its end
        if not isinstance(read, str):
            events = read
        elif (end := _LAST.search(left)) is not None:
            _closed(left[end.end() :], header)
            damaged += b'"ph"' in left
        else:
            _report_damage(problems, part, "it ends within an event; later events are missing")
    return [*found, *(events or [])], damaged


def _closed(text: bytes, header: dict[str, Any]) -> list[Event] | None:
    """The events up to the end of their list; None if it has no end, or some of them are damaged."""
    for end in _ends(text):
        body = text[:end].rstrip().rstrip(b",")
        events = _decode(body) if body else []
        behind = text[end + 1 :].strip()
        if not isinstance(events, str) and (behind in (b"", b"}") or behind.startswith(b",")):
            header.update(_decoded_members(behind[1:], b"{", b""))
            return events
    return None


def _ends(text: bytes) -> Iterator[int]:
    """Candidates for the end of the list of events: brackets, from the last one backwards."""
    if not (stripped := text.strip()) or stripped.startswith(b"]"):
        yield len(text) - len(text.lstrip())
        return
    end = len(text)
    for _ in range(_MAX_TRIES):
        end = text.rfind(b"]", 0, end)
        if end < 0:
            return
        yield end


def _report_damage(problems: Problems, part: Part, meaning: str) -> None:
    problems.add("damaged trace", "data loss", part.name, None, f"a trace is damaged: {meaning}")


class Pairs:
    """Joins the begin and end events (B, E) of each thread of one file into complete ones (X).

    An end with a name ends the last open event of that name on its thread, any other end the last open event.
    """

    def __init__(self, doubts: Doubts) -> None:
        self._doubts = doubts
        self._open: dict[tuple[object, object], list[Event]] = {}

    def joined(self, events: Sequence[Event]) -> Sequence[Event]:
        """The events with complete ones in place of ends, in the same order, or by time if a thread's are not."""
        pairs = [each for each in events if each.ph in ("B", "E")]
        if not pairs:
            return events
        if not _is_ordered(pairs):  # the format allows any order
            others = [each for each in events if each.ph not in ("B", "E")]
            events = [*others, *sorted(pairs, key=lambda each: number(each.ts) or 0.0)]
        return [*self._joined(events)]

    def _joined(self, events: Sequence[Event]) -> Iterator[Event]:
        for each in events:
            if each.ph == "B":
                self._open.setdefault((each.pid, each.tid), []).append(each)
            elif each.ph != "E":
                yield each
            elif (begun := self._ended_by(each)) is None:
                self._doubts.counts["unpaired"] += 1
            else:
                start, end = number(begun.ts), number(each.ts)
                length = None if start is None or end is None else end - start
                yield msgspec.structs.replace(begun, ph="X", ts=start, dur=length)

    def _ended_by(self, end: Event) -> Event | None:
        begun = self._open.get((end.pid, end.tid), [])
        for place in range(len(begun) - 1, -1, -1):
            if end.name is None or end.name == "" or begun[place].name == end.name:
                return begun.pop(place)
        return None

    def finish(self) -> None:
        """Count the events that never ended."""
        self._doubts.counts["unpaired"] += sum(map(len, self._open.values()))
        self._open.clear()


def _is_ordered(events: Sequence[Event]) -> bool:
    """Whether the times of each thread's events never decrease."""
    last: dict[tuple[object, object], float] = {}
    for each in events:
        time, thread = number(each.ts) or 0.0, (each.pid, each.tid)
        if time < last.get(thread, time):
            return False
        last[thread] = time
    return True


def number(value: float | str | None) -> float | None:
    """A time in µs; None if it is not a number up to LARGEST.  Older writers put it into quotes."""
    try:
        found = math.nan if value is None else float(value)
    except ValueError:
        return None
    return found if abs(found) <= LARGEST else None


def is_json(text: bytes) -> bool:
    """Whether a file with this beginning may be JSON."""
    return text.lstrip()[:1] in (b"{", b"[")
