"""Decodes events of one type as columns: every field of all events at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from crystalperf.indexes.frozen import frozen

from .chunk import RawChunk
from .metadata import Layout, Leaf, read_string
from .model import F32, I64, U8, Bool
from .pools import read_leaves
from .varint import Truncated, varints_at

Strings = list[str | int | None]


@frozen
class Columns:
    """Fields of n events. A field that the type lacks, or that has another kind, is absent."""

    count: int
    integers: dict[str, I64]
    floats: dict[str, F32]
    strings: dict[str, Strings]
    leaves: dict[str, Leaf]
    damaged: int

    def integer(self, name: str, default: int = 0) -> I64:
        found = self.integers.get(name)
        return found if found is not None else np.full(self.count, default, np.int64)

    def real(self, name: str) -> F32:
        found = self.floats.get(name)
        return found if found is not None else np.zeros(self.count, np.float32)

    def string(self, name: str) -> Strings:
        found = self.strings.get(name)
        return found if found is not None else [None] * self.count


def decode(buf: memoryview, data: U8, starts: I64, ends: I64, layout: Layout, wanted: set[str]) -> Columns:
    """The wanted fields of the events with bodies at `starts`; events that overrun their size are left out."""
    pos = starts.copy()
    good = np.ones(pos.size, np.bool_)
    integers: dict[str, I64] = {}
    floats: dict[str, F32] = {}
    strings: dict[str, Strings] = {}
    leaves: dict[str, Leaf] = {}
    last = max((i for i, leaf in enumerate(layout) if leaf.path in wanted), default=-1)
    for leaf in layout[: last + 1]:
        keep = leaf.path in wanted and leaf.path not in leaves
        if keep:
            leaves[leaf.path] = leaf
        if leaf.code == "v":
            values, pos = varints_at(data, pos)
            if keep:
                integers[leaf.path] = _narrow(values, leaf.bits)
        elif leaf.code == "b":
            if keep:
                integers[leaf.path] = data[np.minimum(pos, data.size - 1)].astype(np.int64)
            pos = pos + 1
        elif leaf.code in "fd":
            width = 4 if leaf.code == "f" else 8
            if keep:
                floats[leaf.path] = _reals(data, pos, width)
            pos = pos + width
        elif leaf.code == "s":
            pos, texts = _strings(buf, data, pos, ends, keep)
            if keep:
                strings[leaf.path] = texts
        else:
            pos = _one_by_one(pos, ends, partial(_skip_array, buf, leaf))
        good &= pos <= ends
        pos = np.minimum(pos, ends)
    damaged = int(good.size - good.sum())
    if damaged:
        integers = {k: v[good] for k, v in integers.items()}
        floats = {k: v[good] for k, v in floats.items()}
        strings = {k: [text for text, ok in zip(v, good.tolist(), strict=True) if ok] for k, v in strings.items()}
    return Columns(int(good.sum()), integers, floats, strings, leaves, damaged)


def _narrow(values: I64, bits: int) -> I64:
    # Recorders write a negative int with 32 or with 64 bits.
    if bits == 64:
        return values
    if bits == 32:
        return values.astype(np.int32).astype(np.int64)
    return values.astype(np.int16).astype(np.int64)


def _reals(data: U8, pos: I64, width: int) -> F32:
    at = np.minimum(pos[:, None] + np.arange(width), data.size - 1)
    kind: npt.DTypeLike = ">f4" if width == 4 else ">f8"
    with np.errstate(over="ignore", invalid="ignore"):
        return np.ascontiguousarray(data[at]).view(kind).reshape(-1).astype(np.float32)


def _skip_array(buf: memoryview, leaf: Leaf, pos: int, end: int) -> int:
    return read_leaves(buf, pos, end, (leaf,), [])


def _one_by_one(pos: I64, ends: I64, after: Callable[[int, int], int]) -> I64:
    result = np.empty_like(pos)
    for i, (start, end) in enumerate(zip(pos.tolist(), ends.tolist(), strict=True)):
        try:
            result[i] = after(start, end)
        except Truncated:
            result[i] = end + 1
    return result


def _strings(buf: memoryview, data: U8, pos: I64, ends: I64, keep: bool) -> tuple[I64, Strings]:
    texts: Strings = []
    if not keep:
        # Skipping needs no text: most strings of wanted events are of the short encodings.
        code = data[np.minimum(pos, data.size - 1)]
        length, after = varints_at(data, pos + 1)
        span = np.where(code >= 3, np.clip(length, 0, data.size), 0)
        behind = np.where(code < 2, pos + 1, after + span)
        behind = np.where((code > 5) | ((code >= 3) & (length < 0)), ends + 1, behind)
        if (code == 4).any():
            rows = np.flatnonzero(code == 4)
            behind[rows] = _one_by_one(pos[rows], ends[rows], lambda p, e: read_string(buf, p, e)[1])
        return behind, texts

    def read(start: int, end: int) -> int:
        text, behind = read_string(buf, start, end)
        texts[-1] = text
        return behind

    def guarded(start: int, end: int) -> int:
        texts.append(None)
        return read(start, end)

    return _one_by_one(pos, ends, guarded), texts


def epoch_ns(values: I64, unit: str, chunk: RawChunk) -> I64:
    """Time stamps in nanoseconds since the epoch; without a unit they count the chunk's ticks."""
    if unit == "NANOSECONDS_SINCE_EPOCH":
        return values
    if unit == "MILLISECONDS_SINCE_EPOCH":
        return np.clip(values, -(10**12), 10**13 - 1) * 1_000_000
    return chunk.start_ns + ticks_to_ns(values - np.int64(chunk.start_ticks), chunk)


def span_ns(values: I64, unit: str, chunk: RawChunk) -> I64:
    """Time spans in nanoseconds; without a unit they are ticks."""
    factor = {
        "NANOSECONDS": 1,
        "MICROSECONDS": 1000,
        "MILLISECONDS": 1_000_000,
        "SECONDS": 1_000_000_000,
    }.get(unit)
    if factor is None:
        return ticks_to_ns(values, chunk)
    limit = (2**63 - 1) // factor
    return np.clip(values, -limit, limit) * factor


def ticks_to_ns(ticks: I64, chunk: RawChunk) -> I64:
    if chunk.ticks_per_s == 1_000_000_000:
        return ticks
    # In two parts, whole seconds and rest: the product of ticks and 10^9 does not fit in 64 bits.
    seconds, rest = np.divmod(ticks, chunk.ticks_per_s)
    if chunk.ticks_per_s < 9_000_000_000:
        rest = rest * 1_000_000_000 // chunk.ticks_per_s
    else:
        rest = (rest.astype(np.float64) * (1e9 / chunk.ticks_per_s)).astype(np.int64)
    return np.clip(seconds, -(2**33), 2**33) * 1_000_000_000 + rest


def within(values: I64, low: int, high: int) -> Bool:
    return (values >= low) & (values <= high)
