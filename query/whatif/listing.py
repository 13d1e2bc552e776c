"""List scheduling as one function over plain columns: the inner loop of a replay (query.whatif.replay).

It is compiled where numba is installed (the extra `fast`) and there is enough to do, and runs as it stands otherwise:
the same steps in the same order, so the answers are the same to the last bit.  It knows units, slots and nodes by
number only, and no pipelines.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from query.model.dag import ANYWHERE, AT_HOME, ELSEWHERE, Dag, Units
from query.model.execution import Slots
from query.model.policy import LongestFirst, Policy, by_rank, fair_share
from query.model.records import Floats, Ints

WORTH_LOADING = 100_000
"""Units that run plainly before compiled code is loaded, which takes about as long: whatever comes, no process spends
more than twice what would have been best."""

_SLOT, _UNIT, _NODE, _WAKE = range(4)


class Listed(NamedTuple):
    """When units and nodes began and ended, ms, and the slot of each unit; nodes that never did have NaN."""

    launch_ms: Floats
    finish_ms: Floats
    slot: Ints
    node_start_ms: Floats
    node_end_ms: Floats


def can_list(dag: Dag, policy: Policy) -> bool:
    """Whether a replay is of the kind that list() knows: no pipelines, and a scheduler whose order is a number."""
    known = policy.order in (by_rank, fair_share) or isinstance(policy.order, LongestFirst)
    return known and dag.start_ms >= 0 and all(each.kind != "pipelined" for each in dag.edges.values())


class Plan:
    """What of a replay does not change with how long units take: a DAG, units' places, slots and a policy.

    Rounds of a prediction (query.whatif.settle) share one.
    """

    def __init__(
        self, dag: Dag, units: Units, slots: Slots, policy: Policy, limits: Sequence[int | None] | None
    ) -> None:
        self.count = len(units)
        nodes = list(dag.nodes.values())
        number = {node_id: position for position, node_id in enumerate(dag.nodes)}
        group = np.array([-1 if each.group is None else each.group for each in nodes], dtype=np.int64)
        groups = len(dag.groups)
        node_of_group = np.full(groups, -1, dtype=np.int64)
        node_of_group[group[group >= 0]] = np.flatnonzero(group >= 0)
        source = np.array([number[each] for each, _ in dag.edges], dtype=np.int64)
        target = np.array([number[each] for _, each in dag.edges], dtype=np.int64)
        order = np.argsort(source, kind="stable")
        workers = int(slots.worker.max(initial=-1)) + 1
        host_of_worker = np.zeros(workers, dtype=np.int64)
        host_of_worker[slots.worker] = slots.host
        hosts = int(max(slots.host.max(initial=-1), units.host.max(initial=-1))) + 1
        by_host = np.argsort(host_of_worker, kind="stable")
        placement = units.placement if policy.patience_ms > 0 else np.full(self.count, ANYWHERE, dtype=np.int64)
        anywhere, elsewhere = (_by_group(units.group, placement == place, groups) for place in (ANYWHERE, ELSEWHERE))
        home = np.flatnonzero(placement == AT_HOME)
        home = home[np.lexsort((home, units.host[home], units.group[home]))]
        opens = np.flatnonzero(
            np.r_[True, (np.diff(units.group[home]) != 0) | (np.diff(units.host[home]) != 0)][: len(home)]
        )
        list_of = np.full(self.count, -1, dtype=np.int64)
        list_of[home] = np.repeat(np.arange(len(opens)), np.diff(np.r_[opens, len(home)]))
        self.columns: dict[str, Any] = {
            "start": float(dag.start_ms),
            "available": slots.available_ms,
            "until": slots.until_ms,
            "worker_of_slot": slots.worker,
            "host_of_worker": host_of_worker,
            "first_slot": _starts(slots.worker, workers),
            "workers_of_host": by_host,
            "first_worker": _starts(host_of_worker, hosts),
            "group_of": units.group,
            "wanted_of": units.worker,
            "host_of": units.host,
            "place_of": placement,
            "anywhere": anywhere[0],
            "anywhere_at": anywhere[1],
            "elsewhere": elsewhere[0],
            "elsewhere_at": elsewhere[1],
            "home": home,
            "home_at": np.r_[opens, len(home)],
            "home_host": units.host[home[opens]],
            "list_of": list_of,
            "homes_at": _starts(units.group[home[opens]], groups),
            "left_of": np.bincount(units.group, minlength=groups),
            "node_group": group,
            "node_from": np.array([each.start_ms for each in nodes], dtype=np.float64),
            "node_to": np.array([each.end_ms for each in nodes], dtype=np.float64),
            "node_of_group": node_of_group,
            "missing_of": np.bincount(target, minlength=len(nodes)),
            "successors": target[order],
            "successors_at": _starts(source, len(nodes)),
            "key": _keys(dag, policy),
            "is_fair": policy.order is fair_share,
            "limits": np.array([-1 if each is None else each for each in limits or [None] * groups], dtype=np.int64),
            "patience": float(policy.patience_ms),
        }
        self._plain: dict[str, Any] | None = None

    def run(self, durations_ms: Floats, *, compiles: bool | None = None) -> Listed:
        """The schedule for these durations, (units,) in ms; `compiles` is whether by compiled code, None to choose."""
        nodes = len(self.columns["node_group"])
        if has_compiler() and (_work.is_worth(self.count) if compiles is None else compiles):
            launch, finish = np.zeros(self.count), np.zeros(self.count)
            slot = np.zeros(self.count, dtype=np.int64)
            node_start, node_end = np.full(nodes, np.nan), np.full(nodes, np.nan)
            columns = {name: _contiguous(each) for name, each in self.columns.items()}
            _compiled()(*columns.values(), _contiguous(durations_ms), launch, finish, slot, node_start, node_end)
            return Listed(launch, finish, slot, node_start, node_end)
        if self._plain is None:  # lists: reading one number of an array costs several times as much
            self._plain = {
                name: each.tolist() if isinstance(each, np.ndarray) else each for name, each in self.columns.items()
            }
        outputs: list[Any] = [[0.0] * self.count, [0.0] * self.count, [0] * self.count]
        outputs += [[np.nan] * nodes, [np.nan] * nodes]
        plain: Callable[..., None] = _list
        plain(*self._plain.values(), durations_ms.tolist(), *outputs)
        launches, finishes, taken, starts, ends = outputs
        return Listed(
            np.array(launches, dtype=np.float64),
            np.array(finishes, dtype=np.float64),
            np.array(taken, dtype=np.int64),
            np.array(starts, dtype=np.float64),
            np.array(ends, dtype=np.float64),
        )


class _Work:
    """How many units this process has run plainly."""

    def __init__(self) -> None:
        self.units = 0

    def is_worth(self, units: int) -> bool:
        """Whether compiled code should run the next units; if not, they are counted."""
        if self.units + units >= WORTH_LOADING:
            return True
        self.units += units
        return False


_work = _Work()


@cache
def has_compiler() -> bool:
    """Whether numba is installed."""
    return find_spec("numba") is not None


@cache
def _compiled() -> Callable[..., None]:
    """The loop as machine code, which is kept beside this module, or where numba keeps it for a user."""
    import numba

    numba.extending.overload(_zeros)(lambda count: lambda count: np.zeros(count, np.int64))
    numba.extending.overload(_times)(lambda count: lambda count: np.full(count, -1.0))
    compiled: Callable[..., None] = numba.njit(cache=True)(_list)
    return compiled


def _contiguous(value: Any) -> Any:
    return np.ascontiguousarray(value) if isinstance(value, np.ndarray) else value


def _starts(numbers: Ints, count: int) -> Ints:
    """Where the rows of each number begin once they are sorted by it, (count + 1,)."""
    found: Ints = np.r_[0, np.cumsum(np.bincount(numbers, minlength=count))].astype(np.int64)
    return found


def _by_group(group: Ints, chosen: np.ndarray[Any, np.dtype[np.bool_]], groups: int) -> tuple[Ints, Ints]:
    """The chosen units sorted by group, each group's in recorded order, and where each group's begin."""
    units = np.flatnonzero(chosen)
    return units[np.argsort(group[units], kind="stable")], _starts(group[units], groups)


def _keys(dag: Dag, policy: Policy) -> Floats:
    """By group: of two that could go on, the one of the lower number goes first."""
    ranks = np.array([each.rank for each in dag.groups], dtype=np.float64)
    if not isinstance(policy.order, LongestFirst):
        return ranks
    left = np.array([policy.order.left_ms[each.group_id] for each in dag.groups], dtype=np.float64)
    keys = np.empty(len(ranks))
    pairs = np.stack([-left, ranks], axis=1)
    keys[:] = np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1)  # equal pairs stay equal
    return keys


def _zeros(count: int) -> Any:
    """Counts, in a list; in an array where it is compiled, which takes less to read there."""
    return [0] * count


def _times(count: int) -> Any:
    """Times that are not known yet, in the same way."""
    return [-1.0] * count


def _list(
    start: float,
    available: Any,
    until: Any,
    worker_of_slot: Any,
    host_of_worker: Any,
    first_slot: Any,
    workers_of_host: Any,
    first_worker: Any,
    group_of: Any,
    wanted_of: Any,
    host_of: Any,
    place_of: Any,
    anywhere: Any,
    anywhere_at: Any,
    elsewhere: Any,
    elsewhere_at: Any,
    home: Any,
    home_at: Any,
    home_host: Any,
    list_of: Any,
    homes_at: Any,
    left_of: Any,
    node_group: Any,
    node_from: Any,
    node_to: Any,
    node_of_group: Any,
    missing_of: Any,
    successors: Any,
    successors_at: Any,
    key: Any,
    is_fair: bool,
    limits: Any,
    patience: float,
    duration: Any,
    launch: Any,
    finish: Any,
    slot_of: Any,
    node_start: Any,
    node_end: Any,
) -> None:
    """A clock, a heap of ends, and queues; fills the last five columns.  One function, for it is compiled as one.

    X_at[i] is where the rows of i begin in X, which is sorted by what i counts.  `home` are the units that wait for
    their host, in lists of one group and host each; `list_of` says which a unit is in, `homes_at` which are a group's.
    """
    # Free slots: a stack for each worker, and a heap of (running, worker) whose entries may no longer be true.
    stack = _zeros(len(worker_of_slot))
    depth = _zeros(len(host_of_worker))
    running = _zeros(len(host_of_worker))
    heap = [(0, 0)]
    heap.pop()
    last_until = 0.0
    for each in until:
        last_until = max(last_until, each)
    # Hosts that have a free slot: how many each has, and the list of those hosts with each one's place in it.
    free_on = _zeros(len(first_worker) - 1)
    free_hosts = _zeros(len(first_worker) - 1)
    free_place = _zeros(len(first_worker) - 1)
    free_count = 0
    # Groups: the next unit of each queue, how many wait at home, and how many run.
    groups = len(left_of)
    left = _zeros(groups)
    waiting = _zeros(groups)
    at_home = _zeros(groups)
    lists_left = _zeros(groups)
    next_anywhere = _zeros(groups)
    next_elsewhere = _zeros(groups)
    active = _zeros(groups)
    since, wakes = _times(groups), _times(groups)
    blocked = _zeros(groups)
    for group in range(groups):
        left[group] = waiting[group] = left_of[group]
        next_anywhere[group], next_elsewhere[group] = anywhere_at[group], elsewhere_at[group]
        lists_left[group] = homes_at[group + 1] - homes_at[group]
        at_home[group] = home_at[homes_at[group + 1]] - home_at[homes_at[group]]
    next_home = _zeros(len(home_host))
    for each_list in range(len(home_host)):
        next_home[each_list] = home_at[each_list]
    missing = _zeros(len(node_group))
    ready = [0]
    ready.pop()
    to_start = [0]
    to_start.pop()
    for node in range(len(node_group)):
        missing[node] = missing_of[node]
        if missing[node] == 0:
            to_start.append(node)
    events = [(0.0, 0, 0, 0)]  # time, order of entry, kind, which
    events.pop()
    entered = 0
    for slot in range(len(available)):
        entered += 1
        heapq.heappush(events, (max(start, available[slot]), entered, _SLOT, slot))
    now = start
    begun = False
    turn = 0
    while True:
        for node in to_start:
            node_start[node] = now
            group = node_group[node]
            if group < 0:
                entered += 1
                heapq.heappush(events, (now + node_to[node] - node_from[node], entered, _NODE, node))
            elif left[group] == 0:
                entered += 1
                heapq.heappush(events, (now, entered, _NODE, node))
            else:
                ready.append(group)
                since[group] = now
        to_start.clear()
        if begun and len(events) > 0 and events[0][0] <= now:
            _, _, kind, which = heapq.heappop(events)
            if kind == _NODE:
                node_end[which] = now
                for position in range(successors_at[which], successors_at[which + 1]):
                    successor = successors[position]
                    missing[successor] -= 1
                    if missing[successor] == 0:
                        to_start.append(successor)
            elif kind != _WAKE:
                slot = which
                if kind == _UNIT:
                    slot = slot_of[which]
                    group = group_of[which]
                    active[group] -= 1
                    left[group] -= 1
                    running[worker_of_slot[slot]] -= 1
                worker = worker_of_slot[slot]
                host = host_of_worker[worker]
                stack[first_slot[worker] + depth[worker]] = slot
                depth[worker] += 1
                if free_on[host] == 0:
                    free_hosts[free_count] = host
                    free_place[host] = free_count
                    free_count += 1
                free_on[host] += 1
                heapq.heappush(heap, (running[worker], worker))
                if kind == _UNIT and left[group] == 0:
                    entered += 1
                    heapq.heappush(events, (now, entered, _NODE, node_of_group[group]))
            continue
        turn += 1
        while begun:  # launch what can be launched now
            group = -1
            for each_group in ready:
                if blocked[each_group] == turn:
                    continue
                if limits[each_group] >= 0 and active[each_group] >= limits[each_group]:
                    continue
                if group < 0:
                    group = each_group
                elif is_fair and active[each_group] != active[group]:
                    if active[each_group] < active[group]:
                        group = each_group
                elif key[each_group] < key[group]:
                    group = each_group
            if group < 0:
                break
            alive = False  # whether a slot is free; those of workers that are gone are dropped on the way
            while len(heap) > 0:
                was_running, worker = heap[0]
                base = first_slot[worker] - 1
                while depth[worker] > 0 and now >= until[stack[base + depth[worker]]]:
                    depth[worker] -= 1
                    host = host_of_worker[worker]
                    free_on[host] -= 1
                    if free_on[host] == 0:
                        free_count -= 1
                        free_hosts[free_place[host]] = free_hosts[free_count]
                        free_place[free_hosts[free_count]] = free_place[host]
                if depth[worker] > 0 and was_running == running[worker]:
                    alive = True
                    break
                heapq.heappop(heap)
            if not alive:
                for each_group in ready:  # no slot is left idle
                    since[each_group] = now
                break
            # The unit to launch, and the worker that it wants.
            unit, wanted = -1, -1
            if next_anywhere[group] < anywhere_at[group + 1]:
                unit = anywhere[next_anywhere[group]]
                wanted = wanted_of[unit]
            if at_home[group] > 0:
                best = -1
                if lists_left[group] <= free_count:
                    for position in range(homes_at[group], homes_at[group + 1]):
                        if next_home[position] < home_at[position + 1] and free_on[home_host[position]] > 0:
                            head = home[next_home[position]]
                            if best < 0 or head < best:
                                best = head
                else:
                    for number in range(free_count):
                        host = free_hosts[number]
                        low, high = homes_at[group], homes_at[group + 1]
                        while low < high:
                            middle = (low + high) // 2
                            if home_host[middle] < host:
                                low = middle + 1
                            else:
                                high = middle
                        found = low < homes_at[group + 1] and home_host[low] == host
                        if found and next_home[low] < home_at[low + 1]:
                            head = home[next_home[low]]
                            if best < 0 or head < best:
                                best = head
                if best >= 0 and (unit < 0 or best < unit):
                    worker = wanted_of[best]
                    near = -1
                    is_free = 0 <= worker < len(depth) and depth[worker] > 0
                    if is_free and now < until[stack[first_slot[worker] - 1 + depth[worker]]]:
                        near = worker
                    if near < 0:
                        host = host_of[best]
                        for position in range(first_worker[host], first_worker[host + 1]):
                            worker = workers_of_host[position]
                            if depth[worker] > 0 and now < until[stack[first_slot[worker] - 1 + depth[worker]]]:
                                near = worker
                                break
                    if near >= 0:
                        unit, wanted = best, near
            if unit < 0:
                patient_until = since[group] + patience
                if now >= patient_until:
                    if next_elsewhere[group] < elsewhere_at[group + 1]:
                        unit = elsewhere[next_elsewhere[group]]
                    for position in range(homes_at[group], homes_at[group + 1]):
                        if next_home[position] < home_at[position + 1]:
                            head = home[next_home[position]]
                            if unit < 0 or head < unit:
                                unit = head
                    if unit >= 0:
                        wanted = wanted_of[unit]
                elif wakes[group] != patient_until:
                    wakes[group] = patient_until
                    entered += 1
                    heapq.heappush(events, (patient_until, entered, _WAKE, group))
            if unit < 0:
                blocked[group] = turn
                continue
            # Its slot: of the worker that it wants, else of the least loaded one; not of one that is lost before the
            # unit would end, where others are.
            good = False
            if 0 <= wanted < len(depth) and depth[wanted] > 0:
                good = now < until[stack[first_slot[wanted] - 1 + depth[wanted]]]
            if not good:
                wanted = heap[0][1]
                ends = now + duration[unit]
                goes = until[stack[first_slot[wanted] - 1 + depth[wanted]]]
                if goes < ends and ends <= last_until:
                    wanted = -1
                    for worker in range(len(depth)):
                        stays = depth[worker] > 0 and until[stack[first_slot[worker] - 1 + depth[worker]]] >= ends
                        if stays and (wanted < 0 or running[worker] < running[wanted]):
                            wanted = worker
                    if wanted < 0:  # such workers are all there are now, and others are yet to come
                        blocked[group] = turn
                        continue
            depth[wanted] -= 1
            slot = stack[first_slot[wanted] + depth[wanted]]
            host = host_of_worker[wanted]
            free_on[host] -= 1
            if free_on[host] == 0:
                free_count -= 1
                free_hosts[free_place[host]] = free_hosts[free_count]
                free_place[free_hosts[free_count]] = free_place[host]
            running[wanted] += 1
            if depth[wanted] > 0:
                heapq.heappush(heap, (running[wanted], wanted))
            # Out of its queue, onto the slot.
            place = place_of[unit]
            if place == ANYWHERE:
                next_anywhere[group] += 1
            elif place == ELSEWHERE:
                next_elsewhere[group] += 1
            else:
                at_home[group] -= 1
                mine = list_of[unit]
                next_home[mine] += 1
                if next_home[mine] == home_at[mine + 1]:
                    lists_left[group] -= 1
            waiting[group] -= 1
            if waiting[group] == 0:
                for position in range(len(ready)):
                    if ready[position] == group:
                        ready.pop(position)
                        break
            active[group] += 1
            slot_of[unit] = slot
            launch[unit] = now
            finish[unit] = now + duration[unit]
            entered += 1
            heapq.heappush(events, (finish[unit], entered, _UNIT, unit))
        if len(events) == 0:
            break
        now = events[0][0]
        begun = True
