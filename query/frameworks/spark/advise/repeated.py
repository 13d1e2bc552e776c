"""Recommendations on work that one query does twice: exchanges of the same rows that Spark did not reuse."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.regex import regex
from crystalperf.query.diagnose.stage_statistics import StageStats
from crystalperf.query.execution.execution import Execution
from crystalperf.query.frameworks.spark.advise.partitions import A_TASK_BYTES
from crystalperf.query.frameworks.spark.advise.scans import conjuncts
from crystalperf.query.frameworks.spark.plans import ADAPTERS, WRITTEN_BYTES, WRITTEN_ROWS, Plan, amount, table
from crystalperf.query.frameworks.spark.rewrites import ReuseExchange
from crystalperf.query.frameworks.spark.settings import flag
from crystalperf.query.frameworks.spark.sql_operators import Node
from crystalperf.query.results.recommendations import Candidate, Saving, SettingChange

REUSE = "spark.sql.exchange.reuse"

LEAST, MOST, USUAL = 0.3, 1.0, 0.7
"""Range and middle of the saving, as factors of the time of the second computation: the first one has to keep its rows,
and reads more columns if the two differ in these."""

CACHING_MS = 2500.0
"""Time that caching adds to a query: code that is generated for it, another job, and conversion of its rows.  Two lab
jobs lost 0.5 and 4 s in comparison with the middle above (research/2026-11-29-advice-proven.md)."""

_NUMBER = regex(r"#\d+L?|, \[plan_id=\d+\]")
_KEYS = regex(r"keys?=\[([^\]]*)\]")
_PARTITIONING = regex(r"(\w+partitioning)\((.*)\)")
_COUNT = regex(r"hashpartitioning\(.*, (\d{1,9})\)")
_LISTS = regex(r"\[([^\]]*)\]")
_IGNORED = ADAPTERS | {"project", "sort"}


@frozen
class Repeated:
    """Exchanges of a plan that computed the same rows; all but the first were unnecessary."""

    plan: Plan
    exchanges: tuple[Node, ...]
    stages: tuple[StageStats, ...]
    is_same: bool

    @property
    def cost_ms(self) -> float:
        """Time that the repeated computations took of all slots, at most their time on the critical path and of tasks
        that ran at the same time."""
        return sum(each.facts.task_ms / max(each.facts.slots, 1) for each in self.stages)

    @property
    def fewer_partitions(self) -> int | None:
        """Partitions that are enough for the rows, if the shuffle makes at least twice as many: a lab run with 200 of
        cached rows took 25 s, with 2 of them 15, without a cache 17."""
        made = _COUNT.search(self.exchanges[0].detail)
        size = amount(self.exchanges[0], WRITTEN_BYTES) or 0.0
        enough = max(self.stages[0].facts.slots, math.ceil(size / A_TASK_BYTES))
        return enough if made and 0 < 2 * enough <= int(made[1]) else None


def candidates(execution: Execution, plans: Sequence[Plan], details: Mapping[str, StageStats]) -> Iterator[Candidate]:
    """The rows whose second computation cost most: by the setting that prevents reuse, or by caching them."""
    found = sorted((each for plan in plans for each in repeated(plan, details)), key=lambda each: -each.cost_ms)
    if not found:
        return
    is_off = flag(execution.properties.get(REUSE)) is False
    same = [each for each in found if each.is_same] if is_off else found
    first = (same or found)[0]
    cost_ms = sum(each.cost_ms for each in same or found)
    tables = dict.fromkeys(table(each) for each in first.plan.scans(first.exchanges[0]))
    caching_ms = 0.0 if is_off and same else CACHING_MS
    usual_ms, least_ms, most_ms = (share * cost_ms - caching_ms for share in (USUAL, LEAST, MOST))
    value = ReuseExchange(
        price="setting" if is_off and same else "code", because="plan",
        saving=Saving("modelled", usual_ms, (least_ms, most_ms)),
        settings=(SettingChange(REUSE, False, True),) if is_off and same else (),
        stage=first.stages[0].facts.id, tables=tuple(tables), times=len(first.exchanges),
        rows=amount(first.exchanges[0], WRITTEN_ROWS) or 0.0, size_bytes=amount(first.exchanges[0], WRITTEN_BYTES),
        is_same=first.is_same, others=len(same or found) - 1,
        partitions=None if is_off and same else first.fewer_partitions,
    )  # fmt: skip
    yield Candidate(value)


def repeated(plan: Plan, details: Mapping[str, StageStats]) -> Iterator[Repeated]:
    """The largest parts of a plan that were computed more than once."""
    groups: dict[Hashable, list[Node]] = {}
    for node in plan.nodes:
        is_reuse = any(each.what.kind == "reusedexchange" for each in plan.above(node))
        if node.what.kind == "exchange" and amount(node, WRITTEN_ROWS) and plan.scans(node) and not is_reuse:
            groups.setdefault(signature(plan, node), []).append(node)
    inside: set[int] = set()
    for same in groups.values():  # in pre-order: the largest part comes first
        if len(same) < 2 or any(each.node_id in inside for each in same):
            continue
        for each in same:
            inside |= {below.node_id for below in plan.below(each)}
        kept = _stages(plan, same[0])
        again = {stage for each in same[1:] for stage in _stages(plan, each)} - kept
        found = tuple(details[each] for each in sorted(again) if each in details and details[each].facts.path_ms > 0)
        if found:
            texts = {tuple(_NUMBER.sub("", below.detail) for below in plan.below(each)) for each in same}
            yield Repeated(plan, tuple(same), found, len(texts) == 1)


def _stages(plan: Plan, exchange: Node) -> set[str]:
    """The stages that computed the rows of an exchange, without the one that read them."""
    found = {stage for stage, metrics in exchange.metrics.items() if WRITTEN_ROWS in metrics}
    return found | {stage for each in plan.below(exchange) if each is not exchange for stage in each.metrics if stage}


def signature(plan: Plan, node: Node) -> Hashable:
    """The computation of a part of a plan, without the columns that it selects and aggregates."""
    parts: list[Hashable] = []
    for each in plan.below(node):
        kind, text = each.what.kind, _NUMBER.sub("", each.detail)
        if kind in _IGNORED:
            continue
        if kind == "scan":
            parts.append((kind, each.location or each.name))
        elif kind == "filter":
            conditions = conjuncts(text.removeprefix("Filter").strip())
            parts.append((kind, frozenset(one for one in conditions if not one.startswith("isnotnull("))))
        elif kind == "exchange":
            match = _PARTITIONING.search(text)
            parts.append((kind, match[0] if match else text.partition(",")[0]))
        elif match := _KEYS.search(text):  # by sorting or hashing, as the functions need it
            parts.append(("aggregate", match[1]))
        elif kind.endswith("join"):
            parts.append((kind, *_LISTS.findall(text)[:2]))
        else:
            parts.append((kind, text))
    # A filter of nulls alone depends on the columns that are selected.
    return tuple(each for each in parts if each != ("filter", frozenset()))
