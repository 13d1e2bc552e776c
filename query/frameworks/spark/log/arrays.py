"""Event logs that a tool rewrote as one JSON array of events, instead of one event a line.

Spark itself writes lines.  An array is read as a whole, so its size is bounded.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import msgspec

from crystalperf.query.inputs.containers import Batch, LogFile, Part, batches, head, pieces
from crystalperf.query.trace.records import Problems

_MAX_BYTES = 256 << 20
"""Maximum size of an array, unpacked: it is in memory as a whole, with the positions of its events."""

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
    try:
        yield from (bytes(each) for each in msgspec.json.decode(text.lstrip(_BLANK), type=list[msgspec.Raw]))
        return
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    whole = text.decode("utf-8", errors="replace")
    place = whole.find("[") + 1
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
        problems.add("truncated_line", "data loss", part.name, f"character {place}", meaning)
