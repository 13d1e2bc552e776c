"""The account of a run: its runtime by stage and by cause of waiting, with the measured quantities behind it.

At each instant, the tasks that run share the wall-clock time equally.  The sum over the stages is the time in which a
task ran, and the rest is waiting, by cause.  Unlike segments of a critical path, these shares change little between
runs of the same job if two stages that run at a time end in another order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

import duckdb
import numpy as np

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.regex import regex
from crystalperf.indexes.resources import CPU, OTHER, with_other
from crystalperf.query.diagnose.waiting import waiting, with_workers
from crystalperf.query.execution.critical_path import Piece, fill
from crystalperf.query.execution.dag import Node
from crystalperf.query.execution.intervals import uncovered
from crystalperf.query.results.answers import Cause, LostWorker, Parts
from crystalperf.query.trace.arrays import members
from crystalperf.query.trace.records import Floats

if TYPE_CHECKING:
    from crystalperf.query.diagnose.advisor import Advisor
    from crystalperf.query.execution.execution import Execution

COMPUTE, COMPUTE_WAIT, COLLECTION, STARTING, REPEATED = "compute", "compute wait", "collection", "starting", "repeated"
"""Components of task time: CPU time, waits for a CPU, garbage collection, starting and ending, and tasks whose work
was lost or failed.  The others are the resources besides the CPU, and `other`."""

_NUMBER = regex(r" \(\d+\)$")
_IDS = regex(r"#\d+L?|\[plan_id=\d+\]|\bplan_id=\d+|@[0-9a-f]{4,}")
_ATTEMPT = regex(r"(.*)\.\d+")


@frozen
class StageAccount:
    """One stage, all attempts together.

    wall_ms      its share of the wall-clock time; resource_ms is the same by resource
    task_ms      the time of its tasks by component
    slots        slots that were available while it ran, weighted by wall_ms
    longest, mean   of its tasks' durations, ms, and of the bytes that they read
    delegates    whether other processes compute for its tasks
    operators    names of the plan's operators that ran in it, `details` with their descriptions, without ids
    """

    ids: tuple[str, ...]
    name: str
    call_site: str
    scope: str | None
    operators: tuple[str, ...]
    details: tuple[str, ...]
    start_ms: float
    end_ms: float
    wall_ms: float
    resource_ms: Parts
    task_ms: Mapping[str, float]
    tasks: float
    slots: float
    input_bytes: float
    exchange_bytes: float
    spill_bytes: float
    longest_ms: float
    mean_ms: float
    longest_bytes: float
    mean_bytes: float
    delegates: bool

    @property
    def id(self) -> str:
        return self.ids[0]

    @property
    def read_bytes(self) -> float:
        """The bytes that its tasks read, from storage and from other tasks."""
        return self.input_bytes + self.exchange_bytes

    @property
    def whole_ms(self) -> float:
        """The time of all its tasks."""
        return sum(self.task_ms.values())

    @property
    def use(self) -> float:
        """Slots that worked at a time while it ran, over those that were available."""
        return self.whole_ms / max(self.wall_ms * self.slots, 1.0)


@frozen
class Account:
    """A run's runtime: the sum of its stages' wall_ms and of wait_ms, by cause."""

    runtime_ms: float
    stages: tuple[StageAccount, ...]
    wait_ms: Mapping[Cause, float]
    scopes: Mapping[str, str]
    """Names of the scopes by id."""
    plans: Mapping[str, Sequence[str]]
    """Operators of each scope's plan, by id."""
    workers: float | None
    slots: float
    memory_bytes: float | None
    version: str | None
    properties: Mapping[str, str]
    lost_workers: float = 0.0
    first_loss_ms: float | None = None
    resources: Mapping[str, float | None] = field(default_factory=dict)

    @property
    def input_bytes(self) -> float:
        return sum(each.input_bytes for each in self.stages)


def account(
    connection: duckdb.DuckDBPyConnection, execution: Execution, advisor: Advisor, lost: Sequence[LostWorker]
) -> Account:
    """The account of a scope of a run, in which some workers were lost."""
    slots = execution.slots
    shares = _Shares(execution)
    scopes, plans = _plans(connection)
    return Account(
        runtime_ms=execution.runtime_ms,
        stages=tuple(_stages(connection, execution, shares)),
        wait_ms=_waits(connection, execution, advisor),
        scopes=scopes,
        plans=plans,
        workers=execution.recorded.get("workers"),
        slots=float(shares.available.max(initial=0.0)) or float(len(slots)),
        memory_bytes=execution.recorded.get("memory"),
        version=execution.version,
        properties=execution.properties,
        lost_workers=float(len(lost)),
        first_loss_ms=min((execution.clock.when(each.lost_ms) for each in lost), default=None),
        resources={key: execution.recorded.get(key) for key in ("workers", "cores", "memory")},
    )


class _Shares:
    """The wall-clock time of each task: at each instant the tasks that run share it equally."""

    def __init__(self, execution: Execution) -> None:
        tasks, slots = execution.tasks, execution.slots
        moments = np.unique(
            np.concatenate(
                [tasks.launch_ms, tasks.finish_ms, slots.available_ms, slots.until_ms[slots.until_ms < np.inf]]
            )
        )
        self._moments = moments if len(moments) else np.zeros(1)

        def open_at(start_ms: Floats, end_ms: Floats) -> Floats:
            started = np.searchsorted(np.sort(start_ms), self._moments, side="right")
            return (started - np.searchsorted(np.sort(end_ms), self._moments, side="right")).astype(np.float64)

        running = open_at(tasks.launch_ms, tasks.finish_ms)
        self.available = open_at(slots.available_ms, slots.until_ms)
        lengths = np.diff(self._moments, append=self._moments[-1])
        share = np.divide(lengths, running, out=np.zeros_like(lengths), where=running > 0)
        self._share_ms = np.concatenate([[0.0], np.cumsum(share)])
        self._slot_ms = np.concatenate([[0.0], np.cumsum(share * np.maximum(self.available, running))])
        self.wall_ms, self.slot_ms = (
            self._over(each, tasks.launch_ms, tasks.finish_ms) for each in (self._share_ms, self._slot_ms)
        )

    def _over(self, integral: Floats, start_ms: Floats, end_ms: Floats) -> Floats:
        first, last = (np.searchsorted(self._moments, each) for each in (start_ms, end_ms))
        found: Floats = integral[last] - integral[first]
        return found


def _stages(connection: duckdb.DuckDBPyConnection, execution: Execution, shares: _Shares) -> list[StageAccount]:
    tasks, volumes, names = execution.tasks, execution.volumes, execution.names
    components = _components(connection, execution)
    facts = {
        row[0]: row[1:] for row in connection.execute("SELECT stage_id, coalesce(call_site, '') FROM stages").fetchall()
    }
    operators = _stage_operators(connection)
    groups: dict[str, list[int]] = {}
    for number, stage in enumerate(execution.dag.stages):
        match = _ATTEMPT.fullmatch(stage.stage_id)
        groups.setdefault(match[1] if match else stage.stage_id, []).append(number)
    own = members(tasks.stage, len(execution.dag.stages))
    read = (volumes.input + volumes.remote_read + volumes.local_read).astype(np.float64)
    found = []
    for numbers in groups.values():
        mine = np.concatenate([own[number] for number in numbers])
        if not len(mine):
            continue
        first = execution.dag.stages[numbers[0]]
        ids = tuple(execution.dag.stages[number].stage_id for number in numbers)
        plan = [each for stage in ids for each in operators.get(stage, ())]
        wall = shares.wall_ms[mine]
        length = tasks.duration_ms[mine]
        rates = tasks.parts_ms[mine] / np.maximum(length, 1e-9)[:, None]
        found.append(
            StageAccount(
                ids=ids,
                name=first.name,
                call_site=facts.get(first.stage_id, ("",))[0],
                scope=first.scope_id,
                operators=tuple(sorted({name for name, _ in plan})),
                details=tuple(sorted({f"{name} {detail}" for name, detail in plan})),
                start_ms=float(tasks.launch_ms[mine].min()),
                end_ms=float(tasks.finish_ms[mine].max()),
                wall_ms=float(wall.sum()),
                resource_ms=dict(zip(with_other(names), fill(wall @ rates, float(wall.sum())).tolist(), strict=True)),
                task_ms={name: float(each[mine].sum()) for name, each in components.items()},
                tasks=float(len(mine)),
                slots=float(shares.slot_ms[mine].sum() / max(wall.sum(), 1e-9)),
                input_bytes=float(volumes.input[mine].sum()),
                exchange_bytes=float((volumes.remote_read + volumes.local_read)[mine].sum()),
                spill_bytes=float(volumes.spill_memory[mine].sum()),
                longest_ms=float(length.max()),
                mean_ms=float(length.mean()),
                longest_bytes=float(read[mine].max()),
                mean_bytes=float(read[mine].mean()),
                delegates=bool(execution.delegating & set(numbers)),
            )
        )
    return sorted(found, key=lambda each: each.start_ms)


def _components(connection: duckdb.DuckDBPyConnection, execution: Execution) -> dict[str, Floats]:
    """The time of each task by component; they sum to its duration."""
    tasks, volumes = execution.tasks, execution.volumes
    parts = dict(zip(with_other(execution.names), tasks.parts_ms.T, strict=True))
    cpu, other = parts.pop(CPU), parts.pop(OTHER)
    collection = np.minimum(volumes.gc_ms, cpu)
    used = np.clip(volumes.total_cpu_ms - volumes.gc_ms, 0.0, cpu - collection)
    starting = np.minimum(volumes.overhead_ms, other)
    found = {
        COMPUTE: used, COMPUTE_WAIT: cpu - collection - used, COLLECTION: collection, STARTING: starting, **parts,
        OTHER: other - starting,
    }  # fmt: skip
    lost = {
        row[0]
        for row in connection.execute(
            "SELECT task_id FROM tasks WHERE recomputed OR status IN ('failed', 'killed')"
        ).fetchall()
    }
    again = np.isin(tasks.task_id, list(lost))
    found = {name: np.where(again, 0.0, each) for name, each in found.items()}
    return {**found, REPEATED: np.where(again, tasks.duration_ms, 0.0)}


def _waits(connection: duckdb.DuckDBPyConnection, execution: Execution, advisor: Advisor) -> dict[Cause, float]:
    """The time without a running task, by cause."""
    dag, names = execution.dag, execution.names
    running = execution.tasks.running
    gaps = uncovered(running, dag.start_ms, dag.end_ms)
    pieces = []
    for number, (start, end) in enumerate(gaps):
        parts = np.zeros(len(names) + 1)
        parts[-1] = end - start
        pieces.append(Piece(Node(f"driver:{number}", "", start, end), start, end, parts))
    found, _ = waiting(connection, execution, advisor, pieces, with_workers(connection, execution))
    return found


def _stage_operators(connection: duckdb.DuckDBPyConnection) -> dict[str, list[tuple[str, str]]]:
    """The operators of each stage, by name and description."""
    rows = connection.execute(
        """
        SELECT stage_id, name, coalesce(detail, '')
        FROM operator_stages JOIN operators USING (scope_id, node_id)
        ORDER BY ALL
        """
    ).fetchall()
    found: dict[str, list[tuple[str, str]]] = {}
    for stage, name, detail in rows:
        found.setdefault(stage, []).append((_NUMBER.sub("", name), _IDS.sub("", detail)))
    return found


def _plans(connection: duckdb.DuckDBPyConnection) -> tuple[dict[str, str], dict[str, list[str]]]:
    """The names of the scopes, and the operators of their plans, by scope."""
    scopes = dict(connection.execute("SELECT scope_id, coalesce(name, '') FROM scopes ORDER BY start_ms").fetchall())
    rows = connection.execute(
        "SELECT scope_id, list(name ORDER BY node_id) FROM operators GROUP BY scope_id"
    ).fetchall()
    return scopes, {scope: [_NUMBER.sub("", name) for name in names] for scope, names in rows}
