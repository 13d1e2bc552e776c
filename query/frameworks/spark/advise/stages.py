"""Stages on the critical path, with the contribution of each to findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import TypeVar

from crystalperf.indexes.frozen import frozen
from crystalperf.query.diagnose.stage_statistics import StageStats
from crystalperf.query.results.findings import StageCost
from crystalperf.query.results.recommendations import Affected

C = TypeVar("C", bound=StageCost)


@frozen
class Stages:
    """Stages in full, and the contributions of these and others to findings."""

    details: Sequence[StageStats]
    costs: Sequence[StageCost]
    _by_stage: dict[str, list[StageCost]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for each in self.costs:
            self._by_stage.setdefault(each.id, []).append(each)

    def costs_of(self, detail: StageStats, kind: type[C]) -> list[C]:
        """The contributions of a stage to findings of a kind."""
        return [each for each in self._by_stage.get(detail.facts.id, ()) if isinstance(each, kind)]

    def pairs(self, kind: type[C]) -> Iterator[tuple[StageStats, C]]:
        """Each stage with its contributions to findings of a kind."""
        for detail in self.details:
            for cost in self.costs_of(detail, kind):
                yield detail, cost


def affected(detail: StageStats, others: int) -> Affected:
    """A stage with the facts that recommendations name."""
    facts = detail.facts
    return Affected(facts.id, facts.name, others, facts.tasks, facts.slots)


def reads_shuffle(detail: StageStats) -> bool:
    """Whether a stage reads shuffled output of other stages."""
    return "shuffle read" in detail.uses


def reads_storage(detail: StageStats) -> bool:
    """Whether a stage reads storage."""
    return "scan" in detail.uses
