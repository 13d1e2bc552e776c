"""The command compare: runs before and after a change, as one screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from crystalperf.cli.output import progress, write, write_answer
from crystalperf.cli.page import Page
from crystalperf.cli.remember import remember
from crystalperf.cli.run_commands import other_runs
from crystalperf.cli.text import counted, printable, time_unit, volume
from crystalperf.query.results.comparison import Unexplained
from crystalperf.query.text.answers import capitalised
from crystalperf.query.text.comparison import (
    operator_words,
    prediction_sentence,
    setting_words,
    verdict_sentence,
)
from crystalperf.query.text.sentences import text_of

if TYPE_CHECKING:
    from crystalperf.cli.text import TimeUnit
    from crystalperf.query.results.comparison import Comparison, Part, Side

PARTS_SHOWN = 8
STAGES_SHOWN = 6
SETTINGS_SHOWN = 6
ALL = 1_000


def compare(
    before: Sequence[str],
    after: Sequence[str],
    scope: str,
    *,
    full: bool,
    html: str = "",
    redact: bool = False,
    force: bool = False,
    keeps: bool = True,
    as_json: bool,
) -> int:
    """Print where the difference of two sides comes from, and write its page; returns the exit code."""
    from crystalperf.query.run import compare as compared

    one, other = other_runs(before), other_runs(after)
    with progress() as step:
        if html:
            from crystalperf.cli.page_command import check_comparison, write_comparison

            name = check_comparison(one, other, html, replace=force)  # fail before the work
        answer = compared(one, other, scope=scope, progress=step)
        if html:
            write_comparison(one, other, answer, html, name, step, replace=force, redact=redact)
    if as_json:
        write_answer(answer)
    else:
        write(comparison_text(answer, full=full))
    if keeps:
        for each in (*one, *other):
            remember(each.run, "compare")
    return 0


def comparison_text(found: Comparison, *, full: bool = False) -> str:
    """The answer of `compare`; without `full` at most 45 lines."""
    unit = time_unit(max(found.before.runtime_ms, found.after.runtime_ms))
    page = Page()
    for word, side in (("Before", found.before), ("After", found.after)):
        page.paragraph(printable(f"{word + ':':8}{_side(side, found, unit)}"), hanging=" " * 8)
    page.line()
    page.strong(printable(verdict_sentence(found)))
    for each in found.not_compared:
        page.paragraph(printable(f"Caution: {text_of(each, found.words)}."))
    page.line()
    _parts(page, found, unit, ALL if full else PARTS_SHOWN)
    _settings(page, found, ALL if full else SETTINGS_SHOWN)
    if found.operators and full:
        page.line()
        page.paragraph(printable(f"Plans: {operator_words(found.operators)}"))
    page.line()
    _stages(page, found, unit, ALL if full else STAGES_SHOWN)
    if found.predicted is not None:
        page.line()
        page.paragraph(printable(prediction_sentence(found.predicted, found.words)))
    return page.text()


def _side(side: Side, found: Comparison, unit: TimeUnit) -> str:
    """The runs of a side with their resources."""
    vocabulary = found.words.vocabulary
    names = ", ".join(each.given for each in side.runs)
    facts = [names if len(side.runs) == 1 else f"{len(side.runs)} runs ({names})", unit.text(side.runtime_ms)]
    if side.framework_version:
        facts.append(side.framework_version)
    if side.slots:
        workers = f"{side.workers:.0f} × " if side.workers and side.slots % side.workers == 0 else ""
        each = side.slots / side.workers if workers and side.workers else side.slots
        facts.append(f"{workers}{each:.0f} {vocabulary.slots}")
    if side.memory_bytes:
        facts.append(volume(side.memory_bytes))
    facts.append(f"{volume(side.input_bytes)} read")
    return "   ".join(facts)


def _parts(page: Page, found: Comparison, unit: TimeUnit, most: int) -> None:
    """Write the parts; those that are left out are one row, so that the rows sum to the difference."""
    page.line("Where the difference comes from")
    rest = [each for each in found.parts if isinstance(each, Unexplained)]
    named = [each for each in found.parts if not isinstance(each, Unexplained)]
    shown = sorted(sorted(named, key=lambda each: -abs(each.ms))[:most], key=named.index)
    rows = [(each.ms, _text(each, found)) for each in shown]
    if left := [each for each in named if each not in shown]:
        rows.append((sum(each.ms for each in left), f"{counted(len(left), 'smaller cause')} (--full)"))
    rows += [(each.ms, _text(each, found)) for each in rest]
    for ms, text in rows:
        page.paragraph(f"{unit.number(ms, signed=True):>8} {unit.name}  {printable(text)}", hanging=" " * 12)
    page.line(f"{unit.number(found.change_ms, signed=True):>8} {unit.name}  in total")


def _text(part: Part, found: Comparison) -> str:
    text = capitalised(text_of(part, found.words))
    if len(part.stages) == 1:
        only = part.stages[0]
        text += f" ({only.after or only.before})"
    return f"{text} (guessed)" if part.basis == "guessed" else text


def _settings(page: Page, found: Comparison, most: int) -> None:
    """Write the settings that differ, those with an effect first."""
    if not found.settings:
        return
    page.line()
    page.line("Settings that differ")
    for each in found.settings[:most]:
        page.paragraph(printable(f"  {setting_words(each)}"), hanging=" " * 4)
    if len(found.settings) > most:
        page.line(f"  and {len(found.settings) - most} more (--full)")


def _stages(page: Page, found: Comparison, unit: TimeUnit, most: int) -> None:
    """Write the stages with the largest changes."""
    shown = [each for each in found.stages if not unit.is_nothing(each.after_ms - each.before_ms)][:most]
    if not shown:
        return
    word = capitalised(found.words.vocabulary.stage)
    rows = [
        (
            each.before or "-",
            each.after or "-",
            each.name,
            unit.number(each.before_ms),
            unit.number(each.after_ms),
            unit.number(each.after_ms - each.before_ms, signed=True),
        )
        for each in shown
    ]
    page.table((word, "is now", "name", f"before {unit.name}", "after", "change"), rows, "<<<>>>", cut=2)
