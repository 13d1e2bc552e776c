"""Finds the chunks of a recording, parses their headers, and locates their events.

Header, 68 bytes, big-endian: magic, major and minor version (2 bytes each), then 8 bytes each: size of the
chunk, offset of the last constant pool event, offset of the metadata event, start (ns since the epoch),
duration (ns), start (ticks), ticks per second; then a byte that is not 0 while the chunk is being written,
and a last byte of flags (1: integers are compressed).
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Set

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.regex import regex

from .beginning import MAGIC
from .model import JfrError, ProblemLog
from .varint import Truncated, read_varint

HEADER = struct.Struct(">4sHHqqqqqqqI")
HEADER_BYTES = HEADER.size
NEXT_HEADER = regex(rb"FLR\0\0\x02")
METADATA, CONSTANT_POOL = 0, 1
RESUME_EVENTS = 8  # valid events in a row that cannot be a coincidence
MAX_EPOCH_NS = 4_000_000_000_000_000_000  # year 2096


@frozen
class RawChunk:
    """A chunk's header, and the position of its bytes in the recording; offsets count from the chunk's start."""

    offset: int
    size: int
    pool_offset: int
    metadata_offset: int
    start_ns: int
    duration_ns: int
    start_ticks: int
    ticks_per_s: int
    compressed: bool
    complete: bool


def split(view: memoryview, name: str, log: ProblemLog) -> list[RawChunk]:
    """The recording's chunks in file order. Raises JfrError for an unsupported version."""
    chunks: list[RawChunk] = []
    pos = 0
    while pos < len(view):
        place = f"byte {pos}"
        if bytes(view[pos : pos + 4]) != MAGIC or len(view) - pos < HEADER_BYTES:
            following = _next_header(view, pos + 1)
            log.add(
                "foreign bytes",
                "data loss",
                place,
                "bytes between or behind the chunks were skipped",
                following - pos,
            )
            pos = following
            continue
        (_, major, minor, size, pool, metadata, start_ns, duration, ticks, per_s, flags) = HEADER.unpack_from(view, pos)
        if major != 2:
            if not chunks:
                raise JfrError(
                    f"{name}: a recording of format {major}.{minor} (Oracle JDK 7 to 9), not read here; "
                    "record with JDK 11, 8u262 or later."
                )
            log.add("foreign version", "error", place, f"a chunk of format {major}.{minor} was skipped")
            pos = _next_header(view, pos + 4)
            continue
        inside = HEADER_BYTES <= metadata < size and HEADER_BYTES <= pool < size
        end = pos + size
        complete = inside and end <= len(view) and flags >> 24 == 0
        if not complete:
            end = _cut_end(view, pos, (start_ns, ticks))
            meaning = "a chunk without its end: the recorder was killed or the file was cut"
            log.add("chunk cut", "data loss", place, meaning)
        if not 0 < per_s < 1 << 40:
            log.add("clock missing", "error", place, "ticks per second are damaged; nanoseconds assumed")
            per_s, complete = 1_000_000_000, False
        if not 0 < start_ns < MAX_EPOCH_NS or not 0 <= duration < MAX_EPOCH_NS:
            log.add("time damaged", "error", place, "the chunk's start or duration is out of range; 0 assumed")
            start_ns, duration, complete = 0, 0, False
        chunks.append(
            RawChunk(
                pos,
                end - pos,
                pool,
                metadata,
                start_ns,
                duration,
                ticks,
                per_s,
                bool(flags & 1),
                complete,
            )
        )
        pos = end
    return chunks


def _next_header(view: memoryview, pos: int) -> int:
    found = NEXT_HEADER.search(view, pos)
    return found.start() if found else len(view)


def _cut_end(view: memoryview, start: int, clock: tuple[int, int]) -> int:
    """The start of the next chunk behind one of unknown size.

    Not every header in the bytes begins a chunk: while it records, HotSpot puts copies of the chunk's own header
    into constant pool events. `clock` is the chunk's start in (ns, ticks), which identifies a copy.
    """
    at: int | None = start + HEADER_BYTES
    candidate = _next_header(view, start + HEADER_BYTES)
    while candidate + HEADER_BYTES <= len(view):
        header = HEADER.unpack_from(view, candidate)
        is_copy = (header[6], header[8]) == clock
        kind = CONSTANT_POOL
        while at is not None and at < candidate:
            try:
                size, body = read_varint(view, at, len(view))
                kind, _ = read_varint(view, body, len(view))
            except Truncated:
                size = 0
            at = at + size if 0 < size <= len(view) - at else None
        # Behind damage (None) a copy is indistinguishable from the same chunk joined twice.
        if at == candidate or not is_copy or (at is not None and kind != CONSTANT_POOL):
            return candidate
        candidate = _next_header(view, candidate + 4 if at is None else at)
    return len(view)


@frozen
class Walk:
    """Positions of the bodies of events (behind size and type) by type id, and of bytes that are not events."""

    starts: dict[int, array[int]]
    ends: dict[int, array[int]]
    lost_bytes: int
    first_lost: int


def walk(buf: memoryview, anchors: Iterable[int], types: Set[int] | None) -> Walk:
    """One pass over a chunk's events.

    Damage is skipped up to the next sequence of events of known `types`, at the latest up to the next of `anchors`,
    known event positions. Damage is not always a fault of storage: a JVM that records an event while it finishes
    another writes the one into the other.
    """
    starts: dict[int, array[int]] = {}
    ends: dict[int, array[int]] = {}
    known = sorted(set(anchors))
    lost, first_lost = 0, -1
    pos, end = HEADER_BYTES, len(buf)
    while pos < end:
        here = pos
        try:
            # Integers are decoded inline: this loop runs once per event of the recording.
            size = buf[pos]
            if size < 128:
                pos += 1
            elif end - pos > 4 and buf[pos + 1] >= 128 and buf[pos + 2] >= 128 and buf[pos + 3] < 128:
                # Padded to four bytes, as most recorders write sizes.
                size = size & 127 | (buf[pos + 1] & 127) << 7 | (buf[pos + 2] & 127) << 14 | buf[pos + 3] << 21
                pos += 4
            else:
                size, pos = read_varint(buf, pos, end)
            kind = buf[pos] if pos < end else 128
            if kind < 128:
                pos += 1
            else:
                kind, pos = read_varint(buf, pos, end)
            if size < pos - here or size > end - here:
                raise Truncated
        except Truncated:
            pos = here
            while pos < end and buf[pos] == 0:  # zero bytes where an event was to begin: padding
                pos += 1
            if pos == here:
                following = bisect_right(known, here)
                pos = _resume(buf, here + 1, known[following] if following < len(known) else end, types)
            lost += pos - here
            first_lost = here if first_lost < 0 else first_lost
            continue
        pos, body = here + size, pos
        of_kind = starts.get(kind)
        if of_kind is None:
            of_kind = starts[kind] = array("q")
            ends[kind] = array("q")
        of_kind.append(body)
        ends[kind].append(pos)
    return Walk(starts, ends, lost, first_lost)


def _resume(buf: memoryview, pos: int, end: int, types: Set[int] | None) -> int:
    """The position of the next sequence of events of known types at or behind `pos`; `end` if there is none."""
    while types and pos < end:
        behind, events = _follow(buf, pos, end, end, types)
        if events == RESUME_EVENTS or (events and behind == end):
            # A seeming event may be the rest of the damaged one, whose size covers whole events.
            first, _ = _follow(buf, pos, pos + 1, end, types)
            for inner in range(pos + 1, first):
                _, within = _follow(buf, inner, first, end, types)
                if within >= 3 and _follow(buf, inner, end, end, types)[1] == RESUME_EVENTS:
                    return inner
            return pos
        pos += 1
    return end


def _follow(buf: memoryview, pos: int, until: int, end: int, types: Set[int]) -> tuple[int, int]:
    """(position, number) behind at most RESUME_EVENTS whole events of known types that begin before `until`."""
    events = 0
    while events < RESUME_EVENTS and pos < until:
        try:
            size, body = read_varint(buf, pos, end)
            kind, body = read_varint(buf, body, end)
        except Truncated:
            break
        if kind not in types or not body - pos < size <= end - pos:
            break
        pos += size
        events += 1
    return pos, events


def event_body(buf: memoryview, pos: int, kind: int) -> tuple[int, int] | None:
    """(start of the body, end) of the event at `pos` if it is whole and of type `kind`."""
    try:
        size, body = read_varint(buf, pos, len(buf))
        found, body = read_varint(buf, body, len(buf))
    except (Truncated, IndexError):
        return None
    return (body, pos + size) if found == kind and body <= pos + size <= len(buf) else None


def pool_chain(buf: memoryview, last: int) -> list[int]:
    """Positions of the chunk's constant pool events, following each one's offset to the next, each once."""
    seen: set[int] = set()
    pos = last
    while HEADER_BYTES <= pos < len(buf) and pos not in seen:
        body = event_body(buf, pos, CONSTANT_POOL)
        if body is None:
            break
        seen.add(pos)
        try:
            _, at = read_varint(buf, body[0], body[1])
            _, at = read_varint(buf, at, body[1])
            delta, _ = read_varint(buf, at, body[1])
        except Truncated:
            break
        pos += delta
    return sorted(seen)
