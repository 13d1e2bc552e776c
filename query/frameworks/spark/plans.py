"""Plans of queries as trees: what feeds an operator, its amounts, and the table that its rows come from."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import field

import duckdb

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.regex import regex
from crystalperf.query.frameworks.spark.engines import engine_of
from crystalperf.query.frameworks.spark.sql_operators import Node, plans

ADAPTERS = frozenset(
    {
        *("inputadapter", "wholestagecodegen", "columnartorow", "rowtocolumnar", "aqeshuffleread"),
        *("customshufflereader", "shufflequerystage", "broadcastquerystage", "resultquerystage"),
        *("tablecachequerystage", "adaptivesparkplan", "reusedexchange"),
        *("wholestagecodegentransformer", "columnarinputadapter", "inputiterator"),  # of Gluten
        *("resultstage", "shufflemapstage"),  # of Photon
    }
)
"""Operators that pass rows on unchanged."""

ROWS = "number of output rows"
WRITTEN_ROWS = "shuffle records written"
WRITTEN_BYTES = "data size"
"""Rows and bytes of an exchange; the bytes are those of rows in memory, before compression."""

_FOLDER = regex(r"/([^/\[\],\s]+)/?(?=[,\]\s]|$)")


@frozen
class Plan:
    """The last plan of a query; `nodes` in pre-order, so that a node's id is its place."""

    scope: str
    nodes: Sequence[Node]
    _children: dict[int, list[Node]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for each in self.nodes:
            if each.parent_id is not None:
                self._children.setdefault(each.parent_id, []).append(each)

    def children(self, node: Node) -> Sequence[Node]:
        """The operators that feed a node directly, adapters among them."""
        return self._children.get(node.node_id, ())

    def inputs(self, node: Node, through: Collection[str] = ()) -> list[Node]:
        """The operators that feed a node, without adapters and those of the kinds `through`."""
        return [self.skipped(each, through) for each in self.children(node)]

    def skipped(self, node: Node, through: Collection[str] = ()) -> Node:
        """A node, or the first below it that is neither an adapter nor of the kinds `through`."""
        while node.what.kind in ADAPTERS or node.what.kind in through:
            below = self.children(node)
            if len(below) != 1:
                break
            node = below[0]
        return node

    def below(self, node: Node) -> Iterator[Node]:
        """A node and all that feeds it, in pre-order."""
        waiting = [node]
        while waiting:
            found = waiting.pop()
            yield found
            waiting.extend(reversed(self.children(found)))

    def above(self, node: Node) -> Iterator[Node]:
        """The operators that use a node's rows, the nearest first."""
        while node.parent_id is not None:
            node = self.nodes[node.parent_id]
            yield node

    @property
    def is_foreign(self) -> bool:
        """Whether another engine than Spark's own runs a part of it, for which no cost is known."""
        return any(engine_of(each.name) for each in self.nodes)

    def rows(self, node: Node) -> float | None:
        """Rows that a node passed on, by its own count or that of the nearest operator below; None if unknown."""
        for name in (ROWS, WRITTEN_ROWS):
            if (found := amount(node, name)) is not None:
                return found
        below = self.children(node)
        passes = node.what.kind in ADAPTERS or node.what.kind in ("sort", "project", "exchange")
        return self.rows(below[0]) if passes and len(below) == 1 else None

    def is_reused(self, exchange: Node) -> bool:
        """Whether other parts of the plan use an exchange too, whose node has the same metrics."""
        return sum(each.what.kind == "exchange" and each.metrics == exchange.metrics for each in self.nodes) > 1

    def scans(self, node: Node) -> list[Node]:
        """The scans of storage below a node."""
        return [each for each in self.below(node) if each.what.kind == "scan"]


def amount(node: Node, name: str) -> float | None:
    """A metric of a node, summed over stages and the driver; None if the log has none."""
    found = [by_name[name] for by_name in node.metrics.values() if name in by_name]
    return sum(found) if found else None


def stages_with(node: Node, name: str) -> list[str]:
    """The stages whose tasks updated a metric of a node."""
    return [stage for stage, by_name in node.metrics.items() if stage and by_name.get(name, 0.0) > 0]


def table(scan: Node) -> str:
    """A name for what a scan reads: its table, or the last folder or file of its path."""
    words = scan.name.split()
    if len(words) > 2:
        return words[-1]
    paths = _FOLDER.findall(scan.location)
    return paths[0] if paths else scan.name.strip()


def plans_of(connection: duckdb.DuckDBPyConnection, scopes: Collection[str]) -> list[Plan]:
    """The plans of these queries that only Spark itself runs, with the metrics of tasks and of the driver."""
    found = [Plan(scope, nodes) for scope, nodes in plans(connection, scopes).items()]
    return [each for each in found if not each.is_foreign]
