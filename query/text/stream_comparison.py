"""Sentences of compared streams: the verdict, rates, and the parts that only streams have."""

from __future__ import annotations

from crystalperf.query.results import stream_parts as results
from crystalperf.query.results.comparison import Comparison
from crystalperf.query.results.stream_comparison import StreamSide
from crystalperf.query.results.words import Words
from crystalperf.query.text.figures import TimeUnit, change, counted_digits
from crystalperf.query.text.sentences import CORE

_BATCH_PARTS = {
    "add_batch": "running the batch and passing it to the sink",
    "latest_offset": "querying the sources for new data",
    "query_planning": "planning the batch",
    "wal_commit": "writing the offsets to read to the checkpoint",
    "get_batch": "creating the data frames of the sources",
    "commit_offsets": "writing the processed offsets to the checkpoint",
    "rest": "the rest of a batch",
}


def stream_verdict(found: Comparison) -> str:
    """The beginning of the verdict of streams that are not compared by a latency below their limits; else ''."""
    stream = found.stream
    if stream is None:
        return ""
    one, other = stream.before, stream.after
    if stream.measure is None:
        if one.keeps_up == other.keeps_up or None in (one.keeps_up, other.keeps_up):
            return "Not decided: the logs of these streams have no rates and no latencies"
        return "Does not keep up any more" if one.keeps_up else "Keeps up now"
    if stream.measure == "throughput":
        rates = f"{_rate(other.input_per_s)} instead of {_rate(one.input_per_s)} records/s"
        if one.keeps_up != other.keeps_up:
            return f"{'Keeps up now' if other.keeps_up else 'Does not keep up any more'}: {rates}"
    return ""


def what_takes(found: Comparison) -> str:
    """The subject of the times of a verdict: `a record takes `."""
    stream = found.stream
    if stream is None:
        return ""
    return {"latency": "a record takes ", "throughput": "a record every ", "batch": "a batch takes "}[
        stream.measure or "latency"
    ]


def rates_sentence(side: StreamSide) -> str:
    """The rates of a side, and whether it keeps up."""
    facts = []
    if side.input_per_s is not None:
        out = f", {_rate(side.output_per_s)} out" if side.output_per_s is not None else ""
        facts.append(f"{_rate(side.input_per_s)} records/s in{out}")
    if side.max_per_s is not None:
        facts.append(f"at most {_rate(side.max_per_s)}")
    if side.keeps_up is not None:
        facts.append("keeps up" if side.keeps_up else f"at its limit{f' ({side.limit})' if side.limit else ''}")
    if side.queued_per_s:
        facts.append(f"queue grows by {_rate(side.queued_per_s)} records/s")
    return "   ".join(facts)


def _rate(per_s: float | None) -> str:
    return "?" if per_s is None else counted_digits(per_s)


def _instead(before_ms: float, after_ms: float) -> str:
    longest = max(before_ms, after_ms)
    unit = TimeUnit("µs", 1e-3, 1) if longest < 1 else TimeUnit("ms", 1.0, 2 if longest < 20 else 0)
    return f"{unit.text(after_ms)} instead of {unit.text(before_ms)} ({change(after_ms, before_ms)})"


@CORE.of(results.RecordTime)
def record_time(part: results.RecordTime, words: Words) -> str:
    return f"{words.vocabulary.stage} {part.name}: {_instead(part.before_ms, part.after_ms)} for a record"


@CORE.of(results.ChangedParallelism)
def changed_parallelism(part: results.ChangedParallelism, words: Words) -> str:
    return f"{part.after} instead of {part.before} {words.vocabulary.tasks} of {words.vocabulary.stage} {part.name}"


@CORE.of(results.BatchPart)
def batch_part(part: results.BatchPart, _words: Words) -> str:
    return f"{_BATCH_PARTS.get(part.name, part.name)}: {_instead(part.before_ms, part.after_ms)}"


@CORE.of(results.OtherRate)
def other_rate(found: results.OtherRate, _words: Words) -> str:
    rates = f"{_rate(found.after_per_s)} instead of {_rate(found.before_per_s)} records/s"
    return f"the load differs: {rates} come in"


@CORE.of(results.OtherLimit)
def other_limit(found: results.OtherLimit, _words: Words) -> str:
    side = "after" if found.after else "before"
    return f"only the runs {side} are at their limit, where the latency of a record has no steady value"


@CORE.of(results.LoadOnly)
def load_only(_found: results.LoadOnly, words: Words) -> str:
    return f"only the load of {words.vocabulary.stages} is compared: collect metrics while the streams run"
