"""How often ``crystalperf gate`` alarms without cause, and how often it sees a slower job.

python -m lab.score.gate [FOLDER…]                         the table of rates; FOLDER as in lab.score.published
python -m lab.score.gate --fit query/compare/spread.csv    the usual spread of repeated runs, from the lab

Columns: over a budget of 10 % more than the baseline (exit code 3), undecided (4), and a difference beyond noise in
either direction (query.compare.noise).  Brackets have the exact 95 % interval, as if comparisons were independent;
those of one job are not.  Runs that are 1.3 times as long are made from others; those with fewer executors are real.
All are of the test half of jobs.
"""

from __future__ import annotations

import argparse
import csv
import io
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
from scipy.stats import binomtest
from scipy.stats import f as f_distribution

from crystalperf.query.compare import budgets as parsing
from crystalperf.query.compare.gate import slower
from crystalperf.query.compare.noise import ANY, difference
from crystalperf.query.results.gate import Outcome
from crystalperf.query.results.noise import Change
from lab.pages import head, row
from lab.score.repeats import Group, halves, lab_groups, published_groups

ENOUGH = 3
"""Groups that a kind needs for a spread of its own."""

WEIGHTS = np.linspace(2.0, 10.0, 33)
"""Below 2, the tails of the prior alone would make each single run as noisy as the worst one.  A prior counts
at most as many runs as it has groups."""

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


SIDE = 5
"""Runs a side."""

FEWEST = 10
"""Comparisons of a row."""

SLOWER = 1.3
"""Ratio of slower runs that are made from others."""

LONGER = (1.2, 1.5)
"""Range of the ratio of real slower runs."""

LIMIT = parsing.slowdown("10%")


@dataclass(frozen=True)
class Pair:
    """Two sides of runs of one job, ms, the earlier ones first; `group` is their origin."""

    group: Group
    before_ms: tuple[float, ...]
    after_ms: tuple[float, ...]

    def outcome(self, ratio: float = 1.0) -> Outcome:
        """The outcome of the gate, with 10 % as limit, if the later side takes `ratio` times as long."""
        return self._checked(ratio)[1]

    def change(self, ratio: float = 1.0) -> Change:
        """The verdict of the difference."""
        return self._checked(ratio)[0]

    def _checked(self, ratio: float) -> tuple[Change, Outcome]:
        after_ms = [ratio * each for each in self.after_ms]
        found = difference(self.before_ms, after_ms, self.group.kind)
        return found.verdict, slower(LIMIT, found, self.before_ms, after_ms, self.group.kind).outcome


def pairs(groups: Iterable[Group], side: int) -> list[Pair]:
    """Comparisons of a job with itself: a group's first runs against its next ones, as many on each side."""
    return [
        Pair(each, each.runs_ms[first : first + side], each.runs_ms[first + side : first + 2 * side])
        for each in groups
        for first in range(0, len(each.runs_ms) - 2 * side + 1, 2 * side)
    ]


def slowed(groups: Sequence[Group], side: int) -> list[Pair]:
    """Real slower runs: groups of a job with other resources, whose medians differ by a ratio in LONGER."""
    of: dict[tuple[str, str], list[Group]] = defaultdict(list)
    for each in groups:
        if len(each.runs_ms) >= side:
            of[each.place, each.job].append(each)
    return [
        Pair(fast, fast.runs_ms[:side], slow.runs_ms[:side])
        for members in of.values()
        for fast, slow in permutations(members, 2)
        if LONGER[0] <= statistics.median(slow.runs_ms) / statistics.median(fast.runs_ms) <= LONGER[1]
    ]


def later(groups: Sequence[Group]) -> list[Pair]:
    """Comparisons of a job with itself on another day: a series of the lab against the next one."""
    of: dict[tuple[str, str, str], list[Group]] = defaultdict(list)
    for each in groups:
        if each.place == "lab":
            of[each.kind, each.job, each.resources].append(each)
    return [
        Pair(first, first.runs_ms, second.runs_ms)
        for members in of.values()
        for first, second in combinations(members, 2)
        if min(len(first.runs_ms), len(second.runs_ms)) > 1
    ]


def table(groups: Sequence[Group]) -> list[str]:
    """The rates of a half, Markdown: of kinds and places with FEWEST comparisons, and of all."""
    lines = head("runs | comparisons | jobs | >over % | >undecided % | >differ %")
    places = sorted({(each.kind, each.place) for each in groups}, key=lambda each: (each[1] == "lab", each))
    for side in (SIDE, 3, 1):
        for kind, place in places:
            found = pairs([each for each in groups if (each.kind, each.place) == (kind, place)], side)
            if len(found) >= FEWEST:
                lines += _rows(f"{kind}, {place}, {side} a side", found)
        lines += _rows(f"all, {side} a side", pairs(groups, side))
    low, high = LONGER
    if real := slowed([each for each in groups if each.place != "lab"], SIDE):
        lines.append(_row(f"fewer executors, {low:g} to {high:g} times as long, {SIDE} a side", real, 1.0))
    if again := later(groups):
        lines.append(_row("all of the lab, the same on another day", again, 1.0))
    return lines


def _rows(title: str, found: Sequence[Pair]) -> list[str]:
    return [_row(f"{title}, the same", found, 1.0), _row(f"{title}, {SLOWER:g} times as long", found, SLOWER)]


def _row(title: str, found: Sequence[Pair], ratio: float) -> str:
    outcomes = [each.outcome(ratio) for each in found]
    changes = [each.change(ratio) for each in found]
    undecided = 100 * outcomes.count("undecided") / len(found)
    return row(
        title,
        len(found),
        len({(each.group.kind, each.group.place, each.group.job) for each in found}),
        _rate(outcomes.count("over"), len(found)),
        f"{undecided:.0f}",
        _rate(len(found) - changes.count("no change"), len(found)),
    )


def _rate(count: int, total: int) -> str:
    """A rate in %, with its exact 95 % interval (Clopper and Pearson) for independent comparisons."""
    ends = binomtest(count, total).proportion_ci(0.95)
    return f"{100 * count / total:.1f} ({100 * ends.low:.1f} to {100 * ends.high:.1f})"


def main() -> None:
    """The table of rates, or with `--fit` the usual spreads."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER", help="published event logs")
    parser.add_argument("--fit", type=Path, metavar="FILE", help="write the usual spreads of repeated runs")
    parser.add_argument("--tuning", action="store_true", help="the tuning half, to choose a method")
    given = parser.parse_args()
    tuning, tested = halves([*lab_groups(), *([] if given.fit else published_groups(given.folders))])
    if given.fit:
        given.fit.write_text(spreads(tuning), encoding="utf-8")
        return
    print("\n".join(table(tuning if given.tuning else tested)))


if __name__ == "__main__":
    main()
