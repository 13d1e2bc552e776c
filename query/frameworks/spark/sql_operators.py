"""Task time by SQL operator and resource.

If a stage has samples, their frames show the operator that its tasks worked for: generated code by its methods' prefix
and its pipeline's number, other code by class (the frame nearest to the leaf decides, because an operator pulls its
rows through those below it).  Otherwise the operators' own timing metrics are used.  Both only divide the stage's task
time, resource by resource, so that the rows of a stage sum to its task time; the rest is a row `not attributed`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.resources import CPU, DISK, NET, OTHER, with_other
from crystalperf.query import sql
from crystalperf.query.execution.evidence import is_interval, sampled_sums
from crystalperf.query.frameworks import OperatorFrame
from crystalperf.query.frameworks.spark.engines import PYTHON_TIME, SPARK_TIMING, engine_of, timing_of
from crystalperf.query.frameworks.spark.names import PIPELINE, TITLES, of_node, title
from crystalperf.query.sql import summed
from crystalperf.query.trace.records import Columns, Floats, integers, objects

NOT_ATTRIBUTED = "not attributed"
OVERHEAD = "starting and ending tasks"

ROUNDING_MS = 1e-6
"""Time that remains only from rounding of sums."""

FEWEST_SAMPLES = 5
"""A stage with fewer samples is divided by its operators' metrics."""

_WRITES = ("shuffle write time", "shuffle bytes written", "shuffle records written", "data size")
_READS = ("fetch wait time", "records read", "local bytes read", "remote bytes read", "local blocks read")


@frozen
class Node:
    """An operator of a plan."""

    node_id: int
    parent_id: int | None
    name: str
    title: str
    what: OperatorFrame
    pipeline: int | None  # of the generated code that it is part of
    metrics: Mapping[str, Mapping[str, float]]  # by stage, then by name; those of the driver by ''
    detail: str = ""
    location: str = ""


@dataclass
class Share:
    """One operator's share of a stage, in ms by resource and `other`; `node` is None for time outside of operators."""

    name: str
    node: Node | None
    parts_ms: Floats


@frozen
class Sampled:
    """The recorded time of one kind of operator within one pipeline of a stage.

    `intervals_ms` was measured; `samples_ms` has correct proportions but not the correct sum (see split).
    """

    kind: str | None
    pipeline: int | None
    count: int
    intervals_ms: Floats
    samples_ms: Floats


def operator_times(connection: duckdb.DuckDBPyConnection, names: tuple[str, ...], sampled: bool) -> Columns:
    """The table operator_times of a run file that already has tasks, stages, operators and samples.

    Reads the samples from the view task_samples (query.attribution.storage), if there are any (`sampled`).
    """
    known = plans(connection)
    seen = _sampled(connection, names) if sampled else {}
    rows: list[tuple[str, str | None, Share, str]] = []
    for stage, scope, total, overhead, fetch_ms in _stage_totals(connection, names):
        plan = known.get(scope, []) if scope is not None else []
        overhead = np.minimum(overhead, total)
        body = total - overhead
        stage_samples = [each for each in seen.get(stage, []) if each.kind is not None]
        if sum(each.count for each in stage_samples) >= FEWEST_SAMPLES:
            shares, basis = by_samples(stage, plan, stage_samples, body, fetch_ms, names), "samples"
        else:
            shares, basis = by_metrics(stage, plan, body, names), "plan metrics"
        rows += [(stage, scope, each, basis) for each in shares]
        rows.append((stage, scope, Share(OVERHEAD, None, overhead), "task metrics"))
        rest = body - np.sum([each.parts_ms for each in shares] or [np.zeros_like(body)], axis=0)
        rows.append((stage, scope, Share(NOT_ATTRIBUTED, None, np.maximum(rest, 0.0)), "nothing"))
    rows = [row for row in rows if row[2].parts_ms.sum() > ROUNDING_MS]
    parts = np.array([row[2].parts_ms for row in rows]).reshape(len(rows), len(names) + 1)
    return {
        "stage_id": objects([row[0] for row in rows]),
        "scope_id": objects([row[1] for row in rows]),
        "node_id": integers([None if row[2].node is None else row[2].node.node_id for row in rows]),
        "name": objects([row[2].name for row in rows]),
        "basis": objects([row[3] for row in rows]),
        **{f"{name}_ms": parts[:, place] for place, name in enumerate(with_other(names))},
    }


# By samples -----------------------------------------------------------------------------------------------------------


def by_samples(
    stage: str, plan: Sequence[Node], sampled: Sequence[Sampled], body_ms: Floats, fetch_ms: float,
    names: tuple[str, ...],
) -> list[Share]:  # fmt: skip
    """Divide a stage's time, resource by resource, in proportion to its samples.

    Waiting for shuffle blocks was measured, so it is assigned to reading them before the labels divide the rest.
    """
    intervals = np.array([each.intervals_ms for each in sampled])
    samples = np.array([each.samples_ms for each in sampled])
    left = body_ms.sum() - intervals.sum()
    stretched = left > 0 and samples.sum() > 0
    weights = intervals + samples * (left / samples.sum() if stretched else 1.0)
    net = names.index(NET)
    given = np.zeros_like(weights)
    reads = np.array([each.kind == "exchange read" for each in sampled])
    pool = body_ms.copy()
    fetch_ms = min(fetch_ms, float(pool[net]))
    if fetch_ms > 0 and reads.any():
        time = np.where(reads, weights.sum(axis=1), 0.0)
        given[:, net] = fetch_ms * time / time.sum()
        pool[net] -= fetch_ms
        weights[:, net] = np.maximum(weights[:, net] - given[:, net], 0.0)
    every = weights.sum(axis=1)
    for resource in range(len(pool)):
        column = weights[:, resource] if weights[:, resource].sum() > 0 else every
        if column.sum() > 0:
            given[:, resource] += pool[resource] * column / column.sum()
    shares: dict[tuple[str, int | None], Share] = {}
    for each, parts in zip(sampled, given, strict=True):
        assert each.kind is not None
        nodes = nodes_of(stage, plan, each.kind, each.pipeline)
        if not nodes:
            name = TITLES.get(each.kind, each.kind)
            shares.setdefault((name, None), Share(name, None, np.zeros_like(parts))).parts_ms += parts
        for node in nodes:
            empty = Share(_name(node, plan), node, np.zeros_like(parts))
            shares.setdefault((node.name, node.node_id), empty).parts_ms += parts / len(nodes)
    return list(shares.values())


def nodes_of(stage: str, plan: Sequence[Node], kind: str, pipeline: int | None) -> list[Node]:
    """The nodes of a plan that a kind of frame in a pipeline may belong to; several if they cannot be separated."""
    exchange = kind.startswith("exchange ")
    found = [node for node in plan if node.what.kind == ("exchange" if exchange else kind)]
    if exchange:
        counters = _READS if kind == "exchange read" else _WRITES
        found = [node for node in found if any(name in node.metrics.get(stage, {}) for name in counters)]
    if pipeline is not None and len(found) > 1:
        if kind == PIPELINE:
            found = [node for node in found if node.what.pipeline == pipeline] or found
        else:
            inside = [node for node in found if node.pipeline == pipeline]
            found = inside or _below(plan, pipeline, found) or found
    here = [node for node in found if stage in node.metrics]
    if here or kind in (PIPELINE, "exchange"):
        return here or [node for node in found if pipeline is not None and node.what.pipeline == pipeline]
    # Operators without metrics of their own (projections, joins without output) are in the stage of their pipeline.
    running = {node.what.pipeline for node in plan if node.what.pipeline is not None and stage in node.metrics}
    return [node for node in found if node.pipeline in running] or (found if pipeline is not None else [])


def _below(plan: Sequence[Node], pipeline: int, wanted: Sequence[Node]) -> list[Node]:
    """The wanted nodes that feed a pipeline, with no other exchange in between."""
    chosen = {node.node_id for node in wanted}
    top = next((node for node in plan if node.what.pipeline == pipeline), None)
    if top is None:
        return []
    inside = {top.node_id}
    found = []
    for node in plan[top.node_id + 1 :]:  # pre-order: what is below a node follows it
        if node.parent_id not in inside:
            continue
        if node.node_id in chosen:
            found.append(node)
        if node.what.kind not in ("exchange", "broadcastexchange"):
            inside.add(node.node_id)
    return found


def _name(node: Node, plan: Sequence[Node]) -> str:
    """A node's name; for generated code with its operators."""
    if node.what.kind != PIPELINE:
        return node.title
    held = [each.name for each in plan if each.pipeline == node.what.pipeline and each.what.kind != "inputadapter"]
    return f"{node.name}: {', '.join(held)}" if held else node.name


# By metrics -----------------------------------------------------------------------------------------------------------


def by_metrics(stage: str, plan: Sequence[Node], body_ms: Floats, names: tuple[str, ...]) -> list[Share]:
    """Divide a stage's time by the timing metrics of its operators (engines.Timing).

    A metric that runs while rows are pulled from below includes their time too, so theirs is subtracted.  That of
    generated code continues while others use its rows, so the time measured above is subtracted as well.  Generated
    code that feeds Python workers waits for them most of its duration, so its time counts for them.
    """
    size = len(plan)
    metrics = [node.metrics.get(stage, {}) for node in plan]
    known = [timing_of(node.name, node.what.kind) for node in plan]
    own = [timing.own_ms(found) for timing, found in zip(known, metrics, strict=True)]
    above = [0.0] * size
    for node in plan:
        if node.parent_id is not None:
            above[node.node_id] = above[node.parent_id] + own[node.parent_id]
    below, timings = [0.0] * size, [0.0] * size
    for node in reversed(plan):
        place = node.node_id
        inclusive = known[place].inclusive_ms(metrics[place])
        if node.what.kind == PIPELINE and inclusive > 0:
            apart = _feeds_python(node, plan, metrics) or _only_converts(node, plan, metrics)
            inclusive = 0.0 if apart else inclusive - above[place]
        timings[place] = own[place] + max(inclusive - below[place] - own[place], 0.0)
        if node.parent_id is not None:
            below[node.parent_id] += timings[place] + below[place]
    cpu, disk, net, other = names.index(CPU), names.index(DISK), names.index(NET), len(names)
    timed = [node for node in plan if timings[node.node_id] > 0]
    if not timed or body_ms.sum() <= 0:
        return []
    shares = [Share(_name(node, plan), node, np.zeros_like(body_ms)) for node in timed]
    left = np.array([timings[node.node_id] for node in timed])
    alone = np.array([own[node.node_id] for node in timed])
    pool = body_ms.copy()
    for metric, resource in (("fetch wait time", net), ("shuffle write time", disk)):
        wanted = np.minimum([metrics[node.node_id].get(metric, 0.0) for node in timed], left)
        if wanted.sum() > pool[resource]:
            wanted *= pool[resource] / wanted.sum()
        for share, amount in zip(shares, wanted, strict=True):
            share.parts_ms[resource] += amount
        left, alone = left - wanted, alone - wanted
        pool[resource] -= wanted.sum()
    # The rest is time that Spark does not split further, cpu and unknown: first what operators timed for themselves.
    # Times of generated code overlap, because it continues while others use its rows; they share the remainder.
    rest = pool[[cpu, other]]
    for amounts in (alone, left - alone):
        rest_ms = float(rest.sum())
        if rest_ms <= 0 or amounts.sum() <= 0:
            continue
        amounts = amounts * min(1.0, rest_ms / float(amounts.sum()))
        for share, amount in zip(shares, amounts, strict=True):
            share.parts_ms[[cpu, other]] += amount / rest_ms * rest
        rest = rest * (1.0 - float(amounts.sum()) / rest_ms)
    return shares


def _feeds_python(node: Node, plan: Sequence[Node], metrics: Sequence[Mapping[str, float]]) -> bool:
    """Whether an operator's rows go to timed Python workers of the same stage."""
    while node.parent_id is not None:
        node = plan[node.parent_id]
        if node.what.kind in ("exchange", "broadcastexchange"):
            return False
        if node.what.kind == "python":
            return metrics[node.node_id].get(PYTHON_TIME, 0.0) > 0
    return False


def _only_converts(node: Node, plan: Sequence[Node], metrics: Sequence[Mapping[str, float]]) -> bool:
    """Whether generated code only converts columns of an engine to rows for a timed operator of the same stage.

    Its duration goes on until that operator has used the last row, so the time counts for the operator.
    """
    inside = [each for each in plan if each.pipeline == node.what.pipeline and each.what.kind != "inputadapter"]
    if not inside or any(each.what.kind != "columnartorow" or engine_of(each.name) is None for each in inside):
        return False
    while node.parent_id is not None:
        node = plan[node.parent_id]
        if node.what.kind in ("exchange", "broadcastexchange"):
            return False
        if node.what.kind != PIPELINE and SPARK_TIMING.inclusive_ms(metrics[node.node_id]) > 0:
            return True
    return False


# Reading --------------------------------------------------------------------------------------------------------------


def plans(connection: duckdb.DuckDBPyConnection, scopes: Collection[str] | None = None) -> dict[str, list[Node]]:
    """The operators of each query, in the order of their ids: what is below an operator follows it.

    Of the queries `scopes` if given, then with the driver's metrics too.
    """
    if not sql.has_rows(connection, "operators"):
        return {}
    metrics: dict[tuple[str, int], dict[str, dict[str, float]]] = {}
    for scope, node_id, stage, name, value in _metrics(connection, scopes):
        metrics.setdefault((scope, node_id), {}).setdefault(stage, {})[name] = value
    found: dict[str, list[Node]] = {}
    for scope, node_id, parent_id, name, detail, location in connection.execute(
        f"""
        SELECT scope_id, node_id, parent_id, name, detail, location FROM operators
        {"" if scopes is None else "WHERE list_contains(?, scope_id)"} ORDER BY scope_id, node_id
        """,
        [] if scopes is None else [list(scopes)],
    ).fetchall():
        plan = found.setdefault(scope, [])
        pipeline = None
        if parent_id is not None:
            parent = plan[parent_id]
            pipeline = parent.what.pipeline
            if pipeline is None and parent.what.kind != "inputadapter":
                pipeline = parent.pipeline
        shown, node_metrics = title(name, detail, location), metrics.get((scope, node_id), {})
        about = detail or "", location or ""
        plan.append(Node(node_id, parent_id, name, shown, of_node(name), pipeline, node_metrics, *about))
    return found


def _metrics(
    connection: duckdb.DuckDBPyConnection, scopes: Collection[str] | None
) -> list[tuple[str, int, str, str, float]]:
    """(query, operator, stage, name, amount) of all metrics of tasks, or of those of the queries `scopes` with the
    driver's, whose stage is ''."""
    if scopes is None:
        question = "SELECT scope_id, node_id, stage_id, name, sum(value) FROM operator_metrics GROUP BY ALL"
        return connection.execute(question).fetchall()
    return connection.execute(
        """
        SELECT scope_id, node_id, stage_id, name, sum(value)
        FROM (
            SELECT scope_id, node_id, stage_id, name, value FROM operator_metrics
            UNION ALL BY NAME
            SELECT scope_id, node_id, '' AS stage_id, name, value FROM spark_driver_metrics
        )
        WHERE list_contains(?, scope_id)
        GROUP BY ALL
        """,
        [list(scopes)],
    ).fetchall()


def _sampled(connection: duckdb.DuckDBPyConnection, names: tuple[str, ...]) -> dict[str, list[Sampled]]:
    both = ", ".join(
        f"coalesce(sum({name}) FILTER ({condition}), 0)"
        for condition in ("measured", "NOT measured")
        for name in with_other(names)
    )
    rows = connection.execute(
        f"""
        WITH summed AS (
            SELECT
                stage_id, operator, pipeline, {is_interval()} AS measured, count(*) AS samples,
                {sampled_sums(names)}
            FROM task_samples
            WHERE thread IS NOT NULL -- a mixture that is equal for all tasks shows no stage's operators
            GROUP BY ALL
        )
        SELECT stage_id, operator, pipeline, sum(samples), {both}
        FROM summed GROUP BY ALL ORDER BY ALL
        """
    ).fetchall()
    found: dict[str, list[Sampled]] = {}
    for stage, kind, pipeline, count, *parts in rows:
        intervals, samples = np.array(parts, dtype=np.float64).reshape(2, -1)
        found.setdefault(stage, []).append(Sampled(kind, pipeline, int(count), intervals, samples))
    return found


_OUTSIDE = {
    CPU: "least(coalesce(deserialize_cpu_ms, 0), coalesce(deserialize_ms, 0)) + coalesce(result_serialize_ms, 0)",
    NET: "coalesce(getting_result_ms, 0)",
    OTHER: (
        "greatest(coalesce(deserialize_ms, 0) - coalesce(deserialize_cpu_ms, 0), 0) + coalesce(scheduler_delay_ms, 0)"
        " + greatest(coalesce(getting_result_ms, 0) - coalesce(tasks.net_ms, 0), 0)"  # deserialisation in the driver
    ),
}
"""A task's time before and after its own code, by resource."""


def _stage_totals(
    connection: duckdb.DuckDBPyConnection, names: tuple[str, ...]
) -> Iterator[tuple[str, str | None, Floats, Floats, float]]:
    """Per stage attempt: its query, its task time by resource, the part of it outside the tasks' own code, and the time
    blocked on shuffle blocks."""
    columns = with_other(names)
    totals = ", ".join(summed(f"coalesce(tasks.{name}_ms, 0)") for name in columns)
    overhead = ", ".join(summed(f"least({_OUTSIDE.get(name, '0')}, coalesce(tasks.{name}_ms, 0))") for name in columns)
    rows = connection.execute(
        f"""
        SELECT stage_id, any_value(stages.scope_id), {summed("coalesce(fetch_wait_ms, 0)")}, {totals}, {overhead}
        FROM tasks LEFT JOIN spark_tasks USING (task_id) LEFT JOIN stages USING (stage_id)
        GROUP BY stage_id
        ORDER BY any_value(stages.priority), stage_id
        """
    ).fetchall()
    for stage, scope, fetch_ms, *parts in rows:
        yield stage, scope, np.array(parts[: len(columns)]), np.array(parts[len(columns) :]), fetch_ms
