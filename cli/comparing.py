"""The command compare: runs before and after a change, as one screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from crystalperf.cli.output import progress, write, write_answer
from crystalperf.cli.page import Page
from crystalperf.cli.remember import remember
from crystalperf.cli.run_commands import other_runs
from crystalperf.cli.text import counted, printable, volume
from crystalperf.query.results.comparison import Unexplained
from crystalperf.query.text.answers import capitalised
from crystalperf.query.text.comparison import (
    examples_sentence,
    operator_words,
    prediction_sentence,
    setting_words,
    unit_of,
    verdict_sentence,
)
from crystalperf.query.text.sentences import text_of
from crystalperf.query.text.stream_comparison import rates_sentence

if TYPE_CHECKING:
    from crystalperf.cli.text import TimeUnit
    from crystalperf.query.results.comparison import Comparison, Part, Side
    from crystalperf.query.results.step_comparison import ComparedOperator, StepComparison, StepSide
    from crystalperf.query.results.stream_comparison import StationSide, StreamComparison

PARTS_SHOWN = 8
STAGES_SHOWN = 6
SETTINGS_SHOWN = 6
FUNCTIONS_SHOWN = 4
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
    unit = unit_of(found)
    page = Page()
    for word, side in (("Before", found.before), ("After", found.after)):
        facts = _facts(found, side, unit, after=word == "After")
        page.paragraph(printable(f"{word + ':':8}{facts}"), hanging=" " * 8)
    page.line()
    page.strong(printable(verdict_sentence(found)))
    if examples := examples_sentence(found):
        page.paragraph(printable(examples))
    for each in found.not_compared:
        page.paragraph(printable(f"Caution: {text_of(each, found.words)}."))
    page.line()
    _parts(page, found, unit, ALL if full else PARTS_SHOWN)
    _settings(page, found, ALL if full else SETTINGS_SHOWN)
    if found.operators and full:
        page.line()
        page.paragraph(printable(f"Plans: {operator_words(found.operators)}"))
    page.line()
    if found.stream is not None:
        _stations(page, found.stream, found.words.vocabulary.stage, ALL if full else STAGES_SHOWN)
    elif found.step is None:
        _stages(page, found, unit, ALL if full else STAGES_SHOWN)
    else:
        _operators(page, found.step, unit, ALL if full else STAGES_SHOWN)
    _functions(page, found, unit, ALL if full else FUNCTIONS_SHOWN)
    if found.predicted is not None:
        page.line()
        page.paragraph(printable(prediction_sentence(found.predicted, found.words)))
    return page.text()


def _facts(found: Comparison, side: Side, unit: TimeUnit, *, after: bool) -> str:
    """A side with what it ran on, or its rates."""
    if found.step is not None:
        return _step_side(side, found.step.after if after else found.step.before, unit)
    if found.stream is None:
        return _side(side, found, unit)
    stream = found.stream.after if after else found.stream.before
    length = [unit.text(side.runtime_ms)] if found.stream.measure is not None else []
    return "   ".join((_names(side), *length, rates_sentence(stream)))


def _names(side: Side) -> str:
    names = ", ".join(each.given for each in side.runs)
    return names if len(side.runs) == 1 else f"{len(side.runs)} runs ({names})"


def _step_side(side: Side, step: StepSide, unit: TimeUnit) -> str:
    """The runs of a side of repeated steps: length and number of these, and what they ran on."""
    facts = [_names(side), unit.text(side.runtime_ms), f"{counted(step.steps, 'step')} recorded"]
    if side.framework_version:
        facts.append(side.framework_version)
    if step.processes:
        facts.append(counted(round(step.processes), "process"))
    facts += [each for each in (step.accelerator, step.precision) if each]
    if step.batch:
        facts.append(f"batch {step.batch:.0f}")
    return "   ".join(facts)


def _side(side: Side, found: Comparison, unit: TimeUnit) -> str:
    """The runs of a side with their resources."""
    vocabulary = found.words.vocabulary
    facts = [_names(side), unit.text(side.runtime_ms)]
    if side.framework_version:
        facts.append(side.framework_version)
    if side.slots:
        workers = f"{side.workers:.0f} × " if side.workers and side.slots % side.workers == 0 else ""
        each = side.slots / side.workers if workers and side.workers else side.slots
        facts.append(f"{workers}{each:.0f} {vocabulary.slots}")
    if side.memory_bytes:
        facts.append(volume(side.memory_bytes))
    if side.input_bytes:
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


def _operators(page: Page, step: StepComparison, unit: TimeUnit, most: int) -> None:
    """Write the operators with the largest changes: on the critical path, and of all their time."""

    def changes(each: ComparedOperator) -> tuple[float, float]:
        return each.after_path_ms - each.before_path_ms, each.after_ms - each.before_ms

    shown = [each for each in step.operators if not all(unit.is_nothing(ms) for ms in changes(each))][:most]
    if not shown:
        return
    rows = [
        (
            each.place,
            each.name,
            _counts(each),
            unit.number(each.before_ms),
            unit.number(each.after_ms),
            unit.number(changes(each)[1], signed=True),
            unit.number(changes(each)[0], signed=True),
        )
        for each in shown
    ]
    page.table(
        ("Where", "operator", "calls", f"before {unit.name}", "after", "change", "on path"), rows, "<<>>>>>", cut=1
    )


def _counts(each: ComparedOperator) -> str:
    """The numbers of calls in a step; '' where an operator is recorded in pieces."""
    if each.place in ("host", "program", "gap"):
        return ""
    one, other = f"{each.before_count:.0f}", f"{each.after_count:.0f}"
    return one if one == other else f"{one} → {other}"


def _stations(page: Page, stream: StreamComparison, word: str, most: int) -> None:
    """Write the stages of a stream with their shares of time, those before and after."""
    if not stream.stations:
        return

    rows = [
        (each.name, *map(_pair, *(_station(side) for side in (each.before, each.after)))) for each in stream.stations
    ]
    heads = (capitalised(word), "parallel", "records/s", "busy %", "blocked %", "idle %")
    page.table(heads, rows[:most], "<>>>>>", cut=0)


def _station(side: StationSide | None) -> tuple[str, ...]:
    """Its parallelism, rate, and shares of time; dashes for none."""
    if side is None:
        return ("-",) * 5
    rate = "?" if side.records_per_s is None else f"{side.records_per_s:.0f}"
    shares = (side.busy_share, side.blocked_share, side.idle_share)
    return str(side.tasks), rate, *(f"{100 * each:.0f}" for each in shares)


def _pair(one: str, other: str) -> str:
    return one if one == other else f"{one} → {other}"


def _functions(page: Page, found: Comparison, unit: TimeUnit, most: int) -> None:
    """Write the functions whose sampled time changed most, those within the noise of sampling only if all are shown."""
    known = [each for each in found.functions if each.beyond_noise or most == ALL][:most]
    if not known:
        return
    kinds = {each.name: found.words.device_name(each.name) for each in found.words.resources}
    rows = [
        (
            each.name,
            kinds.get(each.kind, each.kind),
            unit.number(each.before_ms),
            unit.number(each.after_ms),
            unit.number(each.change_ms, signed=True),
        )
        for each in known
    ]
    page.line()
    heads = ("Function", "mostly", f"before {unit.name}", "after", "change")
    page.table(heads, rows, "<<>>>", cut=0)
