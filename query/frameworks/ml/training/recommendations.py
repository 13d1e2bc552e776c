"""Kinds of recommendations of trainings alone."""

from __future__ import annotations

from typing import ClassVar

from crystalperf.indexes.frozen import frozen
from crystalperf.query.results.recommendations import Recommendation


@frozen(kw_only=True)
class CollectTraces(Recommendation):
    """Collect the traces of all `ranks`: how long collectives waited for the `missing` ones is unknown."""

    kind: ClassVar[str] = "collect-traces"

    ranks: int
    missing: int
