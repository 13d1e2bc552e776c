"""``python -m lab.memory run --out FOLDER`` (resumes) and ``python -m lab.memory table --out FOLDER``."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from lab.errors import LabError
from lab.memory.search import prove, run
from lab.memory.table import compared, table

T = TypeVar("T")

ROWS, CHECKS = "rows.jsonl", "checks.jsonl"
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
    search = commands.add_parser("run", help="make the runs of all jobs, or continue with the missing ones")
    shown = commands.add_parser("table", help="the safe heap by one log, and the smallest that works")
    check = commands.add_parser("check", help="run each job once in the heap that its log shows to be safe")
    for each in (search, check, shown):
        each.add_argument("--out", type=Path, default=Path("lab-runs/memory"), metavar="DIR", help="folder of the rows")
    search.add_argument("--only", action="append", metavar="JOB", help=f"jobs: {', '.join(JOBS)}")
    for each in (search, check):
        each.add_argument("--limit", type=float, metavar="MINUTES", help="begin no job later")
    for each in (check, shown):
        each.add_argument("--sampled", action="store_true", help="use the recordings of the heap, too")
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
    known = {(each["job"], each["heap_mib"]) for each in read_rows(given.out, CHECKS)}
    waiting = [
        (each.job, each.safe)
        for each in (compared(given.out, row, sampled=given.sampled) for row in read_rows(given.out))
        if (each.job, each.safe) not in known
    ]
    for name, heap_mib in _in_time(waiting, given.limit):
        tried = run(name, heap_mib, given.out.resolve() / f"work-{name}")
        _append(given.out / CHECKS, {"job": name, **asdict(tried)})
        print(f"{name}: {tried.ended} with {heap_mib} MiB", flush=True)


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
            print("\n".join(table(given.out, read_rows(given.out), checks, sampled=given.sampled)))
    except LabError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
