"""``python -m lab.streams sweep|keep|score --out DIR``: real streaming queries, and predictions for them.

``sweep`` makes the runs of the suite that are missing, ``keep`` copies those files that ``score`` needs.  ``score``
predicts each configuration from the recorded baseline of its job.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from lab.errors import LabError
from lab.streams.runs import keep, run_suite
from lab.streams.score import score
from lab.streams.suite import configurations


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lab.streams", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    made = commands.add_parser("sweep", help="make the runs that are missing")
    kept = commands.add_parser("keep", help="copy the rows and the logs of baselines")
    scored = commands.add_parser("score", help="print the tables")
    for each in (made, kept, scored):
        each.add_argument(
            "--out", type=Path, default=Path("lab-runs/streams"), metavar="DIR", help="folder of the runs"
        )
    made.add_argument("--repetitions", type=int, default=1, metavar="N")
    made.add_argument("--only", action="append", default=[], choices=[each.name for each in configurations()])
    made.add_argument("--limit", type=float, metavar="MINUTES", help="start no run that would end later")
    kept.add_argument("--to", type=Path, default=Path("lab/recordings/sweeps/spark-streams"), metavar="DIR")
    scored.add_argument("--only", choices=("even", "odd"))
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 0, or 1 with one sentence on stderr."""
    given = _parser().parse_args(arguments)
    try:
        if given.command == "sweep":
            return 1 if run_suite(given.out, given.repetitions, given.only, given.limit) else 0
        if given.command == "keep":
            keep(given.out, given.to)
        else:
            for line in score(given.out, given.only):
                print(line)
    except (LabError, subprocess.TimeoutExpired) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
