"""Whole steps on a GPU: batches of loader processes, launches, and the recipe that records them."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

import crystalperf
from crystalperf.indexes.errors import NoAnswerError, SettingError
from crystalperf.query.frameworks import Job
from crystalperf.query.frameworks.ml.pytorch import ranges, setup
from crystalperf.query.frameworks.ml.pytorch.assumptions import BatchesMade
from lab.score import gpu_steps, gpu_terms

OWN = Path(__file__).parent.parent / "lab/recordings/gpu/own"


def _run(kind: str, folder: Path) -> crystalperf.Run:
    return crystalperf.profile(OWN / "h200/traces" / kind / "light.json.gz", output=folder / f"{kind}.duckdb")


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> crystalperf.Run:
    """A training that waits for two loader processes."""
    return _run("input_2-32", tmp_path_factory.mktemp("runs"))


def _made(answer: crystalperf.Prediction) -> BatchesMade:
    return next(each for each in answer.assumptions if isinstance(each, BatchesMade))


def test_period_of_loaders_scales_with_batch_and_with_processes(waiting: crystalperf.Run) -> None:
    steps = gpu_steps.measured(OWN)
    before = waiting.predict("batch=1x").runtime_ms
    for setting, key in (("batch=2x", ("input:2", 64)), ("loader_workers=2x", ("input:4", 32))):
        answer = waiting.predict(setting)
        assert answer.predicted_ms is not None
        truth = steps["h200", *key] / steps["h200", "input:2", 32]
        assert answer.predicted_ms / before == pytest.approx(truth, rel=0.15)
    assert waiting.predict("loader_workers=2x").predicted_ms == pytest.approx(before / 2, rel=0.02)


def test_many_loaders_leave_the_time_of_host_and_accelerator(waiting: crystalperf.Run) -> None:
    answer = waiting.predict("loader_workers=100x")
    made, steps = _made(answer), 6
    assert answer.predicted_ms == pytest.approx(made.alone_ms * steps, rel=0.02)
    assert made.alone_ms > 10 * made.period_ms


def test_both_changes_cancel(waiting: crystalperf.Run) -> None:
    answer = waiting.predict(["batch=2x", "loader_workers=2x"])
    assert answer.predicted_ms == pytest.approx(answer.runtime_ms, rel=0.02)


def test_number_of_loaders_needs_the_recorded_one(waiting: crystalperf.Run) -> None:
    refused = waiting.predict("loader_workers=4").refused
    assert [each.kind for each in refused] == ["recorded-value-unknown"]
    stated = waiting.predict("loader_workers=4", recorded="loader_workers=2")
    assert stated.predicted_ms == pytest.approx(waiting.predict("loader_workers=2x").predicted_ms)


def test_finding_says_how_many_loaders_would_do(waiting: crystalperf.Run) -> None:
    (found,) = [each for each in waiting.debug().findings if each.kind == "input"]
    times = found.advice.times  # type: ignore[union-attr]
    assert times == pytest.approx(_made(waiting.predict("batch=2x")).recorded_ms / _made_alone(waiting), rel=0.1)


def _made_alone(run: crystalperf.Run) -> float:
    return _made(run.predict("loader_workers=2x")).alone_ms


def test_uneven_steps_are_reported(waiting: crystalperf.Run) -> None:
    (found,) = [each for each in waiting.debug().measurements if each.kind == "uneven-steps"]
    assert found.longest_ms > 2 * found.shortest_ms  # type: ignore[attr-defined]


def test_launches_have_a_bound(tmp_path: Path) -> None:
    steps = gpu_steps.measured(OWN)
    run = _run("gpt_tiny-8", tmp_path)
    answer = run.predict("launch=0")
    assert [each.kind for each in answer.refused] == ["graph-unknown"]
    assert answer.bound_ms is not None
    assert answer.bound_ms[0] is not None
    low = answer.bound_ms[0] / int(run.sql("SELECT properties['steps'] FROM runs").rows[0][0])
    assert 0.4 * steps["h200", "gpt_tiny+graph", 8] < low <= 1.05 * steps["h200", "gpt_tiny+graph", 8]
    assert answer.bound_ms[1] == pytest.approx(answer.runtime_ms, rel=0.01)


def test_steps_that_do_not_wait_hide_what_fewer_loaders_would_cost(tmp_path: Path) -> None:
    run = _run("gpt_tiny-8", tmp_path)
    refused = run.predict("loader_workers=0.5x")
    assert [each.kind for each in refused.refused] == ["loaders-ahead"]
    assert run.predict("loader_workers=2x").predicted_ms == pytest.approx(run.predict("loader_workers=2x").runtime_ms)


def test_wrong_values_are_refused(waiting: crystalperf.Run) -> None:
    for text in ("launch=1", "launch=2x", "loader_workers=0", "loader_workers=many"):
        with pytest.raises((SettingError, NoAnswerError)):
            waiting.predict(text)


def test_ranges_cover_steps_and_what_ifs(waiting: crystalperf.Run) -> None:
    steps = gpu_steps.measured(OWN)
    (recorded,) = [
        each for each in gpu_steps.traces(OWN) if (each.gpu, each.kind, each.mode) == ("h200", "input:2", "light")
    ]
    found = {each.question: each for each in gpu_steps.of_run(recorded, waiting, steps)}
    assert {"untraced", "device", "batch 2x", "loaders 2 to 4"} <= set(found)
    assert all(each.covered for each in found.values())
    assert all(each.low is not None and each.high is not None and each.low < each.high for each in found.values())


def test_another_device_has_another_host_whose_speed_is_not_known(tmp_path: Path) -> None:
    run = _run("gpt_tiny-8", tmp_path)  # the host limits it
    answer, same = run.predict("device=H200:H100"), run.predict("device.gpumem=0.7x")
    assert answer.predicted_ms == pytest.approx(answer.runtime_ms, rel=0.02)
    assert "other-host" in {each.kind for each in answer.assumptions}
    assert "other-host" not in {each.kind for each in same.assumptions}
    assert answer.interval_ms is not None
    assert same.interval_ms is not None
    assert answer.interval_ms[1] > 1.3 * same.interval_ms[1]
    assert answer.interval_shares["host"] > 0.9


def test_narrower_numbers_are_a_range(waiting: crystalperf.Run) -> None:
    answer = waiting.predict("precision=bf16")
    low, high = answer.bound_ms or answer.interval_ms or (None, None)
    assert low is not None
    assert high is not None
    assert low < answer.runtime_ms * 1.01
    assert high >= answer.runtime_ms * 0.99


def _scored(kind: str, predicted_ms: float, low: float | None = None, high: float | None = None) -> gpu_steps.Score:
    recorded = gpu_steps.Recorded("h100", kind, 8, "", Path(kind))
    return gpu_steps.Score(recorded, "untraced", 150.0, predicted_ms, low, high, 100.0)


def test_terms_are_of_the_answers_that_each_part_limits() -> None:
    found = [_scored("gpt_tiny", 110), _scored("chain", 101), _scored("tables", 103)]
    every, left_out = (gpu_terms.fitted(found, {}, {}, each) for each in ("", "tables"))
    assert every.device == pytest.approx(2.92 * math.sqrt((math.log(1.01) ** 2 + math.log(1.03) ** 2) / 2))
    assert left_out.device == pytest.approx(6.31 * math.log(1.01))
    assert (every.host, every.loaders) == (ranges.FITTED.host, ranges.FITTED.loaders)  # nothing to fit them on


def test_terms_of_the_host_are_fitted_on_even_kinds_alone() -> None:
    assert [gpu_terms.is_even(each) for each in ("chatty", "gpt_bf16", "gpt_tiny")] == [True, True, False]
    blocks, costs = {"chatty": [0.01], "gpt_tiny": [1.0]}, {"chatty": [0.35], "gpt_tiny": [9.0]}
    found = gpu_terms.fitted([], blocks, costs)
    assert found.host == pytest.approx(1.645 * 0.1 * math.sqrt(1.449))
    assert found.cost == pytest.approx(6.31 * 0.2)
    assert gpu_terms.fitted([], blocks, costs, "chatty") == ranges.FITTED


def test_coverage_counts_ranges_as_fitted_and_with_the_training_left_out() -> None:
    wide, narrow = _scored("chatty", 110, 90, 130), _scored("chatty", 110, 105, 115)
    rows = gpu_terms.coverage([wide], [narrow])[2:]
    assert [each.strip() for each in rows[0].split("|")[1:-1]] == [
        "untraced", "host", "even", "1", "1 of 1", "0 of 1", "± 18 %",
    ]  # fmt: skip
    assert rows[-1].split("|")[1].strip() == "all"


def test_range_of_the_host_allows_for_what_the_profiler_cost(tmp_path: Path) -> None:
    run = _run("gpt_tiny-8", tmp_path)  # 12 669 operators a step, without stacks
    header, properties = run.header(), dict(run.sql("SELECT properties FROM runs").rows[0][0])
    assert float(properties["host_term"]) > 1.3 * ranges.FITTED.host
    assert header.step_interval_ms is not None
    low, high = header.step_interval_ms
    assert low < 58.6 < high  # as measured without the profiler


@pytest.mark.later
def test_scores_of_own_series() -> None:
    found = list(gpu_steps.scores(OWN))
    assert {"untraced", "batch 2x", "loaders 2 to 4", "launch=0"} <= {each.question for each in found}
    two = [each for each in found if each.question in ("batch 2x", "loaders 2 to 4")]
    assert all(each.off is not None and abs(each.off) < 0.2 for each in two)
    assert gpu_steps.lines(found, every=True)


def test_recipe_makes_its_folder_and_traces_enough_steps() -> None:
    text = setup.text(Job("/tmp/traces"))
    compile(text, "setup", "exec")
    made, opened = text.index('makedirs("/tmp/traces"'), text.index("with profiler")
    assert made < opened
    known = setup.facts(Job("/tmp/traces"))
    assert known["active"] >= 6
    assert re.search(rf"wait={known['wait']}, warmup={known['warmup']}, active={known['active']}", text)
