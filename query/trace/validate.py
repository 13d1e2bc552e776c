"""Validates a trace, for authors of a framework's reader and its tests.

Analysis takes a trace as it is.  Contradictions in it are not errors, because logs may be damaged: a task without a
stage and an edge without a target are ignored.  So analysis does not reveal a bug of a reader; this module does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, get_args

from crystalperf.query.trace.contract import EdgeKind, Trace
from crystalperf.query.trace.records import Columns

NEEDED = ("app_id", "framework", "started_at_ms", "duration_ms")
"""Required columns of the run."""


def validate(trace: Trace) -> list[str]:
    """The contradictions in a trace: a sentence for each kind, with its first case and the number of others.

    Empty for a valid trace.  The trace of a damaged log has some, with any reader.
    """
    tasks, edges = trace.tasks, trace.dependencies
    stages, workers = set(_column(trace.stages, "stage_id")), set(_column(trace.workers, "worker_id"))
    numbers = _column(tasks, "task_id")
    spans = list(zip(numbers, _column(tasks, "launch_ms"), _column(tasks, "finish_ms"), strict=True))
    places = list(zip(numbers, _column(tasks, "stage_id"), _column(tasks, "worker_id"), strict=True))
    ties = list(zip(*(_column(edges, each) for each in ("source", "target", "kind")), strict=True))
    kinds = get_args(EdgeKind)
    return [
        *(f"the run has no {each}" for each in NEEDED if trace.run.get(each) in (None, "")),
        *_first_of(f"task {each} is there {count} times" for each, count in Counter(numbers).items() if count > 1),
        *_first_of(
            f"task {each} is of stage {stage!r}, which does not exist"
            for each, stage, _ in places
            if stage not in stages
        ),
        *_first_of(
            f"task {each} ran on worker {worker!r}, which does not exist"
            for each, _, worker in places
            if worker not in workers
        ),
        *_first_of(f"task {each} has no time: {start} to {end}" for each, start, end in spans if not start <= end),
        *_first_of(
            f"{source!r} → {target!r}: no stage has that name"
            for source, target, _ in ties
            if source not in stages or target not in stages
        ),
        *_first_of(
            f"{source!r} → {target!r} is {kind!r}, and an edge is one of {', '.join(kinds)}"
            for source, target, kind in ties
            if kind not in kinds
        ),
    ]


def _column(columns: Columns, name: str) -> list[Any]:
    values = columns.get(name)
    return [] if values is None else values.tolist()


def _first_of(cases: Iterable[str]) -> list[str]:
    """The first case, and the number of others."""
    first, *more = list(cases) or [""]
    return [f"{first} ({len(more)} more)" if more else first] if first else []
