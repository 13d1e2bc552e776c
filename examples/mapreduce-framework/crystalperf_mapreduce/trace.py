"""Converts task attempts to the trace that CrystalPerf analyzes.

The stages are map and reduce, with the job's setup and cleanup where Hadoop runs these as tasks.  A reducer holds its
slot for the phases shuffle, sort and reduce, so they are parts of one task, not stages: another stage's task could have
the slot in between.  The table mapreduce_phases has their times.

Reducers start while maps run, and copy the outputs that are ready (slow start).  No reducer can end its shuffle before
the last map has ended, so a reducer counts from then on; before, it only waited, in slots that maps cannot use.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from crystalperf.plugin import (
    Edge,
    InputError,
    LogFile,
    Problems,
    Stage,
    Table,
    Task,
    Trace,
    Worker,
    of_rows,
    tables_of,
)
from crystalperf_mapreduce import starfish_job
from crystalperf_mapreduce.history import Attempt, Job, read
from crystalperf_mapreduce.starfish_job import MAP_SLOTS, REDUCE_SLOTS

ORDER = ("setup", "map", "reduce", "cleanup")

REDUCERS = "reducers"
"""Property of a run: its reduce tasks that succeeded."""

EARLY = "reducers started before the last map ended"
"""Property of a run: the number of these reducers."""

KEPT = (
    "mapreduce.map.output.compress", "mapreduce.output.fileoutputformat.compress", "mapreduce.task.io.sort.mb",
    "mapred.task.profile", MAP_SLOTS, REDUCE_SLOTS, *starfish_job.KEPT,
)  # fmt: skip
"""Settings of a job that its trace keeps."""

SCHEMA = """
CREATE TABLE mapreduce_phases (  -- the phases of a task attempt, as far as the history states them
    task_id INTEGER NOT NULL,  -- the attempt, as in tasks
    attempt VARCHAR NOT NULL,  -- its id in Hadoop
    phase VARCHAR NOT NULL,    -- setup, map, merge (last spill, merge of spills), wait, shuffle, sort, reduce, cleanup
    start_ms DOUBLE NOT NULL,  -- start, since the start of the run
    end_ms DOUBLE NOT NULL     -- end, since the start of the run
);
"""
"""A reducer's phase `wait` lasts until the last map has ended; it copies the outputs that are ready meanwhile."""

Phases = list[tuple[str, float, float]]


def phase_id(kind: str) -> str:
    """The id of a stage."""
    return f"tasks:{kind}"


def raw() -> tuple[Table, ...]:
    """The table of phases."""
    return tables_of(SCHEMA)


def of_log(log: LogFile) -> Trace:
    """The trace of a job.  Raises InputError if no task attempt ended."""
    problems = Problems(log.problems)
    job = read(log, problems)
    ran = {name: each for name, each in job.attempts.items() if each.start is not None and each.end is not None}
    if not ran:
        raise InputError(f"{log.origin}: holds no task attempt that ended; give the history of a job that has ended")
    if len(ran) < len(job.attempts):
        meaning = "the history lacks the start or the end of a task attempt, which is left out"
        problems.add("attempt without end", "data loss", log.origin, None, meaning, len(job.attempts) - len(ran))
    start = min([each.start for each in ran.values()] + ([] if job.submitted is None else [job.submitted]))
    end = max([each.end for each in ran.values()] + ([] if job.finished is None else [job.finished]))
    phases = _phases(ran, start)
    tasks = [_task(number, ran[name], phases[name], len(_nodes(ran))) for number, name in enumerate(phases)]
    stages = _stages(tasks)
    slots, known = _slots(job, ran)
    if not known:
        meaning = "the slots of nodes are not in the history: a node has as many as it ever ran tasks at a time"
        problems.add("slots unknown", "info", log.origin, None, meaning)
    ids = [each.stage_id for each in stages]
    trace = of_rows(
        {
            "app_id": job.job_id or log.app_id,
            "name": job.name,
            "framework": "mapreduce",
            "framework_version": None if not job.is_text else "0.20 or 1",
            "started_at_ms": start,
            "duration_ms": float(end - start),
            "complete": job.finished is not None,
            "properties": {
                **{key: job.conf[key] for key in KEPT if key in job.conf},
                **({starfish_job.PROFILE: job.profile} if job.profile else {}),
                REDUCERS: str(
                    sum(each.stage_id == phase_id("reduce") and each.status == "succeeded" for each in tasks)
                ),
                EARLY: str(sum(each[0][0] == "wait" and each[0][2] > each[0][1] for each in phases.values())),
            },
        },
        workers=[Worker(node, slots[node], host=node) for node in _nodes(ran)],
        stages=stages,
        tasks=tasks,
        edges=[Edge(one, other, "barrier", "reads its outputs") for one, other in pairwise(ids)],
        problems=list(problems),
    )
    return replace(trace, raw={"mapreduce_phases": _table(phases)})


def _nodes(ran: dict[str, Attempt]) -> list[str]:
    return sorted({each.tracker or "unknown" for each in ran.values()})


def _slots(job: Job, ran: dict[str, Attempt]) -> tuple[dict[str, int], bool]:
    """The slots of each node, and whether the configuration states them.

    Hadoop 0.20 and 1 have slots for maps and others for reducers.  Reducers count from the end of the last map, so both
    may take the same; there are as many as of the kind that has more.
    """
    stated = [int(job.conf[key]) for key in (MAP_SLOTS, REDUCE_SLOTS) if job.conf.get(key, "").isdigit()]
    if stated and job.is_text:
        return dict.fromkeys(_nodes(ran), max(stated)), True
    most: dict[str, int] = defaultdict(int)
    for kind in ORDER:
        moments = sorted(
            (at, step, each.tracker or "unknown")
            for each in ran.values() if each.kind == kind for at, step in ((each.start, 1), (each.end, -1))
        )  # fmt: skip
        running: Counter[str] = Counter()
        for _, step, node in moments:
            running[node] += step
            most[node] = max(most[node], running[node])
    return most, False


def _phases(ran: dict[str, Attempt], start: int) -> dict[str, Phases]:
    """By attempt the phases, ms since the start of the run, in order of their launch; without reducers that ended
    before the last map did."""
    mapped = max((each.end for each in ran.values() if each.kind == "map" and each.status == "succeeded"), default=0)
    found: dict[str, Phases] = {}
    for name, each in sorted(ran.items(), key=lambda item: (item[1].start, item[0])):
        names, moments = [each.kind], [each.start, each.end]
        if each.kind == "map" and each.mapped:
            names, moments = ["map", "merge"], [each.start, each.mapped, each.end]
        elif each.kind == "reduce":
            names = ["wait", "shuffle", "sort", "reduce"]
            shuffled = each.shuffled or each.end
            sorted_ = each.sorted or shuffled
            moments = [each.start, max(each.start, min(mapped, shuffled)), shuffled, sorted_, each.end]
            if each.end <= mapped:
                continue
        parts = zip(names, moments, moments[1:], strict=False)
        found[name] = [(phase, float(a - start), float(max(b, a) - start)) for phase, a, b in parts]
    return dict(sorted(found.items(), key=lambda item: _launch(item[1])))


def _launch(phases: Phases) -> float:
    return phases[1][1] if phases[0][0] == "wait" else phases[0][1]


def _task(number: int, attempt: Attempt, phases: Phases, nodes: int) -> Task:
    launch, finish, has = _launch(phases), phases[-1][2], attempt.counters
    lasting = {phase: end - start for phase, start, end in phases if phase != "wait"}
    cpu = min(float(has.get("CPU_MILLISECONDS", 0)), finish - launch)
    shuffled = has.get("REDUCE_SHUFFLE_BYTES")
    far = None if shuffled is None else round(shuffled * (1 - 1 / nodes))
    net = lasting.get("shuffle", 0.0) if far is None or far else 0.0
    likely = {"net": net, "disk": lasting.get("sort", 0.0) + lasting.get("merge", 0.0)}
    share = min(1.0, (finish - launch - cpu) / max(sum(likely.values()), 1.0))
    is_map = attempt.kind == "map"
    return Task(
        number, phase_id(attempt.kind), attempt.tracker or "unknown", launch, finish,
        host=attempt.tracker, status=attempt.status, reason=attempt.error,
        input_bytes=_bytes(has, "READ") if is_map else None, output_bytes=_bytes(has, "WRITTEN"),
        exchange_write_bytes=(
            has.get("MAP_OUTPUT_MATERIALIZED_BYTES", has.get("FILE_BYTES_WRITTEN")) if is_map else None
        ),
        remote_read_bytes=far, local_read_bytes=None if shuffled is None else shuffled - (far or 0),
        peak_memory_bytes=has.get("PHYSICAL_MEMORY_BYTES"), own_cpu_ms=cpu or None,
        measured_ms={"cpu": cpu}, likely_ms={name: ms * share for name, ms in likely.items()},
    )  # fmt: skip


def _bytes(counters: dict[str, int], what: str) -> int | None:
    """Bytes that a task read from or wrote to file systems other than the local one."""
    found = [n for name, n in counters.items() if name.endswith(f"_BYTES_{what}") and not name.startswith("FILE_")]
    return sum(found) if found else None


def _stages(tasks: Sequence[Task]) -> list[Stage]:
    found = []
    for rank, kind in enumerate(ORDER):
        mine = [each for each in tasks if each.stage_id == phase_id(kind)]
        if mine:
            first, last = min(each.launch_ms for each in mine), max(each.finish_ms for each in mine)
            found.append(Stage(phase_id(kind), len(mine), first, last, kind, priority=rank))
    return found


def _table(phases: dict[str, Phases]) -> dict[str, Any]:
    rows = [(number, name, *each) for number, name in enumerate(phases) for each in phases[name]]
    names = ("task_id", "attempt", "phase", "start_ms", "end_ms")
    return {name: np.array(column, dtype=object) for name, column in zip(names, zip(*rows, strict=True), strict=True)}
