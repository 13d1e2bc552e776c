"""Reruns of a job: their settings, and how they correct a prediction (query.predict.rerun_errors)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from crystalperf.indexes.errors import InputError, SettingError
from crystalperf.indexes.frozen import frozen
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.scenario import Scenario
from crystalperf.query.predict.rerun_errors import Observation, PriorPrediction, after_run, half_width, rerun_correction
from crystalperf.query.results.answers import Advice, Advised, Prediction, Rerun, RerunCorrection
from crystalperf.query.results.refusals import RefusedError, RerunNotPredicted

SAME_INPUT = 0.05
"""Maximum relative difference in input between two runs of the same work."""

FROM_LOGS = ("workers", "cores", "memory")
"""Settings that logs record, so that two runs can be compared without settings from the user."""


@frozen
class Compared:
    """A rerun: its name and scenario as an interface reports them, and its prediction with the measured runtime."""

    rerun: Rerun
    seen: Observation


def check_framework(base: Execution, other: Execution, name: str) -> None:
    """Raise InputError if another run is of another framework than the recorded run."""
    if other.words.framework != base.words.framework:
        raise InputError(f"{name}: a run of {other.title}, but the recorded run is one of {base.title}")


def differences(base: Execution, other: Execution, name: str, stated: Iterable[str]) -> list[str]:
    """The settings, KEY=VALUE, by which another run differs from the recorded run.

    `stated` are the user's own settings, which win.  Raises InputError if the other run is not of the same job.
    """
    check_framework(base, other, name)
    had, has = (float(each.volumes.input.sum()) for each in (base, other))
    if abs(has - had) > SAME_INPUT * had:
        raise InputError(
            f"{name}: it read {has / 1e6:.0f} MB, but the recorded run {had / 1e6:.0f} MB, so it is another job"
        )
    texts = list(stated)
    words = {inner: word for word, inner in base.words.vocabulary.settings.items()}
    stated_keys = {text.partition("=")[0] for text in texts}
    for key in FROM_LOGS:
        before, after, word = base.recorded.get(key), other.recorded.get(key), words.get(key, key)
        if before and after and before != after and not stated_keys & {key, word}:
            texts.append(f"{word}={after:.0f}{'B' if key == 'memory' else ''}")
    return texts


def compared(name: str, scenario: Scenario, prediction: Prediction, actual_ms: float) -> Compared:
    """A rerun with its prediction and its runtime.  Raises RefusedError if its scenario cannot be predicted."""
    if prediction.predicted_ms is None or prediction.interval_ms is None:
        raise RefusedError(RerunNotPredicted(name, prediction.setting, prediction.refused))
    return Compared(
        Rerun(name, prediction.setting, prediction.predicted_ms, actual_ms),
        Observation(guess_of(scenario, prediction), actual_ms),
    )


def guess_of(scenario: Scenario, prediction: Prediction) -> PriorPrediction:
    """A prediction as the input of learned()."""
    assert prediction.predicted_ms is not None
    assert prediction.interval_ms is not None
    ratios = {key: math.log(ratio) for key, ratio in scenario.ratios.items()}
    return PriorPrediction(ratios, prediction.predicted_ms, prediction.interval_ms)


def apply_reruns(scenario: Scenario, prediction: Prediction, others: Sequence[Compared]) -> Prediction:
    """The prediction, corrected by the model's errors in other runs of the job; stages change by the same factor.

    Raises SettingError for a prediction about the batches of a stream.
    """
    if others and prediction.stream is not None and prediction.stream.batch is not None:
        raise SettingError("other runs do not correct predictions about the batches of a stream; leave them out")
    if not others or prediction.predicted_ms is None or prediction.interval_ms is None:
        return prediction
    before = guess_of(scenario, prediction)
    after = rerun_correction(before, [each.seen for each in others])
    moved = after.predicted_ms / before.predicted_ms
    return replace(
        prediction,
        predicted_ms=after.predicted_ms,
        interval_ms=after.interval_ms,
        resource_ms={name: ms * moved for name, ms in prediction.resource_ms.items()},
        stages=tuple(
            each if each.predicted_ms is None else replace(each, predicted_ms=each.predicted_ms * moved)
            for each in prediction.stages
        ),
        rerun_correction=RerunCorrection(
            tuple(each.rerun for each in others), prediction.predicted_ms, prediction.interval_ms
        ),
    )


def advice(
    questions: Sequence[tuple[Scenario, Prediction]],
    runs: Sequence[tuple[Scenario, Prediction]],
    others: Sequence[Compared],
) -> Advice:
    """Candidate runs, ranked by how narrow they would make the intervals of some predictions; without refused ones.

    Candidates that are equal to a percent stay in the given order.
    """
    seen = [each.seen for each in others]
    wanted = {each.setting: guess_of(scenario, each) for scenario, each in questions if each.interval_ms is not None}
    candidates = {each.setting: guess_of(scenario, each) for scenario, each in runs if each.interval_ms is not None}
    now = tuple(half_width(rerun_correction(each, seen)) for each in wanted.values())
    found = [
        Advised(setting, tuple(after_run(each, seen, candidate) for each in wanted.values()))
        for setting, candidate in candidates.items()
    ]
    found.sort(key=lambda each: round(sum(each.half_width_shares) / max(len(wanted), 1), 2))
    return Advice(tuple(wanted), now, tuple(found))
