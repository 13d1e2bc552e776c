"""What is wrong with a trace, in sentences: for who writes a framework's reader, and tests it.

A run is answered from its trace as it stands.  What contradicts itself in it is no error, for logs are damaged: a unit
of no group counts for nothing, and an edge to nowhere ties nothing.  So a reader's slip shows in no message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, get_args

from crystalperf.query.trace.contract import EdgeKind, Trace
from crystalperf.query.trace.records import Columns

NEEDED = ("app_id", "framework", "started_at_ms", "duration_ms")
"""What the run itself must tell."""


def mistakes(trace: Trace) -> list[str]:
    """What contradicts itself in a trace: of each kind a sentence, with its first case and how many there are.

    Empty for a good trace.  A damaged log has some, whoever reads it.
    """
    units, edges = trace.units, trace.dependencies
    groups, workers = set(_column(trace.groups, "group_id")), set(_column(trace.workers, "worker_id"))
    numbers = _column(units, "unit_id")
    spans = list(zip(numbers, _column(units, "launch_ms"), _column(units, "finish_ms"), strict=True))
    places = list(zip(numbers, _column(units, "group_id"), _column(units, "worker_id"), strict=True))
    ties = list(zip(*(_column(edges, each) for each in ("source", "target", "kind")), strict=True))
    kinds = get_args(EdgeKind)
    return [
        *(f"the run has no {each}" for each in NEEDED if trace.run.get(each) in (None, "")),
        *_told(f"unit {each} is there {count} times" for each, count in Counter(numbers).items() if count > 1),
        *_told(
            f"unit {each} is of group {group!r}, and there is none" for each, group, _ in places if group not in groups
        ),
        *_told(
            f"unit {each} ran on worker {worker!r}, and there is none"
            for each, _, worker in places
            if worker not in workers
        ),
        *_told(f"unit {each} has no time: {start} to {end}" for each, start, end in spans if not start <= end),
        *_told(
            f"{source!r} → {target!r}: a group of that name is not there"
            for source, target, _ in ties
            if source not in groups or target not in groups
        ),
        *_told(
            f"{source!r} → {target!r} is {kind!r}, and an edge is one of {', '.join(kinds)}"
            for source, target, kind in ties
            if kind not in kinds
        ),
    ]


def _column(columns: Columns, name: str) -> list[Any]:
    values = columns.get(name)
    return [] if values is None else values.tolist()


def _told(cases: Iterable[str]) -> list[str]:
    """The first case, and how many more there are."""
    first, *more = list(cases) or [""]
    return [f"{first} ({len(more)} more)" if more else first] if first else []
