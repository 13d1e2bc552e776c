"""The report page of a run, with the URL from which its sliders request exact predictions."""

from __future__ import annotations

from crystalperf.query.run import Run
from crystalperf.report import render


def page(run: Run, live: dict[str, str] | None) -> bytes:
    """The page, in UTF-8."""
    return render(run, live=live).encode()
