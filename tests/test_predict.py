"""Algorithms 1 and 2 on numbers of the paper, and on ones that can be added up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import crystalperf as cp
from crystalperf.indexes.errors import Remedy, SettingError
from crystalperf.indexes.resources import Resource, known
from crystalperf.query.execution.dag import DagRules, StageRun, Tasks, build
from crystalperf.query.execution.evidence import Evidence
from crystalperf.query.execution.execution import DriverTime, Execution, ScopeTime
from crystalperf.query.execution.scenario import (
    Configuration,
    Scenario,
    Value,
    combinations,
    recorded_resources,
    scenario_of,
    settings_of,
)
from crystalperf.query.execution.scenario import parse_settings as parse
from crystalperf.query.execution.scheduling import FIRST_COME
from crystalperf.query.execution.slots import Slots
from crystalperf.query.execution.volumes import no_volumes
from crystalperf.query.frameworks.spark.assumptions import LargeKeyKept, StagesReplanned
from crystalperf.query.frameworks.spark.framework import SPARK
from crystalperf.query.frameworks.spark.partitions import replan
from crystalperf.query.frameworks.spark.scheduling import JobBarriers
from crystalperf.query.predict.estimate import predict
from crystalperf.query.results.assumptions import BetweenEnds, CpuLimited, MemorySufficed
from crystalperf.query.results.refusals import (
    MemoryNeedUnknown,
    RecordedValueUnknown,
    RefusedError,
    SpilledMemoryUnknown,
    SpillTimeUnknown,
)
from crystalperf.query.simulate.contention import in_turns
from crystalperf.query.simulate.effects import baseline_state, memory
from crystalperf.query.simulate.effects.bandwidth import scale_io
from crystalperf.query.simulate.transfers import OVERLAP
from crystalperf.query.simulate.waves import sequential_limits
from crystalperf.query.text.as_json import as_json
from tests.hand_made import run_by
from tests.spark_logs import Query, Stage, Task, write

GIB = float(2**30)


def parse_settings(texts: Sequence[str], *, lists: bool) -> dict[str, tuple[Value, ...]]:
    """Settings of a run of Spark."""
    return parse(texts, settings_of(known()), SPARK.vocabulary.settings, lists=lists)


def recorded_of(**facts: float | None) -> Configuration:
    return {**dict.fromkeys(settings_of(known())), "cpu_speed": 1.0, **facts}


def execution(
    rows: list[tuple[float, float]],
    parts: tuple[float, float, float, float],
    *,
    executors: int = 1,
    cores: int = 1,
    memory: float | None = None,
) -> Execution:
    """One stage whose tasks are (launch, finish) rows, each splitting its time by `parts`; tasks alternate hosts."""
    launch, finish = np.array([row[0] for row in rows], float), np.array([row[1] for row in rows], float)
    number = np.arange(len(rows))
    executor = number % executors
    zero, nothing = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows))
    took = np.outer(finish - launch, parts)
    tasks = Tasks(number, zero, executor, executor, launch, finish, took, zero, nothing, zero - 1)
    end = float(finish.max())
    whole = StageRun("stage:0.0", "s", "sql:0", 0, 0, float(launch.min()), end)
    pool = np.repeat(np.arange(executors), cores)
    slots = Slots(pool, pool, np.zeros(len(pool)), np.full(len(pool), np.inf), np.full(len(pool), np.inf))
    return Execution(
        **run_by(SPARK),
        measure="makespan",
        scope=ScopeTime("all", 0, end),
        dag=build([whole], tasks, 0, end, slots, {}, DagRules(JobBarriers, "driver")),
        tasks=tasks,
        volumes=no_volumes(len(rows)),
        slots=slots,
        hosts=("a",) * executors,
        driver=DriverTime(np.zeros(0), np.zeros(0), np.zeros((0, 4))),
        recorded=recorded_of(workers=executors, cores=cores, memory=memory),
        scheduler="FIFO",
        properties={},
        has_samples=True,
        has_peak_memory=True,
        evidence=Evidence(np.zeros(3), np.zeros(3), 0.0),
    )


def scenario(run: Execution, *settings: str, recorded: tuple[str, ...] = ()) -> Scenario:
    known = recorded_resources(run.recorded, parse_settings(recorded, lists=False))
    (changes,) = combinations(parse_settings(settings, lists=True))
    return scenario_of(changes, known)


def predicted(run: Execution, *settings: str) -> float:
    answer = predict(run, scenario(run, *settings))
    assert answer.predicted_ms is not None, answer.refused
    return answer.predicted_ms


def test_cpu_speed_scales_the_cpu_part_as_in_section_7_3() -> None:
    """t·(1 − v + v·s/s′): a quarter of the speed, vectors .15 and .85 (paper §7.3, its base latencies)."""
    for base, share, expected in ((1583.63, 0.15, 2296.26), (2322.50, 0.85, 8244.88)):
        run = execution([(0, base)], (share, 0, 1 - share, 0))
        assert predicted(run, "cpu_speed=0.25x") == pytest.approx(base * (1 - share + share * 4))
        assert predicted(run, "cpu_speed=0.25x") == pytest.approx(expected, rel=1e-3)


def test_twice_the_cores_halve_the_waves_of_independent_cpu_tasks() -> None:
    run = execution([(0, 10), (10, 20), (20, 30), (30, 40)], (1, 0, 0, 0))
    assert predicted(run, "cores=2") == 20
    assert predicted(run, "cores=2x") == 20
    assert predicted(run, "executors=4") == 10


def test_twice_the_cores_do_not_help_tasks_that_share_a_full_network() -> None:
    """Two tasks on a node then halve each other's bandwidth, so the second wave saves nothing."""
    run = execution([(0, 10), (10, 20), (20, 30), (30, 40)], (0, 0, 1, 0))
    assert predicted(run, "cores=2") == pytest.approx(40, rel=0.03)
    assert predicted(run, "executors=2") == pytest.approx(20, rel=0.03)


def test_bandwidth_scales_the_io_part() -> None:
    run = execution([(0, 100)], (0.5, 0, 0.5, 0))
    assert predicted(run, "network=10x") == pytest.approx(55, rel=0.01)
    assert predicted(run, "disk=10x") == pytest.approx(100)


def test_no_change_predicts_no_change() -> None:
    run = execution([(0, 10), (10, 30), (30, 45)], (0.4, 0.3, 0.2, 0.1))
    for setting in ("cores=1x", "network=1x", "cpu_speed=1x", "memory=1x"):
        assert predicted(run, setting) == pytest.approx(45)


def test_sequential_tasks_next_to_idle_slots_stay_sequential() -> None:
    run = execution([(0, 10), (10, 20), (20, 30)], (1, 0, 0, 0), cores=4)
    assert sequential_limits(run, FIRST_COME) == [1]
    assert predicted(run, "cores=8") == 30


def buffered(overhead_ms: float) -> Resource:
    """A device that takes 100 bytes at a time."""
    return Resource("disk", "disk", "disk", "bytes per second", "host", 100, overhead_ms, 1)


def test_algorithm_2_keeps_buffer_processing_time() -> None:
    """10 ms hold 1000 bytes, 10 buffers of 0.2 ms processing each: 2 ms stay, 8 ms halve."""
    assert scale_io(np.array([10.0]), 2.0, 1e5, buffered(0.2)).tolist() == [6.0]


def test_algorithm_2_clamps_where_processing_exceeds_the_time() -> None:
    assert scale_io(np.array([10.0]), 0.5, 1e5, buffered(5.0)).tolist() == [10.0]


def with_volumes(run: Execution, **bytes_per_task: float) -> Execution:
    count = len(run.tasks)
    changed = {name: np.full(count, size).astype(np.int64) for name, size in bytes_per_task.items()}
    return replace(run, volumes=replace(run.volumes, **changed))


def test_more_memory_helps_only_a_run_that_was_short_of_it() -> None:
    run = execution([(0, 1000)], (1, 0, 0, 0), memory=GIB)
    assert predicted(run, "memory=2x") == 1000


def test_spills_that_are_known_on_disk_alone_have_a_bound() -> None:
    """Photon logs no bytes of memory that were spilled."""
    run = with_volumes(execution([(0, 8000)], (0.5, 0.5, 0, 0), memory=GIB), spill_disk=300_000_000)
    more, less = (predict(run, scenario(run, f"memory={times}x")) for times in (2, 0.5))
    assert more.predicted_ms is None
    assert more.bound_ms == (None, 8000)
    assert less.bound_ms == (8000, None)
    assert more.refused == (SpilledMemoryUnknown(300e6),)


def test_more_memory_saves_the_spills_that_then_fit() -> None:
    run = execution([(0, 10_000)], (0.5, 0.5, 0, 0), memory=GIB)
    run = with_volumes(run, peak_memory=400e6, spill_memory=300e6, spill_disk=150e6)
    parts = memory.apply(baseline_state(run), scenario(run, "memory=4x", "disk=1x")).parts_ms
    # 150 MB written and read at the default 150 MB/s are 2 s of disk time.
    assert run.tasks.parts_ms[0, 1] - parts[0, 1] == pytest.approx(2000, rel=0.02)


def test_more_memory_of_workers_saves_no_spills_of_processes_that_compute_for_them() -> None:
    """Rows of an RDD are spilled by Python; within a query Python keeps none."""
    run = execution([(0, 10_000)], (1, 0, 0, 0), memory=GIB)
    run = replace(with_volumes(run, spill_memory=300e6, spill_disk=1, spill_ms=2000.0), delegating=frozenset([0]))
    assert predicted(run, "memory=4x") == pytest.approx(8000, rel=0.001)
    answer = predict(replace(run, spilling_in_helpers=frozenset([0])), scenario(run, "memory=4x"))
    assert answer.predicted_ms == 10_000
    assert MemorySufficed(0.0, delegates_spilled=True) in answer.assumptions


def test_less_memory_costs_nothing_above_the_turning_point_and_transfers_below() -> None:
    run = with_volumes(execution([(0, 10_000)], (1, 0, 0, 0), memory=4 * GIB), peak_memory=1 * GIB)
    assert predicted(run, "memory=0.6x") == 10_000
    assert predicted(run, "memory=0.2x") > 11_000


def test_sampled_spill_time_scales_with_the_spilled_bytes() -> None:
    """Of 10 s, 2 were spent in spilling 300 MB; with 4 GiB they fit, and half of 1 GiB makes them more."""
    run = execution([(0, 10_000)], (1, 0, 0, 0), memory=GIB)
    run = with_volumes(run, spill_memory=300e6, spill_disk=1, spill_ms=2000.0)
    assert predicted(run, "memory=4x") == pytest.approx(8000, rel=0.001)
    per_slot = 0.5 * GIB * 0.6
    assert predicted(run, "memory=0.5x") == pytest.approx(10_000 + 2000 * per_slot / 300e6, rel=0.001)


def test_how_long_a_run_without_samples_spilled_is_not_known() -> None:
    """Spilling 100 MB and reading them back may be 4 of the 10 s that nobody saw, or almost none.  With samples it is
    known: none."""
    run = execution([(0, 10_000)], (0, 0, 0, 1), memory=GIB)
    run = with_volumes(run, spill_memory=100_000_000, spill_disk=1)
    assert predicted(run, "memory=4x") == pytest.approx(10_000)
    answer = predict(replace(run, has_samples=False), scenario(run, "memory=4x"))
    assert answer.predicted_ms is None
    assert answer.bound_ms == (pytest.approx(6000), pytest.approx(10_000))
    assert answer.refused == (SpillTimeUnknown(),)


def test_bounds_that_are_narrow_are_an_answer() -> None:
    """Spilling 40 MB is 1.6 s of the 10, or none of it: both ends are in the range of their middle."""
    run = execution([(0, 10_000)], (0, 0, 0, 1), memory=GIB)
    run = replace(with_volumes(run, spill_memory=40_000_000, spill_disk=1), has_samples=False)
    answer = predict(run, scenario(run, "memory=4x"))
    assert answer.predicted_ms == pytest.approx((8400 * 10_000) ** 0.5, rel=0.001)
    assert [each.predicted_ms for each in answer.stages] == [pytest.approx(answer.predicted_ms)]
    assert answer.interval_ms[0] < 8400
    assert answer.interval_ms[1] > 10_000
    assert BetweenEnds(SpillTimeUnknown()) in answer.assumptions


def test_less_memory_means_more_garbage_collection() -> None:
    """0.5 s of 10 in collections; a heap of half the size is full twice as often."""
    run = with_volumes(execution([(0, 10_000)], (1, 0, 0, 0), memory=4 * GIB), gc_ms=500.0)
    assert predicted(run, "memory=0.5x") == pytest.approx(10_500)
    assert predicted(run, "memory=2x") == 10_000
    answer = predict(with_volumes(run, gc_ms=2000.0), scenario(run, "memory=0.5x"))
    assert answer.predicted_ms is None
    assert answer.bound_ms == (10_000, None)


def test_less_memory_is_refused_if_the_run_does_not_show_its_need() -> None:
    run = replace(execution([(0, 10)], (1, 0, 0, 0), memory=4 * GIB), has_peak_memory=False)
    answer = predict(run, scenario(run, "memory=0.5x"))
    assert answer.predicted_ms is None
    assert answer.refused == (MemoryNeedUnknown(),)
    assert answer.bound_ms == (10, None)
    assert as_json(answer)["bound_ms"] == [10, None]


def test_values_are_read_with_their_tasks() -> None:
    read = parse_settings(["network=10Gbps", "disk=500MB/s", "memory=8g", "cores=2,4x"], lists=True)
    assert read["network"][0].absolute == 1.25e9
    assert read["disk"][0].absolute == 500e6
    assert read["memory"][0].absolute == 8 * GIB
    assert [(value.absolute, value.ratio) for value in read["cores"]] == [(2, None), (None, 4)]
    assert parse_settings(["memory=8GiB"], lists=False)["memory"][0].absolute == 8 * GIB
    assert parse_settings(["memory=8GB"], lists=False)["memory"][0].absolute == 8e9
    assert parse_settings(["network=100Mb/s"], lists=False)["network"][0].absolute == 12.5e6
    assert parse_settings(["spark.executor.cores=4"], lists=False)["cores"][0].absolute == 4


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("cores", "expected KEY=VALUE"),
        ("cores=2x,network=2x", "several settings in one"),
        ("colour=2", "is not a setting of this run"),
        ("cores=-2", "greater than zero"),
        ("cores=0", "greater than zero"),
        ("cores=1.5", "not a value"),
        ("cores=2GB", "not a value"),
        ("memory=lots", "not a value"),
        ("network=10GiB", "not a value"),
        ("cpu_speed=3GHz", "relative"),
        ("cores=nanx", "not a value"),
    ],
)
def test_a_setting_that_makes_no_sense_is_one_sentence(setting: str, sentence: str) -> None:
    with pytest.raises(SettingError, match=sentence):
        parse_settings([setting], lists=True)


def test_an_absolute_value_needs_the_recorded_one() -> None:
    run = execution([(0, 10)], (0, 0, 1, 0))
    with pytest.raises(RefusedError) as refused:
        scenario(run, "network=10Gbps")
    assert refused.value.refusal == RecordedValueUnknown("network=10Gbps", "network")
    assert refused.value.remedy == Remedy("state what the run had", {"setting": "network"})
    assert scenario(run, "network=10Gbps", recorded=("network=1Gbps",)).ratio("network") == 10


def test_speed_setting_is_relative_and_recorded_in_cores() -> None:
    run = execution([(0, 10)], (0, 0, 1, 0))
    with pytest.raises(SettingError, match="cpu_speed"):
        scenario(run, "cpu_speed=3")
    stated = scenario(run, "cpu_speed=2x", recorded=("cpu_speed=0.45",))
    assert stated.ratio("cpu_speed") == 2
    assert stated.recorded["cpu_speed"] == 0.45


def test_fractional_executor_count_is_refused() -> None:
    run = execution([(0, 10)], (1, 0, 0, 0))
    with pytest.raises(SettingError, match=r"executors.*0\.5"):
        scenario(run, "executors=0.5x")


def test_a_list_makes_every_combination() -> None:
    recorded = recorded_of(workers=1, cores=2)
    listed = combinations(parse_settings(["cores=2,4", "network=1x,2x"], lists=True))
    made = [scenario_of(each, recorded) for each in listed]
    assert [each.describe() for each in made] == [
        "cores=2, network=1x", "cores=2, network=2x", "cores=4, network=1x", "cores=4, network=2x",
    ]  # fmt: skip


@pytest.mark.parametrize("key", ["cpu_speed", "disk", "network"])
def test_a_faster_device_alone_never_predicts_a_slower_run(key: str) -> None:
    rows = [(0.0, 7.0), (0.0, 2.0), (2.0, 5.0), (5.0, 13.0), (7.0, 9.0), (9.0, 13.0)]
    run = execution(rows, (0.3, 0.3, 0.3, 0.1), executors=2)
    assert predicted(run, f"{key}=2x") <= 13.0
    assert predicted(run, f"{key}=0.5x") >= 13.0


def test_a_faster_network_cannot_outrun_a_full_cpu() -> None:
    """Two tasks of 10 s, each 2 s on the CPU and 8 on the network, on an executor that can get half a core for each.

    Without network time each alone would take 2 s, but their work of 4 s fits into no less than 4 s of one core.
    """
    run = execution([(0, 10_000)] * 2, (0.2, 0.0, 0.8, 0.0), cores=2)
    run = replace(run, volumes=replace(run.volumes, total_cpu_ms=np.full(2, 2000.0)))
    free = predicted(run, "network=1000000x")
    assert free == pytest.approx(2000, rel=0.05)
    limited = replace(run, slots=replace(run.slots, cpu_cores=np.full(2, 0.5)))
    assert predicted(limited, "network=1000000x") == pytest.approx(4000, rel=0.02)
    assert predicted(limited, "network=1x") == pytest.approx(10_000)
    assert CpuLimited(0.5) in predict(limited, scenario(limited, "network=2x")).assumptions


MIB = 2**20


def reading(run: Execution, *, files: int = 0, shuffled: tuple[int, ...] = ()) -> Execution:
    """The run as a stage of a SQL query whose tasks read so many bytes of files each, or these of a shuffle."""
    count = len(run.tasks)
    volumes = replace(
        run.volumes,
        input=np.full(count, files),
        local_read=np.array(shuffled or (0,) * count),
        total_cpu_ms=np.full(count, 50.0),
        overhead_ms=np.full(count, 10.0),
    )
    stages = tuple(replace(each, scope_id="sql:1") for each in run.dag.stages)
    return replace(run, volumes=volumes, dag=replace(run.dag, stages=stages))


def tasks_for(run: Execution, *settings: str) -> Execution:
    return replan(run, scenario(run, *settings), True).execution


def test_files_split_by_slots_are_repartitioned() -> None:
    run = reading(execution([(0, 100)] * 4, (1, 0, 0, 0), executors=2, cores=2), files=12 * MIB)
    again = tasks_for(run, "cores=2x")
    assert len(again.tasks) == 8
    # 10 of 100 ms start and end a task; the other 90 are work that halves.
    assert again.tasks.duration_ms.tolist() == pytest.approx([55.0] * 8)
    assert again.volumes.input.tolist() == [6 * MIB] * 8
    assert len(tasks_for(run, "executors=1").tasks) == 2
    assert len(replan(run, scenario(run, "cores=2x"), False).execution.tasks) == 4


def test_files_split_by_size_keep_their_partitions() -> None:
    run = reading(execution([(0, 100)] * 12, (1, 0, 0, 0), executors=2, cores=2), files=128 * MIB)
    assert len(tasks_for(run, "cores=2x").tasks) == 12
    assert len(tasks_for(run, "cores=4x").tasks) == 16
    assert len(tasks_for(run, "cores=0.5x").tasks) == 12


def test_files_split_by_blocks_keep_their_partitions() -> None:
    """Before Spark 2.0, whose logs have no CPU times, another number of slots changes nothing about blocks."""
    run = reading(execution([(0, 100)] * 12, (1, 0, 0, 0), executors=2, cores=2), files=128 * MIB)
    old = replace(run, volumes=replace(run.volumes, total_cpu_ms=np.zeros(12)))
    assert len(tasks_for(old, "cores=4x").tasks) == 12
    four = reading(execution([(0, 100)] * 4, (1, 0, 0, 0), executors=2, cores=2), files=12 * MIB)
    assert len(tasks_for(replace(four, volumes=replace(four.volumes, total_cpu_ms=np.zeros(4))), "cores=2x").tasks) == 4


@pytest.mark.parametrize(("version", "cpu_ms", "repartitioned"), [("2.0.2", None, True), ("1.6.3", 90, False)])
def test_the_version_in_the_log_says_how_files_are_cut(
    version: str, cpu_ms: int | None, repartitioned: bool, tmp_path: Path
) -> None:
    """Spark 2.0 packs files and logs no CPU times of tasks; of older ones a vendor may."""
    scan = Stage(
        [Task(ms=100, executor=str(1 + number % 2), cpu_ms=cpu_ms, read_bytes=12 * MIB) for number in range(4)]
    )
    query = Query([("Scan parquet", "FileScan parquet [id#1]")])
    log = write(tmp_path / "log", [scan], executors={"1": 2, "2": 2}, query=query, version=version)
    answer = cp.profile([log], output=tmp_path / "run.duckdb").predict(cores="2x")
    assert (StagesReplanned(1, 4, 8, slots_only=True) in answer.assumptions) == repartitioned


def test_more_partitions_do_not_divide_one_key() -> None:
    run = reading(execution([(0, 100)] * 4, (1, 0, 0, 0)), shuffled=(90 * MIB, MIB, MIB, MIB))
    fixed = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "4"}
    run = replace(run, properties=fixed, recorded={**run.recorded, "tasks": 4.0})
    planned = replan(run, scenario(run, "partitions=16"), True)
    assert len(planned.execution.tasks) == 4
    assert planned.assumptions[-1] == LargeKeyKept(("stage:0.0",))
    assert len(tasks_for(run, "partitions=2").tasks) == 2
    even = replace(run, volumes=replace(run.volumes, local_read=np.full(4, 20 * MIB)))
    assert len(tasks_for(even, "partitions=16").tasks) == 16


def test_adaptive_shuffles_follow_the_slots_unless_one_key_has_it_all() -> None:
    even = reading(execution([(0, 100)] * 4, (1, 0, 0, 0), executors=2, cores=2), shuffled=(20 * MIB,) * 4)
    assert len(tasks_for(even, "cores=2x").tasks) == 8
    small = reading(execution([(0, 100)] * 4, (1, 0, 0, 0), executors=2, cores=2), shuffled=(MIB,) * 4)
    assert len(tasks_for(small, "cores=2x").tasks) == 4  # none smaller than 1 MiB
    skewed = reading(execution([(0, 100)] * 4, (1, 0, 0, 0), executors=2, cores=2), shuffled=(90 * MIB, MIB, MIB, MIB))
    assert len(tasks_for(skewed, "cores=2x").tasks) == 4
    fixed = replace(even, properties={"spark.sql.adaptive.enabled": "false"})
    assert len(tasks_for(fixed, "cores=2x").tasks) == 4
    assert even.tasks.parts_ms.sum() > tasks_for(even, "cores=0.5x").tasks.parts_ms.sum()


def test_slots_stated_by_the_log_cannot_be_overruled() -> None:
    with pytest.raises(SettingError, match=r"\b2\b"):
        recorded_resources(recorded_of(workers=1, cores=2), parse_settings(["cores=4"], lists=False))


def test_slow_network_becomes_the_bottleneck() -> None:
    """10 MB came in 10 s of computing, at 10 MB/s unnoticed.  At 0.1 MB/s they take 100 s, of which a part of
    the computing hides as much; an Ethernet frame of 1514 bytes holds 1448 of them."""
    run = execution([(0, 10_000)], (1, 0, 0, 0))
    run = replace(run, volumes=replace(run.volumes, remote_read=np.array([10_000_000])))
    answer = predict(run, scenario(run, "network=0.01x", recorded=("network=10MB/s",)))
    assert answer.predicted_ms == pytest.approx(100_000 * 1514 / 1448 + 10_000 * (1 - OVERLAP), rel=0.001)


def test_cpu_wait_is_shared_in_proportion_to_cpu_work() -> None:
    stage, on_cpu = np.array([0, 0, 0, 1]), np.array([100.0, 300.0, 0.0, 50.0])
    shared = in_turns(stage, on_cpu, np.array([1000.0, 1000.0, 7.0, 60.0]))
    assert shared.tolist() == [500.0, 1500.0, 7.0, 60.0]  # 2000 ms for 400; no work, no turns; a stage of one as it was


@pytest.mark.parametrize(("megabytes", "is_narrow"), [(95, True), (20, False), (300, False)])
def test_bytes_at_the_rate_of_a_disk_came_from_it(megabytes: int, is_narrow: bool) -> None:
    """Ten seconds on a disk of 10 MB/s: 95 MB were its own.  20 MB explain too little of them, and 300 MB cannot all
    have come from it, so they may have been in the page cache, where a slower disk would change nothing."""
    run = execution([(0, 10_000)], (0, 1, 0, 0))
    run = replace(run, volumes=replace(run.volumes, input=np.array([megabytes * 1_000_000])))
    for setting in ("disk=0.25x", "disk=4x"):
        range_ms = predict(run, scenario(run, setting, recorded=("disk=10MB/s",))).interval_ms
        assert (range_ms[0] <= 10_000 <= range_ms[1]) != is_narrow, setting


def test_cached_data_is_partitioned_as_the_files_it_was_computed_from() -> None:
    """k-means' jobs are of no query, and follow the slots all the same, by which the scan of its points was cut."""
    run = reading(execution([(0, 100)] * 4, (1, 0, 0, 0), cores=4), files=4 * 10**8)
    run = replace(run, volumes=replace(run.volumes, cached=run.volumes.input))
    of_no_query = [replace(each, scope_id=None) for each in run.dag.stages]
    run = replace(run, dag=replace(run.dag, stages=of_no_query))
    assert len(tasks_for(run, "cores=2x").tasks) == 8
    assert len(tasks_for(run, "input=4x").tasks) == 4
    assert (
        len(tasks_for(replace(run, volumes=replace(run.volumes, cached=0 * run.volumes.cached)), "cores=2x").tasks) == 4
    )
