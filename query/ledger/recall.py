"""The prediction that the ledger has of a run, for the runs that it is compared with."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from crystalperf.indexes.errors import CrystalPerfError
from crystalperf.query.ledger.facts import facts_of
from crystalperf.query.ledger.matching import KnownRun, held, predictions
from crystalperf.query.ledger.moments import moment
from crystalperf.query.ledger.store import place, read_about
from crystalperf.query.results.comparison import PredictedChange

if TYPE_CHECKING:
    from crystalperf.query.compare.compare import Given


def recalled(before: Given, after: Sequence[Given], actual_ms: float) -> PredictedChange | None:
    """The last prediction of a run for the resources of runs that began later, and that took `actual_ms`.

    None if the ledger has none, is off or cannot be read; and for trainings, of which it has the time of a step.
    """
    path = place()
    if path is None or before.run.header().steps:
        return None
    try:
        entries = read_about(path, before.run.header().app_id)
    except CrystalPerfError:
        return None
    made = [each for each in predictions(entries) if each.prediction.scope == before.scope]
    base = facts_of(before.run) if made else None
    if base is None:
        return None
    own = [each for each in made if each.run.identity == base.identity]
    facts = [found for each in after if (found := facts_of(each.run)) is not None]
    matches = list(held(own, [KnownRun(each, 1e3 * time.time()) for each in facts]))
    if not matches or len(matches) < len(after):
        return None
    last = matches[0].made
    return PredictedChange(
        tuple(last.prediction.setting.split(", ")),
        last.prediction.predicted_ms,
        last.prediction.range_ms,
        actual_ms,
        made_at=moment(last.at_ms),
    )
