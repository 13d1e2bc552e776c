"""``python -m lab.memory run | check | table --out DIR``: the heap that a log shows to be safe, and the smallest one.

``run`` and ``check`` continue where they ended.  ``table`` needs no logs.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from lab.errors import LabError
from lab.memory.search import check, prove
from lab.memory.table import sized, table

T = TypeVar("T")

ROWS, CHECKS = "rows.jsonl", "checks.jsonl"
RESULTS = Path(__file__).parent / "results"
JOBS = (
    *("sort", "aggregate", "broadcast-join", "merge-join", "cached-rows", "collect-rows", "collect-list"),
    *("percentile", "window", "large-rows", "python-groups", "pandas-groups"),
)


def read_rows(folder: Path, name: str = ROWS) -> list[dict[str, Any]]:
    """The rows of a folder, in the order in which they were made."""
    file = folder / name
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lab.memory", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    made = commands.add_parser("run", help="make the runs of all jobs, or continue with the missing ones")
    shown = commands.add_parser("table", help="the safe heap by one log, and the smallest that works")
    checked = commands.add_parser("check", help="run each job in safe heaps, by one log after the other")
    for each in (made, checked, shown):
        default = RESULTS if each is shown else Path("lab-runs/memory")
        each.add_argument("--out", type=Path, default=default, metavar="DIR", help="folder of the rows")
    made.add_argument("--only", action="append", metavar="JOB", help=f"jobs: {', '.join(JOBS)}")
    for each in (made, checked):
        each.add_argument("--limit", type=float, metavar="MINUTES", help="begin no job later")
    return parser


def _run(given: argparse.Namespace) -> None:
    names = given.only or JOBS
    if unknown := [name for name in names if name not in JOBS]:
        raise LabError(f"There is no job {unknown[0]}; see --help.")
    given.out.mkdir(parents=True, exist_ok=True)
    made = {row["job"] for row in read_rows(given.out)}
    for name in _in_time((name for name in names if name not in made), given.limit):
        row = prove(name, given.out.resolve())
        _append(given.out / ROWS, row)
        print(f"{name}: works with {row['smallest_mib']} MiB", flush=True)


def _check(given: argparse.Namespace) -> None:
    known = {each["job"] for each in read_rows(given.out, CHECKS)}
    waiting = [row for row in read_rows(given.out) if row["job"] not in known]
    for row in _in_time(waiting, given.limit):
        for found in check(row["job"], row["needs"]["safe"], given.out.resolve()):
            _append(given.out / CHECKS, found)
            print(f"{row['job']}: {found['ended']} with {found['heap_mib']} MiB", flush=True)


def _in_time(waiting: Iterable[T], minutes: float | None) -> Iterator[T]:
    """The waiting ones, as long as there is time."""
    begin = time.monotonic()
    for each in waiting:
        if minutes is not None and time.monotonic() - begin > minutes * 60:
            print("Some jobs are still missing; run the same command to continue.", file=sys.stderr)
            return
        yield each


def _append(file: Path, row: dict[str, Any]) -> None:
    with open(file, "a") as opened:
        opened.write(json.dumps(row) + "\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 0, or 1 with one sentence on stderr."""
    given = _parser().parse_args(arguments)
    try:
        if given.command == "run":
            _run(given)
        elif given.command == "check":
            _check(given)
        else:
            checks = read_rows(given.out, CHECKS)
            print("\n".join(table([sized(row, checks) for row in read_rows(given.out)])))
    except LabError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
