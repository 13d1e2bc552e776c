"""Two streams: whether records take longer, and where; or whether a stream at its limit takes fewer of them.

Below its limit, a stream is compared by the latency of a record, whose path has measured parts: a stage's own time, and
waiting.  At its limit, a record comes every `time of a record / (slots × busy share)` of the stage that limits it, and
the logarithmic mean splits the change by these factors, as for stages of a batch job (query.compare.causes).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import get_args

from crystalperf.query.compare.causes import log_mean, log_ratio
from crystalperf.query.diagnose.comparer import StreamAccount
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.stream import BEHIND, Stream, path_segments
from crystalperf.query.results import stream_parts as results
from crystalperf.query.results.answers import Cause, StreamFacts
from crystalperf.query.results.comparison import ChangedBalance, NotCompared, Part, SettingChange, Waited
from crystalperf.query.results.stream_comparison import (
    ComparedStation,
    StationSide,
    StreamComparison,
    StreamSide,
)

SAME_RATE = 0.05
"""Relative difference of rates up to which two streams have the same load."""


def measured(execution: Execution, facts: StreamFacts) -> StreamAccount:
    """The account of a measured stream."""
    stream = execution.stream
    assert stream is not None
    ends = {each.source for each in stream.hops}
    queued = sum((1 - each.kept) * each.records_per_s for each in stream.hops)
    names = {each.id: each.name for each in stream.stations}
    latency_ms = stream.time_ms(execution.names)
    figures = StreamSide(
        input_per_s=stream.rate_per_s,
        output_per_s=sum(each.records_per_s for each in stream.stations if each.id not in ends),
        max_per_s=facts.max_per_s,
        latency_ms=None if stream.at_limit else latency_ms,
        keeps_up=not stream.at_limit,
        queued_per_s=queued if any(each.kept < BEHIND for each in stream.hops) else 0.0,
        limit=">".join(names.get(each, each) for each in facts.limit.split(">")),
    )
    stations = {
        each.name: StationSide(
            each.slots, each.records_per_s, each.busy, each.busiest, each.blocked,
            max(1.0 - each.busy - each.blocked, 0.0), each.record_ms,
        )
        for each in stream.stations
    }  # fmt: skip
    if stream.at_limit:
        return StreamAccount("throughput", figures, stations, {("rate", ""): 1e3 / max(stream.rate_per_s, 1e-9)})
    return StreamAccount("latency", figures, stations, _path(stream, execution.names))


def _path(stream: Stream, names: tuple[str, ...]) -> dict[tuple[str, str], float]:
    """The latency of a record by stage and by cause of waiting."""
    found: dict[tuple[str, str], float] = {}
    for each in path_segments(stream, measured=True, names=names):
        for key, ms in (
            (("record", each.name), float(each.work_ms.sum())),
            (("wait", "filling"), each.filling_ms),
            (("wait", "queueing"), each.same_buffer_ms + each.queue_ms + each.way_ms),
            (("wait", "held"), each.external_wait_ms),
        ):
            if ms > 0:
                found[key] = found.get(key, 0.0) + ms
    return found


def comparable(accounts: Sequence[StreamAccount]) -> list[StreamAccount]:
    """The accounts by one measure: if some streams are at their limit, all by the time between two records."""
    measures = {each.measure for each in accounts}
    if measures != {"latency", "throughput"}:
        return list(accounts)
    return [
        replace(each, measure="throughput", parts_ms={("rate", ""): 1e3 / max(each.figures.input_per_s or 0.0, 1e-9)})
        for each in accounts
    ]


def pooled_stream(accounts: Sequence[StreamAccount], time_ms: float) -> StreamAccount:
    """One account of several runs: the figures of the first, and the mean parts, which sum to a time."""
    keys = {key for each in accounts for key in each.parts_ms}
    parts = {key: fmean(each.parts_ms.get(key, 0.0) for each in accounts) for key in sorted(keys)}
    whole = sum(parts.values())
    scale = time_ms / whole if whole > 0 else 1.0
    return replace(accounts[0], parts_ms={key: scale * ms for key, ms in parts.items()})


def stream_parts(before: StreamAccount, after: StreamAccount, least_ms: float) -> list[Part]:
    """The parts of the difference, without those below `least_ms`."""
    found = _of_limit(before, after) if before.measure == "throughput" else _of_path(before, after)
    return [each for each in found if abs(each.ms) >= max(least_ms, 1e-12)]


def _of_path(before: StreamAccount, after: StreamAccount) -> list[Part]:
    found: list[Part] = []
    for key in sorted({*before.parts_ms, *after.parts_ms}):
        kind, subject = key
        one, other = before.parts_ms.get(key, 0.0), after.parts_ms.get(key, 0.0)
        if kind == "record":
            found.append(results.RecordTime(other - one, "measured", (), subject, one, other))
        elif kind == "batch":
            found.append(results.BatchPart(other - one, "measured", (), subject, one, other))
        else:
            (cause,) = (each for each in get_args(Cause) if each == subject)
            found.append(Waited(other - one, "modelled", (), cause, one, other))
    return found


def _of_limit(before: StreamAccount, after: StreamAccount) -> list[Part]:
    """The factors of the busiest stage of the streams at their limit; none if these have other busiest stages."""
    names = {_busiest(each) for each in (before, after) if each.figures.keeps_up is False}
    if len(names) != 1 or not names <= before.stations.keys() & after.stations.keys():
        return []
    (name,) = names
    one, other = before.stations[name], after.stations[name]
    weight = log_mean(before.time_ms, after.time_ms)
    found: list[Part] = []
    if one.record_ms and other.record_ms:
        ms = weight * log_ratio(one.record_ms, other.record_ms)
        found.append(results.RecordTime(ms, "modelled", (), name, one.record_ms, other.record_ms))
    if one.tasks != other.tasks:
        ms = -weight * log_ratio(one.tasks, other.tasks)
        found.append(results.ChangedParallelism(ms, "modelled", (), name, one.tasks, other.tasks))
    ms = -weight * log_ratio(one.busy_share, other.busy_share)
    found.append(ChangedBalance(ms, "modelled", (), one.busy_share, other.busy_share))
    return found


def _busiest(account: StreamAccount) -> str:
    """The stage with the busiest task, besides the source."""
    names = list(account.stations)[1:] or list(account.stations)
    return max(names, key=lambda name: account.stations[name].busiest_share, default="")


def stream_settings(before: StreamAccount, after: StreamAccount) -> list[SettingChange]:
    """The stages of which the sides have other numbers of parallel tasks."""
    both = [name for name in before.stations if name in after.stations]
    counts = {name: [str(each.stations[name].tasks) for each in (before, after)] for name in both}
    return [
        SettingChange(f"parallelism of {name}", tasks[0], tasks[1], matters=True)
        for name, tasks in counts.items()
        if tasks[0] != tasks[1]
    ]


def stream_doubts(before: StreamAccount, after: StreamAccount) -> list[NotCompared]:
    """Cautions about the comparison of two streams."""
    if before.measure is None or after.measure is None:
        return [results.LoadOnly()]
    one, other = before.figures, after.figures
    if before.measure == "throughput" and one.keeps_up != other.keeps_up:
        return [results.OtherLimit(after=other.keeps_up is False)]
    before_per_s, after_per_s = one.input_per_s or 0.0, other.input_per_s or 0.0
    if before.measure != "throughput" and abs(log_ratio(before_per_s, after_per_s)) > math.log1p(SAME_RATE):
        return [results.OtherRate(before_per_s, after_per_s)]
    return []


def compared_streams(before: StreamAccount, after: StreamAccount) -> StreamComparison:
    """Both sides' figures and stages."""
    names = [*before.stations, *(each for each in after.stations if each not in before.stations)]
    stations: Mapping[str, ComparedStation] = {
        name: ComparedStation(name, before.stations.get(name), after.stations.get(name)) for name in names
    }
    return StreamComparison(before.measure, before.figures, after.figures, tuple(stations.values()))
