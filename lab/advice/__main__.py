"""``python -m lab.advice record | claims | run | table | tuned --out DIR``: proof of recommendations by reruns.

``record`` keeps a log of each case, and ``claims`` reads them with the present code.  ``run`` reruns changes that have
no row: recommendations, and with ``--tuned`` the configurations of ``crystalperf tune``.  Both continue where they
ended.  ``table`` and ``tuned`` print what was claimed and what was measured; they need no logs.
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
from lab.advice.applying import Applied
from lab.advice.cases import CASES, Case
from lab.advice.claims import RANKS, read_claims, recommended, tuned, write_claims
from lab.advice.reruns import Rig, change_id, kept_log, measure, prepare, record
from lab.advice.score import Row, table
from lab.errors import LabError

ROWS = "rows.jsonl"
RESULTS = Path(__file__).parent / "results"


def read_rows(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """The rows of a folder by case and change; the last one counts."""
    file = folder / ROWS
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return {(row["case"], row["change"]): row for row in rows}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m lab.advice", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    recorded = commands.add_parser("record", help="run each case once, and keep its log")
    read = commands.add_parser("claims", help="keep what the present code says of each log")
    run = commands.add_parser("run", help="rerun the changes that have no row")
    shown = commands.add_parser("table", help="claims of recommendations, and what the reruns saved")
    whole = commands.add_parser("tuned", help="predictions of tuned configurations, and what the reruns took")
    for each in (recorded, read, run):
        each.add_argument("--out", type=Path, default=Path("lab-runs/advice"), metavar="DIR", help="folder of the runs")
    for each in (shown, whole):
        each.add_argument("--out", type=Path, default=RESULTS, metavar="DIR", help="folder of claims and rows")
    for each in (recorded, read, run, shown, whole):
        each.add_argument("--only", action="append", metavar="CASE", help=f"cases: {', '.join(CASES)}")
    for each in (recorded, run):
        each.add_argument("--limit", type=float, metavar="MINUTES", help="begin no case later")
    for each in (run, shown):
        each.add_argument(
            "--ranks", type=int, default=1, metavar="N", help=f"recommendations of each case, 0 to {RANKS} (default 1)"
        )
    run.add_argument("--tuned", action="store_true", help="also rerun configurations, and the best recommendation")
    return parser


def _record(given: argparse.Namespace, cases: list[Case]) -> None:
    missing = [case for case in cases if not kept_log(case, given.out).exists()]
    rig = _rig(given, missing)
    for case in _in_time(missing, given.limit):
        try:
            record(case, rig, given.out)
        except LabError as error:
            print(f"error: {error}", file=sys.stderr)
        else:
            print(case.name, flush=True)


def _claims(given: argparse.Namespace, cases: list[Case]) -> None:
    found = read_claims(given.out)
    for case in cases:
        log = kept_log(case, given.out)
        if log.exists():
            advice = recommended(case, log, os.cpu_count() or 1)
            configuration, _ = tuned(case, log, os.cpu_count() or 1)
            found[case.name] = {
                "case": case.name,
                "recommendations": [claim for claim, _ in advice],
                "tuned": configuration,
            }
    write_claims(given.out, found)


def _run(given: argparse.Namespace, cases: list[Case]) -> None:
    rig = _rig(given, cases)
    rows = read_rows(given.out)
    for case in _in_time(cases, given.limit):
        wanted = _changes(case, record(case, rig, given.out), given)
        missing = [each for each in wanted if (case.name, change_id(each)) not in rows]
        if not missing:
            continue
        try:
            made = measure(case, missing, rig)
        except LabError as error:
            print(f"error: {error}", file=sys.stderr)
            continue
        with open(given.out / ROWS, "a") as file:
            file.writelines(json.dumps(row) + "\n" for row in made)
        print(f"{case.name}: {', '.join(each.how for each in missing)}", flush=True)


def _changes(case: Case, log: Path, given: argparse.Namespace) -> list[Applied]:
    """The changes of a case that are asked for, each once."""
    cores = os.cpu_count() or 1
    advice = [changed for _, changed in recommended(case, log, cores)]
    found = [changed for changed in advice[: given.ranks] if changed.tried]
    if given.tuned:
        found += [changed for changed in advice if changed.tried][:1]
        found += [changed for _, changed in [tuned(case, log, cores)] if changed is not None]
    return list({change_id(each): each for each in found}.values())


def _table(given: argparse.Namespace) -> list[str]:
    rows, found = read_rows(given.out), []
    for case, claims in read_claims(given.out).items():
        if given.only and case not in given.only:
            continue
        for rank, claim in enumerate(claims["recommendations"][: given.ranks], 1):
            found.append(Row(case, rank, claim, rows.get((case, claim["change"]))))
        if not claims["recommendations"]:
            found.append(Row(case, 1, None, None))
    return table(found)


def _tuned(given: argparse.Namespace) -> list[str]:
    rows = read_rows(given.out)
    chosen = [each for case, each in read_claims(given.out).items() if not given.only or case in given.only]
    return tuning.table([tuning.tuned(each, rows) for each in chosen])


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
        if given.command in ("table", "tuned"):
            print("\n".join(_table(given) if given.command == "table" else _tuned(given)))
        else:
            {"record": _record, "claims": _claims, "run": _run}[given.command](given, cases)
    except LabError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
