"""The predictions of all predictors side by side, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crystalperf.cli.page import Page
from crystalperf.cli.parts import listed
from crystalperf.cli.remedies import with_remedy
from crystalperf.cli.text import TimeUnit, change, printable, time_unit
from crystalperf.query.predict.lab_errors import SEVERAL
from crystalperf.query.text.answers import measure_word
from crystalperf.query.text.figures import counted_digits
from crystalperf.query.text.sentences import text_of, texts_of

if TYPE_CHECKING:
    from crystalperf.query.results.answers import Header, NamedPrediction, Predictions


def predictions_text(header: Header, answer: Predictions) -> str:
    """The answer of `predict --predictor all`: a row for each predictor, and why some have no answer."""
    unit, given = time_unit(answer.runtime_ms), answer.predictions
    page = Page()
    page.line(f"{printable(header.name)}, {answer.setting}{'' if answer.scope == 'all' else f', {answer.scope} alone'}")
    page.line()
    rates = any(each.prediction.stream is not None for each in given)
    ranges = any(each.prediction.interval_ms for each in given)
    errors = any(each.lab for each in given)
    heads = [
        *("Predictor", f"{measure_word(answer.measure)} [{unit.name}]", "change"),
        *(["90 % range"] if ranges else []),
        *(["highest rate [records/s]"] if rates else []),
        *(["median error", "9 of 10"] if errors else []),
    ]
    rows = [_row(each, answer.runtime_ms, unit, ranges, rates, errors) for each in given]
    blank = [""] * (len(heads) - 3)
    rows.append(["as recorded", unit.number(answer.runtime_ms), "", *blank])
    page.table(heads, rows, "<" + ">" * (len(heads) - 1), cut=0)
    if errors:
        counts = [each.lab.predictions for each in given if each.lab]
        what = next(
            "several settings" if each.lab.changed == SEVERAL else each.lab.changed for each in given if each.lab
        )
        page.line()
        page.paragraph(
            f"Errors are absolute ones of {counted_range(counts)} predictions in the lab that change {what}; without a"
            " value, none were measured."
        )
    for each in given:
        found = each.prediction
        if not found.is_answered:
            why = with_remedy("; ".join(texts_of(found.refused, found.words)), found.remedy)
            named = why if why.startswith(f"{each.predictor} ") else f"{each.predictor}: {why}"
            page.paragraph(f"{named}.", hanging="  ")
    terms = [
        text_of(one, each.prediction.words)
        for each in given
        for one in each.prediction.assumptions
        if one.kind == "no-term"
    ]
    listed(page, "Assumed", terms)
    return page.text()


def counted_range(counts: list[int]) -> str:
    """Numbers that may differ: `24`, `10 to 24`."""
    return str(counts[0]) if len(set(counts)) == 1 else f"{min(counts)} to {max(counts)}"


def _row(
    each: NamedPrediction, runtime_ms: float, unit: TimeUnit, ranges: bool, rates: bool, errors: bool
) -> list[str]:
    found, lab = each.prediction, each.lab
    cells = [each.predictor, "none", ""]
    if found.predicted_ms is not None:
        cells = [each.predictor, unit.number(found.predicted_ms), change(found.predicted_ms, runtime_ms)]
    if ranges:
        interval = found.interval_ms
        cells.append("" if interval is None else f"{unit.number(interval[0])} to {unit.number(interval[1])}")
    if rates:
        most = None if found.stream is None else found.stream.max_per_s
        cells.append("" if most is None else counted_digits(most))
    if errors:
        cells += ["", ""] if lab is None else [f"{100 * each:.0f} %" for each in (lab.median_ratio, lab.p90_ratio)]
    return cells
