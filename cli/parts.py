"""The parts that several answers share; each function writes one part to a page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from crystalperf.cli.remedies import not_recorded_sentence
from crystalperf.cli.text import counted, cut_left, grouped, percent, printable, time_unit, volume
from crystalperf.query.text.answers import (
    WORTH_SHOWING,
    bottleneck_sentence,
    capitalised,
    disagreement_words,
    header_facts,
    noticeable_findings,
    other_applications_sentence,
    other_words,
    outcome_sentences,
    recordings_sentence,
    samples_sentence,
    stream_sentences,
    unmodelled_sentence,
    unsubmitted_sentence,
)
from crystalperf.query.text.findings import advice_text
from crystalperf.query.text.folding import fold_path
from crystalperf.query.text.recommendations import call_site
from crystalperf.query.text.sentences import text_of
from crystalperf.query.text.stations import stations_table

if TYPE_CHECKING:
    from crystalperf.cli.page import Page
    from crystalperf.cli.text import TimeUnit
    from crystalperf.query.results.answers import Bottleneck, Debug, Header, PathOperator

PLAN_METRICS = "plan metrics"
"""The basis of operator times that the framework measured."""

USUAL_RESOURCES = 4
"""Number of resource columns of a run whose framework adds none: CPU, disk, network and other."""

SHOWN_CALLEE_SHARE = 0.25
"""Minimum share of a function's time from which the callee that did the work is named."""

SCOPES_SHOWN = 20


def heading(page: Page, header: Header) -> None:
    """Write the heading: application, machines, duration; and that the input has other applications."""
    page.paragraph("   ".join(header_facts(header)))
    if others := other_applications_sentence(header):
        page.paragraph(printable(f"{others} Choose with --app ID."))


def lead(page: Page, found: Bottleneck, header: Header, debug: Debug, unit: TimeUnit) -> None:
    """Write the outcome, the scope of the answer, the bottleneck, and the basis of the figures."""
    ended = outcome_sentences(debug, unit)
    unused = recordings_sentence(header, debug)
    for sentence in (unused, *ended) if unused else ended:
        page.paragraph(printable(sentence))
    if ended or unused:
        page.line()
    if debug.unsubmitted is not None:
        page.paragraph(unsubmitted_sentence(debug, time_unit(debug.unsubmitted.total_ms), unit))
    for sentence in stream_sentences(debug, header.resources):
        page.strong(printable(sentence))
    page.strong(bottleneck_sentence(found, debug, header.resources, unit))
    if debug.unmodelled is not None:
        page.paragraph(unmodelled_sentence(debug))
    rests_on = samples_sentence(header, debug)
    if rests_on:
        page.paragraph(rests_on)


# The critical path --------------------------------------------------------------------------------------------------


def path_table(page: Page, debug: Debug, unit: TimeUnit, most: int) -> None:
    """Write the critical path in order of time; one row sums the short segments."""
    resources = _resources(debug, unit)
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
        rows.append([f"{len(rest)} more", "shorter", unit.number(length), *map(unit.number, sums)])
    rows.append(["total", "", unit.number(debug.runtime_ms), *_whole(debug, resources, unit)])
    heads = ["Critical path", "segment", f"time [{unit.name}]", *resources]
    page.table(heads, rows, "<<>" + ">" * len(resources), cut=1, strong_last=True)
    other(page, debug, unit)


def path_operators(page: Page, debug: Debug, unit: TimeUnit, most: int) -> None:
    """Write the critical path by operator, longest first; one row sums the short ones."""
    resources, whole_ms = _resources(debug, unit), debug.runtime_ms
    shown = [each for each in debug.path_operators[:most] if each.time_ms >= WORTH_SHOWING * whole_ms]
    rest = debug.path_operators[len(shown) :]

    def row(name: str, stages: str, summed: Sequence[PathOperator]) -> list[str]:
        parts = [sum(each.resource_ms.get(part, 0.0) for each in summed) for part in resources]
        return [name, stages, unit.number(sum(each.time_ms for each in summed)), *map(unit.number, parts)]

    rows = [row(each.name, grouped(each.stages), [each]) for each in shown]
    if rest:
        rows.append(row(counted(len(rest), "shorter one"), "", rest))
    rows.append(["total", "", unit.number(whole_ms), *_whole(debug, resources, unit)])
    heads = ["Critical path by operator", debug.vocabulary.stages, f"time [{unit.name}]", *resources]
    page.table(heads, rows, "<>>" + ">" * len(resources), cut=0, strong_last=True)


def _resources(debug: Debug, unit: TimeUnit) -> list[str]:
    """The resources that get a column: all, or those with time if there are more than the usual ones."""
    if len(debug.resource_ms) <= USUAL_RESOURCES:
        return list(debug.resource_ms)
    busy = [debug.resource_ms, *(each.resource_ms for each in debug.operators)]
    return [name for name in debug.resource_ms if any(not unit.is_nothing(each.get(name, 0.0)) for each in busy)]


def _whole(debug: Debug, resources: Sequence[str], unit: TimeUnit) -> list[str]:
    return [unit.number(debug.resource_ms[name]) for name in resources]


def other(page: Page, debug: Debug, unit: TimeUnit) -> None:
    """Write what the time in `other` on the path was."""
    description = other_words(debug, unit)
    if description:
        page.paragraph(f"other: {description}", "       ")


def stations(page: Page, debug: Debug) -> None:
    """Write the stages of a stream: their record rates and utilization."""
    heads, rows = stations_table(debug)
    if rows:
        page.line()
        page.table(heads, rows, "<<>>>>>>", cut=1)


# Findings, stages, operators, functions -----------------------------------------------------------------------------


def findings(page: Page, debug: Debug, unit: TimeUnit) -> None:
    """Write the findings: what cost time, and what to try."""
    if not (shown := noticeable_findings(debug.findings, unit)):
        return
    page.line()
    page.line("Findings, by maximum cost")
    for number, finding in enumerate(shown, 1):
        cost = unit.text(finding.cost_ms)
        text, advice = text_of(finding, debug.words), advice_text(finding, debug.words)
        page.paragraph(f"{number:3}  {cost:>8}  {printable(text)} ({finding.basis})", hanging=" " * 15)
        page.paragraph(f"{'':15}{printable(advice)}", hanging=" " * 15)


def stages(page: Page, debug: Debug, unit: TimeUnit, most: int) -> None:
    """Write the task statistics of the stages with the most time on the critical path."""
    words = debug.vocabulary
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
            *([volume(each.spill_bytes) if each.spill_bytes else "."] if spilled else []),
        ]
        for each in debug.stages
        if each.id in shown
    ]
    heads = [capitalised(words.stage), words.tasks, "waves", f"median [{unit.name}]"]
    heads += ["longest", "bytes", "idle", "start", "GC", *(["spilled"] if spilled else [])]
    waves = f"waves: {words.tasks} per {words.slot}; "
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    if sum(widths) + 2 * (len(widths) - 1) > page.width:  # names are not to be broken; waves follow from the others
        heads, rows, waves = [*heads[:2], *heads[3:]], [[*row[:2], *row[3:]] for row in rows], ""
    page.table(heads, rows, "<" + ">" * (len(heads) - 1))
    if len(debug.stages) > len(rows):
        page.line(f"{counted(len(debug.stages) - len(rows), f'shorter {words.stage}')} not shown; --json has all")
    page.paragraph(
        f"{waves}longest: the longest {words.task}'s time over the median; bytes: the largest {words.task}'s input over"
        f" the median; idle: share of {words.slot} time; start, GC: shares of {words.task} time"
    )


def operators(page: Page, header: Header, debug: Debug, unit: TimeUnit, most: int) -> None:
    """Write the plan operators with the most task time."""
    known = [each for each in debug.operators if not unit.is_nothing(each.time_ms)]
    if any(each.scope is not None for each in known):  # time without an operator belongs to no plan
        known = [each for each in known if each.scope is not None]
    if not any(each.node_id is not None for each in known):
        return
    page.line()
    resources = _resources(debug, unit)
    several = len({each.scope for each in known}) > 1
    # Where each task is an operator, all of its time is known.
    partly = () if debug.path_operators else (PLAN_METRICS,)
    starred = any(each.basis not in partly for each in known[:most] if each.node_id is not None)
    rows = []
    for each in known[:most]:
        place = "" if each.node_id is None else str(each.node_id)
        ran_in = _short_ids(each.stages)
        rows.append(
            [
                f"{each.scope} {place}" if several else place,
                f"* {each.name}" if starred and each.basis in partly else each.name,
                ", ".join(ran_in[:3]) + (" …" if len(ran_in) > 3 else ""),
                unit.number(each.time_ms),
                *(unit.number(each.resource_ms.get(key, 0.0)) for key in resources),
            ]
        )
    words = debug.vocabulary
    heads = ["node", "Operator", words.stages, f"{words.task} [{unit.name}]", *resources]
    page.table(heads, rows, ("<" if several else ">") + "<<>" + ">" * len(resources), cut=1)
    if len(known) > most:
        page.line(f"{counted(len(known) - most, 'more row')}; --json has all")
    sites = {each.scope: call_site(each.call_site) for each in known[:most] if each.call_site}
    if sites:
        named = [f"{scope}: {site}" if several else site for scope, site in sites.items()]
        page.paragraph(f"In your program: {'; '.join(named)}")
    if any(each.basis in partly for each in known[:most]):
        whose = "* measured" if starred else "Measured"
        page.paragraph(f"{whose} by {header.framework_title}, which does not measure all operators")


def efficiency(page: Page, debug: Debug, unit: TimeUnit, most: int) -> None:
    """Write the operations and bytes a second that operators reached on devices, and their shares of the peaks."""
    known = [each for each in debug.efficiency if not unit.is_nothing(each.time_ms)]
    if not known:
        return

    def rate(value: float | None, scale: float, share: float | None) -> list[str]:
        return ["." if value is None else grouped(round(value / scale)), "." if share is None else percent(share, 1)]

    rows = [
        [
            each.operator, unit.number(each.time_ms), each.bound,
            *rate(each.flops_per_s, 1e12, each.flops_share), *rate(each.bytes_per_s, 1e9, each.bytes_share),
        ]
        for each in known[:most]
    ]  # fmt: skip
    page.line()
    heads = ["On devices", f"time [{unit.name}]", "bound by", "TFLOP/s", "of peak", "GB/s", "of peak"]
    page.table(heads, rows, "<><>>>>", cut=0)
    if len(known) > most:
        page.line(f"{counted(len(known) - most, 'more row')}; --json has all")
    guessed = sum(each.time_ms for each in debug.efficiency if each.known_by == "name")
    whole = sum(each.time_ms for each in debug.efficiency)
    if guessed > 0.1 * whole:
        page.paragraph(
            f"Of {percent(guessed, whole)} of this time the work is not known; names and grids show its bound"
        )


def _short_ids(stages: Sequence[str]) -> list[str]:
    """Short ids of stages for a narrow column, in natural order: 3 and 4.1 for x:3.0 and x:4.1."""
    return sorted({each.rpartition(":")[2].removesuffix(".0") for each in stages}, key=_natural)


def _natural(text: str) -> list[tuple[bool, int, str]]:
    """A key that sorts 9 before 10."""
    parts = [each for each in re.split(r"(\d+)", text) if each]
    return [(not each.isdigit(), int(each) if each.isdigit() else 0, each) for each in parts]


def disagreements(page: Page, debug: Debug, most: int) -> None:
    """Write where the index contradicts the log, so that a reader knows which labels to distrust."""
    if not debug.disagreements:
        return
    page.line()
    page.line("Index labels that the log contradicts; CrystalPerf uses the log")
    for each in debug.disagreements[:most]:
        page.paragraph(f"  - {disagreement_words(each)}", hanging="    ")
    if len(debug.disagreements) > most:
        page.line(f"  {len(debug.disagreements) - most} more; --json has all")


def functions(page: Page, debug: Debug, unit: TimeUnit, most: int) -> None:
    """Write the functions with the most task time, by samples."""
    if not debug.functions[:most]:
        return
    page.line()
    rows = []
    for each in debug.functions[:most]:
        name = cut_left(printable(each.qualified_name), page.width - 28)
        rows.append([unit.number(each.time_ms), f"{each.resource} {100 * each.share:.0f} %", name])
        if each.callee and each.callee_ms >= SHOWN_CALLEE_SHARE * each.time_ms:
            share = f"{100 * each.callee_ms / each.time_ms:.0f} % in "
            rows.append(["", "", "  " + share + cut_left(printable(each.callee), page.width - 30 - len(share))])
    page.table([f"{debug.vocabulary.task} time [{unit.name}]", "label", "in function"], rows, "><<")


def passed_over(page: Page, debug: Debug) -> None:
    """Write the frames that were skipped in attribution, so that a reader can check the share of attributed samples."""
    if not debug.samples.skipped:
        return
    page.line()
    counts = ", ".join(f"{printable(reason)} {grouped(count)}" for reason, count in debug.samples.skipped.items())
    tasks = debug.vocabulary.tasks
    page.paragraph(f"Skipped frames by reason, in samples of {tasks}: {counts}")


def scopes(page: Page, debug: Debug, unit: TimeUnit) -> None:
    """Write the scopes that --scope accepts."""
    if not debug.scopes:
        return
    page.line()
    rows = [
        [each.id, each.name, unit.number(each.start_ms), "?" if each.end_ms is None else unit.number(each.end_ms)]
        for each in debug.scopes[:SCOPES_SHOWN]
    ]
    page.table([capitalised(debug.vocabulary.scope), "", f"start [{unit.name}]", "end"], rows, "<<>>", cut=1)
    if len(debug.scopes) > SCOPES_SHOWN:
        page.line(f"{len(debug.scopes) - SCOPES_SHOWN} more; --json has all")


# Uncertainty --------------------------------------------------------------------------------------------------------


def serious_problems(header: Header) -> list[str]:
    """The serious problems of reading the input, the worst first."""
    return [each.meaning for each in header.problems if each.severity != "info"]


def problems(page: Page, header: Header) -> None:
    """Write the problems of reading the input."""
    lost = serious_problems(header)
    notes = len(header.problems) - len(lost)
    if notes and lost:
        lost.append(f"{counted(notes, 'note')} more (SELECT * FROM import_stats)")
    listed(page, "Missing from the input", lost)


def not_recorded_notes(page: Page, header: Header, debug: Debug) -> None:
    """Write the problems of reading the input, and what the run does not show."""
    problems(page, header)
    listed(page, "Not recorded", [not_recorded_sentence(each, debug.words) for each in debug.not_recorded])


def listed(page: Page, title: str, items: Sequence[str]) -> None:
    """Write a title and a bullet list."""
    if items:
        page.line()
        page.line(title)
        for each in items:
            page.paragraph(f"  - {printable(each)}", hanging="    ")
