"""Time in which no unit ran, while workers were there."""

from __future__ import annotations

from collections.abc import Mapping

from crystalperf.query.results.advice import InspectCoordinator, InspectProgram
from crystalperf.query.results.answers import Cause
from crystalperf.query.results.findings import Coordinator, Finding, NoScope


def coordinator(alone_ms: Mapping[Cause, float], other_ms: Mapping[Cause, float]) -> list[Finding]:
    """What held the run up while workers were there and no unit ran."""
    unknown_ms = other_ms.get("coordinator", 0.0)
    is_mixed = 0.1 < unknown_ms / max(alone_ms["coordinator"], 1e-9) < 0.9
    return [
        NoScope(alone_ms["no scope"], "measured", InspectProgram()),
        Coordinator(
            alone_ms["coordinator"], "measured", InspectCoordinator(), unknown_ms=unknown_ms if is_mixed else None
        ),
    ]
