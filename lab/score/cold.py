"""What units took longer for being the first on their worker: ``python -m lab.score.cold FOLDER… --profiles FOLDER``.

FOLDERs hold event logs, of which those of the half that may be looked at are taken (lab.score.published), or of that
half those whose hash ends in one of ``--digits``.  A row of the first Markdown table is a job: logs with as many groups
in one folder.  Of each group that has both kinds of units the medians are compared, and of a job's groups the median is
shown.  A row of the second is how long it took to unpack what a worker's first units brought, by how many workers began
together.
"""

from __future__ import annotations

import argparse
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import duckdb
import numpy as np

from crystalperf import query
from crystalperf.indexes.errors import CrystalPerfError
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.load import load
from crystalperf.query.simulate.warmup import FIRST, LATER, STARTING, levels, others, reads_files
from crystalperf.query.trace.arrays import members
from crystalperf.query.trace.records import Floats, Ints
from lab.score.published import digit_of

EVEN = "02468ace"

KINDS = ("a worker's first, of files", "a worker's first, others", "new code", "repeated code")

TOGETHER = (1, 4, 8, 16, 32, 64, 128)
"""Most workers that began together, of a row of the second table."""

Difference = tuple[str, float, float]
"""Kind, how much longer units took than later ones, ms, and what those took, ms: medians.  Of a worker's first units,
what was unpacked with them is not in it."""


def differences(execution: Execution) -> list[Difference]:
    """Of each group of a run that has first and later units."""
    units = execution.units
    level, unpacks_ms = _unpacking(execution)
    took, found = units.duration_ms, list[Difference]()
    reads = reads_files(execution)
    for number, mine in enumerate(members(units.group, len(execution.dag.groups))):
        of = {each: mine[level[mine] == each] for each in (LATER, FIRST, STARTING)}
        if len(of[STARTING]) and len(rest := of[LATER] if len(of[LATER]) else of[FIRST]):
            kind, usual = KINDS[0 if reads[mine].any() else 1], float(np.median(took[rest]))
            found.append((kind, float(np.median((took - unpacks_ms)[of[STARTING]])) - usual, usual))
        if len(of[FIRST]) and len(of[LATER]) > 1 and execution.repeated is not None:
            kind, usual = KINDS[2 + bool(execution.repeated[number])], float(np.median(took[of[LATER]]))
            found.append((kind, float(np.median(took[of[FIRST]])) - usual, usual))
    return found


def _unpacking(execution: Execution) -> tuple[Ints, Floats]:
    """The level of each unit, and how much longer than others it took to unpack, ms; 0 of those that are no worker's
    first."""
    units, overhead_ms = execution.units, execution.volumes.overhead_ms
    level = levels(units.group, units.worker, units.launch_ms, units.finish_ms, execution.starts)
    starts, unpacks_ms = level == STARTING, np.zeros(len(units))
    if starts.any() and not starts.all():
        unpacks_ms[starts] = overhead_ms[starts] - np.median(overhead_ms[~starts])
    return level, unpacks_ms


def unpacking(execution: Execution) -> list[tuple[int, float]]:
    """Of each worker's first units, how many workers began with it, itself counted as one, and how long it took to
    unpack, ms."""
    level, unpacks_ms = _unpacking(execution)
    starts = level == STARTING
    if not starts.any():
        return []
    together_ms = float(np.median(execution.volumes.overhead_ms[starts]))
    beside = others(level, execution.units.worker, execution.units.launch_ms, together_ms)
    return [(int(count) + 1, float(ms)) for count, ms in zip(beside[starts], unpacks_ms[starts], strict=True)]


def unpacking_table(of: dict[str, list[tuple[int, float]]]) -> list[str]:
    """A row for each number of workers that began together, of the job that has most such numbers."""
    by_job = {job: _by_most(found) for job, found in sorted(of.items())}
    job = max(by_job, key=lambda each: len(by_job[each]))
    lines = [f"| workers of {job} that began together, at most | units | unpacking, ms, median |", "|---:|---:|---:|"]
    return lines + [f"| {most} | {len(ms)} | {statistics.median(ms):.0f} |" for most, ms in sorted(by_job[job].items())]


def _by_most(found: Iterable[tuple[int, float]]) -> dict[int, list[float]]:
    of: dict[int, list[float]] = defaultdict(list)
    for count, ms in found:
        of[next((each for each in TOGETHER if count <= each), TOGETHER[-1])].append(ms)
    return of


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
    middle = (
        f"{statistics.median(of_kind[each]):.0f} of {len(of_kind[each])}" if of_kind[each] else "" for each in KINDS
    )
    return [*lines, f"| median of jobs | {' | '.join(middle)} |"]


def collected(
    folders: Iterable[Path], profiles: Path, digits: str
) -> tuple[dict[str, list[Difference]], dict[str, list[tuple[int, float]]]]:
    """The differences of all logs that can be read, by job, and what they took to unpack."""
    profiles.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[Difference]] = defaultdict(list)
    unpacked: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for folder in folders:
        for log in sorted(each for each in folder.rglob("*") if each.is_file() and digit_of(each.name) in digits):
            try:
                run = query.profile([log], output=profiles / f"{log.name}.duckdb")
                with duckdb.connect(str(run.path), read_only=True) as connection:
                    execution = load(connection)
            except CrystalPerfError:
                continue
            job = _job(log.relative_to(folder), execution)
            found[job] += differences(execution)
            unpacked[job] += unpacking(execution)
    return {job: each for job, each in found.items() if each}, unpacked


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
    found, unpacked = collected(given.folders, given.profiles, given.digits)
    print("\n".join(table(found)))
    if unpacked:
        print("\n".join(["", *unpacking_table(unpacked)]))


if __name__ == "__main__":
    main()
