"""The runs of a case: the unchanged program once, whose log is kept, then with its changes, in turns, three times each.

A row holds the durations of one change of one case.  The recommendation and its claim are read from the kept log with
the present code (lab.advice.claims), and belong to the row of the same change.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zstandard

from lab.advice.applying import Applied
from lab.advice.cases import Case
from lab.advice.data import make_events
from lab.errors import LabError
from lab.machine.host import cache_dir
from lab.runs.cluster import find_java
from lab.runs.datasets import make_data

JOBS = Path(__file__).parent / "jobs"
REPOSITORY = Path(__file__).resolve().parents[2]
REPETITIONS = 3
TIMEOUT_S = 300


@dataclass(frozen=True)
class Rig:
    """Where runs are made: ``work`` is emptied after each."""

    work: Path
    data: dict[str, Path]
    cores: int


def prepare(work: Path, kinds: set[str]) -> Rig:
    """A rig with the data sets that the cases need."""
    makers = {"events": make_events, "tpch": lambda: make_data("tpch", 2.0, cache_dir() / "tpch" / "sf2")}
    return Rig(work, {kind: makers[kind]() for kind in sorted(kinds)}, os.cpu_count() or 1)


def kept_log(case: Case, folder: Path) -> Path:
    """Where the event log of the unchanged run of a case is kept."""
    return folder / "logs" / f"{case.name}.zstd"


def record(case: Case, rig: Rig, folder: Path) -> Path:
    """The kept log of a case, whose unchanged program runs once if there is none."""
    target = kept_log(case, folder)
    if not target.exists():
        log = submit(case, unchanged(case), rig)
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_suffix(".partial")
        shutil.copyfile(log, partial)
        partial.rename(target)
    return target


def unchanged(case: Case) -> Applied:
    """A case as it is."""
    return Applied((JOBS / case.file).read_text(), (), "", True)


def change_id(applied: Applied) -> str:
    """The identifier of a change of a case: a digest of its program and of its further arguments."""
    return hashlib.sha256(json.dumps([applied.text, applied.arguments]).encode()).hexdigest()[:12]


def measure(case: Case, changes: Sequence[Applied], rig: Rig) -> list[dict[str, Any]]:
    """The rows of changes: durations in ms of the unchanged and of each changed run, in turns.

    The rows share the unchanged runs."""
    before: list[float] = []
    after: list[list[float]] = [[] for _ in changes]
    for _ in range(REPETITIONS):
        before.append(duration_ms(submit(case, unchanged(case), rig)))
        for took, changed in zip(after, changes, strict=True):
            took.append(duration_ms(submit(case, changed, rig)))
    return [
        {
            "case": case.name,
            "change": change_id(changed),
            "arguments": list(changed.arguments),
            "how": changed.how,
            "before_ms": before,
            "after_ms": took,
            "date": time.strftime("%Y-%m-%d"),
        }
        for took, changed in zip(after, changes, strict=True)
    ]


def submit(case: Case, applied: Applied, rig: Rig) -> Path:
    """The event log of one run of the case.

    Raises LabError if Spark fails.
    """
    shutil.rmtree(rig.work, ignore_errors=True)
    for name in ("logs", "output", "scratch"):
        (rig.work / name).mkdir(parents=True)
    program = rig.work / case.file
    program.write_text(applied.text)
    conf = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "true",
        "spark.eventLog.dir": (rig.work / "logs").as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.local.dir": str(rig.work / "scratch"),
        "spark.ui.enabled": "false",
        "spark.driver.memory": "2g",
    } | dict(case.conf)
    settings = [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    command = [
        str(Path(sys.executable).with_name("spark-submit")),
        *("--master", f"local[{case.slots}]"),
        *settings,
        *applied.arguments,
        *(str(program), str(rig.data[case.data]), str(rig.work / "output"), *case.arguments),
    ]
    environment = os.environ | {
        "JAVA_HOME": str(find_java().resolve().parent.parent),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": str(REPOSITORY),
    }
    environment.pop("SPARK_HOME", None)
    with open(rig.work / "spark.log", "wb") as log:
        try:
            done = subprocess.run(command, stdout=log, stderr=log, env=environment, timeout=TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired:
            raise LabError(f"{case.name}: Spark did not end in {TIMEOUT_S} s; see {rig.work / 'spark.log'}.") from None
    if done.returncode:
        raise LabError(f"{case.name}: Spark ended with exit status {done.returncode}; see {rig.work / 'spark.log'}.")
    found = sorted((rig.work / "logs").iterdir())
    if len(found) != 1:
        raise LabError(f"{case.name}: {len(found)} event logs instead of one in {rig.work / 'logs'}.")
    return found[0]


def duration_ms(log: Path) -> float:
    """The time from the start to the end of the application in a complete log."""
    with open(log, "rb") as file:
        reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        lines = [line for line in io.TextIOWrapper(reader) if line.startswith('{"Event":"SparkListenerApplication')]
    start, end = (json.loads(line)["Timestamp"] for line in lines)
    return float(end - start)
