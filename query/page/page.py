"""All data of a run's page, from its run file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import crystalperf
from crystalperf.query.page import flame_graph, graph, timeline
from crystalperf.query.page.grid import grid
from crystalperf.query.page.page_text import page_text
from crystalperf.query.results.page import PageData

if TYPE_CHECKING:
    import duckdb

    from crystalperf.query.advise.predictable_run import PredictableRun
    from crystalperf.query.execution.execution import Execution
    from crystalperf.query.page.frontend import Frontend
    from crystalperf.query.results.answers import PathItem, Verdict

MAX_PATH = 2_000
"""Maximum segments of the critical path on a page; the shortest are left out."""


def page_data(  # noqa: PLR0913 - what Run.page_data() knows, and its options by keyword
    run: PredictableRun,
    connection: duckdb.DuckDBPyConnection,
    execution: Execution,
    verdict: Verdict,
    frontend: Frontend,
    progress: Callable[[str], None],
    *,
    compiled: bool,
    full: bool,
) -> PageData:
    """The data of the page of the whole run, whose verdict is given; see Run.page_data()."""
    kept = graph.kept_stages(verdict.debug)
    progress("drawing the timeline")
    slots = timeline.timeline(connection, execution)
    progress("building the flame graph")
    tree = flame_graph.flame_graph(connection, execution, slots.stages)
    progress("predicting other settings")
    stages = [each for each in slots.stages if each in kept]
    answers = grid(run, execution, verdict, stages, frontend.with_remedy, compiled=compiled, full=full)
    debug = verdict.debug
    shorter = replace(
        debug,
        stages=tuple(each for each in debug.stages if each.id in kept),
        critical_path=longest(debug.critical_path),
    )
    return PageData(
        version=crystalperf.__version__,
        redacted=False,
        page_text=page_text(verdict, frontend),
        verdict=replace(verdict, run=frontend.run, debug=shorter),
        what_if=answers,
        timeline=slots,
        graph=graph.graph(connection, execution, debug, kept),
        flames=tree,
    )


def longest(path: Sequence[PathItem]) -> tuple[PathItem, ...]:
    """The longest segments, in order of time."""
    ranked = sorted(path, key=lambda each: each.start_ms - each.end_ms)[:MAX_PATH]
    return tuple(sorted(ranked, key=lambda each: each.start_ms))
