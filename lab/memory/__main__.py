"""``python -m lab.memory run --out FOLDER`` (resumes) and ``python -m lab.memory table --out FOLDER``."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab.errors import LabError
from lab.memory.search import prove

ROWS = "rows.jsonl"
JOBS = (
    *("sort", "aggregate", "broadcast-join", "merge-join", "cached-rows", "collect-rows", "collect-list"),
    *("percentile", "window", "large-rows", "python-groups", "pandas-groups"),
)


def read_rows(folder: Path) -> list[dict[str, Any]]:
    """The rows of a folder, in the order in which they were made."""
    file = folder / ROWS
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lab.memory", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="make the runs of all jobs, or continue with the missing ones")
    shown = commands.add_parser("table", help="the needed heap by one log, and the smallest that works")
    for each in (run, shown):
        each.add_argument("--out", type=Path, default=Path("lab-runs/memory"), metavar="DIR", help="folder of the rows")
    run.add_argument("--only", action="append", metavar="JOB", help=f"jobs: {', '.join(JOBS)}")
    run.add_argument("--limit", type=float, metavar="MINUTES", help="begin no job later")
    return parser


def _run(given: argparse.Namespace) -> None:
    names = given.only or JOBS
    if unknown := [name for name in names if name not in JOBS]:
        raise LabError(f"There is no job {unknown[0]}; see --help.")
    given.out.mkdir(parents=True, exist_ok=True)
    made = {row["job"] for row in read_rows(given.out)}
    begin = time.monotonic()
    for name in (name for name in names if name not in made):
        if given.limit is not None and time.monotonic() - begin > given.limit * 60:
            print("Some jobs are still missing; run the same command to continue.", file=sys.stderr)
            return
        row = prove(name, given.out.resolve())
        with open(given.out / ROWS, "a") as file:
            file.write(json.dumps(row) + "\n")
        print(f"{name}: works with {row['smallest_mib']} MiB", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 0, or 1 with one sentence on stderr."""
    given = _parser().parse_args(arguments)
    try:
        if given.command == "run":
            _run(given)
        else:
            from lab.memory.table import table

            print("\n".join(table(given.out, read_rows(given.out))))
    except LabError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
