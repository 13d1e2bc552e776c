"""Answers that need no run: a run's header, figures in whole seconds, and what a framework is to a run."""

from __future__ import annotations

import re
from typing import Any

from crystalperf.indexes.resources import Resource, known
from crystalperf.query.frameworks import Framework
from crystalperf.query.frameworks.registry import get
from crystalperf.query.results.answers import Header
from crystalperf.query.results.words import Words

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


def run_by(framework: Framework, resources: tuple[Resource, ...] = known()) -> dict[str, Any]:
    """The fields of an Execution that its framework decides."""
    return {
        "words": Words(framework.name, framework.vocabulary, resources),
        "title": framework.title,
        "planner": framework.planner,
        "in_order": framework.reader.in_order,
    }


def figures(sentence: str) -> list[float]:
    """The numbers that a sentence says, in its order."""
    return [float(each) for each in re.findall(r"\d+(?:\.\d+)?", sentence)]


class Seconds:
    """Figures that an interface shows, in whole seconds."""

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
