"""The file format of a job's metrics: JOB.series.gz next to the archive JOB, which `crystalperf collect` writes.

Metrics are sampled once a second.  The file has lines of JSON in consecutive gzip members, so that it can be appended
to.  A line that begins a segment names the columns, the others are samples:

    {"flink":"series","job":"…","version":"1.20.3","columns":["records_in",…],"vertices":["…",…],"workers":{"tm1":…}}
    {"t":1700000000000,"v":[[[12,34,…],…],…],"w":{"tm1":[…]},"l":{"SOURCE.OPERATOR.0":[95.1,93,120],…},
     "o":{"VERTEX":{"Lookup":[1200,1180],…},…}}

`v` has for each vertex its subtasks, each with the values of `columns`; `w` the columns WORKER of each TaskManager; `l`
latencies by source, operator and subtask, ms: mean, median, 95th percentile.  `o` has the columns OPERATOR of operators
that may hold records, by vertex and name, summed over subtasks; older files have none.  A value that the cluster does
not report is null.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from crystalperf.indexes.frozen import frozen
from crystalperf.query.inputs.containers import LogFile, lines
from crystalperf.query.trace.records import Problems

SUFFIX = ".series.gz"

COLUMNS: dict[str, str] = {
    "records_in": "numRecordsIn",
    "records_out": "numRecordsOut",
    "bytes_in_local": "numBytesInLocal",
    "bytes_in_remote": "numBytesInRemote",
    "buffers_in_local": "numBuffersInLocal",
    "buffers_in_remote": "numBuffersInRemote",
    "bytes_out": "numBytesOut",
    "busy_ms": "accumulateBusyTimeMs",
    "backpressured_ms": "accumulateBackPressuredTimeMs",
    "idle_ms": "accumulateIdleTimeMs",
    "busy_per_s": "busyTimeMsPerSecond",
    "backpressured_per_s": "backPressuredTimeMsPerSecond",
    "input_buffers": "buffers.inputQueueLength",
    "input_bytes": "buffers.inputQueueSize",
    "output_buffers": "buffers.outputQueueLength",
    "output_bytes": "buffers.outputQueueSize",
}
"""Names of columns, and of Flink's metric of a subtask.  Sums grow from the subtask's start; `per_s` are Flink's means
over the last minute, for versions without sums; the last four are momentary lengths of queues."""

WORKER: dict[str, str] = {
    "cpu_ns": "Status.JVM.CPU.Time",
    "gc_ms": "Status.JVM.GarbageCollector.All.Time",
    "heap_bytes": "Status.JVM.Memory.Heap.Used",
    "managed_bytes": "Status.Flink.Memory.Managed.Used",
    "free_segments": "Status.Shuffle.Netty.AvailableMemorySegments",
}
"""The same for a TaskManager."""

OPERATOR: dict[str, str] = {"records_in": "numRecordsIn", "records_out": "numRecordsOut"}
"""The same for an operator."""

LATENCIES = ("latency_mean", "latency_median", "latency_p95")

_MAX_LINES = 2_000_000


class _Line(msgspec.Struct):
    flink: str = ""
    job: str = ""
    version: str | None = None
    columns: list[str] = []
    vertices: list[str] = []
    workers: dict[str, dict[str, Any]] = {}
    t: float = 0.0
    v: list[list[list[float | None]]] = []
    w: dict[str, list[float | None]] = {}
    l: dict[str, list[float | None]] = {}  # noqa: E741 - short, because the file has one per second
    o: dict[str, dict[str, list[float | None]]] = {}


@frozen
class Sample:
    """One sample of a job's metrics: by vertex and column the values of its subtasks; by TaskManager and column its
    values.

    `operators` has the columns OPERATOR by vertex and name.
    """

    time_ms: float
    vertices: dict[str, dict[str, list[float | None]]]
    workers: dict[str, dict[str, float | None]]
    latencies: dict[str, list[float | None]]
    operators: dict[str, dict[str, list[float | None]]]


@dataclass
class Series:
    """All samples of a job, in order of time."""

    version: str | None = None
    workers: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Facts of TaskManagers: `slots`, `cores` of their machine, `stated_cores` of Flink's configuration, `host`."""
    samples: list[Sample] = field(default_factory=list)


def beginning(job: str, version: str | None, vertices: Sequence[str], workers: dict[str, dict[str, Any]]) -> bytes:
    """The line that begins a segment."""
    columns = list(COLUMNS)
    line = {"flink": "series", "job": job, "version": version, "columns": columns, "vertices": list(vertices)}
    return msgspec.json.encode({**line, "workers": workers})


def sample_line(
    time_ms: int,
    vertices: Sequence[Sequence[Sequence[float | None]]],
    workers: dict[str, list[float | None]],
    latencies: dict[str, list[float | None]],
    operators: dict[str, dict[str, list[float | None]]],
) -> bytes:
    """The line of one sample."""
    found: dict[str, Any] = {"t": time_ms, "v": vertices, "w": workers}
    found |= {key: values for key, values in (("l", latencies), ("o", operators)) if values}
    return msgspec.json.encode(found)


def append(path: Path, some: Iterable[bytes]) -> None:
    """Append lines as one gzip member, in one write: a reader never takes a partial write for anything else."""
    with path.open("ab") as file:
        file.write(gzip.compress(b"\n".join(some) + b"\n", mtime=0))


def read(log: LogFile, problems: Problems) -> Series:
    """The samples of a file; invalid lines are skipped and reported in `problems`."""
    found, columns, vertices = Series(), list[str](), list[str]()
    decoder = msgspec.json.Decoder(_Line)
    for number, text in enumerate(lines(log, problems)):
        if number >= _MAX_LINES:
            break
        if not text.strip():
            continue
        try:
            line = decoder.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            problems.add("damaged sample", "data loss", log.origin, str(number), f"looks that cannot be read ({error})")
            continue
        if line.flink:
            columns, vertices = line.columns, line.vertices
            found.version = line.version or found.version
            found.workers |= line.workers
        elif line.t > 0:
            found.samples.append(_sample(line, columns, vertices))
    found.samples.sort(key=lambda each: each.time_ms)
    return found


def _sample(line: _Line, columns: Sequence[str], vertices: Sequence[str]) -> Sample:
    by_vertex = {
        vertex: {
            name: [values[place] if place < len(values) else None for values in subtasks]
            for place, name in enumerate(columns)
        }
        for vertex, subtasks in zip(vertices, line.v, strict=False)
    }
    by_worker = {worker: dict(zip(WORKER, values, strict=False)) for worker, values in line.w.items()}
    return Sample(line.t, by_vertex, by_worker, line.l, line.o)
