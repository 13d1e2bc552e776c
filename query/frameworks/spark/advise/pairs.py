"""Recommendations on joins that compare all pairs of rows, because their condition has no equality."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.regex import regex
from crystalperf.query.diagnose.stage_statistics import StageStats
from crystalperf.query.frameworks.spark import plan_costs as costs
from crystalperf.query.frameworks.spark.advise.scans import conjuncts
from crystalperf.query.frameworks.spark.plans import ROWS, Plan, amount, table
from crystalperf.query.frameworks.spark.rewrites import JoinByKey, JoinFacts, Rewriting, Side
from crystalperf.query.frameworks.spark.sql_operators import Node
from crystalperf.query.results.recommendations import GUESSED, Candidate

FEWEST_ROWS = 20
"""A side with fewer rows is a value or a short list, for which comparing all pairs is right."""

FEWEST_PAIRS = 1e7
"""Fewer pairs take less than a second or so."""

OUT = costs.Rate(200)
"""CPU time of a matching row in what follows the join."""

_JOINS = ("cartesianproduct", "broadcastnestedloopjoin")
_PREFIX = regex(r"^(?:CartesianProduct|BroadcastNestedLoopJoin)(?: Build(?:Left|Right),)?(?: (\w+)(?:,|$))?\s*")
_COLUMN = regex(r"[A-Za-z_]\w*#\d+")
_EQUALS = regex(r"\([^()]*#\d+L?\)? = [^()]*\(?[A-Za-z_]\w*#\d+L?\)*")
_COMPARES = regex(r"#\d+L?\)? (<|>|<=|>=) \(?[A-Za-z_]\w*#\d+")
_NUMBER = regex(r"#\d+L?")


@frozen
class Compared:
    """A join of all pairs of two sides; `matches` are the rows after its condition, or after a filter above it."""

    plan: Plan
    node: Node
    stage: StageStats
    rows: tuple[float, float]
    condition: str
    rewriting: Rewriting
    matches: float | None

    @property
    def pairs(self) -> float:
        return self.rows[0] * self.rows[1]

    def saved_ms(self) -> float:
        """The stage's time without that of reading both sides and of what uses the matches."""
        detail, rest_ms = self.stage, costs.SCAN.cpu_ms(sum(self.rows)) + OUT.cpu_ms(self.matches or 0.0)
        own_ms = detail.own_cpu_ms or detail.facts.task_ms - detail.facts.starting_ms
        share = max(1 - rest_ms / own_ms, 0.0) if own_ms > 0 else 0.0
        return detail.facts.path_ms * (1 - costs.starting_share(detail)) * min(share, costs.MAX_SHARE)


def candidates(plans: Sequence[Plan], details: Mapping[str, StageStats]) -> Iterator[Candidate]:
    """The join of all pairs that costs most, with the sum of all."""
    found = sorted((each for plan in plans for each in compared(plan, details)), key=lambda each: -each.saved_ms())
    if not found:
        return
    first, ms = found[0], sum({each.stage.facts.id: each.saved_ms() for each in found}.values())
    is_sure = first.rewriting in ("alternatives", "filter", "not-in")
    value = JoinByKey(
        price="code", because="plan", saving=costs.estimated(ms, ms) if is_sure else GUESSED,
        join=_facts(first, len(found) - 1), condition=_NUMBER.sub("", first.condition), rewriting=first.rewriting,
        pairs=first.pairs, matches=first.matches,
    )  # fmt: skip
    yield Candidate(value, at_most_ms=None if is_sure else ms)


def _facts(found: Compared, others: int) -> JoinFacts:
    sides = []
    for rows, node in zip(found.rows, found.plan.inputs(found.node), strict=True):
        scans = found.plan.scans(node)
        sides.append(Side(table(scans[0]) if len(scans) == 1 else "", rows, amount(node, "data size") or 0.0))
    large, small = sorted(sides, key=lambda each: -each.rows)
    keys = tuple(dict.fromkeys(_NUMBER.sub("", each) for each in _COLUMN.findall(found.condition)))
    return JoinFacts(found.stage.facts.id, found.node.name, keys, large, small, others)


def compared(plan: Plan, details: Mapping[str, StageStats]) -> Iterator[Compared]:
    """Joins of all pairs whose condition, or a filter above, relates columns of both sides."""
    for node in plan.nodes:
        if node.what.kind not in _JOINS or len(plan.inputs(node)) != 2:
            continue
        rows = [plan.rows(each) for each in plan.inputs(node)]
        stage = _stage(plan, node, details)
        if None in rows or stage is None or stage.facts.path_ms <= 0:
            continue
        left, right = (each or 0.0 for each in rows)
        if min(left, right) < FEWEST_ROWS or left * right < FEWEST_PAIRS:
            continue
        condition, matches = _PREFIX.sub("", node.detail), amount(node, ROWS)
        rewriting = None
        if condition:
            rewriting = how(condition)
        else:
            condition, matches = _filter_above(plan, node)
            rewriting = "filter" if condition and _EQUALS.search(condition) else how(condition) if condition else None
        if rewriting is not None:
            yield Compared(plan, node, stage, (left, right), condition, rewriting, matches)


def _stage(plan: Plan, node: Node, details: Mapping[str, StageStats]) -> StageStats | None:
    of_code = (each for each in plan.above(node) if each.what.kind == "wholestagecodegen")
    stages = (details[stage] for each in (node, *of_code) for stage in each.metrics if stage in details)
    return next(stages, None)


def _filter_above(plan: Plan, node: Node) -> tuple[str, float | None]:
    """The condition of a filter right above a join that relates its sides, and the rows after it."""
    for each in plan.above(node):
        if each.what.kind == "filter":
            condition = each.detail.removeprefix("Filter").strip()
            related = [part for part in conjuncts(condition) if len(set(_COLUMN.findall(part))) > 1]
            return (" AND ".join(related), amount(each, ROWS)) if related else ("", None)
        if each.what.kind not in ("project", "wholestagecodegen", "inputadapter", "columnartorow"):
            break
    return "", None


def how(condition: str) -> Rewriting:
    """How a condition without an equality that Spark can use can get one.

    >>> how("((a#1 = b#2) OR (c#3 = d#4))")
    'alternatives'
    >>> how("((t#1 >= begin#2) AND (t#1 < end#3))")
    'range'
    """
    if " OR isnull(" in condition and " = " in condition:
        return "not-in"
    if " OR " in condition and _EQUALS.search(condition):
        return "alternatives"
    comparisons = len(_COMPARES.findall(condition))
    return "range" if comparisons > 1 else "inequality" if comparisons else "function"
