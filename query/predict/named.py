"""Predictions of one predictor by its name, and of all of them side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crystalperf.indexes.errors import InputError
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.scenario import Scenario
from crystalperf.query.predict.estimate import work_ratio
from crystalperf.query.predict.predictor import Predictor, SustainedRate, kind_of
from crystalperf.query.predict.registry import BUILT_IN, find
from crystalperf.query.results.answers import Prediction, StreamPrediction
from crystalperf.query.results.assumptions import NoTerm, OtherPredictor
from crystalperf.query.results.refusals import (
    LatencyNotPredicted,
    PredictorNeedsRuns,
    PredictorNotForRun,
    RefusedError,
)


def predicted_by(
    name: str, execution: Execution, scenario: Scenario, baseline: Prediction, runs: Sequence[Execution] = ()
) -> Prediction:
    """The prediction of a predictor for a scope in a scenario; without an interval.

    `baseline` is the prediction for the scope with nothing changed, `runs` are other runs of the job.  Raises
    SettingError if there is no predictor of that name.
    """
    predictor = find(name)
    known = replace(
        baseline,
        setting=scenario.describe(),
        predicted_ms=None,
        interval_ms=None,
        interval_shares={},
        bound_ms=None,
        stages=(),
        assumptions=(),
        refused=(),
        remedy=None,
        resource_ms={},
        stream=None,
        steady_step_ms=None,
    )
    if (kind := kind_of(execution)) not in predictor.runs:
        return known.with_refusal(PredictorNotForRun(name, tuple(sorted(predictor.runs)), kind))
    if len(runs) < predictor.least_runs:
        return known.with_refusal(PredictorNeedsRuns(name, predictor.least_runs, len(runs)))
    stated = replace(execution, recorded=scenario.recorded)
    try:
        answer = predictor.predict(stated, scenario, *([tuple(runs)] if predictor.least_runs else []))
    except RefusedError as error:
        return known.with_refusal(error.refusal)
    except Exception as error:  # another package's function may raise anything
        if name in BUILT_IN:
            raise
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise InputError(f"the predictor '{name}' of another package failed: {what}") from error
    known = replace(known, assumptions=(OtherPredictor(name), *_without_term(name, predictor, execution, scenario)))
    if isinstance(answer, SustainedRate):
        return _with_rate(known, name, answer, execution, scenario)
    return replace(known, predicted_ms=float(answer), work_ratio=work_ratio(execution, scenario))


def _without_term(name: str, predictor: Predictor, execution: Execution, scenario: Scenario) -> tuple[NoTerm, ...]:
    """The assumption that settings for which a predictor has no term change nothing."""
    if predictor.settings is None:
        return ()
    known = predictor.settings(execution)
    begin = tuple(each for each in known if each.endswith("."))
    words = tuple(
        value.word for key, value in scenario.changes.items() if key not in known and not key.startswith(begin)
    )
    return (NoTerm(name, words),) if words else ()


def _with_rate(
    known: Prediction, name: str, answer: SustainedRate, execution: Execution, scenario: Scenario
) -> Prediction:
    """A prediction of the highest rate of a stream alone."""
    assert execution.stream is not None
    rate_per_s = execution.stream.rate_per_s
    stream = StreamPrediction(
        recorded_per_s=rate_per_s,
        rate_per_s=rate_per_s * scenario.ratio("rate"),
        recorded_max_per_s=None,
        max_per_s=answer.records_per_s,
        max_per_s_interval=None,
        limit=answer.limit,
        limit_kind="station",
        limit_resource="",
    )
    return replace(known, stream=stream, refused=(LatencyNotPredicted(name),))
