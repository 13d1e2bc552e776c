"""Diagnosis of streams: where the time of a record goes, and candidates for recommendations."""

from __future__ import annotations

import duckdb
import numpy as np

from crystalperf.indexes.resources import CPU, OTHER
from crystalperf.query.advise.candidates import faster
from crystalperf.query.diagnose.advisor import Advisor
from crystalperf.query.diagnose.diagnose import seen_of
from crystalperf.query.diagnose.group_statistics import named
from crystalperf.query.diagnose.outcome import outcome
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.stream import Flow, legs
from crystalperf.query.results.answers import Cause, Debug, FlowFacts, PathItem, StationFacts
from crystalperf.query.results.recommendations import MEASURED, Candidate, RaiseParallelism
from crystalperf.query.results.unseen import CpuLimitUnknown, RecordLatencyUnmeasured, Unseen
from crystalperf.query.streaming.predict import highest, is_far, main_resource, reached

SHORT_OF = 0.7
"""Busy share of a station's time from which more lanes are a candidate for a recommendation."""


def diagnose_flow(connection: duckdb.DuckDBPyConnection, execution: Execution, advisor: Advisor) -> Debug:
    """The result of `debug` for a stream: times are of one record, from its source to its end."""
    flow, names = execution.flow, execution.names
    assert flow is not None
    path: list[PathItem] = []
    other_ms: dict[Cause, float] = {}
    now = 0.0
    for each in legs(flow, measured=True, names=names):
        parts = each.work_ms.copy()
        parts[-1] += each.time_ms - float(each.work_ms.sum())
        path.append(PathItem(each.id, each.name, now, now + each.time_ms, named(parts, names)))
        now += each.time_ms
        causes: tuple[tuple[Cause, float], ...] = (
            ("filling", each.filling_ms),
            ("queueing", each.mates_ms + each.queue_ms),
            ("held", each.held_ms),
            ("resting", min(each.resting_ms, float(each.work_ms[-1]))),
            ("unknown", max(float(each.work_ms[-1]) - each.resting_ms, 0.0)),
        )
        for cause, ms in causes:
            if ms > 0:
                other_ms[cause] = other_ms.get(cause, 0.0) + ms
    total = {name: sum(each.resource_ms[name] for each in path) for name in (*names, OTHER)}
    samples, functions, unseen, scopes = seen_of(connection, execution, advisor)
    return Debug(
        scope=execution.scope.text,
        measure=execution.measure,
        runtime_ms=execution.runtime_ms,
        bottleneck="unknown",
        resource_ms=total,
        critical_path=tuple(path),
        samples=samples,
        scopes=scopes,
        functions=functions,
        unseen=(*unseen, *_unmeasured(flow)),
        other_ms=other_ms,
        vocabulary=execution.words.vocabulary,
        framework=execution.words.framework,
        resources=execution.resources,
        outcome=outcome(connection, execution, advisor),
        told=tuple(advisor.remarks(connection, execution)),
        flow=flow_facts(flow, execution),
    )


def flow_facts(flow: Flow, execution: Execution) -> FlowFacts:
    """Rates of a stream, and what limits them."""
    names, limit = execution.names, highest(flow)
    if flow.at_limit:
        limit = reached(flow)
    resource = limit.resource
    if limit.kind == "station":
        resource = main_resource(flow.station(limit.id), names)
    return FlowFacts(
        start_ms=flow.start_ms,
        end_ms=flow.end_ms,
        rate_per_s=flow.rate_per_s,
        most_per_s=limit.rate_per_s if np.isfinite(limit.rate_per_s) else None,
        limit=limit.id,
        limit_kind=limit.kind,
        limit_resource=resource,
        at_limit=flow.at_limit,
        at_least=is_far(limit.rate_per_s, flow.rate_per_s),
        markers_ms=flow.markers_ms,
        stations=tuple(
            StationFacts(
                each.id, each.name, each.lanes, each.records_per_s, each.busy, each.busiest, each.blocked,
                each.record_ms, named(each.shares, names), each.resting,
            )
            for each in flow.stations
        ),
    )  # fmt: skip


def _unmeasured(flow: Flow) -> list[Unseen]:
    found: list[Unseen] = []
    if not flow.places:
        found.append(CpuLimitUnknown())
    if flow.markers_ms is None:
        found.append(RecordLatencyUnmeasured())
    return found


def flow_candidates(execution: Execution, advisor: Advisor, debug: Debug) -> list[Candidate]:
    """Candidates for recommendations about a stream; query.advise.ranking predicts the saving of each."""
    flow = execution.flow
    assert flow is not None
    units = execution.words.vocabulary.word_of("units")
    found = [
        Candidate(
            RaiseParallelism(
                price="setting",
                because=f"units.{each.id}",
                saving=MEASURED,
                stage=each.id,
                before=each.lanes,
                after=2 * each.lanes,
                busy_share=each.busiest,
            ),
            f"{units}.{each.id}=2x",
        )
        for each in flow.stations
        if each.busiest >= SHORT_OF and not each.is_source
    ]
    tuned = advisor.buffering_candidate
    filling_ms = debug.other_ms.get("filling", 0.0)
    if tuned is not None and filling_ms > 0 and not flow.at_limit:  # more buffers cost CPU, which lowers throughput
        found.append(tuned(flow, filling_ms))
    if debug.resource_ms.get(CPU, 0.0) > 0:
        found.append(faster(CPU, "cpu_speed"))
    return found
