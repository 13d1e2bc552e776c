"""Recognises files that CrystalPerf does not read by their first bytes, so that an error can say what to do instead.

It is used only if no framework recognises a file as its log, and no reader as samples.  KINDS are tried in order, the
most specific ones first; each test uses only the given bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.regex import regex

_COLLAPSED = "convert it to collapsed stacks with {}"
_AGAIN = "record again with JFR output or as collapsed stacks"
_PROTO = "convert it with `go tool pprof -proto`"
_PLAN = "it shows what would run, not what ran; use the archive of the job from the JobManager"
_PAGE = "use the page of the job itself (/jobs/ID), or its archive from the JobManager"
_WHEN = (
    "it shows what operators read and wrote, not when they ran; use the output of export_chrome_trace for these steps"
)
_TOTALS = (
    "it has totals, not jobs, stages and tasks; save the pages of the REST interface (/api/v1), or write an event log"
)
ASCEND = "a trace of Ascend's profiler (torch_npu)"
OTHER_NAMES = "its names of device work are its own; use the output of PyTorch's own export_chrome_trace"
_MAX_LINES = 40
_MAX_FIELDS = 2_000


@frozen
class Foreign:
    """A kind of file: its description after 'is', advice to the user if there is any, and its test."""

    what: str
    advice: str
    known: Callable[[bytes], bool]


def described(stored: bytes, text: bytes) -> Foreign | None:
    """The kind of a file by the start of its stored bytes and of its decompressed text; None if unknown."""
    if not text.strip():
        return None
    return next((each for each in KINDS if each.known(stored) or each.known(text)), None)


def is_database(stored: bytes) -> bool:
    """Whether a file is a DuckDB database, like run files and indexes."""
    return stored[8:12] == b"DUCK"


# Tests ------------------------------------------------------------------------------------------------------------


def _magic(*starts: bytes, at: int = 0) -> Callable[[bytes], bool]:
    return lambda text: any(text[at : at + len(start)] == start for start in starts)


_JSON = regex(rb'\s*(?:\{|\[\s*(?:[\[{"\]]|-?\d[\d.eE+-]*\s*[,\]]))')


def begins_json(text: bytes) -> bool:
    """Whether a text begins like JSON; a log line with its level or time in brackets does not."""
    return _JSON.match(text) is not None


def _has(*patterns: bytes, json: bool = False) -> Callable[[bytes], bool]:
    """A test: all patterns are in the text, which for `json` begins like JSON."""
    tests = [regex(each) for each in patterns]

    def known(text: bytes) -> bool:
        return (not json or begins_json(text)) and all(each.search(text) for each in tests)

    return known


def _json(*patterns: bytes) -> Callable[[bytes], bool]:
    return _has(*patterns, json=True)


def _any(*tests: Callable[[bytes], bool]) -> Callable[[bytes], bool]:
    return lambda text: any(each(text) for each in tests)


def _lines(text: bytes) -> list[bytes]:
    """The first complete lines that are neither comments nor blank."""
    lines = text.split(b"\n", 4 * _MAX_LINES)[: 4 * _MAX_LINES]
    return [each for each in lines if each.strip() and not each.startswith(b"#")][:_MAX_LINES]


_LEVEL = rb"(?:INFO|WARN|WARNING|ERROR|DEBUG|TRACE)\b"
_TIME = rb"[\d\[(][\d\-/:., TZ+\])]{7,40}"
_LOG_LINE = regex(_TIME + rb"[^\n]{0,60}?\b" + _LEVEL + rb"|\[?" + _LEVEL + rb"[ :\]]{0,9}" + _TIME)


def _words(text: bytes) -> bool:
    """A program's log messages: a time and a level in most lines."""
    lines = _lines(text)
    return len(lines) > 1 and sum(_LOG_LINE.match(each) is not None for each in lines) > 0.3 * len(lines)


def _table(text: bytes) -> bool:
    """Three or more lines with equal numbers of separators."""
    lines = _lines(text)[:10]
    counts = ({each.count(separator) for each in lines} for separator in (b",", b"\t", b"|", b";"))
    return len(lines) > 2 and b"\0" not in text and any(len(each) == 1 and 0 not in each for each in counts)


# Protocol Buffers -------------------------------------------------------------------------------------------------


def _varint(text: bytes, place: int) -> tuple[int, int] | None:
    value = 0
    for number, byte in enumerate(text[place : place + 10]):
        value |= (byte & 127) << 7 * number
        if byte < 128:
            return value, place + number + 1
    return None


def _fields(text: bytes) -> Iterator[tuple[int, int, bytes]]:
    """The fields of a message (number, wire type, content of a length-delimited one), up to the end of the text.

    A field of number 0 means that the text is not a message.
    """
    place = 0
    for _ in range(_MAX_FIELDS):
        head = _varint(text, place)
        if head is None:
            break
        number, wire, place = head[0] >> 3, head[0] & 7, head[1]
        content = b""
        if wire == 0:
            value = _varint(text, place)
            if value is None:
                break
            place = value[1]
        elif wire == 2:
            length = _varint(text, place)
            if length is None:
                break
            content = text[length[1] : length[1] + length[0]]
            place = length[1] + length[0]
        elif wire in (1, 5):
            place += 8 if wire == 1 else 4
        else:
            break
        yield number, wire, content
    else:
        return
    if place < len(text) - 10:
        yield 0, 0, b""


_PPROF = {1: 2, 2: 2, 3: 2, 4: 2, 5: 2, 6: 2, 7: 0, 8: 0, 9: 0, 10: 0, 11: 2, 12: 0, 13: 2, 14: 0, 15: 0}
"""Wire types of the fields of pprof's Profile; field 13 has numbers, packed or not."""


def is_pprof(text: bytes) -> bool:
    """Whether a text begins like a pprof profile (profile.proto)."""
    found = list(_fields(text))
    right = all(_PPROF.get(number) == wire or (number, wire) == (13, 0) for number, wire, _ in found)
    types = [content for number, _, content in found if number == 1]
    plain = all(
        0 < len(each) <= 22 and all(wire == 0 and n in (1, 2) for n, wire, _ in _fields(each)) for each in types
    )
    return len(found) > 3 and right and bool(types) and plain


def _protobuf(text: bytes) -> bool:
    found = list(_fields(text))
    right = all(0 < number < 64 for number, _, _ in found)
    binary = re.search(rb"[\x00-\x08\x0e-\x1f\x7f-\xff]", text) is not None
    return text[:1] != b"\n" and binary and right and any(len(content) > 8 for _, _, content in found)


def _xplane(text: bytes) -> bool:
    return text[:1] == b"\n" and re.search(rb"/(host|device):", text[:80]) is not None


def _table_of_operators(text: bytes) -> bool:
    """TensorFlow's tables of operators (rows in field 4) and of kernels (rows in field 1): text and doubles."""
    first = next(_fields(text), None)
    if first is None or first[0] not in (1, 4) or first[1] != 2:
        return False
    row = first[2]
    if first[0] == 4:
        rows = [content for number, wire, content in _fields(row) if (number, wire) == (1, 2)]
        return bool(rows) and any(each in rows[0] for each in (b"\x12\x06Device", b"\x12\x04Host"))
    kernel = {number for number, wire, content in _fields(row) if wire == 2 and content.isascii()}
    return {1, 5, 6, 12} <= kernel  # its name, its launch parameters, its operator


def _repeated(text: bytes) -> bool:
    """A message of one repeated field: a list of messages."""
    found = list(_fields(text))
    return len(found) > 1 and b"\0" not in text[:4] and {each[:2] for each in found} == {(1, 2)}


# Kinds ------------------------------------------------------------------------------------------------------------

_EVENTS = rb'"traceEvents"\s*:'

KINDS = (
    # Recordings of other profilers
    Foreign("a Java heap dump", "it shows memory, not time", _magic(b"JAVA PROFILE 1.0")),
    Foreign("a recording of perf", "convert it to text with `perf script`", _magic(b"PERFILE2")),
    Foreign(
        "the text of `perf script` without a stack", "record with `perf record -g`", _has(rb"^# =+\n# captured on")
    ),
    Foreign("the text of `jfr print`", "use the recording itself", _has(rb"^jdk\.\w+ \{|\njdk\.\w+ \{")),
    Foreign("a pprof profile of an old format", _PROTO, _magic(b"\0" * 8 + b"\3" + b"\0" * 15)),
    Foreign(
        "a pprof profile of an old format",
        _PROTO,
        _magic(b"--- threadz", b"--- contentionz", b"--- heapz", b"heap profile: "),
    ),
    Foreign("a CPU profile of V8", "", _json(rb'"callFrame"\s*:', rb'"(timeDeltas|positionTicks|hitCount)"\s*:')),
    Foreign("a profile of pyinstrument", _AGAIN, _json(rb'"session"\s*:', rb'"(min_interval|sample_count)"\s*:')),
    Foreign("a recording of memray", "it shows memory, not time", _magic(b"memray\0")),
    Foreign(
        "a profile of memory_profiler before 0.58",
        "it does not say how often a line ran; profile again with a newer one",
        _has(rb"(?m)^Filename: ", rb"Line #\s{1,9}Mem usage\s{1,9}Increment"),
    ),
    Foreign(
        "a file of stacks from Uber's JVM profiler",
        _COLLAPSED.format("its `stackcollapse.py`"),
        _json(rb'^\{"stacktrace"\s*:\s*\['),
    ),
    Foreign(
        "a file of measurements from Uber's JVM profiler",
        "",
        _json(rb'"(nonHeapMemoryTotalUsed|epochMillis)"\s*:', rb'"(pmem_|heap)'),
    ),
    Foreign(
        "a recording of ROCm's profiler",
        "it has kernels without their operators; use the output of export_chrome_trace",
        _json(rb'"rocprofiler-sdk-tool"'),
    ),
    Foreign(
        "a thread dump",
        "it shows one moment of one process; record stack samples over time",
        _has(rb"Full thread dump "),
    ),
    # Logs and traces of other systems
    Foreign(
        "metrics for Prometheus",
        _TOTALS,
        _has(rb"(?m)^metrics_(\w{1,80}\{application_id=|\S{1,200}_driver_\w)"),
    ),
    Foreign(
        "a page of a driver's metrics",
        _TOTALS,
        _json(rb'"gauges"\s*:\s*\{', rb"\.driver\.(BlockManager|DAGScheduler)\."),
    ),
    Foreign(
        "a job archive of Flink",
        "its page of the job is missing",
        _json(rb'^\s*\{\s*"archive"\s*:\s*\[', rb'"path"\s*:\s*"/'),
    ),
    Foreign("a compiled SQL plan of Flink", _PLAN, _json(rb'"flinkVersion"\s*:')),
    Foreign("a plan that Flink explains", _PLAN, _has(rb"== (Abstract Syntax Tree|Optimized Execution Plan) ==\n")),
    Foreign(
        "Flink's page of one vertex", _PAGE, _json(rb'"id"\s*:\s*"[0-9a-f]{32}"', rb'"parallelism"\s*:', rb'"now"\s*:')
    ),
    Foreign("Flink's list of jobs", _PAGE, _json(rb'^\s*\{\s*"jobs"\s*:\s*\[', rb'"(jid|id)"\s*:')),
    Foreign("Flink's page of a cluster", _PAGE, _json(rb'"slots-total"\s*:')),
    Foreign("Flink's list of TaskManagers", _PAGE, _json(rb'^\s*\{\s*"taskmanagers"\s*:\s*\[', rb'"slotsNumber"\s*:')),
    Foreign(
        "Flink's page of a job's exceptions",
        _PAGE,
        _json(rb'"(exceptionHistory|all-exceptions)"\s*:', rb'"(exceptionName|stacktrace|timestamp|truncated)"\s*:'),
    ),
    Foreign(
        "Flink's page of a vertex' back-pressure",
        _PAGE,
        _json(rb'"(backpressure-level|backpressureLevel)"\s*:'),
    ),
    Foreign("Flink's page of a job's checkpoints", _PAGE, _json(rb'"counts"\s*:', rb'"in_progress"\s*:')),
    Foreign("Flink's page of a cluster's settings", _PAGE, _json(rb'"key"\s*:\s*"(taskmanager|jobmanager)\.')),
    Foreign(
        "a single sample of Flink's metrics",
        "run `crystalperf collect flink URL` while the job runs, to record how they change",
        _json(rb'"id"\s*:\s*"(\d+\.)?(Status\.|\w+\.Netty\.|numRecords|busyTimeMsPerSecond|checkpointStartDelayNanos)'),
    ),
    Foreign(
        "a response of Flink's REST interface",
        _PAGE,
        _json(
            rb'"jid"\s*:|"Status\.JVM\.|"checkpointStartDelayNanos"|"maxParallelism"\s*:'
            rb'|"taskmanager\.|"checkpointed_size"|"latest"\s*:\s*\{\s*"(completed|savepoint)"'
        ),
    ),
    Foreign(
        "an execution trace of PyTorch (Chakra)",
        _WHEN,
        _any(
            _json(rb'^\s*\{\s*"schema"\s*:\s*"1\.\d', rb'"nodes"\s*:'),
            _has(rb"^[\x00-\xff]{1,3}\x12[\x00-\xff]\x0a\x06schema\xea\x01"),
        ),
    ),
    Foreign(
        "a memory timeline of PyTorch's profiler",
        "it shows memory, not time; use the output of export_chrome_trace for these steps",
        _json(rb"^\s*\[\s*\[\s*(-1\s*,\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]|\d{13,}\s*,\s*\d{13,}\b)"),
    ),
    Foreign(
        "a table of PyTorch's profiler",
        "it has sums of operators, not when each ran; use the output of export_chrome_trace",
        _has(rb"\n\s*Name\s[^\n]{0,200}\bSelf CPU %"),
    ),
    Foreign(
        "a file of TensorFlow's summaries without RunMetadata",
        "it has metrics of the training, not when operators ran; use the folder that tf.profiler wrote",
        lambda text: b"brain.Event:" in text[:64],
    ),
    Foreign(
        "a timeline of Horovod",
        "it shows when tensors were exchanged, not what ran; use the profiler's traces of all processes",
        _json(rb'"ph"\s*:', rb'"(CYCLE_START|Horovod\w*|NEGOTIATE_\w+)"?'),
    ),
    Foreign("a timeline of Ray", "", _json(rb'"cat"\s*:\s*"ray[.:]|"(ray::|worker:[0-9a-f]{20})')),
    Foreign(
        ASCEND,
        OTHER_NAMES,
        _json(rb"^\s{0,99}\[", rb'"cat"\s*:\s*"cpu_op"|"Ascend Hardware"|"async_npu"'),
    ),
    Foreign(
        "a trace of PyTorch's profiler",
        "",
        _json(rb'"(deviceProperties|distributedInfo)"\s*:|"aten::', rb'"(traceEvents|deviceProperties)"\s*:'),
    ),
    Foreign(
        "a trace of PyTorch's profiler before 1.8 (torch.autograd.profiler)",
        "profile with torch.profiler, and use the output of its export_chrome_trace",
        _json(rb"^\s{0,99}\[", rb'"pid"\s*:\s*"(CPU|CUDA) functions"'),
    ),
    Foreign(
        "a memory profile of TensorFlow's profiler",
        "it shows memory, not time; use the .xplane.pb or .trace.json.gz next to it",
        _json(rb'"memoryProfilePerAllocator"'),
    ),
    Foreign(
        "a trace of TensorFlow's profiler",
        "",
        _any(_json(_EVENTS, rb'"Allocators"|/(host|device|job):|tensorflow'), _xplane),
    ),
    Foreign(
        "a page of TensorFlow's profiler",
        "it has sums of steps or operators, not when each ran; use the .xplane.pb or .trace.json.gz next to it",
        _any(_has(rb"type\.googleapis\.com/tensorflow\.profiler\."), _table_of_operators),
    ),
    Foreign(
        "a job history of Hadoop MapReduce", "", _has(rb"^Avro-(Json|Binary)\n|org\.apache\.hadoop\.mapreduce\.jobh")
    ),
    Foreign("a job trace of Hadoop MapReduce", "", _json(rb'"jobID"\s*:\s*"job_\d')),
    Foreign("a page of Dask's dashboard", "", _has(rb"(?i)<html", rb"<title>\s*Dask ")),
    Foreign("a flame graph as a web page", _AGAIN, _has(rb"(?i)<(html|svg)", rb"(?i)flame ?graph")),
    Foreign(
        "a web page", "download the log itself, not the page that shows it", _has(rb"(?i)^\s{0,99}<(!doctype )?html")
    ),
    Foreign(
        "a trace in Chrome's format, which many profilers write",
        "use a trace of the profiler of PyTorch, TensorFlow or MXNet",
        _any(_json(_EVENTS), _json(rb'^\s{0,99}\[\s*\{[^{}]{0,400}"ph"\s*:\s*"')),
    ),
    Foreign(
        "a log of the garbage collector",
        "",
        _has(rb"\[G1Ergonomics |\[(Full )?GC |\[gc[,\s\]]|\[Young\]\(|Pause (Young|Full|Remark)"),
    ),
    Foreign("stacks as text, copied from Mission Control", "use the recording itself", _has(rb"<stackTrace|</frame>")),
    # Containers and documents
    Foreign("a DuckDB database", "", is_database),
    Foreign("a JPEG image", "", _magic(b"\xff\xd8\xff")),
    Foreign("a PNG image", "", _magic(b"\x89PNG")),
    Foreign("a GIF image", "", _magic(b"GIF8")),
    Foreign("a PDF document", "", _magic(b"%PDF")),
    Foreign("a Parquet file", "", _magic(b"PAR1")),
    Foreign("a program", "", _magic(b"\x7fELF")),
    Foreign("an lz4 frame", "unpack it with `lz4 -d` first", _magic(b"\x04\x22\x4d\x18")),
    Foreign("a bzip2 file", "unpack it first", _magic(b"BZh")),
    Foreign("an xz file", "unpack it first", _magic(b"\xfd7zXZ")),
    Foreign("an SQLite database", "", _magic(b"SQLite format")),
    Foreign("a Java class", "", _magic(b"\xca\xfe\xba\xbe")),
    Foreign("a table in Avro format", "", _magic(b"Obj\x01")),
    Foreign("a table in ORC format", "", _magic(b"ORC")),
    Foreign("text in UTF-16", "store it as UTF-8", _magic(b"\xff\xfe", b"\xfe\xff")),
    Foreign("an XML document", "", _has(rb"^\s{0,99}<\?xml ")),
    Foreign("a text log of a program", "use the event log, which is another file", _words),
    Foreign("a table as text", "", _table),
    Foreign(
        "binary, probably Protocol Buffers, which for example TensorFlow's profiler writes",
        "",
        _any(_repeated, _protobuf),
    ),
)
