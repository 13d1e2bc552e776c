"""Reads a recording chunk by chunk, and merges the chunks into one Recording."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path
from typing import BinaryIO

from . import chunk as chunks_
from .chunk import RawChunk, Walk
from .extract import ChunkReader
from .merge import Merged
from .metadata import Types, read_types
from .model import JfrError, ProblemLog, Recording
from .source import load
from .varint import Truncated


def read(source: str | Path | bytes | BinaryIO) -> Recording:
    """Read a Java flight recording (JFR 2.x: JDK 9 to 25, 8u262 on, async-profiler), plain or in gzip or lz4.

    Several chunks and joined recordings give one Recording; a cut or damaged one gives its intact part, and
    `problems` lists the rest. Nothing is executed, memory is bounded by the input's size.

    Raises JfrError if nothing can be read: not a recording, an older format, no chunk with its metadata.
    """
    log = ProblemLog()
    view, name = load(source, log)
    raw_chunks = _without_duplicates(view, chunks_.split(view, name, log), log)
    merged = Merged()
    readable = 0
    for number, raw in enumerate(raw_chunks, 1):
        readable += _read_chunk(view[raw.offset : raw.offset + raw.size], raw, f"chunk {number}", merged, log)
    if not readable:
        raise JfrError(
            f"{name}: no chunk has readable type descriptions, which are written last: the recorder was killed, "
            "or the file was cut or damaged, and nothing in it can be recovered."
        )
    return merged.recording(log)


def _without_duplicates(view: memoryview, raw_chunks: list[RawChunk], log: ProblemLog) -> list[RawChunk]:
    """Drop repeated chunks: joined recordings of one JVM may have a chunk twice, and count its samples twice."""
    headers = Counter((raw.start_ns, raw.size) for raw in raw_chunks)
    kept: list[RawChunk] = []
    seen: set[bytes] = set()
    for raw in raw_chunks:
        if headers[raw.start_ns, raw.size] > 1:
            digest = hashlib.blake2b(view[raw.offset : raw.offset + raw.size]).digest()
            if digest in seen:
                meaning = "a chunk that occurs twice was counted once"
                log.add("duplicate chunk", "info", f"byte {raw.offset}", meaning)
                continue
            seen.add(digest)
        kept.append(raw)
    return kept


def _read_chunk(buf: memoryview, raw: RawChunk, place: str, merged: Merged, log: ProblemLog) -> bool:
    """Read one chunk into `merged`; False (and a problem) if it has no readable metadata."""
    chain = chunks_.pool_chain(buf, raw.pool_offset)
    types: Types | None = None
    walked: Walk | None = None
    if not raw.compressed:
        log.add("plain integers", "error", place, "a chunk whose integers are not compressed is not read")
    else:
        types = _types(buf, raw, None)
        walked = chunks_.walk(buf, [*chain, raw.metadata_offset], types.event_ids() if types else None)
        types = types or _types(buf, raw, walked)
        if types is None:
            log.add("no metadata", "data loss", place, "a chunk without its type descriptions cannot be read")
        elif walked.lost_bytes:
            meaning = "bytes that are not an event were skipped"
            first = f"{place}, byte {walked.first_lost}"
            log.add("lost bytes", "data loss", first, meaning, walked.lost_bytes)
    if types is None or walked is None:
        return False
    ChunkReader(buf, raw, types, walked, chain, place, merged, log).read()
    return True


def _types(buf: memoryview, raw: RawChunk, walked: Walk | None) -> Types | None:
    """The metadata that the header points to, or the last readable one that the walk found."""
    candidates = []
    if walked is not None:
        starts, ends = (each.get(chunks_.METADATA, ()) for each in (walked.starts, walked.ends))
        candidates = list(zip(starts, ends, strict=True))[:-9:-1]
    elif chunks_.HEADER_BYTES <= raw.metadata_offset < len(buf):
        body = chunks_.event_body(buf, raw.metadata_offset, chunks_.METADATA)
        candidates = [body] if body else []
    for start, end in candidates:
        try:
            return read_types(buf, start, end)
        except Truncated:
            continue
    return None
