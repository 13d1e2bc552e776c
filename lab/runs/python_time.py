"""``python -m lab.runs.python_time run|table --out DIR``: the split of Python time, scored on jobs with known shares.

``run`` runs each job of `python_jobs` with py-spy, once as raw stacks and once as a speedscope file, and with
``--calls`` once with Spark's profiler.  ``table`` compares three figures of each job, as shares of its tasks' time:

- the truth for the user's code, which the functions measured themselves in the run with the speedscope file;
- the split that CrystalPerf makes from that run's log and speedscope file;
- py-spy over whole workers: the stacks of the other run, counted without a log or stages.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from crystalperf.query import profile
from lab.errors import LabError
from lab.pages import head, row
from lab.runs.cluster import spark_environment

JOBS = ("light-udf", "heavy-udf", "vectorized-udf", "rdd-map", "grouped-map", "arrow-udf", "two-stages")
FORMATS = {"raw": "raw.txt", "speedscope": "speedscope.json"}
SAMPLE_MS = 10.0
TIMEOUT_S = 120

Shares = dict[str, float]
"""Shares of the tasks' time, by part: user, serialization, …"""


@dataclass(frozen=True)
class Scored:
    """A job: its task time, and the shares by each source; `calls` is None without Spark's profiler."""

    job: str
    task_ms: float
    truth: Shares
    split: Shares
    whole: Shares
    calls: Shares | None

    @property
    def error(self) -> float:
        """The largest difference between the split and py-spy over whole workers."""
        return max(abs(self.split[part] - self.whole[part]) for part in ("user", "serialization"))


def run(job: str, kind: str, out: Path, py_spy: str) -> None:
    """Run a job once: `kind` is a format of py-spy, or calls.  Raises LabError if it fails."""
    folder = out / job / kind
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = [sys.executable, str(Path(__file__).with_name("python_jobs.py")), job, str(folder)]
    if kind == "calls":
        command.append("perf")
    else:
        idle = ["--idle"] if kind == "speedscope" else []
        recorder = [py_spy, "record", "--subprocesses", *idle, "--format", kind]
        recorder += ["--output", str(folder / FORMATS[kind]), "--"]
        command = [*recorder, *command]
    environment = spark_environment()
    with open(folder / "output.txt", "wb") as output:
        done = subprocess.run(command, stdout=output, stderr=output, env=environment, timeout=TIMEOUT_S, check=False)
    shutil.rmtree(folder / "scratch", ignore_errors=True)
    if not (folder / "truth.json").exists():
        raise LabError(f"{job} failed with code {done.returncode}; see {folder / 'output.txt'}.")


def _log(folder: Path) -> Path:
    return next(each for each in folder.iterdir() if each.name.startswith(("local-", "app-")))


def split_of(log: Path, profiles: Sequence[Path], output: Path) -> tuple[float, Shares]:
    """The tasks' time, ms, and the shares of it that CrystalPerf finds; unknown parts are left out."""
    found = profile([log, *profiles], output=output, replace=True).sql(
        "SELECT sum(task_ms), sum(user_ms), sum(serialization_ms), sum(start_ms), sum(jvm_ms), sum(wait_ms)"
        " FROM spark_python"
    )
    task_ms, *parts = found.rows[0]
    names = ("user", "serialization", "start", "jvm", "wait")
    return float(task_ms), {name: float(ms) / task_ms for name, ms in zip(names, parts, strict=True) if ms is not None}


_FILE = re.compile(r"\(([^()]*?)(?::\d+)?\)$")


def whole_workers(raw: Path, task_ms: float) -> Shares:
    """The shares of a job's tasks by the raw stacks of its workers alone: those of its own file are the user's."""
    counts = {"user": 0.0, "serialization": 0.0}
    for line in raw.read_text(encoding="utf-8").splitlines():
        stack, _, count = line.rpartition(" ")
        frames = stack.split(";")
        if not any("process (" in each and "worker.py" in each for each in frames):
            continue
        files = [match[1] for each in frames if (match := _FILE.search(each))]
        deepest = next((each for each in reversed(files) if "python_jobs.py" in each or "pyspark" in each), "")
        if "python_jobs.py" in deepest:
            counts["user"] += float(count)
        elif "importlib" not in stack:  # imports are the start of workers
            counts["serialization"] += float(count)
    return {part: samples * SAMPLE_MS / task_ms for part, samples in counts.items()}


def scored(job: str, out: Path) -> Scored:
    """The figures of a job whose runs are made."""
    timed, raw, calls = (out / job / kind for kind in ("speedscope", "raw", "calls"))
    task_ms, split = split_of(_log(timed), [timed / FORMATS["speedscope"]], timed / "run.duckdb")
    truth = json.loads((timed / "truth.json").read_text())
    raw_ms, _ = split_of(_log(raw), [raw / FORMATS["raw"]], raw / "run.duckdb")
    by_calls = None
    if (calls / "profiles").exists():
        by_calls = split_of(_log(calls), sorted((calls / "profiles").glob("*.pstats")), calls / "run.duckdb")[1]
    own = {"user": truth["user_s"] * 1000 / task_ms}
    return Scored(job, task_ms, own, split, whole_workers(raw / FORMATS["raw"], raw_ms), by_calls)


def table(found: Sequence[Scored]) -> Iterator[str]:
    """The lines of the Markdown table: shares of task time in percent, differences in points."""
    yield from head(
        "job | >tasks [s] | >user: measured | >split | >whole workers | >Spark's profiler | >serialization: split"
        " | >whole workers | >start | >JVM | >waiting | >largest difference"
    )
    for each in found:
        split = each.split
        yield row(
            each.job, f"{each.task_ms / 1000:.1f}", _percent(each.truth["user"]), _percent(split["user"]),
            _percent(each.whole["user"]), "" if each.calls is None else _percent(each.calls["user"]),
            _percent(split["serialization"]), _percent(each.whole["serialization"]), _percent(split["start"]),
            _percent(split["jvm"]), _percent(split["wait"]), f"{100 * each.error:.1f}",
        )  # fmt: skip


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lab.runs.python_time", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    made = commands.add_parser("run", help="make the runs that are missing")
    shown = commands.add_parser("table", help="print the table")
    for each in (made, shown):
        each.add_argument("--out", type=Path, default=Path("lab-runs/python"), metavar="DIR", help="folder of the runs")
        each.add_argument("--only", action="append", choices=JOBS, metavar="JOB", help=f"jobs: {', '.join(JOBS)}")
    made.add_argument("--py-spy", default="py-spy", metavar="PROGRAM", help="py-spy 0.4 or newer")
    made.add_argument("--calls", action="store_true", help="run the jobs of UDFs with Spark's profiler, too")
    given = parser.parse_args(arguments)
    names = given.only or JOBS
    try:
        if given.command == "table":
            for line in table([scored(name, given.out) for name in names]):
                print(line)
            return 0
        for name in names:
            for kind in (*FORMATS, *(["calls"] if given.calls and name != "rdd-map" else [])):
                if not (given.out / name / kind / "truth.json").exists():
                    run(name, kind, given.out, given.py_spy)
                    print(f"{name}: {kind}", flush=True)
    except (LabError, subprocess.TimeoutExpired) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
