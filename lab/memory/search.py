"""The smallest heap with which a job works, by bisection.

A job works if it ends without an error, and takes at most twice the CPU time that it takes in a roomy heap.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from lab.errors import LabError
from lab.memory.logs import needs_mib
from lab.runs.cluster import spark_environment

ROOMY_MIB = 3072
LEAST_MIB = 460
"""Spark does not start with less than 450 MiB."""

ROUNDS = 3
"""Maximum number of runs in safe heaps, each in the one that the log before showed."""

HARDLY_SMALLER = 0.95
"""A safe heap of more than this share of the one before is not tried."""

STEP = 1.12
SLOWER = 2.0
TIMEOUT_S = 300
GRACE_S = 8

_LITTLE_COMPILING = "-XX:TieredStopAtLevel=1"
"""Without the second compiler, which takes half of the CPU time of so short a run."""

HEAPS_MIB = [round(LEAST_MIB * STEP**step) for step in range(17)]
"""The heaps to choose from, each 12 % above the one before."""

_RAN_OUT = re.compile(rb"OutOfMemoryError|exit code 52|Cannot grow BufferHolder|Not enough memory|exited with code 52")


@dataclass(frozen=True)
class Tried:
    """One run: its heap, ``ended`` (``well``, ``ran-out``, ``failed`` or ``too-long``) and what it took."""

    heap_mib: int
    ended: str
    wall_s: float | None = None
    cpu_s: float | None = None
    resident_bytes: dict[str, int] | None = None


def is_tuning(name: str) -> bool:
    """Whether a job belongs to the half that constants may be fitted to."""
    return int(hashlib.sha256(name.encode()).hexdigest()[0], 16) % 2 == 0


def search(try_heap: Callable[[int], Tried], roomy: Tried) -> list[Tried]:
    """The runs after the roomy one: the smallest heap first, then by halves.  Larger heaps work if a smaller does."""
    tried = [try_heap(HEAPS_MIB[0])]
    if works(tried[0], roomy):
        return tried
    fails, fits = 0, len(HEAPS_MIB)
    while fits - fails > 1:
        middle = (fails + fits) // 2
        tried.append(try_heap(HEAPS_MIB[middle]))
        fails, fits = (fails, middle) if works(tried[-1], roomy) else (middle, fits)
    return tried


def works(tried: Tried, roomy: Tried) -> bool:
    """Whether a run ended well, and about as fast as the roomy one."""
    if tried.ended != "well" or tried.cpu_s is None or roomy.cpu_s is None:
        return False
    return tried.cpu_s <= SLOWER * roomy.cpu_s


def smallest_mib(tried: list[Tried], roomy: Tried) -> int:
    """The smallest heap that worked."""
    return min(each.heap_mib for each in [*tried, roomy] if works(each, roomy))


def prove(name: str, out: Path) -> dict[str, object]:
    """The row of a job.  The log of its roomy run stays in ``out``/logs."""
    work = out / f"work-{name}"
    roomy = run(name, ROOMY_MIB, work, recorded=True)
    if roomy.ended != "well":
        raise LabError(f"{name} does not work with {ROOMY_MIB} MiB ({roomy.ended}); see {work / 'spark.log'}.")
    needs = needs_mib(_kept(work, out / "logs" / name))
    tried = search(lambda heap_mib: run(name, heap_mib, work), roomy)
    shutil.rmtree(work, ignore_errors=True)
    return {
        "job": name,
        "tuning": is_tuning(name),
        "roomy": asdict(roomy),
        "needs": needs,
        "tried": [asdict(each) for each in tried],
        "smallest_mib": smallest_mib(tried, roomy),
        "date": time.strftime("%Y-%m-%d"),
    }


def check(name: str, safe_mib: int, out: Path) -> list[dict[str, object]]:
    """The rows of a job in its safe heap, then in the one that the log of that run shows to be safe, and so on.

    It ends where a safe heap is hardly smaller than the one before, or a run failed."""
    work, rows = out / f"work-{name}", []
    for number in range(1, ROUNDS + 1):
        tried = run(name, safe_mib, work, recorded=True)
        row = {"job": name, "round": number, **asdict(tried), "needs": None}
        rows.append(row)
        if tried.ended != "well":
            break
        row["needs"] = found = needs_mib(_kept(work, out / "logs" / f"{name}-{number}"))
        if found["safe"] > HARDLY_SMALLER * safe_mib:
            break
        safe_mib = max(found["safe"], LEAST_MIB)
    shutil.rmtree(work, ignore_errors=True)
    return rows


def _kept(work: Path, target: Path) -> Path:
    """The log of the last run, copied to `target`."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(next((work / "logs").glob("*")), target)
    return target


def run(name: str, heap_mib: int, work: Path, *, recorded: bool = False) -> Tried:
    """Run a job once in a local master of two slots with this heap; with ``recorded`` the log has memory metrics."""
    shutil.rmtree(work, ignore_errors=True)
    for folder in ("logs", "scratch"):
        (work / folder).mkdir(parents=True)
    result = work / "result.json"
    settings = [
        word for key, value in _settings(heap_mib, work, recorded).items() for word in ("--conf", f"{key}={value}")
    ]
    command = [str(Path(sys.executable).with_name("spark-submit")), "--master", "local[2]", *settings]
    environment = spark_environment()
    with open(work / "spark.log", "wb") as log:
        process = subprocess.Popen(
            [*command, str(Path(__file__).with_name("job.py")), name, str(result)],
            stdout=log, stderr=log, env=environment, cwd=work, start_new_session=True,
        )  # fmt: skip
        try:
            process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return Tried(heap_mib, "too-long")
        finally:
            _end(process)
    text = (work / "spark.log").read_bytes()
    if process.returncode == 0 and result.exists():
        return Tried(heap_mib, "well", **json.loads(result.read_text()))
    return Tried(heap_mib, "ran-out" if _RAN_OUT.search(text) else "failed")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End what is left of a run's processes, which have a session of their own; they may still write."""
    with contextlib.suppress(ProcessLookupError):
        for _ in range(GRACE_S * 10 if process.returncode is not None else 0):
            os.killpg(process.pid, 0)
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _settings(heap_mib: int, work: Path, recorded: bool) -> dict[str, str]:
    settings = {
        "spark.driver.memory": f"{heap_mib}m",
        "spark.driver.maxResultSize": "0",
        "spark.sql.shuffle.partitions": "4",
        "spark.task.maxFailures": "1",
        "spark.local.dir": str(work / "scratch"),
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": _LITTLE_COMPILING,
    }
    if recorded:
        settings |= {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.rolling.enabled": "false",
            "spark.eventLog.dir": (work / "logs").as_uri(),
            "spark.eventLog.logStageExecutorMetrics": "true",
            "spark.executor.metrics.pollingInterval": "100ms",
            "spark.executor.processTreeMetrics.enabled": "true",
        }
    return settings
