"""Build the same fleet with both engines, and with one that is killed repeatedly, and compare the tables by row.

    python -m lab.checks.fleets ../shared/real-inputs/spark-eventlog
    python -m lab.checks.fleets LOGS --kills 10 --master 'local-cluster[2,1,2048]'

Prints one line for each table: its rows, and how many rows only one of the two fleets has.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from crystalperf.fleet.summary import opened
from crystalperf.fleet.tables import tables

ROOT = Path(__file__).parents[2]


def build(logs: list[str], folder: Path, *more: str) -> subprocess.Popen[bytes]:
    """`crystalperf fleet build` in a separate process."""
    command = [sys.executable, "-m", "crystalperf.cli.main", "fleet", "build", *logs, "-o", str(folder), *more]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, start_new_session=True)


def killed_often(logs: list[str], folder: Path, kills: int, most_s: float, seed: int = 0) -> int:
    """Build a fleet whose builder is killed (SIGKILL, with its processes) after random times; returns how often."""
    waits = random.Random(seed)
    for done in range(kills):
        process = build(logs, folder)
        try:
            code = process.wait(waits.uniform(0.5, most_s))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            continue
        if code:
            raise SystemExit(f"the build after {done} kills failed")
        return done  # it ended before the kill
    if build(logs, folder).wait():
        raise SystemExit("the build after the last kill failed")
    return kills


def differences(one: Path, other: Path) -> list[tuple[str, int, int, int]]:
    """By table: the number of rows in the first fleet, and of rows that only one fleet has, ignoring the read time."""
    found = []
    with opened(one) as first, opened(other) as second:
        for table in tables():
            columns = ", ".join(each.name for each in table.columns if each.name != "read_at")
            mine, theirs = (
                Counter(map(repr, each.execute(f"SELECT {columns} FROM {table.name}").fetchall()))
                for each in (first, second)
            )
            found.append((table.name, mine.total(), (mine - theirs).total(), (theirs - mine).total()))
    return found


def main() -> int:
    """Build, compare, print; 1 if a table differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", nargs="+")
    parser.add_argument(
        "--master", default="local-cluster[2,1,2048]", help="the master of Spark; '' to skip that engine"
    )
    parser.add_argument("--kills", type=int, default=0, help="the number of kills of another build")
    given = parser.parse_args()
    logs = [str(Path(each).absolute()) for each in given.logs]
    failed = False
    with tempfile.TemporaryDirectory() as scratch:
        began = time.monotonic()
        if build(logs, Path(scratch) / "local").wait():
            return 1
        local_s = time.monotonic() - began
        print(f"local: {local_s:.1f} s")
        others = {}
        if given.master:
            began = time.monotonic()
            conf = ("--conf", f"spark.executorEnv.PYTHONPATH={ROOT}", "--conf", "spark.ui.enabled=false")
            if build(logs, Path(scratch) / "spark", "--engine", "spark", "--master", given.master, *conf).wait():
                return 1
            spark_s = time.monotonic() - began
            print(f"spark, {given.master}: {spark_s:.1f} s, {spark_s / local_s:.2f} times as long")
            others["spark"] = Path(scratch) / "spark"
        if given.kills:
            times = killed_often(logs, Path(scratch) / "killed", given.kills, max(local_s / 3, 2.0))
            print(f"killed {times} times, then left alone")
            others["killed"] = Path(scratch) / "killed"
        for name, folder in others.items():
            for table, rows, mine, theirs in differences(Path(scratch) / "local", folder):
                print(f"{name:8s} {table:10s} {rows:6d} rows, {mine} only local, {theirs} only {name}")
                failed |= bool(mine or theirs)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
