"""``python -m lab.advice run --out FOLDER`` (resumes) and ``python -m lab.advice table --out FOLDER``."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab.advice.cases import CASES
from lab.advice.reruns import prepare, prove
from lab.advice.score import table
from lab.errors import LabError

ROWS = "rows.jsonl"


def read_rows(folder: Path) -> list[dict[str, Any]]:
    """The rows of a folder, in the order in which they were made."""
    file = folder / ROWS
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lab.advice", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="make the runs of all cases, or continue with the missing ones")
    shown = commands.add_parser("table", help="claims, and what the reruns saved")
    for each in (run, shown):
        each.add_argument("--out", type=Path, default=Path("lab-runs/advice"), metavar="DIR", help="folder of the rows")
    run.add_argument("--only", action="append", metavar="CASE", help=f"cases: {', '.join(CASES)}")
    run.add_argument(
        "--ranks", type=int, default=1, metavar="N", help="recommendations to try of each case (default 1)"
    )
    run.add_argument("--limit", type=float, metavar="MINUTES", help="begin no case later")
    return parser


def _run(given: argparse.Namespace) -> None:
    names = given.only or list(CASES)
    if unknown := [name for name in names if name not in CASES]:
        raise LabError(f"There is no case {unknown[0]}; see --help.")
    made = {row["case"] for row in read_rows(given.out)}
    missing = [CASES[name] for name in names if name not in made]
    given.out.mkdir(parents=True, exist_ok=True)
    rig = prepare(given.out.resolve() / "work", {case.data for case in missing})
    begin = time.monotonic()
    for done, case in enumerate(missing):
        if given.limit is not None and time.monotonic() - begin > given.limit * 60:
            print(f"{len(missing) - done} cases are still missing; run the same command to continue.", file=sys.stderr)
            return
        rows = prove(case, rig, given.ranks)
        with open(given.out / ROWS, "a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        print(f"{case.name}: {', '.join(str(row['kind']) for row in rows)}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 0, or 1 with one sentence on stderr."""
    given = _parser().parse_args(arguments)
    try:
        if given.command == "run":
            _run(given)
        else:
            print("\n".join(table(read_rows(given.out))))
    except LabError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
