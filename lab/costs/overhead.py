"""What recording costs: ``python -m lab overhead --out DIR``.

Runs of one query on different JVMs differ by 20 % in their CPU time, by what the compiler has come to, so they cannot
tell a cost of 2 %. Here one JVM runs the query all the time, driver and executor in one, and recorders are switched on
and off around it in turn, each between two turns without. It needs neither root nor a quiet hour, only as little else
on the machine as possible.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from scipy.stats import binom

from crystalperf.query.recordings.flags import STACK_DEPTH, jfr_settings
from lab.errors import LabError
from lab.runs.datasets import make_data
from lab.runs.samplers import async_profiler_jar, async_profiler_library
from lab.runs.workloads import Workload, find_workload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERY, SCALE_FACTOR = "q9", 0.25
CONFIDENCE = 0.95
WARM_UPS = 40
SETTLING = 2
"""Passes after a switch that do not count: JFR rewrites the classes that it watches, and they are compiled anew."""
PASSES = 4
FILE = "overhead.jsonl"
_SEED = 20210714
_OWN_THREADS = ("JFR ", "Async-profiler")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Recorder:
    """A recorder by the name that tables give it, with its period."""

    kind: str
    sample_ms: int

    @property
    def name(self) -> str:
        return "none" if self.kind == "none" else f"{self.kind}{self.sample_ms}"


NONE = Recorder("none", 0)
RECORDERS = (Recorder("jfr", 20), Recorder("jfr", 100), Recorder("async", 20), Recorder("async", 100))


@dataclass(frozen=True)
class Turn:
    """The counted passes under one recorder, and what switching it on and off cost the JVM."""

    round: int
    recorder: str
    cpu_ms: float
    own_cpu_ms: float
    """Of the recorder's own threads, of `cpu_ms`."""
    wall_ms: float
    switching_cpu_ms: float
    recorded_bytes: int


def turns(rounds: int) -> list[tuple[int, Recorder]]:
    """The order of a measurement, always the same: every recorder once a round, each between two turns without."""
    chance = random.Random(_SEED)
    order = []
    for number in range(rounds):
        for each in chance.sample(RECORDERS, len(RECORDERS)):
            order += [(number, NONE), (number, each)]
    return [*order, (rounds - 1, NONE)]


def measure(out: Path, rounds: int) -> list[Turn]:
    """Measure, with a line of progress a round on stderr; the turns are also written to ``out``/overhead.jsonl."""
    if rounds < 1:
        raise LabError(f"{rounds} rounds measure nothing; ask for at least one, better for seven or more.")
    workload = find_workload(QUERY)
    data = make_data(workload.data, SCALE_FACTOR)
    out.mkdir(parents=True, exist_ok=True)
    library = async_profiler_library()
    with tempfile.TemporaryDirectory() as folder, _session(Path(folder), workload) as spark:
        workload.prepare(spark, str(data.resolve()))
        for _ in range(WARM_UPS):
            workload.run(spark)
        jvm = _Jvm(spark, library, Path(folder))
        found = []
        for number, recorder in turns(rounds):
            found.append(_turn(jvm, lambda: workload.run(spark), number, recorder))
            if recorder != NONE:
                _say(f"round {number + 1} of {rounds}, {recorder.name}: {found[-1].cpu_ms / PASSES / 1e3:.2f} s of CPU")
    partial = out / f"{FILE}.partial"
    partial.write_text("".join(json.dumps(asdict(turn)) + "\n" for turn in found))
    partial.rename(out / FILE)
    return found


def read(out: Path) -> list[Turn]:
    """The turns that a measurement left in ``out``; empty without one."""
    file = out / FILE
    return [Turn(**json.loads(line)) for line in file.read_text().splitlines()] if file.exists() else []


def table(found: Sequence[Turn]) -> list[str]:
    """What each recorder adds to the JVM's CPU time and to the runtime, by its turns over the two around each."""
    lines = [
        "| recorder | pairs | CPU time, median (95 % interval) | runtime, median (95 % interval) |"
        " its own threads, of CPU time | switching on and off, CPU | file |",
        "|---|---:|---|---|---:|---:|---:|",
    ]
    for recorder in RECORDERS:
        at = [position for position, turn in enumerate(found) if turn.recorder == recorder.name]
        if not at:
            continue
        cpu, wall = (
            [100 * (_over(found, position, cost) - 1) for position in at]
            for cost in (lambda turn: turn.cpu_ms, lambda turn: turn.wall_ms)
        )
        own = statistics.median(100 * found[position].own_cpu_ms / found[position].cpu_ms for position in at)
        once_ms = statistics.median(found[position].switching_cpu_ms for position in at)
        written = statistics.median(60e3 * found[position].recorded_bytes / found[position].wall_ms for position in at)
        lines.append(
            f"| {recorder.name} | {len(at)} | {_with_interval(cpu)} | {_with_interval(wall)} |"
            f" {own:.1f} % | {once_ms / 1e3:.2f} s | {written / 1e6:.1f} MB/min |"
        )
    return lines


def _over(found: Sequence[Turn], position: int, cost: Callable[[Turn], float]) -> float:
    """The cost of a turn over the mean of the turns without a recorder before and after it."""
    return cost(found[position]) / statistics.mean((cost(found[position - 1]), cost(found[position + 1])))


def _with_interval(values: Sequence[float]) -> str:
    low, high = median_interval(values)
    return f"{statistics.median(values):+.1f} % ({low:+.1f} to {high:+.1f})"


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """The interval that holds the median with 95 %, by order statistics; all of the values where they are too few."""
    ordered = sorted(values)
    cut = max(int(binom.ppf((1 - CONFIDENCE) / 2, len(ordered), 0.5)) - 1, 0)
    return ordered[cut], ordered[-1 - cut]


def _turn(jvm: _Jvm, run: Callable[[], int], number: int, recorder: Recorder) -> Turn:
    before_ms = jvm.cpu_ms()
    recording = jvm.start(recorder)
    switching_ms = jvm.cpu_ms() - before_ms
    for _ in range(SETTLING):
        run()
    start, cpu_ms, own_ms = time.perf_counter(), jvm.cpu_ms(), jvm.recorders_cpu_ms()
    for _ in range(PASSES):
        run()
    wall_ms, cpu_ms = 1e3 * (time.perf_counter() - start), jvm.cpu_ms() - cpu_ms
    own_ms = jvm.recorders_cpu_ms() - own_ms
    before_ms = jvm.cpu_ms()
    written = recording()
    switching_ms += jvm.cpu_ms() - before_ms
    share = PASSES / (PASSES + SETTLING)  # of the file
    return Turn(number, recorder.name, cpu_ms, own_ms, wall_ms, switching_ms, round(written * share))


class _Jvm:
    """The one JVM, in which everything runs, with its recorders."""

    def __init__(self, spark: SparkSession, library: Path, folder: Path) -> None:
        self.java = cast(Any, spark.sparkContext._jvm)
        self.process = Path(f"/proc/{self.java.java.lang.ProcessHandle.current().pid()}")
        self.profiler = self.java.one.profiler.AsyncProfiler.getInstance(str(library))
        self.folder = folder

    def cpu_ms(self) -> float:
        """CPU time of all threads so far."""
        fields = (self.process / "stat").read_text().rpartition(")")[2].split()
        return 1e3 * (int(fields[11]) + int(fields[12])) / _TICKS_PER_S

    def recorders_cpu_ms(self) -> float:
        """CPU time so far of the threads that do nothing but record."""
        total_ns = 0
        for thread in (self.process / "task").iterdir():
            with contextlib.suppress(OSError):  # it may have ended
                if (thread / "comm").read_text().startswith(_OWN_THREADS):
                    total_ns += int((thread / "schedstat").read_text().split()[0])
        return total_ns / 1e6

    def start(self, recorder: Recorder) -> Callable[[], int]:
        """Switch a recorder on; what comes back switches it off and returns the bytes that it wrote."""
        file = self.folder / "recording.jfr"
        if recorder.kind == "jfr":
            recording = self.java.jdk.jfr.Recording()
            recording.setSettings(jfr_settings(recorder.sample_ms))
            recording.setToDisk(True)
            recording.start()

            def stop() -> int:
                recording.stop()
                recording.dump(self.java.java.nio.file.Path.of(str(file), self._no_strings()))
                recording.close()
                return _size(file)

            return stop
        if recorder.kind == "async":
            self.profiler.execute(f"start,event=wall,interval={recorder.sample_ms}ms,jfr,file={file}")

            def end() -> int:
                self.profiler.execute(f"stop,file={file}")
                return _size(file)

            return end
        return lambda: 0

    def _no_strings(self) -> Any:
        return self.java.java.lang.reflect.Array.newInstance(self.java.java.lang.Class.forName("java.lang.String"), 0)


def _size(file: Path) -> int:
    size = file.stat().st_size
    file.unlink()
    return size


@contextlib.contextmanager
def _session(folder: Path, workload: Workload) -> Iterator[SparkSession]:
    """Spark on two slots of this machine, without a user interface and a log."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise LabError("The lab needs pyspark; install it with 'pip install pyspark==4.0.1'.") from None
    builder = SparkSession.builder.master("local[2]").appName("crystalperf-lab overhead")
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "2g",
        "spark.driver.extraClassPath": str(async_profiler_jar()),
        "spark.driver.extraJavaOptions": f"-XX:+UseG1GC -XX:FlightRecorderOptions:stackdepth={STACK_DEPTH}",
        "spark.local.dir": str(folder / "local"),
        "spark.log.level": "ERROR",
        "spark.ui.showConsoleProgress": "false",
    }
    for name, value in (settings | workload.spark_conf).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()
        shutil.rmtree(folder / "local", ignore_errors=True)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
