"""SnailTrail's critical participation next to our critical path: `python -m lab.systems.participation FOLDER`.

FOLDER is a clone of the repository that docs/systems-data.tsv lists for SnailTrail; its event log is read as it is.
Both are of the time from the first launch of a task to the last finish: SnailTrail's in one window.  Time between our
path's stages is the driver's.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import crystalperf as cp
from lab.errors import LabError
from lab.pages import head, row
from lab.systems.activity import DELAY_SPLIT, DRIVER, NS_PER_MS, graph, participation, read
from lab.systems.data import file_of


@dataclass(frozen=True)
class Theirs:
    """Critical participation by stage, in shares: of tasks and of messages; the window, and the number of paths."""

    tasks: Mapping[str, float]
    messages: Mapping[str, float]
    window_ms: float
    paths: int


def theirs(log: Path, split: float = DELAY_SPLIT) -> Theirs:
    """SnailTrail's answer for an event log.  Raises LabError."""
    with log.open(encoding="utf-8") as lines:
        tasks, threads = read(lines)
    activities = graph(tasks, threads, split)
    shares, paths = participation(activities)
    sums: tuple[dict[str, float], dict[str, float]] = (defaultdict(float), defaultdict(float))
    for activity, share in zip(activities, shares, strict=True):
        sums[activity.is_message][activity.of] += share
    window = max(each.finish for each in tasks) - tasks[0].launch
    return Theirs(*sums, window / NS_PER_MS, paths)


def ours(log: Path) -> dict[str, float]:
    """The time of our critical path by stage, ms; between its first and its last stage, the rest is the driver's."""
    path = cp.profile([log]).debug().critical_path
    stages = [n for n, each in enumerate(path) if each.id.startswith("stage:")]
    found: dict[str, float] = defaultdict(float)
    for each in path[stages[0] : stages[-1] + 1]:
        name = each.id.removeprefix("stage:").partition(".")[0]
        found[f"stage {name}" if each.id.startswith("stage:") else DRIVER] += each.end_ms - each.start_ms
    return found


def lines(found: Theirs, path: Mapping[str, float]) -> list[str]:
    """The table."""
    total_ms = sum(path.values())
    names = sorted({*found.tasks, *found.messages, *path})
    table = head("activity | >participation % | >of that messages % | >critical path % | >critical path [ms]")
    for name in names:
        message, all_of_it = found.messages.get(name, 0.0), found.tasks.get(name, 0.0) + found.messages.get(name, 0.0)
        ms = path.get(name, 0.0)
        table.append(row(name, *(f"{100 * each:.1f}" for each in (all_of_it, message, ms / total_ms)), f"{ms:.0f}"))
    both = sum(found.tasks.values()) + sum(found.messages.values())
    table.append(
        row("all", f"{100 * both:.1f}", f"{100 * sum(found.messages.values()):.1f}", "100.0", f"{total_ms:.0f}")
    )
    return table


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 0, or 1 with one sentence on stderr."""
    parser = argparse.ArgumentParser(prog="python -m lab.systems.participation", description="SnailTrail's measure")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="a clone of strymon-system/snailtrail")
    parser.add_argument("--delay-split", type=float, default=DELAY_SPLIT, metavar="SHARE", help="of the delay, to ship")
    given = parser.parse_args(arguments)
    try:
        log = file_of("SnailTrail", given.folder)
        found = theirs(log, given.delay_split)
        with tempfile.TemporaryDirectory() as home:
            os.environ.setdefault("CRYSTALPERF_HOME", home)
            print("\n".join(lines(found, ours(log))))
    except LabError as error:
        print(f"python -m lab.systems.participation: {error}", file=sys.stderr)
        return 1
    print(f"\n{found.paths} paths cross a window of {found.window_ms:.0f} ms.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
