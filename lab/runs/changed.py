"""Pairs of runs with one known difference: ``python -m lab.runs.changed --out DIR [JOB …]``.

Each job runs once as it is, and once for each change of its resources, settings, data or program.  DIR gets a folder
for each run, `JOB-CHANGE`, with its event log, and `rows.jsonl` names the cause of each difference in the words of
`crystalperf compare`.  A run that is there is not made again.  Needs root, as all controlled runs do.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lab.errors import LabError

BASE = "base"
_SHUFFLED = ("--conf", "spark.sql.autoBroadcastJoinThreshold=-1")
_OPTIONS = {"--slots": "2", "--workers": "2", "--cpu-quota": "0.2", "--network": "40Mbps", "--memory": "1g"}
_KILL = "kill"


@dataclass(frozen=True)
class Change:
    """One difference: the options that replace those of the job, and the kinds of cause that are right."""

    name: str
    causes: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    conf: tuple[str, ...] = ()
    kills_after_s: float | None = None


SLOTS = Change("slots", ("slots",), {"--slots": "1"})
WORKERS = Change("workers", ("slots",), {"--workers": "1"})
NETWORK = Change("network", ("device-rate:net",), {"--network": "8Mbps"})
CPU = Change("cpu", ("cpu-wait", "cpu-time"), {"--cpu-quota": "0.1"})
BROADCAST = Change("broadcast", ("plan",), conf=("spark.sql.autoBroadcastJoinThreshold=100MB",))
NOT_ADAPTIVE = Change("not-adaptive", ("plan", "tasks"), conf=("spark.sql.adaptive.enabled=false",))
LOST = Change("lost", ("lost-workers",), kills_after_s=6.0)


def _input(scale: str) -> Change:
    return Change("input", ("input",), {"--scale": scale})


@dataclass(frozen=True)
class Job:
    """A job of lab.runs.workloads, its options, and its changes; an option `--query` names another workload."""

    name: str
    options: Mapping[str, str]
    conf: tuple[str, ...]
    changes: tuple[Change, ...]


JOBS = (
    Job("q12", {"--scale": "0.5"}, _SHUFFLED[1:], (SLOTS, NETWORK, CPU, _input("1"), BROADCAST, LOST)),
    Job("even", {"--scale": "0.5"}, (), (Change("skew", ("skew",), {"--query": "skew"}), NETWORK, SLOTS)),
    Job("q9", {"--scale": "0.25"}, _SHUFFLED[1:], (NETWORK, WORKERS, NOT_ADAPTIVE, SLOTS)),
    Job(
        "spill",
        {"--scale": "0.25", "--memory": "2g"},
        ("spark.memory.fraction=0.25",),
        (Change("memory", ("memory",), {"--memory": "512m"}), SLOTS, _input("0.5")),
    ),
    Job("udf", {"--scale": "0.25"}, (), (SLOTS, _input("0.5"))),
    Job("sorted", {"--scale": "0.25"}, (), (NETWORK, LOST)),
    Job("gzip-text", {"--scale": "0.5"}, (), (SLOTS, CPU)),
    Job("q18", {"--scale": "0.25"}, _SHUFFLED[1:], (NETWORK, _input("0.5"), SLOTS)),
    Job(
        "heavy",
        {"--query": "even-heavy", "--scale": "0.25", "--cpu-quota": "0.4"},
        (),
        (Change("skew", ("skew",), {"--query": "skew-heavy"}),),
    ),
    Job(
        "spill-more",
        {"--query": "spill", "--scale": "1", "--memory": "3g", "--cpu-quota": "0.4"},
        ("spark.memory.fraction=0.15",),
        (Change("memory", ("memory",), {"--memory": "512m"}),),
    ),
    Job("q3", {"--scale": "0.25"}, _SHUFFLED[1:], (NETWORK, CPU)),
)


def command(job: Job, change: Change | None, out: Path) -> list[str]:
    """The command of a run."""
    options = {"--query": job.name, **_OPTIONS, **job.options, **(change.options if change else {})}
    conf = dict(each.split("=", 1) for each in (*job.conf, *(change.conf if change else ())))
    return [
        *(sys.executable, "-m", "lab.runs.spark", "--sampler", "none", "--no-truth", "--warm-ups", "2"),
        *("--event-log", "single", "--out", str(out)),
        *(text for pair in options.items() for text in pair),
        *(text for key, value in conf.items() for text in ("--conf", f"{key}={value}")),
    ]


def make(job: Job, change: Change | None, out: Path) -> None:
    """Make one run, unless it is there.  Raises LabError if it fails."""
    if (out / "run.json").exists():
        return
    process = subprocess.Popen(command(job, change, out))
    if change is not None and change.kills_after_s is not None:
        _kill_worker(process, out, change.kills_after_s)
    if process.wait() != 0:
        raise LabError(f"The run in {out} failed.")


def _kill_worker(process: subprocess.Popen[bytes], out: Path, after_s: float) -> None:
    """Kill an executor of a run with signal 9, some time after its measured query began."""
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        if (out / "driver.go").exists():  # the measured query begins
            time.sleep(after_s)
            os.kill(max(_executors(out)), signal.SIGKILL)
            return
        time.sleep(0.2)


def _executors(out: Path) -> list[int]:
    """The processes of the executors of the run that writes its log to this folder."""
    (log,) = (out / "eventlog").glob("*")
    app = log.name.split(".")[0]
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = each.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"java" in words[0] and b"--executor-id" in words and app.encode() in words:
            found.append(int(each.parent.name))
    return found


def main() -> None:
    """Make all runs of some jobs, or of all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="*", metavar="JOB", help="the jobs; all by default")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for job in JOBS:
        if given.jobs and job.name not in given.jobs:
            continue
        for change in (None, *job.changes):
            name = f"{job.name}-{change.name if change else BASE}"
            try:
                make(job, change, given.out / name)
            except LabError as error:
                print(error, file=sys.stderr)
                continue
            if change is not None:
                row = {"before": f"{job.name}-{BASE}", "after": name, "job": job.name, "causes": list(change.causes)}
                with (given.out / "rows.jsonl").open("a", encoding="utf-8") as rows:
                    rows.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
