"""Context of a suite's errors: the noise floor, the 95th percentile, an interval by workload, and equal predictors.

The noise floor is the error of a perfect model: one run of a configuration against the median of its reruns.  Only runs
of one series are compared, and none of them is the baseline of a prediction.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence

import numpy as np

from lab.pages import head
from lab.runs.suites import ROLES, configurations
from lab.score.pairs import ARMS, OTHERS, SHIPPED, Measured, Pair, pairs
from lab.scored import from_median

ALL = "all"
"""Both roles as one set: for suites that only score."""

DRAWS = 10_000
_SEED = 20210714


def floor(known: Measured, role: str) -> list[float]:
    """|run / median − 1| of every configuration of a role, and of baselines, with several runs in a series.

    The median includes the run itself, so its deviation is too small; the result is corrected for that.
    """
    return from_median(
        times
        for one in configurations(known.suite)
        if role == ALL or one.role in (role, "base")
        for times in known.reruns_ms.get(one.number, ())
    )


def by_workload(found: Sequence[Pair]) -> tuple[float, float] | None:
    """The 95 % bootstrap interval of the mean error, with whole workloads as units.

    Configurations of one workload share its baseline run, so they are not independent.  None for a single workload,
    which does not show the variance between workloads.
    """
    of: dict[str, list[float]] = {}
    for pair in found:
        if pair.deviation is not None:
            of.setdefault(pair.configuration.workload, []).append(abs(pair.deviation))
    if len(of) < 2:
        return None
    total, count = (np.array([measure(each) for each in of.values()], dtype=np.float64) for measure in (sum, len))
    drawn = np.random.default_rng(_SEED).integers(len(of), size=(DRAWS, len(of)))
    low, high = np.percentile(total[drawn].sum(axis=1) / count[drawn].sum(axis=1), [2.5, 97.5])
    return float(low), float(high)


def as_good(shipped: Sequence[Pair], others: Sequence[tuple[str, Sequence[Pair]]]) -> list[str]:
    """The other predictors with an equal or smaller mean error where they answer, with their mean error and ours, %."""
    ours: dict[tuple[str, int], list[float]] = {}  # of each configuration by all bases
    for pair in shipped:
        if pair.deviation is not None:
            ours.setdefault((pair.suite, pair.configuration.number), []).append(abs(pair.deviation))
    found = []
    for title, theirs in others:
        off = [
            (abs(pair.deviation), statistics.mean(mine))
            for pair in theirs
            if pair.deviation is not None and (mine := ours.get((pair.suite, pair.configuration.number))) is not None
        ]
        if off and (their_mean := statistics.mean(each[0] for each in off)) <= (
            our_mean := statistics.mean(each[1] for each in off)
        ):
            found.append(f"{title} ({100 * their_mean:.1f} to our {100 * our_mean:.1f} in {len(off)})")
    return found


def floor_table(known: Sequence[Measured], roles: Sequence[str] = ROLES) -> list[str]:
    """A row per suite and role, and one over all suites: errors of the shipped model, and the noise floor."""
    lines = head(
        "suite | configurations | >mean % | >95 % are below % | >worst %"
        " | mean, 95 % interval by workload % | noise floor % | equal or better, mean %"
    )
    arms = [(short_name(title), arm) for title, arm in ARMS if arm[1] in OTHERS]
    shipped = [(each, pairs(each, SHIPPED)) for each in known]
    others = [[(title, pairs(each, arm)) for title, arm in arms] for each in known]
    for role in roles:
        lines += [
            _row(each.suite.name, role, of_role(mine, role), _sorted_out(theirs, role), floor(each, role))
            for (each, mine), theirs in zip(shipped, others, strict=True)
            if any(pair.deviation is not None for pair in of_role(mine, role))
        ]
        if len(known) > 1:
            together = [
                (title, [pair for theirs in others for pair in theirs[position][1]])
                for position, (title, _) in enumerate(arms)
            ]
            whole = of_role([pair for _, mine in shipped for pair in mine], role)
            every = [one for each in known for one in floor(each, role)]
            lines += [_row("all", role, whole, _sorted_out(together, role), every)] if whole else []
    return lines


def short_name(title: str) -> str:
    """A predictor's name as a column heading."""
    return re.split(r"[(,:]", title)[0].strip()


def of_role(found: Sequence[Pair], role: str) -> list[Pair]:
    """The predictions for a role; for ALL those of both."""
    return [pair for pair in found if role in (pair.configuration.role, ALL)]


def _sorted_out(theirs: Sequence[tuple[str, Sequence[Pair]]], role: str) -> list[tuple[str, list[Pair]]]:
    """The other predictors' predictions for a role, without those fitted to the same configurations."""
    return [(title, of_role(found, role)) for title, found in theirs if title != "Ernest" or role == "odd"]


def _row(
    name: str, role: str, mine: Sequence[Pair], theirs: Sequence[tuple[str, Sequence[Pair]]], apart: Sequence[float]
) -> str:
    off = [abs(pair.deviation) for pair in mine if pair.deviation is not None]
    around = by_workload(mine)
    cells = [
        name,
        f"{role}: {len({(pair.suite, pair.configuration.number) for pair in mine})}",
        f"{100 * statistics.mean(off):.1f}",
        f"{100 * float(np.percentile(off, 95)):.0f}",
        f"{100 * max(off):.0f}",
        "one workload" if around is None else f"{100 * around[0]:.1f} to {100 * around[1]:.1f}",
        f"{100 * statistics.mean(apart):.1f} ({len(apart)} runs)" if apart else "no reruns",
        "; ".join(as_good(mine, theirs)) or "none",
    ]
    return f"| {' | '.join(cells)} |"
