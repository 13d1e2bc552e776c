"""Rates of an operator at several parallelisms, measured and predicted: `python -m lab.systems.scaling FOLDER`.

FOLDER is a clone of the repository that docs/systems-data.tsv lists for ContTune.  The table in its README has the
processing ability (records per second of useful time) of the mapper of Nexmark Q1.  Predictions are by CrystalPerf's
own modules:

- `ds2`: from one row to each other one; a rate is proportional to the slots.
- `ernest`: the seconds for a million records, fitted to all other rows.

CrystalPerf's own model, `paper` and the others need a log of the job; there is none.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, median

import numpy as np

from crystalperf.query.execution.stream import Station, Stream
from crystalperf.query.predictors.ds2 import highest_rate
from lab.errors import LabError
from lab.figures import markdown_tables
from lab.pages import head, row
from lab.scored import spread
from lab.systems import clusters
from lab.systems.data import file_of

RECORDS = 1e6


def measured(text: str) -> dict[int, list[float]]:
    """The measured rates by parallelism, records per second, in the order of the table.  Raises LabError."""
    found: dict[int, list[float]] = {}
    for columns, rows in markdown_tables(text):
        if not columns[0].startswith("Parallelism"):
            continue
        runs = [n for n, name in enumerate(columns) if re.search(r"\d\w\w PA", name)]
        for cells in rows:
            if rates := [float(cells[n]) for n in runs if cells[n]]:
                found[int(cells[0])] = rates
    if len(found) < 2:
        raise LabError("the README has no table of rates by parallelism; check out the commit of docs/systems-data.tsv")
    return found


def ds2(slots: int, rate: float, wanted: int) -> float:
    """The rate of `wanted` slots, from a saturated operator with `slots`."""
    operator = Station("1", "operator", slots, rate, 1.0, 1.0, 0.0, np.array([1.0]), is_source=True)
    found = highest_rate(Stream((operator,), (), (), 0.0, 1e3), lambda _: wanted / slots, lambda each: each.busy)
    assert found is not None
    return found[0]


def ernest(others: Mapping[int, float], wanted: int) -> float:
    """The rate of `wanted` slots, from those of other parallelisms."""
    return RECORDS / clusters.ernest({slots: RECORDS / rate for slots, rate in others.items()}, wanted)


def predictions(means: Mapping[int, float]) -> Iterator[tuple[str, int, int | None, float]]:
    """Each prediction: predictor, parallelism, that of the row it is from (None: all others), and its error, %."""
    for wanted, rate in means.items():
        for slots in means:
            if slots != wanted:
                yield "ds2", wanted, slots, 100 * (ds2(slots, means[slots], wanted) / rate - 1)
        others = {slots: each for slots, each in means.items() if slots != wanted}
        yield "ernest", wanted, None, 100 * (ernest(others, wanted) / rate - 1)


def _errors(name: str, which: str, errors: Sequence[float]) -> str:
    sizes = [abs(each) for each in errors]
    mean = spread([each / 100 for each in sizes])
    return row(name, which, len(errors), mean, f"{median(sizes):.1f}", f"{max(sizes):.0f}", f"{fmean(errors):+.1f}")


def lines(rates: Mapping[int, Sequence[float]]) -> list[str]:
    """Two tables: errors by predictor, and the measured rates."""
    means = {slots: fmean(each) for slots, each in rates.items()}
    found = list(predictions(means))
    first = min(means)
    up = [error for name, wanted, slots, error in found if name == "ds2" and slots is not None and slots < wanted]
    near = [
        error
        for name, wanted, slots, error in found
        if name == "ds2" and slots is not None and slots < wanted <= 2 * slots
    ]
    spread = [100 * (each / means[slots] - 1) for slots, of in rates.items() if len(of) > 1 for each in of]
    single = {wanted: error for name, wanted, slots, error in found if name == "ds2" and slots == first}
    fitted = {wanted: error for name, wanted, _, error in found if name == "ernest"}
    table = head("predicted by | from | >predictions | >mean ± sd % | >median % | >worst % | >bias %")
    table += [
        _errors("ds2", f"parallelism {first}", list(single.values())),
        _errors("ds2", "each lower parallelism", up),
        _errors("ds2", "a lower one, at least half", near),
        _errors("ernest", "all other parallelisms", list(fitted.values())),
        _errors("runs of one parallelism", "their mean", spread),
    ]
    table += ["", *head(f"parallelism | >runs | >measured [records/s] | >ds2 from {first}, error % | >ernest, error %")]
    for slots, rate in means.items():
        linear = f"{single[slots]:+.1f}" if slots in single else ""
        table.append(row(slots, len(rates[slots]), f"{rate:.0f}", linear, f"{fitted[slots]:+.1f}"))
    return table


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables; 0, or 1 with one sentence on stderr."""
    parser = argparse.ArgumentParser(prog="python -m lab.systems.scaling", description="rates by parallelism")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="a clone of ljqcodelove/ContTune")
    given = parser.parse_args(arguments)
    try:
        print("\n".join(lines(measured(file_of("ContTune", given.folder).read_text(encoding="utf-8")))))
    except LabError as error:
        print(f"python -m lab.systems.scaling: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
