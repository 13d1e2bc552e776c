"""Comparisons of streams: latency by stage and wait, rates, whether they keep up, and streams without metrics."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import jsonschema
import pytest

import crystalperf as cp
from crystalperf.cli.comparing import comparison_text
from crystalperf.indexes.errors import InputError
from crystalperf.query.compare.streams import comparable, pooled_stream, stream_doubts, stream_parts
from crystalperf.query.diagnose.comparer import StreamAccount
from crystalperf.query.results.comparison import Comparison, Waited
from crystalperf.query.results.stream_comparison import StationSide, StreamMeasure, StreamSide
from crystalperf.query.results.stream_parts import OtherRate, RecordTime
from crystalperf.query.run import Run

ROOT = Path(__file__).resolve().parent.parent
FLINK = ROOT / "tests" / "data" / "flink"


def station(tasks: int = 2, busy: float = 0.5, record_ms: float = 1.0) -> StationSide:
    return StationSide(tasks, 1_000.0, busy, busy, 0.0, 1 - busy, record_ms)


def stream(
    measure: StreamMeasure | None = "latency", rate: float = 1_000.0, parts: dict[tuple[str, str], float] | None = None,
    **stations: StationSide,
) -> StreamAccount:  # fmt: skip
    figures = StreamSide(rate, rate, None, None, measure != "throughput", 0.0, "")
    time = {("rate", ""): 1e3 / rate} if measure == "throughput" else {}
    return StreamAccount(measure, figures, {"source": station(), **stations}, parts or time)


def test_a_latency_is_split_by_stage_and_wait() -> None:
    one = stream(parts={("record", "parse"): 1.0, ("wait", "filling"): 50.0})
    other = stream(parts={("record", "parse"): 4.0, ("wait", "filling"): 50.0, ("wait", "queueing"): 2.0})
    found = {(each.kind, getattr(each, "name", getattr(each, "cause", ""))): each.ms for each in
             stream_parts(one, other, 0.01)}  # fmt: skip
    assert found == {("record-time", "parse"): 3.0, ("waiting", "queueing"): 2.0}
    assert not stream_doubts(one, other)


@pytest.mark.parametrize(
    ("after", "cause"),
    [
        (stream("throughput", 500.0, parse=station(2, 1.0, 4.0)), "record-time"),
        (stream("throughput", 500.0, parse=station(1, 1.0, 2.0)), "parallelism"),
        (stream("throughput", 500.0, parse=station(2, 0.5, 2.0)), "balance"),
    ],
)
def test_streams_at_their_limit_differ_by_one_factor(after: StreamAccount, cause: str) -> None:
    before = stream("throughput", 1_000.0, parse=station(2, 1.0, 2.0))
    found = stream_parts(before, after, 1e-9)
    assert [each.kind for each in found] == [cause]
    assert found[0].ms == pytest.approx(1.0)
    back = stream_parts(after, before, 1e-9)
    assert back[0].ms == pytest.approx(-1.0)


def test_a_stream_that_does_not_keep_up_is_compared_by_its_rate() -> None:
    below = stream(rate=1_000.0, parts={("record", "parse"): 5.0}, parse=station(2, 0.1, 0.2))
    full = stream("throughput", 800.0, parse=station(2, 1.0, 2.5))
    one, other = comparable([below, full])
    assert (one.measure, one.time_ms, other.time_ms) == ("throughput", 1.0, 1.25)
    assert [each.kind for each in stream_doubts(one, other)] == ["other-limit"]
    parts = stream_parts(one, other, 1e-9)
    assert sum(each.ms for each in parts) == pytest.approx(0.25)
    assert next(each for each in parts if each.kind == "record-time").ms > 0


def test_several_runs_are_pooled_to_a_time() -> None:
    one = stream(parts={("record", "parse"): 1.0})
    other = stream(parts={("record", "parse"): 3.0, ("wait", "held"): 4.0})
    found = pooled_stream([one, other], 8.0)
    assert found.parts_ms == {("record", "parse"): 4.0, ("wait", "held"): 4.0}


# Recorded streams -----------------------------------------------------------------------------------------------------


@cache
def recorded(name: str) -> Run:
    return cp.profile([FLINK / f"{name}.json.gz", FLINK / f"{name}.series.gz"])


@cache
def pair() -> Comparison:
    return cp.compare(recorded("ads-3000"), recorded("ads-12000"))


def test_a_higher_rate_fills_buffers_earlier() -> None:
    found = pair()
    assert found.stream is not None
    assert found.stream.measure == "latency"
    assert found.parts[0].kind == "waiting"
    assert isinstance(found.parts[0], Waited)
    assert found.parts[0].cause == "filling"
    assert sum(each.ms for each in found.parts) == pytest.approx(found.change_ms)
    (rate,) = (each for each in found.not_compared if isinstance(each, OtherRate))
    assert (rate.before_per_s, rate.after_per_s) == (pytest.approx(3_000, rel=0.02), pytest.approx(12_000, rel=0.02))
    assert found.stream.before.output_per_s == pytest.approx(1_000, rel=0.02)
    assert found.stream.after.keeps_up
    parse = next(each for each in found.stream.stations if each.name == "Parse")
    assert parse.before is not None
    assert parse.after is not None
    assert parse.after.busy_share > 3 * parse.before.busy_share
    assert sum((parse.after.busy_share, parse.after.blocked_share, parse.after.idle_share)) == pytest.approx(1.0)


def test_the_opposite_comparison_has_the_opposite_parts() -> None:
    back = cp.compare(recorded("ads-12000"), recorded("ads-3000"))
    there = {(each.kind, getattr(each, "cause", "")): each.ms for each in pair().parts}
    assert {(each.kind, getattr(each, "cause", "")): pytest.approx(-each.ms) for each in back.parts} == there


def test_the_screen_fits_and_the_json_has_its_schema() -> None:
    text = comparison_text(pair())
    assert text.count("\n") <= 45
    assert max(map(len, text.splitlines())) <= 80
    schema = json.loads((ROOT / "docs" / "schema" / "comparison.json").read_text(encoding="utf-8"))
    jsonschema.validate(cp.as_json(pair()), schema)


def test_a_stream_and_a_job_that_ends_are_refused_in_a_sentence() -> None:
    with pytest.raises(InputError, match="streams"):
        cp.compare(recorded("ads-3000"), FLINK / "join-and-sort.json.gz")


def test_streams_without_metrics_are_compared_by_load_and_not_decided() -> None:
    found = replace(pair(), stream=replace(pair().stream, measure=None))  # type: ignore[type-var]
    assert not found.decided
    assert comparison_text(found).split("\n\n")[1].startswith("Not decided")


def test_a_vertex_with_more_work_is_the_first_cause_once_the_stream_does_not_keep_up() -> None:
    """Parse does six times the work (lab/recordings/streams)."""
    base, more = (ROOT / "lab" / "recordings" / "streams" / f"ads-{each}" / "collected" for each in ("base", "work"))
    found = cp.compare(base, more)
    assert found.stream is not None
    assert (found.stream.before.keeps_up, found.stream.after.keeps_up) == (True, False)
    assert found.stream.after.limit == "Parse"
    first = found.parts[0]
    assert isinstance(first, RecordTime)
    assert first.name == "Parse"
    assert first.after_ms > 3 * first.before_ms
    assert comparison_text(found).split("\n\n")[1].startswith("Does not keep up any more")


@pytest.mark.later
def test_streaming_queries_of_spark_are_compared_by_their_mean_batch(tmp_path: Path) -> None:
    log = ROOT / "lab" / "recordings" / "odd" / "micro-batches.zstd"
    other = tmp_path / "again.zstd"
    other.write_bytes(log.read_bytes())
    found = cp.compare(log, other)
    assert found.stream is not None
    assert found.stream.measure == "batch"
    assert found.before.runtime_ms == pytest.approx(443, abs=1)
    assert found.difference.verdict == "no change"
    assert found.stream.before.keeps_up is not None
