"""Runs that are flows of records: the model's own laws, and real streams of Flink against the ages of their records.

tests/data/flink/ads-3000, ads-12000 and skew-8000 are what `crystalperf collect` made of three jobs of `python -m
lab.flink run` (Flink 1.20.3, two TaskManagers of 0.7 cores): the Yahoo benchmark at 3 000 and at 12 000 records a
second, and one with six of ten records on one key.  slow-sink and two-rates are of other jobs on two TaskManagers that
had a core each and an overloaded machine: four vertices of which the sink sleeps for a millisecond a record, and two
sources, of 4 000 and some 200 records a second, that meet in one vertex.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest

import crystalperf as cp
from crystalperf.cli.predictions import sweep_text
from crystalperf.indexes.errors import InputError, SettingError
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.load import load
from crystalperf.query.execution.scenario import Scenario
from crystalperf.query.execution.stream import (
    Hop,
    Station,
    Stream,
    StreamWorker,
    cpu_wait_ms,
    filling_ms,
    path_segments,
)
from crystalperf.query.frameworks.flink import held as held_by
from crystalperf.query.frameworks.flink import steady, timeout
from crystalperf.query.frameworks.flink.frames import NETWORK
from crystalperf.query.frameworks.flink.hops import hops_of
from crystalperf.query.frameworks.flink.recommendations import BreakChain, CollectMetrics, ShortenBufferTimeout
from crystalperf.query.frameworks.flink.remarks import AssumedTimeout, HeldRecords, NoFlow, UntimedRequests
from crystalperf.query.frameworks.flink.task_managers import with_buffer_costs
from crystalperf.query.frameworks.flink.timeout import due
from crystalperf.query.results.assumptions import BufferTimeout, CrossingCpuKept, OutsideLatencyKept, SlotsUnused
from crystalperf.query.results.refusals import (
    AtLimit,
    BusyTimeUnknown,
    LimitNotMeasured,
    NotModelledForStreams,
    RateBeyondMeasured,
    RateNearLimit,
    RateNotSustained,
)
from crystalperf.query.run import Run
from crystalperf.query.streaming.backlog import with_full_buffers
from crystalperf.query.streaming.predict import _spread, changed, max_throughput, predict_stream
from tests.reading import profiled, rows

DATA = Path(__file__).parent / "data/flink"
FLINK_SCHEMA = Path(steady.__file__).with_name("schema.sql")
SWEEPS = Path(__file__).parents[1] / "lab/recordings/sweeps/flink"

AGES_MS = {"ads-3000": 101.4, "ads-12000": 68.4, "skew-8000": 84.3}
"""Mean ages of records at the sinks, as the sinks themselves measured them after 15 s of warming up."""

NAMES = ("cpu", "disk", "net")


def real(name: str) -> Run:
    return profiled(DATA / f"{name}.json.gz", DATA / f"{name}.series.gz")


Look = dict[str, float | None]
"""Of a subtask, by column of its series."""


def changed_run(folder: Path, change: Callable[[int, Look], None], settings: dict[str, str] | None = None) -> Run:
    """ads-3000 with its looks changed, each by its number, and with settings of the cluster."""
    begin, *samples = map(json.loads, gzip.decompress((DATA / "ads-3000.series.gz").read_bytes()).splitlines())
    for number, sample in enumerate(samples):
        for subtasks in sample["v"]:
            for place, values in enumerate(subtasks):
                look = dict(zip(begin["columns"], values, strict=True))
                change(number, look)
                subtasks[place] = list(look.values())
    series = folder / "changed.series.gz"
    lines = "\n".join(json.dumps(each, separators=(",", ":")) for each in (begin, *samples))
    series.write_bytes(gzip.compress(lines.encode()))
    document = json.loads(gzip.decompress((DATA / "ads-3000.json.gz").read_bytes()))
    job = document["archive"][1]["path"]
    pairs = [{"key": key, "value": value} for key, value in (settings or {}).items()]
    document["archive"].append({"path": f"{job}/jobmanager/config", "json": json.dumps(pairs)})
    archive = folder / "changed.json"
    archive.write_text(json.dumps(document, separators=(",", ":")))
    return cp.profile([archive, series], output=folder / "run.duckdb")


@pytest.fixture(scope="module")
def ads() -> tuple[Execution, Stream]:
    """ads-3000 as it is loaded, and its stream."""
    with real("ads-3000").reading() as connection:
        execution = load(connection)
        assert execution.planner.stream is not None
        stream = execution.planner.stream(connection, execution)
    assert stream is not None
    return execution, stream


def flow_of(run: Run) -> Stream | None:
    with run.reading() as connection:
        execution = load(connection)
        assert execution.planner.stream is not None
        return execution.planner.stream(connection, execution)


def slow(_: int, look: Look) -> None:
    """A three-hundredth of the records, ten a second: each channel has fewer than three, and sends each alone."""
    remote = (look["bytes_in_remote"] or 0) / max((look["bytes_in_remote"] or 0) + (look["bytes_in_local"] or 0), 1)
    for name in ("records_in", "records_out", "bytes_in_local", "bytes_in_remote"):
        look[name] = (look[name] or 0) / 300
    records = look["records_in"] or 0
    look |= {"buffers_in_remote": records * remote, "buffers_in_local": records * (1 - remote)}
    look |= {"input_buffers": 0, "output_buffers": 0}


def looked_at(rows: list[Look]) -> duckdb.DuckDBPyConnection:
    """A connection with the tables of Flink, and these looks at a vertex in flink_series."""
    connection = duckdb.connect()
    connection.execute(FLINK_SCHEMA.read_text(encoding="utf-8"))
    connection.executemany(
        "INSERT INTO flink_series (time_ms, stage_id, subtask, records_in, records_out) VALUES (?, 'v', ?, ?, ?)",
        [list(row.values()) for row in rows],
    )
    return connection


def ran(seconds: range, subtasks: int, per_s: float = 100.0) -> list[Look]:
    """Looks at a vertex whose subtasks began with the first of these seconds."""
    return [
        {
            "time_ms": 1e3 * second,
            "subtask": number,
            "records_in": 1.0,
            "records_out": 1 + per_s * (second - seconds[0]),
        }
        for second in seconds
        for number in range(subtasks)
    ]


AT_A_RATE, AT_ITS_LIMIT = "011-ads-0", "071-full-0"


def station(name: str, busy: float, *, slots: int = 2, rate: float = 1000.0, **more: object) -> Station:
    shares = np.array([1.0, 0.0, 0.0, 0.0])
    facts = {"busiest": busy, "blocked": 0.0, "shares": shares, **more}
    return Station(name, name, slots, rate, busy, **facts)  # type: ignore[arg-type]


def hop(source: str, target: str, *, due_ms: float = 100.0, size: float = 100.0, rate: float = 1000.0) -> Hop:
    """Four channels whose buffers are due every so often, of records of that many bytes."""
    buffers = 4 * 1e3 / due_ms + rate * size / 32768
    return Hop(source, target, 4, rate, rate * size, buffers, 0.5, 0.0)


def line(*stations: Station, hops: tuple[Hop, ...] = (), cores: float = np.inf) -> Stream:
    first = replace(stations[0], is_source=True)
    return Stream((first, *stations[1:]), hops, (StreamWorker("w", 0.2, cores),), 0.0, 60_000.0)


# The model --------------------------------------------------------------------------------------------------------


def test_a_buffer_that_never_fills_keeps_a_record_for_half_the_time_until_it_is_due() -> None:
    assert filling_ms(np.inf, 100.0) == 50.0
    assert filling_ms(1e9, 100.0) == pytest.approx(50.0)


def test_a_buffer_that_is_never_due_keeps_a_record_for_half_the_time_until_it_is_full() -> None:
    assert filling_ms(30.0, np.inf) == 15.0


def test_random_flush_and_full_buffer_wait_a_third_on_average() -> None:
    assert filling_ms(100.0, 100.0) == pytest.approx(100 / 3)


def test_records_that_come_in_bursts_wait_less_where_full_buffers_are_sent() -> None:
    assert filling_ms(np.inf, 100.0, 2) == 50.0
    assert filling_ms(1e9, 100.0, 2) == pytest.approx(50.0)  # no burst fills a buffer
    # One burst a timeout, half a buffer each: it is cut with 1/2, and half of it goes at once then.
    assert filling_ms(200.0, 100.0, 1) == pytest.approx(50 * (1 - 0.5 * 0.5))
    times = [filling_ms(80.0, 100.0, bursts) for bursts in (1, 2, 2.5, 3, 10, 60)]
    assert times == sorted(times)
    assert times[-1] == pytest.approx(filling_ms(80.0, 100.0), rel=0.02)


@pytest.mark.parametrize(("full_ms", "bursts"), [(30.0, 2), (84.0, 3), (170.0, 2), (250.0, 1)])
def test_waiting_of_bursts_matches_a_simulation(full_ms: float, bursts: int) -> None:
    """Played through: a thousand timers and bursts, a buffer cut wherever its bytes are full."""
    rng, pieces, due_ms = np.random.default_rng(5), 50, 100.0
    waits = []
    for _ in range(1000):
        came = np.sort(rng.uniform(0, due_ms, bursts)) + due_ms * np.arange(6)[:, None]
        at = np.repeat(came.ravel(), pieces)
        filled = np.arange(1, len(at) + 1) * due_ms / full_ms / bursts / pieces + rng.uniform()
        full = np.append(at, np.inf)[np.searchsorted(filled, np.floor(filled) + 1)]
        first = slice(0, 3 * bursts * pieces)
        waits.append((np.minimum(full, due_ms * np.ceil(at / due_ms)) - at)[first].mean())
    assert filling_ms(full_ms, due_ms, bursts) == pytest.approx(np.mean(waits), rel=0.04)


def test_stated_timeout_is_used_if_buffer_counts_agree() -> None:
    counted = hop("a", "b", due_ms=96.0)
    assert counted.due_ms == pytest.approx(96.0)
    assert replace(counted, most_due_ms=100.0).due_ms == 100.0
    assert replace(counted, most_due_ms=200.0).due_ms == pytest.approx(96.0)


def test_how_long_buffers_fill_is_found_from_their_number() -> None:
    assert hop("a", "b", due_ms=100.0, size=500.0).due_ms == pytest.approx(100.0)
    assert hop("a", "b", due_ms=25.0, size=10.0).due_ms == pytest.approx(25.0)


def test_latency_of_a_record_is_its_longest_path() -> None:
    stations = station("a", 0.1), station("b", 0.1), station("c", 0.1), station("d", 0.1)
    hops = hop("a", "b"), hop("a", "c", due_ms=10), hop("b", "d"), hop("c", "d")
    path = path_segments(line(*stations, hops=hops), measured=False, names=NAMES)
    assert [each.id for each in path] == ["a", "a>b", "b", "b>d", "d"]


def test_the_busiest_slot_limits_and_not_the_mean() -> None:
    stream = line(station("a", 0.1), station("b", 0.2, busiest=0.4, keyed=True), hops=(hop("a", "b"),))
    limit = max_throughput(stream)
    assert (limit.id, limit.rate_per_s) == ("b", pytest.approx(2500))


def test_worker_with_a_full_cpu_limits_the_rate() -> None:
    stream = line(station("a", 0.1), station("b", 0.2), hops=(hop("a", "b"),), cores=0.3)
    limit = max_throughput(stream)
    assert (limit.id, limit.kind, limit.resource) == ("w", "worker", "cpu")
    assert limit.rate_per_s == pytest.approx(1500)


def test_waiting_grows_without_bound_towards_full_use() -> None:
    waits = []
    for busy in (0.2, 0.5, 0.8, 0.95):
        stream = line(station("a", 0.1), station("b", busy), hops=(hop("a", "b"),))
        waits.append(
            next(each.queue_ms for each in path_segments(stream, measured=False, names=NAMES) if each.id == "a>b")
        )
    assert waits == sorted(waits)
    assert waits[-1] > 20 * waits[0]


def waits_for_cpu(used: float, cores: float, fixed: float = 0.0) -> float:
    stream = line(station("a", 0.1), station("b", 0.1), hops=(hop("a", "b"),), cores=cores)
    return cpu_wait_ms(replace(stream, places=(StreamWorker("w", used, cores, fixed),)), stream.hops[0])


def test_a_worker_whose_cpu_is_nearly_used_up_makes_buffers_wait() -> None:
    assert waits_for_cpu(0.5, np.inf) == 0.0
    waits = [waits_for_cpu(0.7 * rho, 0.7) for rho in (0.2, 0.5, 0.8, 0.95)]
    assert waits == sorted(waits)
    # Two slots of b get a's buffers together: 2 / 2 of ρ / (1 − ρ) times what one takes of the 0.7.
    buffers_per_s = 4 * 10 + 1000 * 100 / 32768
    assert waits[1] == pytest.approx(1e3 * 0.35 / buffers_per_s / 0.7)
    assert waits_for_cpu(0.5 * 8, 8.0) < waits_for_cpu(0.5, 1.0) * 8  # several servers wait for each other less
    assert waits_for_cpu(0.35, 0.7, fixed=0.35) == 0.0


def test_slower_cpu_also_slows_fixed_work() -> None:
    stream = line(station("a", 0.1), station("b", 0.1), hops=(hop("a", "b"),), cores=0.7)
    place = StreamWorker("w", 0.3, 0.7, fixed_cores=0.1)
    assert max_throughput(replace(stream, places=(place,))).rate_per_s == pytest.approx(3000)
    slower = replace(place, cpu_cores=0.6, fixed_cores=0.2)  # as changed() has it at half the speed
    assert max_throughput(replace(stream, places=(slower,))).rate_per_s == pytest.approx(1250)
    assert max_throughput(replace(stream, places=(replace(slower, fixed_cores=0.7, cpu_cores=0.8),))).rate_per_s == 0.0


def test_cost_of_buffer_timeouts_does_not_grow_with_the_record_rate() -> None:
    stations = station("a", 0.1), station("b", 0.2, due_buffer_share=0.1)
    stream = line(*stations, hops=(hop("a", "b"),), cores=0.7)
    assert max_throughput(stream).rate_per_s == pytest.approx(3500)  # of the worker, all of whose CPU grows
    half = replace(stream, places=(StreamWorker("w", 0.2, 0.7, due_cores=0.1),))
    assert max_throughput(half).rate_per_s == pytest.approx(6000)
    assert max_throughput(replace(half, places=())).rate_per_s == pytest.approx(
        9000
    )  # of b, which has 0.1 of growing work


@pytest.mark.later
def test_network_threads_show_the_cost_of_buffers_to_subtasks() -> None:
    """Of a stream at a low rate, and of the same job as fast as it goes, where nearly no buffer is due."""
    slow, fast = (flow_of(profiled(SWEEPS / name)) for name in (AT_A_RATE, AT_ITS_LIMIT))
    assert slow is not None
    assert fast is not None
    for stream, least, most in ((slow, 0.15, 0.6), (fast, 0.0, 0.02)):
        reading = [each for each in stream.stations if not each.is_source]
        due_buffer_share = sum(each.due_buffer_share for each in reading) / sum(each.busy for each in reading)
        assert least < due_buffer_share < most
        assert all(each.due_buffer_share == 0 for each in stream.stations if each.is_source)
        assert all(0 < each.due_cores <= each.cpu_cores - each.fixed_cores for each in stream.places)
        assert all(0 < each.crossing_due_cores < each.due_cores for each in stream.places)
        assert all(0 < each.crossing_cores < each.growing_cores for each in stream.places)


def test_a_buffer_without_a_record_is_not_sent() -> None:
    """Of a rate at which a channel has 0.25 records within the timeout; beyond it buffers would outnumber records."""
    stream = line(station("a", 0.1), station("b", 0.1), hops=(hop("a", "b", due_ms=100.0, size=100.0),))
    slower = _spread(stream.hops[0], 0.01, 4)
    assert slower.due_ms == pytest.approx(100.0)
    assert slower.buffers_per_s == pytest.approx(10.0, rel=0.01)
    at_once = _spread(replace(stream.hops[0], most_due_ms=0.0, buffers_per_s=1000.0), 2.0, 4)
    assert at_once.due_ms == 0.0
    assert at_once.buffers_per_s == pytest.approx(2000.0, rel=0.01)


# Real streams -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", AGES_MS)
def test_predicted_latency_is_near_the_latency_at_sinks(name: str) -> None:
    """Within 15 %: the phase of the flush timers of two tasks relative to each other is random."""
    debug = real(name).debug()
    assert debug.measure == "latency"
    assert debug.runtime_ms == pytest.approx(AGES_MS[name], rel=0.15)
    assert sum(each.end_ms - each.start_ms for each in debug.critical_path) == pytest.approx(debug.runtime_ms)
    assert sum(debug.resource_ms.values()) == pytest.approx(debug.runtime_ms)
    assert debug.stream.rate_per_s == pytest.approx(int(name.rpartition("-")[2]), rel=0.02)
    assert not debug.stream.at_limit


def test_range_of_another_rate_covers_its_measurement() -> None:
    reported = real("ads-3000").predict(["rate=12000"])
    assert reported.interval_ms[0] <= AGES_MS["ads-12000"] <= reported.interval_ms[1]
    assert reported.predicted_ms == pytest.approx(AGES_MS["ads-12000"], rel=0.15)


def test_channels_with_few_records_send_no_empty_buffers(tmp_path: Path) -> None:
    """Two exchanges at ten records a second keep a record for about 50 ms each; by their number of buffers, for more
    than a second in all."""
    run = changed_run(tmp_path, slow)
    stream = flow_of(run)
    assert stream.rate_per_s == pytest.approx(10, rel=0.02)
    assert [each.due_ms for each in stream.hops] == [100.0, 100.0]
    assert run.debug().other_ms["filling"] == pytest.approx(100.0, rel=0.01)
    assert AssumedTimeout(100) in run.debug().measurements
    (sooner,) = (each for each in run.verdict().recommendations if isinstance(each, ShortenBufferTimeout))
    assert (sooner.before_ms, sooner.after_ms) == (100, 10)
    reported = run.predict(["rate=2x"])
    assert reported.interval_ms[1] > 1.4 * reported.predicted_ms  # nobody knows the timeout
    assert BufferTimeout(100.0) in reported.assumptions


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("settings", "due_ms"),
    [
        ({"execution.buffer-timeout.interval": "20 ms"}, 20.0),
        ({"execution.buffer-timeout": "0"}, 0.0),
        ({"execution.buffer-timeout.interval": "1 min"}, 60_000.0),
        ({"execution.buffer-timeout": "-1"}, np.inf),
        ({"execution.buffer-timeout.enabled": "false", "execution.buffer-timeout.interval": "20 ms"}, np.inf),
        ({"execution.buffer-timeout.interval": "2 Millis"}, 2.0),
    ],
)
def test_a_stated_timeout_is_the_longest_that_buffers_fill(
    settings: dict[str, str], due_ms: float, tmp_path: Path
) -> None:
    stream = flow_of(changed_run(tmp_path, slow, settings))
    assert stream is not None
    assert [each.most_due_ms for each in stream.hops] == [due_ms, due_ms]
    assert not any(each.is_due_assumed for each in stream.hops)
    assert all(each.due_ms <= due_ms for each in stream.hops)


@pytest.mark.later
def test_requests_that_a_record_waits_for_are_reported_as_unknown() -> None:
    """Half a hundredth of a second each in this job, of which no metric of Flink knows."""
    waits, plain = (profiled(SWEEPS / name) for name in ("064-async-0", AT_A_RATE))
    (found,) = (each for each in waits.debug().measurements if isinstance(each, UntimedRequests))
    assert any(each.startswith("Parse -> Lookup") for each in found.vertices)
    assert not any(isinstance(each, UntimedRequests) for each in plain.debug().measurements)


Held = Callable[[int], float]
"""Of an operator: how many records it holds, or has dropped, after so many seconds."""


def operator(held: Held, *, per_s: float = 1000.0, stack: str | None = held_by.ASYNCHRONOUS) -> dict[str, float]:
    """How long a vertex of two subtasks holds a record, of one operator that was looked at for a minute.

    `stack` is a function of the vertex' samples; None without any.
    """
    connection = looked_at(ran(range(1), 1))
    connection.execute("CREATE TABLE tasks AS SELECT 0 AS task_id, 'v' AS stage_id")
    connection.execute("CREATE TABLE samples AS SELECT 0 AS stack_id, 0 AS task_id")
    connection.execute("CREATE TABLE stacks AS SELECT 0 AS stack_id, [''] AS frames")
    connection.execute("DELETE FROM samples" if stack is None else f"UPDATE stacks SET frames = ['{stack}']")
    rows = [(1e3 * each, "v", "Lookup", per_s * each, per_s * each - held(each)) for each in range(20, 80)]
    connection.executemany("INSERT INTO flink_operators VALUES (?, ?, ?, ?, ?)", rows)
    return held_by.external_wait_ms(connection, (0.0, 1e9), {"v": 2}, {"v": "Parse -> Lookup"})


def in_bursts(second: int) -> float:
    """Fifty records that are held for a fifth of the time."""
    return 50.0 if second % 5 == 0 else 0.0


def some(second: int) -> float:
    """A hundred records, as many more or fewer as come at random."""
    return 100.0 + [10, -12, 3, -9, 14, 0, -6][second % 7]


def test_external_wait_of_records_follows_littles_law() -> None:
    assert operator(some) == {"v": pytest.approx(100.0, rel=0.01)}
    assert operator(some, per_s=2000.0) == {"v": pytest.approx(50.0, rel=0.01)}
    assert operator(in_bursts) == {"v": pytest.approx(10.0)}


def test_dropped_records_have_no_external_wait() -> None:
    assert operator(lambda second: 20.0 * second) == {}  # a filter
    assert operator(lambda second: 2.0 * second + in_bursts(second)) == {}
    assert operator(lambda _: 20.0) == {}  # some time ago
    assert operator(lambda second: 20_000.0 + in_bursts(second)) == {"v": pytest.approx(10.0)}
    assert operator(lambda second: 20_000.0 + some(second), per_s=0.9 * 1000) == {
        "v": pytest.approx(20_100 / 0.9, rel=0.01)  # so many would have become more since the start
    }
    assert operator(lambda second: 50.0 * second + some(second)) == {}


def test_polls_in_step_with_bursts_give_the_same_result() -> None:
    """Fifty records for half of the time; a look comes a little earlier in each burst than the one before."""
    assert operator(lambda second: 50.0 if second < 50 else 0.0) == {"v": pytest.approx(25.0)}
    assert operator(lambda second: 50.0 if second < 50 else 0.0, stack=None) == {}


def test_operator_without_requests_has_no_external_wait() -> None:
    assert operator(some, stack="org.apache.flink.streaming.api.operators.StreamMap.") == {}
    assert operator(some, stack=None) == {}  # what it dropped is as even
    assert operator(in_bursts, stack=None) == {"v": pytest.approx(10.0)}


def test_poll_between_two_counter_updates_is_ignored() -> None:
    once = operator(lambda second: -1000.0 if second == 40 else some(second))
    assert once == {"v": pytest.approx(100.0, rel=0.01)}
    assert operator(lambda second: -1000.0 if second % 4 == 0 else some(second)) == {}


def test_external_wait_is_the_same_in_another_scenario(ads: tuple[Execution, Stream]) -> None:
    """100 ms at the second station, of which no work, at twice the rate and on twice the cores too."""
    execution, _ = ads
    free = line(station("a", 0.1), station("b", 0.1), hops=(hop("a", "b"),), cores=1.0)
    run = replace(free, stations=(free.stations[0], replace(free.stations[1], external_wait_ms=100.0)))
    for ratios in ({}, {"rate": 2.0}, {"cores": 2.0}, {"cpu_speed": 2.0}, {"tasks": 2.0}):
        (held, said), (plain, _) = (changed(each, execution, Scenario(ratios=ratios)) for each in (run, free))
        (path, without) = (path_segments(each, measured=False, names=NAMES) for each in (held, plain))
        assert [each.external_wait_ms for each in path] == [0.0, 0.0, 100.0]
        assert sum(each.time_ms for each in path) == pytest.approx(100 + sum(each.time_ms for each in without))
        assert OutsideLatencyKept(("b",)) in said
    assert max_throughput(run) == max_throughput(free)


def test_collected_operator_metrics_are_reported(tmp_path: Path) -> None:
    """ads-3000 with an operator that holds 170 records in the mean: 57 ms of each at 3 000 a second."""
    begin, *samples = map(json.loads, gzip.decompress((DATA / "ads-3000.series.gz").read_bytes()).splitlines())
    for number, sample in enumerate(samples):
        taken = 3000 * number + 2000
        sample["o"] = {begin["vertices"][1]: {"Lookup": [taken, taken - 110 - 30 * (number % 5)]}, "gone": {}}
    lines = begin, *samples
    series = tmp_path / "x.series.gz"
    series.write_bytes(gzip.compress("\n".join(json.dumps(each, separators=(",", ":")) for each in lines).encode()))
    plain = real("ads-3000").debug()
    run = cp.profile([DATA / "ads-3000.json.gz", series], output=tmp_path / "run.duckdb")
    debug = run.debug()
    assert "held" not in plain.other_ms  # an earlier file
    assert debug.other_ms["held"] == pytest.approx(170 / 3, rel=0.05)  # looks are not a second apart to the ms
    assert debug.runtime_ms == pytest.approx(plain.runtime_ms + debug.other_ms["held"])
    assert sum(each.end_ms - each.start_ms for each in debug.critical_path) == pytest.approx(debug.runtime_ms)
    held = [each.external_wait_ms for each in debug.measurements if isinstance(each, HeldRecords)]
    assert held == [pytest.approx(debug.other_ms["held"])]
    assert any(isinstance(each, OutsideLatencyKept) for each in run.predict(["rate=2x"]).assumptions)


def test_a_rate_beyond_the_highest_has_no_latency_and_names_the_full_station() -> None:
    run = real("ads-3000")
    reported = run.predict(["rate=100x"])
    assert reported.predicted_ms is None
    assert isinstance(reported.refused[0], RateBeyondMeasured)  # the run was at a fortieth of its limit
    assert reported.stream.max_per_s is not None
    assert reported.stream.rate_per_s == pytest.approx(100 * reported.stream.recorded_per_s)
    assert reported.is_answered


def test_table_of_scenarios_shows_sustained_rates_if_latency_is_unknown() -> None:
    run = profiled(SWEEPS / AT_ITS_LIMIT)  # at its limit
    lines = sweep_text(run.header(), run.sweep(["cpu_speed=0.5x"])).split("\n")
    assert not any("latency [" in each for each in lines)
    (row,) = [each for each in lines if each.startswith("cpu_speed=0.5x") and "%" in each]
    assert "-41 %" in row, "what works by the clock takes as much of half the CPU"


def test_rate_at_the_limit_is_that_of_the_sink_and_not_of_the_source() -> None:
    """The sink saw 1 425 records a second in the mean; the source made 4 000, because buffers never filled up."""
    run = real("slow-sink")
    stream = flow_of(run)
    assert stream.at_limit
    assert stream.rate_per_s == pytest.approx(1424.8, rel=0.03)
    assert {round(each.records_per_s) for each in stream.stations} == {round(stream.rate_per_s)}
    assert stream.stations[0].blocked > 0.95
    limits = run.debug().stream
    assert (limits.at_limit, limits.limit, limits.limit_kind) == (True, "vertex:3", "station")
    assert limits.rate_per_s == pytest.approx(1410, abs=5)


def test_stream_converges_once_each_station_gets_the_output_of_the_full_one() -> None:
    hops = replace(hop("a", "b", rate=2000.0), kept=0.5), replace(hop("b", "c", rate=1400.0), kept=0.7)
    stations = station("a", 0.04, rate=4000.0), station("b", 0.01, rate=2000.0), station("c", 1.0, rate=1400.0)
    apart = station("d", 0.2, rate=500.0, is_source=True), station("e", 0.2, rate=500.0)
    whole = line(*stations, *apart, hops=(*hops, hop("d", "e", rate=500.0)))
    done = with_full_buffers(whole)
    assert [each.records_per_s for each in done.stations] == pytest.approx([1400, 1400, 1400, 500, 500])
    assert [each.records_per_s for each in done.hops] == pytest.approx([1400, 1400, 500])
    assert done.stations[0].busy == pytest.approx(0.04 * 0.35)
    assert done.stations[0].blocked == pytest.approx(1 - 0.04 * 0.35)
    assert done.stations[3] == apart[0]  # what has nothing to do with it
    assert with_full_buffers(done) == done
    calm = replace(whole, stations=tuple(replace(each, busy=0.1, busiest=0.1) for each in whole.stations))
    assert with_full_buffers(calm) is calm  # counters are a little apart, and nothing is full


def test_counters_of_the_first_poll_may_be_stale() -> None:
    """A hundred records a second, which Flink updates every five seconds."""
    rows: list[Look] = [
        {"time_ms": 1e3 * second, "subtask": 0.0, "records_in": 100.0 * (second - second % 5), "records_out": 0.0}
        for second in range(32)
    ]
    connection = looked_at(rows)
    for start in (4, 5, 7, 9):
        ((subtask,),) = steady.subtask_rates(connection, 1e3 * start, 31e3).values()
        assert subtask["records_in"] == pytest.approx(100.0)


def test_each_of_two_inputs_has_buffers_of_its_own() -> None:
    """Their records were 131 ms old in the mean; shared out by records, few buffers came of the slow source, each full
    of what had waited for most of a second."""
    run = real("two-rates")
    stream = flow_of(run)
    assert stream.stations[0].records_per_s == pytest.approx(4002, rel=0.01)  # the sinks saw so many
    fast, slow_one = (each for each in stream.hops if each.target == "vertex:2")
    assert slow_one.buffers_per_s == pytest.approx(fast.buffers_per_s, rel=0.1)
    assert run.debug().runtime_ms == pytest.approx(130.6, rel=0.15)


@pytest.mark.parametrize(
    ("thread", "kind", "wait_ms", "in_step"),
    [
        ("Legacy Source Thread - a", "sleep", 900.0, frozenset("ab")),  # rows-per-second of Flink's own generator
        ("a", "park", 900.0, frozenset("ab")),
        ("a", "park", 4.0, frozenset()),  # a limit that is waited for record by record
        ("a", "native", 900.0, frozenset()),  # what a fetcher's poll looks like, whenever records come
    ],
)
def test_a_source_that_waits_long_at_a_time_sends_bursts(
    thread: str, kind: str, wait_ms: float, in_step: frozenset[str]
) -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE dependencies AS SELECT 'a' AS source, 'b' AS target")
    connection.execute("CREATE TABLE tasks AS SELECT 1 AS task_id, 'a' AS stage_id, 0.0 AS launch_ms, 3e4 AS finish_ms")
    connection.execute("CREATE TABLE samples (task_id INT, thread VARCHAR, kind VARCHAR, weight_ms DOUBLE)")
    waits = [(1, thread, kind, wait_ms)] * int(2.9e4 / wait_ms)
    idle = [(1, "a", "park", 3e4)] if thread != "a" else []  # the thread that waits for the other
    connection.executemany("INSERT INTO samples VALUES (?, ?, ?, ?)", [*waits, (1, thread, "execution", 600.0), *idle])
    assert timeout.in_bursts(connection, [("a", "b")]) == in_step


def test_bursts_do_not_show_when_buffers_time_out() -> None:
    """One buffer a second and channel that is not full: Flink's own generator makes what it has to at once."""
    counted = replace(hop("a", "b", due_ms=794.0, rate=5000.0), most_due_ms=np.inf)
    assert due(counted, None, at_limit=False).due_ms == pytest.approx(794.0)
    assert due(counted, None, at_limit=False, bursts=True).due_ms == 100.0
    assert due(counted, None, at_limit=False, bursts=True).is_due_assumed
    assert due(counted, 500.0, at_limit=False, bursts=True).due_ms == 500.0


def test_records_of_one_key_use_one_slot(ads: tuple[Execution, Stream]) -> None:
    """Seven of ten records on a key: 85 % go to one of two slots and 77.5 % to one of four, so 10 % more are taken."""
    execution, _ = ads
    run = line(station("a", 0.01), station("b", 1 / 1.7, busiest=1.0, keyed=True), hops=(hop("a", "b"),))
    more, _ = changed(run, execution, Scenario(ratios={"tasks": 2.0}))
    assert more.stations[1].busiest == pytest.approx(0.775 / 0.85)
    assert changed(run, execution, Scenario(ratios={"rate": 1.0}))[0].stations[1].busiest == pytest.approx(1.0)


def test_bottleneck_may_be_the_channel_between_two_vertices() -> None:
    """The base that goes as fast as it can fills most of its cable, and no subtask nor CPU is busy all the time."""
    run = profiled(SWEEPS / AT_ITS_LIMIT)
    limits = run.debug().stream
    assert (limits.at_limit, limits.limit_kind) == (True, "hop")
    faster = run.predict(["cpu_speed=2x"])
    assert isinstance(faster.refused[0], LimitNotMeasured)
    assert not faster.refused[0].network_known
    reported, wider = (
        run.predict([each], recorded=["network=100Mbps"]).stream for each in ("cpu_speed=2x", "network=2x")
    )
    assert (reported.limit_kind, reported.limit_resource, reported.max_per_s) == (
        "worker",
        "net",
        reported.recorded_per_s,
    )
    assert wider.limit_resource == "cpu"
    slower = run.predict(["rate=6000"])
    assert slower.predicted_ms == pytest.approx(86, abs=2)


def test_a_rate_just_beyond_the_limit_makes_records_wait_longer_and_longer() -> None:
    run = line(station("a", 0.1), station("b", 0.7), hops=(hop("a", "b"),))
    limit = max_throughput(run)
    assert (limit.id, round(limit.rate_per_s)) == ("b", 1429)


@pytest.mark.parametrize(
    ("source", "behind", "at_limit"),
    [
        ({"busy": 0.5, "blocked": 0.47}, 0.9, True),  # nothing is left of the source's time
        ({"busy": 0.0, "blocked": 0.6}, 0.97, True),  # its busy time was not measured
        ({"busy": 0.3, "blocked": 0.6}, 0.9, False),  # now and then, and all slots have time left
        ({"busy": 0.3, "blocked": 0.1}, 0.97, False),  # a slot is nearly full, and hardly blocks anything
    ],
)
def test_a_rate_that_is_not_kept_up_with_is_a_limit(source: dict[str, float], behind: float, at_limit: bool) -> None:
    run = line(station("a", **source), station("b", 0.6, busiest=behind), hops=(hop("a", "b"),))
    assert run.at_limit is at_limit


def test_a_job_at_its_limit_is_asked_for_a_rate_that_it_keeps_up_with() -> None:
    kept = SWEEPS / "071-full-0/collected"
    run = profiled(kept)
    slower = run.predict(["rate=6000"])
    assert slower.predicted_ms == pytest.approx(86.1, rel=0.15)  # six runs of the same job at that rate, in the mean
    assert slower.interval_ms[0] < 86.1 < slower.interval_ms[1]
    faster = run.predict(["rate=300000"])
    assert faster.predicted_ms is None
    assert isinstance(faster.refused[0], RateNotSustained)
    assert faster.refused[0].rate_per_s > faster.refused[0].sustained_per_s
    assert not any(isinstance(each, ShortenBufferTimeout) for each in run.verdict().recommendations)


def test_rate_near_the_limit_has_bounds_only() -> None:
    """Four times the rate on half the CPU took 69 and 169 ms; the CPU is reported 97 % full."""
    kept = SWEEPS / "011-ads-0"
    run = profiled(kept / "collected", kept / "recordings")
    reported = run.predict(["rate=24000", "cpu_speed=0.5x"])
    assert reported.predicted_ms is None
    assert isinstance(reported.refused[0], RateNearLimit)
    assert reported.bound_ms is not None
    low, high = reported.bound_ms
    assert low < 169 < high
    assert high > 3 * low


def test_baseline_is_unchanged_and_more_subtasks_are_less_busy() -> None:
    run = real("skew-8000")
    same = run.baseline()
    assert same.predicted_ms == same.runtime_ms
    wider = run.predict(["parallelism=2x"])
    assert (same.stream.limit, wider.stream.limit) == ("vertex:0", "tm1")  # then the machines' CPU is what limits
    assert wider.stream.max_per_s > 1.2 * same.stream.max_per_s
    one = run.predict(["parallelism.Parse=4"])
    assert one.stream.limit == "vertex:0"  # the source stays as it was, and is what limits
    assert one.stream.max_per_s == pytest.approx(same.stream.max_per_s)


def test_worker_whose_fixed_work_fills_its_cpu_gives_an_answer() -> None:
    """A run at its limit, whose workers' CPU shows that it could not take another record."""
    with real("ads-3000").reading() as connection:
        execution = load(connection)
        assert execution.planner.stream is not None
        known = execution.planner.stream(connection, execution)
    assert known is not None
    full = tuple(replace(each, busy=1.0) if each.is_source else each for each in known.stations)
    places = tuple(replace(each, cpu_cores=0.8, most_cores=0.7, fixed_cores=0.75) for each in known.places)
    stream = replace(known, stations=full, places=places)
    assert stream.at_limit
    assert max_throughput(stream).rate_per_s == 0.0
    answer = predict_stream(execution, stream, Scenario(recorded=execution.recorded))
    assert answer.refused == (AtLimit(),)


def test_slots_alone_change_nothing() -> None:
    reported = real("ads-3000").predict(["slots=2x"])
    assert reported.predicted_ms == pytest.approx(reported.runtime_ms, rel=1e-6)
    assert SlotsUnused() in reported.assumptions


def test_memory_of_a_stream_is_refused() -> None:
    assert real("ads-3000").predict(["memory=2x"]).refused == (NotModelledForStreams("memory"),)


def test_faster_cpu_is_refused_without_samples() -> None:
    (refusal,) = real("ads-3000").predict(["cpu_speed=2x"]).refused
    assert isinstance(refusal, BusyTimeUnknown)
    assert refusal.share == 1.0


def test_a_stream_without_its_metrics_says_why_it_has_no_latency() -> None:
    run = profiled(DATA / "ads-3000.json.gz")
    debug = run.debug()
    assert debug.measure == "makespan"
    assert NoFlow("metrics") in debug.measurements
    with pytest.raises(SettingError, match="'rate'"):
        run.predict(["rate=2x"])


def test_single_chain_stream_does_not_request_metrics_again() -> None:
    """A source, a map and a sink without an exchange, of 2 000 records a second: Flink counts no record of it."""
    alone = real("one-chain")
    assert [each for each in alone.debug().measurements if isinstance(each, NoFlow)] == [NoFlow("exchanges")]
    verdict = alone.verdict()
    kinds = {type(each) for each in verdict.recommendations}
    assert BreakChain in kinds
    assert CollectMetrics not in kinds


def test_a_stream_that_was_collected_too_shortly_says_so(tmp_path: Path) -> None:
    def begun(number: int, look: Look) -> None:
        if number > 5:
            look |= dict.fromkeys(look)

    assert NoFlow("time") in changed_run(tmp_path, begun).debug().measurements


@pytest.mark.few(2)
@pytest.mark.parametrize(("state", "asked"), [("RUNNING", True), ("CANCELED", True), ("FINISHED", False)])
def test_a_stream_without_an_end_is_asked_for_its_metrics_first(tmp_path: Path, state: str, asked: bool) -> None:
    archive = gzip.decompress((DATA / "ads-3000.json.gz").read_bytes()).decode()
    ended = r"\"state\":\"FINISHED\",\"job-type"
    assert ended in archive
    path = tmp_path / "archive"
    path.write_text(archive.replace(ended, ended.replace("FINISHED", state)), encoding="utf-8")
    found = cp.profile([path], output=tmp_path / "run.duckdb").verdict().recommendations
    assert any(isinstance(each, CollectMetrics) for each in found) is asked


def test_rescaled_job_is_reported_for_its_longer_part() -> None:
    """Two subtasks for 70 s, then four, of which the sums go on for two."""
    rows = ran(range(70), 2) + [row for row in ran(range(200), 4) if (row["time_ms"] or 0) >= 70_000]
    connection = looked_at(rows)
    found = steady.steady_interval(connection, 0.0, 1e9)
    assert found == (85_000.0, 197_000.0)
    assert len(steady.subtask_rates(connection, *found)["v"]) == 4


def test_listed_subtask_that_does_not_run_is_not_counted() -> None:
    """Earlier polls went on asking for four subtasks of a job that was scaled down to two."""
    rows = ran(range(60), 2) + [{**row, "records_in": None, "records_out": None} for row in ran(range(60), 4)[2:4]]
    connection = looked_at(rows)
    assert len(steady.subtask_rates(connection, 0.0, 1e9)["v"]) == 2


def of_subtasks(count: int, **values: float) -> list[dict[str, float]]:
    """Subtasks of a vertex, each with its share of these values per second."""
    names = (*steady.COUNTERS, *steady.QUEUES)
    return [{name: values.get(name, 0.0) / count for name in names} for _ in range(count)]


def test_two_edges_between_the_same_vertices_are_one_hop() -> None:
    """A self-join of 100 000 records of 20 bytes a second, over eight channels whose buffers are due after 100 ms."""
    taken = {"records_in": 2e5, "bytes_in_remote": 4e6, "buffers_in_remote": 80 + 4e6 / 32768}
    found = {"a": of_subtasks(2, records_out=2e5), "b": of_subtasks(2, **taken)}
    (both,) = hops_of([("a", "b", "HASH"), ("a", "b", "HASH")], found)
    assert (both.channels, both.records_per_s) == (8, pytest.approx(2e5))
    assert both.due_ms == pytest.approx(100.0)


def test_channels_are_those_of_the_ship_strategy() -> None:
    found = {"a": of_subtasks(6, records_out=2000), "b": of_subtasks(2, records_in=2000, buffers_in_remote=60)}
    for why, count in (("RESCALE", 6), ("HASH", 12), ("REBALANCE", 12)):
        (one,) = hops_of([("a", "b", why)], found)
        assert (one.channels, one.all_to_all) == (count, why != "RESCALE")


@pytest.mark.parametrize(("all_to_all", "channels"), [(True, 16), (False, 4)])
def test_other_subtasks_have_the_channels_of_their_strategy(
    all_to_all: bool, channels: int, ads: tuple[Execution, Stream]
) -> None:
    """One subtask that sends to one does not form pairs by number."""
    execution, _ = ads
    one = Hop("a", "b", 1, 1000.0, 1e5, 13.0, 0.0, 0.0, all_to_all=all_to_all)
    run = line(station("a", 0.1, slots=1), station("b", 0.1, slots=1), hops=(one,))
    wider, _ = changed(run, execution, Scenario(ratios={"tasks": 4.0}))
    assert wider.hops[0].channels == channels
    assert wider.hops[0].due_ms == pytest.approx(one.due_ms)


def test_more_workers_share_what_records_take_and_more_crosses_between_them(ads: tuple[Execution, Stream]) -> None:
    execution, _ = ads
    run = line(station("a", 0.1, slots=4), station("b", 0.1, slots=4), hops=(hop("a", "b", rate=100_000.0),))
    run = replace(run, places=(StreamWorker("w1", 0.3, 0.7, 0.1), StreamWorker("w2", 0.5, 0.7, 0.1)))
    four, _ = changed(run, execution, Scenario(ratios={"workers": 2.0}))
    assert [each.cpu_cores for each in four.places] == pytest.approx([0.25] * 4)
    assert four.hops[0].remote == pytest.approx(0.75)
    # Each carries (3 / 4) / 4 of the bytes and no longer (1 / 2) / 2.
    limits = [max_throughput(each, net_bytes_per_s=1e6).rate_per_s for each in (run, four)]
    assert limits[1] == pytest.approx(limits[0] * 0.25 / (0.75 / 4))
    # As many of the buffers are each one's, which takes as long over one as before.
    before, after = (
        cpu_wait_ms(each, each.hops[0])
        for each in (replace(run, places=(StreamWorker("w", 0.25, 0.7, 0.1),) * 4), four)
    )
    assert after == pytest.approx(before)
    alone, _ = changed(run, execution, Scenario(ratios={"workers": 0.5}))
    assert [each.cpu_cores for each in alone.places] == pytest.approx([0.7])
    assert alone.hops[0].remote == 0.0
    two, _ = changed(alone, execution, Scenario(ratios={"workers": 2.0}))
    assert two.hops[0].remote == pytest.approx(0.5)
    none, _ = changed(replace(run, places=()), execution, Scenario(ratios={"workers": 2.0}))
    assert (none.places, none.hops[0].remote) == ((), 0.5)


def test_cpu_time_of_the_network_scales_with_bytes_that_cross_it(ads: tuple[Execution, Stream]) -> None:
    """Of two workers' 0.8 cores 0.4 are for records, 0.04 for buffers that are due, 0.2 by the clock; 0.12 and 0.04 are
    for what crosses the network, of records and of buffers that are due."""
    execution, _ = ads
    stations = (station(name, 0.1, slots=4) for name in "abc")
    ahead = replace(hop("b", "c", rate=50_000.0), remote=0.0, all_to_all=False)
    run = line(*stations, hops=(hop("a", "b", rate=100_000.0), ahead))
    places = tuple(StreamWorker(name, used, 0.7, 0.1, 0.04, 0.06, 0.02) for name, used in (("w1", 0.3), ("w2", 0.5)))
    run = replace(run, places=places)
    # Between four 3 / 4 cross and not 1 / 2, so 1.5 times as much, and each has a quarter of it.
    four, said = changed(run, execution, Scenario(ratios={"workers": 2.0}))
    assert [each.crossing_cores for each in four.places] == pytest.approx([0.18 / 4] * 4)
    assert [each.due_cores for each in four.places] == pytest.approx([(0.04 + 0.06) / 4] * 4)
    assert [each.cpu_cores for each in four.places] == pytest.approx([0.1 + (0.4 + 0.18 + 0.04 + 0.06) / 4] * 4)
    assert CrossingCpuKept() not in said
    # On one nothing crosses, and of what is left twice the records double 0.4.
    (one,) = changed(run, execution, Scenario(ratios={"workers": 0.5}))[0].places
    assert (one.cpu_cores, one.crossing_cores) == pytest.approx((0.1 + 0.4 + 0.04, 0.0))
    (twice,) = changed(run, execution, Scenario(ratios={"workers": 0.5, "rate": 2.0}))[0].places
    assert twice.cpu_cores == pytest.approx(0.1 + 0.8 + 0.04)
    (slower,) = changed(run, execution, Scenario(ratios={"workers": 0.5, "cpu_speed": 0.5}))[0].places
    assert slower.cpu_cores == pytest.approx(2 * (0.1 + 0.4 + 0.04))
    # There and back is not a change; from one, or without a recording of threads, the cost of crossing is unknown.
    again, _ = changed(four, execution, Scenario(ratios={"workers": 0.5}))
    assert sum(each.crossing_cores for each in again.places) == pytest.approx(0.12)
    alone = replace(run, places=(one,), hops=tuple(replace(each, remote=0.0) for each in run.hops))
    for unknown in (alone, replace(run, places=(StreamWorker("w1", 0.3, 0.7), StreamWorker("w2", 0.5, 0.7)))):
        reported, said = changed(unknown, execution, Scenario(ratios={"workers": 2.0}))
        assert sum(map(growing_for_records, reported.places)) == pytest.approx(
            sum(map(growing_for_records, unknown.places))
        )
        assert CrossingCpuKept() in said


def growing_for_records(place: StreamWorker) -> float:
    return place.growing_cores - place.crossing_cores


def test_network_threads_work_where_every_buffer_is_full_too() -> None:
    full = replace(hop("a", "b", rate=1e6), buffers_per_s=1e8 / 32768)
    run = with_buffer_costs(line(station("a", 0.1), station("b", 0.1), hops=(full,)), {"w": {NETWORK: 0.05}})
    assert [(each.crossing_cores, each.due_cores) for each in run.places] == [(0.05, 0.0)]


def test_as_many_workers_are_used_as_a_station_has_slots(ads: tuple[Execution, Stream]) -> None:
    """A slot takes one subtask of each vertex, so a job of two has no more than two TaskManagers to use."""
    execution, _ = ads
    run = line(station("a", 0.1), station("b", 0.1), hops=(hop("a", "b"),))
    run = replace(run, places=(StreamWorker("w1", 0.3, 0.7, 0.1), StreamWorker("w2", 0.3, 0.7, 0.1)))
    assert len(changed(run, execution, Scenario(ratios={"workers": 2.0}))[0].places) == 2
    alone, _ = changed(run, execution, Scenario(ratios={"tasks": 0.5}))
    assert [each.cpu_cores for each in alone.places] == pytest.approx([0.5])
    assert alone.hops[0].remote == 0.0


def test_side_output_counts_by_the_records_of_its_target() -> None:
    """Of b's 1 000 records in a second 900 go on to c, and 100 to d, which gets 500 from a."""
    found = {
        "a": of_subtasks(2, records_out=500),
        "b": of_subtasks(2, records_out=1000, output_buffers=12),
        "c": of_subtasks(2, records_in=900, bytes_in_local=9e4, buffers_in_local=40),
        "d": of_subtasks(2, records_in=600, bytes_in_local=6e4, buffers_in_local=80),
    }
    hops = hops_of([("b", "c", "HASH"), ("b", "d", "HASH"), ("a", "d", "HASH")], found)
    rates = {(each.source, each.target): each.records_per_s for each in hops}
    assert rates == {("b", "c"): 900, ("b", "d"): pytest.approx(100), ("a", "d"): pytest.approx(500)}
    assert [each.queued for each in hops] == [2, 2, 0]  # b's twelve buffers are those of both ways, and eight fill


@pytest.mark.parametrize("missing", [0, 59])
def test_missing_value_drops_that_poll(missing: int) -> None:
    """Of the first or the last of sixty looks at one of two subtasks."""
    rows = ran(range(60), 2)
    rows[2 * missing] |= {"records_out": None}
    found = steady.subtask_rates(looked_at(rows), 0.0, 1e9)
    assert [each["records_out"] for each in found["v"]] == pytest.approx([100.0, 100.0])


def test_value_missing_from_a_poll_is_not_a_restart() -> None:
    rows = ran(range(60), 2)
    rows[60] |= {"records_out": None}
    assert steady.steady_interval(looked_at(rows), 0.0, 1e9) == (15_000.0, 57_000.0)


# What was collected -------------------------------------------------------------------------------------------------


def test_metrics_next_to_an_archive_are_found_from_either_path(tmp_path: Path) -> None:
    document = json.loads(gzip.decompress((DATA / "ads-3000.json.gz").read_bytes()))
    job = document["archive"][1]["path"].rpartition("/")[2]
    (tmp_path / job).write_text(json.dumps(document, separators=(",", ":")))
    series = tmp_path / f"{job}.series.gz"
    series.write_bytes((DATA / "ads-3000.series.gz").read_bytes())
    for number, named in enumerate((tmp_path / job, series)):
        assert cp.profile([named], output=tmp_path / f"{number}.duckdb").debug().measure == "latency"


def test_metrics_without_an_archive_name_the_missing_file(tmp_path: Path) -> None:
    alone = tmp_path / "x.series.gz"
    alone.write_bytes((DATA / "ads-3000.series.gz").read_bytes())
    with pytest.raises(InputError):
        cp.profile([alone], output=tmp_path / "run.duckdb")


def test_damaged_poll_drops_only_itself(tmp_path: Path) -> None:
    text = gzip.decompress((DATA / "ads-3000.series.gz").read_bytes()).split(b"\n")
    text[5] = text[5][:40]
    damaged = tmp_path / "x.series.gz"
    damaged.write_bytes(gzip.compress(b"\n".join(text)))
    run = cp.profile([DATA / "ads-3000.json.gz", damaged], output=tmp_path / "run.duckdb")
    assert run.debug().measure == "latency"
    assert ("damaged sample",) in rows(run, "SELECT name FROM import_stats")
