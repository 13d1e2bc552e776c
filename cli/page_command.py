"""`crystalperf report`, and the pages that `analyze --html` and `compare --html` write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from crystalperf.cli.output import progress, write
from crystalperf.cli.remedies import with_remedy
from crystalperf.cli.run_commands import next_command
from crystalperf.cli.runs import find_run, run_word
from crystalperf.cli.text import printable, shell_word
from crystalperf.query.page.frontend import Frontend

if TYPE_CHECKING:
    from crystalperf.query.results.answers import Verdict
    from crystalperf.query.results.comparison import Comparison
    from crystalperf.query.run import Other, Run


def report(run_text: str, output: str, *, force: bool, redact: bool, full: bool) -> int:
    """Write the page of a run, and print its path."""
    run = find_run(run_text)
    place = output or f"{run.path.name.removesuffix('.duckdb')}{'-redacted' if redact else ''}.html"
    with progress() as step:
        write_page(run, place, step, replace=force, redact=redact, full=full)
    write(f"Saved as {printable(place)}\n")
    return 0


def write_page(
    run: Run,
    place: str,
    step: Callable[[str], None],
    *,
    verdict: Verdict | None = None,
    replace: bool = False,
    redact: bool = False,
    full: bool = False,
) -> None:
    """Write the page of a run to `place`; `verdict` is the run's verdict, if already computed.

    Raises InputError if `place` is another kind of file, or not writable.
    """
    from crystalperf import report

    path, application = Path(place), report.shown(run.header().app_id)
    report.check(path, application, replace=replace)  # fail before the work
    with run.redacted() if redact else nullcontext(run) as shown:
        frontend = Frontend("RUN" if redact else shell_word(run_word(run.path)), with_remedy, lambda _step: "")
        answer = shown.verdict(step, paged=True) if verdict is None or redact else verdict
        if not redact:
            frontend = Frontend(frontend.run, with_remedy, lambda found: next_command(found, run.path))
        data = shown.page_data(answer, frontend, step, full=full)
        step("writing the page")
        # A redacted page hides the application id, so pass the run's own: the page may replace a page of that run.
        report.keep(path, report.render(data), application, replace=replace)


def check_comparison(before: Sequence[Other], after: Sequence[Other], place: str, *, replace: bool) -> str:
    """The name of a comparison's page.  Raises InputError unless it may be written to `place`."""
    from crystalperf import report

    sides = ([each.run.header().app_id for each in side] for side in (before, after))
    name = report.comparison_name(*sides)
    report.check(Path(place), name, replace=replace)
    return name


def write_comparison(
    before: Sequence[Other],
    after: Sequence[Other],
    answer: Comparison,
    place: str,
    name: str,
    step: Callable[[str], None],
    *,
    replace: bool,
    redact: bool,
) -> None:
    """Write the page of a comparison; a redacted one is computed again from runs without names."""
    from crystalperf import report
    from crystalperf.query.run import comparison_page

    data = comparison_page(before, after, scope=answer.scope, answer=answer, redact=redact, progress=step)
    step("writing the page")
    report.keep(Path(place), report.render_comparison(data), name, replace=replace)
