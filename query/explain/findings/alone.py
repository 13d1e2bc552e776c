"""Time in which no unit ran, while workers were there."""

from __future__ import annotations

from collections.abc import Mapping

from crystalperf.query.answers.values import Cause, Finding
from crystalperf.query.explain.wording import Terms
from crystalperf.query.frameworks import plural
from crystalperf.query.model.amounts import lasting

COMMITTING = "committing"
"""The rule of time in which the coordinator alone puts in place what units wrote; frameworks find it (Advisor.more)."""


def coordinator(terms: Terms, alone_ms: Mapping[Cause, float], other_ms: Mapping[Cause, float]) -> list[Finding]:
    """What held the run up while workers were there and no unit ran."""
    words = terms.words
    workers = words.workers
    unknown = other_ms.get("coordinator", 0.0)
    unseen = ""
    if 0.1 < unknown / max(alone_ms["coordinator"], 1e-9) < 0.9:
        unseen = f"; {lasting(unknown)} of it waiting or unknown"
    none = " and ".join(f"no {each}" for each in (words.scope, *words.scopes[1:]))
    doing = f": {words.coordinating}" if words.coordinating else ""
    advice = terms.advice("coordinator", f"look at what the {words.coordinator} does then")
    return [
        Finding(
            "no scope",
            alone_ms["no scope"],
            f"{none} was under way: the program itself, its start and its end",
            "measured",
            f"look at what the program does between its {plural(words.scope)}; {workers} do not shorten this",
        ),
        Finding(
            "coordinator",
            alone_ms["coordinator"],
            f"the {words.coordinator} alone{doing}, while no {words.unit} ran{unseen}",
            "measured",
            f"{advice[:1].lower()}{advice[1:]}; more or faster {workers} do not shorten this",
        ),
    ]
