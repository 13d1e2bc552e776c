"""All data of a run's page, from its run file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import crystalperf
from crystalperf.query.page import flames, graph, timeline
from crystalperf.query.page.grid import grid
from crystalperf.query.page.page_text import said
from crystalperf.query.results.page import Picture

if TYPE_CHECKING:
    import duckdb

    from crystalperf.query.advise.asked_run import AskedRun
    from crystalperf.query.execution.execution import Execution
    from crystalperf.query.page.frontend import Door
    from crystalperf.query.results.answers import PathItem, Verdict

MOST_PATH = 2_000
"""Maximum segments of the critical path on a page; the shortest are left out."""


def picture(  # noqa: PLR0913 - what Run.picture() knows, and its options by keyword
    run: AskedRun,
    connection: duckdb.DuckDBPyConnection,
    execution: Execution,
    verdict: Verdict,
    door: Door,
    progress: Callable[[str], None],
    *,
    compiled: bool,
    full: bool,
) -> Picture:
    """The data of the page of the whole run, whose verdict is given; see Run.picture()."""
    kept = graph.kept_groups(verdict.debug)
    progress("drawing the timeline")
    lanes = timeline.timeline(connection, execution)
    progress("building the flame graph")
    tree = flames.flames(connection, execution, lanes.groups)
    progress("predicting other settings")
    groups = [each for each in lanes.groups if each in kept]
    answers = grid(run, execution, verdict, groups, door.tell, compiled=compiled, full=full)
    debug = verdict.debug
    shorter = replace(
        debug,
        groups=tuple(each for each in debug.groups if each.id in kept),
        critical_path=_longest(debug.critical_path),
    )
    return Picture(
        version=crystalperf.__version__,
        redacted=False,
        said=said(verdict, door),
        verdict=replace(verdict, run=door.run, debug=shorter),
        what_if=answers,
        timeline=lanes,
        graph=graph.graph(connection, execution, debug, kept),
        flames=tree,
    )


def _longest(path: Sequence[PathItem]) -> tuple[PathItem, ...]:
    """The longest segments, in order of time."""
    ranked = sorted(path, key=lambda each: each.start_ms - each.end_ms)[:MOST_PATH]
    return tuple(sorted(ranked, key=lambda each: each.start_ms))
