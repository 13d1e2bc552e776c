"""Findings about time without a running task while workers were available."""

from __future__ import annotations

from collections.abc import Mapping

from crystalperf.query.results.advice import InspectDriver, InspectProgram
from crystalperf.query.results.answers import Cause
from crystalperf.query.results.findings import AtEnd, AtStart, Driver, Finding, NoScope


def driver(alone_ms: Mapping[Cause, float], other_ms: Mapping[Cause, float], scopes: int) -> list[Finding]:
    """Critical-path time of the user's program and of the driver, while workers were available and no task ran.

    `scopes` is the number of scopes of the framework's primary kind.
    """
    unknown_ms = other_ms.get("driver", 0.0)
    is_mixed = 0.1 < unknown_ms / max(alone_ms["driver"], 1e-9) < 0.9
    found: list[Finding] = [
        AtStart(alone_ms.get("start", 0.0), "measured", InspectProgram("start")),
        NoScope(alone_ms["no scope"], "measured", InspectProgram("between")),
        AtEnd(alone_ms.get("end", 0.0), "measured", InspectProgram("end")),
        Driver(alone_ms["driver"], "measured", InspectDriver(scopes), unknown_ms=unknown_ms if is_mixed else None),
    ]
    return [each for each in found if each.cost_ms > 0]
