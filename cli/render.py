"""Answers as text of 80 columns: the answer first, then the reasons, then what to do, then what was not seen.

One unit for all times of an answer, a dot for nothing.  Names come from strangers' logs and are made harmless
(`printable`).  Everything here is `answer -> str`; colour only where stdout is a terminal that has it.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from io import StringIO
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cli.remedies import note_sentence, with_remedy
from cli.text import (
    TimeUnit,
    change,
    counted,
    cut_left,
    cut_right,
    grouped,
    percent,
    printable,
    time_unit,
)
from query.answers.verdict import bottleneck_of, knee_of
from query.answers.words import bottleneck_sentence, capitalised, cause_words, help_sentence, unsubmitted_sentence

if TYPE_CHECKING:
    from query.answers.values import (
        Bottleneck,
        Debug,
        Finding,
        Header,
        PathItem,
        Prediction,
        Profiled,
        Sweep,
        Verdict,
        WhatIf,
    )

WIDTH = 80
WIDEST = 120
"""Lines longer than this are hard to follow, however wide the terminal."""

PATH_ROWS = 8
"""Stretches of the critical path shown in a verdict; `debug` shows more."""

WORTH_SHOWING = 0.02
"""A stretch of the critical path is shown from this share of the runtime."""

NARROWEST = 12
"""A column that gives way to others keeps this width."""

PLAN_METRICS = "plan metrics"
"""The basis of time that the framework itself measured of its operators."""

TELLING_CALLEE = 0.25
"""What a function called for its work is named from this share of its time."""


# Whole answers ------------------------------------------------------------------------------------------------------


def verdict_text(verdict: Verdict, next_command: str) -> str:
    """The answer of `analyze`."""
    header, debug = verdict.header, verdict.debug
    unit = time_unit(debug.runtime_ms)
    page = _Page()
    _heading(page, header, header.duration_ms, time_unit(header.duration_ms))
    _trust(page, verdict, unit)
    page.line()
    _bottleneck(page, verdict.bottleneck, header, debug, unit)
    best = help_sentence(verdict, unit)
    if best:
        page.paragraph(best)
    page.line()
    _path_table(page, debug, unit, PATH_ROWS)
    page.line()
    _what_if_table(page, verdict.what_ifs, debug.runtime_ms, unit)
    _findings(page, debug.findings[:5], unit)
    _operators(page, header, debug, unit, 6)
    _functions(page, debug, unit, 6)
    _disagreements(page, debug, 2)
    _list(page, "Assumed", debug.assumptions)
    _not_seen(page, header, debug)
    page.line()
    page.paragraph(f"Kept as {verdict.run}", hanging="  ")
    page.line(f"Next:   {next_command}")
    return page.text()


def debug_text(header: Header, debug: Debug) -> str:
    """The answer of `debug`."""
    unit = time_unit(debug.runtime_ms)
    page = _Page()
    _heading(page, header, header.duration_ms, time_unit(header.duration_ms))
    if debug.scope != "all":
        page.line(f"of which {debug.scope}: {unit.text(debug.runtime_ms)}")
    page.line()
    _bottleneck(page, bottleneck_of(debug), header, debug, unit)
    page.line()
    _path_table(page, debug, unit, 40)
    _findings(page, debug.findings, unit)
    _groups(page, debug, unit, 12)
    _operators(page, header, debug, unit, 20)
    _functions(page, debug, unit, len(debug.functions))
    _disagreements(page, debug, 6)
    _passed_over(page, debug)
    _scopes(page, debug, unit)
    _list(page, "Assumed", debug.assumptions)
    _not_seen(page, header, debug)
    return page.text()


def profile_text(profiled: Profiled, next_command: str) -> str:
    """The answer of `profile`."""
    header = profiled.header
    page = _Page()
    _heading(page, header, header.duration_ms, time_unit(header.duration_ms))
    _problems(page, header)
    page.line(f"Kept as {printable(profiled.run)}")
    page.line(f"Next:   {next_command}")
    return page.text()


def prediction_text(header: Header, prediction: Prediction) -> str:
    """The answer of `predict` for one changed world."""
    unit = time_unit(prediction.runtime_ms)
    assert prediction.predicted_ms is not None
    page = _Page()
    page.line(f"{printable(header.name)}, {prediction.setting}{_scope_words(prediction.scope)}")
    page.line()
    span = f"   {_range(prediction.interval_ms, unit)}" if prediction.interval_ms else ""
    page.strong(
        f"{unit.text(prediction.predicted_ms)} instead of {unit.text(prediction.runtime_ms)}"
        f"  ({change(prediction.predicted_ms, prediction.runtime_ms)}){span}"
    )
    page.line(_replay_words(prediction, unit))
    page.line()
    group = header.vocabulary.group
    longest = sorted(prediction.groups, key=lambda each: -each.recorded_ms)[:20]
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
    _list(page, "Assumed", prediction.assumptions)
    return page.text()


def sweep_text(header: Header, sweep: Sweep) -> str:
    """The answer of `predict` for a list of values: a table, and where more stops being worth it."""
    first = sweep.points[0]
    unit = time_unit(first.runtime_ms)
    page = _Page()
    page.line(f"{printable(header.name)}{_scope_words(first.scope)}")
    page.line(_replay_words(first, unit))
    page.line()
    intervals = any(each.interval_ms for each in sweep.points)
    knee = knee_of(sweep)
    worth = knee.point if knee is not None and knee.worth else None
    rows = []
    for number, point in enumerate(sweep.points):
        if point.predicted_ms is None:
            cells = ["not answered", ""]
        else:
            cells = [unit.number(point.predicted_ms), change(point.predicted_ms, first.runtime_ms)]
        span = [_range(point.interval_ms, unit)] if intervals else []
        rows.append([point.setting, *cells, *span, "<- worth it up to here" if number == worth else ""])
    rows.append(["as recorded", unit.number(first.runtime_ms), "", *([""] if intervals else []), ""])
    likely = ["likely"] if intervals else []
    page.table(
        ["What if", f"runtime [{unit.name}]", "change", *likely, ""], rows, "<>>" + ">" * len(likely) + "<", cut=0
    )
    if knee is not None and knee.point + 1 < len(sweep.points):
        page.line()
        page.paragraph(
            f"Beyond {sweep.points[knee.point].setting}, doubling brings less than {100 * knee.least_share:.0f} %."
        )
    for reason, settings in _by_reason((_bounded(each, unit), each) for each in sweep.points).items():
        page.paragraph(f"Not answered ({', '.join(settings)}): {reason}", hanging="  ")
    _list(page, "Assumed", list(dict.fromkeys(text for each in sweep.points for text in each.assumptions)))
    return page.text()


def refusal_text(points: Sequence[Prediction]) -> str:
    """One sentence on why there is no answer, with what can be said all the same."""
    reasons = list(_by_reason((each.setting, each) for each in points))
    sentence = "no answer: " + "; ".join(reasons or ["the run does not tell"])
    bound = _bound(points[0].bound_ms, time_unit(points[0].runtime_ms))
    return f"{sentence}; but it would take {bound}" if bound else sentence


def _bounded(prediction: Prediction | WhatIf, unit: TimeUnit) -> str:
    """A setting, with what can be said of its runtime where it is not answered."""
    bound = _bound(prediction.bound_ms, unit) if prediction.refused else ""
    return f"{prediction.setting}: {bound}" if bound else prediction.setting


def _bound(bound_ms: tuple[float | None, float | None] | None, unit: TimeUnit) -> str:
    low, high = bound_ms or (None, None)
    sides = [f"at least {unit.text(low)}"] if low is not None else []
    sides += [f"at most {unit.text(high)}"] if high is not None else []
    return " and ".join(sides)


def listing_text(columns: Sequence[str], rows: Sequence[Sequence[str]], empty: str) -> str:
    """Plain rows of text, such as the list of indexes; the last column may wrap."""
    if not rows:
        return empty + "\n"
    page = _Page()
    page.table(columns, [[printable(each) for each in row] for row in rows], "<" * len(columns))
    return page.text()


# Parts of answers ---------------------------------------------------------------------------------------------------


def _heading(page: _Page, header: Header, runtime_ms: float, unit: TimeUnit) -> None:
    words, version = header.vocabulary, header.framework_version or "of unknown version"
    slots = "" if header.slots_per_worker is None else f" x {counted(header.slots_per_worker, words.lane)}"
    facts = [
        cut_right(printable(header.name), 40),
        f"{header.framework_title} {printable(version)}",
        f"{counted(header.workers, words.worker)}{slots}",
        unit.text(runtime_ms),
        "" if header.complete else "log incomplete",
    ]
    page.paragraph("   ".join(each for each in facts if each))


def _trust(page: _Page, verdict: Verdict, unit: TimeUnit) -> None:
    """How far the samples were placed in code, and how far off the model is where nothing changes."""
    facts = []
    if verdict.header.has_samples:
        facts.append(_placed(verdict.debug))
    if verdict.replayed_ms is not None and verdict.replay_error_ratio is not None:
        replayed, error = unit.text(verdict.replayed_ms), _signed_percent(verdict.replay_error_ratio)
        facts.append(f"model check: the run replayed unchanged takes {replayed} ({error})")
    page.paragraph("; ".join(facts))


def _placed(debug: Debug) -> str:
    """`97 % of 4 000 samples on units placed in code`, in the framework's word for units."""
    samples, units = debug.samples, debug.vocabulary.units
    share = percent(samples.resolved, samples.on_units)
    return f"{share} of {grouped(samples.on_units)} samples on {units} placed in code"


def _bottleneck(page: _Page, found: Bottleneck, header: Header, debug: Debug, unit: TimeUnit) -> None:
    if debug.unsubmitted is not None:
        page.paragraph(unsubmitted_sentence(debug, time_unit(debug.unsubmitted.whole_ms), unit))
    page.strong(bottleneck_sentence(found, debug, header.resources, unit))


def _path_table(page: _Page, debug: Debug, unit: TimeUnit, most: int) -> None:
    """The critical path in order of time; the short stretches are summed in one row."""
    resources = list(debug.resource_ms)
    shown, rest = fold_path(debug.critical_path, debug.runtime_ms, most)
    rows = [
        [
            item.id,
            item.name,
            unit.number(item.end_ms - item.start_ms),
            *(unit.number(item.resource_ms.get(each, 0.0)) for each in resources),
        ]
        for item in shown
    ]
    if rest:
        sums = [sum(item.resource_ms.get(each, 0.0) for item in rest) for each in resources]
        length = sum(item.end_ms - item.start_ms for item in rest)
        rows.append([f"{len(rest)} more", "shorter stretches", unit.number(length), *map(unit.number, sums)])
    rows.append(["whole", "", unit.number(debug.runtime_ms), *map(unit.number, debug.resource_ms.values())])
    sides = "<<>" + ">" * len(resources)
    page.table(["Critical path", "", f"time [{unit.name}]", *resources], rows, sides, cut=1, strong_last=True)
    causes = [
        f"{unit.text(ms)} {cause_words(cause, debug.vocabulary)}"
        for cause, ms in debug.other_ms.items()
        if not unit.is_nothing(ms)
    ]
    if causes:
        page.paragraph(f"other: {', '.join(causes)}", "       ")


def fold_path(path: Sequence[PathItem], runtime_ms: float, most: int) -> tuple[list[PathItem], list[PathItem]]:
    """The stretches to show, in order of time, and those to sum up; a single short one is shown as well."""
    ranked = sorted(path, key=lambda item: item.start_ms - item.end_ms)
    worth = [item for item in ranked[:most] if item.end_ms - item.start_ms >= WORTH_SHOWING * runtime_ms]
    chosen = {id(item) for item in worth}
    rest = [item for item in path if id(item) not in chosen]
    if len(rest) == 1:
        return list(path), []
    return [item for item in path if id(item) in chosen], rest


def _what_if_table(page: _Page, what_ifs: Sequence[WhatIf], runtime_ms: float, unit: TimeUnit) -> None:
    answered = [(each.predicted_ms, each) for each in what_ifs if each.predicted_ms is not None]
    intervals = any(each.interval_ms for _, each in answered)
    if answered:
        likely = ["likely"] if intervals else []
        rows = []
        for predicted_ms, each in answered:
            cells = [unit.number(predicted_ms), change(predicted_ms, runtime_ms)]
            if intervals:
                cells.append(_range(each.interval_ms, unit))
            rows.append([each.question, each.setting, *cells])
        heads = ["What if", "--set", f"runtime [{unit.name}]", "change", *likely]
        page.table(heads, rows, "<<>>" + ">" * len(likely))
    for reason, settings in _by_reason((_bounded(each, unit), each) for each in what_ifs).items():
        page.paragraph(f"Not answered ({', '.join(settings)}): {reason}", hanging="  ")


def _findings(page: _Page, findings: Sequence[Finding], unit: TimeUnit) -> None:
    if not findings:
        return
    page.line()
    page.line("Findings, by what they cost at most")
    for number, finding in enumerate(findings, 1):
        cost = unit.text(finding.cost_ms)
        page.paragraph(f"{number:3}  {cost:>8}  {printable(finding.what)} ({finding.basis})", hanging=" " * 15)
        page.paragraph(f"{'':15}{printable(finding.advice)}", hanging=" " * 15)


def _groups(page: _Page, debug: Debug, unit: TimeUnit, most: int) -> None:
    """How the units of the groups went that took most of the critical path."""
    words = debug.vocabulary
    longest = sorted(debug.groups, key=lambda each: (-each.path_ms, -each.unit_ms))[:most]
    if not longest:
        return
    shown = {each.id for each in longest}
    page.line()
    spilled = any(each.spill_bytes for each in longest)
    rows = [
        [
            each.id,
            grouped(each.units),
            f"{each.waves:.1f}",
            unit.number(each.median_ms),
            "." if each.skew_time is None else f"{each.skew_time:.1f}x",
            "." if each.skew_bytes is None else f"{each.skew_bytes:.1f}x",
            percent(each.idle_ms, each.slots * each.length_ms),
            percent(each.starting_ms, each.unit_ms),
            percent(each.gc_ms, each.unit_ms),
            *([f"{each.spill_bytes / 2**20:.0f} MiB" if each.spill_bytes else "."] if spilled else []),
        ]
        for each in debug.groups
        if each.id in shown
    ]
    heads = [capitalised(words.group), words.units, "waves", f"median [{unit.name}]"]
    heads += ["longest", "bytes", "idle", "start", "GC", *(["spilled"] if spilled else [])]
    page.table(heads, rows, "<" + ">" * (len(heads) - 1))
    if len(debug.groups) > len(rows):
        page.line(f"{counted(len(debug.groups) - len(rows), f'shorter {words.group}')} not shown; --json has all")
    page.paragraph(
        f"longest and bytes: the longest {words.unit}'s time and what the {words.unit} that read most read, in medians;"
        f" idle: of the {words.lanes}' time; start, GC: of the {words.units}' time"
    )


def _operators(page: _Page, header: Header, debug: Debug, unit: TimeUnit, most: int) -> None:
    """The operators of plans that most unit time went to."""
    known = [each for each in debug.operators if each.scope is not None and not unit.is_nothing(each.time_ms)]
    if not any(each.node_id is not None for each in known):
        return
    page.line()
    resources = list(debug.resource_ms)
    several = len({each.scope for each in known}) > 1
    rows = []
    for each in known[:most]:
        place = "" if each.node_id is None else str(each.node_id)
        ran_in = _short_ids(each.groups)
        rows.append(
            [
                f"{each.scope} {place}" if several else place,
                each.name if each.basis != PLAN_METRICS else f"{each.name} *",
                ", ".join(ran_in[:3]) + (" …" if len(ran_in) > 3 else ""),
                unit.number(each.time_ms),
                *(unit.number(each.resource_ms.get(key, 0.0)) for key in resources),
            ]
        )
    words = debug.vocabulary
    heads = ["node", "Per operator", words.groups, f"{words.unit} [{unit.name}]", *resources]
    page.table(heads, rows, ("<" if several else ">") + "<<>" + ">" * len(resources), cut=1)
    if len(known) > most:
        page.line(f"{counted(len(known) - most, 'more row')}; --json has all")
    if any(each.basis == PLAN_METRICS for each in known[:most]):
        whose = header.framework_title
        page.paragraph(f"* by {whose}'s own timing of operators, which lacks some; the others by samples")


def _short_ids(groups: Sequence[str]) -> list[str]:
    """What tells groups apart in a narrow column, in the order of their numbers: 3 and 4.1, of x:3.0 and x:4.1."""
    return sorted({each.rpartition(":")[2].removesuffix(".0") for each in groups}, key=_natural)


def _natural(text: str) -> list[tuple[bool, int, str]]:
    """A key that sorts 9 before 10."""
    parts = [each for each in re.split(r"(\d+)", text) if each]
    return [(not each.isdigit(), int(each) if each.isdigit() else 0, each) for each in parts]


def _disagreements(page: _Page, debug: Debug, most: int) -> None:
    """Where the index and the log contradict each other, so that a reader knows which labels to distrust."""
    if not debug.disagreements:
        return
    page.line()
    page.line("Labels and measurements disagree; the measurements were kept")
    for each in debug.disagreements[:most]:
        label = f"the index says {each.resource} {100 * each.label_share:.0f} %"
        if each.label_share > each.at_most_share:
            bound = f"the log permits at most {100 * each.at_most_share:.0f} %"
        else:
            bound = f"the log has at least {100 * each.at_least_share:.0f} %"
        page.paragraph(f"  - {each.group}: {label}, {bound} of running time", hanging="    ")
    if len(debug.disagreements) > most:
        page.line(f"  {len(debug.disagreements) - most} more; --json has all")


def _functions(page: _Page, debug: Debug, unit: TimeUnit, most: int) -> None:
    if not debug.functions[:most]:
        return
    page.line()
    rows = []
    for each in debug.functions[:most]:
        name = cut_left(printable(each.qualified_name), page.width - 28)
        rows.append([unit.number(each.time_ms), f"{each.resource} {100 * each.share:.0f} %", name])
        if each.callee and each.callee_ms >= TELLING_CALLEE * each.time_ms:
            share = f"{100 * each.callee_ms / each.time_ms:.0f} % in "
            rows.append(["", "", "  " + share + cut_left(printable(each.callee), page.width - 30 - len(share))])
    page.table([f"{debug.vocabulary.unit} time [{unit.name}]", "label", "in function"], rows, "><<")


def _passed_over(page: _Page, debug: Debug) -> None:
    """Which frames did not decide their sample, so that nobody has to take the share of placed samples on trust."""
    if not debug.samples.skipped:
        return
    page.line()
    counts = ", ".join(f"{printable(reason)} {grouped(count)}" for reason, count in debug.samples.skipped.items())
    units = debug.vocabulary.units
    page.paragraph(f"Frames passed over before one decided, in samples on {units}: {counts}")


def _scopes(page: _Page, debug: Debug, unit: TimeUnit) -> None:
    if not debug.scopes:
        return
    page.line()
    rows = [
        [each.id, each.name, unit.number(each.start_ms), "?" if each.end_ms is None else unit.number(each.end_ms)]
        for each in debug.scopes[:20]
    ]
    page.table([capitalised(debug.vocabulary.scope), "", f"start [{unit.name}]", "end"], rows, "<<>>", cut=1)
    if len(debug.scopes) > 20:
        page.line(f"{len(debug.scopes) - 20} more; --json has all")


def _not_seen(page: _Page, header: Header, debug: Debug) -> None:
    _problems(page, header)
    _list(page, "Not seen", [note_sentence(each) for each in debug.unseen])


def _problems(page: _Page, header: Header) -> None:
    serious = [f"{each.severity}: {each.meaning}" for each in header.problems if each.severity != "info"]
    notes = len(header.problems) - len(serious)
    if notes and serious:
        serious.append(f"and {counted(notes, 'note')} (SELECT * FROM import_stats)")
    _list(page, "Reading the input", serious)


def _list(page: _Page, title: str, items: Sequence[str]) -> None:
    if items:
        page.line()
        page.line(title)
        for each in items:
            page.paragraph(f"  - {printable(each)}", hanging="    ")


def _by_reason(refusals: Iterable[tuple[str, Prediction | WhatIf]]) -> dict[str, list[str]]:
    """Settings, as they are to be shown, by the reason for which they were refused and what can be done about it."""
    found: dict[str, list[str]] = {}
    for setting, answer in refusals:
        for number, reason in enumerate(answer.refused, 1):
            sentence = with_remedy(reason, answer.remedy if number == len(answer.refused) else None)
            found.setdefault(printable(sentence), []).append(printable(setting))
    return found


def _replay_words(prediction: Prediction, unit: TimeUnit) -> str:
    return (
        f"recorded {unit.text(prediction.runtime_ms)}, replayed unchanged {unit.text(prediction.replayed_ms)}"
        f" ({_signed_percent(prediction.replay_error_ratio)})"
    )


def _signed_percent(ratio: float) -> str:
    """`+1.1 %`, and zero without a sign."""
    value = round(100 * ratio, 1)
    return f"{value:+.1f} %" if value else "0.0 %"


def _range(interval_ms: tuple[float, float] | None, unit: TimeUnit) -> str:
    return "" if interval_ms is None else f"{unit.number(interval_ms[0])} to {unit.number(interval_ms[1])}"


def _scope_words(scope: str) -> str:
    return "" if scope == "all" else f", scope {scope}"


# The page -----------------------------------------------------------------------------------------------------------


class _Page:
    """Text being written: lines, paragraphs that wrap, tables."""

    def __init__(self) -> None:
        terminal = sys.stdout.isatty()
        known = terminal or "COLUMNS" in os.environ
        self.width = min(max(shutil.get_terminal_size((WIDTH, 24)).columns, 60), WIDEST) if known else WIDTH
        self._text = StringIO()
        # rich looks at NO_COLOR, FORCE_COLOR and TERM itself.
        self._console = Console(
            file=self._text,
            width=self.width,
            force_terminal=True if terminal else None,
            highlight=False,
            markup=False,
            emoji=False,
            soft_wrap=False,
        )

    def line(self, text: str = "") -> None:
        self._console.print(Text(text), soft_wrap=True)

    def strong(self, text: str) -> None:
        for each in _wrapped(text, self.width):
            self._console.print(Text(each, style="bold"), soft_wrap=True)

    def paragraph(self, text: str, hanging: str = "") -> None:
        """Wrapped text, its later lines set in by `hanging`; words longer than a line stay whole, to be pasted."""
        for each in _wrapped(text, self.width, hanging):
            self.line(each)

    def table(
        self,
        heads: Sequence[str],
        rows: Sequence[Sequence[str]],
        sides: str,
        *,
        cut: int | None = None,
        strong_last: bool = False,
    ) -> None:
        """Rows without rules.  `sides` has < or > for each column; column `cut` gives way where a line is too long."""
        cells = [[printable(each) for each in row] for row in rows]
        if cut is not None:
            widths = [max(len(row[number]) for row in (heads, *cells)) for number in range(len(heads))]
            width = max(self.width - sum(widths) - 2 * (len(widths) - 1) + widths[cut], NARROWEST)
            for row in cells:
                row[cut] = cut_right(row[cut], width)
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        for head, side in zip(heads, sides, strict=True):
            table.add_column(Text(head), justify="left" if side == "<" else "right", overflow="fold")
        for number, row in enumerate(cells):
            strong = strong_last and number + 1 == len(cells)
            table.add_row(*map(Text, row), style="bold" if strong else None)
        self._console.print(table)

    def text(self) -> str:
        lines = [line.rstrip() for line in self._text.getvalue().split("\n")]
        return "\n".join(lines).rstrip("\n") + "\n"


def _wrapped(text: str, width: int, hanging: str = "") -> list[str]:
    """Lines of a text; a number stays with its unit, and a word longer than a line stays whole."""
    kept = re.sub(r"(?<=\d) (?=(?:s|ms|min|%)(?!\w))", "\N{NO-BREAK SPACE}", text)
    lines = textwrap.wrap(kept, width, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False)
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]
