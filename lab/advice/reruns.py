"""The runs of a case: the unchanged program once, then both, interleaved, three times each."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.advice.applying import Applied, apply
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
    makers = {"events": make_events, "tpch": lambda: make_data("tpch", 1.0, cache_dir() / "tpch" / "sf1")}
    return Rig(work, {kind: makers[kind]() for kind in sorted(kinds)}, os.cpu_count() or 1)


def prove(case: Case, rig: Rig, ranks: int = 1) -> list[dict[str, Any]]:
    """The rows of a case, one for each of its first ``ranks`` recommendations (one that says so if it has none)."""
    text = (JOBS / case.file).read_text()
    unchanged = Applied(text, (), "", True)
    log = submit(case, unchanged, rig)
    verdict = analyze(log)
    recommended = verdict["recommendations"][:ranks]
    if not recommended:
        return [_row(case, 0, None, "no recommendation", [], [], verdict)]
    rows = []
    for rank, recommendation in enumerate(recommended, 1):
        changed = apply(case, text, recommendation, rig.cores)
        before: list[float] = []
        after: list[float] = []
        for _ in range(REPETITIONS if changed.tried else 0):
            before.append(duration_ms(submit(case, unchanged, rig)))
            after.append(duration_ms(submit(case, changed, rig)))
        rows.append(_row(case, rank, recommendation, changed.how, before, after, verdict))
    return rows


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
        "spark.eventLog.dir": (rig.work / "logs").as_uri(),
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


def analyze(log: Path) -> dict[str, Any]:
    """The answer of ``crystalperf analyze --json`` for a log."""
    command = [sys.executable, "-m", "crystalperf", "analyze", str(log), "--json"]
    environment = os.environ | {"CRYSTALPERF_HOME": str(log.parent.parent / "home"), "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=TIMEOUT_S, check=False)
    if done.returncode:
        raise LabError(f"crystalperf analyze failed: {done.stderr.strip()}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def duration_ms(log: Path) -> float:
    """The runtime of the application in a log."""
    return float(analyze(log)["header"]["duration_ms"])


def _row(
    case: Case,
    rank: int,
    recommendation: dict[str, Any] | None,
    how: str,
    before: list[float],
    after: list[float],
    verdict: dict[str, Any],
) -> dict[str, Any]:
    chosen = recommendation or {}
    return {
        "case": case.name,
        "rank": rank,
        "kind": chosen.get("kind"),
        "because": chosen.get("because"),
        "text": chosen.get("text"),
        "lines": chosen.get("lines", []),
        "saving": chosen.get("saving"),
        "how": how,
        "recorded_ms": verdict["header"]["duration_ms"],
        "before_ms": before,
        "after_ms": after,
        "date": time.strftime("%Y-%m-%d"),
    }
