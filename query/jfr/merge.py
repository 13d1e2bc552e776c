"""What chunks share: frames, stacks and threads, unique over the whole recording."""

from __future__ import annotations

from array import array

import numpy as np

from .model import I32, I64, Frames, Stacks, Thread
from .pools import Pools

THREAD_LEAVES = ("javaName", "osName", "javaThreadId", "osThreadId", "group")


class FrameTable:
    """Frames and their strings, coded in order of appearance."""

    def __init__(self) -> None:
        self._tables: tuple[dict[str, int], ...] = ({}, {}, {}, {})
        self._frames: dict[tuple[int, int, int, int, int], int] = {}

    def add(self, pools: Pools) -> I32:
        """Codes of a chunk's frames: the result translates the chunk's own frame codes."""
        method_ids = pools.types.ids("jdk.types.Method")
        type_ids = pools.types.ids("jdk.types.FrameType")
        methods: dict[int, tuple[int, int, int]] = {}
        kinds: dict[int, int] = {}
        codes = np.empty(len(pools.stacks.frames), np.int32)
        for i, (method, line, kind) in enumerate(pools.stacks.frames):
            named = methods.get(method)
            if named is None:
                named = methods[method] = self._method(pools, method_ids, method)
            coded = kinds.get(kind)
            if coded is None:
                text = next((t for t in (pools.text(k, kind) for k in type_ids) if t is not None), "")
                coded = kinds[kind] = min(self._code(3, text), 255)
            frame = (*named, line, coded)
            codes[i] = self._frames.setdefault(frame, len(self._frames))
        return codes

    def _code(self, table: int, text: str) -> int:
        strings = self._tables[table]
        return strings.setdefault(text, len(strings))

    def _method(self, pools: Pools, method_ids: list[int], key: int) -> tuple[int, int, int]:
        for type_id in method_ids:
            pool = pools.by_type.get(type_id)
            row = pool.row(key) if pool else None
            if pool is None or row is None:
                continue
            texts = []
            for name in ("type", "name", "descriptor"):
                column = pool.column(name)
                value = row[column] if column >= 0 else None
                leaf = pool.layout[column]
                if column >= 0 and leaf.ref and isinstance(value, int):
                    texts.append(pools.text(leaf.ref, value) or "")
                else:
                    texts.append((pools.string(value) if column >= 0 else None) or "")
            return self._code(0, texts[0].replace("/", ".")), self._code(1, texts[1]), self._code(2, texts[2])
        return self._code(0, ""), self._code(1, ""), self._code(2, "")

    def frames(self) -> Frames:
        table = np.array(list(self._frames), np.int64).reshape(-1, 5)
        columns = [table[:, i].astype(np.int32) for i in range(4)]
        names = [tuple(strings) for strings in self._tables]
        return Frames(*columns, table[:, 4].astype(np.uint8), *names)


class StackTable:
    """Stacks by content: the same frames and truncation are one stack, whichever chunk they come from."""

    def __init__(self) -> None:
        self._stacks: dict[bytes, int] = {}
        self._depth = array("q")
        self._truncated = bytearray()

    def add(self, pools: Pools, frame_codes: I32) -> tuple[I64, I32]:
        """(keys in rising order, stack indexes) of a chunk's stacks."""
        keys, truncated, offsets, codes = pools.stacks.table()
        content = memoryview(frame_codes[codes]).cast("B") if codes.size else memoryview(b"")
        indexes = np.empty(keys.size, np.int32)
        bounds = (offsets * 4).tolist()
        for i, cut in enumerate(truncated.tolist()):
            stack = bytes(content[bounds[i] : bounds[i + 1]]) + (b"t" if cut else b"")
            index = self._stacks.get(stack)
            if index is None:
                index = self._stacks[stack] = len(self._stacks)
                self._depth.append((bounds[i + 1] - bounds[i]) // 4)
                self._truncated.append(cut)
            indexes[i] = index
        return keys, indexes

    def stacks(self) -> Stacks:
        offsets = np.zeros(len(self._depth) + 1, np.int64)
        np.cumsum(np.array(self._depth, np.int64), out=offsets[1:])
        frame_index = np.empty(int(offsets[-1]), np.int32)
        for i, content in enumerate(self._stacks):
            start, end = offsets[i], offsets[i + 1]
            frame_index[start:end] = np.frombuffer(content, np.int32, end - start)
        return Stacks(offsets, frame_index, np.array(self._truncated, np.uint8).astype(np.bool_))


class ThreadTable:
    """Threads by JVM and Java thread id, or OS thread id where there is no Java thread."""

    def __init__(self) -> None:
        self._index: dict[tuple[int, int, int], int] = {}
        self._threads: list[dict[str, str | int]] = []
        self._names: list[dict[str, None]] = []

    def add(self, pools: Pools, jvm: int) -> dict[int, int]:
        """Thread index by the chunk's thread keys; `jvm` tells JVMs in a joined recording apart."""
        by_key: dict[int, int] = {}
        for type_id in pools.types.ids("java.lang.Thread"):
            pool = pools.by_type.get(type_id)
            if pool is None:
                continue
            columns = [pool.column(name) for name in THREAD_LEAVES]
            for key, row in zip(pool.keys, pool.values, strict=True):
                java, os_name, java_tid, os_tid, group = (row[c] if c >= 0 else None for c in columns)
                java_name = pools.string(java) or ""
                tids = [tid if isinstance(tid, int) else 0 for tid in (java_tid, os_tid)]
                identity = (jvm, 0, tids[0]) if tids[0] > 0 else (jvm, 1, tids[1])
                index = self._index.setdefault(identity, len(self._index))
                if index == len(self._threads):
                    self._threads.append({"java_tid": tids[0], "os_tid": tids[1], "jvm": jvm})
                    self._names.append({})
                thread = self._threads[index]
                if java_name:
                    # Taken out and put in again: the last name is the current one.
                    self._names[index].pop(java_name, None)
                    self._names[index][java_name] = None
                thread["os_name"] = pools.string(os_name) or thread.get("os_name", "")
                thread["os_tid"] = tids[1] or thread["os_tid"]
                if isinstance(group, int) and pool.layout[columns[4]].ref:
                    thread["group"] = pools.text(pool.layout[columns[4]].ref, group) or thread.get("group", "")
                by_key[key] = index
        return by_key

    def threads(self, pids: list[int]) -> tuple[Thread, ...]:
        return tuple(
            Thread(
                next(reversed(names), ""),
                str(thread["os_name"]),
                int(thread["java_tid"]),
                int(thread["os_tid"]),
                str(thread.get("group", "")),
                tuple(names),
                pids[int(thread["jvm"])] if int(thread["jvm"]) < len(pids) else 0,
            )
            for thread, names in zip(self._threads, self._names, strict=True)
        )
