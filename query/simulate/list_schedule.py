"""List scheduling over plain columns: the inner loop of a replay (query.simulate.replay) as compiled code.

list_schedule.c is compiled when CrystalPerf is installed with a C compiler.  Otherwise query.simulate.replay takes the
same steps in the same order, so the results are the same to the last bit.  The loop knows tasks, slots and nodes by
number only, and does not support pipelines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from crystalperf.query.execution.dag import ANYWHERE, AT_HOME, ELSEWHERE, Dag, Tasks
from crystalperf.query.execution.scheduling import LongestFirst, Policy, by_rank, fair_share
from crystalperf.query.execution.slots import Slots
from crystalperf.query.trace.records import Floats, Ints

_COMPILED = "crystalperf.query.simulate._list_schedule"
_LOOPS = ("schedule", "integrals", "moments", "most_within")
_listing = import_module(_COMPILED) if find_spec(_COMPILED) else None
if not all(hasattr(_listing, each) for each in _LOOPS):  # compiled from an earlier version of this checkout
    _listing = None
assert (ANYWHERE, AT_HOME, ELSEWHERE) == (0, 1, 2)  # as list_schedule.c has them


class Schedule(NamedTuple):
    """A schedule: start and end of tasks and nodes, ms, and the slot of each task; NaN for nodes that never ran."""

    launch_ms: Floats
    finish_ms: Floats
    slot: Ints
    node_start_ms: Floats
    node_end_ms: Floats


def can_list(dag: Dag, policy: Policy) -> bool:
    """Whether ScheduleInput supports a replay: no pipelines, and a scheduler that orders stages by a number."""
    known = policy.order in (by_rank, fair_share) or isinstance(policy.order, LongestFirst)
    return known and dag.start_ms >= 0 and all(each.kind != "pipelined" for each in dag.edges.values())


def followed(tasks: Tasks) -> Ints:
    """For each task the position of the task whose worker it follows, (tasks,); -1 for none, or if it is not in the
    scope."""
    found: Ints = np.full(len(tasks), -1, dtype=np.int64)
    follows = np.flatnonzero(tasks.follows >= 0)
    if len(follows):
        order = np.argsort(tasks.task_id, kind="stable")
        place = np.searchsorted(tasks.task_id, tasks.follows[follows], sorter=order)
        other = order[np.minimum(place, len(tasks) - 1)]
        found[follows] = np.where(tasks.task_id[other] == tasks.follows[follows], other, -1)
    return found


_FOUND = ("home", "home_at", "home_host", "list_of", "wanted_of", "host_of")
"""Columns that a replay changes if tasks want workers that depend on the replay."""


class ScheduleInput:
    """The input of a replay without durations: a DAG, placement of tasks, slots and a policy.

    The iterations of a prediction (query.simulate.fixed_point) share one.
    """

    def __init__(
        self, dag: Dag, tasks: Tasks, slots: Slots, policy: Policy, limits: Sequence[int | None] | None
    ) -> None:
        self.count = len(tasks)
        nodes = list(dag.nodes.values())
        number = {node_id: position for position, node_id in enumerate(dag.nodes)}
        stage = np.array([-1 if each.stage is None else each.stage for each in nodes], dtype=np.int64)
        stages = len(dag.stages)
        node_of_stage = np.full(stages, -1, dtype=np.int64)
        node_of_stage[stage[stage >= 0]] = np.flatnonzero(stage >= 0)
        source = np.array([number[each] for each, _ in dag.edges], dtype=np.int64)
        target = np.array([number[each] for _, each in dag.edges], dtype=np.int64)
        order = np.argsort(source, kind="stable")
        workers = int(slots.worker.max(initial=-1)) + 1
        host_of_worker = np.zeros(workers, dtype=np.int64)
        host_of_worker[slots.worker] = slots.host
        hosts = int(max(slots.host.max(initial=-1), tasks.host.max(initial=-1))) + 1
        by_host = np.argsort(host_of_worker, kind="stable")
        placement = tasks.placement if policy.patience_ms > 0 else np.full(self.count, ANYWHERE, dtype=np.int64)
        anywhere, elsewhere = (_by_stage(tasks.stage, placement == place, stages) for place in (ANYWHERE, ELSEWHERE))
        homes, finds = _homes(tasks, placement, stages)
        self.start_ms, self.policy = float(dag.start_ms), policy
        columns: dict[str, Any] = {
            "available": slots.available_ms,
            "until": slots.until_ms,
            "worker_of_slot": slots.worker,
            "host_of_worker": host_of_worker,
            "first_slot": _starts(slots.worker, workers),
            "workers_of_host": by_host,
            "first_worker": _starts(host_of_worker, hosts),
            "stage_of": tasks.stage,
            "wanted_of": tasks.worker,
            "host_of": tasks.host,
            "place_of": placement,
            "anywhere": anywhere[0],
            "anywhere_at": anywhere[1],
            "elsewhere": elsewhere[0],
            "elsewhere_at": elsewhere[1],
            **homes,
            "finds": finds.astype(np.int64),
            "left_of": np.bincount(tasks.stage, minlength=stages),
            "node_stage": stage,
            "node_from": np.array([each.start_ms for each in nodes], dtype=np.float64),
            "node_to": np.array([each.end_ms for each in nodes], dtype=np.float64),
            "node_of_stage": node_of_stage,
            "missing_of": np.bincount(target, minlength=len(nodes)),
            "successors": target[order],
            "successors_at": _starts(source, len(nodes)),
            "key": _keys(dag, policy),
            "limits": np.array([-1 if each is None else each for each in limits or [None] * stages], dtype=np.int64),
        }
        self.columns = {name: _as_read(each) for name, each in columns.items()}
        self.found = _FOUND if finds.any() else ()

    def run(self, durations_ms: Floats) -> Schedule:
        """The schedule for these durations, (tasks,) in ms; only where has_compiled()."""
        assert _listing is not None
        nodes = len(self.columns["node_stage"])
        schedule = Schedule(
            launch_ms=np.zeros(self.count),
            finish_ms=np.zeros(self.count),
            slot=np.zeros(self.count, dtype=np.int64),
            node_start_ms=np.full(nodes, np.nan),
            node_end_ms=np.full(nodes, np.nan),
        )
        columns = {
            **self.columns,
            **{name: self.columns[name].copy() for name in self.found},
            "duration": np.ascontiguousarray(durations_ms, dtype=np.float64),
            "launch": schedule.launch_ms,
            "finish": schedule.finish_ms,
            "slot_of": schedule.slot,
            "node_start": schedule.node_start_ms,
            "node_end": schedule.node_end_ms,
        }
        rule = self.policy
        waits = float(rule.patience_ms), float(rule.offers_ms)
        _listing.schedule(columns, self.start_ms, *waits, rule.order is fair_share, rule.restarts, rule.on_demand)
        return schedule


def has_compiled() -> bool:
    """Whether the compiled loops are installed."""
    return _listing is not None


def integrals(order: Ints, gap_ms: Floats, rate: Floats) -> Floats:
    """The integral of the level over each interval (query.simulate.device_sharing.Sorted); only where
    has_compiled()."""
    assert _listing is not None
    total = np.empty(len(rate))
    columns = {"order": order, "gap_ms": gap_ms, "rate": np.ascontiguousarray(rate, dtype=np.float64), "total": total}
    _listing.integrals(columns)
    return total


def moments(group: Ints, start_ms: Floats, end_ms: Floats) -> tuple[Ints, Floats]:
    """The order of all starts and ends by group and time, and the time from each to the next, ms
    (query.simulate.device_sharing.Sorted); only where has_compiled()."""
    assert _listing is not None
    order, gap_ms = np.empty(2 * len(group), dtype=np.int64), np.empty(max(2 * len(group) - 1, 0))
    columns = {"group": _as_read(group), "start": _as_read(start_ms), "end": _as_read(end_ms)}
    _listing.moments({**columns, "order": order, "gap_ms": gap_ms}, int(group.max(initial=-1)) + 1)
    return order, gap_ms


def highest_rate(columns: Mapping[str, Any], groups: int, length_ms: float) -> float:
    """The highest rate within windows of a length, from `group`, `since`, `until`, `start`, `end`, `amount` and
    `shifts` (query.simulate.network_speed.most_within); only where has_compiled()."""
    assert _listing is not None
    found: float = _listing.most_within({name: _as_read(each) for name, each in columns.items()}, groups, length_ms)
    return found


def _homes(tasks: Tasks, placement: Ints, stages: int) -> tuple[dict[str, Any], np.ndarray[Any, np.dtype[np.bool_]]]:
    """The columns of tasks that want a host, as a list for each stage and host.

    Also, by stage, whether it finds these hosts only when it starts; then each task has a list of its own.
    """
    home = np.flatnonzero(placement == AT_HOME)
    hosts = int(tasks.host.max(initial=-1)) + 2
    place = tasks.stage[home] * hosts + tasks.host[home] + 1
    few = stages * hosts < 1 << 16  # then the sort counts rather than compares
    home = home[np.argsort(place.astype(np.uint16) if few else place, kind="stable")]
    other = followed(tasks)
    finds = np.bincount(tasks.stage[home], other[home] >= 0, stages) > 0
    apart = (np.diff(tasks.stage[home]) != 0) | (np.diff(tasks.host[home]) != 0) | finds[tasks.stage[home[1:]]]
    opens = np.flatnonzero(np.r_[True, apart][: len(home)])
    list_of = np.full(len(tasks), -1, dtype=np.int64)
    list_of[home] = np.repeat(np.arange(len(opens)), np.diff(np.r_[opens, len(home)]))
    columns = {
        "home": home,
        "home_at": np.r_[opens, len(home)],
        "home_host": tasks.host[home[opens]],
        "list_of": list_of,
        "homes_at": _starts(tasks.stage[home[opens]], stages),
        "followed": other,
    }
    return columns, finds


def _as_read(column: Any) -> Any:
    """The column as a contiguous array with eight bytes an item."""
    return np.ascontiguousarray(column, dtype=np.float64 if column.dtype.kind == "f" else np.int64)


def _starts(numbers: Ints, count: int) -> Ints:
    """The first row of each number when rows are sorted by it, (count + 1,)."""
    found: Ints = np.r_[0, np.cumsum(np.bincount(numbers, minlength=count))].astype(np.int64)
    return found


def _by_stage(stage: Ints, chosen: np.ndarray[Any, np.dtype[np.bool_]], stages: int) -> tuple[Ints, Ints]:
    """The chosen tasks sorted by stage, in recorded order within a stage, and the first position of each stage."""
    tasks = np.flatnonzero(chosen)
    return tasks[np.argsort(stage[tasks], kind="stable")], _starts(stage[tasks], stages)


def _keys(dag: Dag, policy: Policy) -> Floats:
    """Priority by stage: of stages with waiting tasks, the one with the lowest number goes first."""
    ranks = np.array([each.priority for each in dag.stages], dtype=np.float64)
    if not isinstance(policy.order, LongestFirst):
        return ranks
    left = np.array([policy.order.left_ms[each.stage_id] for each in dag.stages], dtype=np.float64)
    keys = np.empty(len(ranks))
    pairs = np.stack([-left, ranks], axis=1)
    keys[:] = np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1)  # equal pairs stay equal
    return keys
