"""``python -m lab run SUITE``: real runs under controlled resources; ``python -m lab score``: scores of predictions."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crystalperf.indexes.errors import CrystalPerfError
from lab.errors import LabError
from lab.runs.suites import ROLES, SUITES, find_suite
from lab.runs.sweep import run_suite

if TYPE_CHECKING:
    from lab.score.pairs import Measured


def _end_in_order(number: int, _frame: object) -> None:
    print(f"stopped by {signal.Signals(number).name}; run the same command to continue.", file=sys.stderr, flush=True)
    raise SystemExit(128 + number)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lab", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="make the runs of a suite, or continue with the missing ones")
    scored = commands.add_parser("score", help="predict every configuration from the recorded baseline runs")
    fitted = commands.add_parser(
        "calibrate", help="fit the constants of crystalperf.query.predict.interval to the tuning set"
    )
    kept = commands.add_parser("keep", help="copy a suite's rows and the baseline runs of each recorder")
    for each in (run, kept):
        each.add_argument("suite", metavar="SUITE", help=", ".join(SUITES))
    for each in (scored, fitted):
        each.add_argument("suite", metavar="SUITE", nargs="*", help="suites; by default all that have runs")
        each.add_argument(
            "--profiles",
            type=Path,
            metavar="DIR",
            help="the folder for run files of baseline runs (default OUT/profiles)",
        )
    for each in (run, scored, fitted, kept):
        each.add_argument("--out", type=Path, default=Path("lab-runs"), metavar="DIR", help="default lab-runs")
    for each in (run, kept):
        each.add_argument(
            "--recorder",
            action="append",
            metavar="NAME",
            help="only baseline runs of these recorders: jfr20, jfr100, async20, none",
        )
    run.add_argument(
        "--repetitions", type=int, default=3, metavar="N", help="runs of each configuration (default 3, at most 7)"
    )
    run.add_argument("--only", choices=("even", "odd", "base"), help="configurations to run (default all)")
    run.add_argument("--limit", type=float, metavar="MINUTES", help="start no run that would end later")
    scored.add_argument(
        "--vectors",
        action="store_true",
        help="also compare the baseline runs' resource breakdowns with the ground truth",
    )
    scored.add_argument(
        "--only", choices=(*ROLES, "all"), help="configurations to show (default both; all: as one set)"
    )
    fitted.add_argument("--only-width", action="store_true", help="fit the width only, keep the other constants")
    kept.add_argument("--to", type=Path, required=True, metavar="DIR", help="where to")
    kept.add_argument("--bases", type=int, default=1, metavar="N", help="baseline runs of each recorder (default 1)")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 0, or 1 with one sentence on stderr."""
    given = _parser().parse_args(arguments)
    # A signal raises an exception, so that every block cleans up.
    signal.signal(signal.SIGTERM, _end_in_order)
    signal.signal(signal.SIGHUP, _end_in_order)
    try:
        {"run": _run, "score": _score, "calibrate": _calibrate, "keep": _keep}[given.command](given)
    except CrystalPerfError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _run(given: argparse.Namespace) -> None:
    suite = find_suite(given.suite)
    if missing := run_suite(suite, given.out, given.repetitions, given.only, given.limit, given.recorder):
        print(f"{missing} runs are still missing; run the same command to continue.", file=sys.stderr)


def _keep(given: argparse.Namespace) -> None:
    from lab.score.keep import keep

    size = keep(find_suite(given.suite), given.out, given.to, given.recorder or [], given.bases)
    print(f"{given.to / given.suite}: {size / 1e6:.1f} MB")


def _score(given: argparse.Namespace) -> None:
    from lab.score import report

    kept, known = _measured(given)
    roles = (given.only,) if given.only else ROLES
    for name, lines in report.tables(known, given.out, kept if given.vectors else None, roles).items():
        print("\n".join((f"\n## {name}", *lines)))


def _calibrate(given: argparse.Namespace) -> None:
    from lab.score.calibrate import calibrate

    calibration, count = calibrate(_measured(given)[1], only_width=given.only_width)
    print(f"from {count} predictions of the tuning set: {calibration}")


def _measured(given: argparse.Namespace) -> tuple[Path, list[Measured]]:
    """The folder of the baseline runs' run files, and the suites that have runs to score."""
    from lab.score.pairs import measured

    kept, names = given.profiles or given.out / "profiles", given.suite or list(SUITES)
    known = [each for each in (measured(find_suite(name), given.out, kept) for name in names) if each.scored]
    if not known:
        raise LabError(
            f"{given.out} has no runs of {', '.join(names)}; make some with python -m lab run SUITE --out {given.out}."
        )
    return kept, known


if __name__ == "__main__":
    sys.exit(main())
