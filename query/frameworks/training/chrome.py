"""Traces in Chrome's JSON format as a stream of events: PyTorch's, TensorFlow's timeline, MXNet's.

A trace is {"traceEvents": [EVENT, …], …} or the list alone, in one line or in many, and may be larger than memory.  So
it is cut where one event ends and the next begins, and each stretch of whole events is decoded at once.  What stands
outside of the list is small and is decoded by itself.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from query.inputs.containers import LogFile, Part, pieces
from query.model.records import Problems

CHUNK_BYTES = 4 << 20
"""Text that is decoded at a time."""

_MOST_TRIES = 40
"""Ends of objects looked at, from the last one on, until one turns out to be the end of an event."""

_MOST_HEADER_BYTES = 16 << 20
_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
_BETWEEN = re.compile(rb"\}\s*,\s*\{")


class Args(msgspec.Struct, gc=False, frozen=True):
    """What profilers say of an event beside its times; each names its fields otherwise."""

    name: Any = None
    op: Any = None
    external_id: Any = msgspec.field(default=None, name="External id")
    correlation: Any = None
    stream: Any = None
    bytes: Any = None
    dims: Any = msgspec.field(default=None, name="Input Dims")
    types: Any = msgspec.field(default=None, name="Input type")
    sequence: Any = msgspec.field(default=None, name="Sequence number")
    sync_kind: Any = msgspec.field(default=None, name="cuda_sync_kind")
    collective: Any = msgspec.field(default=None, name="Collective name")
    in_elements: Any = msgspec.field(default=None, name="In msg nelems")
    element_type: Any = msgspec.field(default=None, name="dtype")
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
        """Names of the operators whose outputs this one takes, as TensorFlow's timeline has them."""
        found = (getattr(self, f"input{number}") for number in range(10))
        return [each for each in found if isinstance(each, str)]


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
        """Its arguments as far as they are known here."""
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


_typed = msgspec.json.Decoder(list[_Typed], strict=False)
_loose = msgspec.json.Decoder(list[Event], strict=False)


def read(log: LogFile, part: Part, problems: Problems, header: dict[str, Any]) -> Iterator[list[Event]]:
    """The events of one file in order, many at a time; `header` gets what stands beside them.

    What cannot be decoded is told in `problems`, and the rest is given out.
    """
    stream = pieces(part, problems)
    text = b""
    inside = False
    for piece in stream:
        text += piece
        if not inside:
            start = _start(text)
            if start is None:
                if len(text) > _MOST_HEADER_BYTES:
                    break
                continue
            _take_header(text[: start[0]], header)
            text, inside = text[start[1] :], True
        if len(text) >= CHUNK_BYTES:
            events, text = _whole_events(text)
            if events is None:
                if len(text) > 16 * CHUNK_BYTES:
                    _tell_damage(problems, part, "a stretch without whole events was left out")
                    text = b""
                continue
            yield events
    if inside:
        yield from _rest(text, part, problems, header)


def _start(text: bytes) -> tuple[int, int] | None:
    """Where what stands before the events ends, and where the events begin; None where that is not there yet."""
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


def _whole_events(text: bytes) -> tuple[list[Event] | None, bytes]:
    """The whole events at the beginning of a text, and what is left; None where no end of an event was found."""
    end = len(text)
    for _ in range(_MOST_TRIES):
        brace = text.rfind(b"}", 0, end)
        if brace < 0:
            break
        between = _BETWEEN.match(text, brace)
        if between is not None and (events := _decode(text[: brace + 1])) is not None:
            return events, text[between.end() - 1 :]
        end = brace
    return None, text


def _decode(text: bytes) -> list[Event] | None:
    """Events with commas between them; None where the text is not that."""
    whole = b"[" + text + b"]"
    try:
        return _typed.decode(whole)  # type: ignore[return-value]
    except msgspec.ValidationError:
        pass
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    try:
        return _loose.decode(whole)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _rest(text: bytes, part: Part, problems: Problems, header: dict[str, Any]) -> Iterator[list[Event]]:
    """The last events, and what stands behind them."""
    for end in _ends(text):
        body = text[:end].rstrip().rstrip(b",")
        events = _decode(body) if body else []
        if events is not None:
            tail = text[end:].lstrip()
            if not tail.startswith(b"]") and not header.get("unclosed"):
                _note_cut(text, end, part, problems)
            elif tail[1:].lstrip().startswith(b","):
                header.update(_decoded_members(tail[1:].lstrip()[1:], b"{", b""))
            yield events
            return
    _tell_damage(problems, part, "the events at its end cannot be read")


def _ends(text: bytes) -> Iterator[int]:
    """Where the list of events may end: at a bracket from behind, else behind an object from behind."""
    stripped = text.rstrip()
    if not stripped or stripped.startswith(b"]"):
        yield 0
        return
    end = len(text)
    for _ in range(_MOST_TRIES):
        bracket = text.rfind(b"]", 0, end)
        if bracket < 0:
            break
        yield bracket
        end = bracket
    if stripped.endswith((b"}", b"},")):
        yield len(text)
    end = len(text)
    for _ in range(_MOST_TRIES):
        brace = text.rfind(b"}", 0, end)
        if brace < 0:
            return
        yield brace + 1
        end = brace


def _note_cut(text: bytes, end: int, part: Part, problems: Problems) -> None:
    """A list of events without its end: Chrome's format permits that, so only a torn event is a loss."""
    if text[end:].strip().strip(b","):
        _tell_damage(problems, part, "it ends within an event; what was after that place is missing")


def _tell_damage(problems: Problems, part: Part, meaning: str) -> None:
    problems.add("damaged trace", "data loss", part.name, None, f"a trace is damaged: {meaning}")


def number(value: float | str | None) -> float | None:
    """A time in µs, None for one that is no number or endless; older writers put it into quotes."""
    try:
        found = math.nan if value is None else float(value)
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def is_json(text: bytes) -> bool:
    """Whether a file that begins so may be JSON."""
    return text.lstrip()[:1] in (b"{", b"[")


def compact(value: Any, most: int = 200) -> str:
    """A value of a header as short text."""
    text = value if isinstance(value, str) else json.dumps(value)
    return text[:most]
