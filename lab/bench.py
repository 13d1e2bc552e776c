"""`make bench`: what the commands cost, as whole processes, median of five.

    command                                   seconds   MiB
    crystalperf --help                           0.12    28

Times are of this machine, under whatever else it does; compare rows of one run with each other.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
DEMO = ROOT / "lab" / "recordings" / "demo-q9"
PUBLIC = ROOT.parent / "shared" / "real-inputs" / "spark-eventlog" / "rapids-tools"
RUNS = 5


@dataclass(frozen=True)
class Case:
    """A command of crystalperf; `fresh` empties the cache before every run."""

    name: str
    arguments: tuple[str, ...]
    fresh: bool = False


def cases() -> list[Case]:
    """What is measured; public logs only where they lie beside the checkout."""
    found = [
        Case("--help", ("--help",)),
        Case("analyze the demo, nothing kept", ("analyze", str(DEMO)), fresh=True),
        Case("analyze the demo again", ("analyze", str(DEMO))),
        Case("sql over the Spark index", ("sql", "--index", "spark-4.0.1", "SELECT count(*) FROM functions")),
    ]
    for name in ("tasks_executors_fail_compressed_eventlog.zstd", "nds_q88_photon_db_13_3.zstd"):
        if (PUBLIC / name).exists():
            found.append(Case(f"profile {name[:32]}", ("profile", str(PUBLIC / name), "-o", "run.duckdb"), fresh=True))
    return found


def run(arguments: Sequence[str], home: Path) -> tuple[float, float]:
    """Seconds and peak MiB of one whole process.  Raises RuntimeError where it fails."""
    environment = {**os.environ, "CRYSTALPERF_HOME": str(home), "NO_COLOR": "1"}
    command = [str(Path(sys.executable).with_name("crystalperf")), *arguments]
    begin = time.perf_counter()
    child = os.posix_spawn(
        command[0],
        command,
        environment,
        file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)],
    )
    _, status, usage = os.wait4(child, 0)
    if status:
        raise RuntimeError(f"{' '.join(arguments)} failed")
    return time.perf_counter() - begin, usage.ru_maxrss / 1024


def main() -> None:
    """Print the table."""
    print(f"{'command':45s} {'seconds':>8s} {'MiB':>6s}   median of {RUNS}")
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        for case in cases():
            measured = []
            home = Path(scratch) / "home"
            if not case.fresh:
                run(case.arguments, home)  # unpacks the index and fills the page cache, once
            for number in range(RUNS):
                measured.append(run(case.arguments, Path(scratch) / f"home-{number}" if case.fresh else home))
            seconds, peak = (statistics.median(column) for column in zip(*measured, strict=True))
            print(f"{case.name:45s} {seconds:8.2f} {peak:6.0f}", flush=True)


if __name__ == "__main__":
    main()
