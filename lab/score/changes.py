"""Errors of predictors by what changes: ``python -m lab.score.changes [SUITE…] --out DIR --profiles FOLDER``.

The test set of the suites, from every recorded baseline run.  CrystalPerf's own predictor is scored with samples and on
the log alone, the others on the run that they get from a user.  A row needs at least FEW predictions.
`--write query/predict/lab_errors.csv` writes what `crystalperf predict --predictor all` shows.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crystalperf.query.predict.lab_errors import SEVERAL, WITHOUT_SAMPLES
from crystalperf.query.predict.registry import CRYSTALPERF, find
from lab.flink.baselines import runtime_by
from lab.pages import head, row
from lab.runs.suites import Configuration, find_suite
from lab.score.floors import of_role
from lab.score.pairs import Arm, Measured, Pair, measured, pairs, suites_parser
from lab.score.predictors import execution, scenario_of

FEW = 4
"""Minimum predictions of a row."""

FRAMEWORK = "spark"

SETTINGS = {
    "slots": "cores",
    "workers": "workers",
    "memory": "memory",
    "network": "network",
    "disk": "disk",
    "slot_cpu_cores": "cpu_speed",
}
"""The setting of `crystalperf predict` for a parameter of a suite."""

ARMS: tuple[tuple[str, Arm], ...] = (
    (CRYSTALPERF, ("jfr20", "shipped")),
    (WITHOUT_SAMPLES, ("none", "shipped")),
    ("ernest", ("none", "Ernest")),
    ("sparklens", ("none", "slots alone")),
    ("amdahl", ("none", "Amdahl")),
    ("linear", ("none", "linear")),
)
"""Predictors that the lab scores with its own table, by their names there."""

BY_NAME = ("paper", "monotasks")
"""Predictors that are asked as by a user, with samples."""


@dataclass(frozen=True)
class Row:
    """Absolute errors of a predictor for one kind of change, in %."""

    predictor: str
    changed: str
    predictions: int
    median: float
    p90: float


def rows(known: Sequence[Measured], role: str = "odd") -> list[Row]:
    """A row for each predictor and kind of change with enough predictions."""
    found = []
    for name, every in _predictions(known):
        off: dict[str, list[float]] = {}
        for each in of_role(every, role):
            if each.deviation is not None:
                off.setdefault(changed(each.configuration), []).append(100 * abs(each.deviation))
        for what, errors in sorted(off.items()):
            if len(errors) >= FEW:
                median, p90 = np.quantile(errors, [0.5, 0.9]).tolist()
                found.append(Row(name, what, len(errors), round(median, 1), round(p90, 1)))
    return found


def _predictions(known: Sequence[Measured]) -> Iterator[tuple[str, list[Pair]]]:
    for name, arm in ARMS:
        yield name, [pair for each in known for pair in pairs(each, arm)]
    for name in BY_NAME:
        yield name, [pair for each in known for pair in _asked(each, name)]


def _asked(known: Measured, name: str) -> Iterator[Pair]:
    for one in known.scored:
        for base in known.starts(one.sweep, "jfr20"):
            yield Pair(
                known.suite.name,
                one,
                known.actual_ms[one.number],
                runtime_by(find(name), execution(base), scenario_of(base, one)),
            )


def changed(one: Configuration) -> str:
    """The setting that a configuration changes, or SEVERAL."""
    names = [SETTINGS.get(each, each) for each in one.changed]
    return names[0] if len(names) == 1 else SEVERAL


def write(found: Sequence[Row], place: Path) -> None:
    """Write rows as the product reads them."""
    with place.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("framework", "predictor", "changed", "predictions", "median_percent", "p90_percent"))
        for each in found:
            writer.writerow((FRAMEWORK, each.predictor, each.changed, each.predictions, each.median, each.p90))


def main() -> None:
    """Print the table of the suites in a folder."""
    parser = suites_parser(__doc__)
    parser.add_argument("--write", type=Path, help="the table that the product reads")
    given = parser.parse_args()
    found = rows([measured(find_suite(name), given.out, given.profiles) for name in given.suites])
    if given.write is not None:
        write(found, given.write)
    lines = head("framework | predictor | changed | >predictions | >median % | >9 of 10 %")
    cells = ((FRAMEWORK, each.predictor, each.changed, each.predictions, each.median, each.p90) for each in found)
    print("\n".join([*lines, *(row(*each) for each in cells)]))


if __name__ == "__main__":
    main()
