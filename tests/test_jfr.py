"""The JFR reader: on recordings written here byte by byte, on damaged ones, and against two other readers."""

from __future__ import annotations

import gzip
import io
import os
import random
import re
import shutil
import struct
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from crystalperf.query.recordings.jfr import INTERVAL_KINDS, SAMPLE_KINDS, JfrError, Recording, is_jfr, read
from crystalperf.query.recordings.jfr.metadata import read_string
from crystalperf.query.recordings.jfr.model import ProblemLog
from crystalperf.query.recordings.jfr.source import load
from crystalperf.query.recordings.jfr.varint import Truncated, distinct, read_varint, varint_stream, varints_at
from tests.refusals import refused

RECORDINGS = Path(__file__).parents[2] / "shared/real-inputs/jfr/recordings"
JAVA_SOURCES = Path(__file__).parent / "java"
START_NS = 1_700_000_000_000_000_000
MS = 1_000_000

# ---- a recording, byte by byte ------------------------------------------------------------------------------------

LONG, INT, BOOLEAN, STRING, FLOAT = 1, 2, 3, 4, 5
THREAD, CLASS, SYMBOL, METHOD, FRAME, STACK, FRAME_TYPE, STATE, DEVICE = range(20, 29)
WALL, EXECUTION, NATIVE, SLEEP, SOCKET, CPU_LOAD, SETTING, JVM, PROPERTY, GC, PAUSE, CPU_TIME = range(100, 112)
CONTAINER, THROTTLING, NETWORK = range(112, 115)

TYPES: dict[int, tuple[str, list[tuple[str, int, str]]]] = {
    LONG: ("long", []),
    INT: ("int", []),
    BOOLEAN: ("boolean", []),
    STRING: ("java.lang.String", []),
    FLOAT: ("float", []),
    THREAD: (
        "java.lang.Thread",
        [("osName", STRING, ""), ("osThreadId", LONG, ""), ("javaName", STRING, ""), ("javaThreadId", LONG, "")],
    ),
    CLASS: ("java.lang.Class", [("modifiers", INT, ""), ("name", SYMBOL, "pool")]),
    SYMBOL: ("jdk.types.Symbol", [("string", STRING, "")]),
    METHOD: (
        "jdk.types.Method",
        [("type", CLASS, "pool"), ("name", SYMBOL, "pool"), ("descriptor", SYMBOL, "pool"), ("hidden", BOOLEAN, "")],
    ),
    FRAME: (
        "jdk.types.StackFrame",
        [("method", METHOD, "pool"), ("lineNumber", INT, ""), ("bytecodeIndex", INT, ""), ("type", FRAME_TYPE, "pool")],
    ),
    STACK: ("jdk.types.StackTrace", [("truncated", BOOLEAN, ""), ("frames", FRAME, "array")]),
    FRAME_TYPE: ("jdk.types.FrameType", [("description", STRING, "")]),
    STATE: ("jdk.types.ThreadState", [("name", STRING, "")]),
    DEVICE: ("jdk.types.NetworkInterfaceName", [("networkInterface", STRING, "")]),
    # The order of fields differs from every recorder's: a reader must take it from the metadata.
    WALL: (
        "profiler.WallClockSample",
        [
            ("samples", INT, ""),
            ("state", STATE, "pool"),
            ("stackTrace", STACK, "pool"),
            ("startTime", LONG, "TICKS"),
            ("sampledThread", THREAD, "pool"),
        ],
    ),
    EXECUTION: (
        "jdk.ExecutionSample",
        [
            ("startTime", LONG, "TICKS"),
            ("sampledThread", THREAD, "pool"),
            ("stackTrace", STACK, "pool"),
            ("state", STATE, "pool"),
        ],
    ),
    NATIVE: (
        "jdk.NativeMethodSample",
        [("startTime", LONG, "TICKS"), ("sampledThread", THREAD, "pool"), ("stackTrace", STACK, "pool")],
    ),
    SLEEP: (
        "jdk.ThreadSleep",
        [("startTime", LONG, "TICKS"), ("duration", LONG, "TICKS"), ("eventThread", THREAD, "pool")],
    ),
    SOCKET: (
        "jdk.SocketRead",
        [
            ("startTime", LONG, "TICKS"),
            ("duration", LONG, "TICKS"),
            ("eventThread", THREAD, "pool"),
            ("stackTrace", STACK, "pool"),
            ("host", STRING, ""),
            ("address", STRING, ""),
            ("port", INT, ""),
            ("bytesRead", LONG, ""),
        ],
    ),
    CPU_LOAD: (
        "jdk.ThreadCPULoad",
        [("startTime", LONG, "TICKS"), ("eventThread", THREAD, "pool"), ("user", FLOAT, ""), ("system", FLOAT, "")],
    ),
    SETTING: ("jdk.ActiveSetting", [("id", LONG, ""), ("name", STRING, ""), ("value", STRING, "")]),
    JVM: (
        "jdk.JVMInformation",
        [
            ("jvmName", STRING, ""),
            ("jvmVersion", STRING, ""),
            ("jvmArguments", STRING, ""),
            ("javaArguments", STRING, ""),
            ("jvmStartTime", LONG, "MILLISECONDS_SINCE_EPOCH"),
            ("pid", LONG, ""),
        ],
    ),
    PROPERTY: ("jdk.InitialSystemProperty", [("key", STRING, ""), ("value", STRING, "")]),
    GC: (
        "jdk.GarbageCollection",
        [("startTime", LONG, "TICKS"), ("duration", LONG, "TICKS"), ("gcId", INT, ""), ("sumOfPauses", LONG, "TICKS")],
    ),
    PAUSE: (
        "jdk.GCPhasePause",
        [("startTime", LONG, "TICKS"), ("duration", LONG, "TICKS"), ("gcId", INT, ""), ("name", STRING, "")],
    ),
    CONTAINER: ("jdk.ContainerConfiguration", [("cpuSlicePeriod", LONG, ""), ("cpuQuota", LONG, "")]),
    THROTTLING: (
        "jdk.ContainerCPUThrottling",
        [("startTime", LONG, "TICKS"), ("cpuElapsedSlices", LONG, ""), ("cpuThrottledSlices", LONG, "")],
    ),
    NETWORK: (
        "jdk.NetworkUtilization",
        [
            ("startTime", LONG, "TICKS"),
            ("networkInterface", DEVICE, "pool"),
            ("readRate", LONG, ""),
            ("writeRate", LONG, ""),
        ],
    ),
    CPU_TIME: (
        "jdk.CPUTimeSample",
        [
            ("startTime", LONG, "TICKS"),
            ("stackTrace", STACK, "pool"),
            ("eventThread", THREAD, "pool"),
            ("failed", BOOLEAN, ""),
            ("samplingPeriod", LONG, "NANOSECONDS"),
        ],
    ),
}


def varint(value: int, padded: int = 0) -> bytes:
    """LEB128 in nine bytes at most; `padded` to that many bytes as HotSpot pads sizes."""
    value &= (1 << 64) - 1
    out = bytearray()
    while len(out) < 8 and (value >= 128 or len(out) + 1 < padded):
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def text(value: str | None) -> bytes:
    if value is None:
        return b"\0"
    encoded = value.encode()
    return b"\3" + varint(len(encoded)) + encoded if value else b"\1"


def event(type_id: int, body: bytes) -> bytes:
    size = len(body) + len(varint(type_id)) + 4
    return varint(size, 4) + varint(type_id) + body


def metadata() -> bytes:
    strings: dict[str, int] = {}

    def key(word: str) -> bytes:
        return varint(strings.setdefault(word, len(strings)))

    def element(name: str, attributes: dict[str, str], children: list[bytes]) -> bytes:
        pairs = b"".join(key(k) + key(v) for k, v in attributes.items())
        return key(name) + varint(len(attributes)) + pairs + varint(len(children)) + b"".join(children)

    annotation_ids = {"jdk.jfr.Timespan": "10", "jdk.jfr.Timestamp": "11"}
    classes = [element("class", {"id": i, "name": n}, []) for n, i in annotation_ids.items()]
    for type_id, (name, fields) in TYPES.items():
        children = []
        for field_name, field_type, kind in fields:
            attributes = {"name": field_name, "class": str(field_type)}
            notes = []
            if kind == "pool":
                attributes["constantPool"] = "true"
            elif kind == "array":
                attributes["dimension"] = "1"
            elif kind:
                annotation = annotation_ids["jdk.jfr.Timespan" if "E" not in kind[-5:] else "jdk.jfr.Timestamp"]
                notes = [element("annotation", {"class": annotation, "value": kind}, [])]
            children.append(element("field", attributes, notes))
        classes.append(element("class", {"id": str(type_id), "name": name}, children))
    tree = element("root", {}, [element("metadata", {}, classes), element("region", {"locale": "en"}, [])])
    table = varint(len(strings)) + b"".join(text(word) for word in strings)
    return event(0, varint(0) + varint(0) + varint(1) + table + tree)


def pools(tables: dict[int, dict[int, bytes]], delta: int = 0) -> bytes:
    body = varint(0) + varint(0) + varint(delta) + b"\0" + varint(len(tables))
    for type_id, entries in tables.items():
        body += varint(type_id) + varint(len(entries)) + b"".join(varint(k) + v for k, v in entries.items())
    return event(1, body)


def stack(frames: list[tuple[int, int]], truncated: bool = False) -> bytes:
    body = b"".join(varint(method) + varint(line & 0xFFFFFFFF) + varint(7) + varint(1) for method, line in frames)
    return bytes([truncated]) + varint(len(frames)) + body


def thread(name: str, java_tid: int, os_tid: int) -> bytes:
    return text(name) + varint(os_tid) + text(name) + varint(java_tid)


DEFAULT_POOLS: dict[int, dict[int, bytes]] = {
    SYMBOL: {
        1: text("org/apache/spark/Task"),
        2: text("run"),
        3: text("()V"),
        4: text("read"),
        5: text("java/io/Reader$In"),
    },
    CLASS: {1: varint(1) + varint(1), 2: varint(1) + varint(5)},
    METHOD: {
        1: varint(1) + varint(2) + varint(3) + b"\0",
        2: varint(2) + varint(4) + varint(3) + b"\0",
    },
    FRAME_TYPE: {1: text("JIT compiled")},
    STATE: {1: text("STATE_RUNNABLE"), 2: text("STATE_SLEEPING")},
    DEVICE: {1: text("lo"), 2: text("eth0")},
    THREAD: {1: thread("worker", 12, 100), 2: thread("GC Thread#0", 0, 101)},
    STACK: {1: stack([(2, 7), (1, -1)]), 2: stack([(1, 9)], truncated=True)},
}


@dataclass
class ChunkWriter:
    start_ns: int = START_NS
    duration_ns: int = 10_000 * MS
    start_ticks: int = 5_000
    ticks_per_s: int = 1_000_000_000
    tables: dict[int, dict[int, bytes]] = field(default_factory=lambda: {k: dict(v) for k, v in DEFAULT_POOLS.items()})
    events: list[bytes] = field(default_factory=list)

    def ticks(self, ms: float) -> bytes:
        return varint(self.start_ticks + int(ms * self.ticks_per_s / 1000))

    def span(self, ms: float) -> bytes:
        return varint(int(ms * self.ticks_per_s / 1000))

    def wall(self, ms: float, thread_key: int = 1, stack_key: int = 1, samples: int = 1, state: int = 1) -> None:
        body = varint(samples) + varint(state) + varint(stack_key) + self.ticks(ms) + varint(thread_key)
        self.events.append(event(WALL, body))

    def execution(self, ms: float, thread_key: int = 1, stack_key: int = 1) -> None:
        body = self.ticks(ms) + varint(thread_key) + varint(stack_key) + varint(1)
        self.events.append(event(EXECUTION, body))

    def bytes(self, major: int = 2, metadata_first: bool = False) -> bytes:
        described = metadata()
        parts = [described] if metadata_first else []
        parts += self.events
        body = b"".join(parts)
        pool_offset = 68 + len(body)
        body += pools(self.tables)
        metadata_offset = 68 if metadata_first else 68 + len(body)
        body += b"" if metadata_first else described
        header = struct.pack(
            ">4sHHqqqqqqqI", b"FLR\0", major, 1, 68 + len(body), pool_offset, metadata_offset, self.start_ns,
            self.duration_ns, self.start_ticks, self.ticks_per_s, 1,
        )  # fmt: skip
        return header + body


def simple(samples: int = 5) -> bytes:
    chunk = ChunkWriter()
    for i in range(samples):
        chunk.wall(10 * i)
    return chunk.bytes()


def names(recording: Recording) -> set[str]:
    return {problem.name for problem in recording.problems}


# ---- integers -----------------------------------------------------------------------------------------------------


def test_integers_of_every_length_scalar_and_vectorised() -> None:
    rng = random.Random(1)
    values = [0, 1, 127, 128, (1 << 63) - 1, -1, -(1 << 63), 1 << 62]
    values += [rng.getrandbits(rng.randint(1, 63)) * rng.choice([1, -1]) for _ in range(2000)]
    encoded = [varint(v, rng.choice([0, 0, 4])) for v in values]
    data = np.frombuffer(b"".join(encoded), np.uint8)
    starts = np.cumsum([0, *map(len, encoded)])[:-1]
    assert [read_varint(data.tobytes(), s, data.size)[0] for s in starts.tolist()] == values
    at, after = varints_at(data, starts.astype(np.int64))
    assert at.tolist() == values
    assert after.tolist() == [*starts[1:].tolist(), data.size]
    stream, ends = varint_stream(data)
    assert stream.tolist() == values
    assert ends.tolist() == after.tolist()


def test_unfinished_integer_is_rejected() -> None:
    with pytest.raises(Truncated):
        read_varint(b"\x80\x80", 0, 2)
    assert varint_stream(np.frombuffer(b"\x05\x80\x80", np.uint8))[0].tolist() == [5]
    assert varint_stream(np.frombuffer(b"\xff" * 9 + b"\x80", np.uint8))[0].tolist() == [-1]


@pytest.mark.parametrize("values", [[], [0], [7, 3, 7, 0], [1 << 62, 5, 5], [-1, 2, -1], [1 << 20, 1]])
def test_distinct_values_are_those_of_numpy(values: list[int]) -> None:
    keys = np.array(values, np.int64)
    known, inverse = np.unique(keys, return_inverse=True)
    found, codes = distinct(keys)
    assert found.tolist() == known.tolist()
    assert codes.tolist() == inverse.tolist()


# ---- what a recording says ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("known", ["", "plain", "é and 漢", "plain, then é", "x" * 200, "𝄞"])
def test_texts_of_every_encoding(known: str) -> None:
    tasks = np.frombuffer(known.encode("utf-16-le"), np.uint16).tolist()
    written = [
        bytes([3]) + varint(len(known.encode())) + known.encode(),
        bytes([4]) + varint(len(tasks)) + b"".join(map(varint, tasks)),
    ]
    if all(unit < 256 for unit in tasks):
        written.append(bytes([5]) + varint(len(tasks)) + known.encode("latin-1"))
    for each in written:
        behind = memoryview(each + b"\x7f" * 9)
        assert read_string(behind, 0, len(behind)) == (known, len(each))
        if known:
            with pytest.raises(Truncated):
                read_string(memoryview(each), 0, len(each) - 1)


def test_samples_frames_threads_and_times() -> None:
    chunk = ChunkWriter(ticks_per_s=24_000_000, start_ticks=1 << 40)
    chunk.wall(30, thread_key=2, stack_key=2, samples=17, state=2)
    chunk.execution(10)
    chunk.events.append(event(NATIVE, chunk.ticks(20) + varint(1) + varint(0)))
    got = read(chunk.bytes())
    samples = got.samples
    assert ((samples.time_ns - START_NS) // MS).tolist() == [10, 20, 30]
    assert [SAMPLE_KINDS[k] for k in samples.kind] == ["EXECUTION", "NATIVE", "WALL"]
    assert samples.ticks.tolist() == [1, 1, 17]
    assert [samples.state_names[s] for s in samples.state] == ["STATE_RUNNABLE", "", "STATE_SLEEPING"]
    assert samples.stack.tolist()[1] == -1
    frames = got.stacks.frames(int(samples.stack[0]))
    assert [got.frames.name(i) for i in frames] == ["java.io.Reader$In.read", "org.apache.spark.Task.run"]
    assert got.frames.line[frames].tolist() == [7, -1]
    assert got.stacks.truncated[samples.stack[2]]
    worker, collector = (got.threads[samples.thread[i]] for i in (0, 2))
    assert (worker.java_name, worker.java_tid) == ("worker", 12)
    assert collector.java_tid == 0
    assert got.problems == ()


def test_intervals_loads_settings_and_jvm() -> None:
    chunk = ChunkWriter()
    chunk.events += [
        event(SLEEP, chunk.ticks(5) + chunk.span(2) + varint(1)),
        event(
            SOCKET,
            chunk.ticks(1)
            + chunk.span(3)
            + varint(1)
            + varint(1)
            + text("")
            + text("10.0.0.7")
            + varint(7337)
            + varint(4096),
        ),
        event(CPU_LOAD, chunk.ticks(4) + varint(1) + struct.pack(">ff", 0.5, 0.25)),
        event(SETTING, varint(EXECUTION) + text("period") + text("20 ms")),
        event(SETTING, varint(WALL) + text("interval") + text("5000000")),
        event(
            JVM,
            text("HotSpot") + text("21") + text("-Xmx1g") + text("App x") + varint(START_NS // MS - 50) + varint(4711),
        ),
        event(PROPERTY, text("java.version") + text("21.0.1")),
        event(CPU_TIME, chunk.ticks(9) + varint(0) + varint(1) + b"\1" + varint(20 * MS)),
    ]
    got = read(chunk.bytes())
    spans = got.intervals
    assert [INTERVAL_KINDS[k] for k in spans.kind] == ["SOCKET_READ", "SLEEP"]
    assert ((spans.end_ns - spans.start_ns) // MS).tolist() == [3, 2]
    assert spans.bytes.tolist() == [4096, 0]
    assert spans.stack.tolist()[1] == -1
    assert got.cpu_load.user.tolist() == [0.5]
    assert got.cpu_load.system.tolist() == [0.25]
    assert got.settings["jdk.ExecutionSample", "period"] == "20 ms"
    assert got.periods_ns == {"EXECUTION": 20 * MS, "WALL": 5 * MS}
    assert got.jvm is not None
    assert (got.jvm.pid, got.jvm.java_arguments) == (4711, "App x")
    assert got.samples.period_ns.tolist() == [20 * MS]
    assert names(got) == {"failed samples"}


def test_the_quota_of_a_container_how_often_it_was_used_up_and_its_network() -> None:
    """Events need not come in order; the last configuration counts, and -1 means no quota."""
    chunk = ChunkWriter()
    chunk.events += [
        event(CONTAINER, varint(100_000) + varint(200_000)),
        event(CONTAINER, varint(100_000) + varint(70_000)),
        event(THROTTLING, chunk.ticks(9) + varint(20) + varint(12)),
        event(THROTTLING, chunk.ticks(4) + varint(10) + varint(3)),
        event(NETWORK, chunk.ticks(4) + varint(2) + varint(8000) + varint(400)),
        event(NETWORK, chunk.ticks(4) + varint(1) + varint(80) + varint(80)),
    ]
    got = read(chunk.bytes())
    assert got.quota_cores == pytest.approx(0.7)
    assert (got.throttling.elapsed.tolist(), got.throttling.throttled.tolist()) == ([10, 20], [3, 12])
    assert [got.devices[each] for each in got.network_load.device] == ["eth0", "lo"]
    assert (got.network_load.received_bps.tolist(), got.network_load.sent_bps.tolist()) == ([8000, 80], [400, 80])
    chunk.events.append(event(CONTAINER, varint(100_000) + varint(-1)))
    assert read(chunk.bytes()).quota_cores is None
    assert read(ChunkWriter().bytes()).quota_cores is None


def test_a_collection_counts_once_by_its_pauses() -> None:
    chunk = ChunkWriter()
    for gc_id in (1, 2):
        chunk.events.append(event(GC, chunk.ticks(gc_id * 100) + chunk.span(50) + varint(gc_id) + chunk.span(20)))
    chunk.events.append(event(PAUSE, chunk.ticks(105) + chunk.span(4) + varint(1) + text("GC Pause")))
    spans = read(chunk.bytes()).intervals
    assert ((spans.start_ns - START_NS) // MS).tolist() == [105, 200]
    assert ((spans.end_ns - spans.start_ns) // MS).tolist() == [4, 20]
    assert spans.thread.tolist() == [-1, -1]


def test_chunks_share_stacks_frames_and_threads_and_threads_keep_their_names() -> None:
    first, second = ChunkWriter(), ChunkWriter(start_ns=START_NS + 10_000 * MS)
    first.wall(1)
    second.wall(2, thread_key=9, stack_key=70)
    second.tables[THREAD] = {9: thread("Executor task 5", 12, 100)}
    second.tables[STACK] = {70: DEFAULT_POOLS[STACK][1]}
    got = read(first.bytes() + second.bytes())
    assert got.samples.stack.tolist() == [0, 0]
    assert len(got.stacks) == 1
    assert len(got.frames) == 2
    assert got.samples.thread[0] == got.samples.thread[1]
    assert got.threads[got.samples.thread[0]].java_name == "Executor task 5"


def test_recordings_of_two_jvms_joined_keep_their_threads_apart() -> None:
    parts = []
    for pid in (7, 8):
        chunk = ChunkWriter()
        body = text("HotSpot") + text("21") + text("") + text("") + varint(0) + varint(pid)
        chunk.events.append(event(JVM, body))
        chunk.wall(1)
        parts.append(chunk.bytes())
    got = read(b"".join(parts))
    assert [jvm.pid for jvm in got.jvms] == [7, 8]
    assert sorted(got.threads[i].pid for i in got.samples.thread) == [7, 8]
    assert "several JVMs" in names(got)


def test_the_same_chunk_twice_counts_once() -> None:
    got = read(simple(5) * 3)
    assert len(got.samples) == 5
    assert [(p.name, p.count) for p in got.problems] == [("duplicate chunk", 2)]


def test_deep_stack_negative_and_unsigned_keys_many_stacks() -> None:
    chunk = ChunkWriter()
    keys = [-1, -(1 << 63), (1 << 64) - 5, *range(10, 500)]
    depths = [100_000, 1, *(i % 40 for i in range(len(keys) - 2))]
    chunk.tables[STACK] = {
        k: stack([(1 + i % 2, i % 999) for i in range(d)]) for k, d in zip(keys, depths, strict=True)
    }
    for i, key in enumerate(keys):
        chunk.wall(i, stack_key=key)
    got = read(chunk.bytes())
    assert [len(got.stacks.frames(i)) for i in got.samples.stack] == depths
    assert got.frames.line[got.stacks.frames(int(got.samples.stack[0]))[-1]] == 99_999 % 999
    assert got.problems == ()


# ---- wrappers and other files ---------------------------------------------------------------------------------------


def test_wrappers_and_sources(tmp_path: Path) -> None:
    raw = simple()
    twice = gzip.compress(gzip.compress(raw))
    (tmp_path / "x").write_bytes(twice)
    members = gzip.compress(raw[:100]) + gzip.compress(raw[100:])
    for source in (raw, twice, members, tmp_path / "x", str(tmp_path / "x"), io.BytesIO(raw)):
        got = read(source)
        assert len(got.samples) == 5
        assert got.problems == ()
    assert is_jfr(raw[:16])
    assert is_jfr(twice[:400])
    assert not is_jfr(b"PK\3\4")
    assert not is_jfr(gzip.compress(b"text"))


def test_lz4_round_trip() -> None:
    cramjam = pytest.importorskip("cramjam", reason="lz4 needs cramjam")
    packed = bytes(cramjam.lz4.compress(simple(50)))
    assert len(read(packed).samples) == 50
    with refused(JfrError, "lz4"):
        read(packed[: len(packed) // 2])


def test_a_cut_gzip_says_so() -> None:
    chunks = simple(200) + ChunkWriter(start_ns=START_NS + 1).bytes() + os.urandom(4000)
    packed = gzip.compress(chunks)
    got = read(packed[: len(packed) - 3000])
    assert len(got.samples) == 200
    assert "gzip cut" in names(got)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "empty"),
        (b"hello world", "not a flight recording"),
        (gzip.compress(b"hello", mtime=0), "not a flight recording"),
        (ChunkWriter().bytes(major=1), "format 1.1"),
        (ChunkWriter().bytes(major=0), "format 0.1"),
        (simple()[:200], "killed"),
        (b"FLR\0", "killed"),
        (b"\x04\x22\x4d\x18 damaged", "lz4"),
    ],
)
def test_file_that_is_not_a_recording_gives_one_sentence(content: bytes, says: str) -> None:
    with refused(JfrError, says):
        read(content)


def test_a_path_that_is_missing_or_a_folder(tmp_path: Path) -> None:
    for path in (tmp_path / "none.jfr", tmp_path):
        with refused(JfrError, path):
            read(path)


# ---- damage ---------------------------------------------------------------------------------------------------------


def test_a_truncated_last_chunk_leaves_the_others_whole() -> None:
    second = ChunkWriter(start_ns=START_NS + 10_000 * MS)
    for i in range(5):
        second.wall(i)
    whole, cut = simple(5), second.bytes()
    for length in range(1, len(cut), 37):
        got = read(whole + cut[:length])
        assert len(got.samples) == 5
        assert {p.severity for p in got.problems} <= {"data loss"}
        assert got.problems


def test_a_killed_recorder_whose_types_came_first_gives_its_events() -> None:
    chunk = ChunkWriter()
    for i in range(9):
        chunk.wall(i)
    data = chunk.bytes(metadata_first=True)
    cut = data[: data.index(pools(chunk.tables)) - 3]
    got = read(cut)
    assert len(got.samples) == 8
    assert {"chunk cut", "lost bytes", "unknown stack"} <= names(got)


def test_a_chunk_that_is_still_written_with_copies_of_its_header_in_pools() -> None:
    chunk = ChunkWriter()
    header = chunk.bytes()[:68]
    for i in range(20):
        if i % 5 == 0:
            chunk.events.append(event(1, varint(0) * 3 + b"\0" + varint(0) + header))
        chunk.wall(i)
    data = bytearray(chunk.bytes())
    data[64] = 1  # being written
    got = read(bytes(data) + simple(3))
    assert len(got.samples) == 23
    assert names(got) == {"chunk cut"}


def test_events_of_size_and_type_zero_and_padding() -> None:
    chunk = ChunkWriter()
    chunk.wall(1)
    chunk.events.append(event(0, b"\1\2\3"))
    chunk.wall(2)
    chunk.events.append(b"\0" * 9)
    chunk.wall(3)
    got = read(chunk.bytes())
    assert len(got.samples) == 3
    assert [(p.name, p.count) for p in got.problems] == [("lost bytes", 9)]


def test_an_event_written_into_another_costs_only_itself() -> None:
    chunk = ChunkWriter()
    for i in range(50):
        chunk.wall(i)
    chunk.events[20] = varint(9_000_000, 4) + varint(SLEEP) + b"\x55\x66\x77"
    got = read(chunk.bytes())
    assert len(got.samples) == 49
    assert names(got) == {"lost bytes"}


def test_unknown_threads_stacks_and_far_times_are_reported() -> None:
    chunk = ChunkWriter()
    chunk.wall(1, thread_key=77)
    chunk.wall(2, stack_key=77)
    chunk.wall(10**9)
    got = read(chunk.bytes())
    assert len(got.samples) == 2
    assert names(got) == {"unknown thread", "unknown stack", "time implausible"}


def test_pools_that_are_empty_cyclic_or_claim_too_much() -> None:
    chunk = ChunkWriter()
    chunk.wall(1)
    chunk.tables[STATE] = {}
    chunk.tables[999] = {}
    got = read(chunk.bytes())
    assert got.problems == ()
    cyclic = pools({STATE: {1: text("S")}}, delta=0)
    chunk = ChunkWriter()
    chunk.wall(1)
    chunk.events += [event(1, varint(0) + varint(0) + varint(-len(cyclic)) + b"\0" + varint(0)), cyclic]
    assert len(read(chunk.bytes()).samples) == 1
    for count in (2**31 - 1, 2**63 - 1, -1):
        chunk = ChunkWriter()
        chunk.wall(1)
        chunk.events.append(event(1, varint(0) * 3 + b"\0" + varint(1) + varint(STACK) + varint(count) + b"\1\1"))
        got = read(chunk.bytes())
        assert len(got.samples) == 1
        assert names(got) == {"pool damaged"}


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Cut, flip, delete, double, or overwrite with extreme integers, one to six times."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(out)) if rng.random() < 0.7 else rng.randrange(min(200, len(out)))
        span = rng.randint(1, 1 << rng.randint(0, 9))
        what = rng.randrange(6)
        if what == 0:
            del out[max(at, 1) :]
        elif what == 1:
            out[at] ^= 1 << rng.randrange(8)
        elif what == 2:
            del out[at : at + span]
        elif what == 3:
            out[at:at] = out[at : at + span]
        elif what == 4:
            out[at : at + 9] = rng.choice([b"\xff" * 9, b"\0" * 9, b"\x80" * 8 + b"\1", b"\xff\xff\xff\xff\x07"])
        else:
            out[at : at + span] = rng.randbytes(span)
        if not out:
            out += b"F"
    return bytes(out)


def check_invariants(got: Recording) -> None:
    """Every index points into its table, however damaged the input."""
    samples, spans, stacks, frames = got.samples, got.intervals, got.stacks, got.frames
    for thread_index, stack_index in ((samples.thread, samples.stack), (spans.thread, spans.stack)):
        assert thread_index.size == 0 or (thread_index.min() >= -1 and thread_index.max() < len(got.threads))
        assert stack_index.size == 0 or (stack_index.min() >= -1 and stack_index.max() < len(stacks))
    assert samples.state.size == 0 or samples.state.max() < len(samples.state_names)
    assert stacks.offsets[-1] == stacks.frame_index.size
    assert (np.diff(stacks.offsets) >= 0).all()
    assert stacks.frame_index.size == 0 or stacks.frame_index.max() < len(frames)
    if len(frames):
        assert frames.class_id.max() < len(frames.class_names)
        assert frames.method_id.max() < len(frames.method_names)
    assert (np.diff(samples.time_ns) >= 0).all()
    assert (spans.end_ns >= spans.start_ns).all()


def rich() -> bytes:
    chunk = ChunkWriter()
    for i in range(20):
        chunk.wall(i, stack_key=1 + i % 2, samples=i)
        chunk.execution(i)
        chunk.events.append(event(SLEEP, chunk.ticks(5) + chunk.span(2) + varint(1)))
        chunk.events.append(event(SETTING, varint(EXECUTION) + text("period") + text("20 ms")))
    second = ChunkWriter(start_ns=START_NS + 10_000 * MS)
    second.wall(4)
    return chunk.bytes() + second.bytes()


def test_no_mutation_breaks_the_reader() -> None:
    rng = random.Random(20211)
    original = rich()
    outcomes: Counter[str] = Counter()
    for _ in range(400):
        data = mutate(original, rng)
        try:
            got = read(data)
        except JfrError:
            outcomes["refused"] += 1
        else:
            check_invariants(got)
            outcomes["read, with problems" if got.problems else "read"] += 1
    assert outcomes["refused"] > 20
    assert outcomes["read, with problems"] > 100


# ---- real recordings ------------------------------------------------------------------------------------------------

OLD_FORMATS = {
    "8u60.jfr", "9u0.jfr", "allocation_10s_before.jfr", "allocation_10s_fixed.jfr", "crash_jdk9.jfr",
    "flight_recording_hidden.jfr", "transitions_R28.2.jfr", "wldf.jfr",
}  # fmt: skip

needs_recordings = pytest.mark.skipif(not RECORDINGS.is_dir(), reason="the folder of real recordings is missing")


def recordings() -> list[Path]:
    found = sorted(
        p for p in RECORDINGS.rglob("*") if p.is_file() and ".jfr" in p.suffixes and ".txt" not in p.suffixes
    )
    return found or [Path("none")]


@pytest.mark.few(8)
@needs_recordings
@pytest.mark.parametrize("path", recordings(), ids=lambda p: p.name)
def test_real_recordings_are_read_whole_or_refused(path: Path) -> None:
    if path.suffix == ".lz4":
        pytest.importorskip("cramjam", reason="lz4 needs cramjam")
    if path.name in OLD_FORMATS:
        with refused(JfrError):
            read(path)
        return
    got = read(path)
    check_invariants(got)
    # One event of this file names a stack that its pools lack; the reference readers find none either.
    assert names(got) == ({"unknown stack"} if path.name == "ddtrace.jfr.lz4" else set())


def normal(stack_text: str) -> str:
    """Dots for slashes, and without what writers of collapsed stacks do differently: suffixes of hidden classes,
    numbers of generated ones, and the dot before functions that have no class."""
    dotted = re.sub(r"(^|;)\.+", r"\1", stack_text.replace("/", "."))
    dotted = re.sub(r"(GeneratedMethodAccessor)\d+", r"\1_", dotted)
    return re.sub(r"\$\$Lambda[^;:]*?(\.[\w$<>]+:)", r"$$Lambda\1", dotted)


def collapsed(got: Recording, kinds: set[str], states: set[str]) -> Counter[str]:
    """Ticks by stack, root first, as "class.method:line"."""
    lines = got.frames.line.astype(np.uint32)
    texts = [f"{got.frames.name(i)}:{lines[i]}" for i in range(len(got.frames))]
    counts: Counter[str] = Counter()
    samples = got.samples
    for kind, state, index, ticks in zip(samples.kind, samples.state, samples.stack, samples.ticks, strict=True):
        if SAMPLE_KINDS[kind] in kinds and samples.state_names[state] in states:
            counts[normal(";".join(texts[i] for i in got.stacks.frames(int(index))[::-1]))] += int(ticks)
    return counts


def expected_collapsed() -> list[Path]:
    found = (RECORDINGS / "grafana/expected").glob("*")
    return sorted(p for p in found if "process_cpu" in p.name or "wall_wall" in p.name) or [Path("none")]


@pytest.mark.few(4)
@needs_recordings
@pytest.mark.parametrize("path", expected_collapsed(), ids=lambda p: p.name.partition("__")[0])
def test_sums_by_stack_equal_those_of_the_go_parser(path: Path) -> None:
    parts = re.match(r"(.*)_\d+_(process_cpu|wall_wall)", path.name)
    expected: Counter[str] = Counter()
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            frames, _, value = line.rstrip("\n").rpartition(" ")
            expected[normal(frames)] += int(value.strip("[]")) // (10 * MS)
    on_cpu = {"STATE_RUNNABLE", "STATE_DEFAULT"}
    states = on_cpu if parts[2] == "process_cpu" else on_cpu | {"STATE_SLEEPING"}
    got = collapsed(read(RECORDINGS / f"grafana/{parts[1]}.jfr.gz"), {"EXECUTION", "WALL"}, states)
    assert got == expected


# ---- the two reference readers --------------------------------------------------------------------------------------

JARS = {
    "flightrecorder-9.1.2.jar": "org.openjdk.jmc:flightrecorder:9.1.2",
    "common-9.1.2.jar": "org.openjdk.jmc:common:9.1.2",
    "encoder-1.3.1.jar": "org.owasp.encoder:encoder:1.3.1",
    "lz4-java-1.8.0.jar": "org.lz4:lz4-java:1.8.0",
    "jfr-converter-4.5.jar": "tools.profiler:jfr-converter:4.5",
}
# Real files that the converter cannot read though they are valid: it takes async-profiler's order of fields for given.
CONVERTER_REFUSES = {"example.jfr.gz", "new_spancontext.jfr.gz"}
JMC_KINDS = {
    "jdk.ExecutionSample": "EXECUTION",
    "jdk.NativeMethodSample": "NATIVE",
    "profiler.WallClockSample": "WALL",
    "jdk.CPUTimeSample": "CPU",
    "jdk.SocketRead": "SOCKET_READ",
    "jdk.SocketWrite": "SOCKET_WRITE",
    "jdk.FileRead": "FILE_READ",
    "jdk.FileWrite": "FILE_WRITE",
    "jdk.FileForce": "FILE_FORCE",
    "jdk.ThreadPark": "PARK",
    "jdk.ThreadSleep": "SLEEP",
    "jdk.JavaMonitorWait": "MONITOR_WAIT",
    "jdk.JavaMonitorEnter": "MONITOR_ENTER",
    "jdk.ThreadCPULoad": "LOAD",
}


@pytest.fixture(scope="session")
def java_dump(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str, Path], list[list[str]]]]:
    """Runs one of the dumps under tests/java on a recording and returns its lines' columns.

    Each of the two runs in one JVM for all recordings: starting another for every file took most of the time.
    """
    missing = [tool for tool in ("java", "javac", "mvn") if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"the reference readers need {', '.join(missing)}")
    jars = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "crystalperf/test-jars"
    jars.mkdir(parents=True, exist_ok=True)
    for jar, artifact in JARS.items():
        if not (jars / jar).exists():
            copy = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={jars}"]
            if subprocess.run(copy, capture_output=True, timeout=120, check=False).returncode != 0:
                pytest.skip(f"Maven could not fetch {artifact} (no network?)")
    classes = tmp_path_factory.mktemp("classes")
    sources = [str(JAVA_SOURCES / f"{name}.java") for name in ("DumpWithJmc", "DumpWithConverter")]
    subprocess.run(["javac", "-d", str(classes), "-cp", f"{jars}/*", *sources], check=True, timeout=120)

    running: dict[str, subprocess.Popen[bytes]] = {}

    def dump(program: str, path: Path) -> list[list[str]]:
        command = ["java", "-cp", f"{classes}{os.pathsep}{jars}/*", program]
        if program not in running:
            running[program] = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process = running[program]
        assert process.stdout is not None
        process.stdin.write(f"{path}\n".encode())
        process.stdin.flush()
        lines = []
        for line in process.stdout:
            if line == b"DONE\n":
                return lines
            if line == b"FAILED\n":
                raise subprocess.CalledProcessError(1, [*command, str(path)])
            lines.append(line.decode().rstrip("\n").split("\t"))
        raise AssertionError(f"{program} ended with {running.pop(program).wait()} on {path}")

    yield dump
    for process in running.values():
        process.communicate()


# Kind, start_ns, end_ns, java_tid or -1, and the rest: stack code, state, ticks; or user and system load.
Event = tuple[str, int, int, int, tuple[int, str, int] | tuple[float, float]]


def described_frames(got: Recording) -> list[tuple[str, str, int]]:
    return list(zip(got.frames.owners(), got.frames.methods(), got.frames.line.tolist(), strict=True))


def our_events(got: Recording, codes: dict[object, int]) -> list[Event]:
    described = described_frames(got)
    stacks = [
        codes.setdefault((bool(cut), tuple(described[k] for k in got.stacks.frames(i).tolist())), len(codes))
        for i, cut in enumerate(got.stacks.truncated)
    ]
    stacks.append(-1)  # what index -1 finds

    def tid(index: int) -> int:
        return got.threads[index].java_tid if index >= 0 else -1

    samples, spans, load = got.samples, got.intervals, got.cpu_load
    events: list[Event] = []
    for i, at in enumerate(samples.time_ns.tolist()):
        rest = (stacks[samples.stack[i]], samples.state_names[samples.state[i]], int(samples.ticks[i]))
        events.append((SAMPLE_KINDS[samples.kind[i]], at, at, tid(samples.thread[i]), rest))
    for i, (start, end) in enumerate(zip(spans.start_ns.tolist(), spans.end_ns.tolist(), strict=True)):
        if INTERVAL_KINDS[spans.kind[i]] in JMC_KINDS.values():
            waited = (stacks[spans.stack[i]], "", 1)
            events.append((INTERVAL_KINDS[spans.kind[i]], start, end, tid(spans.thread[i]), waited))
    for i, at in enumerate(load.time_ns.tolist()):
        events.append(("LOAD", at, at, tid(load.thread[i]), (float(load.user[i]), float(load.system[i]))))
    return events


def jmc_events(rows: list[list[str]], codes: dict[object, int]) -> list[Event]:
    stacks = {-1: -1}
    events: list[Event] = []
    for row in rows:
        if row[0] == "S":
            frames = [frame.split("\1") for frame in row[3].split("\2")[:-1]]
            described = tuple((owner, method, int(line)) for owner, method, _, line, _ in frames)
            stacks[int(row[1])] = codes.setdefault((row[2] == "1", described), len(codes))
            continue
        _, event_type, start, end, tid, _, index, state, ticks, user, system = row
        kind = JMC_KINDS[event_type]
        if kind == "LOAD":
            load = (float(np.float32(user)), float(np.float32(system)))
            events.append((kind, int(start), int(end or start), int(tid or -1), load))
        else:
            rest = (stacks[int(index)], state, int(float(ticks or 1)))
            events.append((kind, int(start), int(end or start), int(tid or -1), rest))
    return events


def assert_same_events(got: Recording, rows: list[list[str]]) -> None:
    # Samples of the wall clock that async-profiler wrote as jdk.ExecutionSample are WALL here.
    wall_as_execution = got.async_profiler_event == "wall"

    def known(events: list[Event]) -> list[Event]:
        renamed = [("WALL" if wall_as_execution and e[0] == "EXECUTION" else e[0], *e[1:]) for e in events]
        return sorted(renamed, key=lambda e: (*e[:4], str(e[4])))

    codes: dict[object, int] = {}
    ours, theirs = known(our_events(got, codes)), known(jmc_events(rows, codes))
    assert Counter(e[0] for e in ours) == Counter(e[0] for e in theirs)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine[0] == other[0]
        # JMC computes times in floating point, up to a microsecond away.
        assert abs(mine[1] - other[1]) <= 1000
        assert abs(mine[2] - other[2]) <= 1000
        assert mine[3:] == other[3:]


@needs_recordings
@pytest.mark.parametrize("path", [p for p in recordings() if p.name not in OLD_FORMATS], ids=lambda p: p.name)
def test_event_by_event_as_mission_control(path: Path, java_dump: Callable[[str, Path], list[list[str]]]) -> None:
    assert_same_events(read(path), java_dump("DumpWithJmc", path))


@needs_recordings
@pytest.mark.parametrize("path", [p for p in recordings() if p.name not in OLD_FORMATS], ids=lambda p: p.name)
def test_samples_as_the_converter(
    path: Path, java_dump: Callable[[str, Path], list[list[str]]], tmp_path: Path
) -> None:
    if path.name in CONVERTER_REFUSES:
        pytest.skip("jfr-converter refuses this file (invalid event size)")
    plain = tmp_path / "x.jfr"
    plain.write_bytes(bytes(load(path, ProblemLog())[0]))
    got = read(plain)
    described = described_frames(got)
    codes: dict[object, int] = {(): -1}
    stacks = []
    for i in range(len(got.stacks)):
        frames = tuple((c, m, line & 0xFFFF) for c, m, line in (described[k] for k in got.stacks.frames(i)))
        stacks.append(codes.setdefault(frames, len(codes)))
    stacks.append(-1)  # what index -1 finds
    samples = got.samples
    ours: Counter[tuple[int, int, str, int]] = Counter()
    for i, at in enumerate(samples.time_ns.tolist()):
        state = samples.state_names[samples.state[i]] if SAMPLE_KINDS[samples.kind[i]] != "CPU" else ""
        ours[at, int(samples.ticks[i]), state, stacks[samples.stack[i]]] += 1
    theirs: Counter[tuple[int, int, str, int]] = Counter()
    known: dict[str, int] = {}
    for _, time_ns, _, ticks, state, text_line in java_dump("DumpWithConverter", plain):
        if text_line not in known:
            fields = [frame.split("\1") for frame in text_line.split("\2")[:-1]]
            frames = tuple((c.replace("/", "."), m, int(line)) for c, m, _, line in fields)
            known[text_line] = codes.setdefault(frames, len(codes))
        theirs[int(time_ns), int(ticks), state, known[text_line]] += 1
    assert ours == theirs


@pytest.mark.parametrize("how", ["ended", "killed"])
def test_recording_of_this_jdk_reads_as_in_mission_control(
    how: str, java_dump: Callable[[str, Path], list[list[str]]], tmp_path: Path
) -> None:
    settings = tmp_path / "all.jfc"
    events = [e for e in JMC_KINDS if e.startswith("jdk.") and e != "jdk.CPUTimeSample"]
    settings.write_text(
        '<?xml version="1.0" encoding="UTF-8"?><configuration version="2.0">'
        + "".join(
            f'<event name="{e}"><setting name="enabled">true</setting><setting name="stackTrace">true</setting>'
            '<setting name="threshold">0 ms</setting><setting name="period">20 ms</setting></event>'
            for e in [*events, "jdk.GCPhasePause", "jdk.JVMInformation", "jdk.ActiveSetting"]
        )
        + "</configuration>"
    )
    source, target = JAVA_SOURCES / "Recorded.java", tmp_path / "out.jfr"
    options = f"-XX:StartFlightRecording:filename={target},settings={settings}"
    repository = f"-XX:FlightRecorderOptions:repository={tmp_path / 'repository'}"
    subprocess.run(
        ["java", "-Xmx128m", options, repository, str(source), how], capture_output=True, timeout=60, check=False
    )
    if how == "killed":
        target = next((tmp_path / "repository").rglob("*.jfr"))
    got = read(target)
    # Of a thread that ends while it is recorded the JDK sometimes writes an event, but not the thread.
    assert names(got) - {"unknown thread"} == (set() if how == "ended" else {"chunk cut"})
    kinds = {INTERVAL_KINDS[k] for k in got.intervals.kind}
    assert {"SLEEP", "PARK", "FILE_WRITE", "FILE_READ", "SOCKET_READ", "SOCKET_WRITE", "MONITOR_ENTER"} <= kinds
    assert got.jvm is not None
    assert got.threads
    try:
        dumped = java_dump("DumpWithJmc", target)
    except subprocess.CalledProcessError:
        # Mission Control refuses a chunk that was killed before its header was first completed; we read it (above).
        assert how == "killed"
        return
    assert_same_events(got, dumped)
