"""Growth of cost with ten times the size: `python -m lab.costs.growth` generates runs and measures whole processes.

    | what grows | tasks | executors | profile, CPU s | MiB | what-if, CPU s | MiB |
    |---|---:|---:|---:|---:|---:|---:|
    | stages of 4 tasks | 20000 | 50 | 1.78 | 174 | 1.92 | 164 |

The table has CPU seconds, because the load of the machine changes these least.  A second table has the ratios of the
costs, and the exponent of growth: cost is proportional to size ** exponent.  `--small` starts at a tenth of the size.
"""

from __future__ import annotations

import argparse
import math
import shutil
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
    """A generated run: its tasks and executors, the maximum tasks of a stage, and whether it has recordings."""

    tasks: int
    executors: int = 50
    largest_stage: int = 20_000
    is_recorded: bool = False


AXES = {
    "tasks": (Size(10_000), Size(100_000)),
    "executors": (Size(50_000, executors=500), Size(50_000, executors=5_000)),
    "stages of 4 tasks": (Size(20_000, largest_stage=4), Size(200_000, largest_stage=4)),
    "samples": (
        Size(5_000, executors=20, is_recorded=True),
        Size(50_000, executors=20, is_recorded=True),
    ),
}
"""Sizes by the quantity that grows; a recorded task has some 140 samples."""


def smaller(size: Size, axis: str) -> Size:
    """A tenth of the size, along the axis and in tasks."""
    executors = max(size.executors // 10, 1) if axis == "executors" else size.executors
    return Size(size.tasks // 10, executors, size.largest_stage, size.is_recorded)


def measured(arguments: list[str], home: Path) -> Cost:
    """The cost of a Python process with these arguments.  Raises LabError if it fails."""
    return cost([sys.executable, *arguments], home, more={"PYTHONPATH": str(ROOT)})


def inputs(size: Size, scratch: Path) -> Path:
    """The generated log, or the folder of the log and its recordings."""
    made = scratch / "made"
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir()
    if size.is_recorded:
        generator = ["-m", "lab.costs.made_recording", "--tasks", str(size.tasks), "--executors", str(size.executors)]
        measured([*generator, "-o", str(made)], scratch / "home")
        return made
    log = made / "made.log"
    with log.open("w", encoding="utf-8", buffering=1 << 20) as stream:
        for line in made_log.lines(size.tasks, executors=size.executors, largest_stage=size.largest_stage):
            stream.write(line + "\n")
    return log


def costs(size: Size, scratch: Path) -> Iterator[Cost]:
    """The cost of profiling a run of this size, and of one prediction."""
    made, run = inputs(size, scratch), scratch / "run.duckdb"
    run.unlink(missing_ok=True)
    for command in (["profile", str(made), "-o", str(run)], ["predict", str(run), "--set", "cores=2x"]):
        yield measured(["-m", "crystalperf.cli.main", *command], scratch / "home")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "axes", nargs="*", metavar="AXIS", help=f"quantities that grow: {', '.join(AXES)}; by default all"
    )
    parser.add_argument("--small", action="store_true", help="start at a tenth of the size")
    given = parser.parse_args()
    if unknown := set(given.axes) - set(AXES):
        parser.error(f"unknown axis {unknown.pop()}; known axes: {', '.join(AXES)}")
    titles = "what grows | >tasks | >executors | >profile, CPU s | >MiB | >what-if, CPU s | >MiB"
    print(*head(titles), sep="\n", flush=True)
    ratios = []
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
            both = [after.cpu_s / before.cpu_s for before, after in zip(*found, strict=True)]
            cells = " | ".join(f"{each:.1f} | {math.log10(each):.2f}" for each in both)
            ratios.append(f"| {axis} | {cells} |")
    print("", *head("10 times the | >profile | >exponent | >what-if | >exponent"), *ratios, sep="\n")


if __name__ == "__main__":
    main()
