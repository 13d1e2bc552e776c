"""How often ``crystalperf gate`` alarms without cause, and how often it sees a slower job: ``python -m lab.score.gate``.

python -m lab.score.gate [FOLDER…]                         the table of rates; FOLDER as in lab.score.published
python -m lab.score.gate --fit query/compare/spread.csv    the usual spread of repeated runs, from the lab
"""

from __future__ import annotations

import argparse
import csv
import io
import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.stats import f as f_distribution

from crystalperf.query.compare.noise import ANY
from lab.score.repeats import Group, halves, lab_groups

ENOUGH = 3
"""Groups that a kind needs for a spread of its own."""

WEIGHTS = np.linspace(2.0, 10.0, 33)
"""Below 2, the tails of the prior alone would make each single run as noisy as the worst one.  A prior counts at most as
many runs as it has groups."""

DEVIATIONS = np.geomspace(0.002, 0.3, 251)


def fit(groups: Sequence[Group]) -> tuple[float, float]:
    """The deviation and the weight (query.compare.noise.Spread) that make the groups' variances most likely.

    A group's variance over the squared deviation then has the F distribution of its degrees of freedom and the weight.
    """
    logs = [np.log(each.runs_ms) for each in groups]
    known = [(float(each.var(ddof=1)), len(each) - 1) for each in logs if each.var() > 0]
    squares, freedom = (np.array(each) for each in zip(*known, strict=True))
    likely = [
        (float((f_distribution.logpdf(squares / one**2, freedom, weight) - 2 * math.log(one)).sum()), one, weight)
        for one in DEVIATIONS
        for weight in WEIGHTS[: max(int(np.sum(len(known) >= WEIGHTS)), 1)]
    ]
    _, deviation, weight = max(likely)
    return float(deviation), float(weight)


def spreads(groups: Sequence[Group]) -> str:
    """The table of usual spreads, CSV: each kind with enough groups, each framework, and all."""
    of: dict[str, list[Group]] = defaultdict(list)
    for each in groups:
        if len(each.runs_ms) > 1 and each.fits:
            for kind in (each.kind, f"{each.kind.split()[0]} {ANY}", f"{ANY} {ANY}"):
                of[kind].append(each)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("kind", "deviation", "weight", "groups", "runs"))
    for kind, members in sorted(of.items(), reverse=True):
        same = any(len(of[each]) == len(members) for each in of if each.split()[0] == kind.split()[0] and each > kind)
        if len(members) >= ENOUGH and not same:
            deviation, weight = fit(members)
            runs = sum(len(each.runs_ms) for each in members)
            writer.writerow((kind, f"{deviation:.3f}", f"{weight:.1f}", len(members), runs))
    return text.getvalue()


def main() -> None:
    """The table of rates, or with `--fit` the usual spreads."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER", help="published event logs")
    parser.add_argument("--fit", type=Path, metavar="FILE", help="write the usual spreads of repeated runs")
    given = parser.parse_args()
    tuning, _ = halves(lab_groups())
    if given.fit:
        given.fit.write_text(spreads(tuning), encoding="utf-8")


if __name__ == "__main__":
    main()
