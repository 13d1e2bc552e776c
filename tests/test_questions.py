"""Questions about the work itself: more data, other tasks, an even spread, a faster operator, another scheduler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from crystalperf.indexes.errors import SettingError
from crystalperf.indexes.resources import known
from crystalperf.query.execution.dag import ANYWHERE, DagRules, Dependency, StageRun, Tasks, build
from crystalperf.query.execution.evidence import Evidence
from crystalperf.query.execution.execution import DriverTime, Execution, ScopeTime
from crystalperf.query.execution.scenario import combinations, parse_settings, scenario_of, settings_of
from crystalperf.query.execution.scheduling import remaining_path_ms
from crystalperf.query.execution.slots import Slots
from crystalperf.query.execution.volumes import no_volumes
from crystalperf.query.frameworks import Framework
from crystalperf.query.frameworks.spark.assumptions import StagesReplanned
from crystalperf.query.frameworks.spark.framework import SPARK
from crystalperf.query.frameworks.spark.partitions import configured
from crystalperf.query.frameworks.spark.scheduling import JobBarriers
from crystalperf.query.predict.estimate import predict
from crystalperf.query.results.answers import Prediction
from crystalperf.query.results.assumptions import NoInterval
from crystalperf.query.results.refusals import PlanUnknown, RecordedValueUnknown, RefusedError
from crystalperf.query.trace.records import Floats
from tests.hand_made import run_by
from tests.refusals import refused

MIB = 2**20


def run_of(
    stages: Sequence[Sequence[tuple[float, float]]],
    *,
    edges: Mapping[tuple[int, int], str] | None = None,
    slots: int = 1,
    properties: Mapping[str, str] | None = None,
    read: int = 0,
    fetched: int = 0,
    scope_id: str | None = "sql:0",
    operators: Mapping[str, Floats] | None = None,
    overhead_ms: float = 0.0,
    framework: Framework = SPARK,
) -> Execution:
    """Stages of (launch, finish) tasks that compute all the time; each reads bytes of files, or of other stages."""
    rows = [(number, *times) for number, stage in enumerate(stages) for times in stage]
    rows.sort(key=lambda row: row[1])
    stage_of_task = np.array([row[0] for row in rows])
    launch, finish = np.array([row[1] for row in rows], float), np.array([row[2] for row in rows], float)
    count, zero = len(rows), np.zeros(len(rows), dtype=np.int64)
    tasks = Tasks(
        task_id=np.arange(count),
        stage=stage_of_task,
        worker=zero,
        host=zero,
        launch_ms=launch,
        finish_ms=finish,
        parts_ms=np.outer(finish - launch, (1.0, 0.0, 0.0, 0.0)),
        placement=np.full(count, ANYWHERE),
        pipeline_wait_ms=np.zeros(count),
        follows=np.full(count, -1),
    )
    of = [np.flatnonzero(stage_of_task == number) for number in range(len(stages))]
    readers = {target for _, target in edges or {}}  # submitted once what they read is there, all others at once
    runs = [
        StageRun(
            stage_id=f"stage:{number}.0",
            name="",
            scope_id=scope_id,
            priority=number,
            submit_ms=float(launch[mine].min()) if number in readers else 0.0,
            start_ms=float(launch[mine].min()),
            end_ms=float(finish[mine].max()),
        )
        for number, mine in enumerate(of)
    ]
    stated = {
        (f"stage:{source}.0", f"stage:{target}.0"): Dependency("barrier", why)
        for (source, target), why in (edges or {}).items()
    }
    end = float(finish.max())
    properties = dict(properties or {})
    pool = np.zeros(slots, dtype=np.int64)
    facts = {"workers": 1.0, "cores": float(slots), "cpu_speed": 1.0, **configured(properties)}
    volumes = replace(
        no_volumes(count),
        input=np.full(count, read),
        local_read=np.full(count, fetched),
        overhead_ms=np.full(count, overhead_ms),
    )
    there = Slots(pool, pool, np.zeros(slots), np.full(slots, np.inf), np.full(slots, np.inf))
    return Execution(
        **run_by(framework),
        measure="makespan",
        scope=ScopeTime("all", 0, end),
        dag=build(runs, tasks, 0, end, there, stated, DagRules(JobBarriers, "driver")),
        tasks=tasks,
        volumes=volumes,
        slots=there,
        hosts=("a",),
        driver=DriverTime(np.zeros(0), np.zeros(0), np.zeros((0, 4))),
        recorded={**dict.fromkeys(settings_of(known())), **facts},
        scheduler="FIFO",
        properties=properties,
        has_samples=True,
        has_peak_memory=True,
        evidence=Evidence(np.zeros(3), np.zeros(3), 0.0),
        operators=operators or {},
    )


def ask(run: Execution, *settings: str) -> Prediction:
    settable = settings_of(run.resources, run.words.vocabulary, run.operators)
    (changes,) = combinations(parse_settings(settings, settable, run.words.vocabulary.settings, lists=False))
    return predict(run, scenario_of(changes, run.recorded))


def test_twice_the_input_is_twice_the_work_of_tasks_that_read_of_each_other() -> None:
    """AQE off: the partitions stay, each larger; starting a task takes as long as it did."""
    off = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "2"}
    run = run_of([[(0, 100), (100, 200)]], fetched=MIB, properties=off, overhead_ms=20.0)
    assert ask(run, "input=2x").predicted_ms == pytest.approx(2 * (20 + 2 * 80))


def test_twice_the_input_is_twice_the_tasks_of_a_scan() -> None:
    run = run_of([[(0, 100), (100, 200), (200, 300)]], read=MIB, slots=1)
    answer = ask(run, "input=2x")
    assert answer.predicted_ms == pytest.approx(600)
    assert StagesReplanned(1, 3, 6, slots_only=False) in answer.assumptions
    assert ask(run, "input=2x", "cores=2").predicted_ms == pytest.approx(300, rel=0.01)  # two share a disk


def test_less_input_never_takes_longer() -> None:
    run = run_of([[(0, 10), (0, 100), (10, 30)]], read=MIB, slots=2)
    halved = ask(run, "input=0.5x").predicted_ms
    assert halved <= 100


def test_more_partitions_fill_more_slots_where_their_number_is_fixed() -> None:
    off = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "2"}
    run = run_of([[(0, 100), (0, 100)]], fetched=64 * MIB, slots=4, properties=off)
    assert ask(run, "partitions=4").predicted_ms == pytest.approx(50)
    assert ask(run, "spark.sql.shuffle.partitions=1").predicted_ms == pytest.approx(200)
    assert ask(run, "partitions=2x").predicted_ms == pytest.approx(50)


def test_more_partitions_change_nothing_where_adaptive_execution_merges_them() -> None:
    run = run_of([[(0, 100), (0, 100)]], fetched=MIB, slots=4)
    assert ask(run, "partitions=400").predicted_ms == pytest.approx(100)


def test_even_spread_gives_each_task_the_mean_time() -> None:
    run = run_of([[(0, 10), (0, 10), (0, 10), (0, 90)]], slots=4)
    assert ask(run, "skew=none").predicted_ms == pytest.approx(30)


def test_a_faster_operator_saves_its_share_of_its_stage() -> None:
    times = {"Sort by k": np.array([[50.0, 0, 0, 0], [0, 0, 0, 0]]), "Scan parquet": np.array([[50.0, 0, 0, 0]] * 2)}
    run = run_of([[(0, 100)], [(100, 200)]], edges={(0, 1): "shuffle"}, operators=times)
    assert ask(run, "operator.Sort=2x").predicted_ms == pytest.approx(175)
    assert ask(run, "operator.sort by k=2x").predicted_ms == pytest.approx(175)
    assert ask(run, "operator.Scan=0.5x").predicted_ms == pytest.approx(300)
    with refused(SettingError, "Join", "Sort", "Scan"):
        ask(run, "operator.Join=2x")
    many = {f"op{number}": np.array([[1.0, 0, 0, 0]]) for number in range(50)} | {"Joint": np.array([[1.0, 0, 0, 0]])}
    with refused(SettingError, "Join", 51, "Joint") as error:
        ask(run_of([[(0, 100)]], operators=many), "operator.Join=2x")
    assert len(str(error.value)) < 200


def test_remaining_work_behind_a_stage_counts_the_longest_path_to_the_end() -> None:
    run = run_of([[(0, 30)], [(0, 10)], [(10, 100)]], edges={(1, 2): "shuffle"}, slots=2)
    behind = remaining_path_ms(run.dag)
    assert behind["stage:1.0"] == pytest.approx(100)
    assert behind["stage:2.0"] == pytest.approx(90)
    assert behind["stage:0.0"] < behind["stage:1.0"]


def test_the_stage_with_the_longest_way_to_the_end_goes_first() -> None:
    """Two slots.  First come, first served keeps them for the stage of the lower rank, and the long way starts late."""
    run = run_of([[(0, 50), (0, 50), (50, 100)], [(50, 60)], [(60, 200)]], edges={(1, 2): "shuffle"}, slots=2)
    assert ask(run, "scheduler=fifo").predicted_ms == pytest.approx(200)
    assert ask(run, "scheduler=longest").predicted_ms == pytest.approx(150)


def test_prediction_without_checked_reruns_has_no_interval_and_says_so() -> None:
    run = run_of([[(0, 100), (100, 200)]])
    for setting in ("input=2x", "partitions=2x", "skew=none", "scheduler=fair"):
        answer = ask(run, setting)
        assert answer.interval_ms is None
        assert NoInterval((setting.partition("=")[0],)) in answer.assumptions
    assert ask(run, "cores=2x").interval_ms is not None


def test_repartitioning_needs_a_framework_that_supports_it() -> None:
    plain = replace(SPARK, planner=replace(SPARK.planner, replan=None))
    answer = ask(run_of([[(0, 100)]], framework=plain), "partitions=2x")
    assert answer.predicted_ms is None
    assert answer.refused == (PlanUnknown("Spark"),)


@pytest.mark.parametrize(
    ("setting", "possible"),
    [
        ("skew=some", ["none"]),
        ("scheduler=quick", ["fifo", "fair", "longest"]),
        ("input=5", ["2x"]),
        ("partitions=1.5", []),
    ],
)
def test_refuses_a_senseless_value_and_names_possible_ones(setting: str, possible: list[str]) -> None:
    with refused(SettingError, setting, *possible):
        ask(run_of([[(0, 100)]]), setting)


def test_partitions_that_are_not_known_cannot_be_set() -> None:
    run = run_of([[(0, 100)]])
    unknown = replace(run, recorded={**run.recorded, "tasks": None})
    with pytest.raises(RefusedError) as refused:
        ask(unknown, "partitions=400")
    assert refused.value.refusal == RecordedValueUnknown("partitions=400", "partitions")
