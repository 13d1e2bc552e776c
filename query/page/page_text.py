"""Every sentence that the terminal shows about a run, for its page."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from crystalperf.indexes.resources import OTHER
from crystalperf.query.advise.usual_what_ifs import classify
from crystalperf.query.results.answers import Cause
from crystalperf.query.results.page import Figure, FindingText, PageText, RecommendationText, TableText, WhatIfText
from crystalperf.query.text.answers import (
    bottleneck_sentence,
    capitalised,
    cause_words,
    check_sentences,
    device_name,
    disagreement_words,
    efficiency_sentences,
    gain_sentences,
    header_facts,
    not_known_sentences,
    nothing_to_do,
    noticeable_findings,
    other_applications_sentence,
    other_words,
    outcome_sentences,
    recordings_sentence,
    same_sentence,
    samples_sentence,
    stream_sentences,
    unmodelled_sentence,
    unsubmitted_sentence,
)
from crystalperf.query.text.figures import TimeUnit, grouped, printable, time_unit
from crystalperf.query.text.findings import advice_text
from crystalperf.query.text.recommendations import recommendation_text
from crystalperf.query.text.sentences import lines_of, text_of, texts_of
from crystalperf.query.text.stations import stations_note, stations_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crystalperf.indexes.resources import Resource
    from crystalperf.query.page.frontend import Frontend
    from crystalperf.query.results.answers import Debug, Header, Verdict, WhatIf
    from crystalperf.query.trace.vocabulary import Vocabulary

RANGE = "90 % range"

OPERATORS_ON_DEVICES = 5
"""Maximum operators whose work on devices the page lists; `debug` and SQL have all."""

HOW = {
    "recorded": "as recorded",
    "exact": "predicted",
    "between": "interpolated",
    "refused": "not predicted",
    "unknown": "not on this page",
}
"""The values of PageText.how."""


def _outcome(header: Header, debug: Debug, unit: TimeUnit) -> tuple[str, ...]:
    """The other applications of the input, the recordings that were not used, how the run ended, and its streams."""
    notes = filter(None, (other_applications_sentence(header), recordings_sentence(header, debug)))
    return (*notes, *outcome_sentences(debug, unit), *stream_sentences(debug, header.resources))


def page_text(verdict: Verdict, frontend: Frontend) -> PageText:
    """All sentences of a verdict; `frontend` words the remedies and the next step."""
    header, debug = verdict.header, verdict.debug
    unit, words = time_unit(debug.runtime_ms), debug.vocabulary
    what_ifs = classify(verdict.what_ifs, debug.runtime_ms)
    intervals = any(each.interval_ms for each in what_ifs.changing)
    check = check_sentences(verdict, unit, RANGE if intervals else "") if what_ifs.changing else ""
    heads, stations = stations_table(debug)
    left_out = ""
    if debug.unsubmitted is not None:
        left_out = unsubmitted_sentence(debug, time_unit(debug.unsubmitted.total_ms), unit)
    return PageText(
        title=header.name,
        facts=tuple(header_facts(header)),
        outcome=_outcome(header, debug, unit),
        left_out=left_out,
        headline=bottleneck_sentence(verdict.bottleneck, debug, header.resources, unit),
        unmodelled=unmodelled_sentence(debug),
        rests_on=samples_sentence(header, debug),
        recommendations=tuple(
            RecommendationText(
                recommendation_text(each, debug.words),
                gain_sentences(each, unit),
                lines_of(each, debug.words),
            )
            for each in verdict.recommendations
        ),
        nothing_to_do=nothing_to_do(verdict),
        other=other_words(debug, unit),
        what_ifs=tuple(_what_if(each, debug.runtime_ms, unit) for each in what_ifs.changing),
        same=same_sentence(what_ifs.same),
        unknown=tuple(not_known_sentences(what_ifs.unknown, debug.runtime_ms, unit, frontend.with_remedy)),
        check=check,
        findings=tuple(
            FindingText(unit.text(each.cost_ms), text_of(each, debug.words), each.basis, advice_text(each, debug.words))
            for each in noticeable_findings(debug.findings, unit)
        ),
        disagreements=tuple(disagreement_words(each) for each in debug.disagreements),
        assumptions=texts_of(debug.assumptions, debug.words),
        missing=tuple(each.meaning for each in header.problems if each.severity != "info"),
        not_recorded=tuple(
            frontend.with_remedy(text_of(each, debug.words), each.remedy) for each in debug.not_recorded
        ),
        measurements=(
            *(text_of(each, debug.words) for each in debug.measurements),
            *efficiency_sentences(debug, OPERATORS_ON_DEVICES),
        ),
        stations=TableText(tuple(heads), tuple(map(tuple, stations)), stations_note(debug) if stations else ""),
        next=frontend.next(verdict.next),
        figure=figure_of(unit),
        words=words_of(words),
        devices=devices_of(header.resources),
        causes=causes_of(words),
        how=HOW,
    )


def merged_bars_sentence(shorter_than_ms: float, bars: int, tasks: int, words: Vocabulary) -> str:
    """How many bars of the timeline show how many tasks."""
    return (
        f"consecutive {words.tasks} shorter than {shorter_than_ms:.0f} ms on a {words.slot} are drawn as one bar:"
        f" {grouped(bars)} bars for {grouped(tasks)} {words.tasks}"
    )


def figure_of(unit: TimeUnit) -> Figure:
    """A time unit as a value of the page."""
    return Figure(unit.name, unit.ms, unit.decimals)


def words_of(words: Vocabulary) -> dict[str, str]:
    """The words of a framework that the page's script needs."""
    names = ("worker", "workers", "slot", "slots", "stage", "stages", "task", "tasks", "driver", "scope")
    return {name: getattr(words, name) for name in names}


def devices_of(resources: Sequence[Resource]) -> dict[str, str]:
    """The names of the resources' devices, and of time on none."""
    return {each.name: device_name(each.name, resources) for each in resources} | {OTHER: capitalised(OTHER)}


def causes_of(words: Vocabulary) -> dict[str, str]:
    """The names of the causes of time on no resource."""
    return {cause: cause_words(cause, words) for cause in get_args(Cause)}


def _what_if(answer: WhatIf, runtime_ms: float, unit: TimeUnit) -> WhatIfText:
    assert answer.predicted_ms is not None  # true of what-ifs that change the runtime
    interval = answer.interval_ms
    return WhatIfText(
        question=printable(answer.question),
        setting=answer.setting,
        runtime=unit.text(answer.predicted_ms),
        change=unit.change(answer.predicted_ms, runtime_ms),
        range="" if interval is None else f"{unit.number(interval[0])} to {unit.text(interval[1])}",
    )
