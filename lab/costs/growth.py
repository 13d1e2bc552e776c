"""Growth of cost with ten times the size: `python -m lab.costs.growth` generates logs and measures whole processes.

    | axis | tasks | executors | profile, CPU s | MiB | what-if, CPU s | MiB |
    |---|---:|---:|---:|---:|---:|---:|
    | stages | 20000 | 50 | 1.78 | 174 | 1.92 | 164 |

The table has CPU seconds, because the load of the machine changes these least.  It has a row for each size; the ratios
of the costs follow.  `--small` starts at a tenth of the size.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lab.costs import made_log
from lab.costs.processes import Cost, cost
from lab.pages import head

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Size:
    """A generated log: its tasks and executors, and the maximum tasks of a stage."""

    tasks: int
    executors: int = 50
    largest_stage: int = 20_000


AXES = {
    "tasks": (Size(10_000), Size(100_000)),
    "executors": (Size(50_000, executors=500), Size(50_000, executors=5_000)),
    "stages": (Size(20_000, largest_stage=4), Size(200_000, largest_stage=4)),
}
"""Sizes by the quantity that grows; in the last, stages have four tasks."""


def smaller(size: Size, axis: str) -> Size:
    """A tenth of the size, along the axis and in tasks."""
    executors = max(size.executors // 10, 1) if axis == "executors" else size.executors
    return Size(size.tasks // 10, executors, size.largest_stage)


def measured(arguments: list[str], home: Path) -> Cost:
    """The cost of a Python process with these arguments.  Raises LabError if it fails."""
    return cost([sys.executable, *arguments], home, more={"PYTHONPATH": str(ROOT)})


def costs(size: Size, scratch: Path) -> Iterator[Cost]:
    """The cost of profiling a log of this size, and of one prediction."""
    log, run = scratch / "made.log", scratch / "run.duckdb"
    with log.open("w", encoding="utf-8", buffering=1 << 20) as stream:
        for line in made_log.lines(size.tasks, executors=size.executors, largest_stage=size.largest_stage):
            stream.write(line + "\n")
    run.unlink(missing_ok=True)
    for command in (["profile", str(log), "-o", str(run)], ["predict", str(run), "--set", "cores=2x"]):
        yield measured(["-m", "crystalperf.cli.main", *command], scratch / "home")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "axes", nargs="*", metavar="AXIS", help=f"quantities that grow: {', '.join(AXES)}; by default all"
    )
    parser.add_argument("--small", action="store_true", help="start at a tenth of the size")
    given = parser.parse_args()
    if unknown := set(given.axes) - set(AXES):
        parser.error(f"unknown axis {unknown.pop()}; known axes: {', '.join(AXES)}")
    ratios = []
    titles = "axis | >tasks | >executors | >profile, CPU s | >MiB | >what-if, CPU s | >MiB"
    print(*head(titles), sep="\n", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        (scratch / "home").mkdir()
        for axis in given.axes or AXES:
            found = []
            for size in AXES[axis]:
                this = smaller(size, axis) if given.small else size
                found.append(tuple(costs(this, scratch)))
                cells = " | ".join(f"{each.cpu_s:.2f} | {each.peak_mib:.0f}" for each in found[-1])
                print(f"| {axis} | {this.tasks} | {this.executors} | {cells} |", flush=True)
            profiled, asked = (after.cpu_s / before.cpu_s for before, after in zip(*found, strict=True))
            ratios.append(f"{axis}: ten times the size costs {profiled:.1f} and {asked:.1f} times as much")
    print("", *ratios, sep="\n")


if __name__ == "__main__":
    main()
