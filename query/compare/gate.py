"""Whether runs of a job keep its budgets: ``gate``.

A measured value is a fact, so it is within its budget or over it.  A prediction and a slowdown have a 90 % range: they
are within if the whole range is, over if the whole range is, and else undecided.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from crystalperf.indexes.errors import InputError
from crystalperf.query.compare.budgets import PREDICTED, SLOWDOWN
from crystalperf.query.compare.metrics import GatedRun, duration, metrics
from crystalperf.query.compare.noise import difference, kind_of, runs_to_decide
from crystalperf.query.results.answers import Prediction
from crystalperf.query.results.gate import (
    BaselineTooNoisy,
    Budget,
    Check,
    Gate,
    LogsIncomplete,
    MetricMissing,
    Outcome,
    PredictionRefused,
    RangeOnBothSides,
    Unlike,
)
from crystalperf.query.results.noise import Difference
from crystalperf.query.results.not_recorded import NotRecorded
from crystalperf.query.results.words import Words

RUNS_MOST = 50
"""Most runs a side that an answer recommends."""

SAME = 0.05
"""Maximum relative difference of the input of two sides that are not reported as different."""

Named = Mapping[str, GatedRun]
"""Runs by the name under which the user gave them."""


def gate(runs: Named, baseline: Named, budgets: Sequence[Budget]) -> Gate:
    """Check every budget.  Raises InputError if runs are of different frameworks or kinds."""
    every = {**runs, **baseline}
    first = next(iter(runs.values())).header()
    measures = {name: duration(run)[0] for name, run in every.items()}
    measure = next(iter(measures.values()))
    for name, run in every.items():
        header = run.header()
        if header.framework != first.framework:
            raise InputError(
                f"{name}: a run of {header.framework_title}, but the others are of {first.framework_title}"
            )
        if measures[name] != measure:
            raise InputError(f"{name}: its speed is its {measures[name]}, but that of the others is their {measure}")
    after = {name: metrics(run) for name, run in runs.items()}
    before = {name: metrics(run) for name, run in baseline.items()}
    checks = [_check(each, runs, baseline, list(after.values()), kind_of(first.framework, measure)) for each in budgets]
    if unfinished := tuple(name for name, run in every.items() if not run.header().complete):
        checks = [_of_incomplete(each, measure, unfinished) for each in checks]
    outcomes = {each.outcome for each in checks}
    outcome: Outcome = "over" if "over" in outcomes else "undecided" if "undecided" in outcomes else "within"
    return Gate(
        outcome,
        first.name,
        first.framework_title,
        measure,
        tuple(runs),
        tuple(baseline),
        tuple(checks),
        tuple(_unlike(runs, baseline, list(after.values()), list(before.values()))),
        Words(first.framework, first.vocabulary, first.resources),
    )


def _check(
    budget: Budget, runs: Named, baseline: Named, values: Sequence[Mapping[str, float | None]], kind: str
) -> Check:
    if budget.metric == PREDICTED:
        return _predicted(budget, list(runs.values()))
    if budget.metric == SLOWDOWN:
        before, after = ([duration(run)[1] for run in side.values()] for side in (baseline, runs))
        return slower(budget, difference(before, after, kind), before, after, kind)
    known = [value for each in values if (value := each[budget.metric]) is not None]
    if not known:
        return _made(budget, "undecided", None, None, 0, MetricMissing(budget.name))
    middle = float(statistics.median(known))
    return _made(budget, "within" if middle <= budget.limit else "over", middle, None, len(known))


def slower(
    budget: Budget, found: Difference, before_ms: Sequence[float], after_ms: Sequence[float], kind: str
) -> Check:
    """The check of a slowdown."""
    value, low, high = (each - 1 for each in (found.ratio, found.ratio_low, found.ratio_high))
    outcome = _outcome(low, high, budget.limit)
    reason = None
    if outcome == "undecided":
        needed = runs_to_decide(before_ms, after_ms, kind, 1 + budget.limit, RUNS_MOST)
        reason = BaselineTooNoisy(needed, RUNS_MOST)
    return _made(budget, outcome, value, (low, high), len(after_ms), reason, found)


def _of_incomplete(check: Check, measure: str, unfinished: tuple[str, ...]) -> Check:
    """The check if logs of some runs do not reach the end: sums are lower bounds then, but means of a step are not."""
    is_mean = check.metric in ("step", "latency", "gc") or (check.metric == SLOWDOWN and measure != "runtime")
    is_lower = not is_mean and check.value is not None and (check.outcome == "within" or check.metric == SLOWDOWN)
    return replace(check, outcome="undecided", undecided=LogsIncomplete(unfinished)) if is_lower else check


def _predicted(budget: Budget, runs: Sequence[GatedRun]) -> Check:
    """The check of a prediction: medians of the runs' predictions, and of the ends of their ranges."""
    answers = [run.what_if(budget.settings) for run in runs]
    points = [point for each in answers for point in (each,) if isinstance(point, Prediction)]
    if len(points) < len(answers):
        raise InputError(f"{budget.name}: several values of a setting; give each value a budget of its own")
    if refused := [each for each in points if each.predicted_ms is None]:
        return _refused(budget, refused[0])
    middle = statistics.median(each.predicted_ms for each in points if each.predicted_ms is not None)
    ends = [each.interval_ms or (each.predicted_ms, each.predicted_ms) for each in points]
    low, high = (float(statistics.median(side)) for side in zip(*ends, strict=True))
    outcome = _outcome(low, high, budget.limit)
    reason = RangeOnBothSides() if outcome == "undecided" else None
    return _made(budget, outcome, float(middle), (low, high), len(points), reason)


def _refused(budget: Budget, point: Prediction) -> Check:
    """The check of a refused prediction: its bounds may decide."""
    low, high = point.bound_ms or (None, None)
    if low is not None and low > budget.limit:
        return _made(budget, "over", None, (low, high), 1)
    if high is not None and high <= budget.limit:
        return _made(budget, "within", None, (low, high), 1)
    return _made(budget, "undecided", None, (low, high), 1, PredictionRefused(point.refused[0], remedy=point.remedy))


def _outcome(low: float, high: float, limit: float) -> Outcome:
    return "over" if low > limit else "within" if high <= limit else "undecided"


def _made(
    budget: Budget,
    outcome: Outcome,
    value: float | None,
    ends: tuple[float | None, float | None] | None,
    runs: int,
    undecided: NotRecorded | None = None,
    difference: Difference | None = None,
) -> Check:
    low, high = ends or (None, None)
    return Check(
        budget.name,
        budget.metric,
        budget.unit,
        budget.limit,
        budget.stated,
        outcome,
        value,
        low,
        high,
        runs,
        undecided,
        difference,
    )


def _unlike(
    runs: Named,
    baseline: Named,
    after: Sequence[Mapping[str, float | None]],
    before: Sequence[Mapping[str, float | None]],
) -> Iterator[Unlike]:
    if not baseline:
        return
    read = [_median(each["input"] for each in side) for side in (before, after)]
    if read[0] is not None and read[1] is not None and abs(read[1] - read[0]) > SAME * read[0]:
        yield Unlike("input", read[0], read[1])
    what: Literal["workers", "slots"]
    for what in ("workers", "slots"):
        had, has = (_median(_size(run, what) for run in side.values()) for side in (baseline, runs))
        if had and has and had != has:
            yield Unlike(what, had, has)


def _size(run: GatedRun, what: Literal["workers", "slots"]) -> float | None:
    header = run.header()
    return header.workers if what == "workers" else header.slots_per_worker


def _median(values: Iterator[float | None]) -> float | None:
    known = [each for each in values if each is not None]
    return float(statistics.median(known)) if known else None
