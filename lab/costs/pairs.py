"""Compare a command's cost in two checkouts: `python -m lab.costs.pairs BEFORE AFTER -- analyze LOG`.

    | 9 pairs, load 5.1 | CPU s | s | MiB |
    |---|---:|---:|---:|
    | before | 1.78 | 1.55 | 173 |
    | after | 1.48 | 1.25 | 171 |
    | after / before | 0.82 | 0.82 | |

Figures are medians over whole processes of the same Python with an empty cache; ratios are medians over pairs.  Other
programs slow both, so they change a ratio less than a figure.  A pair in which a process was stopped is left out.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lab.costs import checkouts
from lab.costs.processes import Cost
from lab.pages import head

_STOPPED = 5.0
"""Maximum ratio of wall-clock to CPU time; fair sharing of the CPU does not cause more for one of two."""


def measured(checkout: Path, arguments: Sequence[str]) -> Cost:
    """The cost of a command of crystalperf in a checkout, with an empty cache.  Raises LabError where it fails."""
    with tempfile.TemporaryDirectory() as home:
        return checkouts.measured(checkout, arguments, Path(home))


def pairs(checkouts: Sequence[Path], arguments: Sequence[str], count: int) -> list[tuple[Cost, Cost]]:
    """The costs in both checkouts, by pair; the order alternates between pairs."""
    for each in checkouts:
        measured(each, arguments)  # compiles it, and loads its files into the page cache
    found: list[tuple[Cost, Cost]] = []
    first = 0
    while len(found) < count:
        first = 1 - first
        costs = {turn: measured(checkouts[turn], arguments) for turn in (first, 1 - first)}
        if all(each.wall_s < _STOPPED * each.cpu_s + 1.0 for each in costs.values()):
            found.append((costs[0], costs[1]))
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument(
        "arguments", nargs="+", metavar="ARGUMENT", help="arguments of crystalperf after --, with full paths"
    )
    parser.add_argument("--pairs", type=int, default=9)
    given = parser.parse_args()
    found = pairs([given.before.absolute(), given.after.absolute()], given.arguments, given.pairs)
    print(*head(f"{len(found)} pairs, load {os.getloadavg()[0]:.1f} | >CPU s | >s | >MiB"), sep="\n")
    for name, which in (("before", 0), ("after", 1)):
        cpu_s, seconds, mib = (
            statistics.median(getattr(pair[which], part) for pair in found) for part in ("cpu_s", "wall_s", "peak_mib")
        )
        print(f"| {name} | {cpu_s:.2f} | {seconds:.2f} | {mib:.0f} |")
    ratios = [
        sorted(getattr(after, part) / getattr(before, part) for before, after in found) for part in ("cpu_s", "wall_s")
    ]
    cpu, clock = map(statistics.median, ratios)
    print(f"| after / before | {cpu:.2f} | {clock:.2f} | |")
    print(f"\nCPU of single pairs, after / before: {ratios[0][0]:.2f} to {ratios[0][-1]:.2f}")


if __name__ == "__main__":
    main()
