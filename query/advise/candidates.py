"""Candidate recommendations for a run, before their savings are predicted.

The framework contributes changes of its settings and programs (Advisor.candidates), and how to change a what-if's
setting in its terms (Advisor.resizing_candidate); faster hardware is the same for all.  query.advise.ranking predicts
what each saves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import duckdb

from crystalperf.indexes.resources import CPU, OTHER
from crystalperf.query.diagnose.advisor import Advisor
from crystalperf.query.diagnose.stage_statistics import Diagnosis
from crystalperf.query.execution.execution import Execution
from crystalperf.query.results import advice
from crystalperf.query.results.advice import AvoidExhaustion, StartWorkersSooner
from crystalperf.query.results.answers import Debug
from crystalperf.query.results.findings import (
    AtEnd,
    AtStart,
    Driver,
    Finding,
    GarbageCollection,
    IdleSlots,
    NoScope,
    NoWorker,
    ShortOfCpus,
    Spilling,
    StageFinding,
    StartingTasks,
    Straggler,
)
from crystalperf.query.results.recommendations import (
    MEASURED,
    MODELLED,
    STOPPED,
    Candidate,
    FasterDevice,
    FixFailure,
    FollowAdvice,
    MoreMemory,
    MoreWorkers,
    Price,
    Saving,
)

FASTER_CPU = 1.25
"""Speedup of a recommended faster CPU: about that of a newer generation or a faster clock."""

MIN_SHARE = 0.05
"""A faster device is a candidate if it has this share of the runtime on the critical path."""

MAX_IDLE = 0.5
"""More slots do not help tasks that leave this share of the slots idle."""

_OF_TASKS = (IdleSlots, Straggler, StartingTasks, Spilling, GarbageCollection)
"""Findings about tasks and slots, for which a framework with candidates of its own has recommendations."""


def candidates(
    connection: duckdb.DuckDBPyConnection, execution: Execution, advisor: Advisor, diagnosis: Diagnosis
) -> list[Candidate]:
    """All candidates, unranked."""
    debug = diagnosis.debug
    own = [] if advisor.candidates is None else list(advisor.candidates(connection, execution, diagnosis))
    known = {each.recommendation.because for each in own}
    found = [
        *([] if STOPPED in known else _failure(debug)),
        *_unmeasured(connection, advisor),
        *own,
        *_from_findings(debug, known, has_own=advisor.candidates is not None),
        *_resized(advisor, execution, debug, _cores(connection)),
    ]
    sites = advisor.call_sites(connection)
    return [_located(each, sites) for each in found]


def _located(candidate: Candidate, sites: Mapping[str, str]) -> Candidate:
    """A candidate with the place in the user's program that it is about, if that is known."""
    found = candidate.recommendation
    site = sites.get(found.stage_id or "")
    return candidate if site is None else replace(candidate, recommendation=replace(found, call_site=site))


def _failure(debug: Debug) -> list[Candidate]:
    """Fix the first failure, which comes before everything else."""
    outcome = debug.outcome
    if outcome is None or outcome.status != "failed" or not outcome.failures:
        return []
    first = outcome.failures[0]
    found = FixFailure(price="code", because="outcome", saving=MEASURED, failed=first.id, error=first.error)
    return [Candidate(found, comes_first=True)]


def _unmeasured(connection: duckdb.DuckDBPyConnection, advisor: Advisor) -> list[Candidate]:
    """The recording that an analysis of this run still needs."""
    found = advisor.required_recording(connection)
    return [] if found is None else [Candidate(found, comes_first=True)]


def _from_findings(debug: Debug, known: set[str], *, has_own: bool) -> list[Candidate]:
    """The advice of findings that no candidate of the framework covers, first of those about time without a task."""
    memory = None if debug.outcome is None else debug.outcome.memory
    # The framework has a candidate for exhausted memory: a finding with the same advice would repeat it.
    twice = AvoidExhaustion(memory) if memory is not None and "outcome" in known else None
    alone = [each for each in debug.findings if each.kind not in known and _is_alone(each)]
    rest = [
        each
        for each in debug.findings
        if each.kind not in known | {each.kind for each in alone}
        and _is_answer(each)
        and not (has_own and isinstance(each, _OF_TASKS))
        and (twice is None or each.advice != twice)
    ]
    return [_follow(each) for each in (*alone, *rest)]


def _is_alone(found: Finding) -> bool:
    """Whether it is about time without a running task, except after the loss of workers."""
    if isinstance(found, NoWorker):
        return isinstance(found.advice, StartWorkersSooner)
    return isinstance(found, NoScope | AtEnd | AtStart | Driver) and found.advice is not None


def _is_answer(found: Finding) -> bool:
    """Whether a finding has other advice than to record samples."""
    more = isinstance(found, StageFinding) and found.other_advice is not None
    return found.advice is not None and (more or not isinstance(found.advice, advice.RecordSamples))


def _follow(found: Finding) -> Candidate:
    price: Price = "inspect" if found.advice is None else found.advice.price
    value = FollowAdvice(price=price, because=found.kind, saving=Saving(found.basis), finding=found)
    # Where CPUs are short, tasks on idle slots would wait for them as well.
    covers = frozenset({IdleSlots.kind}) if isinstance(found, ShortOfCpus) else frozenset[str]()
    return Candidate(value, at_most_ms=found.cost_ms, covers=covers)


def _cores(connection: duckdb.DuckDBPyConnection) -> float:
    """The fewest cores of a worker that a recording shows: of its machine, or of its container's CPU limit; infinite if
    none does."""
    question = "SELECT min(least(processors, coalesce(quota_cores, processors))) FROM loads"
    found = connection.execute(question).fetchall()[0][0]
    return math.inf if found is None else float(found)


def _resized(advisor: Advisor, execution: Execution, debug: Debug, cores: float) -> list[Candidate]:
    """More workers, more memory and faster devices, if the run would benefit.

    More workers are not a candidate if the run failed, if a device without a model computed for it, if the driver
    alone takes most of the time, or if half of the slots are idle while tasks run.  More slots of a worker are not one
    if it has no more `cores`.
    """
    whole_ms = debug.runtime_ms
    failed = debug.outcome is not None and debug.outcome.status == "failed"
    on_tasks_ms = whole_ms - debug.driver_ms
    found: list[Candidate | None] = []
    if not failed and debug.unmodelled is None and on_tasks_ms > whole_ms / 2 and _busy_share(debug) > 1 - MAX_IDLE:
        more = _more(advisor, execution, "workers")
        slots = execution.recorded.get("cores")
        has_cores = more is None or more.what_if != "cores=2x" or not slots or 2 * slots <= cores
        found.append(more if has_cores else None)
    if not failed:
        found.append(_more(advisor, execution, "memory"))
    changed = set(execution.planner.excluded_settings(execution.properties))
    for each in execution.resources:
        if each.setting in changed:  # one setting may change several resources
            continue
        if each.name == OTHER or debug.resource_ms.get(each.name, 0.0) < MIN_SHARE * whole_ms:
            continue
        changed.add(each.setting)
        if each.name != CPU or debug.unmodelled is None:
            found.append(faster(each.name, each.setting))
    return [each for each in found if each is not None]


def faster(resource: str, setting: str) -> Candidate:
    """A faster device of a resource: 1.25 times for CPUs, twice as fast for others."""
    ratio = FASTER_CPU if resource == CPU else 2.0
    value = FasterDevice(price="machine", because=setting, saving=MODELLED, resource=resource, ratio=ratio)
    return Candidate(value, f"{setting}={ratio:g}x")


def _busy_share(debug: Debug) -> float:
    """Slot utilization while stages are on the critical path: the share of slot time with a task."""
    on_path = [each for each in debug.stages if each.path_ms > 0 and each.slots and each.length_ms > 0]
    whole_ms = sum(each.path_ms for each in on_path)
    idle_ms = sum(each.path_ms * min(each.idle_ms / (each.slots * each.length_ms), 1.0) for each in on_path)
    return 1 - idle_ms / whole_ms if whole_ms else 0.0


def _more(advisor: Advisor, execution: Execution, key: Literal["workers", "memory"]) -> Candidate | None:
    """Twice the workers or their memory, in the framework's settings; None if it has no such setting."""
    if advisor.resizing_candidate is not None:
        return advisor.resizing_candidate(execution, key, 2.0)
    kind = MoreWorkers if key == "workers" else MoreMemory
    return Candidate(kind(price="machine", because=key, saving=MODELLED, ratio=2.0), f"{key}=2x")
