"""Predictors by name: each against a number of its publication or repository, and all of them side by side."""

from __future__ import annotations

import ast
import csv
import json
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import crystalperf as cp
from crystalperf.indexes.errors import InputError, SettingError
from crystalperf.query.execution.stream import Station, Stream
from crystalperf.query.predict import registry
from crystalperf.query.predict.nonnegative import nonnegative_fit
from crystalperf.query.predictors.amdahl import runtime_ms
from crystalperf.query.predictors.ds2 import highest_rate
from crystalperf.query.predictors.ernest import fit, terms
from crystalperf.query.predictors.monotasks import ideal_ms
from crystalperf.query.predictors.paleo import ring_ms, step_ms
from crystalperf.query.results.answers import Prediction
from crystalperf.query.run import Run
from crystalperf.query.text.as_json import as_json
from crystalperf.query.trace import plugins
from tests.refusals import refused
from tests.spark_logs import Stage, Task, write

ROOT = Path(__file__).parent.parent
HERE = ROOT / "query" / "predictors"
FLINK = ROOT / "tests" / "data" / "flink"


# Formulas, against their publications ---------------------------------------------------------------------------------


def test_amdahls_own_limits_of_the_speedup() -> None:
    """AFIPS 1967: 40 % of the instructions are sequential; with a half or a third of that, the overhead alone limits
    the rate to five to seven times the sequential one (a third gives 7.5)."""
    assert 1 / runtime_ms(1.0, 1 - 0.4 / 2, math.inf) == pytest.approx(5)
    assert 1 / runtime_ms(1.0, 1 - 0.4 / 3, math.inf) == pytest.approx(7.5)
    assert runtime_ms(10.0, 8.0, 2) == pytest.approx(6)


RCV1 = (
    (32, 0.125, 7.94516801834),
    (4, 0.015625, 4.72029209137),
    (4, 0.021382, 4.87661099434),
    (12, 0.050164, 6.71376490593),
    (12, 0.055921, 6.71519398689),
    (12, 0.061678, 6.6739718914),
    (16, 0.061678, 6.83566999435),
)
"""(cores, share of the input, seconds): amplab/ernest, examples/rcv1-parsed.csv."""

PUBLISHED = {
    4: 44.6515640166,
    8: 25.4777295249,
    12: 19.36348049,
    16: 16.4412832993,
    20: 14.7682298198,
    24: 13.7061636865,
    28: 12.9855393036,
}
"""Seconds on all of the input by cores: amplab/ernest, examples/mllib_rcv1.md."""


def test_ernests_example_gives_its_published_times() -> None:
    factors = fit(RCV1)
    assert {cores: factors @ terms(cores) for cores in PUBLISHED} == pytest.approx(PUBLISHED, rel=1e-9)


def test_factors_are_those_of_the_reference_solver() -> None:
    nnls = pytest.importorskip("scipy.optimize", reason="scipy is not installed").nnls
    random = np.random.default_rng(7)
    for size in (2, 3, 4, 9, 30):
        rows = random.normal(size=(size, 4))
        values = random.normal(size=size)
        assert nonnegative_fit(rows, values) == pytest.approx(nnls(rows, values)[0], abs=1e-9)


DS2_TESTS = (
    (100.0, (50.0, 400.0), (100.0, 200.0), (2, 8)),
    (200.0, (40.0, 700.0), (99.0, 200.0), (5, 36)),
    (200.0, (10.0, 700.0), (201.0, 200.0), (20, 70)),
)
"""Target rate of the source, (records in, records out) per useful second of two operators, and their slots in DS2's
answer: strymon-system/ds2, controller/tests/scaling_policy_test.rs, epochs 0, 1 and 7."""


def station(name: str, records_per_s: float, busy: float, *, is_source: bool = False) -> Station:
    shares = np.array([1.0, 0.0, 0.0, 0.0])
    return Station(name, name, 1, records_per_s, busy, busy, 0.0, shares, is_source=is_source)


@pytest.mark.parametrize("case", DS2_TESTS)
def test_ds2s_slots_are_the_fewest_that_sustain_its_target(case: Any) -> None:
    """At a hundredth of the target, one slot of each operator suffices."""
    target, (first_in, first_out), (second_in, _), wanted = case
    rate = target / 100
    between = rate * first_out / first_in
    stream = Stream(
        (
            station("source", rate, 0.0, is_source=True),
            station("one", rate, rate / first_in),
            station("two", between, between / second_in),
        ),
        (),
        (),
        0.0,
        1000.0,
    )

    def highest(one: int, two: int) -> float:
        found = highest_rate(stream, lambda each: {"one": one, "two": two}.get(each.id, 1), lambda each: each.busy)
        assert found is not None
        return found[0]

    assert highest(*wanted) >= target - 1e-9
    assert highest(wanted[0] - 1, wanted[1]) < target
    assert highest(wanted[0], wanted[1] - 1) < target


def test_autoscalers_true_rate_is_that_of_the_busiest_slot() -> None:
    """apache/flink-kubernetes-operator, ScalingMetricsTest: 900 records/s at 900 busy ms/s are 1000 records/s."""
    stream = Stream((station("source", 900.0, 0.9, is_source=True),), (), (), 0.0, 1000.0)
    found = highest_rate(stream, lambda _each: 1.0, lambda each: each.busiest)
    assert found is not None
    assert found[0] == pytest.approx(900 / 0.9)
    assert found[1] == "source"


SPARKLENS_TESTS = {1: 11, 2: 6, 3: 5, 4: 4, 5: 3, 6: 3, 7: 3, 8: 3, 9: 3, 10: 2, 11: 2}
"""Time by cores of ten tasks and one that waits for them, each of time 1: qubole/sparklens,
PQParallelStageSchedulerSuite, "1+10 stages in parallel"."""


def test_sparklens_times_are_those_of_its_own_tests(tmp_path: Path) -> None:
    tasks = [Task(100_000, launch_ms=100_000 * number) for number in range(10)]
    stages = [Stage(tasks, after_ms=0), Stage([Task(100_000)], after_ms=0)]
    run = cp.profile([write(tmp_path / "log", stages, executors={"1": 1}, begin_ms=0)], output=tmp_path / "run.duckdb")
    found = {
        cores: predicted(run.predict(f"cores={cores}x", predictor="sparklens")) / 100_000 for cores in SPARKLENS_TESTS
    }
    assert found == pytest.approx(SPARKLENS_TESTS, rel=0.005)
    assert predicted(run.predict("network=2x", predictor="sparklens")) == pytest.approx(1_100_000, rel=0.005)


def test_monotasks_busiest_resource_decides() -> None:
    """Its paper has no worked example with all inputs; these are by hand: disk and CPU limit a stage each."""
    work_ms = np.array([[40.0, 100.0, 0.0], [60.0, 10.0, 0.0]])
    assert ideal_ms(work_ms, np.ones(3)) == 160.0
    assert ideal_ms(work_ms, np.array([1.0, 2.0, 1.0])) == 50.0 + 60.0
    assert ideal_ms(work_ms, np.array([1.0, 10.0, 1.0])) == 40.0 + 60.0


def test_paleos_time_is_computing_and_then_sending() -> None:
    """No published number with all its inputs was available; these are by hand.  100 MB over a ring of 4 at 1 GB/s."""
    assert ring_ms(100e6, 4, 1e9) == pytest.approx(150)
    assert ring_ms(100e6, 1, 1e9) == 0
    assert step_ms(400, 150, 2.0, 75) == pytest.approx(250 / 2 + 75)


# By name --------------------------------------------------------------------------------------------------------------


def predicted(answer: Prediction) -> float:
    assert answer.predicted_ms is not None, answer.refused
    return answer.predicted_ms


Shell = Callable[..., tuple[int, str, str]]
BATCH = ("paper", "sparklens", "amdahl", "linear", "monotasks")


@pytest.mark.parametrize("name", BATCH)
def test_a_built_in_predictor_is_asked_by_name(demo_log_run: Run, name: str) -> None:
    answer = demo_log_run.predict("cores=2x", predictor=name)
    assert answer.interval_ms is None
    assert answer.runtime_ms / 2 - 1e-6 <= predicted(answer) <= answer.runtime_ms
    unchanged = demo_log_run.predict("cores=1x", predictor=name)
    assert predicted(unchanged) == pytest.approx(unchanged.runtime_ms, rel=1e-6)
    assert [each.kind for each in answer.assumptions] == ["other-predictor"]


def test_crystalperf_is_a_name_too(demo_log_run: Run) -> None:
    assert demo_log_run.predict("cores=2x", predictor="crystalperf") == demo_log_run.predict("cores=2x")


def test_the_terminal_says_nothing_about_the_replay_for_another_model(crystalperf: Shell, demo_log_run: Run) -> None:
    _, own, _ = crystalperf("predict", demo_log_run.path, "--set", "network=1x", "--no-ledger")
    _, other, _ = crystalperf(
        "predict", demo_log_run.path, "--set", "network=1x", "--predictor", "linear", "--no-ledger"
    )
    assert "critical path" in own
    assert "Check" in own
    assert "critical path" not in other
    assert "Check" not in other


def test_settings_without_a_term_are_named(demo_log_run: Run) -> None:
    answer = demo_log_run.predict(["cores=2x", "network=2x"], predictor="amdahl")
    assert predicted(answer) == predicted(demo_log_run.predict("cores=2x", predictor="amdahl"))
    (assumed,) = (each for each in answer.assumptions if each.kind == "no-term")
    assert assumed.settings == ("network",)  # type: ignore[attr-defined]


def test_all_predictors_side_by_side(demo_log_run: Run) -> None:
    answer = demo_log_run.predictions("cores=2x")
    found = {each.predictor: each.prediction for each in answer.predictions}
    assert list(found) == list(registry.names())
    assert [name for name, each in found.items() if each.interval_ms] == ["crystalperf"]
    refusals = {name: each.refused[0].kind for name, each in found.items() if each.refused}
    assert refusals == {
        "ernest": "predictor-needs-runs",
        "ds2": "predictor-not-for-run",
        "autoscaler": "predictor-not-for-run",
        "paleo": "predictor-not-for-run",
    }
    assert all(each.source for each in answer.predictions[1:])
    written = as_json(answer)
    assert written["schema"] == "crystalperf.predictions/2"
    assert [each["prediction"]["predicted_ms"] is None for each in written["predictions"]] == [
        each.predicted_ms is None for each in found.values()
    ]


def test_all_refuse_a_value_whose_recorded_one_is_unknown(demo_log_run: Run) -> None:
    answer = demo_log_run.predictions("network=1Gbps")
    assert {each.prediction.refused[0].kind for each in answer.predictions} == {"recorded-value-unknown"}
    with refused(SettingError, "colours"):
        demo_log_run.predictions("colours=2x")


def test_a_streams_rate_by_its_busy_times() -> None:
    """The sink is what limits the recorded stream, by the busiest of its two slots."""
    run = cp.profile([FLINK / "slow-sink.json.gz", FLINK / "slow-sink.series.gz"])
    found = {each.predictor: each.prediction for each in run.predictions("parallelism=2x").predictions}
    rates = {name: each.stream.max_per_s for name, each in found.items() if each.stream is not None}
    assert set(rates) == {"crystalperf", "ds2", "autoscaler"}
    for name in ("ds2", "autoscaler"):
        now = run.predict("parallelism=1x", predictor=name).stream
        assert now is not None
        assert now.max_per_s is not None
        assert rates[name] == pytest.approx(2 * now.max_per_s)
        assert now.max_per_s_interval is None
        assert [each.kind for each in found[name].refused] == ["latency-not-predicted"]
        alone = run.predict("parallelism.vertex:3=2x", predictor=name).stream
        assert alone is not None
        assert alone.max_per_s == pytest.approx(rates[name])
        assert alone.limit == now.limit == "vertex:3"
    assert found["amdahl"].refused[0].kind == "predictor-not-for-run"


def test_paleo_predicts_a_training_with_collectives() -> None:
    run = cp.profile(sorted((ROOT / "tests" / "data" / "training" / "torch-2-ranks").iterdir()))
    asked = {"recorded": ["network=1Gbps"], "predictor": "paleo"}
    now = predicted(run.predict("network=1x", **asked))
    assert now == pytest.approx(run.baseline().runtime_ms)
    computing_ms = predicted(run.predict("network=1000000x", **asked))
    assert computing_ms < now
    assert predicted(run.predict("network=0.5x", **asked)) == pytest.approx(2 * now - computing_ms, rel=1e-4)
    assert predicted(run.predict("cpu_speed=2x", **asked)) == pytest.approx(now - computing_ms / 2, rel=1e-4)
    more = predicted(run.predict("ranks=2x", **asked))  # a ring of 4 sends 1.5 of its bytes instead of 1
    assert more == pytest.approx(computing_ms + 1.5 * (now - computing_ms), rel=1e-4)
    unstated = run.predict("network=2x", predictor="paleo")
    assert [each.kind for each in unstated.refused] == ["bandwidth-not-stated"]
    assert run.predict("cpu_speed=2x", predictor="amdahl").refused[0].kind == "predictor-not-for-run"


def test_the_terminal_compares_them(crystalperf: Shell, demo_log_run: Run) -> None:
    code, out, _ = crystalperf("predict", demo_log_run.path, "--set", "cores=2x", "--predictor", "all", "--no-ledger")
    assert code == 0
    rows = {line.split()[0]: line for line in out.splitlines() if line.split()[:1]}
    assert set(registry.names()) - {"ernest", "ds2", "autoscaler", "paleo"} < set(rows)
    code, out, _ = crystalperf(
        "predict", demo_log_run.path, "--set", "cores=2x", "--predictor", "all", "--json", "--no-ledger"
    )
    assert [each["predictor"] for each in json.loads(out)["predictions"]] == list(registry.names())
    code, _, problem = crystalperf("predict", demo_log_run.path, "--set", "cores=2x", "--predictor", "all", "--csv")
    assert code == 1
    assert "--json" in problem


def law(folder: Path, cores: int) -> Path:
    """A log of 2.4 s of sequential time, and of 24 tasks of 1 s on these slots."""
    rounds = [Task(1000, launch_ms=1000 * (number // cores)) for number in range(24)]
    log = write(folder / f"log-{cores}", [Stage(rounds, after_ms=0)], executors={"1": cores}, begin_ms=2400)
    log.write_text(log.read_text().replace("app-made", f"app-{cores}"))
    return log


def test_ernest_is_fitted_to_the_runs_that_are_given(tmp_path: Path) -> None:
    """T = 2.4 s + 24 s / m on 1, 2, 3 and 4 slots; 8 are beyond them."""
    runs = [cp.profile([law(tmp_path, each)], output=tmp_path / f"{each}.duckdb") for each in (1, 2, 3, 4)]
    answer = runs[0].predict("cores=8", predictor="ernest", reruns=runs[1:])
    lengths = {each: run.baseline().runtime_ms for each, run in zip((1, 2, 3, 4), runs, strict=True)}
    factors = fit((m, 1.0, ms) for m, ms in lengths.items())
    assert predicted(answer) == pytest.approx(factors @ terms(8), rel=1e-9)
    assert predicted(answer) == pytest.approx(lengths[4] - 3000, rel=0.02)
    with refused(SettingError, "amdahl"):
        runs[0].predict("cores=8", predictor="amdahl", reruns=runs[1:])
    by_name = {each.predictor: each.prediction for each in runs[0].predictions("cores=8", reruns=runs[1:]).predictions}
    assert by_name["ernest"].predicted_ms == answer.predicted_ms
    assert by_name["amdahl"].predicted_ms is not None
    assert runs[0].predict("input=2x", predictor="ernest", reruns=runs[1:]).refused[0].kind == "runs-alike"


def test_errors_in_the_lab_are_the_figures_of_the_page() -> None:
    figures = json.loads((ROOT / "docs" / "figures" / "predictors.json").read_text(encoding="utf-8"))
    with (ROOT / "query" / "predict" / "lab_errors.csv").open(encoding="utf-8") as file:
        rows = [list(each.values()) for each in csv.DictReader(file)]
    assert rows == figures["rows"]


def test_errors_in_the_lab_are_those_of_the_same_change(demo_log_run: Run) -> None:
    def errors(*settings: str) -> dict[str, Any]:
        return {each.predictor: each.lab for each in demo_log_run.predictions(settings).predictions}

    one, several, unmeasured = errors("cores=2x"), errors("cores=2x", "network=2x"), errors("tasks=2x")
    assert one["amdahl"].changed == "cores"
    assert several["amdahl"].changed == "several"
    assert one["amdahl"] != several["amdahl"]
    assert several["ernest"].predictions > 0
    assert one["ernest"] is one["ds2"] is None
    assert not any(unmeasured.values())


# Other packages -------------------------------------------------------------------------------------------------------


@pytest.fixture
def brought(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Predictors of other packages, by name, for one test."""

    def bring(**functions: Any) -> None:
        entries = [SimpleNamespace(name=name, value=name, load=lambda f=f: f) for name, f in functions.items()]
        found = SimpleNamespace(select=lambda group: entries if group == "crystalperf.predictors" else [])
        monkeypatch.setattr(plugins, "_entry_points", lambda: found)
        plugins._loaded.cache_clear()

    yield bring
    plugins._loaded.cache_clear()


def test_a_name_that_is_taken_is_refused(brought: Callable[..., None], demo_log_run: Run) -> None:
    brought(amdahl=lambda _run, _scenario: 1.0, guess=lambda _run, _scenario: 1.0)
    with refused(SettingError, "amdahl"):
        demo_log_run.predict("cores=2x", predictor="amdahl")
    found = {each.predictor: each.prediction for each in demo_log_run.predictions("cores=2x").predictions}
    assert found["amdahl"].refused[0].kind == "invalid-question"
    assert found["guess"].predicted_ms == 1.0


def test_a_predictor_of_another_package_may_fail(brought: Callable[..., None], demo_log_run: Run) -> None:
    def fails(_run: object, _scenario: object) -> float:
        raise KeyError("m")

    brought(guess=fails)
    with refused(InputError, "guess", "KeyError"):
        demo_log_run.predict("cores=2x", predictor="guess")
    assert demo_log_run.predictions("cores=2x").predictions[0].prediction.predicted_ms is not None


def imported(path: Path) -> set[str]:
    tree = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return {each.module or "" for each in tree if isinstance(each, ast.ImportFrom)} | {
        name.name
        for each in ast.walk(ast.parse(path.read_text()))
        if isinstance(each, ast.Import)
        for name in each.names
    }


def test_built_in_predictors_are_examples_of_a_plugin() -> None:
    """Each is a short module that uses what other packages have."""
    modules = {path.stem: path for path in HERE.glob("*.py") if path.stem != "__init__"}
    assert set(modules) == set(registry.BUILT_IN)
    for path in modules.values():
        ours = {each for each in imported(path) if each.partition(".")[0] not in {*sys.stdlib_module_names, "numpy"}}
        assert {each for each in ours if not each.startswith("crystalperf.query.predictors.")} == {"crystalperf.plugin"}
        assert len(path.read_text(encoding="utf-8").split("\n")) <= 75, path
