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
    """summarize many runs: the most wasteful jobs, possible savings, slower jobs

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
            metavar="PATH", help="logs: folders, files, globs, URLs, or @FILE with one per line", show_default=False
        ),
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="DIR", help="the fleet's folder, new or one to add to")
    ] = "fleet",
    engine: Annotated[
        str, typer.Option("--engine", metavar="ENGINE", help=f"the engine that reads the logs: {' or '.join(ENGINES)}")
    ] = "local",
    processes: Annotated[
        int, typer.Option("--processes", min=0, metavar="N", help="processes of the engine local; 0 for one per CPU")
    ] = 0,
    memory: Annotated[
        int,
        typer.Option(
            "--memory", min=0, metavar="MIB", help="memory limit of each process; 0 for an equal share of the machine"
        ),
    ] = 0,
    master: Annotated[
        str, typer.Option("--master", metavar="URL", help=f"the master of the engine {ENGINES[1]}", show_default=False)
    ] = "",
    conf: Annotated[
        list[str],
        typer.Option(
            "--conf", metavar="KEY=VALUE", help=f"a setting of {ENGINES[1]}; may be repeated", show_default=False
        ),
    ] = [],  # noqa: B006
    again: Annotated[bool, typer.Option("--again", help="retry logs that could not be read in earlier builds")] = False,
    as_json: AsJson = False,
) -> int:
    """read logs into Parquet tables, each log once

    \b
    If the command is killed, run it again to continue. A log that cannot be
    read becomes a row in the table `problems`.

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
        write_json({"schema": "crystalperf.fleet-build/2", **asdict(built)})
        return 0
    lines = [f"{counted(built.read, 'log')} read in {built.seconds:.1f} s, {built.known} already read before."]
    if built.not_logs:
        lines.append(f"{counted(built.not_logs, 'other file')} passed over: not logs.")
    if built.unread + built.known_unread:
        lines.append(_unread(built.unread + built.known_unread, built.folder))
        lines += [f"  {each}" for each in built.reasons]
    if built.known_unread:
        lines.append(f"{built.known_unread} of these could not be read in an earlier build; --again retries them.")
    if built.unplaced:
        first, more = built.unplaced[0], len(built.unplaced) - 1
        which = f"{first} and {more} more" if more else first
        lines.append(
            f"{counted(len(built.unplaced), 'recording')} of stacks matched no log: {which}. A fleet matches"
            " recordings by the application in their paths or processes, or by time, if there are at most 200. Put the"
            " application's id into the name of the file or its folder."
        )
    lines.append(f"Next: crystalperf fleet ask {shell_word(built.folder)}")
    write("".join(f"{printable(each)}\n" for each in lines))
    return 0


@app.command("ask")
def fleet_summary(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="the fleet's folder")] = "fleet",
    top: Annotated[int, typer.Option("--top", min=0, metavar="N", help="most rows of each table, 0 for all")] = 10,
    as_json: AsJson = False,
) -> int:
    """show the most wasteful jobs, possible savings and slower jobs

    \b
    Example:
      crystalperf fleet ask fleet
    """
    from dataclasses import asdict

    from crystalperf.cli.output import progress, write, write_json
    from crystalperf.fleet.summary import summarize

    with progress() as step:
        step("querying the tables")
        answer = summarize(Path(folder), top)
    if as_json:
        write_json({"schema": "crystalperf.fleet/2", **asdict(answer)})
    else:
        write(_text(answer))
    return 0


def _text(fleet: Fleet) -> str:
    from crystalperf.cli.text import counted, cut_right, printable

    days = f"{fleet.first_day} to {fleet.last_day}" if fleet.first_day else "dates unknown"
    share = 100 / fleet.core_hours if fleet.core_hours else 0.0
    lines = [
        f"{counted(fleet.runs, 'run')} of {counted(fleet.logs, 'log')}, {days}: {fleet.core_hours:.1f} core-hours.",
        f"Slots were idle for {fleet.idle_core_hours:.1f} core-hours ({share * fleet.idle_core_hours:.0f} %);"
        f" failed work took {fleet.lost_core_hours:.1f} ({share * fleet.lost_core_hours:.0f} %).",
    ]
    if fleet.unread_logs:
        lines.append(_unread(fleet.unread_logs, fleet.folder))
    for title, jobs in (("Most core-hours", fleet.by_core_hours), ("Most wasted (idle or lost)", fleet.by_waste)):
        lines += ["", f"{title:34s} runs  core-h  idle  lost  median [s]  bottleneck"]
        lines += [
            f"{cut_right(each.name, 34):34s} {each.runs:4d} {each.core_hours:7.2f} {each.idle_core_hours:5.2f}"
            f" {each.lost_core_hours:5.2f} {_seconds(each.median_runtime_ms):>11s}  {_held_up_by(each)}"
            for each in jobs
        ]
    if fleet.savings:
        lines += ["", "Largest savings over all runs           runs   hours    saved     90 % range"]
        lines += [
            f"{cut_right(each.question, 38):38s} {each.runs:5d} {each.hours_now:7.2f} {_hours(each.saved_hours):>8s}"
            f"   {_hours(each.saved_hours_range[0])} to {_hours(each.saved_hours_range[1])}"
            for each in fleet.savings
            if each.runs
        ]
        widest = max(fleet.savings, key=lambda each: each.common_share)
        lines.append(
            "The model has the same error in all runs, so more runs narrow a range only in part: up to"
            f" {100 * widest.common_share:.0f} % of its variance remains."
        )
    if fleet.recurring:
        lines += ["", "Recurring findings                   runs  jobs  cost [h]  of their runtime"]
        lines += [
            f"{cut_right(_RECURS.get(each.kind, each.kind), 36):36s} {each.runs:4d} {each.jobs:5d}"
            f" {each.cost_hours:9.3f} {100 * each.share:15.0f} %"
            for each in fleet.recurring
        ]
    lines += ["", *_slower(fleet)]
    lines += _held(fleet)
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
    "no-scope": "no job running (the program itself)",
    "no-worker": "waiting for workers",
    "driver": "only the driver busy",
    "no-task": "gaps without a running task",
    "starting-tasks": "overhead of short tasks",
    "straggler": "stragglers",
    "garbage-collection": "garbage collection",
    "wasted": "failed work",
    "cache-misses": "cached data that did not fit",
    "odd-use": "device time for little data",
    "input": "waiting for the next batch",
    "repeated-reads": "the same files read again",
    "small-output": "many small files written",
    "spilling": "spilling to disk",
    "compiling": "compiling code",
}
"""Findings by kind, in generic words because a fleet may have several frameworks; `--json` has the kind."""


def _held(fleet: Fleet) -> list[str]:
    """The what-ifs of runs, held against later runs, as one line for all jobs; none if no later run fits."""
    from statistics import median

    if not fleet.held:
        return []
    first, count = fleet.held[0], sum(each.predictions for each in fleet.held)
    inside = sum(each.predictions * each.inside_share for each in fleet.held) / count
    errors = [each.median_absolute_error_ratio for each in fleet.held]
    return [
        "",
        f"What-ifs held against later runs with these resources, {count} runs of {len(fleet.held)} jobs: absolute error"
        f" {100 * median(errors):.0f} % (median of jobs), {100 * inside:.0f} % in the 90 % range; most of {first.name}"
        f" ({first.predictions}, error {100 * first.median_error_ratio:+.0f} %)",
    ]


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
        return "unknown"
    if name not in get_args(Cause):
        return device_name(name, known()) if name != "nothing" else name
    framework = frameworks().get(job.framework)  # its package may not be installed
    return cause_words(cast("Cause", name), Vocabulary() if framework is None else framework.vocabulary)


def _unread(count: int, folder: str) -> str:
    from crystalperf.cli.text import counted
    from crystalperf.fleet.summary import files_of

    rows = files_of(Path(folder), "problems").replace("'", "''")
    return (
        f"{counted(count, 'log')} could not be read. To see why, run this in DuckDB:"
        f" SELECT path, text FROM '{rows}' WHERE severity = 'unread'"
    )


def _slower(fleet: Fleet) -> list[str]:
    from crystalperf.cli.text import counted
    from crystalperf.query.text.answers import measure_word

    if not fleet.watched_jobs:
        return ["Slower jobs: unknown. A comparison needs six runs with the same name and plan, and no job has them."]
    scatter = f"; their runs vary by {100 * (fleet.median_noise or 0):.0f} % (median)"
    if not fleet.regressions:
        return [f"None of {counted(fleet.watched_jobs, 'job')} with enough runs got slower{scatter}."]
    lines = [f"Slower than before, of {counted(fleet.watched_jobs, 'job')} with enough runs{scatter}"]
    for each in fleet.regressions:
        word = measure_word(each.measure)
        times = f"{each.before_ms / 1e3:.1f} to {each.after_ms / 1e3:.1f} s"
        if word != "runtime":
            times = f"{word} {each.before_ms:.0f} to {each.after_ms:.0f} ms"
        read = "" if each.input_ratio is None else f", reading {each.input_ratio:.2f} times as much"
        lines.append(
            f"  {each.name}: {times}"
            f" ({100 * (each.ratio - 1):+.0f} %) since {each.since}{read}; runs vary by"
            f" {100 * each.noise:.0f} %, {each.runs_before} runs before, {each.runs_after} after;"
            f" first slower run: {each.path}"
        )
    return lines
