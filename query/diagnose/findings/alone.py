"""Findings about time without a running unit while workers were available."""

from __future__ import annotations

from collections.abc import Mapping

from crystalperf.query.results.advice import InspectCoordinator, InspectProgram
from crystalperf.query.results.answers import Cause
from crystalperf.query.results.findings import Coordinator, Finding, NoScope


def coordinator(alone_ms: Mapping[Cause, float], other_ms: Mapping[Cause, float]) -> list[Finding]:
    """Critical-path time of the user's program and of the coordinator, while workers were available and no unit ran."""
    unknown_ms = other_ms.get("coordinator", 0.0)
    is_mixed = 0.1 < unknown_ms / max(alone_ms["coordinator"], 1e-9) < 0.9
    return [
        NoScope(alone_ms["no scope"], "measured", InspectProgram()),
        Coordinator(
            alone_ms["coordinator"], "measured", InspectCoordinator(), unknown_ms=unknown_ms if is_mixed else None
        ),
    ]
