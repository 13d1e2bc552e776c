"""Decodes JFR's integers: LEB128 of at most nine bytes, the ninth with eight bits. All results are signed 64-bit.

Integers may be padded (more bytes than needed); a negative int may come as 32 or as 64 bits, so callers cut
values to the width that the metadata declares.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .model import I64, U8

Buffer = Sequence[int] | memoryview | bytes


class Truncated(Exception):
    """A value extends beyond its bytes."""


def read_varint(buf: Buffer, pos: int, end: int) -> tuple[int, int]:
    """(value, position after it) of the integer at `pos`. Raises Truncated if it does not end before `end`."""
    value = 0
    shift = 0
    while shift < 56:
        if pos >= end:
            raise Truncated
        byte = buf[pos]
        pos += 1
        if byte < 128:
            return value | byte << shift, pos
        value |= (byte & 127) << shift
        shift += 7
    if pos >= end:
        raise Truncated
    value |= buf[pos] << 56
    return (value - (1 << 64) if value >= 1 << 63 else value), pos + 1


def varints_at(data: U8, pos: I64) -> tuple[I64, I64]:
    """Integers at many positions at once: (values, positions after them).

    Positions behind the data read its last byte repeatedly: callers compare the returned positions
    with the end of their data.
    """
    last = data.size - 1
    byte = data[np.minimum(pos, last)]
    value = (byte & 127).astype(np.uint64)
    after = pos + 1
    more = np.flatnonzero(byte >= 128)
    shift = 7
    while more.size:
        byte = data[np.minimum(after[more], last)]
        after[more] += 1
        if shift == 56:
            value[more] |= byte.astype(np.uint64) << np.uint64(56)
            break
        value[more] |= (byte & 127).astype(np.uint64) << np.uint64(shift)
        more = more[byte >= 128]
        shift += 7
    return value.view(np.int64), after


def varint_stream(data: U8) -> tuple[I64, I64]:
    """All consecutive integers in `data`: (values, end of each), without an unfinished last one."""
    ends = np.flatnonzero(data < 128) + 1
    if data.size and (not ends.size or ends[-1] != data.size):
        ends = np.append(ends, data.size)
    starts = np.empty_like(ends)
    if ends.size:
        starts[0] = 0
        starts[1:] = ends[:-1]
    length = ends - starts
    if length.size and length.max() > 9:
        # A ninth byte has no continuation bit, so a run of bytes over 127 holds one integer per nine of them.
        parts = (length + 8) // 9
        first = np.repeat(np.cumsum(parts) - parts, parts)
        within = np.arange(int(parts.sum())) - first
        starts = np.repeat(starts, parts) + 9 * within
        ends = np.minimum(starts + 9, np.repeat(ends, parts))
        length = ends - starts
    if length.size and length[-1] < 9 and data[-1] >= 128:
        starts, ends = starts[:-1], ends[:-1]
    values, _ = varints_at(data, starts.astype(np.int64)) if starts.size else (np.empty(0, np.int64), None)
    return values, ends.astype(np.int64)


def distinct(values: I64) -> tuple[I64, I64]:
    """The distinct values in ascending order, and the number of each value among them: np.unique without its sort.

    Keys of a chunk are small, and a million events refer to few of them.
    """
    if not values.size or values.min() < 0 or ((most := int(values.max())) > 1 << 16 and most > 4 * values.size):
        return np.unique(values, return_inverse=True)
    known = np.zeros(most + 1, np.bool_)
    known[values] = True
    codes = np.cumsum(known) - 1
    return np.flatnonzero(known), codes[values]
