"""What units took longer for being the first on their worker: ``python -m lab.score.cold FOLDER… --profiles FOLDER``.

FOLDERs hold event logs, of which those of the half that may be looked at are taken (lab.score.published), or of that
half those whose hash ends in one of ``--digits``.  A row of the Markdown table is a job: logs with as many groups in
one folder.  Of each group that has both kinds of units the medians are compared, and of a job's groups the median is
shown.
"""

from __future__ import annotations

import argparse
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import duckdb
import numpy as np

import query
from indexes.errors import CrystalPerfError
from lab.score.published import digit_of
from query.model.arrays import members
from query.model.execution import Execution
from query.model.load import load
from query.whatif.cold import FIRST, LATER, STARTING, levels

EVEN = "02468ace"

KINDS = ("a worker's first", "new code", "repeated code")

Difference = tuple[str, float, float]
"""Kind, how much longer units took than later ones, ms, and what those took, ms: medians."""


def differences(execution: Execution) -> list[Difference]:
    """Of each group of a run that has first and later units."""
    units = execution.units
    level = levels(units.group, units.worker, units.launch_ms, units.finish_ms, execution.starts)
    took, found = units.duration_ms, list[Difference]()
    for number, mine in enumerate(members(units.group, len(execution.dag.groups))):
        of = {each: took[mine[level[mine] == each]] for each in (LATER, FIRST, STARTING)}
        if len(of[LATER]) < 2:
            continue
        later = float(np.median(of[LATER]))
        if len(of[STARTING]):
            found.append((KINDS[0], float(np.median(of[STARTING])) - later, later))
        if len(of[FIRST]) and execution.repeated is not None:
            found.append((KINDS[1 + bool(execution.repeated[number])], float(np.median(of[FIRST])) - later, later))
    return found


def table(of: dict[str, list[Difference]]) -> list[str]:
    """A row for each job, and the median of jobs."""
    heads = ["job", *(f"{each}: groups, longer by ms (later ones take)" for each in KINDS)]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    of_kind: dict[str, list[float]] = defaultdict(list)
    for job, found in sorted(of.items()):
        cells = []
        for kind in KINDS:
            mine = [each for each in found if each[0] == kind]
            if mine:
                of_kind[kind].append(longer := statistics.median(each[1] for each in mine))
                cells.append(f"{len(mine)}: {longer:.0f} ({statistics.median(each[2] for each in mine):.0f})")
            else:
                cells.append("")
        lines.append(f"| {job} | {' | '.join(cells)} |")
    middle = (f"{statistics.median(of_kind[each]):.0f} of {len(of_kind[each])}" for each in KINDS)
    return [*lines, f"| median of jobs | {' | '.join(middle)} |"]


def collected(folders: Iterable[Path], profiles: Path, digits: str) -> dict[str, list[Difference]]:
    """The differences of all logs that can be read, by job."""
    profiles.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[Difference]] = defaultdict(list)
    for folder in folders:
        for log in sorted(each for each in folder.rglob("*") if each.is_file() and digit_of(each.name) in digits):
            try:
                run = query.profile([log], output=profiles / f"{log.name}.duckdb")
                with duckdb.connect(str(run.path), read_only=True) as connection:
                    execution = load(connection)
            except CrystalPerfError:
                continue
            found[_job(log.relative_to(folder), execution)] += differences(execution)
    return {job: each for job, each in found.items() if each}


def _job(log: Path, execution: Execution) -> str:
    where = "/".join(log.parts[:-1]) or log.name
    return f"{where}, {len(execution.dag.groups)} groups"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--profiles", type=Path, required=True, help="folder that run files are kept in")
    parser.add_argument(
        "--digits", default=EVEN, help=f"of {EVEN}, last hex digits of the hashes of logs that are read"
    )
    given = parser.parse_args(arguments)
    if set(given.digits) - set(EVEN):
        parser.error(f"--digits: expected some of {EVEN}; the other half of the logs is only scored")
    print("\n".join(table(collected(given.folders, given.profiles, given.digits))))


if __name__ == "__main__":
    main()
