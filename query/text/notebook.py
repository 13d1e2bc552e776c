"""The rows and the sentence of each answer, for notebooks and agents; importing this module registers both."""

from __future__ import annotations

from typing import Any

from crystalperf.indexes.resources import known
from crystalperf.query.diagnose.bottleneck import bottleneck_of
from crystalperf.query.results.answers import Debug, Prediction, Sweep, Verdict
from crystalperf.query.results.comparison import Comparison
from crystalperf.query.sql.rows import Rows, of_mappings, rows_of
from crystalperf.query.sql.rows import sentence_of as sentence_of
from crystalperf.query.text.answers import bottleneck_sentence
from crystalperf.query.text.comparison import verdict_sentence
from crystalperf.query.text.figures import time_unit
from crystalperf.query.text.sentences import text_of, texts_of


@rows_of.register
def _(answer: Debug) -> Rows:
    return of_mappings(
        [
            {"node_id": each.id, "name": each.name, "start_ms": each.start_ms, "end_ms": each.end_ms}
            | {f"{name}_ms": part for name, part in each.resource_ms.items()}
            for each in answer.critical_path
        ]
    )


@rows_of.register
def _(answer: Prediction) -> Rows:
    return of_mappings(
        [
            {"id": each.id, "name": each.name, "recorded_ms": each.recorded_ms, "predicted_ms": each.predicted_ms}
            for each in answer.stages
        ]
    )


@rows_of.register
def _(answer: Sweep) -> Rows:
    return of_mappings([_point(each.setting, each) for each in answer.points])


@rows_of.register
def _(answer: Verdict) -> Rows:
    return of_mappings([{"question": each.question, **_point(each.setting, each)} for each in answer.what_ifs])


def _point(setting: str, answer: Any) -> dict[str, Any]:
    low, high = answer.interval_ms or (None, None)
    return {
        "setting": setting,
        "predicted_ms": answer.predicted_ms,
        "low_ms": low,
        "high_ms": high,
        "refused": "; ".join(texts_of(answer.refused, answer.words)) or None,
    }


@rows_of.register
def _(answer: Comparison) -> Rows:
    return of_mappings(
        [
            {"kind": each.kind, "ms": each.ms, "basis": each.basis, "text": text_of(each, answer.words)}
            for each in answer.parts
        ]
    )


@sentence_of.register
def _(answer: Comparison) -> str:
    return verdict_sentence(answer)


@sentence_of.register
def _(answer: Debug) -> str:
    return bottleneck_sentence(bottleneck_of(answer), answer, known(), time_unit(answer.runtime_ms))


@sentence_of.register
def _(answer: Verdict) -> str:
    figures = time_unit(answer.debug.runtime_ms)
    return bottleneck_sentence(answer.bottleneck, answer.debug, answer.header.resources, figures)


@sentence_of.register
def _(answer: Prediction) -> str:
    if answer.predicted_ms is None:
        return f"{answer.setting}: {'; '.join(texts_of(answer.refused, answer.words))}"
    figures = time_unit(answer.runtime_ms)
    low, high = answer.interval_ms or (None, None)
    sure = "" if low is None or high is None else f" (90 % range: {figures.number(low)} to {figures.text(high)})"
    return f"{answer.setting}: {figures.text(answer.predicted_ms)} instead of {figures.text(answer.runtime_ms)}{sure}."


@sentence_of.register
def _(answer: Sweep) -> str:
    whole_ms = answer.points[0].runtime_ms
    return f"{len(answer.points)} predictions for a run that took {time_unit(whole_ms).text(whole_ms)}."
