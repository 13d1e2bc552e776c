"""Unknown time of a log alone: imputed from the run's own CPU waits and from recorded runs, in predictions only."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest

import crystalperf as cp
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.load import load
from crystalperf.query.execution.scenario import Value, scenario_of
from crystalperf.query.predict.estimate import predict
from crystalperf.query.predict.priors import cpu_wait_per_cpu_second, impute_from_priors, priors, unknown_ms
from crystalperf.query.results.assumptions import TimeImputed
from crystalperf.query.simulate.transfers import MODEL

RECORDINGS = Path(__file__).parent.parent / "lab" / "recordings"
Q6 = RECORDINGS / "sweeps" / "q6" / "base-0-01-none"
DEMO_LOG = next((RECORDINGS / "demo-q9").glob("eventlog*"))


def last_query(path: Path, output: Path) -> Execution:
    run = cp.profile([path], output=output).path
    with duckdb.connect(str(run), read_only=True) as connection:
        ((scope,),) = connection.execute(
            "SELECT scope_id FROM scopes WHERE kind = 'sql' ORDER BY end_ms - start_ms DESC LIMIT 1"
        ).fetchall()
        return load(connection, scope)


@pytest.fixture(scope="module")
def scanning(tmp_path_factory: pytest.TempPathFactory) -> Execution:
    """q6 without samples: nearly all of it reads files on other machines."""
    return last_query(Q6, tmp_path_factory.mktemp("q6") / "run.duckdb")


@pytest.fixture(scope="module")
def shuffling(tmp_path_factory: pytest.TempPathFactory) -> Execution:
    """The demo without samples: files of its own, and shuffles."""
    return last_query(DEMO_LOG, tmp_path_factory.mktemp("demo") / "run.duckdb")


def test_readers_are_distinguished_by_operator(scanning: Execution) -> None:
    assert "scan parquet" in scanning.readers.values()


def test_only_open_time_is_shared_out_and_no_task_gets_longer(scanning: Execution) -> None:
    with_imputed, said = impute_from_priors(scanning)
    assert np.allclose(with_imputed.tasks.parts_ms.sum(axis=1), scanning.tasks.parts_ms.sum(axis=1))
    assert (with_imputed.tasks.parts_ms >= -1e-9).all()
    taken = scanning.tasks.parts_ms[:, -1] - with_imputed.tasks.parts_ms[:, -1]
    assert (taken <= unknown_ms(scanning) + 1e-9).all()
    assert taken.sum() > 0
    (imputed,) = said
    assert isinstance(imputed, TimeImputed)
    assert imputed.recordings == 5
    assert imputed.imputed_ms == pytest.approx(taken.sum())


def test_priors_of_recorded_runs_apply_to_files_on_other_machines(scanning: Execution) -> None:
    assert cpu_wait_per_cpu_second(scanning, unknown_ms(scanning)) is None  # all but one of its tasks read files
    with_imputed, _ = impute_from_priors(scanning)
    net = scanning.names.index("net")
    far = scanning.volumes.far > 0
    more = (with_imputed.tasks.parts_ms - scanning.tasks.parts_ms)[far, net].sum()
    share = priors("spark", scanning.names)["scan parquet", "far"].shares[net]
    assert more == pytest.approx(share * unknown_ms(scanning)[far].sum())


def test_run_measures_its_own_cpu_waits(shuffling: Execution) -> None:
    found = cpu_wait_per_cpu_second(shuffling, unknown_ms(shuffling))
    assert 4 <= found[0] <= 7  # the slots had 0.2 core each, so a second of work took five
    with_imputed, said = impute_from_priors(shuffling)
    cpu, net = shuffling.names.index("cpu"), shuffling.names.index("net")
    more = with_imputed.tasks.parts_ms - shuffling.tasks.parts_ms
    assert more[:, cpu].sum() > 0.8 * unknown_ms(shuffling).sum()
    assert more[:, net].sum() == 0  # its files were its own
    (imputed,) = said
    assert isinstance(imputed, TimeImputed)
    assert imputed.waits_per_cpu_second == found[0]
    assert imputed.cpu_wait_ms == pytest.approx(more[:, cpu].sum())
    assert imputed.recordings == 0


def test_a_question_about_the_network_is_answered_without_samples_or_a_stated_bandwidth(scanning: Execution) -> None:
    scenario = scenario_of({"network": Value("network", "2x", ratio=2.0)}, scanning.recorded)
    before, after = (
        predict(scanning, scenario, physics=replace(MODEL, imputed=False)),
        predict(scanning, scenario),
    )
    assert before.predicted_ms is None
    assert after.interval_ms[0] < after.predicted_ms < after.interval_ms[1]
    assert any(isinstance(each, TimeImputed) for each in after.assumptions)


def test_run_with_samples_imputes_nothing(scanning: Execution) -> None:
    sampled = replace(scanning, has_samples=True)
    assert impute_from_priors(sampled) == (sampled, ())


def test_framework_without_recorded_runs_imputes_nothing(scanning: Execution) -> None:
    other = replace(scanning, words=replace(scanning.words, framework="toy"))
    assert impute_from_priors(other) == (other, ())


def test_tasks_computed_by_another_process_show_no_cpu_wait(shuffling: Execution) -> None:
    every = frozenset(range(len(shuffling.dag.stages)))
    assert impute_from_priors(replace(shuffling, delegating=every))[1] == ()


def test_garbage_collection_does_not_count_as_cpu_wait(shuffling: Execution) -> None:
    """Spark before 2.1 has no CPU time: time beyond the tasks' collections did not count as waiting for a CPU."""
    gc_ms = np.full(len(shuffling.tasks), 50.0)
    old = replace(shuffling, volumes=replace(shuffling.volumes, gc_ms=gc_ms, total_cpu_ms=gc_ms))
    assert impute_from_priors(old) == (old, ())


def test_absurd_cpu_wait_per_cpu_second_is_unknown(shuffling: Execution) -> None:
    nothing = np.zeros(len(shuffling.tasks))
    no_work = replace(shuffling, volumes=replace(shuffling.volumes, gc_ms=nothing, total_cpu_ms=nothing + 1e-6))
    assert cpu_wait_per_cpu_second(no_work, unknown_ms(no_work)) is None
