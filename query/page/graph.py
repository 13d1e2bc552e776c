"""The execution DAG of a run with each stage's time and spread, and the plans of its scopes."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from crystalperf.indexes.resources import with_other
from crystalperf.query import sql
from crystalperf.query.results.page import Graph, GraphNode, GraphScope, PlanNode, Spread
from crystalperf.query.text.figures import counted, grouped

if TYPE_CHECKING:
    import duckdb

    from crystalperf.query.execution.execution import Execution
    from crystalperf.query.results.answers import Debug

QUANTILES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)

MAX_STAGES = 400
"""Maximum stages on a page, those with the most critical-path time and the longest first."""

MAX_OPERATORS = 2_000
"""Maximum operators of plans on a page; the latest plans are left out."""

_LONGEST_DETAIL = 300


def kept_stages(debug: Debug) -> frozenset[str]:
    """The ids of the stages on the page."""
    ranked = sorted(debug.stages, key=lambda each: (-each.path_ms, -each.task_ms))
    return frozenset(each.id for each in ranked[:MAX_STAGES])


def graph(connection: duckdb.DuckDBPyConnection, execution: Execution, debug: Debug, kept: Collection[str]) -> Graph:
    """The execution DAG of the kept stages, in recorded time; `debug` is the diagnosis of the same scope."""
    path_ms: dict[str, float] = {}
    for item in debug.critical_path:
        path_ms[item.id] = path_ms.get(item.id, 0.0) + item.end_ms - item.start_ms
    facts = {each.id: each for each in debug.stages}
    # Tasks that run one after the other are parts of the same work, so their spread is not a sign of skew.
    spreads = {} if execution.in_order else _spreads(connection, execution)
    nodes: list[GraphNode] = []
    connecting = _connecting(execution, kept)
    for node in execution.dag.nodes.values():
        if node.node_id not in kept and node.node_id not in connecting:
            continue
        stage = facts.get(node.node_id)
        if stage is not None:
            resource_ms = stage.resource_ms
        elif node.resource is not None:
            resource_ms = dict.fromkeys(with_other(execution.names), 0.0)
            resource_ms[node.resource] = node.end_ms - node.start_ms
        else:
            parts = execution.driver.between(node.start_ms, node.end_ms)
            resource_ms = dict(zip(with_other(execution.names), parts.tolist(), strict=True))
        recorded = execution.clock.recorded(node.start_ms, node.end_ms) or [(node.start_ms, node.end_ms)]
        nodes.append(
            GraphNode(
                id=node.node_id,
                kind="stage" if node.stage is not None else "driver" if node.resource is None else "transfer",
                name=node.name,
                scope=node.scope_id,
                start_ms=recorded[0][0],
                end_ms=recorded[-1][1],
                path_ms=path_ms.get(node.node_id, 0.0),
                resource_ms=resource_ms,
                tasks=0 if stage is None else stage.tasks,
                spread=spreads.get(node.node_id),
            )
        )
    number = {node.id: position for position, node in enumerate(nodes)}
    edges = [
        (number[source], number[target], dependency.kind)
        for (source, target), dependency in execution.dag.edges.items()
        if source in number and target in number
    ]
    operators, left_out = _plans(connection, debug)
    return Graph(
        nodes=tuple(nodes),
        source=tuple(each[0] for each in edges),
        target=tuple(each[1] for each in edges),
        edge_kind=tuple(each[2] for each in edges),
        scopes=_scopes(connection, execution),
        operators=operators,
        quantiles=QUANTILES,
        reduced=_reduced(len(kept), len(facts), left_out, execution.words.vocabulary.stage),
    )


def _reduced(kept: int, stages: int, operators_left_out: int, stage: str) -> str:
    """A sentence on the stages and operators that the page leaves out; '' if it has all."""
    found = []
    if stages > kept:
        found.append(f"{grouped(kept)} of {counted(stages, stage)} are shown, those with most critical-path time")
    if operators_left_out:
        found.append(f"{counted(operators_left_out, 'operator')} of the plans are left out")
    return "; ".join(found)


def _connecting(execution: Execution, kept: Collection[str]) -> set[str]:
    """The ids of driver intervals and transfers with an edge to a kept stage, or to each other."""
    nodes, found = execution.dag.nodes, set()
    for source, target in execution.dag.edges:
        for one, other in ((source, target), (target, source)):
            if nodes[one].stage is None and (other in kept or nodes[other].stage is None):
                found.add(one)
    return found


def _spreads(connection: duckdb.DuckDBPyConnection, execution: Execution) -> dict[str, Spread]:
    quantiles = list(QUANTILES)
    bounds = [quantiles, quantiles, execution.scope.start_ms, execution.scope.end_ms]
    rows = connection.execute(sql.text("task_spread"), bounds).fetchall()
    return {stage: Spread(tuple(durations), tuple(read)) for stage, durations, read in rows}


def _scopes(connection: duckdb.DuckDBPyConnection, execution: Execution) -> tuple[GraphScope, ...]:
    rows = connection.execute(
        """
        SELECT scope_id, kind, coalesce(name, scope_id), parent_id, start_ms, end_ms, status FROM scopes
        WHERE start_ms < $2 AND coalesce(end_ms, $2) > $1
        ORDER BY start_ms, length(scope_id), scope_id
        LIMIT $3
        """,
        [execution.scope.start_ms, execution.scope.end_ms, MAX_OPERATORS],
    ).fetchall()
    return tuple(GraphScope(*row) for row in rows)


def _plans(connection: duckdb.DuckDBPyConnection, debug: Debug) -> tuple[tuple[PlanNode, ...], int]:
    """The operators of all plans in order, with their attributed times, and the number of those left out."""
    known = {(each.scope, each.node_id): each for each in debug.operators if each.node_id is not None}
    rows = connection.execute(
        "SELECT scope_id, node_id, parent_id, name, coalesce(detail, '') FROM operators ORDER BY scope_id, node_id"
    ).fetchall()
    timed = {scope for scope, _ in known}
    rows.sort(key=lambda row: (row[0] not in timed, len(row[0]), row[0], row[1]))
    found = []
    for scope, node_id, parent_id, name, detail in rows[:MAX_OPERATORS]:
        operator = known.get((scope, node_id))
        found.append(
            PlanNode(
                scope=scope,
                node_id=node_id,
                parent_id=parent_id,
                name=name,
                detail=detail[:_LONGEST_DETAIL],
                stages=() if operator is None else operator.stages,
                resource_ms=None if operator is None else operator.resource_ms,
                basis=None if operator is None else operator.basis,
            )
        )
    return tuple(found), max(len(rows) - MAX_OPERATORS, 0)
