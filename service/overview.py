"""The data of a run's page, from its verdict: the sentences that all interfaces share, and table rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from crystalperf.query.page.frontend import Frontend
from crystalperf.query.page.page_text import page_text
from crystalperf.query.results.answers import PathItem, PathOperator, Verdict
from crystalperf.query.text.answers import device_name, measure_word
from crystalperf.query.text.figures import counted
from crystalperf.query.text.folding import fold_path
from crystalperf.service.problems import sentence

MAX_SEGMENTS = 12
"""Maximum segments of the critical path; the longest are shown."""


def overview(verdict: Verdict) -> dict[str, Any]:
    """The data as JSON values.  Times are ms.

    path       segments of the critical path in order of time, or (by_operator) its operators if each segment has
               several; the last row is the sum of the short ones
    functions  the functions with the most time, with their resource in the index
    measure    the quantity that the times measure: runtime or latency
    """
    debug, header = verdict.debug, verdict.header
    if debug.path_operators:
        rows = [_row("", each.name, [each]) for each in debug.path_operators[:MAX_SEGMENTS]]
        if others := debug.path_operators[MAX_SEGMENTS:]:
            rows.append(_row("", counted(len(others), "shorter one"), others))
    else:
        shown, rest = fold_path(debug.critical_path, debug.runtime_ms, MAX_SEGMENTS)
        rows = [_row(each.id, each.name, [each]) for each in shown]
        if rest:
            rows.append(_row("", counted(len(rest), "shorter segment"), rest))
    return {
        "page_text": asdict(page_text(verdict, Frontend(with_remedy=sentence))),
        "measure": measure_word(header.measure),
        "runtime_ms": debug.runtime_ms,
        "resource_ms": dict(debug.resource_ms),
        "path": rows,
        "by_operator": bool(debug.path_operators),
        "functions": [
            {
                "name": each.qualified_name,
                "index": each.index_name,
                "device": device_name(each.resource, header.resources),
                "time_ms": each.time_ms,
            }
            for each in debug.functions
        ],
        "task": debug.vocabulary.task,
    }


def _row(identity: str, name: str, items: Sequence[PathItem | PathOperator]) -> dict[str, Any]:
    return {
        "id": identity,
        "name": name,
        "length_ms": sum(each.time_ms for each in items),
        "resource_ms": {part: sum(each.resource_ms.get(part, 0.0) for each in items) for part in items[0].resource_ms},
    }
