"""Outcome of a scope: failures and their reasons, retries, lost workers, and their cost."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, get_args

import duckdb
import numpy as np

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.regex import regex
from crystalperf.query import sql
from crystalperf.query.diagnose.advisor import Advisor
from crystalperf.query.execution.critical_path import Piece
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.intervals import uncovered
from crystalperf.query.execution.load import ALL, WHOLE
from crystalperf.query.results.answers import Failed, LostWorker, Outcome, Tally
from crystalperf.query.trace.records import Floats
from crystalperf.query.trace.vocabulary import Exhausted, Vocabulary

_NUMBERS = regex(r"0x[0-9a-fA-F]+|\d+")

_SAME_MS = 1000.0
"""Maximum time between the recorded end of a worker and the ends of its tasks."""

MAX_FAILURES = 20
"""Maximum failures of each kind that an outcome lists; tallies count all."""


@frozen
class _Scope:
    id: str
    kind: str
    parent: str | None
    name: str
    status: str
    error: str | None
    start_ms: float
    end_ms: float


@frozen
class _Stage:
    id: str
    scope: str | None
    name: str
    status: str
    error: str | None
    start_ms: float
    end_ms: float


@frozen
class Ended:
    """Tasks of one stage that ended in the same way on one worker; a row of sql/lost_tasks.sql."""

    stage: str
    worker: str | None
    status: str
    reason: str | None
    again: bool
    with_worker: bool
    tasks: int
    task_ms: float


def outcome(connection: duckdb.DuckDBPyConnection, execution: Execution, advisor: Advisor) -> Outcome:
    """The outcome of a scope, which may be a part of the run."""
    words = execution.words.vocabulary
    scopes = _scopes(connection, execution, advisor)
    stages = _stages(connection, execution, scopes, advisor)
    ended = ended_tasks(connection, execution, [each.id for each in stages])
    failed = [each for each in ended if each.status == "failed"]
    lost, workers = _lost(connection, execution, advisor, ended)
    duration_ms, complete, exit_code = connection.execute(
        "SELECT duration_ms, complete, exit_code FROM runs"
    ).fetchall()[0]
    whole = execution.scope.text in (ALL, WHOLE)
    tallies = (*_tallies(scopes, words), *_work_tallies(connection, execution, stages, failed))
    failures = _failures(scopes, stages, failed, words)
    errors = [each.error for each in failures] + [each.why for each in lost] + [each.reason for each in failed]
    reason = next((reason for reason, _ in merged_reasons(failed)), None)
    cut = not complete and execution.scope.end_ms >= duration_ms
    return Outcome(
        status=_status(
            [(each.start_ms, each.end_ms, each.status) for each in _outermost(scopes) or stages],
            open_end=cut,
            exit_code=exit_code if whole else None,
            troubled=bool(failures or failed or lost),
        ),
        tallies=tallies,
        failures=failures,
        failed_ms=sum(each.task_ms for each in failed),
        reason=reason,
        reason_names_lost_worker=bool(lost and lost[0].why and reason and lost[0].why in reason),
        retried_tasks=sum(each.tasks for each in failed if each.again),
        retried_ms=sum(each.task_ms for each in failed if each.again),
        lost=lost,
        workers=workers,
        memory=_memory(advisor, filter(None, errors)),
        exit_code=exit_code if whole else None,
        cut=cut,
    )


def ended_tasks(
    connection: duckdb.DuckDBPyConnection, execution: Execution, stages: Sequence[str] | None = None
) -> list[Ended]:
    """The tasks of a scope that failed, were killed, or had to run again although they succeeded.

    Without `stages`, those of all its stages.
    """
    # Sorted, so that for the same stages DuckDB is asked once (query.sql.reading).
    ids = sorted([stage.stage_id for stage in execution.dag.stages] if stages is None else stages)
    bounds = [execution.scope.start_ms, execution.scope.end_ms]
    return [Ended(*row) for row in connection.execute(sql.text("lost_tasks"), [*bounds, ids]).fetchall()]


def merged_reasons(ended: Sequence[Ended]) -> list[tuple[str, int]]:
    """Reasons of ended tasks with their counts, the most common first; digits do not distinguish reasons."""
    merged: dict[str, list[Ended]] = {}
    for each in ended:
        if each.reason:
            merged.setdefault(_NUMBERS.sub("#", each.reason), []).append(each)
    found = [(alike[0].reason or "", sum(each.tasks for each in alike)) for alike in merged.values()]
    return sorted(found, key=lambda each: -each[1])


def _ended_as(status: str, error: str | None, advisor: Advisor) -> str:
    return "cancelled" if status == "failed" and advisor.was_cancelled(error or "") else status


def _scopes(connection: duckdb.DuckDBPyConnection, execution: Execution, advisor: Advisor) -> list[_Scope]:
    """The scope and those within it, or for an interval those that were active then, in order of their ends."""
    scope = execution.scope
    rows = connection.execute(
        """
        SELECT scope_id, kind, parent_id, coalesce(name, scope_id), status, error, start_ms, coalesce(end_ms, 'inf')
        FROM scopes WHERE start_ms <= ? AND coalesce(end_ms, 'inf') >= ?
        ORDER BY coalesce(end_ms, 'inf'), start_ms, rowid
        """,
        [scope.end_ms, scope.start_ms],
    ).fetchall()
    every = [_Scope(*row) for row in rows]
    found = [replace(each, status=_ended_as(each.status, each.error, advisor)) for each in every]
    if scope.text not in {each.id for each in found}:
        return found
    parents = {each.id: each.parent for each in found}
    return [each for each in found if _is_within(each.id, scope.text, parents)]


def _is_within(scope: str | None, whole: str, parents: Mapping[str, str | None]) -> bool:
    for _ in range(len(parents)):  # a damaged log may name a scope as its own parent's parent
        if scope is None or scope == whole:
            break
        scope = parents.get(scope)
    return scope == whole


def _outermost(scopes: Sequence[_Scope]) -> list[_Scope]:
    ids = {each.id for each in scopes}
    return [each for each in scopes if each.parent not in ids]


def _stages(
    connection: duckdb.DuckDBPyConnection, execution: Execution, scopes: Sequence[_Scope], advisor: Advisor
) -> list[_Stage]:
    """The stages of a scope that ran, in order of their ends; without recorded scope ids, the stages of its time."""
    scope = execution.scope
    rows = connection.execute(
        """
        SELECT
            stage_id, scope_id, coalesce(name, stage_id), status, failure,
            coalesce(submit_ms, first_launch_ms) AS from_ms, coalesce(end_ms, 'inf') AS until_ms
        FROM stages WHERE status <> 'skipped' AND from_ms <= ? AND until_ms >= ?
        ORDER BY until_ms, from_ms, rowid
        """,
        [scope.end_ms, scope.start_ms],
    ).fetchall()
    every = [_Stage(*row) for row in rows]
    found = [replace(each, status=_ended_as(each.status, each.error, advisor)) for each in every]
    ids = {each.id for each in scopes}
    if scope.text not in ids:
        return found
    return [each for each in found if each.scope in ids] or found


def _status(
    parts: Sequence[tuple[float, float, str]], *, open_end: bool, exit_code: int | None, troubled: bool
) -> Literal["succeeded", "failed", "recovered", "unfinished"]:
    """The status of the whole, which is that of its last part, (start, end, status)."""
    last = max(parts, key=lambda each: (each[1], each[2] == "failed", each[0]), default=(0.0, 0.0, ""))[2]
    if exit_code or last == "failed":
        return "failed"
    if open_end or last == "unfinished":
        return "unfinished"
    return "recovered" if troubled else "succeeded"


# Failures -------------------------------------------------------------------------------------------------------------


def _kind_word(kind: str, words: Vocabulary) -> str:
    """The user's word for a kind of scope: the vocabulary's `scope` for the primary kind, else the kind's own name."""
    return words.scope if kind == next(iter(words.scopes), kind) else kind


def _kinds(scopes: Sequence[_Scope], words: Vocabulary) -> list[str]:
    kinds = {each.kind for each in scopes}
    return [*(each for each in words.scopes if each in kinds), *sorted(kinds - set(words.scopes))]


def _tallies(scopes: Sequence[_Scope], words: Vocabulary) -> list[Tally]:
    found = []
    for kind in _kinds(scopes, words):
        statuses = [each.status for each in scopes if each.kind == kind]
        found.append(_tally(_kind_word(kind, words), statuses))
    return found


def _tally(kind: str, status: Sequence[str]) -> Tally:
    failed, unfinished, cancelled = (status.count(each) for each in ("failed", "unfinished", "cancelled"))
    return Tally(kind, len(status), failed, unfinished, cancelled)


def _work_tallies(
    connection: duckdb.DuckDBPyConnection, execution: Execution, stages: Sequence[_Stage], failed: Sequence[Ended]
) -> list[Tally]:
    """The tallies of stages and of tasks."""
    words, status = execution.words.vocabulary, [each.status for each in stages]
    total, unfinished = connection.execute(
        """
        SELECT count(*), count(*) FILTER (status = 'unfinished')
        FROM tasks WHERE finish_ms >= ? AND launch_ms <= ? AND list_contains(?, stage_id)
        """,
        [execution.scope.start_ms, execution.scope.end_ms, [each.id for each in stages]],
    ).fetchall()[0]
    return [
        _tally(words.stage, status),
        Tally(words.task, total, sum(each.tasks for each in failed), unfinished),
    ]


def _failures(
    scopes: Sequence[_Scope], stages: Sequence[_Stage], failed: Sequence[Ended], words: Vocabulary
) -> tuple[Failed, ...]:
    """Failed scopes by kind, the outermost kind first, then failed stages.

    Within a kind, those with failed tasks come first, then in order of time: scopes that were cancelled because
    another failed ended at the same time.
    """
    by_stage: dict[str, list[Ended]] = {}
    for each in failed:
        by_stage.setdefault(each.stage, []).append(each)
    found: list[Failed] = []
    for kind in _kinds(scopes, words):
        of_kind = []
        for scope in scopes:
            if scope.kind == kind and scope.status == "failed":
                of = [stage for stage in stages if stage.scope == scope.id] or [
                    stage for stage in stages if scope.start_ms <= stage.start_ms and stage.end_ms <= scope.end_ms
                ]
                of_kind.append(_failed(_kind_word(kind, words), scope, [e for g in of for e in by_stage.get(g.id, ())]))
        found += sorted(of_kind, key=lambda each: not each.tasks)[:MAX_FAILURES]
    of_stages = [_failed(words.stage, each, by_stage.get(each.id, ())) for each in stages if each.status == "failed"]
    return (*found, *sorted(of_stages, key=lambda each: not each.tasks)[:MAX_FAILURES])


def _failed(kind: str, what: _Scope | _Stage, tasks: Sequence[Ended]) -> Failed:
    count, task_ms = sum(each.tasks for each in tasks), sum(each.task_ms for each in tasks)
    return Failed(kind, what.id, what.name, what.error, count, task_ms)


def _memory(advisor: Advisor, texts: Iterable[str]) -> Exhausted | None:
    found = {advisor.exhausted_memory(text) for text in dict.fromkeys(texts)}
    return next((each for each in get_args(Exhausted) if each in found), None)


# Workers that were lost -----------------------------------------------------------------------------------------------


def _lost(
    connection: duckdb.DuckDBPyConnection, execution: Execution, advisor: Advisor, ended: Sequence[Ended]
) -> tuple[tuple[LostWorker, ...], int]:
    """The workers that were lost in a scope, and the total number of workers.

    A worker that was released, or that ended with the run when no work was left, does not count as lost.
    """
    with_it = {each.worker for each in ended if each.with_worker and each.status == "failed"}
    redone: dict[str | None, list[Ended]] = {}
    for each in ended:
        if each.again and (each.status == "succeeded" or (each.with_worker and each.status == "failed")):
            redone.setdefault(each.worker, []).append(each)
    (last_ms,) = connection.execute(
        """
        SELECT greatest((SELECT max(finish_ms) FROM tasks), (SELECT max(coalesce(end_ms, 'inf')) FROM scopes))
        """
    ).fetchall()[0]
    rows = connection.execute(
        """
        SELECT worker_id, host, added_ms, removed_ms, removed_reason
        FROM workers WHERE coalesce(slots, 1) > 0 AND kind = 'worker' AND added_ms <= ?
        ORDER BY removed_ms, worker_id
        """,
        [execution.scope.end_ms],
    ).fetchall()
    found = []
    for worker, host, added, removed, reason in rows:
        if removed is None or not execution.scope.start_ms <= removed <= execution.scope.end_ms:
            continue
        if worker not in with_it and (advisor.was_released(reason) or removed >= (last_ms or 0.0)):
            continue
        rerun = redone.get(worker, ())
        tasks, task_ms = sum(each.tasks for each in rerun), sum(each.task_ms for each in rerun)
        found.append(LostWorker(worker, host, added, removed, reason or None, tasks, task_ms))
    return tuple(found), len(rows)


def without_workers(
    execution: Execution, pieces: Sequence[Piece], lost: Collection[LostWorker], alive: Floats
) -> tuple[float, float]:
    """ms of the critical path without any worker, and the part of these ms after the last worker was lost.

    `alive` has the intervals with workers (query.diagnose.waiting.with_workers).
    """
    if not len(execution.slots) and len(execution.tasks):
        return 0.0, 0.0
    clock = execution.clock
    ends = np.array([clock.when(each.lost_ms) for each in lost])
    whole = since_lost = 0.0
    for begin, end in uncovered(alive, 0.0, clock.when(execution.scope.end_ms)):
        on_path = sum(max(min(end, each.end_ms) - max(begin, each.start_ms), 0.0) for each in pieces)
        whole += on_path
        since_lost += on_path if (np.abs(ends - begin) <= _SAME_MS).any() else 0.0
    return whole, since_lost


def short_of_workers(execution: Execution, pieces: Sequence[Piece], lost: Sequence[LostWorker]) -> float:
    """Maximum ms of the critical path that the slots of lost workers would have saved.

    A slot counts from its loss until another slot replaces it, and only while there are tasks for it.
    """
    slots, tasks = execution.slots, execution.tasks
    if not lost or not len(slots):
        return 0.0
    until = np.sort(slots.until_ms[np.isfinite(slots.until_ms)])
    came = np.sort(slots.available_ms)
    moments = np.unique(np.concatenate([came, until]))
    present = np.searchsorted(came, moments, side="right") - np.searchsorted(until, moments, side="right")
    gone = np.sort(slots.until_ms[np.isin(slots.until_ms, [execution.clock.when(each.lost_ms) for each in lost])])
    missing = np.minimum(np.maximum.accumulate(present) - present, np.searchsorted(gone, moments, side="right"))
    total = 0.0
    for piece in pieces:
        if piece.node.stage is None:
            continue
        finish = tasks.finish_ms[tasks.stage == piece.node.stage]
        first, last = np.searchsorted(moments, [piece.start_ms, piece.end_ms], side="right")
        edges = np.concatenate([[piece.start_ms], moments[first:last], [piece.end_ms]])
        for begin, end, at in zip(edges[:-1], edges[1:], range(first - 1, last), strict=True):
            if at < 0 or end <= begin or present[at] <= 0:
                continue
            wanted = min(int(present[at] + missing[at]), int((finish > begin).sum()))
            total += float(end - begin) * max(1.0 - present[at] / wanted, 0.0) if wanted else 0.0
    return float(total)
