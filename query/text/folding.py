"""Shortening of long lists: the longest items are shown, and the rest is summed up."""

from __future__ import annotations

from collections.abc import Sequence

from crystalperf.query.results.answers import PathItem
from crystalperf.query.text.answers import WORTH_SHOWING


def fold_path(path: Sequence[PathItem], runtime_ms: float, most: int) -> tuple[list[PathItem], list[PathItem]]:
    """The path segments to show, in order of time, and those to sum up; a single remaining one is shown, too."""
    ranked = sorted(path, key=lambda item: item.start_ms - item.end_ms)
    worth = [item for item in ranked[:most] if item.end_ms - item.start_ms >= WORTH_SHOWING * runtime_ms]
    chosen = {id(item) for item in worth}
    rest = [item for item in path if id(item) not in chosen]
    if len(rest) == 1:
        return list(path), []
    return [item for item in path if id(item) in chosen], rest
