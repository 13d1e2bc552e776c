"""Answers as text of 80 columns: the answer first, then reasons, recommendations, and what the run does not show.

An answer uses one time unit, and a dot for zero.  Names come from untrusted logs and are escaped (`printable`).  The
functions take an answer and return text.  See cli.screen for the first screen and cli.predictions for predictions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from crystalperf.cli import parts
from crystalperf.cli.page import Page
from crystalperf.cli.text import printable, time_unit
from crystalperf.query.advise.verdict import bottleneck_of
from crystalperf.query.text.sentences import text_of, texts_of

if TYPE_CHECKING:
    from crystalperf.query.results.answers import Debug, Header, Profiled

PATH_ROWS = 40
STAGE_ROWS = 12
OPERATOR_ROWS = 20
DISAGREEMENTS_SHOWN = 6


def debug_text(header: Header, debug: Debug) -> str:
    """The answer of `debug`."""
    unit = time_unit(debug.runtime_ms)
    page = Page()
    parts.heading(page, header)
    if debug.scope not in ("all", "whole"):
        page.line(f"of which {debug.scope}: {unit.text(debug.runtime_ms)}")
    page.line()
    parts.lead(page, bottleneck_of(debug), header, debug, unit)
    page.line()
    if debug.path_operators:
        parts.path_operators(page, debug, unit, OPERATOR_ROWS)
        page.line()
    parts.path_table(page, debug, unit, PATH_ROWS)
    parts.findings(page, debug, unit)
    if not debug.path_operators:  # otherwise the tasks of a stage differ by design, and there is no straggler
        parts.stages(page, debug, unit, STAGE_ROWS)
    parts.operators(page, header, debug, unit, OPERATOR_ROWS)
    parts.efficiency(page, debug, unit, OPERATOR_ROWS)
    parts.functions(page, debug, unit, len(debug.functions))
    parts.disagreements(page, debug, DISAGREEMENTS_SHOWN)
    parts.listed(
        page, f"Reported by {header.framework_title}", [text_of(each, debug.words) for each in debug.measurements]
    )
    parts.passed_over(page, debug)
    parts.scopes(page, debug, unit)
    parts.listed(page, "Assumed", texts_of(debug.assumptions, debug.words))
    parts.not_recorded_notes(page, header, debug)
    return page.text()


def profile_text(profiled: Profiled, next_command: str) -> str:
    """The answer of `profile`."""
    header = profiled.header
    page = Page()
    parts.heading(page, header)
    parts.problems(page, header)
    page.line(f"Saved as {printable(profiled.run)}")
    page.line(f"Next:   {next_command}")
    return page.text()


def listing_text(columns: Sequence[str], rows: Sequence[Sequence[str]], empty: str) -> str:
    """Plain rows as text, such as the list of indexes; the last column may wrap."""
    if not rows:
        return empty + "\n"
    page = Page()
    page.table(columns, [[printable(each) for each in row] for row in rows], "<" * len(columns))
    return page.text()
