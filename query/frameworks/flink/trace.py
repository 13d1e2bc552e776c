"""An archive of a job as a trace of the core (query.trace).

A vertex is a stage, a subtask's attempt a task.  An edge with a blocking exchange is a barrier, any other is pipelined:
both vertices run at once, and time in which a subtask was idle or back-pressured because of such an edge is its
neighbours' time, not its own.

Subtasks of a pipeline share slots, and an archive does not say which.  So the slots of a TaskManager are the most
subtasks that ran on it at a time: what ran concurrently can run concurrently in the replay.
"""

from __future__ import annotations

import html
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from crystalperf.indexes.errors import InputError
from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.regex import regex
from crystalperf.indexes.resources import known
from crystalperf.indexes.schema import Table, read
from crystalperf.query import sql
from crystalperf.query.frameworks.flink import archive, series, tables
from crystalperf.query.frameworks.flink.archive import Archive, Attempt
from crystalperf.query.frameworks.flink.planning import MAX_SUBTASKS, SHARING, STOPPED, UNPLACED
from crystalperf.query.frameworks.flink.series import Series
from crystalperf.query.inputs.containers import LogFile
from crystalperf.query.trace.contract import Bounds, Edge, EdgeKind, Scope, Stage, Trace, Worker, rows
from crystalperf.query.trace.records import Columns, Problems, integers, numbers, objects, shortened

_TASK_STATUS = {"FINISHED": "succeeded", "FAILED": "failed", "CANCELED": "killed", "CANCELING": "killed"}
_JOB_STATUS = {"FINISHED": "succeeded", "FAILED": "failed", "CANCELED": "failed", "SUSPENDED": "failed"}

_UNKNOWN_WORKER = "unknown"

CALLED_OFF = "the job was canceled"
"""The end reason of a canceled job and of its subtasks."""


def raw_tables() -> tuple[Table, ...]:
    """Flink's own tables of a run file."""
    return read(sql.text("schema", __package__))


def read_archive(log: LogFile) -> Trace:
    """The trace of an archive.  Raises InputError."""
    problems = Problems(log.problems)
    found = archive.read(replace(log, parts=log.parts[:1]), problems)
    metrics = series.Series()
    if len(log.parts) > 1:
        metrics = series.read(replace(log, parts=log.parts[1:]), problems)
    return trace(found, metrics, log.origin, problems)


@frozen
class _Subtask:
    """One attempt of a subtask, on the run's clock; `starting_ms` is deploying it and opening its operators."""

    vertex: str
    facts: Attempt
    launch_ms: float
    finish_ms: float
    starting_ms: float

    @property
    def worker(self) -> str:
        return self.facts.worker or self.facts.host or _UNKNOWN_WORKER


def trace(found: Archive, metrics: Series, origin: str, problems: Problems) -> Trace:
    """The trace of an archive's pages and of its collected metrics."""
    job = found.job
    if not found.vertices and job.state not in _JOB_STATUS:
        raise InputError(
            f"{origin}: the page of the job has no vertices, so it shows nothing that ran; save it again once they run"
        )
    subtasks = _subtasks(found, origin, problems)
    start_ms, end_ms = _span(found, subtasks, origin, problems)
    order = _order(found)
    ids = {vertex: f"vertex:{number}" for number, vertex in enumerate(order)}
    edges = _edges(found, ids)
    subtasks = [_shifted(each, start_ms, end_ms) for each in subtasks if each.vertex in ids]
    streams = _is_stream(found)
    waits = _waits(subtasks, edges, ids, all_of_them=streams)
    width = _width(edges)
    slots = _with_slots(_used_slots(subtasks), _slots(found, metrics), width)
    tasks = _tasks(subtasks, ids, waits, found)
    if not streams:
        tasks |= _read_bytes(subtasks, edges, ids)
    return Trace(
        run={
            "app_id": job.jid,
            "name": shortened(job.name),
            "framework": "flink",
            "framework_version": shortened(found.version or metrics.version, 40),
            "measure": "latency" if streams and metrics.samples else "makespan",
            "started_at_ms": round(start_ms),
            "duration_ms": end_ms - start_ms,
            "complete": job.state in _JOB_STATUS,
            "properties": {
                **{key: value for key, value in found.settings.items() if key in _KEPT_SETTINGS},
                **({"stream": "true"} if streams else {}),
                **({STOPPED: "true"} if streams and job.state != "FINISHED" else {}),
                **({SHARING: str(width)} if width > 1 else {}),
                **({UNPLACED: "true"} if {each.worker for each in subtasks} == {_UNKNOWN_WORKER} else {}),
                **_widest(found, ids, streams=streams),
            },
            "libraries": [],
        },
        workers=rows(_workers(subtasks, slots, _first_request_ms(found, start_ms))),
        stages=rows([_stage(found, vertex, ids, subtasks, edges) for vertex in order]),
        tasks=tasks,
        bounds=_bounds(subtasks, waits, streams=streams),
        dependencies=rows(edges),
        scopes=rows([_scope(found, end_ms - start_ms)]),
        problems=tuple(problems),
        raw={
            "flink_vertices": {
                "stage_id": objects([ids[vertex] for vertex in order]),
                "vertex_id": objects(order),
                "parallelism": integers([found.vertices[vertex].parallelism for vertex in order]),
                "description": objects([_description(found, vertex) for vertex in order]),
            },
            "flink_subtasks": _subtask_table(subtasks),
            **tables.of_series(metrics, start_ms, ids),
        },
        task_threads=tuple(_thread(found, each) for each in subtasks),
    )


_KEPT_SETTINGS = frozenset(
    [
        "execution-mode", "job-parallelism", "object-reuse-mode", "restart-strategy", "taskmanager.numberOfTaskSlots",
        "execution.buffer-timeout.interval", "execution.buffer-timeout", "execution.buffer-timeout.enabled",
        "state.backend.type", "state.backend",
    ]
)  # fmt: skip


def _widest(found: Archive, ids: Mapping[str, str], *, streams: bool) -> dict[str, str]:
    """The maximum subtasks of each vertex, as settings, where Flink reports it: the number of key groups of a stream.

    In a batch job the number is the most that the scheduler would choose, so only 1 is a limit: such a vertex cannot
    run in parallel.
    """
    listed = [(each.id, each.most) for each in found.job.vertices] + [
        (i, each.most) for i, each in found.vertices.items()
    ]
    most = {vertex: count for vertex, count in listed if count > 0}
    return {
        f"{MAX_SUBTASKS}{ids[vertex]}": str(count)
        for vertex, count in most.items()
        if vertex in ids and (streams or count == 1)
    }


# Subtasks ---------------------------------------------------------------------------------------------------------


def _subtasks(found: Archive, origin: str, problems: Problems) -> list[_Subtask]:
    """All attempts that started, by start time, still in Unix ms."""
    listed: list[_Subtask] = []
    for vertex_id, vertex in found.vertices.items():
        attempts = {(each.subtask, each.attempt): each for each in vertex.subtasks}
        attempts |= {(each.subtask, each.attempt): each for each in found.attempts.get(vertex_id, ())}
        if not attempts and vertex.parallelism:
            problems.add(
                "no subtasks", "data loss", origin, vertex.name, "vertices whose subtasks are not in the archive"
            )
        last = _last(attempts.values())
        for (number, attempt), each in attempts.items():
            states = found.states_ms.get((vertex_id, number), {}) if last[number] == attempt else {}
            launch = _known(each.start_ms) or states.get("DEPLOYING") or states.get("SCHEDULED")
            if launch is None:
                continue  # never given to a TaskManager
            finish = _known(each.end_ms) or math.inf
            listed.append(_Subtask(vertex_id, each, launch, finish, _starting(each, states, launch, finish)))
    return sorted(listed, key=lambda each: (each.launch_ms, each.vertex, each.facts.subtask))


def _last(attempts: Iterable[Attempt]) -> dict[int, int]:
    """By subtask, the attempt that decides how it ended: the highest number, unless a concurrent attempt finished
    first.  Of the attempts that speculative execution starts next to a slow one, Flink cancels the others.
    """
    by_subtask: dict[int, list[Attempt]] = {}
    for each in attempts:
        by_subtask.setdefault(each.subtask, []).append(each)
    found = {}
    for number, tries in by_subtask.items():
        last = max(tries, key=lambda each: each.attempt)
        began = _known(last.start_ms) or 0.0
        won = [each for each in tries if each.status == "FINISHED" and (_known(each.end_ms) or math.inf) > began]
        found[number] = (won or [last])[0].attempt
    return found


def _starting(each: Attempt, states: Mapping[str, float], launch: float, finish: float) -> float:
    """Deploying and initializing, ms; 0 if the archive has no times of states."""
    spent = sum(max(each.spent_ms.get(state) or 0.0, 0.0) for state in ("DEPLOYING", "INITIALIZING"))
    if not spent and launch < states.get("RUNNING", 0.0) <= finish:
        spent = states["RUNNING"] - launch
    return spent


def _known(moment: float | None) -> float | None:
    return moment if moment is not None and moment > 0 else None


def _span(found: Archive, subtasks: list[_Subtask], origin: str, problems: Problems) -> tuple[float, float]:
    """Start and end of the job, Unix ms; from its subtasks if the job's own page has none.

    A job that was restarted starts at its restart if nothing is recorded of the subtasks that ran before.
    """
    job = found.job
    first = min((each.launch_ms for each in subtasks), default=0.0)
    start = _known(job.start_ms) or first
    restarted = _known(job.timestamps.get("RESTARTING"))
    if restarted is not None and start < restarted <= first:
        meaning = (
            f"the job restarted {_minutes(restarted - start)} after its start, and the archive lacks earlier subtasks;"
            " the run starts at the restart"
        )
        problems.add("restarted", "data loss", origin, None, meaning)
        start = restarted
    ends = [each.finish_ms for each in subtasks if math.isfinite(each.finish_ms)]
    end = _known(job.end_ms) or _known(job.now) or max(ends, default=start)
    return start, max(end, start)


def _minutes(ms: float) -> str:
    return f"{ms / 6e4:.1f} min" if ms >= 6e4 else f"{ms / 1e3:.1f} s"


def _shifted(each: _Subtask, start_ms: float, end_ms: float) -> _Subtask:
    launch = min(max(each.launch_ms, start_ms), end_ms)
    finish = max(min(each.finish_ms, end_ms), launch)
    starting = min(each.starting_ms, finish - launch)
    return _Subtask(each.vertex, each.facts, launch - start_ms, finish - start_ms, starting)


def _waits(subtasks: list[_Subtask], edges: list[Edge], ids: Mapping[str, str], *, all_of_them: bool) -> list[float]:
    """Per subtask, how long it waited for the others of its pipeline, ms.

    A source of a stream waits for its external input: then `all_of_them` count, with any inputs.
    """
    flows = [each for each in edges if each.kind == "pipelined"]
    reads, feeds = {each.target for each in flows}, {each.source for each in flows}
    found = []
    for each in subtasks:
        idle, pressed = (
            _measured(value) for value in (each.facts.metrics.idle_ms, each.facts.metrics.backpressured_ms)
        )
        waits_for_input, feeds_others = (all_of_them or ids[each.vertex] in stage for stage in (reads, feeds))
        waited = (idle or 0.0) * waits_for_input + (pressed or 0.0) * feeds_others
        found.append(min(waited, each.finish_ms - each.launch_ms - each.starting_ms))
    return found


def _measured(value: float | str | None) -> float | None:
    """A summed time in ms; None for "NaN" and negative values, which mean that it was not measured."""
    try:
        number = float(value) if value is not None else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _reason(each: _Subtask, found: Archive) -> str | None:
    """Why a subtask did not succeed: the failure of its thread if recorded, else its state."""
    if each.facts.status not in ("FAILED", "CANCELED"):
        return None
    if each.facts.status == "CANCELED" and found.job.state == "CANCELED":
        return CALLED_OFF
    vertex = found.vertices[each.vertex]
    thread = f"{vertex.name} ({each.facts.subtask + 1}/{vertex.parallelism}) - execution #{each.facts.attempt}"
    for failure in found.failures if each.facts.status == "FAILED" else ():
        if failure.task is not None and html.unescape(failure.task) in (
            html.unescape(thread),
            thread.partition(" - ")[0],
        ):
            return _cause(failure.stack) or failure.name
    return each.facts.status.lower()


def _counted(value: int | None) -> int | None:
    """A count; None for a negative one, which means that it was not counted."""
    return value if value is not None and value >= 0 else None


def _tasks(subtasks: list[_Subtask], ids: Mapping[str, str], waits: list[float], found: Archive) -> Columns:
    facts = [each.facts for each in subtasks]
    starting = numbers([each.starting_ms for each in subtasks])
    return {
        "task_id": objects(range(len(subtasks))),
        "stage_id": objects([ids[each.vertex] for each in subtasks]),
        "worker_id": objects([each.worker for each in subtasks]),
        "host": objects([_host(each.host) for each in facts]),
        "partition_index": integers([each.subtask for each in facts]),
        "attempt": integers([each.attempt for each in facts]),
        "launch_ms": objects([each.launch_ms for each in subtasks]),
        "finish_ms": objects([each.finish_ms for each in subtasks]),
        "status": objects([_TASK_STATUS.get(each.status, "unfinished") for each in facts]),
        "reason": objects([_reason(each, found) for each in subtasks]),
        "recomputed": objects([False] * len(subtasks)),
        "starting_ms": starting,
        "overhead_ms": starting,
        "pipeline_wait_ms": objects(waits),
        "exchange_write_bytes": integers([_counted(each.metrics.written_bytes) for each in facts]),
    }


def _read_bytes(subtasks: list[_Subtask], edges: list[Edge], ids: Mapping[str, str]) -> Columns:
    """Bytes that each subtask read over the network and locally; unknown if the places of its sources are.

    Flink sums up what a subtask read, local and remote.  The share that its sources wrote on other machines crossed the
    network: each source gives all of its readers about the same, and a source that gives to one reader mostly shares
    its machine.
    """
    sources: dict[str, set[str]] = {}
    for edge in edges:
        sources.setdefault(edge.target, set()).add(edge.source)
    written: Counter[tuple[str, str]] = Counter()
    for each in subtasks:
        written[ids[each.vertex], _machine(each)] += _counted(each.facts.metrics.written_bytes) or 0
    remote, local = list[int | None](), list[int | None]()
    for each in subtasks:
        read, given = _counted(each.facts.metrics.read_bytes), sources.get(ids[each.vertex], set())
        given_bytes = {place: count for place, count in written.items() if place[0] in given}
        far = sum(count for (_, machine), count in given_bytes.items() if machine != _machine(each))
        share = far / sum(given_bytes.values()) if sum(given_bytes.values()) else 0.0
        remote.append(None if read is None else round(read * share))
        local.append(None if read is None else read - round(read * share))
    return {"remote_read_bytes": integers(remote), "local_read_bytes": integers(local)}


def _machine(each: _Subtask) -> str:
    return _host(each.facts.host) or each.worker


def _bounds(subtasks: list[_Subtask], waits: list[float], *, streams: bool) -> Bounds:
    """Bounds of subtasks' time; waiting for other subtasks was measured, and is on no resource.

    A subtask occupies its slot from deployment on: its thread then loads classes and opens operators, which its samples
    show.  For a stream that is left out, because it says nothing about a record.
    """
    columns = len(known()) + 1
    floor, outside, nothing = (np.zeros((len(subtasks), columns)) for _ in range(3))
    held = np.zeros(len(subtasks))
    for number, each in enumerate(subtasks):
        apart = each.starting_ms if streams else 0.0
        held[number] = each.finish_ms - each.launch_ms - apart
        floor[number, -1] = waits[number]
        outside[number, -1] = apart
    return Bounds(held, floor, nothing, outside)


def _subtask_table(subtasks: list[_Subtask]) -> dict[str, np.ndarray[tuple[int], np.dtype[np.object_]]]:
    facts = [each.facts for each in subtasks]
    metrics = [each.metrics for each in facts]
    spent = {state: [_measured(each.spent_ms.get(state)) for each in facts] for state in _STATES}
    return {
        "task_id": np.arange(len(subtasks)),
        "subtask": integers([each.subtask for each in facts]),
        "attempt": integers([each.attempt for each in facts]),
        "state": objects([shortened(each.status, 40) or "UNKNOWN" for each in facts]),
        **{name: numbers(spent[state]) for state, name in _STATES.items()},
        "busy_ms": numbers([_measured(each.busy_ms) for each in metrics]),
        "idle_ms": numbers([_measured(each.idle_ms) for each in metrics]),
        "backpressured_ms": numbers([_measured(each.backpressured_ms) for each in metrics]),
        **{
            name: integers([_counted(getattr(each, name)) for each in metrics])
            for name in ("read_bytes", "written_bytes", "read_records", "written_records")
        },
    }


_STATES = {"DEPLOYING": "deploying_ms", "INITIALIZING": "initializing_ms", "RUNNING": "running_ms"}


# Vertices and the job ---------------------------------------------------------------------------------------------


def _order(found: Archive) -> list[str]:
    """Vertex ids in topological order, ties in the order of the plan."""
    reads = {node.id: [each.source for each in node.inputs] for node in found.plan.nodes}
    order: dict[str, None] = {}
    pending = [*(node.id for node in found.plan.nodes if node.id in found.vertices), *found.vertices]
    while pending:
        ready = [
            each for each in pending if all(source in order or source not in pending for source in reads.get(each, ()))
        ]
        for each in ready or pending[:1]:  # a cycle, as iterations have: any order
            order.setdefault(each)
        pending = [each for each in pending if each not in order]
    return list(order)


def _edges(found: Archive, ids: Mapping[str, str]) -> list[Edge]:
    edges = []
    for node in found.plan.nodes:
        for each in node.inputs:
            if node.id in ids and each.source in ids:
                kind: EdgeKind = "barrier" if each.exchange.startswith("blocking") else "pipelined"
                why = shortened(html.unescape(each.strategy), 100) or each.exchange or "reads"
                edges.append(Edge(ids[each.source], ids[node.id], kind, why))
    return edges


def _stage(found: Archive, vertex: str, ids: Mapping[str, str], subtasks: list[_Subtask], edges: list[Edge]) -> Stage:
    facts, own = found.vertices[vertex], [each for each in subtasks if each.vertex == vertex]
    last = _last(each.facts for each in own)
    states = Counter(each.facts.status for each in own if last[each.facts.subtask] == each.facts.attempt)
    status = "unfinished"
    if own and set(states) == {"FINISHED"}:
        status = "succeeded"
    elif states["FAILED"]:
        status = "failed"
    launch = min((each.launch_ms for each in own), default=None)
    flows = any(each.kind == "pipelined" and each.target == ids[vertex] for each in edges)
    return Stage(
        stage_id=ids[vertex],
        task_count=max(facts.parallelism, len({each.facts.subtask for each in own})),
        first_launch_ms=launch,
        end_ms=max((each.finish_ms for each in own), default=None),
        name=shortened(html.unescape(facts.name), 200),
        scope_id=_scope_id(found),
        priority=int(ids[vertex].partition(":")[2]),
        submit_ms=None if flows else launch,
        status=status,  # type: ignore[arg-type]
    )


def _scope_id(found: Archive) -> str:
    return f"job:{found.job.jid[:8]}"


def _scope(found: Archive, duration_ms: float) -> Scope:
    job = found.job
    status = _JOB_STATUS.get(job.state, "unfinished")
    error = None
    if job.state == "CANCELED":
        error = CALLED_OFF
    elif status == "failed":
        error = _cause(found.error) or _first_failed(found) or job.state.lower()
    return Scope(_scope_id(found), "job", 0.0, duration_ms, shortened(job.name), status=status, error=error)  # type: ignore[arg-type]


def _first_failed(found: Archive) -> str | None:
    """If no reason for a job's failure is recorded, the vertex whose subtask failed first."""
    failed = [
        (_known(each.end_ms) or math.inf, vertex.name)
        for vertex in found.vertices.values()
        for each in vertex.subtasks
        if each.status == "FAILED"
    ]
    name = min(failed, default=(0.0, ""))[1]
    return f"{html.unescape(name)} failed, and the page does not say why" if name else None


_CAUSE = regex(r"^(?:Caused by: )?(?:[\w$]+\.)*([\w$]+(?:Exception|Error|Throwable)[^\n]*)", re.MULTILINE)


def _cause(error: str | None) -> str | None:
    """The last cause of an exception, which is the root cause, without its package."""
    causes = _CAUSE.findall((error or "")[:200_000])
    return shortened(causes[-1] if causes else error)


def _description(found: Archive, vertex: str) -> str | None:
    text = next((node.description for node in found.plan.nodes if node.id == vertex), "")
    return shortened(re.sub(r"<br\s*/?>", " ", html.unescape(text)))


def _is_stream(found: Archive) -> bool:
    """Whether all vertices of a job run at a time; if known, latency and rate of records measure such a job."""
    nodes = found.plan.nodes
    pipelined = all(not each.exchange.startswith("blocking") for node in nodes for each in node.inputs)
    if any(node.optimized for node in nodes):  # a job of the DataSet API
        return False
    return pipelined and found.plan.type != "BATCH" and found.job_type != "BATCH"


# TaskManagers -----------------------------------------------------------------------------------------------------


def _used_slots(subtasks: list[_Subtask]) -> dict[str, int]:
    """The most concurrent subtasks, by TaskManager."""
    found: dict[str, int] = {}
    for worker in dict.fromkeys(each.worker for each in subtasks):
        own = [each for each in subtasks if each.worker == worker]
        launch, finish = (np.sort([getattr(each, name) for each in own]) for name in ("launch_ms", "finish_ms"))
        ended = np.searchsorted(finish, launch, side="right")  # one that ends as another begins does not overlap it
        found[worker] = int((np.arange(1, len(own) + 1) - ended).max())
    return found


def _slots(found: Archive, metrics: Series) -> dict[str, int]:
    """The slots of each TaskManager, if recorded."""
    stated = found.settings.get("taskmanager.numberOfTaskSlots", "")
    slots = {} if not stated.isdigit() else {each.worker: int(stated) for each in _placed(found) if each.worker}
    for worker, facts in metrics.workers.items():
        if isinstance(facts.get("slots"), int) and facts["slots"] > 0:
            slots[worker] = facts["slots"]
    return slots


def _placed(found: Archive) -> list[Attempt]:
    """All attempts of the pages."""
    listed = [each for vertex in found.vertices.values() for each in vertex.subtasks]
    return listed + [each for attempts in found.attempts.values() for each in attempts]


def _with_slots(seen: Mapping[str, int], slots: Mapping[str, int], width: int) -> dict[str, int]:
    """Slots by TaskManager: a slot takes a subtask of each vertex of a pipeline at a time, at most `width` of them."""
    return {worker: max(seen.get(worker, 0), slots.get(worker, 0) * width) for worker in dict.fromkeys((*seen, *slots))}


def _width(edges: list[Edge]) -> int:
    """The number of vertices that share slots because records flow between them, at most."""
    pipelines: dict[str, set[str]] = {}
    for each in edges:
        if each.kind == "pipelined":
            joined = pipelines.get(each.source, {each.source}) | pipelines.get(each.target, {each.target})
            pipelines |= dict.fromkeys(joined, joined)
    return max(map(len, pipelines.values()), default=1)


_NO_SLOT_MS = 1000.0
"""If a TaskManager got its first subtask this much later than the subtask was scheduled, it had to wait for a slot,
unless the JobManager took as long for everything before: then the JobManager is slow, with free slots as well."""


def _first_request_ms(found: Archive, start_ms: float) -> float | None:
    """When the first slot was requested, since the run's start; None if not recorded.

    A subtask is SCHEDULED until it has a slot.  Without states of subtasks, the job's state RUNNING marks the same
    moment.
    """
    scheduled = [states["SCHEDULED"] for states in found.states_ms.values() if "SCHEDULED" in states]
    first = min(scheduled, default=None) or _known(found.job.timestamps.get("RUNNING"))
    return None if first is None else max(first - start_ms, 0.0)


def _workers(subtasks: list[_Subtask], slots: Mapping[str, int], request_ms: float | None) -> list[Worker]:
    """TaskManagers; if the job's first subtask had to wait for a slot, they exist only from its start on."""
    hosts = {each.worker: _host(each.facts.host) for each in subtasks}
    begin_ms = min((each.launch_ms for each in subtasks), default=0.0)
    late = request_ms is not None and begin_ms - request_ms > max(_NO_SLOT_MS, request_ms)
    return [
        Worker(worker, count, host=hosts.get(worker), added_ms=begin_ms if late else 0.0)
        for worker, count in slots.items()
    ]


def _host(text: str | None) -> str | None:
    """The host without the port that older versions append."""
    return None if text is None else shortened(re.sub(r":\d+$", "", text), 200)


def _thread(found: Archive, each: _Subtask) -> str:
    """Flink's name for the thread of a subtask: its vertex, its number and its attempt."""
    vertex = found.vertices[each.vertex]
    return f"{html.unescape(vertex.name)} ({each.facts.subtask + 1}/{vertex.parallelism})#{each.facts.attempt}"
