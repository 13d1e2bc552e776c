"""Generate a run with recordings of any size: `python -m lab.costs.made_recording --tasks 100000 -o DIR`.

It writes the log of lab.costs.made_log and one recording for each executor.  The recordings have the types, threads and
stacks of a real one, whose task stacks are varied by line number.  Each task has a sample of a random stack every
20 ms, each executor a sample of a thread in native code, and a thread without a task is parked.  A chunk ends after
some 12 MB, as the JVM's do.  The same seed gives the same bytes.
"""

from __future__ import annotations

import argparse
import json
import struct
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from crystalperf.query.recordings.jfr import chunk as chunks
from crystalperf.query.recordings.jfr import model, reader
from crystalperf.query.recordings.jfr.extract import KEPT_POOLS
from crystalperf.query.recordings.jfr.metadata import Layout, Types
from crystalperf.query.recordings.jfr.pools import PoolReader, Pools, Stacks
from crystalperf.query.recordings.jfr.source import load
from lab.costs.made_log import START_MS, lines

TEMPLATE = Path(__file__).resolve().parents[1] / "recordings" / "demo-q9" / "executor-0.jfr.gz"
TICK_MS = 20
CHUNK_EVENTS = 12_000_000 // 20
"""Samples of a chunk: the JVM begins a new one after 12 MB."""

_TICKS_PER_MS = 1_000_000
_FIRST_KEY = 1 << 24
"""The key of the first varied stack; the template's are smaller."""

_MOST_KEYS = 1 << 15
"""Keys of stacks of the template that are read."""

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Stack = tuple[Ints, NDArray[np.int32]]
"""The keys of the methods of a stack, and the lines."""


def padded(values: Ints, width: int) -> Bytes:
    """Integers as LEB128 of `width` bytes each, (values, width)."""
    shifts = 7 * np.arange(width)
    found = ((values[:, None] >> shifts) & 127).astype(np.uint8)
    found[:, :-1] |= 128
    return found


def integer(value: int) -> bytes:
    """An integer as LEB128."""
    width = max((value.bit_length() + 6) // 7, 1)
    return padded(np.array([value]), width).tobytes()


def text(value: str) -> bytes:
    """A string in UTF-8."""
    raw = value.encode()
    return b"\x03" + integer(len(raw)) + raw


def event(kind: int, body: bytes) -> bytes:
    """An event with its size in four bytes, as the JVM writes it."""
    inner = integer(kind) + body
    return padded(np.array([4 + len(inner)]), 4).tobytes() + inner


def encoded(layout: Layout, values: dict[str, int | str]) -> bytes:
    """The body of an event with these fields, others 0 or empty."""
    parts = []
    for leaf in layout:
        value = values.get(leaf.path, "" if leaf.code == "s" else 0)
        if leaf.code == "s":
            parts.append(text(str(value)))
        elif leaf.code == "v":
            parts.append(integer(int(value)))
        else:
            parts.append(bytes({"b": 1, "f": 4, "d": 8}[leaf.code]))
    return b"".join(parts)


@dataclass(frozen=True)
class Template:
    """The parts of a real recording that made ones take over: types, pools, and keys of threads and stacks."""

    types: Types
    metadata: bytes
    pools: bytes
    settings: bytes
    threads: Ints
    working: tuple[Stack, ...]
    native: int
    parked: int
    runnable: int

    def kind(self, name: str) -> int:
        return self.types.ids(name)[0]

    def layout(self, name: str) -> Layout:
        found = self.types.layout(self.kind(name))
        assert found is not None
        return found


def template(path: Path) -> Template:
    """The first chunk of a recording of an executor by the JVM's recorder."""
    log = model.ProblemLog()
    view, name = load(path, log)
    raw = chunks.split(view, name, log)[0]
    buf = view[raw.offset : raw.offset + raw.size]
    types = reader._types(buf, raw, None)
    assert types is not None
    walked = chunks.walk(buf, (), None)

    def bodies(kind: int) -> list[tuple[int, int]]:
        return list(zip(walked.starts.get(kind, ()), walked.ends.get(kind, ()), strict=True))

    def events(kind: int) -> bytes:
        return b"".join(event(kind, bytes(buf[start:end])) for start, end in bodies(kind))

    pools = Pools(types, Stacks(np.arange(_MOST_KEYS)))
    keep = {each for kept in KEPT_POOLS for each in types.ids(kept)}
    PoolReader(buf, pools, keep, log, name).read(bodies(chunks.CONSTANT_POOL))
    keys, _, offsets, codes, frames = pools.stacks.table()
    methods = _methods(pools, frames.method)
    names = [" ".join(methods[codes[offsets[i] : offsets[i + 1]]]) for i in range(len(keys))]
    working = [i for i, each in enumerate(names) if "Executor$TaskRunner.run" in each]
    parked = next(i for i, each in enumerate(names) if "ThreadPoolExecutor.getTask" in each)
    native = next(i for i, each in enumerate(names) if "epollWait" in each or "accept" in each)
    stacks = [codes[offsets[i] : offsets[i + 1]] for i in working]
    of_type = pools.by_type
    threads = [key for each in types.ids("java.lang.Thread") for key in of_type[each].keys]
    states = {pools.text(each, key): key for each in types.ids("jdk.types.ThreadState") for key in of_type[each].keys}
    settings = [events(each) for kind in ("ActiveSetting", "CPUInformation") for each in types.ids(f"jdk.{kind}")]
    return Template(
        types,
        events(chunks.METADATA),
        events(chunks.CONSTANT_POOL),
        b"".join(settings),
        np.array(sorted(set(threads)), np.int64),
        tuple((frames.method[each], frames.line[each]) for each in stacks),
        int(keys[native]),
        int(keys[parked]),
        states.get("STATE_RUNNABLE", 0),
    )


def _methods(pools: Pools, keys: Ints) -> NDArray[np.object_]:
    """The class and method of frames by their methods' keys."""
    known = {}
    for type_id in pools.types.ids("jdk.types.Method"):
        pool = pools.by_type[type_id]
        owner, name = pool.column("type"), pool.column("name")
        for key, row in zip(pool.keys, pool.values, strict=True):
            parts = (pools.named(pool.layout[each], row[each]) or "" for each in (owner, name))
            known[key] = ".".join(parts).replace("/", ".")
    return np.array([known.get(key, "") for key in keys.tolist()], object)


def _stack_pool(of: Template, count: int, seed: int) -> bytes:
    """A constant pool of stacks of tasks, each as one of the template with other lines of its three top frames."""
    random = np.random.default_rng(seed)
    kind = of.kind("jdk.types.StackTrace")
    parts = [integer(1), integer(0), integer(0), b"\0", integer(1), integer(kind), integer(count)]
    for number, chosen in enumerate(random.integers(len(of.working), size=count).tolist()):
        methods, line = of.working[chosen]
        moved = np.maximum(line, 1).astype(np.int64)
        moved[:3] += number % 97
        parts += [integer(_FIRST_KEY + number), b"\0", integer(len(methods))]
        frames = np.hstack([padded(methods, 5), padded(moved, 3), np.zeros((len(methods), 2), np.uint8)])
        parts.append(frames.tobytes())
    return event(chunks.CONSTANT_POOL, b"".join(parts))


def _samples(kind: int, at_ms: Ints, thread: Ints, stack: Ints, state: int) -> Bytes:
    """Samples in the JVM's layout: startTime, sampledThread, stackTrace, state."""
    count = np.ones(len(at_ms), np.int64)
    columns = [padded(count * (4 + 1 + 7 + 4 + 5 + 1), 4), padded(count * kind, 1)]
    columns += [padded(at_ms * _TICKS_PER_MS, 7), padded(thread, 4), padded(stack, 5), padded(count * state, 1)]
    return np.hstack(columns)


def recording(
    of: Template, stacks: int, executor: int, app_id: str, slots: Sequence[Sequence[tuple[int, int]]], seed: int
) -> Iterator[bytes]:
    """The chunks of an executor's recording; `slots` are the (launch, finish) of its tasks, ms since START_MS."""
    random = np.random.default_rng((seed, executor))
    pools = of.pools + _stack_pool(of, stacks, seed + executor)
    at: list[Ints] = []
    thread: list[Ints] = []
    parks: list[tuple[int, int, int]] = []
    for key, tasks in zip(of.threads.tolist(), slots, strict=False):
        free = 0
        for launch, finish in tasks:
            if launch - free > 1:
                parks.append((launch, free, key))
            at.append(np.arange(launch + random.integers(1, TICK_MS), finish, TICK_MS))
            thread.append(np.full(len(at[-1]), key))
            free = finish
    at_ms, of_thread = np.concatenate(at), np.concatenate(thread)
    end = int(at_ms.max()) + TICK_MS
    chosen = _FIRST_KEY + random.integers(stacks, size=len(at_ms))
    running = _samples(of.kind("jdk.ExecutionSample"), at_ms, of_thread, chosen, of.runnable)
    idle_ms = np.arange(0, end, TICK_MS)
    same = np.ones(len(idle_ms), np.int64)
    idle = _samples(
        of.kind("jdk.NativeMethodSample"), idle_ms, same * int(of.threads[-1]), same * of.native, of.runnable
    )
    every, every_ms = np.vstack([running, idle]), np.concatenate([at_ms, idle_ms])
    every = every[np.argsort(every_ms, kind="stable")]
    every_ms.sort()
    arguments = (
        "org.apache.spark.executor.CoarseGrainedExecutorBackend --driver-url spark://driver:1"
        f" --executor-id {executor} --hostname node --cores {len(slots)} --app-id {app_id}"
    )
    begun = 0
    for first in range(0, len(every), CHUNK_EVENTS):
        last = min(first + CHUNK_EVENTS, len(every))
        until = end if last == len(every) else int(every_ms[last])
        parked = [each for each in parks if begun <= each[0] < until]
        jvm: dict[str, int | str] = {
            "startTime": begun * _TICKS_PER_MS,
            "javaArguments": arguments,
            "pid": 1000 + executor,
        }
        parts = [
            of.settings,
            event(of.kind("jdk.JVMInformation"), encoded(of.layout("jdk.JVMInformation"), jvm)),
            *(_park(of, *each) for each in parked),
            every[first:last].tobytes(),
        ]
        yield _chunk(of, pools, b"".join(parts), begun, until)
        begun = until


def _park(of: Template, until_ms: int, since_ms: int, thread: int) -> bytes:
    fields: dict[str, int | str] = {
        "startTime": since_ms * _TICKS_PER_MS,
        "duration": (until_ms - since_ms) * _TICKS_PER_MS,
        "eventThread": thread,
        "stackTrace": of.parked,
    }
    return event(of.kind("jdk.ThreadPark"), encoded(of.layout("jdk.ThreadPark"), fields))


def _chunk(of: Template, pools: bytes, events: bytes, begun_ms: int, until_ms: int) -> bytes:
    """A chunk of these events; its header has the positions of the metadata and a constant pool."""
    metadata_at = chunks.HEADER_BYTES
    pool_at = metadata_at + len(of.metadata) + len(events)
    size = pool_at + len(pools)
    duration_ns = (until_ms - begun_ms) * 1_000_000
    begun_ns = (START_MS + begun_ms) * 1_000_000
    numbers = (size, pool_at, metadata_at, begun_ns, duration_ns, begun_ms * _TICKS_PER_MS, 1000 * _TICKS_PER_MS)
    header = struct.pack(chunks.HEADER.format, b"FLR\0", 2, 1, *numbers, 1)
    return header + of.metadata + events + pools


def slots_of(log: Path, cores: int) -> tuple[str, dict[int, list[list[tuple[int, int]]]]]:
    """The application of a made log, and the (launch, finish) of the tasks on each slot of each executor, ms."""
    tasks: list[tuple[int, int, int]] = []
    app_id = ""
    with log.open(encoding="utf-8") as stream:
        for line in stream:
            if line.startswith('{"Event":"SparkListenerTaskEnd"'):
                info = json.loads(line)["Task Info"]
                times = (info["Launch Time"] - START_MS, info["Finish Time"] - START_MS)
                tasks.append((*times, int(info["Executor ID"])))
            elif line.startswith('{"Event":"SparkListenerApplicationStart"'):
                app_id = json.loads(line)["App ID"]
    found: dict[int, list[list[tuple[int, int]]]] = {}
    for launch, finish, executor in sorted(tasks):
        slots = found.setdefault(executor, [[] for _ in range(cores)])
        slot = min(slots, key=lambda each: each[-1][1] if each else 0)
        slot.append((launch, finish))
    return app_id, found


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m lab.costs.made_recording", description=__doc__.split("\n")[0])
    parser.add_argument("--tasks", type=int, default=100_000, metavar="N", help="task attempts (default 100 000)")
    parser.add_argument("--executors", type=int, default=20, metavar="N", help="with 4 slots each (default 20)")
    parser.add_argument("--stacks", type=int, default=2_000, metavar="N", help="of an executor's tasks (default 2 000)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="default 0")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="of the log and the recordings")
    given = parser.parse_args(arguments)
    given.output.mkdir(parents=True, exist_ok=True)
    log = given.output / "made.log"
    with log.open("w", encoding="utf-8") as stream:
        stream.writelines(f"{line}\n" for line in lines(given.tasks, given.seed, given.executors))
    app_id, by_executor = slots_of(log, 4)
    size, of = 0, template(TEMPLATE)
    for executor, slots in sorted(by_executor.items()):
        with (given.output / f"executor-{executor}.jfr").open("wb") as written:
            for each in recording(of, given.stacks, executor, app_id, slots, given.seed):
                size += written.write(each)
    print(f"{given.output}: a log of {log.stat().st_size / 1e6:.0f} MB, recordings of {size / 1e6:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
