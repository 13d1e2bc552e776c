"""``python -m lab.runs.python_time run|table|calls --out DIR``: the split of Python time, scored on known shares.

``run`` runs each job of `python_jobs` under py-spy: as a speedscope file, and if it has one Python stage also as raw
stacks.  With ``--calls`` it runs the jobs under Spark's own profiler too, which needs so long for a row that most get
fewer rows, and one job under Spark's memory profiler.  ``table`` compares three figures as shares of the tasks' time:

- the truth for the user's code, which the functions measured themselves in the run with the speedscope file;
- the split that CrystalPerf makes from that run's log and speedscope file;
- py-spy over whole workers: the stacks of the other run, counted without a log or stages.

Jobs with several Python stages have a row for each; only the measured time distinguishes these.  ``calls`` compares the
split by Spark's profiler with the time that the functions measured in the same run.
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

ONE_STAGE = ("light-udf", "heavy-udf", "vectorized-udf", "rdd-map", "grouped-map", "arrow-udf")
SEVERAL_STAGES = ("two-stages", "two-ways", "one-query", "at-once")
MEMORY = ("memory", "memory-limit")
JOBS = (*ONE_STAGE, *SEVERAL_STAGES)
LABELLED = ("resources",)
"""Jobs for the labels of an index."""
FORMATS = {"raw": "raw.txt", "speedscope": "speedscope.json"}
SAMPLE_MS = 10.0
TIMEOUT_S = 300

CALLS_SCALE = {
    "light-udf": 0.03,
    "heavy-udf": 0.03,
    "arrow-udf": 0.006,
    "rdd-map": 0.25,
    "vectorized-udf": 1.0,
    "grouped-map": 1.0,
}
"""The share of its rows with which a job runs under Spark's profiler."""

Shares = dict[str, float]
"""Shares of the tasks' time, by part: user, serialization, …"""


@dataclass(frozen=True)
class Split:
    """A stage as CrystalPerf splits it, or all of a job: task time, shares of it, the function with most time, and the
    plan's operators that run Python."""

    task_ms: float
    shares: Shares
    function: str | None
    plan: str = ""


@dataclass(frozen=True)
class Scored:
    """A job with one Python stage, or one `function`'s stage of a job; `whole` is None for the latter.

    `truth` is the measured share of the user's function.
    """

    job: str
    function: str | None
    truth: float
    split: Split
    whole: Shares | None

    @property
    def error(self) -> float:
        """The largest difference of the split: to whole workers, else to the measured time."""
        if self.whole is None:
            return abs(self.split.shares["user"] - self.truth)
        return max(abs(self.split.shares[part] - self.whole[part]) for part in ("user", "serialization"))


# Runs -----------------------------------------------------------------------------------------------------------------


def kinds(job: str, calls: bool) -> Iterator[str]:
    """The runs of a job: formats of py-spy, calls, memory."""
    if job in ONE_STAGE:
        yield "raw"
    if job not in MEMORY:
        yield "speedscope"
    if calls and job in CALLS_SCALE:
        yield "calls"
    if calls and job in MEMORY:
        yield "memory"


def command(job: str, kind: str, folder: Path, py_spy: str) -> list[str]:
    """The command of one run."""
    job_command = [sys.executable, str(Path(__file__).with_name("python_jobs.py")), job, str(folder)]
    if kind == "calls":
        return [*job_command, "--profiler", "perf", "--scale", str(CALLS_SCALE[job])]
    if kind == "memory":
        return [*job_command, "--profiler", "memory"]
    idle = ["--idle"] if kind == "speedscope" else []
    recorder = [py_spy, "record", "--subprocesses", *idle, "--format", kind]
    return [*recorder, "--output", str(folder / FORMATS[kind]), "--", *job_command]


def run(job: str, kind: str, out: Path, py_spy: str) -> None:
    """Run a job once.  Raises LabError if it fails."""
    folder = out / job / kind
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    environment = spark_environment()
    with open(folder / "output.txt", "wb") as output:
        done = subprocess.run(
            command(job, kind, folder, py_spy), stdout=output, stderr=output, env=environment, timeout=TIMEOUT_S,
            check=False,
        )  # fmt: skip
    shutil.rmtree(folder / "scratch", ignore_errors=True)
    if not (folder / "truth.json").exists():
        raise LabError(f"{job} failed with code {done.returncode}; see {folder / 'output.txt'}.")


# Scores ---------------------------------------------------------------------------------------------------------------


def _log(folder: Path) -> Path:
    return next(each for each in folder.iterdir() if each.name.startswith(("local-", "app-")))


def splits(log: Path, profiles: Sequence[Path], output: Path) -> list[Split]:
    """The Python stages of a run as CrystalPerf splits them, in their order; shares that it does not know are left
    out."""
    found = profile([log, *profiles], output=output, replace=True).sql(
        "SELECT task_ms, function, plan, user_ms, serialization_ms, start_ms, jvm_ms, wait_ms FROM spark_python"
        " LEFT JOIN (SELECT stage_id, string_agg(detail) AS plan FROM operator_stages"
        " JOIN operators USING (scope_id, node_id)"
        " WHERE regexp_matches(name, 'Python|Pandas') GROUP BY stage_id) USING (stage_id)"
        " ORDER BY regexp_extract(stage_id, '\\d+')::INTEGER"
    )
    names = ("user", "serialization", "start", "jvm", "wait")
    return [
        Split(
            float(task_ms),
            {name: float(ms) / task_ms for name, ms in zip(names, parts, strict=True) if ms is not None},
            function,
            plan or "",
        )
        for task_ms, function, plan, *parts in found.rows
    ]


def whole_job(stages: Sequence[Split]) -> Split:
    """All stages of a job as one."""
    task_ms = sum(each.task_ms for each in stages)
    longest = max(stages, key=lambda each: each.task_ms)
    parts = {name for each in stages for name in each.shares}
    shares = {name: sum(each.task_ms * each.shares.get(name, 0.0) for each in stages) / task_ms for name in parts}
    return Split(task_ms, shares, longest.function)


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


def measured_s(folder: Path) -> dict[str, float]:
    """The time of each function of a run, as it measured it."""
    found: dict[str, float] = json.loads((folder / "truth.json").read_text())["functions_s"]
    return found


def scored(job: str, out: Path) -> Iterator[Scored]:
    """The figures of a job whose runs are made, of each of its Python stages.

    Raises LabError if it has not as many Python stages as functions.
    """
    timed = out / job / "speedscope"
    functions_s = measured_s(timed)
    stages = splits(_log(timed), [timed / FORMATS["speedscope"]], timed / "run.duckdb")
    if job in SEVERAL_STAGES:
        if len(stages) != len(functions_s):
            raise LabError(f"{timed}: {len(stages)} Python stages for {len(functions_s)} functions.")
        named = [next((each for each in functions_s if f"[{each}(" in split.plan), None) for split in stages]
        others = (each for each in functions_s if each not in named)  # in the order of their stages
        for split, name in zip(stages, named, strict=True):
            function = name or next(others)
            yield Scored(job, function, 1000 * functions_s[function] / split.task_ms, split, None)
        return
    split = whole_job(stages)
    raw = out / job / "raw"
    raw_ms = whole_job(splits(_log(raw), [raw / FORMATS["raw"]], raw / "run.duckdb")).task_ms
    whole = whole_workers(raw / FORMATS["raw"], raw_ms)
    yield Scored(job, None, 1000 * sum(functions_s.values()) / split.task_ms, split, whole)


# Tables ---------------------------------------------------------------------------------------------------------------


def table(found: Sequence[Scored]) -> Iterator[str]:
    """The lines of the Markdown table: shares of task time in percent, differences in points."""
    yield from head(
        "job | >tasks [s] | >user: measured | >split | >whole workers | >serialization: split | >whole workers | >start"
        " | >JVM | >waiting | >largest difference"
    )
    for each in found:
        split, whole = each.split.shares, each.whole or {}
        yield row(
            each.job if each.function is None else f"{each.job}: {each.function}", f"{each.split.task_ms / 1000:.1f}",
            _percent(each.truth), _percent(split["user"]), _percent(whole.get("user")),
            _percent(split["serialization"]), _percent(whole.get("serialization")), _percent(split["start"]),
            _percent(split["jvm"]), _percent(split["wait"]), f"{100 * each.error:.1f}",
        )  # fmt: skip


def calls_table(jobs: Sequence[str], out: Path) -> Iterator[str]:
    """The lines of the table of Spark's profiler."""
    yield from head(
        "job | >rows | >tasks [s] | >time per row | >user: measured | >split | >without profiler: measured"
        " | function with most time"
    )
    for job in jobs:
        folder, timed = out / job / "calls", out / job / "speedscope"
        dumped = sorted((folder / "profiles").glob("*.pstats"))
        if not dumped:
            raise LabError(f"{folder}: Spark's profiler dumped no profile.")
        split = whole_job(splits(_log(folder), dumped, folder / "run.duckdb"))
        usual = whole_job(splits(_log(timed), [timed / FORMATS["speedscope"]], timed / "run.duckdb"))
        own, usually = (
            1000 * sum(measured_s(where).values()) / of.task_ms for where, of in ((folder, split), (timed, usual))
        )
        yield row(
            job, f"{100 * CALLS_SCALE[job]:g} %", f"{split.task_ms / 1000:.1f}",
            f"{split.task_ms / usual.task_ms / CALLS_SCALE[job]:.1f}×", _percent(own), _percent(split.shares["user"]),
            _percent(usually), f"`{split.function}`",
        )  # fmt: skip


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lab.runs.python_time", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    made = commands.add_parser("run", help="make the runs that are missing")
    shown = commands.add_parser("table", help="print the table of the split")
    called = commands.add_parser("calls", help="print the table of Spark's profiler")
    for each, names in ((made, (*JOBS, *LABELLED, *MEMORY)), (shown, JOBS), (called, tuple(CALLS_SCALE))):
        each.add_argument("--out", type=Path, default=Path("lab-runs/python"), metavar="DIR", help="folder of the runs")
        each.add_argument("--only", action="append", choices=names, metavar="JOB", help=f"jobs: {', '.join(names)}")
        each.set_defaults(names=names)
    made.add_argument("--py-spy", default="py-spy", metavar="PROGRAM", help="py-spy 0.4 or newer")
    made.add_argument("--calls", action="store_true", help="run jobs with Spark's profilers, too")
    given = parser.parse_args(arguments)
    names = given.only or given.names
    try:
        if given.command == "run":
            _run_missing(names, given.out, given.py_spy, given.calls)
            return 0
        if given.command == "table":
            lines = table([each for name in names for each in scored(name, given.out)])
        else:
            lines = calls_table(names, given.out)
        print("\n".join(lines))
    except (LabError, subprocess.TimeoutExpired) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _run_missing(jobs: Sequence[str], out: Path, py_spy: str, calls: bool) -> None:
    for job in jobs:
        for kind in kinds(job, calls):
            if not (out / job / kind / "truth.json").exists():
                run(job, kind, out, py_spy)
                print(f"{job}: {kind}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
