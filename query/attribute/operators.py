"""Task time by SQL operator and resource.

Where a stage has samples, their frames say which operator its tasks worked for: generated code by its methods'
prefix and its pipeline's number, other code by class (the nearest to the leaf decides, since an operator pulls its
rows through those below it).  Where it has none, the operators' own timing metrics say it.  Both only share out what
the stage's tasks took, resource by resource, so that the rows of a stage sum to its task time; what neither tells is
a row `not attributed`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import duckdb
import numpy as np

from indexes import resources
from query.frameworks import Framework, OperatorFrame
from query.model.dag import Floats
from query.model.execution import is_interval, sampled_sums
from query.model.records import Columns, integers, objects

NOT_ATTRIBUTED = "not attributed"
OVERHEAD = "starting and ending tasks"

FEWEST_SAMPLES = 5
"""A stage with fewer samples than this is split by its operators' metrics."""

_EXCLUSIVE = ("sort time", "scan time", "shuffle write time", "fetch wait time", "exclusive time", "op time")
"""Timing metrics of what an operator itself did …"""

_INCLUSIVE = ("duration", "time in aggregation build", "time to run Python workers")
"""… and of those that go on while it pulls rows from the operators below it."""

_WRITES = ("shuffle write time", "shuffle bytes written", "shuffle records written", "data size")
_READS = ("fetch wait time", "records read", "local bytes read", "remote bytes read", "local blocks read")

Key = tuple[int, int]
"""Stage and attempt."""


@dataclass(frozen=True)
class Node:
    """An operator of a plan."""

    node_id: int
    parent_id: int | None
    name: str
    title: str
    what: OperatorFrame
    pipeline: int | None  # of the generated code that it is part of
    metrics: Mapping[Key, Mapping[str, float]]


@dataclass
class Share:
    """What one operator of a stage gets, in ms by resource and `other`; `node` is None for what is no operator."""

    name: str
    node: Node | None
    parts_ms: Floats = field(default_factory=lambda: np.zeros(len(resources()) + 1))


@dataclass(frozen=True)
class Sampled:
    """The recorded time of one kind of operator within one pipeline of a stage.

    `intervals_ms` was measured, `samples_ms` has the right proportions rather than the right sum (see split).
    """

    kind: str | None
    pipeline: int | None
    count: int
    intervals_ms: Floats
    samples_ms: Floats


def operator_times(connection: duckdb.DuckDBPyConnection, framework: Framework, *, sampled: bool) -> Columns:
    """The table operator_times of a run file whose tasks, stages, operators and samples are in.

    Reads the view task_samples (query.attribute.storage) for the samples.
    """
    known = plans(connection, framework)
    seen = _sampled(connection) if sampled else {}
    rows: list[tuple[int, int, int | None, Share, str]] = []
    for key, sql_id, total, overhead, fetch_ms in _stage_totals(connection):
        plan = known.get(sql_id, []) if sql_id is not None else []
        overhead = np.minimum(overhead, total)
        body = total - overhead
        mine = [each for each in seen.get(key, []) if each.kind is not None]
        if sum(each.count for each in mine) >= FEWEST_SAMPLES:
            shares, basis = by_samples(key, plan, mine, body, fetch_ms, framework.titles), "samples"
        else:
            shares, basis = by_metrics(key, plan, body), "SQL metrics"
        rows += [(*key, sql_id, each, basis) for each in shares]
        rows.append((*key, sql_id, Share(OVERHEAD, None, overhead), "task metrics"))
        rest = body - np.sum([each.parts_ms for each in shares] or [np.zeros_like(body)], axis=0)
        rows.append((*key, sql_id, Share(NOT_ATTRIBUTED, None, np.maximum(rest, 0.0)), "nothing"))
    rows = [row for row in rows if row[3].parts_ms.sum() > 0]
    parts = np.array([row[3].parts_ms for row in rows]).reshape(len(rows), len(resources()) + 1)
    return {
        "stage_id": np.array([row[0] for row in rows], dtype=np.int64),
        "stage_attempt": np.array([row[1] for row in rows], dtype=np.int64),
        "sql_id": integers([row[2] for row in rows]),
        "node_id": integers([None if row[3].node is None else row[3].node.node_id for row in rows]),
        "name": objects([row[3].name for row in rows]),
        "basis": objects([row[4] for row in rows]),
        **{f"{name}_ms": parts[:, place] for place, name in enumerate((*resources(), "other"))},
    }


# By samples -----------------------------------------------------------------------------------------------------------


def by_samples(
    key: Key, plan: Sequence[Node], sampled: Sequence[Sampled], body_ms: Floats, fetch_ms: float,
    titles: Mapping[str, str],
) -> list[Share]:  # fmt: skip
    """Share out a stage's time, resource by resource, as its samples were.

    Waiting for shuffled blocks was measured, so it goes to reading them before the labels share out the rest.
    """
    intervals = np.array([each.intervals_ms for each in sampled])
    samples = np.array([each.samples_ms for each in sampled])
    left = body_ms.sum() - intervals.sum()
    stretched = left > 0 and samples.sum() > 0
    weights = intervals + samples * (left / samples.sum() if stretched else 1.0)
    names = resources()
    net = names.index("net")
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
        nodes = nodes_of(key, plan, each.kind, each.pipeline)
        if not nodes:
            title = titles.get(each.kind, each.kind)
            shares.setdefault((title, None), Share(title, None)).parts_ms += parts
        for node in nodes:
            found = shares.setdefault((node.name, node.node_id), Share(_name(node, plan), node))
            found.parts_ms += parts / len(nodes)
    return list(shares.values())


def nodes_of(key: Key, plan: Sequence[Node], kind: str, pipeline: int | None) -> list[Node]:
    """The nodes of a plan that a kind of frame in a pipeline may stand for; several where nothing tells them apart."""
    exchange = kind.startswith("exchange ")
    found = [node for node in plan if node.what.kind == ("exchange" if exchange else kind)]
    if exchange:
        asked = _READS if kind == "exchange read" else _WRITES
        found = [node for node in found if any(name in node.metrics.get(key, {}) for name in asked)]
    if pipeline is not None and len(found) > 1:
        if kind == "wholestagecodegen":
            found = [node for node in found if node.what.pipeline == pipeline] or found
        else:
            inside = [node for node in found if node.pipeline == pipeline]
            found = inside or _below(plan, pipeline, found) or found
    here = [node for node in found if key in node.metrics]
    if here or kind in ("wholestagecodegen", "exchange"):
        return here or [node for node in found if pipeline is not None and node.what.pipeline == pipeline]
    # Operators without metrics of their own (projections, joins without output) are where their pipeline is.
    running = {node.what.pipeline for node in plan if node.what.pipeline is not None and key in node.metrics}
    return [node for node in found if node.pipeline in running] or (found if pipeline is not None else [])


def _below(plan: Sequence[Node], pipeline: int, wanted: Sequence[Node]) -> list[Node]:
    """Those of the wanted nodes that feed a pipeline, with no other exchange between."""
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
    """A node's name; of generated code with the operators that it holds."""
    if node.what.kind != "wholestagecodegen":
        return node.title
    held = [each.name for each in plan if each.pipeline == node.what.pipeline and each.what.kind != "inputadapter"]
    return f"{node.name}: {', '.join(held)}" if held else node.name


# By metrics -----------------------------------------------------------------------------------------------------------


def by_metrics(key: Key, plan: Sequence[Node], body_ms: Floats) -> list[Share]:
    """Share out a stage's time by the timing metrics of its operators.

    A metric that runs while rows are pulled from below holds their time too, so theirs is taken off; and that of
    generated code runs on while others use its rows, so what was measured above is taken off as well.
    """
    size = len(plan)
    metrics = [node.metrics.get(key, {}) for node in plan]
    own = [sum(found.get(name, 0.0) for name in _EXCLUSIVE) for found in metrics]
    above = [0.0] * size
    for node in plan:
        if node.parent_id is not None:
            above[node.node_id] = above[node.parent_id] + own[node.parent_id]
    below, mine = [0.0] * size, [0.0] * size
    for node in reversed(plan):
        place = node.node_id
        inclusive = max((metrics[place].get(name, 0.0) for name in _INCLUSIVE), default=0.0)
        if node.what.kind == "wholestagecodegen":
            inclusive -= above[place]
        mine[place] = own[place] + max(inclusive - below[place] - own[place], 0.0)
        if node.parent_id is not None:
            below[node.parent_id] += mine[place] + below[place]
    names = resources()
    cpu, disk, net, other = names.index("cpu"), names.index("disk"), names.index("net"), len(names)
    timed = [node for node in plan if mine[node.node_id] > 0]
    if not timed or body_ms.sum() <= 0:
        return []
    shares = [Share(_name(node, plan), node) for node in timed]
    left = np.array([mine[node.node_id] for node in timed])
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
    # The rest is of what Spark does not split further, cpu and unknown: first what operators timed for themselves.
    # Times of generated code overlap, since it runs on while others use its rows; they share what is left then.
    rest = pool[[cpu, other]]
    for amounts in (alone, left - alone):
        room = float(rest.sum())
        if room <= 0 or amounts.sum() <= 0:
            continue
        amounts = amounts * min(1.0, room / float(amounts.sum()))
        for share, amount in zip(shares, amounts, strict=True):
            share.parts_ms[[cpu, other]] += amount / room * rest
        rest = rest * (1.0 - float(amounts.sum()) / room)
    return shares


# Reading --------------------------------------------------------------------------------------------------------------


def plans(connection: duckdb.DuckDBPyConnection, framework: Framework) -> dict[int, list[Node]]:
    """The operators of each query, in the order of their ids: what is below an operator follows it."""
    metrics: dict[tuple[int, int], dict[Key, dict[str, float]]] = {}
    for sql_id, node_id, stage_id, attempt, name, value in connection.execute(
        "SELECT sql_id, node_id, stage_id, stage_attempt, name, sum(value) FROM operator_metrics GROUP BY ALL"
    ).fetchall():
        metrics.setdefault((sql_id, node_id), {}).setdefault((stage_id, attempt), {})[name] = value
    found: dict[int, list[Node]] = {}
    for sql_id, node_id, parent_id, name, detail, location in connection.execute(
        "SELECT sql_id, node_id, parent_id, name, detail, location FROM operators ORDER BY sql_id, node_id"
    ).fetchall():
        plan = found.setdefault(sql_id, [])
        pipeline = None
        if parent_id is not None:
            parent = plan[parent_id]
            pipeline = parent.what.pipeline
            if pipeline is None and parent.what.kind != "inputadapter":
                pipeline = parent.pipeline
        what = framework.node_operator(name)
        title = framework.node_title(name, detail, location)
        plan.append(Node(node_id, parent_id, name, title, what, pipeline, metrics.get((sql_id, node_id), {})))
    return found


def _sampled(connection: duckdb.DuckDBPyConnection) -> dict[Key, list[Sampled]]:
    both = ", ".join(
        f"coalesce(sum({name}) FILTER ({condition}), 0)"
        for condition in ("measured", "NOT measured")
        for name in (*resources(), "other")
    )
    rows = connection.execute(
        f"""
        WITH summed AS (
            SELECT
                stage_id, stage_attempt, operator, pipeline, {is_interval()} AS measured, count(*) AS samples,
                {sampled_sums()}
            FROM task_samples
            WHERE thread IS NOT NULL -- a mixture that all tasks got alike tells no stage's operators
            GROUP BY ALL
        )
        SELECT stage_id, stage_attempt, operator, pipeline, sum(samples), {both}
        FROM summed GROUP BY ALL ORDER BY ALL
        """
    ).fetchall()
    found: dict[Key, list[Sampled]] = {}
    for stage_id, attempt, kind, pipeline, count, *parts in rows:
        intervals, samples = np.array(parts, dtype=np.float64).reshape(2, -1)
        found.setdefault((stage_id, attempt), []).append(Sampled(kind, pipeline, int(count), intervals, samples))
    return found


def _stage_totals(
    connection: duckdb.DuckDBPyConnection,
) -> Iterator[tuple[Key, int | None, Floats, Floats, float]]:
    """Per stage attempt: its query, its task time by resource, the part of it outside the tasks' own code, and the
    time blocked on shuffled blocks."""
    names = (*resources(), "other")
    totals = ", ".join(f"sum(coalesce({name}_ms, 0)) AS {name}" for name in names)
    outside = {
        "cpu": "least(coalesce(deserialize_cpu_ms, 0), coalesce(deserialize_ms, 0)) + coalesce(result_serialize_ms, 0)",
        "net": "coalesce(getting_result_ms, 0)",
        "other": "greatest(coalesce(deserialize_ms, 0) - coalesce(deserialize_cpu_ms, 0), 0)"
        " + coalesce(scheduler_delay_ms, 0)",
    }
    overhead = ", ".join(f"sum(least({outside.get(name, '0')}, coalesce({name}_ms, 0)))" for name in names)
    rows = connection.execute(
        f"""
        SELECT
            tasks.stage_id, tasks.stage_attempt, any_value(stages.sql_id), sum(coalesce(fetch_wait_ms, 0)),
            {totals.replace("coalesce(", "coalesce(tasks.")}, {overhead.replace("coalesce(", "coalesce(tasks.")}
        FROM tasks LEFT JOIN stages ON stages.stage_id = tasks.stage_id AND stages.attempt = tasks.stage_attempt
        GROUP BY tasks.stage_id, tasks.stage_attempt
        ORDER BY ALL
        """
    ).fetchall()
    for stage_id, attempt, sql_id, fetch_ms, *parts in rows:
        yield (stage_id, attempt), sql_id, np.array(parts[: len(names)]), np.array(parts[len(names) :]), fetch_ms
