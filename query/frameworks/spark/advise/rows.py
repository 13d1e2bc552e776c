"""Recommendations on rows: skew between tasks, and windows that one task computes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from crystalperf.indexes.regex import regex
from crystalperf.query.diagnose.findings.parts import LITTLE_BYTES
from crystalperf.query.diagnose.stage_statistics import StageStats
from crystalperf.query.frameworks.spark.advise.changes import changed, changed_size
from crystalperf.query.frameworks.spark.advise.partitions import ADAPTIVE, ADVISED
from crystalperf.query.frameworks.spark.advise.stages import Stages, reads_shuffle
from crystalperf.query.frameworks.spark.partitions import size_set
from crystalperf.query.frameworks.spark.recommendations import (
    PartitionWindow,
    SplitKeys,
    SplitSkewedJoin,
    Splittable,
)
from crystalperf.query.frameworks.spark.rules import one_window
from crystalperf.query.frameworks.spark.settings import flag, number
from crystalperf.query.results.findings import IdleStage, MoreData, StageCost, StragglerStage
from crystalperf.query.results.recommendations import GUESSED, MODELLED, Candidate

_THRESHOLD = "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes"
_SPLITS = "spark.sql.adaptive.skewJoin.enabled"
_FACTOR = "spark.sql.adaptive.skewJoin.skewedPartitionFactor"
_FORCE = "spark.sql.adaptive.forceOptimizeSkewedJoin"
DEFAULT_FACTOR = 5.0
"""A partition is skewed if it has more than this many times the median, and more than the threshold."""

_CANNOT_SPLIT = regex(r"\], ?\[[^\[]*\], ?FullOuter")
_REPARTITIONS = regex(r"hashpartitioning\(.*\), REPARTITION_BY")
_GROUPS = regex(r"(Object|Sort)?(Hash)?Aggregate|FlatMapGroups|MapGroups|AggregateInPandas")


def skew(properties: Mapping[str, str], stages: Stages) -> Iterator[Candidate]:
    """Stages that read a shuffle and wait for the task of a large key, or whose tasks are mostly without input."""
    found = [pair for pair in stages.pairs(StageCost) if reads_shuffle(pair[0]) and _is_skew(*pair)]
    if not found:
        return
    most_ms = sum(cost.cost_ms for _, cost in found)
    detail, cost = max(found, key=lambda each: each[1].cost_ms)
    joins = any("Join" in each and "Broadcast" not in each for each in detail.operators)
    splitting = _split_skewed(properties, detail, f"{cost.id} {cost.name}") if joins else None
    if splitting is not None:
        yield Candidate(splitting, at_most_ms=most_ms)
        return
    value = SplitKeys(
        price="code", because="straggler", saving=MODELLED, evidence=cost, operator=_splittable(detail),
        slots=detail.facts.slots,
    )  # fmt: skip
    yield Candidate(value, at_most_ms=most_ms)


def _is_skew(detail: StageStats, cost: StageCost) -> bool:
    """Whether a stage waits for a task with more data than the others, or most of its tasks have none."""
    if isinstance(cost, StragglerStage):
        return isinstance(cost.cause, MoreData)
    return isinstance(cost, IdleStage) and cost.cause == "empty-tasks" and detail.read_bytes > LITTLE_BYTES


def _splittable(detail: StageStats) -> Splittable:
    """The operator that groups the rows of a key in a stage, by which salt is added."""
    if any("Window" in each for each in detail.operators):
        return "window"
    if any("Join" in each and "Broadcast" not in each for each in detail.operators):
        return "join"
    if any(_GROUPS.match(each) for each in detail.operators):
        return "aggregation"
    return "repartition" if any(_REPARTITIONS.search(each) for each in detail.details) else "unknown"


def _split_skewed(properties: Mapping[str, str], detail: StageStats, stage: str) -> SplitSkewedJoin | None:
    """Adaptive execution's own splitting of large keys, as far as settings prevent it; None if none does, or if this
    version may not have it."""
    enabled = flag(properties.get(ADAPTIVE))
    if enabled is None and {"AQEShuffleRead", "CustomShuffleReader"} & set(detail.operators):
        enabled = True
    most_bytes, threshold = detail.facts.most_bytes, size_set(properties, _THRESHOLD)
    if enabled is None or most_bytes <= 0 or any(_CANNOT_SPLIT.search(each) for each in detail.details):
        return None
    settings = [changed(properties, key, True) for key in (ADAPTIVE, _SPLITS) if flag(properties.get(key)) is False]
    if most_bytes <= threshold:  # it splits larger ones, into parts of the advisory size
        part_bytes = most_bytes / max(detail.facts.slots, 2)
        settings += [changed_size(properties, key, part_bytes) for key in (_THRESHOLD, ADVISED)]
    factor = number(properties.get(_FACTOR)) or DEFAULT_FACTOR
    if (detail.facts.skew_bytes or factor + 1) <= factor:
        settings.append(changed(properties, _FACTOR, 2, round(DEFAULT_FACTOR)))
    if not settings and _needs_force(properties, detail):
        settings.append(changed(properties, _FORCE, True, False))
    if not settings:
        return None
    return SplitSkewedJoin(
        price="setting", because="straggler", saving=MODELLED, settings=tuple(settings),
        stage=stage, largest_bytes=most_bytes, threshold_bytes=threshold if most_bytes <= threshold else None,
    )  # fmt: skip


def _needs_force(properties: Mapping[str, str], detail: StageStats) -> bool:
    """Whether adaptive execution did not split a join because what follows uses its partitioning by the key."""
    split = any("skewed" in each for each in detail.details if each.startswith("AQEShuffleRead"))
    uses = any(_GROUPS.match(each) or "Window" in each for each in detail.operators)
    return uses and not split and flag(properties.get(_FORCE)) is not True and "AQEShuffleRead" in detail.operators


def windows(stages: Stages) -> Iterator[Candidate]:
    """Windows over all rows at once, which one task computes."""
    costs = [cost for detail, cost in stages.pairs(IdleStage) if one_window(detail)]
    if costs:
        first = max(costs, key=lambda each: each.cost_ms)
        # Whether the program may rank rows in parts, nobody but its author knows; and their sort then compares the
        # keys of the parts too, which made a rerun longer (research/2026-11-29-advice-proven.md).
        value = PartitionWindow(price="inspect", because="idle-slots", saving=GUESSED, stage=f"{first.id} {first.name}")
        yield Candidate(value, at_most_ms=sum(each.cost_ms for each in costs))
