"""Answers that need no run: a run's header, and the figures of a door in whole seconds."""

from __future__ import annotations

import re

from crystalperf.indexes.resources import known
from crystalperf.query.frameworks.registry import get
from crystalperf.query.results.answers import Header

HEADER = Header(
    app_id="app-1",
    name="nightly",
    framework="spark",
    framework_title="Spark",
    framework_version="4.0.1",
    measure="makespan",
    workers=2,
    workers_in_all=2,
    slots_per_worker=4,
    duration_ms=26_000,
    complete=True,
    problems=(),
    indexes=("spark-4.0.1",),
    has_samples=True,
    resources=known(),
    vocabulary=get("spark").vocabulary,
)


def figures(sentence: str) -> list[float]:
    """The numbers that a sentence says, in its order."""
    return [float(each) for each in re.findall(r"\d+(?:\.\d+)?", sentence)]


class Seconds:
    """Figures of a door, in whole seconds."""

    def number(self, ms: float, /) -> str:
        return f"{ms / 1000:.0f}"

    def text(self, ms: float, /) -> str:
        return f"{ms / 1000:.0f} s"

    def is_nothing(self, ms: float, /) -> bool:
        return ms < 500

    def percent(self, part: float, whole: float, /) -> str:
        return f"{100 * part / whole:.0f} %"

    def change(self, after: float, before: float, /) -> str:
        return f"{after / before - 1:+.0%}"
