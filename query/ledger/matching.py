"""Later runs of a job under predicted resources.

A run matches a prediction if it is of the same job and plan, read the same input within 5 %, and had the resources of
the scenario as far as its log records them.  It must have started later: by its own clock, which may be some minutes
off, and by the ledger, which must not have seen it before the prediction.  A run is held against the last prediction
for its resources, so that a prediction that was repeated counts once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from crystalperf.indexes.frozen import frozen
from crystalperf.query.ledger.entries import Entry, Identity, Job, Predicted, RunFacts
from crystalperf.query.predict.reruns import SAME_INPUT

SKEW_MS = 300_000
"""Maximum difference of clocks: a run that started by so much before the prediction may still be later."""

SAME_AMOUNT = 0.001
"""Maximum relative difference of resources that are the same."""


@frozen
class KnownRun:
    """A run that the ledger knows: when it saw it first, Unix ms, and settings that the user stated for it."""

    facts: RunFacts
    seen_ms: float
    stated: Mapping[str, str] = field(default_factory=dict)


@frozen
class Made:
    """A prediction with the run that it is from, and its time, Unix ms."""

    at_ms: int
    run: RunFacts
    prediction: Predicted


@frozen
class Held:
    """A prediction and a later run, with the duration of what was predicted, ms."""

    made: Made
    run: RunFacts
    actual_ms: float


def known_runs(entries: Iterable[Entry], more: Iterable[KnownRun]) -> list[KnownRun]:
    """The runs of entries, each once with its newest facts, and further ones."""
    found: dict[Identity, KnownRun] = {}
    for each in entries:
        before = found.get(each.run.identity)
        found[each.run.identity] = KnownRun(each.run, each.at_ms if before is None else min(before.seen_ms, each.at_ms))
    for given in more:
        before = found.get(given.facts.identity)
        seen_ms = given.seen_ms if before is None else min(before.seen_ms, given.seen_ms)
        found[given.facts.identity] = KnownRun(given.facts, seen_ms, given.stated)
    return list(found.values())


def predictions(entries: Iterable[Entry]) -> list[Made]:
    """The predictions from runs that ended well, in the order of their time: others are about a part of the job."""
    made = [Made(each.at_ms, each.run, one) for each in entries if each.run.ended_well for one in each.predictions]
    return sorted(made, key=lambda each: each.at_ms)


def is_later(run: KnownRun, at_ms: float) -> bool:
    """Whether a run started after a moment, Unix ms."""
    return run.seen_ms > at_ms and run.facts.started_at_ms > at_ms - SKEW_MS


def held(made: Sequence[Made], runs: Sequence[KnownRun], *, backtest: bool = False) -> Iterator[Held]:
    """Each later run that ended well, with the last prediction for its resources, for each predicted scope.

    With `backtest`, runs that started before the prediction count as well.
    """
    by_job: dict[Job, dict[tuple[object, ...], list[Made]]] = {}
    for each in made:
        groups = by_job.setdefault(each.run.job, {})
        groups.setdefault(_group(each.prediction), []).append(each)
    for run in runs:
        if not run.facts.ended_well:
            continue
        for alike in by_job.get(run.facts.job, {}).values():
            if not _fits(alike[-1].prediction, run):
                continue
            last = next((each for each in reversed(alike) if _counts(each, run, backtest=backtest)), None)
            actual_ms = None if last is None else run.facts.value_ms(last.prediction.scope)
            if last is not None and actual_ms:
                yield Held(last, run.facts, actual_ms)


def _group(prediction: Predicted) -> tuple[object, ...]:
    """The key of predictions of the same resources: all but the input, which may vary a little."""
    amounts = ((key, float(f"{value:.6g}")) for key, value in prediction.expected.items() if key != "input")
    return prediction.scope, prediction.model, tuple(sorted(amounts)), tuple(sorted(prediction.unstated.items()))


def _fits(prediction: Predicted, run: KnownRun) -> bool:
    """Whether a run has the predicted resources, but for the input."""
    has = run.facts.resources
    if any(run.stated.get(key) != text for key, text in prediction.unstated.items()):
        return False
    return all(
        key in has and math.isclose(has[key], wanted, rel_tol=SAME_AMOUNT)
        for key, wanted in prediction.expected.items()
        if key != "input"
    )


def _counts(made: Made, run: KnownRun, *, backtest: bool) -> bool:
    if made.run.identity == run.facts.identity or not (backtest or is_later(run, made.at_ms)):
        return False
    return same_input(made.prediction.expected, run.facts.resources)


def same_input(one: Mapping[str, float], other: Mapping[str, float]) -> bool:
    """Whether two runs read the same amount of data, within 5 %."""
    had, has = one.get("input", 0.0), other.get("input", 0.0)
    return abs(has - had) <= SAME_INPUT * had
