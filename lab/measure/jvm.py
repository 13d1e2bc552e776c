"""Measure what functions of the JDK, Netty, Hadoop, Parquet and other JVM libraries spend their time on.

    python -m lab.measure.jvm SOURCES SCRATCH

Like python.py, with the workloads of java/Measure.java and java/MeasureLibraries.java. The plain runs are
recorded by the JVM's flight recorder with every threshold at 0, so that each read and write of a file or a socket
is there with its duration (read by query.recordings.jfr). Where these events cover most of the time a call was
blocked, they divide it. The recorder has no event for opening, listing or deleting a file, nor for connecting and
selecting: there strace does, if it is installed; without it such functions are left out. Needs a JDK 17 or newer, mvn
for the libraries (of the versions in libraries.toml), and better root.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np

import crystalperf.query.recordings.jfr
from crystalperf.indexer.labels.libraries import libraries
from crystalperf.indexes.errors import BuildError, CrystalPerfError, SettingError
from crystalperf.query.recordings.jfr import INTERVAL_KINDS, Recording
from lab.measure.host import Host, prepared
from lab.measure.places import find
from lab.measure.python import peers, serve
from lab.measure.strace import STRACE, Blocked, blocked_times, parse_strace
from lab.measure.table import Row, describe, store
from lab.measure.times import Run, middle, middle_blocked
from lab.measure.times import shares as shares_of

JAVA = Path(__file__).parent / "java"
WARM_RUNS = 2
"""The first runs load classes and compile: not counted."""
PLAIN_RUNS = 3
TRACED_RUNS = 2
COVERED = 0.5
"""The share of a call's blocked time that the recorder's events must cover to divide it."""
HARDLY = 0.25
"""Blocked time that is less than this of the CPU time cannot decide, whatever it was."""

EVENTS: tuple[str, ...] = (
    "FileRead",
    "FileWrite",
    "FileForce",
    "SocketRead",
    "SocketWrite",
    "ThreadPark",
    "ThreadSleep",
)
EVENTS += ("JavaMonitorWait", "JavaMonitorEnter")
FILES = tuple(INTERVAL_KINDS.index(name) for name in ("FILE_READ", "FILE_WRITE", "FILE_FORCE"))
SOCKETS = tuple(INTERVAL_KINDS.index(name) for name in ("SOCKET_READ", "SOCKET_WRITE"))
WAITS = tuple(INTERVAL_KINDS.index(name) for name in ("PARK", "SLEEP", "MONITOR_WAIT", "MONITOR_ENTER"))
JARS = {
    "hadoop": ("org.apache.hadoop:hadoop-client-api", "org.apache.hadoop:hadoop-client-runtime"),
    "parquet": ("org.apache.parquet:parquet-hadoop",),
    "netty": ("io.netty:netty-all",),
    "commons-io": ("commons-io:commons-io",),
    "commons-compress": ("org.apache.commons:commons-compress",),
    "kryo": ("com.esotericsoftware:kryo",),
    "okhttp": ("com.squareup.okhttp3:okhttp",),
    "okio": ("com.squareup.okio:okio",),
    "lucene": ("org.apache.lucene:lucene-core",),
    "httpcore5": ("org.apache.httpcomponents.core5:httpcore5",),
    "httpclient5": ("org.apache.httpcomponents.client5:httpclient5",),
}
MEASURED = ("jdk-java.base", *JARS)


@dataclass(frozen=True, slots=True)
class Window:
    """When a run of a workload was, by the clock of the recording."""

    begin_ns: int
    end_ns: int
    thread: str = "main"


def recorded_times(recording: Recording, windows: Iterable[Window]) -> list[Blocked]:
    """The time of the recorder's events in each window, by kind, of the window's thread.

    While that thread waits for another, the other threads' files and sockets count instead.
    """
    intervals = recording.intervals
    found = []
    for window in windows:
        callers = [number for number, its in enumerate(recording.threads) if its.java_name == window.thread]
        mine = np.isin(intervals.thread, callers)
        start, end = np.maximum(intervals.start_ns, window.begin_ns), np.minimum(intervals.end_ns, window.end_ns)
        inside = end > start
        length_ms = np.where(inside, end - start, 0) / 1e6

        def total(kinds: Sequence[int], whose: Any, length_ms: Any = length_ms) -> float:
            return float(length_ms[np.isin(intervals.kind, kinds) & whose].sum())

        wait_ms = total(WAITS, mine)
        files_ms, sockets_ms = total(FILES, ~mine), total(SOCKETS, ~mine)
        scale = min(1.0, wait_ms / (files_ms + sockets_ms)) if files_ms + sockets_ms > 0 else 0.0
        found.append(
            Blocked(
                total(FILES, mine) + files_ms * scale,
                total(SOCKETS, mine) + sockets_ms * scale,
                wait_ms - (files_ms + sockets_ms) * scale,
            )
        )
    return found


def covers(run: Run, recorded: Blocked) -> bool:
    """Whether the recorder's files and sockets tell what blocked a run, or it was hardly blocked at all.

    Its waits do not count: they may hide what another thread did in a call that it has no event for.
    """
    off_ms = max(0.0, run.wall_ms - run.cpu_ms - run.queued_ms)
    return recorded.file_ms + recorded.socket_ms >= COVERED * off_ms or off_ms < HARDLY * run.cpu_ms


def choose(run: Run, recorded: Blocked, traced: Blocked | None) -> tuple[Blocked, str] | None:
    """What divides a run's blocked time, and the tool's name; None where nothing can."""
    if covers(run, recorded):
        return recorded, "jfr"
    if traced is not None:
        return traced, "strace"
    off_ms = max(0.0, run.wall_ms - run.cpu_ms - run.queued_ms)
    known_ms = recorded.file_ms + recorded.socket_ms + recorded.wait_ms
    return (recorded, "jfr") if known_ms >= COVERED * off_ms else None


def fetch_jars(folder: Path) -> None:
    """The libraries' own jars and what they need, of the labelled versions, through mvn."""
    folder.mkdir(parents=True, exist_ok=True)
    version = {library.name: library.version for library in libraries()}
    wanted = "".join(
        f"<dependency><groupId>{escape(group)}</groupId><artifactId>{escape(artifact)}</artifactId>"
        f"<version>{escape(version[name])}</version></dependency>"
        for name, coordinates in JARS.items()
        for group, artifact in (each.split(":") for each in coordinates)
    )
    project, fetched = folder / "pom.xml", folder / "fetched.xml"
    text = (
        "<project><modelVersion>4.0.0</modelVersion><groupId>measure</groupId><artifactId>measure</artifactId>"
        f"<version>1</version><dependencies>{wanted}</dependencies></project>"
    )
    if fetched.is_file() and fetched.read_text(encoding="utf-8") == text:
        return
    for old in folder.glob("*.jar"):
        old.unlink()
    project.write_text(text, encoding="utf-8")
    _run(["mvn", "-q", "-B", "-f", str(project), "dependency:copy-dependencies", f"-DoutputDirectory={folder}"])
    project.rename(fetched)


def _run(command: Sequence[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise SettingError(f"{command[0]} is needed and was not found: install it") from error
    if done.returncode:
        raise BuildError(f"{command[0]} failed: {(done.stdout + done.stderr).strip().rpartition(chr(10))[2]}")


def measure(
    scratch: Path, host: Host, ports: dict[str, int], only: str
) -> tuple[dict[int, dict[str, Any]], dict[int, tuple[Blocked, str, Run]]]:
    """Run the workloads, recorded and then traced: (case by number, (blocked, tool, median run) by number)."""
    pairs = ",".join(f"{name}={port}" for name, port in ports.items())
    recording_path = scratch / "measure.jfr"
    java = [
        "java",
        "-Xmx1g",
        "-XX:+UseSerialGC",
        "-Xlog:disable",
        "-Xlog:all=error:stderr",
        "-cp",
        f"{scratch / 'classes'}:{scratch / 'jars'}/*",
    ]

    def arguments(runs: int) -> list[str]:
        return ["Measure", str(host.folder), host.peer, pairs, str(runs), only]

    thresholds = ",".join(f"jdk.{name}#enabled=true,jdk.{name}#threshold=0ms" for name in EVENTS)
    flight = f"-XX:StartFlightRecording:filename={recording_path},settings=default,{thresholds}"
    told: dict[int, dict[str, Any]] = {}
    runs: dict[int, list[tuple[Run, Window]]] = defaultdict(list)
    for message in serve([*java, flight, *arguments(WARM_RUNS + PLAIN_RUNS)], host, dict(os.environ)):
        if "case" in message:
            told[message["case"]] = message
        elif "failed" in message:
            print(f"left out: {told[message['failed']]['qualified']} {message['why']}", flush=True)
            runs.pop(message["failed"], None)
        elif message["run"] >= WARM_RUNS:
            values = (message[name] for name in ("wall_ms", "cpu_ms", "queued_ms", "deferred_ms"))
            window = Window(message["begin_ns"], message["end_ns"], message["thread"])
            runs[message["result"]].append((Run(*values), window))
    recording = crystalperf.query.recordings.jfr.read(recording_path)
    middles: dict[int, tuple[Run, Blocked]] = {}
    for number, its_runs in runs.items():
        if len(its_runs) == PLAIN_RUNS:
            recorded = recorded_times(recording, [window for _, window in its_runs])
            middles[number] = middle([each for each, _ in its_runs]), middle_blocked(recorded)
    untold = [number for number, (run, recorded_) in middles.items() if not covers(run, recorded_)]
    traced: dict[int, list[Blocked]] = defaultdict(list)
    if untold and shutil.which("strace"):
        trace = scratch / "strace.txt"
        numbers = ",".join(map(str, untold))
        command = [*STRACE, "-o", str(trace), *java, *arguments(WARM_RUNS + TRACED_RUNS), numbers]
        for _ in serve(command, host, dict(os.environ)):
            pass
        with trace.open(encoding="utf-8", errors="replace") as lines:
            for (number, run_number), its in blocked_times(parse_strace(lines)).items():
                if run_number >= WARM_RUNS:
                    traced[number].append(its)
        trace.unlink()
    results: dict[int, tuple[Blocked, str, Run]] = {}
    for number, (run, recorded_) in middles.items():
        if chosen := choose(run, recorded_, middle_blocked(traced[number]) if traced[number] else None):
            results[number] = (*chosen, run)
    recording_path.unlink()
    return told, results


def report(
    library: str,
    sources: Path,
    told: dict[int, dict[str, Any]],
    results: dict[int, tuple[Blocked, str, Run]],
    *,
    some: bool,
) -> None:
    """Print what was measured of a library and put it into measured.tsv."""
    rows: list[Row] = []
    places: dict[tuple[str, str], int] = {}
    for number in results:
        places.setdefault((told[number]["file"], told[number]["qualified"]), number)
    for key, number in places.items():
        try:
            located = find(library, [key], sources)[key]
        except CrystalPerfError as error:
            print(f"left out: {error}")
            continue
        blocked, tool, run = results[number]
        its = shares_of(run, blocked)
        rows.append((located, its, run, PLAIN_RUNS, tool))
        print(describe(library, key[1], its, run), tool)
    for number in told.keys() - results.keys():
        print(f"left out: {told[number]['qualified']}, of whose blocked time too little is known")
    replaced = frozenset[str]() if some or not rows else frozenset([library])
    print(f"{len(rows)} functions of {library} measured, {store(rows, replaced)} in measured.tsv", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m lab.measure.jvm", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("sources", type=Path, help="the sources that crystalperf.indexer.labels.fetch fetched")
    parser.add_argument("scratch", type=Path, help="a folder on a disk, with 3 GB free")
    parser.add_argument("--library", action="append", choices=MEASURED, help="only this one; may be repeated")
    parser.add_argument("--only", default="", help="only functions whose name this finds; the others stay as they are")
    arguments = parser.parse_args()
    try:
        fetch_jars(arguments.scratch / "jars")
        classes = arguments.scratch / "classes"
        _run(
            [
                "javac",
                "-nowarn",
                "-cp",
                f"{arguments.scratch / 'jars'}/*",
                "-d",
                str(classes),
                *map(str, JAVA.glob("*.java")),
            ]
        )
        with prepared(arguments.scratch) as host, peers() as ports:
            # A library at a time: what one leaves behind (threads, caches) is not there for the next, and what is
            # measured is kept whatever happens later.
            for library in arguments.library or MEASURED:
                only = f"^(?={re.escape(library)} ).*(?:{arguments.only})"
                told, results = measure(arguments.scratch, host, ports, only)
                report(library, arguments.sources, told, results, some=bool(arguments.only))
        return 0
    except CrystalPerfError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
