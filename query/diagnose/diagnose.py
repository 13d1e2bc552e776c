"""Diagnosis of a scope: its critical path, bottleneck and findings (paper §4.2, `debug`)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import duckdb
import numpy as np

from crystalperf.indexes.resources import CPU, with_other
from crystalperf.query import sql
from crystalperf.query.attribution import storage
from crystalperf.query.diagnose import findings, losses
from crystalperf.query.diagnose.advisor import Advisor
from crystalperf.query.diagnose.critical_operators import path_by_operator
from crystalperf.query.diagnose.hosts import HostTime, host_times
from crystalperf.query.diagnose.missing_data import with_missing_data
from crystalperf.query.diagnose.not_recorded import not_recorded
from crystalperf.query.diagnose.outcome import ended_tasks, outcome, short_of_workers, without_workers
from crystalperf.query.diagnose.stage_statistics import (
    Diagnosis,
    StageStats,
    disagreements,
    named,
    neighbours,
    stage_stats,
)
from crystalperf.query.diagnose.waiting import has_scopes, waiting, with_workers, without_task
from crystalperf.query.execution.critical_path import Piece, bottleneck, critical_path
from crystalperf.query.execution.evidence import rests
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.load import max_concurrent
from crystalperf.query.results.answers import (
    Cause,
    Debug,
    FunctionTime,
    OperatorTime,
    Outcome,
    Parts,
    PathItem,
    SampleCounts,
    ScopeItem,
    Unsubmitted,
)
from crystalperf.query.results.assumptions import Assumption, DeviceNotModelled
from crystalperf.query.results.findings import Committing, Finding, MoreData, StageCost
from crystalperf.query.results.not_recorded import NotRecorded
from crystalperf.query.trace.records import Floats

NEAR = 0.75
"""A resource with this share of the bottleneck's time on the critical path is limiting, too."""

WORTH_MS = 0.01
"""Minimum cost of a finding, as a share of the runtime."""

_MAX_FUNCTIONS = 20
_MAX_OPERATORS = 200


def diagnosed(connection: duckdb.DuckDBPyConnection, execution: Execution, advisor: Advisor) -> Diagnosis:
    """The diagnosis of one scope: the answer to `debug`, and the stage statistics that recommendations use."""
    names = execution.names
    pieces = critical_path(execution.dag, execution.tasks, execution.driver.between, names)
    total = np.sum([piece.parts_ms for piece in pieces], axis=0) if pieces else np.zeros(len(names) + 1)
    path = tuple(item for piece in pieces for item in _items(piece, execution))
    other_ms, alone_ms = waiting(connection, execution, advisor, pieces, alive := with_workers(connection, execution))
    resource_ms, largest = named(total, names), bottleneck(pieces, names, max(other_ms.values(), default=0.0))
    details = stage_stats(connection, execution, path)
    unmodelled, ended = advisor.unmodelled_device(connection, execution), outcome(connection, execution, advisor)
    lost = _lost(connection, execution, advisor, pieces, ended, alive)
    slow = findings.slow_ones(hosts := host_times(connection, execution))
    costs = _stage_costs(execution, advisor, details, slow, _limits(resource_ms, largest, names))
    scopes, own = _scopes(connection, execution), advisor.findings(connection, details)
    answer = Debug(
        scope=execution.scope.text,
        measure=execution.measure,
        runtime_ms=execution.runtime_ms,
        bottleneck=largest,
        resource_ms=resource_ms,
        critical_path=path,
        samples=_samples(connection, execution),
        scopes=scopes,
        findings=_findings(
            connection,
            execution,
            advisor,
            details,
            [*lost, *_while_alone(own, alone_ms, other_ms, len(scopes))],
            [
                *findings.on_a_device(findings.sum_of_stages(costs), unmodelled),
                *findings.slow_hosts(hosts, slow, details),
            ],
        ),
        functions=_functions(connection, execution),
        not_recorded=not_recorded(connection, execution, advisor),
        other_ms=other_ms,
        stages=tuple(each.facts for each in details),
        operators=_operators(connection, execution),
        disagreements=disagreements(connection, execution, details),
        assumptions=_assumptions(connection, execution, advisor, unmodelled),
        measurements=tuple(advisor.remarks(connection, execution)),
        driver_ms=_driver_ms(pieces) if has_scopes(connection) else 0.0,
        no_task_ms=without_task(execution),
        vocabulary=execution.words.vocabulary,
        framework=execution.words.framework,
        resources=execution.resources,
        unmodelled=unmodelled,
        unsubmitted=_unsubmitted(execution),
        outcome=ended,
        path_operators=path_by_operator(connection, execution, path),
        efficiency=tuple(advisor.efficiency(connection, execution)),
        other_causes=advisor.other_causes(connection, execution),
        named_parts=tuple(advisor.named_parts(connection, execution, path)),
        leading=advisor.leading(connection, execution),
        unbounded=advisor.unbounded_load(connection, execution),
    )
    if answer.unbounded:  # an unbounded run has no end in its log, which is not missing data
        return Diagnosis(answer, details, costs)
    return Diagnosis(with_missing_data(connection, execution, advisor, pieces, alive, answer), details, costs)


def observations_of(
    connection: duckdb.DuckDBPyConnection, execution: Execution, advisor: Advisor
) -> tuple[SampleCounts, tuple[FunctionTime, ...], tuple[NotRecorded, ...], tuple[ScopeItem, ...]]:
    """The parts of `debug` that do not depend on the measure: sample counts, functions, missing data, scopes."""
    return (
        _samples(connection, execution),
        _functions(connection, execution),
        not_recorded(connection, execution, advisor),
        _scopes(connection, execution),
    )


def _driver_ms(pieces: Sequence[Piece]) -> float:
    return sum(each.end_ms - each.start_ms for each in pieces if each.node.kind == "driver" and not each.node.held)


def _items(piece: Piece, execution: Execution) -> Iterator[PathItem]:
    """A segment of the path in recorded time, split at each pause that the scope leaves out."""
    whole_ms = piece.end_ms - piece.start_ms
    for start, end in execution.clock.recorded(piece.start_ms, piece.end_ms):
        parts = named(piece.parts_ms * ((end - start) / whole_ms), execution.names)
        yield PathItem(piece.node.node_id, piece.node.name, start, end, parts)


def _unsubmitted(execution: Execution) -> Unsubmitted | None:
    left_out, whole_ms = execution.clock.left_out, execution.scope.end_ms - execution.scope.start_ms
    if not len(left_out):
        return None
    return Unsubmitted(execution.clock.left_out_ms, whole_ms, len(left_out), bool(execution.log.interactive))


def _limits(path_ms: Parts, largest: str, names: Sequence[str]) -> frozenset[str]:
    """The bottleneck and the resources close to it, whose shares are too inexact to rank."""
    return frozenset(name for name in names if path_ms[name] >= NEAR * path_ms.get(largest, 0.0))


def _bounds(execution: Execution) -> list[float]:
    return [execution.scope.start_ms, execution.scope.end_ms]


def _samples(connection: duckdb.DuckDBPyConnection, execution: Execution) -> SampleCounts:
    if not execution.has_samples:
        return SampleCounts(0, 0, 0, {})
    bounds = _bounds(execution)
    total, on_tasks, resolved = connection.execute(
        f"""
        WITH seen AS (
            SELECT
                task_id IS NOT NULL AS on_task,
                attributed_depth IS NOT NULL AS decided,
                {rests()} OR (contains(coalesce(skipped, ''), 'wait') AND NOT contains(skipped, 'not indexed'))
                    AS waits_in_known_code
            FROM samples JOIN stacks USING (stack_id)
            WHERE time_ms BETWEEN ? AND ? AND kind <> 'waking'
        )
        SELECT
            count(*),
            count(*) FILTER (on_task AND (decided OR NOT waits_in_known_code)),
            count(*) FILTER (on_task AND decided)
        FROM seen
        """,
        bounds,
    ).fetchall()[0]
    skipped = connection.execute(sql.text("skipped_frames"), bounds).fetchall()
    return SampleCounts(total, on_tasks, resolved, dict(skipped))


def _functions(connection: duckdb.DuckDBPyConnection, execution: Execution) -> tuple[FunctionTime, ...]:
    if not execution.has_samples:
        return ()
    names = execution.names
    query = sql.text("hot_functions").format(
        vector=", ".join(f"stacks.{name}" for name in names),
        mixed=", ".join(f"sum({name} * weight_ms) / sum(weight_ms)" for name in names),
    )
    found = []
    for symbol, index_name, time_ms, callee, callee_ms, *vector in connection.execute(
        query, [*_bounds(execution), _MAX_FUNCTIONS]
    ).fetchall():
        largest = int(np.argmax(vector))
        share = float(vector[largest])
        found.append(FunctionTime(symbol, index_name, names[largest], share, time_ms, callee, callee_ms or 0.0))
    return tuple(found)


def _scopes(connection: duckdb.DuckDBPyConnection, execution: Execution) -> tuple[ScopeItem, ...]:
    """The scopes within the analysed one, of the framework's primary kind (the first of its vocabulary)."""
    kinds = execution.words.vocabulary.scopes[:1]
    rows = connection.execute(
        """
        SELECT scope_id, coalesce(name, scope_id), start_ms, end_ms
        FROM scopes
        WHERE start_ms < $2 AND coalesce(end_ms, $2) > $1 AND (len($3::VARCHAR[]) = 0 OR list_contains($3, kind))
        ORDER BY start_ms, length(scope_id), scope_id
        """,
        [*_bounds(execution), list(kinds)],
    ).fetchall()
    return tuple(ScopeItem(*row) for row in rows)


def _stage_costs(
    execution: Execution,
    advisor: Advisor,
    details: Sequence[StageStats],
    slow: Sequence[HostTime],
    limits: Collection[str],
) -> list[StageCost]:
    """The contributions of each stage to findings about tasks, slots and devices."""
    by_stage: dict[str, list[HostTime]] = {}
    for each in slow:
        by_stage.setdefault(each.stage, []).append(each)
    found: list[StageCost] = []
    # Tasks that run in the order of their thread are of different kinds: they cannot share work with each other, and
    # no bytes are recorded that their device time could be compared with.
    alike = not execution.in_order
    for detail in details:
        if detail.facts.path_ms > 0:
            if alike:
                stragglers = findings.straggler(advisor, detail, by_stage.get(detail.facts.id, ()))
                found += stragglers
                # More tasks do not divide what one of a few tasks has too much of.
                if not any(each.few and isinstance(each.cause, MoreData) for each in stragglers):
                    found += findings.idle_slots(advisor, detail)
            found += findings.starting_tasks(detail)
    if alike:
        found += findings.odd_use(advisor, details, limits)
    return found


def _while_alone(
    own: Sequence[Finding], alone_ms: Mapping[Cause, float], other_ms: Mapping[Cause, float], scopes: int
) -> list[Finding]:
    """The framework's findings, and those about time without a running task, less the time of commits."""
    capped = [
        replace(each, cost_ms=min(each.cost_ms, alone_ms["driver"])) if isinstance(each, Committing) else each
        for each in own
    ]
    committing_ms = sum(each.cost_ms for each in capped if isinstance(each, Committing))
    alone_rest_ms, other_rest_ms = (
        {**times, "driver": max(times.get("driver", 0.0) - committing_ms, 0.0)} for times in (alone_ms, other_ms)
    )
    return [*capped, *findings.driver(alone_rest_ms, other_rest_ms, scopes)]


def _findings(
    connection: duckdb.DuckDBPyConnection,
    execution: Execution,
    advisor: Advisor,
    details: Sequence[StageStats],
    first: Sequence[Finding],
    of_stages: Sequence[Finding],
) -> tuple[Finding, ...]:
    """All findings, `first` and `of_stages` included, the largest cost first; each cost is an upper bound."""
    others = neighbours(connection, *_bounds(execution))
    found: list[Finding] = [
        *first,
        *of_stages,
        *findings.spilling(details, advisor.spilling_operators(connection, details)),
        *findings.garbage_collection(details),
        *findings.cache_miss_findings(details),
        *findings.short_of_cpus(details, others, execution.slots.cpu_limit(), _throttled(execution)),
    ]
    whole_ms = execution.runtime_ms
    within = [replace(each, cost_ms=min(each.cost_ms, whole_ms)) for each in found]
    worth = [each for each in within if each.cost_ms >= WORTH_MS * whole_ms or each.is_note]
    return tuple(sorted(worth, key=lambda each: -each.cost_ms))


def _throttled(execution: Execution) -> dict[str, float]:
    """By stage, the share of the CPU quota's periods in which its container was throttled while its tasks waited.

    A task's CPU wait is assumed to be spread evenly over its duration.
    """
    tasks, count = execution.tasks, len(execution.dag.stages)
    waits = np.maximum(tasks.parts_ms[:, execution.names.index(CPU)] - execution.volumes.total_cpu_ms, 0.0)
    whole, held = (np.bincount(tasks.stage, each, count) for each in (waits, waits * execution.throttled_share))
    return {
        stage.stage_id: float(held[number] / whole[number])
        for number, stage in enumerate(execution.dag.stages)
        if whole[number] > 0
    }


def _lost(
    connection: duckdb.DuckDBPyConnection,
    execution: Execution,
    advisor: Advisor,
    pieces: Sequence[Piece],
    ended: Outcome,
    alive: Floats,
) -> list[Finding]:
    """Findings about lost workers, wasted tasks, and waiting for workers."""
    slots = execution.slots
    came, first_ms = connection.execute(
        "SELECT count(*) > 0 OR EXISTS (FROM tasks), min(added_ms) FROM workers WHERE coalesce(slots, 0) > 0"
    ).fetchall()[0]
    most = max_concurrent(zip(slots.available_ms.tolist(), slots.until_ms.tolist(), strict=True))
    waited_ms, lost_wait_ms = without_workers(execution, pieces, ended.lost, alive)
    short_ms = short_of_workers(execution, pieces, ended.lost)
    waited = losses.no_worker(advisor, waited_ms, first_ms, ended.lost, lost_wait_ms)
    return [
        *(waited if came else losses.never_a_worker(waited_ms)),
        *losses.lost_workers(advisor, ended.lost, ended.workers, short_ms, most),
        *losses.wasted(advisor, ended_tasks(connection, execution), most),
    ]


def _operators(connection: duckdb.DuckDBPyConnection, execution: Execution) -> tuple[OperatorTime, ...]:
    names = with_other(execution.names)
    sums = ", ".join(f"sum({name}_ms) AS {name}_ms" for name in names)
    total = " + ".join(f"sum({name}_ms)" for name in names)
    query = sql.text("operator_times").format(sums=sums, total=total)
    rows = connection.execute(query, _bounds(execution)).fetchmany(_MAX_OPERATORS)
    return tuple(
        OperatorTime(
            scope,
            node_id,
            name,
            tuple(sorted(stages, key=_counting)),
            basis,
            dict(zip(names, parts, strict=True)),
            call_site,
        )
        for scope, node_id, name, stages, basis, call_site, *parts in rows
    )


def _counting(text: str) -> list[tuple[int, str]]:
    """Natural sort key: vertex:9 before vertex:10."""
    return [(int(each), "") if each.isdigit() else (-1, each) for each in re.split(r"([0-9]+)", text)]


def _assumptions(
    connection: duckdb.DuckDBPyConnection, execution: Execution, advisor: Advisor, unmodelled: str | None
) -> tuple[Assumption, ...]:
    """The assumptions of attributing time to resources, and those of the framework."""
    stages = [stage.stage_id for stage in execution.dag.stages]
    found = storage.assumptions(connection, stages, execution.has_samples, execution.title)
    if unmodelled is not None:
        found.append(DeviceNotModelled(unmodelled))
    return (*found, *advisor.assumptions(connection, execution))
