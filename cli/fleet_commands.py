"""`crystalperf fleet build` and `fleet ask`: many runs at once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from crystalperf.cli.options import SETTINGS, AsJson, show_help
from crystalperf.fleet.engines import ENGINES

if TYPE_CHECKING:
    from crystalperf.fleet.summary import Fleet, Job

app = typer.Typer(rich_markup_mode=None, context_settings=SETTINGS)


@app.callback(invoke_without_command=True)
def fleet(context: typer.Context) -> None:
    """many runs at once: which jobs waste most, what would save most, what got slower

    \b
    Example:
      crystalperf fleet build logs -o fleet && crystalperf fleet ask fleet
    """
    if context.invoked_subcommand is None:
        show_help(context)


@app.command("build")
def fleet_build(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH", help="logs: folders, files, globs, URLs, or @FILE with one a line", show_default=False
        ),
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="DIR", help="the fleet's folder, new or one to add to")
    ] = "fleet",
    engine: Annotated[
        str, typer.Option("--engine", metavar="ENGINE", help=f"who reads the logs: {' or '.join(ENGINES)}")
    ] = "local",
    processes: Annotated[
        int, typer.Option("--processes", min=0, metavar="N", help="of the engine local; 0 for as many as CPUs")
    ] = 0,
    memory: Annotated[
        int,
        typer.Option(
            "--memory", min=0, metavar="MIB", help="what each process may take; 0 for its share of the machine"
        ),
    ] = 0,
    master: Annotated[
        str, typer.Option("--master", metavar="URL", help=f"of the engine {ENGINES[1]}", show_default=False)
    ] = "",
    conf: Annotated[
        list[str],
        typer.Option(
            "--conf", metavar="KEY=VALUE", help=f"of the engine {ENGINES[1]}; may be repeated", show_default=False
        ),
    ] = [],  # noqa: B006
    again: Annotated[bool, typer.Option("--again", help="try known logs again that could not be read")] = False,
    as_json: AsJson = False,
) -> int:
    """read logs into tables of Parquet, each log once

    \b
    Killed at any time, the same command goes on. A log that cannot be read is
    a row of the table `problems`.

    \b
    Example:
      crystalperf fleet build logs -o fleet
    """
    from dataclasses import asdict

    from crystalperf.cli.output import progress, write, write_json
    from crystalperf.cli.text import counted, printable, shell_word
    from crystalperf.fleet.build import build
    from crystalperf.fleet.engines import Engine

    with progress() as step:
        reading = Engine(engine, processes or None, memory << 20 or None, master, tuple(conf))
        built = build(paths, Path(output), reading, step, again=again)
    if as_json:
        write_json({"schema": "crystalperf.fleet-build/1", **asdict(built)})
        return 0
    lines = [f"{counted(built.read, 'log')} read in {built.seconds:.1f} s, {built.known} known before."]
    if built.unread + built.known_unread:
        lines.append(_unread(built.unread + built.known_unread, built.folder))
        lines += [f"  {each}" for each in built.reasons]
    if built.known_unread:
        lines.append(
            f"{built.known_unread} of these failed in an earlier build and stayed as they are; --again tries again."
        )
    if built.unplaced:
        first, more = built.unplaced[0], len(built.unplaced) - 1
        which = f"{first} and {more} more" if more else first
        lines.append(
            f"{counted(len(built.unplaced), 'recording')} of stacks went to no log, for a fleet goes by the"
            f" application's id in their paths: {which}. Put that id into their names, or the name of their folder."
        )
    lines.append(f"Ask with: crystalperf fleet ask {shell_word(built.folder)}")
    write("".join(f"{printable(each)}\n" for each in lines))
    return 0


@app.command("ask")
def fleet_summary(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="the fleet's folder")] = "fleet",
    top: Annotated[int, typer.Option("--top", min=0, metavar="N", help="rows of each table, 0 for all")] = 10,
    as_json: AsJson = False,
) -> int:
    """say which jobs waste most, what would save most, what got slower

    \b
    Example:
      crystalperf fleet ask fleet
    """
    from dataclasses import asdict

    from crystalperf.cli.output import progress, write, write_json
    from crystalperf.fleet.summary import summarize

    with progress() as step:
        step("asking the tables")
        answer = summarize(Path(folder), top)
    if as_json:
        write_json({"schema": "crystalperf.fleet/1", **asdict(answer)})
    else:
        write(_text(answer))
    return 0


def _text(fleet: Fleet) -> str:
    from crystalperf.cli.text import counted, cut_right, printable

    days = f"{fleet.first_day} to {fleet.last_day}" if fleet.first_day else "no day"
    share = 100 / fleet.core_hours if fleet.core_hours else 0.0
    lines = [
        f"{counted(fleet.runs, 'run')} of {counted(fleet.logs, 'log')}, {days}: {fleet.core_hours:.1f} core-hours.",
        f"Slots were idle for {fleet.idle_core_hours:.1f} of them ({share * fleet.idle_core_hours:.0f} %);"
        f" {fleet.lost_core_hours:.1f} ({share * fleet.lost_core_hours:.0f} %) went to work that did not succeed.",
    ]
    if fleet.unread_logs:
        lines.append(_unread(fleet.unread_logs, fleet.folder))
    for title, jobs in (("Most core-hours", fleet.by_core_hours), ("Most wasted (idle or lost)", fleet.by_waste)):
        lines += ["", f"{title:34s} runs  core-h  idle  lost  median [s]  held up by"]
        lines += [
            f"{cut_right(each.name, 34):34s} {each.runs:4d} {each.core_hours:7.2f} {each.idle_core_hours:5.2f}"
            f" {each.lost_core_hours:5.2f} {_seconds(each.median_runtime_ms):>11s}  {_held_up_by(each)}"
            for each in jobs
        ]
    if fleet.savings:
        lines += ["", "What would save most, over all runs     runs   hours    saved     90 % range"]
        lines += [
            f"{cut_right(each.question, 38):38s} {each.runs:5d} {each.hours_now:7.2f} {_hours(each.saved_hours):>8s}"
            f"   {_hours(each.saved_hours_range[0])} to {_hours(each.saved_hours_range[1])}"
            for each in fleet.savings
            if each.runs
        ]
        widest = max(fleet.savings, key=lambda each: each.common_share)
        lines.append(
            "The model errs alike in all runs, so more runs make a range narrower only in part: up to"
            f" {100 * widest.common_share:.0f} % of its variance stays."
        )
    if fleet.recurring:
        lines += ["", "What recurs                          runs  jobs  cost [h]  of their runtime"]
        lines += [
            f"{cut_right(_RECURS.get(each.rule, each.rule), 36):36s} {each.runs:4d} {each.jobs:5d}"
            f" {each.cost_hours:9.3f} {100 * each.share:15.0f} %"
            for each in fleet.recurring
        ]
    lines += ["", *_slower(fleet)]
    if fleet.mix:
        total: Counter[str] = Counter()
        for each in fleet.mix:
            total.update(each.core_hours)
        names = [name for name, _ in total.most_common()]
        some = f"Core-hours, last {len(fleet.mix)} of {fleet.days} days"
        title = "Core-hours by day" if len(fleet.mix) == fleet.days else some
        lines += ["", f"{title:34s} runs  " + "  ".join(f"{name:>7s}" for name in names)]
        lines += [
            f"{each.day:34s} {each.runs:4d}  " + "  ".join(f"{each.core_hours.get(name, 0.0):7.3f}" for name in names)
            for each in fleet.mix
        ]
    return "".join(f"{printable(each)}\n" for each in lines)  # job names are untrusted


_RECURS = {
    "no-scope": "the program itself: nothing running",
    "no-worker": "waiting for workers",
    "coordinator": "the coordinator alone",
    "no-unit": "gaps in which no unit runs",
    "starting-units": "starting and ending short units",
    "straggler": "one unit far longer than others",
    "garbage": "garbage collection",
    "wasted": "work that did not succeed",
    "kept": "what was to be kept had no room",
    "odd-use": "a device used for few data",
    "input": "waiting for the next batch",
    "read-again": "the same files read again",
    "small-output": "many small files written",
    "spilling": "spilling to disk",
    "compiling": "compiling code",
}
"""Findings by kind, in words of no framework, because a fleet may have several; `--json` has the kind."""


def _hours(hours: float) -> str:
    """Hours with two decimals; zero has no sign."""
    return f"{round(hours, 2) + 0.0:.2f}"


def _seconds(ms: float | None) -> str:
    return "-" if ms is None else f"{ms / 1e3:.1f}"


def _held_up_by(job: Job) -> str:
    """A bottleneck in words: a device, or a cause in the framework's words."""
    from typing import get_args

    from crystalperf.indexes.resources import known
    from crystalperf.query.frameworks.registry import frameworks
    from crystalperf.query.results.answers import Cause
    from crystalperf.query.text.answers import cause_words, device_name
    from crystalperf.query.trace.vocabulary import Vocabulary

    name = job.bottleneck
    if name == "unknown":
        return "not known"
    if name not in get_args(Cause):
        return device_name(name, known()) if name != "nothing" else name
    framework = frameworks().get(job.framework)  # its package may not be installed
    return cause_words(cast("Cause", name), Vocabulary() if framework is None else framework.vocabulary)


def _unread(count: int, folder: str) -> str:
    from crystalperf.cli.text import counted
    from crystalperf.fleet.summary import files_of

    rows = files_of(Path(folder), "problems").replace("'", "''")
    return (
        f"{counted(count, 'log')} could not be read. DuckDB says why:"
        f" SELECT path, what FROM '{rows}' WHERE severity = 'unread'"
    )


def _slower(fleet: Fleet) -> list[str]:
    from crystalperf.cli.text import counted
    from crystalperf.query.text.answers import measure_word

    if not fleet.watched_jobs:
        return ["No job has the six runs of one name and plan that it takes to tell whether it got slower."]
    scatter = f"; their runs scatter by {100 * (fleet.median_noise or 0):.0f} % (median)"
    if not fleet.regressions:
        return [f"None of {counted(fleet.watched_jobs, 'job')} with runs enough got slower{scatter}."]
    lines = [f"Slower than before, of {counted(fleet.watched_jobs, 'job')} with runs enough{scatter}"]
    for each in fleet.regressions:
        word = measure_word(each.measure)
        times = f"{each.before_ms / 1e3:.1f} to {each.after_ms / 1e3:.1f} s"
        if word != "runtime":
            times = f"{word} {each.before_ms:.0f} to {each.after_ms:.0f} ms"
        read = "" if each.input_ratio is None else f", reading {each.input_ratio:.2f} times as much"
        lines.append(
            f"  {each.name}: {times}"
            f" ({100 * (each.ratio - 1):+.0f} %) since {each.since}{read}; a run scatters by"
            f" {100 * each.noise:.0f} %, {each.runs_before} runs before, {each.runs_after} after;"
            f" the first of these: {each.path}"
        )
    return lines
