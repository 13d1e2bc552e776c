"""Edge scenarios of the what-if model, each a sum that can be done by hand: hidden, shared, lost or asked
for together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from crystalperf.query.execution.cpu_limits import cpu_limits
from crystalperf.query.execution.dag import Dependency, StageRun, Tasks, build
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.scenario import Scenario, Value
from crystalperf.query.execution.slots import Slots
from crystalperf.query.execution.volumes import no_volumes
from crystalperf.query.execution.wire_bytes import FRAME_DATA
from crystalperf.query.predict.estimate import predict
from crystalperf.query.predict.scenario_replay import replay_baseline
from crystalperf.query.results.answers import Prediction
from crystalperf.query.results.assumptions import WorkersStay
from crystalperf.query.simulate.repartition import with_tasks
from crystalperf.query.simulate.transfers import exposed_ms
from tests.hand_made import run_by
from tests.test_measured_load import with_volumes
from tests.test_pipelines import TOY
from tests.test_predict import GIB, execution, predicted, scenario
from tests.test_sharing import looks_of

MEGA = 1_000_000


def asked(run: Execution, *settings: str, recorded: tuple[str, ...] = ()) -> Prediction:
    return predict(run, scenario(run, *settings, recorded=recorded))


def test_transfer_is_hidden_only_by_concurrent_work() -> None:
    """Ten seconds of CPU hid the 10 MB that came at 1 MB/s; half a second of it cannot."""
    run = with_volumes(execution([(0, 10_000)], (1, 0, 0, 0)), remote_read=10.0 * MEGA)
    needs_ms = 10_000 / FRAME_DATA
    for speed in (2, 10, 100):
        reported = asked(run, f"cpu_speed={speed}x", recorded=("network=1MB/s",)).predicted_ms
        assert reported >= 0.95 * needs_ms
    assert exposed_ms(np.array([10.0]), np.array([4.0]), np.array([10.0]), 0.2) == pytest.approx([6.0])


def test_warmup_does_not_grow_with_the_size_of_a_task() -> None:
    """Each slot's first task takes two seconds and later ones one, but for one of fifteen: of eight slots all are
    first."""
    rows = [(0.0, 2000.0)] * 4 + [(2000.0, 3000.0)] * 3 + [(2000.0, 17_000.0)]
    run = execution(rows, (1, 0, 0, 0), cores=4)
    assert predicted(run, "cores=2x") == pytest.approx(16_000)


def test_split_tasks_start_as_fast_as_most_tasks() -> None:
    """Of four tasks of 60 ms each spent 10 on starting and the first 40: 30 of those were paid once."""
    run = execution([(i * 60.0, (i + 1) * 60.0) for i in range(4)], (1, 0, 0, 0))
    overhead = np.array([40.0, 10.0, 10.0, 10.0])
    cut = with_tasks(replace(run, volumes=replace(run.volumes, overhead_ms=overhead)), {0: 8})
    assert cut.tasks.duration_ms.sum() == pytest.approx(4 * 50 + 8 * 10)
    assert cut.volumes.overhead_ms == pytest.approx(np.full(8, 10.0))


def test_more_data_does_not_make_starting_longer() -> None:
    run = execution([(i * 60.0, (i + 1) * 60.0) for i in range(40)], (1, 0, 0, 0))
    run = with_volumes(run, input=10.0 * MEGA, overhead_ms=50.0)  # files: four times the data are four times the tasks
    assert predicted(run, "input=4x") == pytest.approx(4 * 40 * 60)


def test_changed_operators_add_up_without_double_counting() -> None:
    times = {"Sort a": np.array([[50.0, 0, 0, 0]]), "Join b": np.array([[50.0, 0, 0, 0]])}
    run = replace(execution([(0, 100)], (1, 0, 0, 0)), operators=times)

    def of(**ratios: float) -> float | None:
        wanted = {f"operator.{name.replace('_', ' ')}": ratio for name, ratio in ratios.items()}
        return predict(run, Scenario({}, run.recorded, wanted)).predicted_ms

    assert of(Sort=1e9, Join=1e9) == pytest.approx(0, abs=1e-3)
    assert of(Sort=2.0, Join=2.0) == pytest.approx(50)
    assert of(Sort=2.0, Sort_a=5.0) == pytest.approx(50 + 10)


def piped() -> Execution:
    """Stage b has a subtask that works for ten, and one that works for two and waits for eight, as a does for b."""
    launch, finish, waited = np.array([0.0, 1.0, 1.0]), np.array([11.0, 11.0, 11.0]), np.array([9.0, 0.0, 8.0])
    parts = np.zeros((3, 4))
    parts[:, 0], parts[:, 3] = finish - launch - waited, waited
    number = np.zeros(3, np.int64)
    tasks = Tasks(
        np.arange(3), np.array([0, 1, 1]), number - 1, number, launch, finish, parts, number, waited, number - 1
    )
    pool = np.zeros(9, np.int64)
    slots = Slots(pool, pool, np.zeros(9), np.full(9, np.inf), np.full(9, np.inf))
    stages = [StageRun("a", "a", None, 0, None, 0.0, 11.0), StageRun("b", "b", None, 1, None, 1.0, 11.0)]
    dag = build(stages, tasks, 0, 11, slots, {("a", "b"): Dependency("pipelined", "rows")})
    whole = execution([(0, 11)], (1, 0, 0, 0))
    return replace(whole, **run_by(TOY), dag=dag, tasks=tasks, volumes=no_volumes(3), slots=slots)


def test_waiting_in_a_pipeline_is_neither_spread_nor_multiplied() -> None:
    run = piped()
    even = predict(run, Scenario({"skew": Value("skew", "none", choice="none")}, run.recorded, {}))
    assert even.predicted_ms == pytest.approx(7)
    twice = predict(run, Scenario({}, run.recorded, {"input": 2.0}))
    assert twice.predicted_ms is not None
    assert twice.predicted_ms == pytest.approx(22, rel=0.1)


def test_memory_is_shared_by_the_slots_asked_for_with_it() -> None:
    """Two tasks of 1 GiB fit 4 GiB; so does one of them half of that."""
    run = with_volumes(execution([(0, 10_000)] * 2, (1, 0, 0, 0), cores=2, memory=4 * GIB), peak_memory=GIB)
    assert predicted(run, "memory=0.5x", "cores=0.5x") == pytest.approx(20_000, rel=0.03)
    assert predicted(run, "memory=0.5x") > 11_000


def test_bound_of_a_memory_change_does_not_apply_to_combined_changes() -> None:
    run = with_volumes(execution([(0, 10_000)] * 4, (1, 0, 0, 0), cores=4, memory=4 * GIB), gc_ms=2000.0)
    assert asked(run, "memory=2x").bound_ms == (None, 10_000)
    assert asked(run, "memory=2x", "cores=0.25x").bound_ms == (None, None)


def test_added_spills_use_the_disk_of_the_scenario() -> None:
    run = execution([(0, 10_000)], (0.9, 0.1, 0, 0), memory=4 * GIB)
    run = with_volumes(run, peak_memory=2 * GIB, input=1.0 * MEGA)

    def added_ms(*settings: str) -> float:
        reported = asked(run, "memory=0.2x", *settings, recorded=("disk=100MB/s",)).predicted_ms
        return reported - 10_000

    assert added_ms("disk=10x") == pytest.approx(added_ms() / 10, rel=0.2)


def test_exchanged_bytes_cross_the_network_in_proportion_to_the_other_workers() -> None:
    """Two workers fetch half of it from the other one, one nothing, and four three quarters."""
    run = with_volumes(
        execution([(0, 10_000)] * 2, (0, 0, 1, 0), executors=2),
        remote_read=10.0 * MEGA * FRAME_DATA,
        local_read=10.0 * MEGA,
    )
    stated = replace(run, recorded={**run.recorded, "network": 1.0 * MEGA})
    assert predicted(stated, "executors=1") < 1000
    # Spark would cut four tasks of half the data each, of which half as much again crosses.
    assert predicted(stated, "executors=4") == pytest.approx(7500, rel=0.02)


def test_bytes_that_never_crossed_the_network_may_take_any_time_there() -> None:
    run = with_volumes(execution([(0, 10_000), (10_000, 20_000)], (1, 0, 0, 0)), local_read=10.0 * MEGA)
    reported = asked(run, "executors=2")
    assert reported.predicted_ms is None
    assert reported.bound_ms == (10_000, None)


def dynamic(until_ms: float) -> Execution:
    """Two workers with a task of ten seconds each; the second is given back then, the first has two more tasks."""
    rows = [(0.0, 10_000.0), (0.0, 10_000.0), (10_000.0, 11_000.0), (11_000.0, 12_000.0)]
    run = execution(rows, (1, 0, 0, 0), executors=2)
    tasks = replace(run.tasks, worker=np.array([0, 1, 0, 0]), host=np.array([0, 1, 0, 0]))
    return replace(run, tasks=tasks, slots=replace(run.slots, until_ms=np.array([np.inf, until_ms])))


def test_workers_that_were_given_back_stay_while_there_is_work_for_them() -> None:
    """Of twice the data each has 20 s to do, and the rest 4: with the second gone at ten it would be 44."""
    reported = asked(dynamic(10_000.0), "cpu_speed=0.5x")
    assert reported.predicted_ms == pytest.approx(22_000)
    assert WorkersStay() in reported.assumptions


def test_released_worker_stays_until_its_place_is_taken() -> None:
    slots = execution([(0, 1)] * 4, (1, 0, 0, 0), executors=4).slots
    was = replace(slots, available_ms=np.array([0.0, 0, 30, 50]), until_ms=np.array([20.0, 10, 40, np.inf]))
    assert was.staying().until_ms.tolist() == [50, 30, np.inf, np.inf]


def test_baseline_replays_even_if_workers_were_released_early() -> None:
    run = execution([(0, 10), (10, 20), (20, 30)], (1, 0, 0, 0))
    lost = replace(run, slots=replace(run.slots, until_ms=np.array([20.0])))
    assert replay_baseline(lost).replayed.makespan_ms == 30
    assert predicted(lost, "cpu_speed=0.5x") == pytest.approx(60)


def test_exhausted_quota_is_the_limit_despite_later_changes() -> None:
    used_up = np.arange(40) < 30
    loads = looks_of(
        np.arange(40) * 1e3,
        cores=np.where(used_up, 0.4, 0.5),
        quota=np.where(used_up, 0.4, 4.0),
        throttled=1.0 * used_up,
    )
    assert cpu_limits(loads, np.array([0]), np.array([10e3]), np.array([30e3]), 1).tolist() == [0.4]


def log_alone(network: float = 0.0, disk: float = 0.0) -> Execution:
    """A task of ten seconds that nobody sampled, with bytes on both devices; of most of its time nothing is known."""
    run = replace(execution([(0, 10_000)], (0.1, disk, network, 0.9 - disk - network)), has_samples=False)
    run = with_volumes(run, remote_read=8.0 * MEGA, input=8.0 * MEGA)
    return replace(run, evidence=replace(run.evidence, unseen_resources=0.9 - disk - network, missing_cpu_share=0.0))


def test_unknown_time_may_be_on_any_of_several_devices() -> None:
    """The least and the most of both are at least as far apart as of one."""
    run = log_alone()
    alone, both = asked(run, "network=0.25x"), asked(run, "network=0.25x", "disk=0.999x")
    assert alone.predicted_ms is both.predicted_ms is None
    assert alone.bound_ms[1] is not None
    assert both.bound_ms[1] == pytest.approx(alone.bound_ms[1], rel=0.01)
    stated = asked(run, "network=0.25x", "disk=0.999x", recorded=("disk=100MB/s",))
    assert stated.predicted_ms is None


def test_nearly_unchanged_disk_keeps_the_prediction_for_the_network() -> None:
    run = log_alone(network=0.6, disk=0.3)
    alone, both = asked(run, "network=0.5x"), asked(run, "network=0.5x", "disk=0.999x")
    assert alone.predicted_ms is not None
    assert both.predicted_ms == pytest.approx(alone.predicted_ms, rel=0.05)
