"""Answers to what-ifs as text: the usual ones of a verdict, one that was asked, a table of several, a refusal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cli.page import Page
from cli.parts import listed
from cli.remedies import with_remedy
from cli.text import TimeUnit, change, counted, printable, time_unit
from query.answers.verdict import knee_of
from query.answers.whatifs import told
from query.answers.words import (
    capitalised,
    knee_sentence,
    measure_word,
    most_sentence,
    not_known_sentences,
    per_second,
    range_sentence,
    refusal_sentence,
    replay_sentence,
    same_sentence,
    step_sentence,
)

if TYPE_CHECKING:
    from query.answers.values import Header, Prediction, Sweep, Verdict, WhatIf

RANGE = "90 % range"
GROUPS_SHOWN = 20


def usual(page: Page, verdict: Verdict, unit: TimeUnit, most: int) -> None:
    """The usual questions: a row for what changes the runtime, one line for what does not, one for what is not known.

    Of the rows those that change most are shown.
    """
    runtime_ms = verdict.debug.runtime_ms
    found = told(verdict.what_ifs, runtime_ms)
    changes = {
        id(each): abs(each.predicted_ms - runtime_ms) for each in found.changing if each.predicted_ms is not None
    }
    most_change = sorted(changes, key=lambda each: -changes[each])[:most]
    shown = [each for each in found.changing if id(each) in most_change]
    intervals = any(each.interval_ms for each in shown)
    if shown:
        heads = [
            "What if",
            "--set",
            f"{measure_word(verdict.debug.measure)} [{unit.name}]",
            "change",
            *([RANGE] if intervals else []),
        ]
        rows = [
            [each.question, each.setting, *_cells(each, runtime_ms, unit), *_ranges(each, unit, intervals)]
            for each in shown
        ]
        page.table(heads, rows, "<<>>" + ">" * intervals)
    elif verdict.what_ifs:
        page.line("What if")
    if found.same:
        page.paragraph(same_sentence(found.same), hanging="  ")
    _not_known(page, found.unknown, runtime_ms, unit)
    if shown and verdict.replayed_ms is not None:
        sentence = replay_sentence(verdict.replayed_ms, runtime_ms, unit)
        page.paragraph(f"{sentence} {range_sentence(RANGE)}" if intervals else sentence)


def prediction_text(header: Header, prediction: Prediction) -> str:
    """The answer of `predict` for one changed world."""
    unit = time_unit(prediction.runtime_ms)
    page = Page()
    page.line(f"{printable(header.name)}, {prediction.setting}{_scope_words(prediction.scope)}")
    page.line()
    if prediction.predicted_ms is not None:
        page.strong(
            f"{unit.text(prediction.predicted_ms)} instead of {unit.text(prediction.runtime_ms)}"
            f" ({change(prediction.predicted_ms, prediction.runtime_ms)})"
        )
    if step := step_sentence(header, prediction):
        page.paragraph(step)
    if prediction.flow is not None:
        page.paragraph(most_sentence(prediction.flow, header.vocabulary, header.resources))
        if prediction.predicted_ms is None:
            page.paragraph(f"No latency is told, for {'; '.join(prediction.refused)}.")
    if prediction.interval_ms:
        page.paragraph(f"9 of 10 reruns would take {_range(prediction.interval_ms, unit)} {unit.name}.")
    page.paragraph(replay_sentence(prediction.replayed_ms, prediction.runtime_ms, unit))
    _learned(page, prediction, unit)
    page.line()
    group = header.vocabulary.group
    longest = sorted(prediction.groups, key=lambda each: -each.recorded_ms)[:GROUPS_SHOWN]
    shown = {each.id for each in longest}
    rows = [
        [
            each.id,
            each.name,
            unit.number(each.recorded_ms),
            unit.number(each.predicted_ms),
            "" if each.predicted_ms is None else change(each.predicted_ms, each.recorded_ms),
        ]
        for each in prediction.groups
        if each.id in shown
    ]
    page.table([capitalised(group), "", f"recorded [{unit.name}]", "predicted", "change"], rows, "<<>>>", cut=1)
    if len(prediction.groups) > len(rows):
        page.line(f"{counted(len(prediction.groups) - len(rows), f'shorter {group}')} not shown; --json has all")
    listed(page, "Assumed", prediction.assumptions)
    return page.text()


def _learned(page: Page, prediction: Prediction, unit: TimeUnit) -> None:
    """What other runs of the job changed about a prediction; nothing where none were given."""
    learned = prediction.learned
    if learned is None:
        return
    others = counted(len(learned.reruns), "other run")
    page.paragraph(
        f"Without the {others}, {prediction.setting} would be told as {unit.text(learned.predicted_ms)}"
        f" ({RANGE}: {_range(learned.interval_ms, unit)})."
    )
    for each in learned.reruns:
        page.paragraph(
            f"{printable(each.run)}, {each.setting}: it took {unit.text(each.actual_ms)}, and was predicted from this"
            f" run as {unit.text(each.predicted_ms)} ({change(each.predicted_ms, each.actual_ms)}).",
            hanging="  ",
        )


def sweep_text(header: Header, sweep: Sweep) -> str:
    """The answer of `predict` for a list of values: a table, and where more stops being worth it."""
    first = sweep.points[0]
    unit = time_unit(first.runtime_ms)
    page = Page()
    page.line(f"{printable(header.name)}{_scope_words(first.scope)}")
    page.line()
    intervals = any(each.interval_ms for each in sweep.points)
    knee = knee_of(sweep)
    worth = knee.point if knee is not None and knee.worth else None
    rows = [
        [
            point.setting,
            *_cells(point, first.runtime_ms, unit),
            *_ranges(point, unit, intervals),
            "<- worth it up to here" if number == worth else "",
        ]
        for number, point in enumerate(sweep.points)
    ]
    rows.append(["as recorded", unit.number(first.runtime_ms), "", *([""] if intervals else []), ""])
    heads = ["What if", f"{measure_word(first.measure)} [{unit.name}]", "change", *([RANGE] if intervals else []), ""]
    page.table(heads, rows, "<>>" + ">" * intervals + "<", cut=0)
    page.line()
    if any(each.flow is not None for each in sweep.points):
        rows = [
            [each.setting, per_second(each.flow.most_per_s), each.flow.limit]
            for each in sweep.points
            if each.flow is not None and each.flow.most_per_s is not None
        ]
        page.table(["What if", "sustained at most", "busy all the time then"], rows, "<><", cut=0)
        page.line()
    if knee is not None:
        page.paragraph(knee_sentence(knee, sweep))
    sentence = replay_sentence(first.replayed_ms, first.runtime_ms, unit)
    page.paragraph(f"{sentence} {range_sentence(RANGE)}" if intervals else sentence)
    _learned(page, next((each for each in sweep.points if each.learned), first), unit)
    _not_known(page, [each for each in sweep.points if each.predicted_ms is None], first.runtime_ms, unit)
    listed(page, "Assumed", list(dict.fromkeys(text for each in sweep.points for text in each.assumptions)))
    return page.text()


def refusal_text(points: Sequence[Prediction]) -> str:
    """One sentence on why there is no answer, with what can be said all the same."""
    return refusal_sentence(points, time_unit(points[0].runtime_ms), with_remedy)


def _not_known(page: Page, refused: Sequence[Prediction] | Sequence[WhatIf], runtime_ms: float, unit: TimeUnit) -> None:
    """What is not answered, by reason, with what can be said all the same."""
    for sentence in not_known_sentences(refused, runtime_ms, unit, with_remedy):
        page.paragraph(sentence, hanging="  ")


def _cells(answer: Prediction | WhatIf, runtime_ms: float, unit: TimeUnit) -> list[str]:
    if answer.predicted_ms is None:
        return ["not known", ""]
    return [unit.number(answer.predicted_ms), change(answer.predicted_ms, runtime_ms)]


def _ranges(answer: Prediction | WhatIf, unit: TimeUnit, shown: bool) -> list[str]:
    return [_range(answer.interval_ms, unit)] if shown else []


def _range(interval_ms: tuple[float, float] | None, unit: TimeUnit) -> str:
    return "" if interval_ms is None else f"{unit.number(interval_ms[0])} to {unit.number(interval_ms[1])}"


def _scope_words(scope: str) -> str:
    return "" if scope == "all" else f", {scope} alone"
