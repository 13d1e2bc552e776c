"""Pages of runs and of comparisons, as the service shows them."""

from __future__ import annotations

from crystalperf.query.results.comparison_page import ComparisonPage
from crystalperf.query.run import Run
from crystalperf.report import render, render_comparison


def page(run: Run, live: dict[str, str] | None) -> bytes:
    """The page of a run, in UTF-8; its sliders request exact predictions from the URL in `live`."""
    return render(run, live=live).encode()


def comparison(data: ComparisonPage) -> bytes:
    """The page of a comparison, in UTF-8."""
    return render_comparison(data).encode()
