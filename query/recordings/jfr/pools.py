"""Reads constant pools: values that events refer to by key, above all stacks.

Stack pools are the bulk of a recording and hold only integers, so they are decoded with numpy, in windows;
pools of integers likewise; pools with strings one entry at a time.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from crystalperf.indexes.frozen import frozen

from .metadata import Layout, Leaf, Types, read_string
from .model import I32, I64, U8, Bool, ProblemLog
from .varint import Truncated, read_varint, varint_stream

WINDOW_BYTES = 4 << 20
FEW_ENTRIES = 24
BATCH_FRAMES = 1 << 17
"""Frames that are selected at once: most pools have a few stacks, and numpy's cost is that of its calls."""
STRING = "java.lang.String"
STACK_TRACE = "jdk.types.StackTrace"


@dataclass
class Pool:
    """Entries of one type in file order, `values[i]` belonging to `keys[i]`; a later entry of a key wins."""

    layout: Layout
    keys: list[int] = field(default_factory=list)
    values: list[list[object]] = field(default_factory=list)
    _rows: dict[int, list[object]] = field(default_factory=dict)

    @cached_property
    def text_column(self) -> int:
        """Index of the first leaf that is a string, -1 if the type has none."""
        return next((i for i, leaf in enumerate(self.layout) if leaf.code == "s"), -1)

    @cached_property
    def name_column(self) -> int:
        """Index of a leaf `name` that refers to another pool's entry, -1 if the type has none."""
        at = self.column("name")
        return at if at >= 0 and self.layout[at].ref else -1

    def row(self, key: int) -> list[object] | None:
        if len(self._rows) == 0 and self.keys:
            self._rows = dict(zip(self.keys, self.values, strict=True))
        return self._rows.get(key)

    def column(self, name: str) -> int:
        """Index of the leaf called `name`, -1 if the type has none."""
        return next((i for i, leaf in enumerate(self.layout) if leaf.path == name), -1)


@frozen
class Frames:
    """Distinct frames of a chunk, by the chunk's own keys of methods."""

    method: I64
    line: I32


class Stacks:
    """The stacks of a chunk that events refer to."""

    def __init__(self, wanted: I64) -> None:
        self._wanted = wanted
        self._read: list[tuple[I64, Bool, I64, I64, I32]] = []
        self._frames_read = 0
        self._parts: list[tuple[I64, Bool, I64, I32]] = []
        self._frames: list[Frames] = []

    def add(self, keys: I64, truncated: Bool, depth: I64, frames: I64, items: Layout) -> None:
        """Add the wanted stacks; `frames` has the frames of all stacks in sequence, `depth` of each."""
        names = [leaf.path.rpartition(".")[2] for leaf in items]
        nothing = np.zeros(len(frames), np.int64)
        method, line = (frames[:, names.index(name)] if name in names else nothing for name in ("method", "lineNumber"))
        self._read.append((keys, truncated, depth, method, line.astype(np.int32)))
        self._frames_read += len(frames)
        if self._frames_read >= BATCH_FRAMES:
            self._select()

    def _select(self) -> None:
        """Keep the wanted ones of the stacks that were read, with their distinct frames."""
        if not self._read:
            return
        keys, truncated, depth, method, line = (np.concatenate(column) for column in zip(*self._read, strict=True))
        self._read, self._frames_read = [], 0
        wanted = np.isin(keys, self._wanted)
        if not wanted.all():
            of_wanted = np.repeat(wanted, depth)
            method, line = method[of_wanted], line[of_wanted]
            keys, truncated, depth = keys[wanted], truncated[wanted], depth[wanted]
        if keys.size:
            distinct, codes = _distinct(Frames(method, line))
            self._frames.append(distinct)
            self._parts.append((keys, truncated, depth, codes))

    def table(self) -> tuple[I64, Bool, I64, I32, Frames]:
        """(keys in ascending order, truncated, start offsets n + 1, frame codes, frames); of equal keys the last."""
        self._select()
        if not self._parts:
            no_frames = Frames(np.empty(0, np.int64), np.empty(0, np.int32))
            no_codes = np.empty(0, np.int32)
            return np.empty(0, np.int64), np.empty(0, np.bool_), np.zeros(1, np.int64), no_codes, no_frames
        keys, truncated, depth, _ = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        frames, of_part = _distinct(
            Frames(
                np.concatenate([part.method for part in self._frames]),
                np.concatenate([part.line for part in self._frames]),
            )
        )
        first = np.cumsum([0, *(part.line.size for part in self._frames)])
        codes = np.concatenate([of_part[first[i] + part[3]] for i, part in enumerate(self._parts)])
        self._parts, self._frames = [], []
        start = np.cumsum(depth) - depth
        # Of equal keys the last in the file: unique() finds the first, so it gets them reversed.
        distinct, last = np.unique(keys[::-1], return_index=True)
        row = keys.size - 1 - last
        if row.size != keys.size or not (np.diff(row) == 1).all():
            offsets = np.concatenate([[0], np.cumsum(depth[row])])
            source = np.repeat(start[row] - offsets[:-1], depth[row]) + np.arange(offsets[-1])
            return distinct, truncated[row], offsets, codes[source], frames
        return distinct, truncated, np.append(start, codes.size), codes, frames


def _distinct(frames: Frames) -> tuple[Frames, I32]:
    """The distinct frames of n frames, and the index int32[n] into them."""
    method, line = frames.method, frames.line.astype(np.int64)
    if not method.size:
        return frames, np.empty(0, np.int32)
    if method.min() >= 0 and method.max() < 1 << 31:
        # Packed into one integer: sorting it is much faster than sorting rows.
        _, first, inverse = np.unique(method << 32 | line + (1 << 31), return_index=True, return_inverse=True)
    else:
        table = np.stack([method, line], axis=1)
        _, first, inverse = np.unique(table, axis=0, return_index=True, return_inverse=True)
    return Frames(method[first], frames.line[first]), inverse.reshape(-1).astype(np.int32)


@dataclass
class Pools:
    """All pools of a chunk by type id."""

    types: Types
    stacks: Stacks
    by_type: dict[int, Pool] = field(default_factory=dict)
    _texts: dict[tuple[int, int], str | None] = field(default_factory=dict)

    def string(self, value: object) -> str | None:
        """Text of a string value: itself, or the entry of its key in the pool of strings."""
        if not isinstance(value, int):
            return value if isinstance(value, str) else None
        for type_id in self.types.ids(STRING):
            pool = self.by_type.get(type_id)
            row = pool.row(value) if pool else None
            if row and isinstance(row[0], str):
                return row[0]
        return None

    def named(self, leaf: Leaf, value: object) -> str | None:
        """Text of a field of a pool's entry: its string, or the name of the entry that it refers to."""
        if leaf.ref:
            return self.text(leaf.ref, value) if isinstance(value, int) else None
        return self.string(value)

    def text(self, type_id: int, key: int) -> str | None:
        """The name of a pool's entry: its first string, or the name it refers to. None if unknown."""
        known = self._texts.get((type_id, key))
        if known is not None or (type_id, key) in self._texts:
            return known
        at, step, found = (type_id, key), 0, None
        while step < 4:
            step += 1
            pool = self.by_type.get(at[0])
            row = pool.row(at[1]) if pool else None
            if pool is None or row is None:
                break
            if pool.text_column >= 0:
                found = self.string(row[pool.text_column])
                break
            column = pool.name_column
            value = row[column] if column >= 0 else None
            if not isinstance(value, int):
                break
            at = (pool.layout[column].ref, value)
        self._texts[type_id, key] = found
        return found


@frozen
class PoolReader:
    """Reads the constant pools of a chunk: the types `keep`, and the stacks that `pools` wants."""

    buf: memoryview
    pools: Pools
    keep: set[int]
    log: ProblemLog
    place: str

    def read(self, bodies: Iterable[tuple[int, int]]) -> None:
        """Read the constant pool events at `bodies` into `pools`."""
        budget = 8 * len(self.buf)  # damaged events may overlap; without a limit the work would grow with their number
        for pos, end in bodies:
            budget -= end - pos
            if budget < 0:
                self._lost("pool overlap", pos, "constant pools overlap; the rest was skipped")
                break
            try:
                self._event(pos, end)
            except Truncated:
                self._lost("pool damaged", pos, "a constant pool is damaged from here on")

    def _lost(self, name: str, pos: int, meaning: str) -> None:
        self.log.add(name, "data loss", f"{self.place}, byte {pos}", meaning)

    def _event(self, pos: int, end: int) -> None:
        buf, pools = self.buf, self.pools
        data: U8 = np.frombuffer(buf, np.uint8)
        for _ in range(3):  # start, duration, offset of the next event
            _, pos = read_varint(buf, pos, end)
        pos += 1  # what kind of checkpoint
        count, pos = read_varint(buf, pos, end)
        for _ in range(min(count, end - pos)):
            type_id, pos = read_varint(buf, pos, end)
            entries, pos = read_varint(buf, pos, end)
            entries &= 0xFFFFFFFF
            if entries == 0:
                continue
            if entries > end - pos:
                raise Truncated
            layout = pools.types.layout(type_id)
            if layout is None:
                self._lost("unknown pool", pos, "a pool of an undescribed type hides those behind it")
                return
            if pools.types.name(type_id) == STACK_TRACE and (shape := _stack_shape(layout)):
                pos = _read_stacks(data, pos, end, entries, layout, shape, pools.stacks)
                continue
            pool = pools.by_type.setdefault(type_id, Pool(layout)) if type_id in self.keep else None
            if entries > FEW_ENTRIES and _integers(layout):
                pos = _read_integers(data, pos, end, entries, len(layout), pool)
            else:
                pos = _read_entries(buf, pos, end, entries, layout, pool)


def _read_entries(buf: memoryview, pos: int, end: int, entries: int, layout: Layout, pool: Pool | None) -> int:
    for _ in range(entries):
        key, pos = read_varint(buf, pos, end)
        row: list[object] = []
        pos = read_leaves(buf, pos, end, layout, row)
        if pool is not None:
            pool.keys.append(key)
            pool.values.append(row)
    return pos


def read_leaves(buf: memoryview, pos: int, end: int, layout: Layout, row: list[object]) -> int:
    """Append the values of a layout at `pos` to `row` (None for arrays and floats); position behind them."""
    value: object
    for leaf in layout:
        value = None
        if leaf.code == "v":
            value, pos = read_varint(buf, pos, end)
        elif leaf.code == "s":
            value, pos = read_string(buf, pos, end)
        elif leaf.code == "b":
            value = buf[pos] if pos < end else None
            pos += 1
        elif leaf.code == "a":
            count, pos = read_varint(buf, pos, end)
            if not 0 <= count <= end - pos:
                raise Truncated
            for _ in range(count if leaf.items else 0):
                pos = read_leaves(buf, pos, end, leaf.items, [])
        else:
            pos += 4 if leaf.code == "f" else 8
        if pos > end:
            raise Truncated
        row.append(value)
    return pos


def _read_integers(data: U8, pos: int, end: int, entries: int, columns: int, pool: Pool | None) -> int:
    """Entries of integers only, by window. A boolean is one byte, 0 or 1, and so reads as an integer."""
    width = columns + 1
    while entries:
        window = min(end - pos, max(4096, min(entries * width * 4, WINDOW_BYTES)))
        values, ends = varint_stream(data[pos : pos + window])
        whole = min(entries, values.size // width)
        if whole == 0:
            raise Truncated
        if pool is not None:
            table = values[: whole * width].reshape(whole, width)
            pool.keys.extend(table[:, 0].tolist())
            pool.values.extend(table[:, 1:].tolist())
        pos += int(ends[whole * width - 1])
        entries -= whole
    return pos


def _integers(leaves: Iterable[Leaf]) -> bool:
    return all(leaf.code == "v" or (leaf.code == "b" and leaf.bits == 1) for leaf in leaves)


def _stack_shape(layout: Layout) -> tuple[int, int] | None:
    """(index of the array of frames, of the truncated flag or -1) if the type is integers around one array."""
    arrays = [i for i, leaf in enumerate(layout) if leaf.code == "a"]
    rest = [leaf for leaf in layout if leaf.code != "a"]
    if len(arrays) != 1 or not _integers([*rest, *layout[arrays[0]].items]) or not layout[arrays[0]].items:
        return None
    flag = next((i for i, leaf in enumerate(layout) if leaf.path == "truncated"), -1)
    return arrays[0], flag


def _read_stacks(
    data: U8, pos: int, end: int, entries: int, layout: Layout, shape: tuple[int, int], stacks: Stacks
) -> int:
    array_at, flag_at = shape
    items = layout[array_at].items
    before, after, width = 1 + array_at, len(layout) - array_at - 1, len(items)
    first_window = max(1024, min(entries * 256, WINDOW_BYTES))
    window = first_window
    while entries:
        size = min(end - pos, window)
        values, ends = varint_stream(data[pos : pos + size])
        starts, following = _chain(values, entries, before, width, after)
        if not starts.size:
            if size == end - pos:
                raise Truncated
            window *= 4  # one stack longer than the window
            continue
        window = first_window
        flag = np.zeros(starts.size, np.bool_)
        if flag_at >= 0:
            flag = values[starts + 1 + flag_at if flag_at < array_at else following - len(layout) + flag_at] != 0
        used = int(following[-1])
        is_frame = np.ones(used, np.bool_)
        for i in range(before + 1):
            is_frame[starts + i] = False
        for i in range(after):
            is_frame[following - 1 - i] = False
        stacks.add(values[starts], flag, values[starts + before], values[:used][is_frame].reshape(-1, width), items)
        pos += int(ends[used - 1])
        entries -= starts.size
    return pos


def _chain(values: I64, entries: int, before: int, width: int, after: int) -> tuple[I64, I64]:
    """Start and end, as indexes of `values`, of up to `entries` whole stacks."""
    starts, following = array("q"), array("q")
    quick = memoryview(values.data)  # plain integers: three times faster than numpy's
    at, size = 0, values.size
    for _ in range(entries):
        head = at + before
        if head >= size:
            break
        depth = quick[head]
        behind = head + 1 + depth * width + after
        if depth < 0 or behind > size:
            break
        starts.append(at)
        following.append(behind)
        at = behind
    return np.array(starts, np.int64), np.array(following, np.int64)
