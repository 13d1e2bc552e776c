"""`crystalperf ledger`: predictions held against later runs; and keeping them, after other commands have answered."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crystalperf.cli.output import print_message, progress, write, write_answer
from crystalperf.cli.page import Page
from crystalperf.cli.remember import remember
from crystalperf.cli.run_commands import other_runs
from crystalperf.cli.text import counted, printable
from crystalperf.indexes.errors import InputError
from crystalperf.query.text import ledger as words

if TYPE_CHECKING:
    from crystalperf.query.ledger.matching import KnownRun
    from crystalperf.query.results.ledger import Ledger

MATCHED_SHOWN = 3
MATCHES_SHOWN = 5
JOBS_SHOWN = 10
RECOMMENDATIONS_SHOWN = 5
ALL = 100_000


def ledger(
    names: Sequence[str], job: str, fleet: str, *, backtest: bool, remove: bool, full: bool, as_json: bool
) -> int:
    """Print the accuracy of kept predictions, or remove entries; returns the exit code."""
    if remove:
        return _remove(job)
    from crystalperf.query.run import ledger_with

    with progress() as step:
        runs = other_runs(names)
        known: list[KnownRun] = []
        if fleet:
            from crystalperf.fleet.later import known_runs

            step("reading the fleet")
            known = known_runs(Path(fleet))
        step("comparing predictions with later runs")
        answer = ledger_with(known, runs, job=job, backtest=backtest)
    if as_json:
        write_answer(answer)
    else:
        write(ledger_text(answer, full=full))
    for each in runs:  # known from now on
        remember(each.run, "ledger")
    return 0


def _remove(job: str) -> int:
    """Remove the entries of jobs with such a name, or all.  Raises InputError."""
    from crystalperf.query.ledger.store import place, remove

    path = place()
    if path is None or not path.exists():
        print_message("there is no ledger")
        return 0
    try:
        count = remove(path, (lambda entry: job.lower() in entry.run.name.lower()) if job else None)
    except OSError as error:
        raise InputError(f"{path}: cannot be changed ({error.strerror or error}); make its folder writable") from error
    print_message(f"removed {counted(count, 'entry')} of {path}")
    return 0


def ledger_text(answer: Ledger, *, full: bool = False) -> str:
    """The answer for the terminal."""
    page = Page()
    page.strong(printable(words.headline(answer)))
    for each in words.notes(answer):
        page.paragraph(printable(each))
    jobs = answer.jobs[: ALL if full else JOBS_SHOWN]
    if jobs:
        page.line()
        page.table(words.JOB_HEADS, [words.job_cells(each) for each in jobs], "<>>>>>>", cut=0)
        if len(jobs) < len(answer.jobs):
            page.line(f"and {counted(len(answer.jobs) - len(jobs), 'job')} more (--full)")
    _jobs(page, answer, *((ALL, ALL) if full else (MATCHED_SHOWN, MATCHES_SHOWN)))
    _recommendations(page, answer, ALL if full else RECOMMENDATIONS_SHOWN)
    return page.text()


def _jobs(page: Page, answer: Ledger, jobs: int, most: int) -> None:
    """Write the newest later runs of each job, and its accuracy over time if it has several months."""
    for job in [each for each in answer.jobs if each.matches][:jobs]:
        page.line()
        page.line(printable(f"{job.name}: predictions and later runs{_newest(most, len(job.matches))}"))
        page.table(words.MATCH_HEADS, [words.match_cells(each) for each in job.matches[:most]], "<<>>>><", cut=1)
        if len(job.months) > 1:
            page.line()
            rows = [words.month_cells(each.month, each.accuracy) for each in job.months]
            page.table(words.MONTH_HEADS, rows, "<>>>>>")


def _newest(most: int, count: int) -> str:
    return f", the newest {most} of {count}" if count > most else ""


def _recommendations(page: Page, answer: Ledger, most: int) -> None:
    found = [(each, job.name) for job in answer.jobs for each in job.recommendations]
    shown = [one for one in found if one[0].difference is not None][:most]
    if not found:
        return
    page.line()
    page.line(f"Recommendations: {len(found)} kept, {sum(each.status == 'applied' for each, _ in found)} applied")
    for each, name in shown if most < ALL else found:
        page.paragraph(printable(f"  {name}: {words.followed_sentence(each)}"), hanging=" " * 4)
