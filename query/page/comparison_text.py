"""Every sentence about a comparison, for its page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from crystalperf.query.page.page_text import causes_of, devices_of, figure_of, words_of
from crystalperf.query.results.comparison import Unexplained
from crystalperf.query.results.comparison_page import ComparisonText, PartText
from crystalperf.query.results.page import TableText
from crystalperf.query.text.answers import capitalised
from crystalperf.query.text.comparison import examples_sentence, prediction_sentence, unit_of, verdict_sentence
from crystalperf.query.text.figures import grouped, printable
from crystalperf.query.text.sentences import text_of

if TYPE_CHECKING:
    from crystalperf.query.results.answers import Header
    from crystalperf.query.results.comparison import Comparison, Part, SettingChange, StageChange
    from crystalperf.query.text.figures import TimeUnit

MAX_SETTINGS = 60
"""Maximum settings that are listed."""


def comparison_text(comparison: Comparison, header: Header, samples: Sequence[bool]) -> ComparisonText:
    """All sentences of a comparison; `header` is that of a run before, `samples` whether each side has any."""
    words = header.vocabulary
    unit = unit_of(comparison)
    names = list(dict.fromkeys(each.name for side in (comparison.before, comparison.after) for each in side.runs))
    headline, _, sure = verdict_sentence(comparison).partition("; ")
    predicted = comparison.predicted
    return ComparisonText(
        title=printable(", ".join(names[:3])),
        headline=f"{headline}.",
        sentences=tuple(each for each in (sure, examples_sentence(comparison)) if each),
        warnings=tuple(f"{capitalised(text_of(each, comparison.words))}." for each in comparison.not_compared),
        parts=tuple(_part(each, comparison, unit) for each in comparison.parts),
        no_parts="" if comparison.parts else "No part of the runs differs.",
        predicted=() if predicted is None else (prediction_sentence(predicted, comparison.words),),
        settings=_settings(comparison.settings),
        operators=TableText(
            (words.scope, "operator", "before", "after"),
            tuple((each.scope, each.name, grouped(each.before), grouped(each.after)) for each in comparison.operators),
            "",
        ),
        no_flames=_no_flames(samples),
        figure=figure_of(unit),
        words=words_of(words),
        devices=devices_of(header.resources),
        causes=causes_of(words),
    )


def _part(part: Part, comparison: Comparison, unit: TimeUnit) -> PartText:
    return PartText(
        text=f"{capitalised(text_of(part, comparison.words))}.",
        ms=part.ms,
        basis=None if isinstance(part, Unexplained) else part.basis,
        stages=tuple(_stage(each, unit) for each in part.stages if not unit.is_nothing(each.ms)),
    )


def _stage(change: StageChange, unit: TimeUnit) -> str:
    """The contribution of a stage: `stage:3.0 +1.2 s`."""
    ids = dict.fromkeys(each for each in (change.before, change.after) if each is not None)
    return f"{' → '.join(ids)} {'+' if change.ms > 0 else ''}{unit.text(change.ms)}"


def _settings(settings: Sequence[SettingChange]) -> TableText:
    rows = [
        (each.key, "default" if each.before is None else each.before, "default" if each.after is None else each.after)
        for each in settings[:MAX_SETTINGS]
    ]
    more = len(settings) - len(rows)
    return TableText(("setting", "before", "after"), tuple(rows), f"{more} more settings differ." if more else "")


def _no_flames(samples: Sequence[bool]) -> str:
    if all(samples):
        return ""
    sides = "Neither side has any" if not any(samples) else f"The runs {'after' if samples[0] else 'before'} have no"
    return f"{sides} samples, so no function can be compared: record both sides with a profiler."
