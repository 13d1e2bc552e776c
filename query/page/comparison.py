"""All data of a comparison's page, from its answer and the run files of both sides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import crystalperf
from crystalperf.query.compare.pooling import typical
from crystalperf.query.page import timeline
from crystalperf.query.page.comparison_text import comparison_text
from crystalperf.query.page.flame_difference import SampledRun, flame_difference, sampled_run
from crystalperf.query.page.page import longest
from crystalperf.query.results.comparison_page import ComparisonPage, PageSide
from crystalperf.query.text.answers import header_facts

if TYPE_CHECKING:
    import duckdb

    from crystalperf.query.execution.execution import Execution
    from crystalperf.query.results.answers import Debug, Header
    from crystalperf.query.results.comparison import Comparison, Side

MAX_STAGES = 400
"""Maximum stages on a page: those whose time changed most."""


class PagedRun(Protocol):
    """A run of a side, as crystalperf.query.run.Run."""

    def header(self) -> Header:
        """Name, framework, duration and size of the run."""

    def debug(self, scope: str = "all") -> Debug:
        """Where the time of a scope went."""

    def execution(self, scope: str = "all") -> Execution:
        """A scope as arrays."""

    def reading(self) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
        """The locked, read-only connection."""


def comparison_page(
    comparison: Comparison,
    before: Sequence[PagedRun],
    after: Sequence[PagedRun],
    progress: Callable[[str], None] = lambda _: None,
    *,
    redacted: bool = False,
) -> ComparisonPage:
    """The data of the page of a comparison of these runs, in the order of its sides."""
    scope = comparison.scope
    shown = replace(comparison, stages=comparison.stages[:MAX_STAGES], functions=())  # those are in the flame graph
    progress("drawing the timelines")
    sides = [
        _side(runs, side, scope, [getattr(each, name) for each in shown.stages])
        for name, side, runs in (("before", comparison.before, before), ("after", comparison.after, after))
    ]
    progress("comparing stacks")
    flames = flame_difference(*(_sampled(runs, scope) for runs in (before, after)))
    header = before[0].header()
    return ComparisonPage(
        version=crystalperf.__version__,
        redacted=redacted,
        page_text=comparison_text(shown, header, [_any_samples(runs) for runs in (before, after)]),
        comparison=without_paths(shown),
        before=sides[0],
        after=sides[1],
        flames=flames,
    )


def _any_samples(runs: Sequence[PagedRun]) -> bool:
    """Whether a run of a side has samples."""
    return any(each.header().has_samples for each in runs)


def without_paths(comparison: Comparison) -> Comparison:
    """The comparison with the names by which the user gave the runs in place of the paths of their files."""
    before, after = (
        replace(side, runs=tuple(replace(each, run=each.given) for each in side.runs))
        for side in (comparison.before, comparison.after)
    )
    return replace(comparison, before=before, after=after)


def _sampled(runs: Sequence[PagedRun], scope: str) -> list[SampledRun]:
    found = []
    for run in runs:
        with run.reading() as connection:
            if (one := sampled_run(connection, run.execution(scope))) is not None:
                found.append(one)
    return found


def _side(runs: Sequence[PagedRun], side: Side, scope: str, ids: Sequence[str | None]) -> PageSide:
    """The run of a side that the page shows; `ids` are its stages by row of the compared stages."""
    run = runs[typical([each.runtime_ms for each in side.runs])]
    execution, debug = run.execution(scope), run.debug(scope)
    with run.reading() as connection:
        found = timeline.timeline(connection, execution)
    row = {each: number for number, each in enumerate(ids) if each is not None}
    several = f"typical of {len(side.runs)} runs" if len(side.runs) > 1 else ""
    name, *facts = header_facts(run.header())
    return PageSide(
        name=name,
        facts=tuple(each for each in (*facts, several) if each),
        resource_ms=debug.resource_ms,
        timeline=found,
        path=() if debug.stream is not None else longest(debug.critical_path),
        row=tuple(row.get(each, -1) for each in found.stages),
    )
