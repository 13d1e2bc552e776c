"""Runtimes on clusters of several sizes, measured and predicted: `python -m lab.systems.clusters FOLDER`.

FOLDER is a clone of the repository that docs/systems-data.tsv lists for Scout, or the part that `--runs` matches.  A
report of a run has its runtime and the bytes of its input, so only predictors that need no log can be asked:

- `linear`: from the smallest cluster; a runtime is inversely proportional to the machines.
- `ernest`: fitted to the clusters of at most `--learned` machines, as Ernest is meant to be used, or to all others.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from crystalperf.query.predictors.ernest import fit, terms
from lab.errors import LabError
from lab.pages import head, row
from lab.scored import spread
from lab.systems.data import entries

RUNS = "*_m4.large_*_spark_bigdata_1"
LEARNED = 12
_NAME = re.compile(r"(\d+)_([^_]+)_(.+)_\d+")

Runtimes = Mapping[int, float]
"""Runtimes by the number of machines, s."""


def measured(folder: Path, runs: str = RUNS) -> dict[str, Runtimes]:
    """The runtimes of the completed runs by job and machine type.  Raises LabError if there are none."""
    entry, found = entries()["Scout"], dict[str, dict[int, float]]()
    for path in sorted((folder / entry["path"]).glob(f"*/{runs}/report.json")):
        name, report = _NAME.fullmatch(path.parent.name), json.loads(path.read_text(encoding="utf-8"))
        if name is not None and report["completed"]:
            found.setdefault(f"{name[3]}, {name[2]}", {})[int(name[1])] = float(report["elapsed_time"])
    if not found:
        raise LabError(f"{folder}: no reports of {runs}; clone {entry['address']}")
    return {job: dict(sorted(of.items())) for job, of in found.items()}


def ernest(known: Runtimes, machines: int) -> float:
    """The runtime on a number of machines, s, from the runtimes on others."""
    return float(fit((count, 1.0, runtime_s) for count, runtime_s in known.items()) @ terms(machines))


def errors(of: Runtimes, learned: int = LEARNED) -> Iterator[tuple[str, str, list[float]]]:
    """Predictor, the clusters that it knows, and its errors on others, %."""
    first, small = min(of), {count: runtime_s for count, runtime_s in of.items() if count <= learned}
    large = [count for count in of if count > learned]

    def off(count: int, predicted_s: float) -> float:
        return 100 * (predicted_s / of[count] - 1)

    yield "linear", f"{first} machines", [off(each, of[first] * first / each) for each in of if each != first]
    if len(small) > 2:
        yield "ernest", f"{min(small)} to {max(small)} machines", [off(each, ernest(small, each)) for each in large]
    rest = {each: {count: runtime_s for count, runtime_s in of.items() if count != each} for each in of}
    yield "ernest", "all other clusters", [off(each, ernest(rest[each], each)) for each in of]


def lines(jobs: Mapping[str, Runtimes], learned: int = LEARNED) -> list[str]:
    """Two tables: errors by job and predictor, and the measured runtimes."""
    table = head("job | predicted by | from | >predictions | >mean ± sd % | >worst % | >bias %")
    for job, of in jobs.items():
        for name, known, found in errors(of, learned):
            sizes = [abs(each) for each in found]
            mean = spread([each / 100 for each in sizes])
            table.append(row(job, name, known, len(found), mean, f"{max(sizes):.0f}", f"{fmean(found):+.1f}"))
    counts = sorted({count for of in jobs.values() for count in of})
    table += ["", *head("machines | " + " | ".join(f">{job} [s]" for job in jobs))]
    for count in counts:
        table.append(row(count, *(f"{of[count]:.0f}" if count in of else "" for of in jobs.values())))
    return table


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables; 0, or 1 with one sentence on stderr."""
    parser = argparse.ArgumentParser(prog="python -m lab.systems.clusters", description="runtimes by cluster size")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="a clone of oxhead/scout")
    parser.add_argument("--runs", default=RUNS, metavar="PATTERN", help=f"folders of runs (default {RUNS})")
    parser.add_argument(
        "--learned", type=int, default=LEARNED, metavar="N", help="machines of the largest known cluster"
    )
    given = parser.parse_args(arguments)
    try:
        print("\n".join(lines(measured(given.folder, given.runs), given.learned)))
    except LabError as error:
        print(f"python -m lab.systems.clusters: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
