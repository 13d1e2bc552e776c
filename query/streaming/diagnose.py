"""Diagnosis of streams: where the time of a record goes, and candidates for recommendations."""

from __future__ import annotations

import duckdb
import numpy as np

from crystalperf.indexes.resources import CPU, OTHER
from crystalperf.query.advise.candidates import faster
from crystalperf.query.diagnose.advisor import Advisor
from crystalperf.query.diagnose.diagnose import observations_of
from crystalperf.query.diagnose.outcome import outcome
from crystalperf.query.diagnose.stage_statistics import named
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.stream import Stream, path_segments
from crystalperf.query.results.answers import Cause, Debug, PathItem, StationStats, StreamFacts
from crystalperf.query.results.not_recorded import CpuLimitUnknown, NotRecorded, RecordLatencyUnmeasured
from crystalperf.query.results.recommendations import MEASURED, Candidate, RaiseParallelism
from crystalperf.query.streaming.predict import current_limit, is_far, main_resource, max_throughput

SHORT_OF = 0.7
"""Busy share of a station's time from which more slots are a candidate for a recommendation."""


def diagnose_flow(connection: duckdb.DuckDBPyConnection, execution: Execution, advisor: Advisor) -> Debug:
    """The result of `debug` for a stream: times are of one record, from its source to its end."""
    stream, names = execution.stream, execution.names
    assert stream is not None
    path: list[PathItem] = []
    other_ms: dict[Cause, float] = {}
    now = 0.0
    for each in path_segments(stream, measured=True, names=names):
        parts = each.work_ms.copy()
        parts[-1] += each.time_ms - float(each.work_ms.sum())
        path.append(PathItem(each.id, each.name, now, now + each.time_ms, named(parts, names)))
        now += each.time_ms
        causes: tuple[tuple[Cause, float], ...] = (
            ("filling", each.filling_ms),
            ("queueing", each.same_buffer_ms + each.queue_ms),
            ("held", each.external_wait_ms),
            ("sleeping", min(each.sleeping_ms, float(each.work_ms[-1]))),
            ("unknown", max(float(each.work_ms[-1]) - each.sleeping_ms, 0.0)),
        )
        for cause, ms in causes:
            if ms > 0:
                other_ms[cause] = other_ms.get(cause, 0.0) + ms
    total = {name: sum(each.resource_ms[name] for each in path) for name in (*names, OTHER)}
    samples, functions, not_recorded, scopes = observations_of(connection, execution, advisor)
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
        not_recorded=(*not_recorded, *_unmeasured(stream)),
        other_ms=other_ms,
        vocabulary=execution.words.vocabulary,
        framework=execution.words.framework,
        resources=execution.resources,
        outcome=outcome(connection, execution, advisor),
        measurements=tuple(advisor.remarks(connection, execution)),
        stream=flow_facts(stream, execution),
    )


def flow_facts(stream: Stream, execution: Execution) -> StreamFacts:
    """Rates of a stream, and what limits them."""
    names, limit = execution.names, max_throughput(stream)
    if stream.at_limit:
        limit = current_limit(stream)
    resource = limit.resource
    if limit.kind == "station":
        resource = main_resource(stream.station(limit.id), names)
    return StreamFacts(
        start_ms=stream.start_ms,
        end_ms=stream.end_ms,
        rate_per_s=stream.rate_per_s,
        max_per_s=limit.rate_per_s if np.isfinite(limit.rate_per_s) else None,
        limit=limit.id,
        limit_kind=limit.kind,
        limit_resource=resource,
        at_limit=stream.at_limit,
        is_lower_bound=is_far(limit.rate_per_s, stream.rate_per_s),
        probe_latency_ms=stream.probe_latency_ms,
        stations=tuple(
            StationStats(
                each.id, each.name, each.slots, each.records_per_s, each.busy, each.busiest, each.blocked,
                each.record_ms, named(each.shares, names), each.sleeping_share, each.heaviest_slot,
                each.heaviest_share,
            )
            for each in stream.stations
        ),
    )  # fmt: skip


def _unmeasured(stream: Stream) -> list[NotRecorded]:
    found: list[NotRecorded] = []
    if not stream.places:
        found.append(CpuLimitUnknown())
    if stream.probe_latency_ms is None:
        found.append(RecordLatencyUnmeasured())
    return found


def flow_candidates(execution: Execution, advisor: Advisor, debug: Debug) -> list[Candidate]:
    """Candidates for recommendations about a stream; query.advise.ranking predicts the saving of each."""
    stream = execution.stream
    assert stream is not None
    tasks = execution.words.vocabulary.word_of("tasks")
    found = [
        Candidate(
            RaiseParallelism(
                price="setting",
                because=f"tasks.{each.id}",
                saving=MEASURED,
                stage=each.id,
                name=each.name,
                before=each.slots,
                after=2 * each.slots,
                busy_share=each.busiest,
            ),
            f"{tasks}.{each.id}=2x",
        )
        for each in stream.stations
        if each.busiest >= SHORT_OF and not each.is_source
    ]
    tuned = advisor.buffering_candidate
    filling_ms = debug.other_ms.get("filling", 0.0)
    if tuned is not None and filling_ms > 0 and not stream.at_limit:  # more buffers cost CPU, which lowers throughput
        found.append(tuned(stream, filling_ms))
    if debug.resource_ms.get(CPU, 0.0) > 0:
        found.append(faster(CPU, "cpu_speed"))
    return found
