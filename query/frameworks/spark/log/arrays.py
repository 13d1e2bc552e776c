"""Event logs that a tool rewrote as one JSON array of events, instead of one event a line.

Spark itself writes lines.  An array is read as a whole, so its size is bounded.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain

import msgspec

from crystalperf.indexes.regex import regex
from crystalperf.query.inputs.bounds import is_dense
from crystalperf.query.inputs.containers import Batch, LogFile, Part, batches, head, pieces
from crystalperf.query.trace.records import Problems

_MAX_BYTES = 256 << 20
"""Maximum size of an array, unpacked: it is in memory as a whole, with the positions of its events."""

_CHUNK_BYTES = 4 << 20
"""Text whose events are separated at once: each takes 100 bytes more, and the text may be a list of empty ones."""

_BORDER = regex(rb'\}\s*,\s*(?=\{\s*"Event"\s*:)')
_BLANK = b" \t\r\n\xef\xbb\xbf"
_FIRST_BYTES = 256
_NEXT = json.JSONDecoder().raw_decode


def is_array(text: bytes) -> bool:
    """Whether a text, of which the start is enough, begins an array of objects."""
    start = text.lstrip(_BLANK)
    return start.startswith(b"[") and start[1:].lstrip(_BLANK)[:1] in (b"{", b"")


def array_of(log: LogFile) -> Part | None:
    """The part of a log that is one array; None for a log of lines."""
    if len(log.parts) != 1:  # only Spark writes logs of several parts
        return None
    return log.parts[0] if is_array(head(log.parts[0], _FIRST_BYTES)) else None


def event_batches(log: LogFile, problems: Problems) -> Iterator[Batch]:
    """The events of a log, a line each; the events of an array become lines.  Raises what batches() raises."""
    part = array_of(log)
    if part is None:
        yield from batches(log, problems)
        return
    found: list[bytes] = []
    size = 0
    for piece in pieces(part, problems):
        found.append(piece)
        size += len(piece)
        if size > _MAX_BYTES:
            meaning = (
                f"a JSON array of more than {_MAX_BYTES >> 20} MiB is read up to there; write one event a line, for"
                " example with `jq -c '.[]'`"
            )
            problems.add("overlong_line", "data loss", part.name, None, meaning)
            break
    text = b"".join(found)
    del found
    for number, event in enumerate(elements(text, part, problems), 1):
        yield Batch(part, number, event)


def elements(text: bytes, part: Part | None = None, problems: Problems | None = None) -> Iterator[bytes]:
    """The elements of an array, each as its JSON text; of an array that is cut off, the complete ones."""
    begin = text.find(b"[") + 1
    for end in chain(_borders(text, begin), (len(text),)):
        chunk = text[begin:end]
        try:
            found = _raw_list(b"[" + chunk if end == len(text) else b"[" + chunk.rstrip().removesuffix(b",") + b"]")
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            break
        yield from map(bytes, found)
        begin = end
    else:
        return
    whole = text[begin:].decode("utf-8", errors="replace")
    place = 0
    while True:
        while place < len(whole) and whole[place] in " \t\r\n,":
            place += 1
        if place >= len(whole) or whole[place] == "]":
            break
        try:
            _, end = _NEXT(whole, place)
        except (ValueError, RecursionError):
            break
        yield whole[place:end].encode("utf-8", errors="replace")
        place = end
    if problems is not None and part is not None and whole[place : place + 1] != "]":
        meaning = "the array of events is cut off or damaged; its later events are missing"
        problems.add("truncated_line", "data loss", part.name, f"character {begin + place}", meaning)


_raw = msgspec.json.Decoder(list[msgspec.Raw])


def _raw_list(text: bytes) -> list[msgspec.Raw]:
    """The elements of an array.  Raises MsgspecError, also for a text that may have too many."""
    if is_dense(text):
        raise msgspec.DecodeError("too many elements")
    return _raw.decode(text)


def _borders(text: bytes, begin: int) -> Iterator[int]:
    """Places between two events, at least _CHUNK_BYTES apart."""
    while (found := _BORDER.search(text, begin + _CHUNK_BYTES)) is not None:
        begin = found.end()
        yield begin
