"""`python -m lab.flink run HOME`: one run of a job on a real Flink, with what CrystalPerf collects and the truth.

`sweep` makes many, `score` predicts them; `operators` compares CPU shares and busy times by operator with ground truth.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab.errors import LabError
from lab.flink.cluster import FlinkConfig, compile_jobs
from lab.flink.operators import report
from lab.flink.runs import FlinkRun, run_once
from lab.flink.suite import configurations
from lab.flink.sweep import run_suite, score
from lab.flink.workloads import NAMES, Workload
from lab.units import parse_bit_rate


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lab.flink", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("run", help="one run")
    one.add_argument("home", type=Path, metavar="HOME", help="a distribution of Flink, 1.20 or 2.x")
    one.add_argument("-o", "--out", type=Path, default=Path("lab-runs/flink"), metavar="DIR")
    one.add_argument("--workload", choices=NAMES, default="join")
    one.add_argument("--rate", type=int, metavar="N", help="records per second of a stream (default: unlimited)")
    one.add_argument("--records", type=int, default=600_000, metavar="N", help="rows, or records without a rate")
    one.add_argument("--seconds", type=int, default=45, metavar="S", help="how long a stream runs at its rate")
    one.add_argument("--parallelism", type=int, default=4, metavar="N")
    one.add_argument("--work", type=int, default=1, metavar="N", help="how many times each record is processed")
    one.add_argument("--no-chaining", action="store_true", help="run each operator in separate threads")
    one.add_argument("--task-managers", type=int, default=2, metavar="N")
    one.add_argument("--slots", type=int, default=2, metavar="N", help="slots of each TaskManager")
    one.add_argument("--cpu", type=float, metavar="CORES", help="CPU limit of each TaskManager (root)")
    one.add_argument("--network", metavar="RATE", help="network rate of each TaskManager, such as 100Mbps (root)")
    many = commands.add_parser("sweep", help="make the runs of the suite, or continue with the missing ones (root)")
    many.add_argument("home", type=Path, metavar="HOME", help="a distribution of Flink, 1.20 or 2.x")
    many.add_argument("-o", "--out", type=Path, default=Path("lab-runs/flink-sweep"), metavar="DIR")
    many.add_argument("--repetitions", type=int, default=3, metavar="N")
    many.add_argument("--only", choices=("even", "odd"))
    many.add_argument("--workload", action="append", choices=sorted({each.workload for each in configurations()}))
    many.add_argument("--limit", type=float, metavar="MINUTES", help="start no run that would end later")
    scored = commands.add_parser("score", help="predict every measured configuration from its workload's baseline run")
    scored.add_argument("-o", "--out", type=Path, default=Path("lab-runs/flink-sweep"), metavar="DIR")
    scored.add_argument("--only", choices=("even", "odd"))
    two = commands.add_parser("operators", help="CPU shares and busy times by operator, reported and true (§7.3)")
    two.add_argument("base", type=Path, metavar="DIR", help="a run of a stream, best with --no-chaining")
    two.add_argument("other", type=Path, nargs="?", metavar="OTHER", help="one with another --cpu")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 0, or 1 with one sentence on stderr."""
    given = _parser().parse_args(arguments)
    try:
        if given.command == "score":
            print(score(given.out, given.only))
        elif given.command == "operators":
            print(report(given.base, given.other))
        elif given.command == "sweep":
            jobs = compile_jobs(given.home, given.out.absolute() / "jobs")
            workloads = given.workload or sorted({each.workload for each in configurations()})
            left = run_suite(given.home, jobs, given.out, given.repetitions, given.only, workloads, given.limit)
            print(f"{left} runs are missing; run the same command to continue", file=sys.stderr)
        else:
            print(json.dumps(_run(given), indent=1))
    except (LabError, subprocess.TimeoutExpired) as error:
        print(f"python -m lab.flink: {error}", file=sys.stderr)
        return 1
    return 0


def _run(given: argparse.Namespace) -> dict[str, Any]:
    """The row of one run."""
    network = None if given.network is None else parse_bit_rate(given.network)
    knobs = {name: getattr(given, name) for name in ("parallelism", "rate", "seconds", "records", "work")}
    workload = Workload(given.workload, **knobs, chaining=not given.no_chaining)
    cluster = FlinkConfig(given.task_managers, given.slots, given.cpu, network, namespaces=network is not None)
    jobs = compile_jobs(given.home, given.out.absolute() / "jobs")
    return run_once(FlinkRun(workload, cluster), given.home, jobs, given.out)


if __name__ == "__main__":
    sys.exit(main())
