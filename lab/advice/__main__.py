"""``python -m lab.advice record | run | table | tune --out DIR``: logs of the cases, reruns of advice, tables.

``tune`` reruns the configurations of ``crystalperf tune`` and prints their table.  ``record``, ``run`` and ``tune``
continue where they ended.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lab.advice import tuning
from lab.advice.cases import CASES, Case
from lab.advice.reruns import Rig, advised, change_id, kept_log, measure, prepare, record
from lab.advice.score import Row, table
from lab.errors import LabError

ROWS = "rows.jsonl"


def read_rows(folder: Path) -> list[dict[str, Any]]:
    """The rows of a folder, in the order in which they were made."""
    file = folder / ROWS
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m lab.advice", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    recorded = commands.add_parser("record", help="run each case once, and keep its log")
    run = commands.add_parser("run", help="rerun the recommendations that have no row")
    shown = commands.add_parser("table", help="claims, and what the reruns saved")
    whole = commands.add_parser("tune", help="rerun tuned configurations that have no row, and print their table")
    whole.add_argument("--table", action="store_true", help="print the table only")
    for each in (recorded, run, shown, whole):
        each.add_argument("--out", type=Path, default=Path("lab-runs/advice"), metavar="DIR", help="folder of the rows")
        each.add_argument("--only", action="append", metavar="CASE", help=f"cases: {', '.join(CASES)}")
    for each in (recorded, run, whole):
        each.add_argument("--limit", type=float, metavar="MINUTES", help="begin no case later")
    for each in (run, shown):
        each.add_argument("--ranks", type=int, default=1, metavar="N", help="recommendations of each case (default 1)")
    return parser


def _record(given: argparse.Namespace, cases: list[Case]) -> None:
    missing = [case for case in cases if not kept_log(case, given.out).exists()]
    rig = _rig(given, missing)
    for case in _in_time(missing, given.limit):
        record(case, rig, given.out)
        print(case.name, flush=True)


def _run(given: argparse.Namespace, cases: list[Case]) -> None:
    rig = _rig(given, cases)
    rows = read_rows(given.out)
    measured = {(row["case"], row["change"]) for row in rows}
    for case in _in_time(cases, given.limit):
        for recommendation, changed in advised(case, record(case, rig, given.out), rig.cores, given.ranks):
            if not changed.tried or (case.name, change_id(changed)) in measured:
                continue
            row = measure(case, changed, rig)
            measured.add((case.name, row["change"]))
            with open(given.out / ROWS, "a") as file:
                file.write(json.dumps(row) + "\n")
            print(f"{case.name}: {recommendation['kind']}", flush=True)


def _table(given: argparse.Namespace, cases: list[Case]) -> list[str]:
    measured = {(row["case"], row["change"]): row for row in read_rows(given.out)}
    rows = []
    for case in cases:
        log = kept_log(case, given.out)
        if not log.exists():
            continue
        advice = advised(case, log, os.cpu_count() or 1, given.ranks)
        for rank, (recommendation, changed) in enumerate(advice, 1):
            rows.append(Row(case.name, rank, recommendation, changed, measured.get((case.name, change_id(changed)))))
        if not advice:
            rows.append(Row(case.name, 1, None, None, None))
    return table(rows)


def _tune(given: argparse.Namespace, cases: list[Case]) -> list[str]:
    rows = tuning.read_rows(given.out)
    cores, found = os.cpu_count() or 1, []
    rig = None if given.table else _rig(given, cases)
    for case in cases if rig is None else _in_time(cases, given.limit):
        if rig is None and not kept_log(case, given.out).exists():
            continue
        log = kept_log(case, given.out) if rig is None else record(case, rig, given.out)
        each = tuning.tuned(case, log, cores)
        found.append(each)
        if rig is not None and each.changed is not None and each.key not in rows:
            rows[each.key] = row = tuning.measure(each, rig)
            with open(given.out / tuning.ROWS, "a") as file:
                file.write(json.dumps(row) + "\n")
            print(f"{case.name}: {each.answer['setting']}", file=sys.stderr, flush=True)
    return tuning.table(found, rows)


def _rig(given: argparse.Namespace, cases: list[Case]) -> Rig:
    given.out.mkdir(parents=True, exist_ok=True)
    return prepare(given.out.resolve() / "work", {case.data for case in cases})


def _in_time(cases: list[Case], limit_min: float | None) -> Iterator[Case]:
    begin = time.monotonic()
    for done, case in enumerate(cases):
        if limit_min is not None and time.monotonic() - begin > limit_min * 60:
            print(f"{len(cases) - done} cases are left; run the same command to continue.", file=sys.stderr)
            return
        yield case


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 0, or 1 with one sentence on stderr."""
    given = _parser().parse_args(arguments)
    try:
        names = given.only or list(CASES)
        if unknown := [name for name in names if name not in CASES]:
            raise LabError(f"There is no case {unknown[0]}; see --help.")
        cases = [CASES[name] for name in names]
        if given.command == "record":
            _record(given, cases)
        elif given.command == "run":
            _run(given, cases)
        elif given.command == "tune":
            print("\n".join(_tune(given, cases)))
        else:
            print("\n".join(_table(given, cases)))
    except LabError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
