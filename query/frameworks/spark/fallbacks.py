"""Where the operators of a plan ran: in an engine, on the JVM, or as a conversion between the two.

A fallback is a group of connected operators of a plan that stayed on the JVM although an engine ran others, with the
conversions of rows and columns around them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from crystalperf.indexes.regex import regex
from crystalperf.query.frameworks.spark.engines import Engine, engine_of, engine_of_plan
from crystalperf.query.frameworks.spark.names import PIPELINE, of_node
from crystalperf.query.frameworks.spark.plans import ADAPTERS

RanIn = Literal["engine", "jvm", "conversion"]

CONVERSIONS = frozenset({"columnartorow", "rowtocolumnar"})

_NO_WORK = ADAPTERS - CONVERSIONS | {"subquery", "reusedsubquery", "subquerybroadcast", "commandresult"}
"""Operators without work of their own, which connect those above and below them."""

_COMMAND = regex(r"(Gpu)?Execute |Create|Drop|Alter|Set|Show|Describe|LocalTableScan")
"""Commands, and rows of the program, which no engine takes over."""

Reasons = Mapping[str, Sequence[str]]
"""Why operators of a name stayed on the JVM, in the order of the plan; by '' if the log does not say which."""


class Known(NamedTuple):
    """An operator of a plan."""

    node_id: int
    parent_id: int | None
    name: str


@dataclass
class Placed:
    """Where an operator ran, and the fallback that it belongs to; `named` is whether it did work there itself."""

    node_id: int
    engine: str
    ran_in: RanIn
    fallback: int | None = None
    named: bool = True
    reason: str | None = None


def placed(plan: Sequence[Known], loaded: Engine | None, reasons: Reasons) -> list[Placed]:
    """The operators of a plan, in pre-order, that did work; none if the plan has no operator of an engine, unless the
    engine that the run `loaded` gives reasons for all of them."""
    engine = engine_of_plan(each.name for each in plan) or (loaded if reasons else None)
    return [] if engine is None else _Marking(plan, engine).placed(reasons)


class _Marking:
    """The marking of one plan."""

    def __init__(self, plan: Sequence[Known], engine: Engine) -> None:
        self.plan, self.engine = plan, engine
        self.kinds = [of_node(each.name).kind for each in plan]
        self.children: list[list[int]] = [[] for _ in plan]
        for each in plan:
            if each.parent_id is not None:
                self.children[each.parent_id].append(each.node_id)
        self.found: dict[int, Placed] = {}

    def placed(self, reasons: Reasons) -> list[Placed]:
        for each in self.plan:
            ran_in = self._ran_in(each)
            if ran_in is not None:
                named = self.kinds[each.node_id] not in _NO_WORK
                self.found[each.node_id] = Placed(each.node_id, self.engine.key, ran_in, named=named)
        self._number()
        for node_id, one in self.found.items():
            if one.ran_in == "conversion":
                one.fallback = self._neighbour(node_id)
        self._add_pipelines()
        self._explain(reasons)
        return [self.found[node_id] for node_id in sorted(self.found)]

    def _ran_in(self, node: Known) -> RanIn | None:
        kind = self.kinds[node.node_id]
        if kind in CONVERSIONS and (engine_of(node.name) or self._touches_engine(node.node_id, kind)):
            return "conversion"
        if engine_of(node.name) is not None:
            return "engine"
        works = kind not in _NO_WORK and kind != PIPELINE and not _COMMAND.match(node.name)
        return "jvm" if works else None

    def _touches_engine(self, node_id: int, kind: str) -> bool:
        """Whether Spark's own conversion has columns of the engine: others decode what Spark itself reads."""
        near = self._above(node_id) if kind == "rowtocolumnar" else self._below(node_id)
        return near is not None and engine_of(self.plan[near].name) is not None

    def _above(self, node_id: int) -> int | None:
        """The nearest operator above that does work."""
        parent = self.plan[node_id].parent_id
        while parent is not None and self.kinds[parent] in _NO_WORK:
            parent = self.plan[parent].parent_id
        return parent

    def _below(self, node_id: int) -> int | None:
        """The nearest operator below that does work, on the first side."""
        below = self.children[node_id]
        while below and self.kinds[below[0]] in _NO_WORK:
            below = self.children[below[0]]
        return below[0] if below else None

    def _number(self) -> None:
        """Number the groups of connected operators on the JVM."""
        count = 0
        for node_id, each in sorted(self.found.items()):
            if each.ran_in != "jvm":
                continue
            above = self._above(node_id)
            parent = None if above is None else self.found.get(above)
            if parent is not None and parent.ran_in == "jvm":
                each.fallback = parent.fallback
            else:
                each.fallback, count = count, count + 1

    def _neighbour(self, node_id: int) -> int | None:
        """The fallback next to a conversion; None for the one that only passes the result on."""
        for near in (self._above(node_id), self._below(node_id)):
            if near is not None and near in self.found and self.found[near].ran_in == "jvm":
                return self.found[near].fallback
        return None

    def _add_pipelines(self) -> None:
        """Generated code ran where its operators did: metrics of Spark time it as a whole."""
        for each in self.plan:
            if self.kinds[each.node_id] != PIPELINE:
                continue
            inside = self._inside(each.node_id)
            held = next((one for one in inside if one.ran_in == "jvm"), None) or next(iter(inside), None)
            if held is not None:
                self.found[each.node_id] = Placed(each.node_id, held.engine, held.ran_in, held.fallback, named=False)

    def _inside(self, node_id: int) -> list[Placed]:
        """The operators within generated code."""
        found: list[Placed] = []
        waiting = list(self.children[node_id])
        while waiting:
            inner = waiting.pop()
            kind, is_conversion = self.kinds[inner], self.kinds[inner] in CONVERSIONS
            if not is_conversion and (kind in ("inputadapter", PIPELINE) or engine_of(self.plan[inner].name)):
                continue
            if inner in self.found:
                found.append(self.found[inner])
            if not is_conversion:
                waiting += self.children[inner]
        return found

    def _explain(self, reasons: Reasons) -> None:
        """Add the reasons: in the order of the plan if there is one for each operator of a name, else all of them."""
        by_name: dict[str, list[Placed]] = {}
        for each in self.found.values():
            if each.ran_in == "jvm" and each.named:
                by_name.setdefault(self.plan[each.node_id].name.strip(), []).append(each)
        general = reasons.get("", ())
        for name, operators in by_name.items():
            given = reasons.get(name) or general
            operators.sort(key=lambda each: each.node_id)
            for number, each in enumerate(operators):
                each.reason = given[number] if len(given) == len(operators) else _joined(given)


def _joined(reasons: Collection[str]) -> str | None:
    return "; ".join(dict.fromkeys(reasons)) or None
