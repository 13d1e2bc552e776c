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
from itertools import pairwise
from math import log2
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cli.text import (
    NOTHING,
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

if TYPE_CHECKING:
    from cli.answering import Verdict, WhatIf
    from query.answers.values import Debug, Finding, FunctionTime, Header, PathItem, Prediction, Sweep

WIDTH = 80
WIDEST = 120
"""Lines longer than this are hard to follow, however wide the terminal."""

NAMES = {"cpu": "CPU", "disk": "Disk", "net": "Network"}
"""Resources as a sentence begins with them."""

PATH_ROWS = 8
"""Stretches of the critical path shown in a verdict; `debug` shows more."""

WORTH_SHOWING = 0.02
"""A stretch of the critical path is shown from this share of the runtime."""

NARROWEST = 12
"""A column that gives way to others keeps this width."""

KNEE = 0.10
"""More of a resource is worth it while doubling it saves this share of the runtime."""

CLOSE_SECOND = 0.75
"""A second resource is named from this share of the bottleneck's time."""

TELLING_CALLEE = 0.25
"""What a function called for its work is named from this share of its time."""


# Whole answers ------------------------------------------------------------------------------------------------------


def verdict_text(verdict: Verdict) -> str:
    """The answer of `analyze`."""
    header, debug = verdict.header, verdict.debug
    unit = time_unit(debug.runtime_ms)
    page = _Page()
    _heading(page, header, debug.runtime_ms, unit)
    _trust(page, verdict, unit)
    page.line()
    page.strong(_bottleneck_sentence(debug, unit))
    best = _best_help(verdict.what_ifs, unit)
    if best:
        page.paragraph(best)
    page.line()
    _path_table(page, debug, unit, PATH_ROWS)
    page.line()
    _what_if_table(page, verdict.what_ifs, debug.runtime_ms, unit)
    _findings(page, debug.findings[:5], unit)
    _operators(page, debug, unit, 6)
    _functions(page, debug.functions[:6], unit)
    _disagreements(page, debug, 2)
    _list(page, "Assumed", debug.assumptions)
    _not_seen(page, header, debug)
    page.line()
    page.paragraph(f"Kept as {verdict.path}", hanging="  ")
    page.line(f"Next:   {verdict.next_command}")
    return page.text()


def debug_text(header: Header, debug: Debug) -> str:
    """The answer of `debug`."""
    unit = time_unit(debug.runtime_ms)
    page = _Page()
    _heading(page, header, header.duration_ms, time_unit(header.duration_ms))
    if debug.scope != "all":
        page.line(f"of which {debug.scope}: {unit.text(debug.runtime_ms)}")
    page.line()
    page.strong(_bottleneck_sentence(debug, unit))
    page.line()
    _path_table(page, debug, unit, 40)
    _findings(page, debug.findings, unit)
    _stages(page, debug, unit, 12)
    _operators(page, debug, unit, 20)
    _functions(page, debug.functions, unit)
    _disagreements(page, debug, 6)
    _passed_over(page, debug)
    _sql_executions(page, debug, unit)
    _list(page, "Assumed", debug.assumptions)
    _not_seen(page, header, debug)
    return page.text()


def profile_text(header: Header, path: Path, next_command: str) -> str:
    """The answer of `profile`."""
    page = _Page()
    _heading(page, header, header.duration_ms, time_unit(header.duration_ms))
    _problems(page, header)
    page.line(f"Kept as {printable(str(path))}")
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
    longest = sorted(prediction.stages, key=lambda each: -each.recorded_ms)[:20]
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
    page.table(["Stage", "", f"recorded [{unit.name}]", "predicted", "change"], rows, "<<>>>", cut=1)
    if len(prediction.stages) > len(rows):
        page.line(f"{counted(len(prediction.stages) - len(rows), 'shorter stage')} not shown; --json has all")
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
    at_knee = None if knee is None else sweep.points[knee].predicted_ms
    worth = at_knee is not None and at_knee <= (1 - KNEE) * first.runtime_ms
    rows = []
    for number, point in enumerate(sweep.points):
        if point.predicted_ms is None:
            cells = ["not answered", ""]
        else:
            cells = [unit.number(point.predicted_ms), change(point.predicted_ms, first.runtime_ms)]
        span = [_range(point.interval_ms, unit)] if intervals else []
        rows.append([point.setting, *cells, *span, "<- worth it up to here" if worth and number == knee else ""])
    rows.append(["as recorded", unit.number(first.runtime_ms), "", *([""] if intervals else []), ""])
    likely = ["likely"] if intervals else []
    page.table(
        ["What if", f"runtime [{unit.name}]", "change", *likely, ""], rows, "<>>" + ">" * len(likely) + "<", cut=0
    )
    if knee is not None and knee + 1 < len(sweep.points):
        page.line()
        page.paragraph(f"Beyond {sweep.points[knee].setting}, doubling brings less than {100 * KNEE:.0f} %.")
    for reason, settings in _by_reason((_bounded(each, unit), each.refused) for each in sweep.points).items():
        page.paragraph(f"Not answered ({', '.join(settings)}): {reason}", hanging="  ")
    _list(page, "Assumed", list(dict.fromkeys(text for each in sweep.points for text in each.assumptions)))
    return page.text()


def refusal_text(points: Sequence[Prediction]) -> str:
    """One sentence on why there is no answer, with what can be said all the same."""
    reasons = list(_by_reason((each.setting, each.refused) for each in points))
    sentence = "no answer: " + "; ".join(reasons or ["the run does not tell"])
    bound = _bound(points[0].bound_ms, time_unit(points[0].runtime_ms))
    return f"{sentence}; but it would take {bound}" if bound else sentence


def _bounded(prediction: Prediction, unit: TimeUnit) -> str:
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


def knee_of(sweep: Sweep) -> int | None:
    """The last point that still brings a tenth per doubling, where one key is varied upwards; else None."""
    values = [_varied(each) for each in sweep.points]
    times = [each.predicted_ms for each in sweep.points]
    if len(sweep.points) < 2 or len({key for key, _, _ in values}) > 1 or len({kind for _, kind, _ in values}) > 1:
        return None
    amounts = [amount for _, _, amount in values]
    if any(each is None for each in (*amounts, *times)):
        return None
    steps = [(a, b) for a, b in zip(amounts, times, strict=True) if a is not None and b is not None]
    if any(after <= before for (before, _), (after, _) in pairwise(steps)):
        return None
    knee = 0
    for (before, slower), (after, faster) in pairwise(steps):
        if faster <= 0 or 1 - (faster / slower) ** (1 / log2(after / before)) < KNEE:
            break
        knee += 1
    return knee


# Parts of answers ---------------------------------------------------------------------------------------------------


def _heading(page: _Page, header: Header, runtime_ms: float, unit: TimeUnit) -> None:
    slots = "" if header.slots_per_executor is None else f" x {counted(header.slots_per_executor, 'slot')}"
    facts = [
        cut_right(printable(header.name), 40),
        f"{header.framework.capitalize()} {printable(header.framework_version)}",
        f"{counted(header.executors, 'executor')}{slots}",
        unit.text(runtime_ms),
        "" if header.complete else "log incomplete",
    ]
    page.paragraph("   ".join(each for each in facts if each))


def _trust(page: _Page, verdict: Verdict, unit: TimeUnit) -> None:
    """How far the samples were placed in code, and how far off the model is where nothing changes."""
    facts = []
    if verdict.header.has_samples:
        facts.append(_placed(verdict.debug))
    known = next((each.prediction for each in verdict.what_ifs if each.prediction is not None), None)
    if known is not None:
        replayed = unit.text(known.replayed_ms)
        facts.append(
            f"model check: the run replayed unchanged takes {replayed} ({_signed_percent(known.replay_error_ratio)})"
        )
    page.paragraph("; ".join(facts))


def _placed(debug: Debug) -> str:
    """`97 % of 4 000 samples on tasks placed in code`."""
    samples = debug.samples
    return (
        f"{percent(samples.resolved, samples.on_tasks)} of {grouped(samples.on_tasks)} samples on tasks placed in code"
    )


def _bottleneck_sentence(debug: Debug, unit: TimeUnit) -> str:
    """Which resource holds the run up, and by how many of how many seconds."""
    whole = debug.runtime_ms
    if whole <= 0:
        return "Nothing to explain: no time passes between the first and the last event of the log."
    time_ms = debug.resource_ms.get(debug.bottleneck, 0.0)
    of = f"{unit.number(time_ms)} of {unit.text(whole)} on the critical path ({percent(time_ms, whole)})"
    if debug.bottleneck not in debug.resource_ms or debug.bottleneck == "other":
        known = max((each for each in debug.resource_ms if each != "other"), key=lambda each: debug.resource_ms[each])
        best = debug.resource_ms[known]
        driver = sum(item.end_ms - item.start_ms for item in debug.critical_path if item.id.startswith("driver:"))
        rest = f"; next is {known} with {unit.text(best)}" if unit.number(best) != NOTHING else ""
        cause, cause_ms = max(debug.other_ms.items(), key=lambda each: each[1], default=("unknown", 0.0))
        if cause != "unknown" and cause_ms >= best:
            what = f"{cause[:1].upper()}{cause[1:]}"
            spent = f"{unit.number(cause_ms)} of {unit.text(whole)} on the critical path ({percent(cause_ms, whole)})"
            alone = f" In all, {unit.text(driver)} pass while no task runs." if driver > cause_ms else ""
            return f"{what} holds this run up: {spent}{rest}.{alone}"
        if driver > max(best, whole / 2):
            alone = f"{unit.number(driver)} of {unit.text(whole)} ({percent(driver, whole)})"
            return (
                f"The driver holds this run up: {alone} pass before, between and after the stages, when no task runs."
            )
        return f"No resource holds this run up as far as can be seen: {of} went to waiting or to work unknown{rest}."
    sentence = f"{NAMES.get(debug.bottleneck, debug.bottleneck)} holds this run up: {of}."
    others = {key: ms for key, ms in debug.resource_ms.items() if key not in (debug.bottleneck, "other")}
    second = max(others, key=lambda each: others[each], default=None)
    if second is not None and others[second] >= CLOSE_SECOND * time_ms:
        sentence += f" {NAMES.get(second, second)} follows closely: {unit.text(others[second])}."
    return sentence


def _best_help(what_ifs: Sequence[WhatIf], unit: TimeUnit) -> str:
    """Which doubling would help most, in one sentence; empty where nothing is known."""
    known = [
        (each.prediction.predicted_ms, each)
        for each in what_ifs
        if each.prediction is not None and each.prediction.predicted_ms is not None and each.setting.endswith("=2x")
    ]
    if not known:
        return ""
    best_ms, best = min(known, key=lambda each: each[0])
    assert best.prediction is not None
    before = best.prediction.runtime_ms
    if best_ms >= 0.97 * before:
        return "None of the doublings below would shorten it noticeably."
    then = f"{unit.text(best_ms)} ({change(best_ms, before)})"
    return f"What would help most of the doublings below: {best.question}, {then}."


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
    causes = [(cause, ms) for cause, ms in debug.other_ms.items() if unit.number(ms) != NOTHING]
    if causes:
        page.paragraph("other: " + ", ".join(f"{unit.text(ms)} {printable(cause)}" for cause, ms in causes), "       ")


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
    answered = [each for each in what_ifs if each.prediction is not None and each.prediction.predicted_ms is not None]
    intervals = any(each.prediction is not None and each.prediction.interval_ms for each in answered)
    if answered:
        likely = ["likely"] if intervals else []
        rows = []
        for each in answered:
            prediction = each.prediction
            assert prediction is not None
            assert prediction.predicted_ms is not None
            cells = [unit.number(prediction.predicted_ms), change(prediction.predicted_ms, runtime_ms)]
            if intervals:
                cells.append(_range(prediction.interval_ms, unit))
            rows.append([each.question, each.setting, *cells])
        heads = ["What if", "--set", f"runtime [{unit.name}]", "change", *likely]
        page.table(heads, rows, "<<>>" + ">" * len(likely))
    asked = (
        (each.setting if each.prediction is None else _bounded(each.prediction, unit), each.refused)
        for each in what_ifs
    )
    for reason, settings in _by_reason(asked).items():
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


def _stages(page: _Page, debug: Debug, unit: TimeUnit, most: int) -> None:
    """How the tasks of the stages went that took most of the critical path."""
    longest = sorted(debug.stages, key=lambda each: (-each.path_ms, -each.task_ms))[:most]
    if not longest:
        return
    shown = {each.id for each in longest}
    page.line()
    spilled = any(each.spill_bytes for each in longest)
    rows = [
        [
            each.id,
            grouped(each.tasks),
            f"{each.waves:.1f}",
            unit.number(each.median_ms),
            "." if each.skew_time is None else f"{each.skew_time:.1f}x",
            "." if each.skew_bytes is None else f"{each.skew_bytes:.1f}x",
            percent(each.idle_ms, each.slots * each.length_ms),
            percent(each.starting_ms, each.task_ms),
            percent(each.gc_ms, each.task_ms),
            *([f"{each.spill_bytes / 2**20:.0f} MiB" if each.spill_bytes else "."] if spilled else []),
        ]
        for each in debug.stages
        if each.id in shown
    ]
    heads = ["Stage", "tasks", "waves", f"median [{unit.name}]", "longest", "bytes", "idle", "start", "GC"]
    heads += ["spilled"] if spilled else []
    page.table(heads, rows, "<" + ">" * (len(heads) - 1))
    if len(debug.stages) > len(rows):
        page.line(f"{counted(len(debug.stages) - len(rows), 'shorter stage')} not shown; --json has all")
    page.paragraph(
        "longest and bytes: the longest task's time and what the task that read most read, in medians; idle: of the"
        " slots' time; start, GC: of the tasks' time"
    )


def _operators(page: _Page, debug: Debug, unit: TimeUnit, most: int) -> None:
    """The SQL operators that most task time went to."""
    known = [each for each in debug.operators if each.sql_id is not None and unit.number(each.time_ms) != NOTHING]
    if not any(each.node_id is not None for each in known):
        return
    page.line()
    resources = list(debug.resource_ms)
    several = len({each.sql_id for each in known}) > 1
    rows = []
    for each in known[:most]:
        place = "" if each.node_id is None else str(each.node_id)
        rows.append(
            [
                f"sql:{each.sql_id} {place}" if several else place,
                each.name if each.basis != "SQL metrics" else f"{each.name} *",
                ", ".join(map(str, each.stages[:3])) + (" …" if len(each.stages) > 3 else ""),
                unit.number(each.time_ms),
                *(unit.number(each.resource_ms.get(key, 0.0)) for key in resources),
            ]
        )
    heads = ["node", "Per operator", "stages", f"task [{unit.name}]", *resources]
    page.table(heads, rows, ("<" if several else ">") + "<<>" + ">" * len(resources), cut=1)
    if len(known) > most:
        page.line(f"{counted(len(known) - most, 'more row')}; --json has all")
    if any(each.basis == "SQL metrics" for each in known[:most]):
        page.paragraph("* by Spark's own timing of operators, which lacks some; the others by samples")


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
        page.paragraph(f"  - {each.stage}: {label}, {bound} of running time", hanging="    ")
    if len(debug.disagreements) > most:
        page.line(f"  {len(debug.disagreements) - most} more; --json has all")


def _functions(page: _Page, functions: Sequence[FunctionTime], unit: TimeUnit) -> None:
    if not functions:
        return
    page.line()
    rows = []
    for each in functions:
        name = cut_left(printable(each.qualified_name), page.width - 28)
        rows.append([unit.number(each.time_ms), f"{each.resource} {100 * each.share:.0f} %", name])
        if each.callee and each.callee_ms >= TELLING_CALLEE * each.time_ms:
            share = f"{100 * each.callee_ms / each.time_ms:.0f} % in "
            rows.append(["", "", "  " + share + cut_left(printable(each.callee), page.width - 30 - len(share))])
    page.table([f"task time [{unit.name}]", "label", "in function"], rows, "><<")


def _passed_over(page: _Page, debug: Debug) -> None:
    """Which frames did not decide their sample, so that nobody has to take the share of placed samples on trust."""
    if not debug.samples.skipped:
        return
    page.line()
    counts = ", ".join(f"{printable(reason)} {grouped(count)}" for reason, count in debug.samples.skipped.items())
    page.paragraph(f"Frames passed over before one decided, in samples on tasks: {counts}")


def _sql_executions(page: _Page, debug: Debug, unit: TimeUnit) -> None:
    if not debug.sql_executions:
        return
    page.line()
    rows = [
        [
            f"sql:{each.id}",
            each.name,
            unit.number(each.start_ms),
            "?" if each.end_ms is None else unit.number(each.end_ms),
        ]
        for each in debug.sql_executions[:20]
    ]
    page.table(["SQL query", "", f"start [{unit.name}]", "end"], rows, "<<>>", cut=1)
    if len(debug.sql_executions) > 20:
        page.line(f"{len(debug.sql_executions) - 20} more; --json has all")


def _not_seen(page: _Page, header: Header, debug: Debug) -> None:
    _problems(page, header)
    unseen = list(debug.unseen)
    if header.has_samples and not header.indexes:
        unseen.insert(
            0,
            "code: there are samples, but no index of the code they are in, so its time stays `other`;"
            f" `{build_command(header)}` makes one, then analyze again",
        )
    if not header.has_samples and not any("crystalperf setup" in each for each in unseen):
        unseen.append("code: the run left no stack samples; `crystalperf setup spark` shows how to get them")
    _list(page, "Not seen", unseen)


def build_command(header: Header) -> str:
    """What makes the index that a run needs first."""
    return f"crystalperf index build {header.framework}-{printable(header.framework_version)}"


def _problems(page: _Page, header: Header) -> None:
    serious = [f"{severity}: {meaning}" for severity, meaning in header.problems if severity != "info"]
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


def _by_reason(refusals: Iterable[tuple[str, Sequence[str]]]) -> dict[str, list[str]]:
    """Settings by the reason for which they were refused."""
    found: dict[str, list[str]] = {}
    for setting, reasons in refusals:
        for reason in reasons:
            found.setdefault(printable(reason), []).append(printable(setting))
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


def _varied(point: Prediction) -> tuple[str, bool, float | None]:
    """The key that a point of a sweep sets, whether relative, and the amount; '' where it sets several."""
    from indexes.errors import SettingError
    from query.model.world import parse_settings

    try:
        values = parse_settings([each.strip() for each in point.setting.split(",")], lists=False)
    except SettingError:
        return "", False, None
    if len(values) != 1:
        return "", False, None
    (key, (value,)) = next(iter(values.items()))
    return key, value.ratio is not None, value.ratio if value.ratio is not None else value.absolute


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
