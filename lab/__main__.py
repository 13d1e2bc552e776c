"""``python -m lab run SUITE``: real runs under controlled resources; ``python -m lab score``: how we predict them."""

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
    print(f"ended by {signal.Signals(number).name}; the same command goes on from here.", file=sys.stderr, flush=True)
    raise SystemExit(128 + number)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 0, or 1 with one sentence on stderr."""
    parser = argparse.ArgumentParser(prog="python -m lab", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="make the runs of a suite, or go on with them")
    run.add_argument("suite", metavar="SUITE", help=", ".join(SUITES))
    run.add_argument("--out", type=Path, default=Path("lab-runs"), metavar="DIR", help="default lab-runs")
    run.add_argument(
        "--repetitions", type=int, default=3, metavar="N", help="of each configuration (default 3, at most 7)"
    )
    run.add_argument("--only", choices=("even", "odd", "base"), help="configurations to run (default all)")
    run.add_argument(
        "--recorder", action="append", metavar="NAME", help="of the base runs, only these: jfr20, jfr100, async20, none"
    )
    run.add_argument("--limit", type=float, metavar="MINUTES", help="start no run that would end later")
    scored = commands.add_parser("score", help="predict every configuration from the recorded base runs")
    scored.add_argument("suite", metavar="SUITE", nargs="*", help="default all that have runs")
    scored.add_argument("--out", type=Path, default=Path("lab-runs"), metavar="DIR", help="default lab-runs")
    scored.add_argument(
        "--profiles", type=Path, metavar="DIR", help="where run files of the bases are kept (default OUT/profiles)"
    )
    scored.add_argument("--vectors", action="store_true", help="also the bases' vectors against the machine's truth")
    scored.add_argument(
        "--write", type=Path, metavar="PAGE", help="put tables into this page, those that it has marks of"
    )
    scored.add_argument(
        "--under",
        metavar="NAME",
        help="with --write: between marks that begin with NAME",
    )
    scored.add_argument("--only", choices=ROLES, help="configurations to show (default both)")
    fitted = commands.add_parser(
        "calibrate", help="the constants of crystalperf.query.predict.interval, from even configurations"
    )
    fitted.add_argument("suite", metavar="SUITE", nargs="*", help="default all that have runs")
    fitted.add_argument("--out", type=Path, default=Path("lab-runs"), metavar="DIR", help="default lab-runs")
    fitted.add_argument(
        "--profiles", type=Path, metavar="DIR", help="where run files of the bases are kept (default OUT/profiles)"
    )
    fitted.add_argument("--only-width", action="store_true", help="fit the width alone, the others stay as they are")
    kept = commands.add_parser("keep", help="copy a suite's rows and base runs of each recorder")
    kept.add_argument("suite", metavar="SUITE", help=", ".join(SUITES))
    kept.add_argument("--out", type=Path, default=Path("lab-runs"), metavar="DIR", help="default lab-runs")
    kept.add_argument("--to", type=Path, required=True, metavar="DIR", help="where to")
    kept.add_argument("--recorder", action="append", default=[], metavar="NAME", help="jfr20, jfr100, async20, none")
    kept.add_argument("--bases", type=int, default=1, metavar="N", help="base runs of each recorder (default 1)")
    given = parser.parse_args(arguments)
    # Ending by exception lets every block clean up after itself.
    signal.signal(signal.SIGTERM, _end_in_order)
    signal.signal(signal.SIGHUP, _end_in_order)
    try:
        if given.command == "score":
            return _score(given)
        if given.command == "keep":
            from lab.score.keep import keep

            size = keep(find_suite(given.suite), given.out, given.to, given.recorder, given.bases)
            print(f"{given.to / given.suite}: {size / 1e6:.1f} MB")
            return 0
        if given.command == "calibrate":
            return _calibrate(given.suite or list(SUITES), given.out, given.profiles, given.only_width)
        suite, recorders = find_suite(given.suite), given.recorder
        missing = run_suite(suite, given.out, given.repetitions, given.only, given.limit, recorders)
    except CrystalPerfError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    if missing:
        print(f"{missing} runs are still missing; the same command goes on with them.", file=sys.stderr)
    return 0


def _score(given: argparse.Namespace) -> int:
    from lab.pages import has, put
    from lab.score import report

    kept = given.profiles or given.out / "profiles"
    known = _measured(given.suite or list(SUITES), given.out, kept)
    roles = (given.only,) if given.only else ROLES
    for name, lines in report.tables(known, given.out, kept if given.vectors else None, roles).items():
        mark = f"{given.under} {name}" if given.under else name
        if given.write:
            if has(given.write, mark):
                put(given.write, mark, lines)
        else:
            print("\n".join((f"\n## {name}", *lines)))
    return 0


def _calibrate(names: Sequence[str], out: Path, profiles: Path | None, only_width: bool) -> int:
    from lab.score.calibrate import calibrate

    calibration, count = calibrate(_measured(names, out, profiles or out / "profiles"), only_width=only_width)
    print(f"from {count} predictions of even configurations: {calibration}")
    return 0


def _measured(names: Sequence[str], out: Path, kept: Path) -> list[Measured]:
    """The suites of that name that have runs to score."""
    from lab.score.pairs import measured

    known = [measured(find_suite(name), out, kept) for name in names]
    if not any(each.scored for each in known):
        raise LabError(f"{out} has no runs of {', '.join(names)}; make some with python -m lab run SUITE --out {out}.")
    return [each for each in known if each.scored]


if __name__ == "__main__":
    sys.exit(main())
