"""How the tasks of each stage went: waves, skew, idle slots, and where labels and measurements disagree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np

from indexes import resources
from query import sql
from query.answers.values import Disagreement, Parts, PathItem, StageFacts
from query.model.dag import Floats
from query.model.execution import Execution

MOST_HOSTS = 200
"""Hosts of a stage are compared up to this many; each is held against all others."""

FULL = 0.9
"""A machine that is busy to this share has no CPU to spare …"""

OTHERS = 0.25
"""… and is crowded where processes that are not the application's have this share of it."""

FEWEST_SAMPLES = 20
"""Of a stage with fewer samples the labels say too little to be held against anything …"""

WORTH = 0.01
"""… and one with less than this share of the task time matters too little."""

CLEARLY = 0.10
"""Labels and measurements disagree where they are further apart than this share of the tasks' running time."""


@dataclass(frozen=True)
class Longest:
    """The longest task of a stage; `nth` counts the tasks of its executor by launch, from 1."""

    task_id: int
    executor_id: str
    host: str
    duration_ms: float
    read_bytes: float
    gc_ms: float
    nth: int
    resource_ms: Parts


@dataclass(frozen=True)
class Detail:
    """What the rules need of a stage beyond its facts; times are sums over its tasks.

    `ready_ms` is the time on the CPU in which tasks had none: they could have run, and Spark counted no CPU time.
    """

    facts: StageFacts
    longest: Longest
    run_ms: float
    on_cpu_ms: float
    ready_ms: float
    fetch_wait_ms: float
    read_bytes: int
    remote_bytes: int
    input_bytes: int
    written_bytes: int
    median_resource_ms: Parts
    kind: str
    call_site: str
    operators: tuple[str, ...]
    details: tuple[str, ...]


@dataclass(frozen=True)
class HostTime:
    """The time on one resource of a stage's tasks on one host, beside that of the tasks on all others; medians."""

    stage: str
    host: str
    resource: str
    tasks: int
    median_ms: float
    others_ms: float
    median_bytes: float
    others_bytes: float
    others_duration_ms: float


@dataclass(frozen=True)
class Neighbours:
    """What ran beside the application while the tasks of a stage did.

    `crowded` is the share of their time in which their machines were full, and others had a good part of them;
    `others_cores` what those used then, of `processors`.
    """

    stage: str
    crowded: float
    others_cores: float
    processors: float


def stage_details(
    connection: duckdb.DuckDBPyConnection, execution: Execution, path: Sequence[PathItem]
) -> list[Detail]:
    """One value per stage attempt with a task in the scope, in order of launch."""
    bounds = [execution.scope.start_ms, execution.scope.end_ms]
    cursor = connection.execute(sql.text("stage_facts"), bounds)
    columns = [each[0] for each in cursor.description]
    rows = {(row[0], row[1]): dict(zip(columns, row, strict=True)) for row in cursor.fetchall()}
    plans = _operators(connection)
    described = {
        (stage_id, attempt): (kind or "", name or "")
        for stage_id, attempt, kind, name in connection.execute(
            "SELECT stage_id, attempt, kind, name FROM stages"
        ).fetchall()
    }
    on_path: dict[str, float] = {}
    for item in path:
        on_path[item.id] = on_path.get(item.id, 0.0) + item.end_ms - item.start_ms
    tasks = execution.tasks
    order = np.argsort(tasks.stage, kind="stable")
    bounds_of = np.searchsorted(tasks.stage[order], np.arange(len(execution.dag.stages) + 1))
    level = _Level(tasks.launch_ms, tasks.finish_ms)
    ready = np.maximum(tasks.parts_ms[:, resources().index("cpu")] - execution.volumes.on_cpu_ms, 0.0)
    free = _Level(execution.slots.available_ms, np.minimum(execution.slots.until_ms, execution.scope.end_ms))
    found = []
    for number, stage in enumerate(execution.dag.stages):
        key = (stage.stage_id, stage.attempt)
        row = rows.get(key)
        if row is None:
            continue
        mine = order[bounds_of[number] : bounds_of[number + 1]]
        parts = tasks.parts_ms[mine]
        alive = int(((execution.slots.available_ms < stage.end_ms) & (execution.slots.until_ms > stage.start_ms)).sum())
        idle = free.between(stage.start_ms, stage.end_ms) - level.between(stage.start_ms, stage.end_ms)
        longest = int(np.flatnonzero(tasks.task_id[mine] == row["longest_task"])[0])
        kind, call_site = described.get(key, ("", ""))
        facts = StageFacts(
            id=stage.node_id,
            name=stage.name,
            sql_id=stage.sql_id,
            tasks=row["tasks"],
            slots=alive,
            length_ms=stage.end_ms - stage.start_ms,
            path_ms=on_path.get(stage.node_id, 0.0),
            median_ms=row["median_ms"],
            longest_ms=row["longest_ms"],
            median_bytes=row["median_bytes"],
            most_bytes=row["most_bytes"],
            task_ms=row["task_ms"],
            idle_ms=max(idle, 0.0),
            starting_ms=row["starting_ms"],
            scheduler_delay_ms=row["scheduler_delay_ms"],
            gc_ms=row["gc_ms"],
            spill_bytes=row["spill_bytes"],
            resource_ms=_named(parts.sum(axis=0)),
        )
        names, details = plans.get(key, ((), ()))
        found.append(
            Detail(
                facts=facts,
                longest=Longest(
                    task_id=row["longest_task"],
                    executor_id=row["longest_executor"] or "?",
                    host=row["longest_host"] or "?",
                    duration_ms=row["longest_ms"],
                    read_bytes=row["longest_read_bytes"],
                    gc_ms=row["longest_gc_ms"],
                    nth=row["longest_nth"],
                    resource_ms=_named(parts[longest]),
                ),
                run_ms=row["run_ms"],
                on_cpu_ms=row["on_cpu_ms"],
                ready_ms=float(ready[mine].sum()),
                fetch_wait_ms=row["fetch_wait_ms"],
                read_bytes=row["read_bytes"],
                remote_bytes=row["remote_bytes"],
                input_bytes=row["input_bytes"],
                written_bytes=row["written_bytes"],
                median_resource_ms=_named(np.median(parts, axis=0)),
                kind=kind,
                call_site=call_site,
                operators=names,
                details=details,
            )
        )
    return found


def host_times(connection: duckdb.DuckDBPyConnection, execution: Execution) -> list[HostTime]:
    """Every resource of every stage by host, where a stage ran on several."""
    names = ", ".join(f"{name}_ms" for name in (*resources(), "other"))
    query = sql.text("host_times").format(resources=names, most_hosts=MOST_HOSTS)
    rows = connection.execute(query, [execution.scope.start_ms, execution.scope.end_ms]).fetchall()
    return [HostTime(f"stage:{row[0]}.{row[1]}", *row[2:]) for row in rows]


def neighbours(connection: duckdb.DuckDBPyConnection, start_ms: float, end_ms: float) -> list[Neighbours]:
    """One value per stage attempt that ran on a crowded machine then, as far as recordings measured that."""
    rows = connection.execute(sql.text("neighbours").format(full=FULL, others=OTHERS), [start_ms, end_ms]).fetchall()
    return [Neighbours(f"stage:{row[0]}.{row[1]}", *row[2:]) for row in rows]


def disagreements(
    connection: duckdb.DuckDBPyConnection, execution: Execution, details: Sequence[Detail]
) -> tuple[Disagreement, ...]:
    """Stages whose labels alone would give a resource a share of running time that the measurements rule out.

    CPU time and collections are measured to be cpu, waiting for shuffled blocks to be net: what is left is the most
    that disk can have had, and so on.
    """
    names = resources()
    sums = ", ".join(f"sum(weight_ms * {name})" for name in names)
    rows = connection.execute(
        f"""
        SELECT stage_id, stage_attempt, count(*), {sums}
        FROM samples JOIN stacks USING (stack_id) JOIN tasks USING (task_id)
        WHERE deciding_depth IS NOT NULL AND thread IS NOT NULL AND time_ms BETWEEN ? AND ?
        GROUP BY ALL
        """,
        [execution.scope.start_ms, execution.scope.end_ms],
    ).fetchall()
    labelled = {
        f"stage:{row[0]}.{row[1]}": np.array(row[3:], dtype=np.float64) for row in rows if row[2] >= FEWEST_SAMPLES
    }
    all_ms = sum(detail.facts.task_ms for detail in details)
    found = []
    for detail in details:
        label = labelled.get(detail.facts.id)
        if label is None or label.sum() <= 0 or detail.run_ms <= 0 or detail.facts.task_ms < WORTH * all_ms:
            continue
        cpu = min(detail.on_cpu_ms / detail.run_ms, 1.0)
        fetch = min(detail.fetch_wait_ms / detail.run_ms, 1.0 - cpu)
        least = {"cpu": cpu, "net": fetch}
        for name, share in zip(names, label / label.sum(), strict=True):
            low = least.get(name, 0.0)
            high = 1.0 - sum(value for other, value in least.items() if other != name)
            if share > high + CLEARLY or share < low - CLEARLY:
                found.append((Disagreement(detail.facts.id, name, float(share), low, high), detail.facts.task_ms))
    ranked = sorted(found, key=lambda each: -each[1] * _distance(each[0]))
    return tuple(each for each, _ in ranked)


def _distance(each: Disagreement) -> float:
    return max(each.label_share - each.at_most_share, each.at_least_share - each.label_share)


def _operators(
    connection: duckdb.DuckDBPyConnection,
) -> Mapping[tuple[int, int], tuple[tuple[str, ...], tuple[str, ...]]]:
    """Names and descriptions of the operators that ran in each stage."""
    rows = connection.execute(
        """
        SELECT stages.stage_id, stages.attempt, list(operators.name), list(coalesce(operators.detail, ''))
        FROM operators JOIN stages ON operators.sql_id = stages.sql_id
            AND list_has_any(operators.accumulators, stages.accumulators)
        GROUP BY ALL
        """
    ).fetchall()
    return {(stage_id, attempt): (tuple(names), tuple(texts)) for stage_id, attempt, names, texts in rows}


class _Level:
    """How many intervals are open, integrated over time."""

    def __init__(self, start_ms: Floats, end_ms: Floats) -> None:
        moments = np.concatenate([start_ms, end_ms])
        order = np.argsort(moments, kind="stable")
        self.moments = moments[order]
        level = np.cumsum(np.where(order < len(start_ms), 1.0, -1.0))
        self.integral = np.concatenate([[0.0], np.cumsum(level[:-1] * np.diff(self.moments))])

    def between(self, start_ms: float, end_ms: float) -> float:
        if len(self.moments) == 0:
            return 0.0
        edges = np.interp([start_ms, end_ms], self.moments, self.integral)
        return float(edges[1] - edges[0])


def _named(parts_ms: Floats) -> Parts:
    return dict(zip((*resources(), "other"), (float(each) for each in parts_ms), strict=True))
