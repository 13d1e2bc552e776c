"""Recommendations on joins of shuffled sides: broadcast the small one, or hash its partitions instead of sorting."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.regex import regex
from crystalperf.query.diagnose.stage_statistics import StageStats
from crystalperf.query.execution.execution import Execution
from crystalperf.query.frameworks.spark import plan_costs as costs
from crystalperf.query.frameworks.spark.advise.executors import DEFAULT_MEMORY, DRIVER_MEMORY, MEMORY
from crystalperf.query.frameworks.spark.memory import usable_bytes
from crystalperf.query.frameworks.spark.partitions import MIB
from crystalperf.query.frameworks.spark.plans import (
    ADAPTERS,
    WRITTEN_BYTES,
    WRITTEN_ROWS,
    Plan,
    amount,
    stages_with,
    table,
)
from crystalperf.query.frameworks.spark.rewrites import BroadcastSmallSide, HashShuffledJoin, JoinFacts, Side
from crystalperf.query.frameworks.spark.settings import flag, is_local, size_bytes, size_text
from crystalperf.query.frameworks.spark.sql_operators import Node
from crystalperf.query.results.recommendations import MODELLED, Candidate, SettingChange

THRESHOLD = "spark.sql.autoBroadcastJoinThreshold"
DEFAULT_THRESHOLD = 10 * MIB
HASH_THRESHOLD = "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold"

MOST_BYTES = 128 * MIB
"""Largest side in memory that is worth broadcasting: every executor holds it."""

OF_HEAP = 0.05
"""Largest share of the driver's and an executor's heap for it: the driver holds its rows, a hash table and blocks."""

MUCH_SMALLER = 3.0
"""Spark hashes a side only if the other one is this many times larger (muchSmaller of JoinSelectionHelper)."""

PARTITION_BYTES = 64 * MIB
"""Largest partition to hash: hash tables do not spill.  Spark compares the setting with the advisory size, too."""

_KIND = regex(r"\], ?\[[^\[]*\], ?(\w+)")
_KEY = regex(r"([A-Za-z_]\w*)#\d+")
_MAY_BUILD = {
    "Inner": (True, True), "Cross": (True, True), "LeftOuter": (False, True), "LeftSemi": (False, True),
    "LeftAnti": (False, True), "ExistenceJoin": (False, True), "RightOuter": (True, False),
}  # fmt: skip
"""By kind of join, whether its left and its right side may be broadcast."""

_KEEPS_ESTIMATE = frozenset({"filter", "project", "exchange", "sort", "hashaggregate", "objecthashaggregate", "scan"})
"""Operators above a scan whose result Spark estimates to be no larger than the scan's files."""


@frozen
class Input:
    """The input of a side of a join: its first operator, which is an exchange if the join had it shuffled."""

    node: Node
    rows: float
    size_bytes: float

    @property
    def is_shuffled(self) -> bool:
        return self.node.what.kind == "exchange"


@frozen
class ShuffledJoin:
    """A join of a plan, its sides by size, and whether the small one may be broadcast; `stage` computed it."""

    plan: Plan
    node: Node
    large: Input
    small: Input
    may_build: bool
    stage: StageStats
    kind: str

    @property
    def sorts(self) -> bool:
        return self.node.what.kind == "sortmergejoin"

    def facts(self, others: int = 0) -> JoinFacts:
        keys = dict.fromkeys(_KEY.findall(self.node.detail.partition("]")[0]))
        large, small = (_side(self.plan, each) for each in (self.large, self.small))
        filters = self.kind == "LeftSemi"
        return JoinFacts(self.stage.facts.id, self.node.name, tuple(keys), large, small, others, filters)


@frozen
class Gain:
    """A join with what another algorithm saves, at most `most_ms`."""

    join: ShuffledJoin
    ms: float
    most_ms: float


def candidates(execution: Execution, plans: Sequence[Plan], details: Mapping[str, StageStats]) -> Iterator[Candidate]:
    """Joins that another algorithm shortens: one recommendation for all that a setting changes, and one for each table
    to broadcast by a hint."""
    properties, most_bytes = execution.properties, largest_broadcast(execution.properties)
    by_setting: list[tuple[Gain, float]] = []
    by_hint: dict[object, list[Gain]] = {}
    hashed: list[Gain] = []
    for join in (each for plan in plans for each in shuffled_joins(plan, details)):
        if join.may_build and join.small.size_bytes <= most_bytes:
            gain = broadcast_gain(join, details)
            size = _size_by_setting(properties, join, most_bytes)
            if size is not None:
                by_setting.append((gain, size))
            else:
                by_hint.setdefault((join.facts().small.table, join.facts().keys), []).append(gain)
        elif join.sorts and MUCH_SMALLER * join.small.size_bytes <= join.large.size_bytes:
            hashed.append(hash_gain(join))
    if by_setting:
        change = _threshold(properties, max(size for _, size in by_setting), most_bytes)
        yield _broadcast([gain for gain, _ in by_setting], most_bytes, (change,))
    for gains in by_hint.values():
        yield _broadcast(gains, most_bytes)
    fitting = [each for each in hashed if partition_bytes(each.join) <= _hashed_bytes(execution)]
    if fitting:
        yield _hash(execution, fitting)


def shuffled_joins(plan: Plan, details: Mapping[str, StageStats]) -> Iterator[ShuffledJoin]:
    """Joins by sorting or by hashing partitions, as far as the log has the sizes of their sides."""
    for node in plan.nodes:
        if node.what.kind not in ("sortmergejoin", "shuffledhashjoin"):
            continue
        kind = _KIND.search(node.detail)
        inputs = [_input(plan, each) for each in plan.inputs(node, {"sort"})]
        stage = next((details[each] for each in _stages(plan, node) if each in details), None)
        if kind is None or len(inputs) != 2 or None in inputs or stage is None or stage.facts.path_ms <= 0:
            continue
        sides = [each for each in inputs if each is not None]
        small = min((0, 1), key=lambda place: sides[place].size_bytes)
        may_build = _MAY_BUILD.get(kind[1], (False, False))[small]
        yield ShuffledJoin(plan, node, sides[1 - small], sides[small], may_build, stage, kind[1])


def _input(plan: Plan, node: Node) -> Input | None:
    rows, size = plan.rows(node), amount(node, WRITTEN_BYTES)
    if rows is None and node.what.kind == "filter":
        rows = 0.0  # a metric that stays 0 is not in the log
    if rows is None:
        return None
    if node.what.kind == "exchange" and size is not None:
        return Input(node, rows, size)
    for below in plan.below(node):  # rows of about the width of those that were last shuffled
        written, size = amount(below, WRITTEN_ROWS), amount(below, WRITTEN_BYTES)
        if below.what.kind == "exchange" and written and size is not None:
            return Input(node, rows, size / written * rows)
    return None


def _stages(plan: Plan, node: Node) -> list[str]:
    """The stages of a join: those that updated its own metrics, or those of its generated code."""
    of_code = (each for each in plan.above(node) if each.what.kind == "wholestagecodegen")
    return [stage for each in (node, *of_code) for stage in each.metrics if stage]


def _side(plan: Plan, side: Input) -> Side:
    scans = plan.scans(side.node)
    name = table(scans[0]) if len(scans) == 1 else ""
    grouped = any(each.what.kind.endswith("aggregate") for each in plan.below(side.node))
    return Side(name, side.rows, side.size_bytes, grouped and bool(name))


# Broadcast ------------------------------------------------------------------------------------------------------------


def largest_broadcast(properties: Mapping[str, str]) -> float:
    """The largest side that may be broadcast, by the heaps of the driver and of executors."""
    heaps = [size_bytes(properties.get(DRIVER_MEMORY), "m") or DEFAULT_MEMORY]
    if not is_local(properties):
        heaps.append(size_bytes(properties.get(MEMORY), "m") or DEFAULT_MEMORY)
    return min(MOST_BYTES, OF_HEAP * min(heaps))


def broadcast_gain(join: ShuffledJoin, details: Mapping[str, StageStats]) -> Gain:
    """The saving of a broadcast: shuffling the large side, sorting both, and starting the tasks that join them."""
    large, small = join.large, join.small
    saved_ms, most_ms = 0.0, join.stage.facts.path_ms
    read_ms = sum(costs.READ.cpu_ms(each.rows, each.size_bytes) for each in (large, small) if each.is_shuffled)
    join_ms = costs.SORT_AND_MERGE.cpu_ms(large.rows + small.rows) if join.sorts else costs.HASH_JOIN.cpu_ms(large.rows)
    removed_ms = max(read_ms + join_ms - costs.PROBE.cpu_ms(large.rows), 0.0)
    saved_ms += costs.path_ms(join.plan, join.stage, removed_ms)
    if large.is_shuffled and not join.plan.is_reused(large.node):
        if _reads_only(join):
            saved_ms += join.stage.facts.path_ms * costs.starting_share(join.stage)
        for stage in (details[each] for each in stages_with(large.node, WRITTEN_BYTES) if each in details):
            saved_ms += costs.path_ms(join.plan, stage, costs.WRITE.cpu_ms(large.rows, large.size_bytes))
            most_ms += stage.facts.path_ms
    saved_ms -= costs.BROADCAST_MS_PER_BYTE * small.size_bytes
    return Gain(join, max(saved_ms, 0.0), most_ms)


def _reads_only(join: ShuffledJoin) -> bool:
    """Whether a join's stage reads no other exchange than those of its sides, so that a broadcast leaves none."""
    reading = [
        each
        for each in join.plan.nodes
        if each.what.kind == "exchange" and "records read" in each.metrics.get(join.stage.facts.id, {})
    ]
    return len(reading) <= 2


def _size_by_setting(properties: Mapping[str, str], join: ShuffledJoin, most_bytes: float) -> float | None:
    """The threshold by which Spark broadcasts a small side: it compares the size of files, as it knows no other before
    it runs; None if a larger threshold does not change the plan, or would have to be too large."""
    below = [each for each in join.plan.below(join.small.node) if each.what.kind not in ADAPTERS]
    scans = [each for each in below if each.what.kind == "scan"]
    if len(scans) != 1 or any(each.what.kind not in _KEEPS_ESTIMATE for each in below):
        return None
    files = amount(scans[0], "size of files read")
    if files is None or files <= (_threshold_bytes(properties) or 0.0) or files > most_bytes:
        return None
    return max(files, join.small.size_bytes)


def _threshold_bytes(properties: Mapping[str, str]) -> float | None:
    """The size up to which Spark broadcasts a side; None if it never does."""
    stated = properties.get(THRESHOLD)
    return DEFAULT_THRESHOLD if not stated else size_bytes(stated)


def _threshold(properties: Mapping[str, str], least_bytes: float, most_bytes: float) -> SettingChange:
    """A threshold of at least that, a power of two if possible, so that it does not vary from run to run."""
    stated = properties.get(THRESHOLD)
    after = float(DEFAULT_THRESHOLD)
    while after < least_bytes:
        after = 16.0 * MIB if after == DEFAULT_THRESHOLD else 2 * after
    after = min(after, most_bytes)
    was, text = _threshold_bytes(properties), size_text(after)
    before = stated or size_text(DEFAULT_THRESHOLD)
    return SettingChange(THRESHOLD, before, text, was, after, is_default=not stated)


def _broadcast(gains: Sequence[Gain], most_bytes: float, settings: tuple[SettingChange, ...] = ()) -> Candidate:
    first = max(gains, key=lambda each: each.ms)
    saving = costs.estimated(sum(each.ms for each in gains), sum(each.most_ms for each in gains))
    value = BroadcastSmallSide(
        price="setting" if settings else "code", because="plan", saving=saving, settings=settings,
        join=first.join.facts(len(gains) - 1), most_bytes=most_bytes,
    )  # fmt: skip
    return Candidate(value)


# Hash -----------------------------------------------------------------------------------------------------------------


def hash_gain(join: ShuffledJoin) -> Gain:
    """The saving of hashing the small side's partitions: sorting and merging both sides, less the hash tables."""
    rows = join.large.rows + join.small.rows
    sort_ms = costs.SORT_AND_MERGE.cpu_ms(rows)
    saved_ms = costs.path_ms(join.plan, join.stage, sort_ms - costs.HASH_JOIN.cpu_ms(join.large.rows))
    return Gain(join, max(saved_ms, 0.0), costs.path_ms(join.plan, join.stage, 2 * sort_ms))


def partition_bytes(join: ShuffledJoin) -> float:
    """The largest partition of a join's small side in memory, if that is as uneven as the stage's input."""
    return join.small.size_bytes / join.stage.facts.tasks * max(join.stage.facts.skew_bytes or 1.0, 1.0)


def _hashed_bytes(execution: Execution) -> float:
    """The largest partition that a task may hash, by its share of the heap; the table is larger than its rows."""
    name = DRIVER_MEMORY if is_local(execution.properties) else MEMORY
    heap = size_bytes(execution.properties.get(name), "m") or DEFAULT_MEMORY
    slots = max(execution.recorded.get("cores") or 1.0, 1.0)
    return min(PARTITION_BYTES, usable_bytes(heap, execution.properties) / slots / 4)


def _hash(execution: Execution, gains: Sequence[Gain]) -> Candidate:
    first = max(gains, key=lambda each: each.ms)
    properties = execution.properties
    settings: tuple[SettingChange, ...] = ()
    if flag(properties.get("spark.sql.adaptive.enabled")) is not False and has_hash_threshold(execution.version):
        before = properties.get(HASH_THRESHOLD)
        after = size_text(PARTITION_BYTES)
        settings = (SettingChange(HASH_THRESHOLD, before or "0", after, is_default=not before),)
    value = HashShuffledJoin(
        price="setting" if settings else "code", because="plan", saving=MODELLED, settings=settings,
        join=first.join.facts(len(gains) - 1), partition_bytes=partition_bytes(first.join),
    )  # fmt: skip
    saving = costs.estimated(sum(each.ms for each in gains), sum(each.most_ms for each in gains))
    return Candidate(replace(value, saving=saving))


def has_hash_threshold(version: str | None) -> bool:
    """Whether a version of Spark has the threshold for hashing partitions, since 3.2."""
    number = re.match(r"(\d+)\.(\d+)", version or "")
    return number is not None and (int(number[1]), int(number[2])) >= (3, 2)
