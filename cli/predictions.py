"""Predictions as text: the usual scenarios of a verdict, one scenario, a table of several, a refusal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from crystalperf.cli.page import Page
from crystalperf.cli.parts import listed
from crystalperf.cli.remedies import with_remedy
from crystalperf.cli.text import TimeUnit, change, counted, printable, time_unit
from crystalperf.query.advise.usual_what_ifs import alike, classify
from crystalperf.query.advise.verdict import knee_of
from crystalperf.query.results.assumptions import OtherPredictor
from crystalperf.query.text.answers import (
    batch_sentence,
    capitalised,
    check_sentences,
    examples_ratio,
    knee_sentence,
    measure_word,
    most_sentence,
    no_effect_sentence,
    not_known_sentences,
    range_sentence,
    refusal_sentence,
    replay_sentence,
    same_sentence,
    step_ms,
    step_sentence,
)
from crystalperf.query.text.figures import counted_digits
from crystalperf.query.text.sentences import text_of, texts_of

if TYPE_CHECKING:
    from crystalperf.query.results.answers import Header, Prediction, StreamPrediction, Sweep, Verdict, WhatIf
    from crystalperf.query.results.assumptions import Assumption

RANGE = "90 % range"
STAGES_SHOWN = 20


def usual(page: Page, verdict: Verdict, unit: TimeUnit, most: int) -> None:
    """Write the usual scenarios: a row for each that changes the runtime (the `most` largest changes), a line for those
    without effect, and one for the unknown ones.
    """
    runtime_ms = verdict.debug.runtime_ms
    found = classify(verdict.what_ifs, runtime_ms)
    changes = {
        id(each): abs(each.predicted_ms - runtime_ms) for each in found.changing if each.predicted_ms is not None
    }
    most_change = sorted(changes, key=lambda each: -changes[each])[:most]
    shown = [each for each in found.changing if id(each) in most_change]
    intervals = any(each.interval_ms for each in shown)
    steps = _Steps(verdict.header, runtime_ms, verdict.debug.scope)
    rates = [
        each
        for each in verdict.what_ifs
        if each.stream is not None
        and each.stream.max_per_s is not None
        and not alike(each.stream.max_per_s, each.stream.recorded_max_per_s or 0.0)
    ]
    if shown:
        heads = [
            "What if",
            "--set",
            *steps.head,
            f"{measure_word(verdict.debug.measure)} [{unit.name}]",
            "change",
            *([RANGE] if intervals else []),
        ]
        rows = [
            [
                each.question,
                each.setting,
                *steps.cells(each.predicted_ms),
                *_cells(each, runtime_ms, unit),
                *_ranges(each, unit, intervals),
            ]
            for each in shown
        ]
        page.table(heads, rows, "<<" + ">" * len(steps.head) + ">>" + ">" * intervals)
    elif verdict.what_ifs and not rates:
        page.line("What if")
    if rates:
        _rates(page, [(each.setting, each.stream) for each in rates if each.stream is not None])
    if same := [each for each in found.same if each not in rates]:
        page.paragraph(same_sentence(same), hanging="  ")
    _not_known(page, found.unknown, runtime_ms, unit)
    if shown and (sentences := check_sentences(verdict, unit, RANGE if intervals else "")):
        page.paragraph(sentences)


def prediction_text(header: Header, prediction: Prediction) -> str:
    """The answer of `predict` for one scenario."""
    unit = time_unit(prediction.runtime_ms)
    page = Page()
    page.line(f"{printable(header.name)}, {prediction.setting}{_scope_words(prediction.scope)}")
    page.line()
    if prediction.predicted_ms is not None:
        page.strong(
            f"{unit.text(prediction.predicted_ms)} instead of {unit.text(prediction.runtime_ms)}"
            f" ({change(prediction.predicted_ms, prediction.runtime_ms)})"
        )
    by_other = any(each.kind == OtherPredictor.kind for each in prediction.assumptions)
    if (why := no_effect_sentence(header, prediction, unit)) and not by_other:
        page.paragraph(printable(why))
    if step := step_sentence(header, prediction):
        page.paragraph(step)
    if prediction.stream is not None:
        if batch := batch_sentence(prediction.stream):
            page.paragraph(printable(batch))
        page.paragraph(printable(most_sentence(prediction.stream, header.vocabulary, header.resources)))
        if prediction.predicted_ms is None:
            page.paragraph(f"Latency: unknown, because {'; '.join(texts_of(prediction.refused, prediction.words))}.")
    if prediction.interval_ms:
        page.paragraph(f"9 of 10 reruns would take {_range(prediction.interval_ms, unit)} {unit.name}.")
    if prediction.stages or not by_other:  # other models have neither stages nor a replay
        page.paragraph(replay_sentence(prediction.replayed_ms, prediction.runtime_ms, unit))
        _learned(page, prediction, unit)
        _stages(page, header, prediction, unit)
    listed(page, "Assumed", texts_of(prediction.assumptions, prediction.words))
    return page.text()


def _stages(page: Page, header: Header, prediction: Prediction, unit: TimeUnit) -> None:
    """Write the longest stages with their recorded and their predicted length."""
    page.line()
    stage = header.vocabulary.stage
    longest = sorted(prediction.stages, key=lambda each: -each.recorded_ms)[:STAGES_SHOWN]
    shown = {each.id for each in longest}
    rows = [
        [
            each.id,
            each.name,
            unit.number(each.recorded_ms),
            unit.number(each.predicted_ms),
            "" if each.predicted_ms is None else change(each.predicted_ms, each.recorded_ms),
        ]
        for each in prediction.stages
        if each.id in shown
    ]
    page.table([capitalised(stage), "", f"recorded [{unit.name}]", "predicted", "change"], rows, "<<>>>", cut=1)
    if len(prediction.stages) > len(rows):
        page.line(f"{counted(len(prediction.stages) - len(rows), f'shorter {stage}')} not shown; --json has all")


def _learned(page: Page, prediction: Prediction, unit: TimeUnit) -> None:
    """Write what other runs of the job changed about a prediction; nothing if none were given."""
    rerun_correction = prediction.rerun_correction
    if rerun_correction is None:
        return
    others = counted(len(rerun_correction.reruns), "other run")
    page.paragraph(
        f"Without the {others}, the prediction for {prediction.setting} is {unit.text(rerun_correction.predicted_ms)}"
        f" ({RANGE}: {_range(rerun_correction.interval_ms, unit)})."
    )
    for each in rerun_correction.reruns:
        page.paragraph(
            f"{printable(each.run)}, {each.setting}: measured {unit.text(each.actual_ms)}, predicted from this run"
            f" {unit.text(each.predicted_ms)} ({change(each.predicted_ms, each.actual_ms)}).",
            hanging="  ",
        )


CSV_COLUMNS = (
    *("setting", "scope", "measure", "runtime_ms", "predicted_ms", "low_ms", "high_ms", "at_least_ms", "at_most_ms"),
    *("records_per_s", "refused"),
)
"""Columns of `predict --csv`; low and high are the 90 % range, at_least and at_most the bounds of a refusal."""


def csv_row(point: Prediction) -> list[object]:
    """The row of one prediction, by CSV_COLUMNS."""
    stream = point.stream
    return [
        *(point.setting, point.scope, point.measure, point.runtime_ms, point.predicted_ms),
        *(point.interval_ms or (None, None)),
        *(point.bound_ms or (None, None)),
        None if stream is None else stream.max_per_s,
        "; ".join(texts_of(point.refused, point.words)) or None,
    ]


def sweep_text(header: Header, sweep: Sweep) -> str:
    """The answer of `predict` for a list of values: a table, and the point of diminishing returns."""
    first = sweep.points[0]
    unit = time_unit(first.runtime_ms)
    page = Page()
    page.line(f"{printable(header.name)}{_scope_words(first.scope)}")
    page.line()
    intervals = any(each.interval_ms for each in sweep.points)
    knee = knee_of(sweep)
    worth = knee.point if knee is not None and knee.worth else None
    steps = _Steps(header, first.runtime_ms, first.scope)
    more_work = bool(steps.head) and any(each.work_ratio != 1 for each in sweep.points)
    here = "<- worth it" if steps.head else "<- worth it up to here"
    rows = [
        [
            point.setting,
            *steps.cells(point.predicted_ms),
            *([_examples(point)] if more_work else []),
            *_cells(point, first.runtime_ms, unit),
            *_ranges(point, unit, intervals),
            here if number == worth else "",
        ]
        for number, point in enumerate(sweep.points)
    ]
    last = [unit.number(first.runtime_ms), "", *([""] if intervals else []), ""]
    rows.append(["as recorded", *steps.cells(first.runtime_ms), *([""] if more_work else []), *last])
    time_head = f"{measure_word(first.measure)} [{unit.name}]"
    step_heads = [*steps.head, *(["examples/s"] if more_work else [])]
    heads = ["What if", *step_heads, time_head, "change", *([RANGE] if intervals else []), ""]
    rates = [(each.setting, each.stream) for each in sweep.points if each.stream is not None]
    if not rates or any(each.predicted_ms is not None for each in sweep.points):
        page.table(heads, rows, "<" + ">" * len(step_heads) + ">>" + ">" * intervals + "<", cut=0)
        page.line()
    if rates:
        _rates(page, rates)
        page.line()
    if knee is not None:
        page.paragraph(knee_sentence(knee, sweep))
    sentence = replay_sentence(first.replayed_ms, first.runtime_ms, unit)
    page.paragraph(f"{sentence} {range_sentence(RANGE)}" if intervals else sentence)
    _learned(page, next((each for each in sweep.points if each.rerun_correction), first), unit)
    _not_known(page, [each for each in sweep.points if each.predicted_ms is None], first.runtime_ms, unit)
    listed(page, "Assumed", _assumed(sweep.points))
    return page.text()


def _assumed(points: Sequence[Prediction]) -> list[str]:
    """The assumptions: first those of all settings, then those of some settings (named), the most common first."""
    whose: dict[Assumption, list[str]] = {}
    answered = [each for each in points if each.predicted_ms is not None or each.assumptions]
    for each in answered:
        for assumed in dict.fromkeys(each.assumptions):
            whose.setdefault(assumed, []).append(each.setting)
    found = []
    for assumed, settings in sorted(whose.items(), key=lambda each: -len(each[1])):
        text = text_of(assumed, points[0].words)
        found.append(text if len(settings) == len(answered) else f"{_first_of(settings)}: {text}")
    return found


def _first_of(settings: Sequence[str]) -> str:
    more = len(settings) - 1
    return settings[0] if not more else f"{settings[0]} and {settings[1] if more == 1 else f'{more} more'}"


def refusal_text(points: Sequence[Prediction]) -> str:
    """One sentence on why there is no prediction, with bounds if known."""
    return refusal_sentence(points, time_unit(points[0].runtime_ms), with_remedy)


def _not_known(page: Page, refused: Sequence[Prediction] | Sequence[WhatIf], runtime_ms: float, unit: TimeUnit) -> None:
    """Write the scenarios without a prediction, by reason, with bounds if known."""
    for sentence in not_known_sentences(refused, runtime_ms, unit, with_remedy):
        page.paragraph(sentence, hanging="  ")


class _Steps:
    """The column with the time of one step; no column for a run without steps."""

    def __init__(self, header: Header, runtime_ms: float, scope: str) -> None:
        self._header, self._runtime_ms, self._scope = header, runtime_ms, scope
        self._unit = time_unit(header.step_ms or 0.0)
        has_steps = step_ms(header, runtime_ms, runtime_ms, scope) is not None
        self.head = [f"step [{self._unit.name}]"] if has_steps else []

    def cells(self, predicted_ms: float | None) -> list[str]:
        """The cell of a row with this predicted runtime."""
        after_ms = step_ms(self._header, predicted_ms, self._runtime_ms, self._scope)
        return [self._unit.number(after_ms) if after_ms is not None else "" for _ in self.head]


def _examples(point: Prediction) -> str:
    """The change of a training's examples per second; empty if unknown."""
    ratio = examples_ratio(point)
    return "" if ratio is None else change(ratio, 1.0)


def _rates(page: Page, answers: Sequence[tuple[str, StreamPrediction]]) -> None:
    """Write the highest rate that a stream sustains in each scenario in which it is known, and the recorded one."""
    rows = []
    for setting, stream in answers:
        if stream.max_per_s is None:
            continue
        low, high = stream.max_per_s_interval or (stream.max_per_s, stream.max_per_s)
        before = stream.recorded_max_per_s
        rows.append(
            [
                setting,
                f"{'at least ' if stream.is_lower_bound else ''}{counted_digits(stream.max_per_s)}",
                "" if before is None else change(stream.max_per_s, before),
                "" if stream.is_lower_bound else f"{counted_digits(low)} to {counted_digits(high)}",
                stream.limit,
            ]
        )
    if not rows:
        return
    before = answers[0][1].recorded_max_per_s
    if before is not None:
        rows.append(["as recorded", counted_digits(before), "", "", ""])
    page.table(["What if", "highest rate [records/s]", "change", RANGE, "saturates first"], rows, "<>>><", cut=4)


def _cells(answer: Prediction | WhatIf, runtime_ms: float, unit: TimeUnit) -> list[str]:
    if answer.predicted_ms is None:
        return ["unknown", ""]
    return [unit.number(answer.predicted_ms), change(answer.predicted_ms, runtime_ms)]


def _ranges(answer: Prediction | WhatIf, unit: TimeUnit, shown: bool) -> list[str]:
    return [_range(answer.interval_ms, unit)] if shown else []


def _range(interval_ms: tuple[float, float] | None, unit: TimeUnit) -> str:
    return "" if interval_ms is None else f"{unit.number(interval_ms[0])} to {unit.number(interval_ms[1])}"


def _scope_words(scope: str) -> str:
    return "" if scope == "all" else f", {scope} alone"
