"""The first screen: the answer of `analyze`, in at most 45 lines; `--full` adds the rest.

First the outcome and data quality, then the bottleneck, the recommendations and their basis.  A screen that is too long
gets fewer table rows; no part is dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crystalperf.cli import parts
from crystalperf.cli.page import Page
from crystalperf.cli.predictions import usual
from crystalperf.cli.remedies import with_remedy
from crystalperf.cli.text import TimeUnit, printable, time_unit
from crystalperf.indexes.frozen import frozen
from crystalperf.query.text.answers import gain_sentences, nothing_to_do
from crystalperf.query.text.recommendations import recommendation_text
from crystalperf.query.text.sentences import lines_of, text_of, texts_of

if TYPE_CHECKING:
    from crystalperf.query.results.answers import Verdict

MAX_LINES = 45
"""Maximum lines that need no scrolling."""


@frozen
class RowLimits:
    """The maximum rows of the parts."""

    path: int
    what_ifs: int
    to_do: int = 3


_ROW_LIMITS = (
    RowLimits(8, 8),
    RowLimits(6, 5),
    RowLimits(5, 4),
    RowLimits(4, 3),
    RowLimits(3, 3, 2),
    RowLimits(2, 2, 1),
)
"""In decreasing order; a screen uses the first that fits."""

_ALL = RowLimits(path=20, what_ifs=20, to_do=20)


def verdict_text(verdict: Verdict, next_command: str, run: str, *, full: bool = False) -> str:
    """The answer of `analyze`; `run` is how a command names the run file."""
    if full:
        return _text(verdict, next_command, run, _ALL, full=True)
    text = ""
    for limits in _ROW_LIMITS:
        text = _text(verdict, next_command, run, limits, full=False)
        if text.count("\n") <= MAX_LINES:
            break
    return text


def _text(verdict: Verdict, next_command: str, run: str, limits: RowLimits, *, full: bool) -> str:
    header, debug = verdict.header, verdict.debug
    unit = time_unit(debug.runtime_ms)
    page = Page()
    parts.heading(page, header)
    page.line()
    parts.lead(page, verdict.bottleneck, header, debug, unit)
    if debug.runtime_ms > 0:
        _to_do(page, verdict, limits.to_do, unit)
        page.line()
        if debug.path_operators:  # operators summarize hundreds of short segments
            parts.path_operators(page, debug, unit, limits.path)
            parts.other(page, debug, unit)
        else:
            parts.path_table(page, debug, unit, limits.path)
        parts.stations(page, debug)
        page.line()
        usual(page, verdict, unit, limits.what_ifs)
    if full:
        parts.findings(page, debug, unit)
        parts.operators(page, header, debug, unit, 20)
        parts.functions(page, debug, unit, len(debug.functions))
        parts.disagreements(page, debug, 6)
        parts.listed(page, "Assumed", texts_of(debug.assumptions, debug.words))
        parts.not_recorded_notes(page, header, debug)
        page.line()
    else:
        page.line()
        _not_recorded_notes(page, verdict)
    page.line(f"Saved as {printable(verdict.run)}")
    if not full:
        page.line(f"Details: crystalperf debug {run}")
    page.line(f"Next:    {next_command}")
    return page.text()


def _to_do(page: Page, verdict: Verdict, most: int, unit: TimeUnit) -> None:
    """Write the recommendations, their savings, and the lines to paste."""
    page.line()
    if not verdict.recommendations:
        page.paragraph(f"What to do: {nothing_to_do(verdict)}")
        return
    page.line("What to do")
    words = verdict.debug.words
    for number, each in enumerate(verdict.recommendations[:most], 1):
        text = f"{number:3}  {printable(recommendation_text(each, words))} {gain_sentences(each, unit)}"
        page.paragraph(text, hanging=" " * 5)
        for line in lines_of(each, words):
            page.line(f"{'':7}{printable(line)}")


def _not_recorded_notes(page: Page, verdict: Verdict) -> None:
    """Write what limits the answer: remarks of the framework, the worst problem of reading, and the first thing that
    the run does not show; one or two lines each."""
    for each in verdict.debug.measurements:
        if each.on_first_screen:
            page.paragraph(f"{printable(text_of(each, verdict.debug.words))}.", hanging="  ")
    lost, notes = parts.serious_problems(verdict.header), verdict.debug.not_recorded
    if lost and verdict.debug.conclusive:  # otherwise the answer says what is missing
        more = f" ({len(lost) - 1} more)" if len(lost) > 1 else ""
        page.paragraph(f"Missing from the input: {printable(lost[0])}{more}.", hanging="  ")
    if notes:
        first = notes[0]  # the most important, such as why a recording is not used
        setup_is_next = (
            first.remedy is not None and first.remedy.kind == "set up the job" and verdict.next.kind == "setup"
        )
        more = f" ({len(notes) - 1} more)" if len(notes) > 1 else ""
        text = text_of(first, verdict.debug.words)
        sentence = text if setup_is_next else with_remedy(text, first.remedy)
        page.paragraph(f"Not recorded: {printable(sentence)}{more}.", hanging="  ")
