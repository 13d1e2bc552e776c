"""A prediction corrected by the job's other runs, and the next run to record."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crystalperf import query
from crystalperf.indexes.errors import InputError, SettingError
from crystalperf.query.predict.interval import CALIBRATED
from crystalperf.query.predict.rerun_errors import Observation, PriorPrediction, after_run, half_width, rerun_correction
from crystalperf.query.results.refusals import RerunNotPredicted
from crystalperf.query.run import Other, Run

SWEEPS = Path(__file__).parent.parent / "lab" / "recordings" / "sweeps"

TWICE = {"cores": math.log(2)}
HALF = {"cores": -math.log(2)}


def guess(ratios: dict[str, float], predicted_ms: float = 100.0, spread: float = 1.4) -> PriorPrediction:
    return PriorPrediction(ratios, predicted_ms, (predicted_ms / spread, predicted_ms * spread))


def test_rerun_of_the_same_scenario_pulls_the_prediction_towards_it() -> None:
    before = guess(TWICE)
    after = rerun_correction(before, [Observation(guess(TWICE), 150.0)])
    assert before.predicted_ms < after.predicted_ms < 150.0
    assert half_width(after) < half_width(before)


def test_rerun_that_was_overestimated_corrects_the_opposite_change() -> None:
    seen = [Observation(guess(TWICE), 130.0)]  # slower than predicted: more slots bring less than was thought
    same = Observation(guess({}), 100.0)  # and the recorded run was not an odd one
    assert rerun_correction(guess(HALF), [*seen, same, same, same]).predicted_ms < 100.0


@pytest.mark.later
def test_rerun_of_the_same_scenario_measures_noise_and_not_the_model_error() -> None:
    """However often, what is left of the range is the model's own error and that of the one run to come."""
    seen = [Observation(guess({}), 100.0)] * 1000
    own = (math.log(1.4**2) / (2 * CALIBRATED.coverage_width)) ** 2 - 2 * CALIBRATED.repetition**2
    left = (math.log(1 + half_width(rerun_correction(guess(TWICE), seen))) / CALIBRATED.coverage_width) ** 2
    assert left == pytest.approx(own, rel=0.05)  # a thousand equal runs: hardly any noise


@given(
    st.lists(st.tuples(st.floats(-2, 2), st.floats(-2, 2), st.floats(50, 200)), max_size=6),
    st.tuples(st.floats(-2, 2), st.floats(-2, 2)),
    st.tuples(st.floats(-2, 2), st.floats(-2, 2)),
)
def test_one_more_run_never_widens_a_range(
    runs: list[tuple[float, float, float]], asked: tuple[float, float], more: tuple[float, float]
) -> None:
    def scenario(cores: float, network: float) -> dict[str, float]:
        return {"cores": cores, "network": network}

    seen = [Observation(guess(scenario(*where)), actual_ms) for *where, actual_ms in runs]
    before = half_width(rerun_correction(guess(scenario(*asked)), seen))
    candidate = guess(scenario(*more))
    after = after_run(guess(scenario(*asked)), seen, candidate)
    repeated = any(all(abs(one - two) < 1e-5 for one, two in zip(more, run[:2], strict=True)) for run in runs)
    assert after <= before + 1e-9 or repeated  # of one and the same scenario a run may show that there is more noise


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    folder = tmp_path_factory.mktemp("reruns")
    found = {}
    for suite, names in {"q9": ("base-0-00-jfr20", "base-0-01-none"), "q6": ("base-0-01-none",)}.items():
        for name in names:
            found[f"{suite} {name[-4:]}"] = query.profile(
                SWEEPS / suite / name, output=folder / f"{suite}-{name}.duckdb"
            )
    return found


def test_real_reruns_narrow_the_range_and_are_named(runs: dict[str, Run]) -> None:
    base, other = runs["q9 fr20"], Other("again", runs["q9 none"])
    alone, both = base.predict(cores="2x"), base.predict(cores="2x", reruns=[other])
    assert both.rerun_correction.predicted_ms == alone.predicted_ms
    assert [(each.run, each.setting) for each in both.rerun_correction.reruns] == [("again", "unchanged")]
    assert both.interval_ms[1] / both.interval_ms[0] < alone.interval_ms[1] / alone.interval_ms[0]
    advice = base.advise(["cores=2x", "executors=2x"])
    assert advice.questions == ("cores=2x", "executors=2x")
    assert "unchanged" in {each.setting for each in advice.runs}
    assert all(
        after <= now
        for each in advice.runs
        for after, now in zip(each.half_width_shares, advice.half_width_shares, strict=True)
    )


def test_run_of_other_work_is_refused_as_rerun(runs: dict[str, Run]) -> None:
    with pytest.raises(InputError, match="q6"):
        runs["q9 fr20"].predict(cores="2x", reruns=[Other("q6", runs["q6 none"])])


def test_run_is_not_a_rerun_of_itself(runs: dict[str, Run], tmp_path: Path) -> None:
    """By whatever file: without its recordings it is the same run, and would narrow the range for nothing."""
    base, again = runs["q9 fr20"], Other("again", runs["q9 none"])
    log = next((SWEEPS / "q9" / "base-0-00-jfr20").glob("*event*"))
    bare = Other("bare", query.profile(log, output=tmp_path / "bare.duckdb"))
    with pytest.raises(SettingError, match="bare"):
        base.predict(cores="2x", reruns=[again, bare])
    with pytest.raises(SettingError, match=r"twice.*again"):
        base.predict(cores="2x", reruns=[again, Other("twice", again.run)])


def test_rerun_whose_scenario_has_no_answer_is_ignored(runs: dict[str, Run]) -> None:
    far = Other("far", runs["q9 none"], ("cores=200x",))
    (refusal,) = runs["q9 fr20"].predict(cores="2x", reruns=[far]).refused
    assert isinstance(refusal, RerunNotPredicted)
    assert refusal.run == "far"
    assert [each.kind for each in refusal.refusals] == ["slots-out-of-range"]
