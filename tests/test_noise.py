"""Whether two sides of repeated runs differ by more than noise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from crystalperf.query.compare.noise import deviations_of_median, difference, kind_of, of_median, quantile, usual

KIND = kind_of("spark", "runtime")


@pytest.mark.parametrize(("freedom", "expected"), [(2.0, 2.920), (3.0, 2.353), (11.0, 1.796), (3.7, 2.182)])
def test_quantiles_are_those_of_students_t(freedom: float, expected: float) -> None:
    assert quantile(0.95, freedom) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("runs", [1, 2, 3, 4, 5, 8, 15])
def test_medians_of_normal_values_have_the_stated_variance(runs: int) -> None:
    drawn = np.random.default_rng(1).standard_normal((60_000, runs))
    middle = np.median(drawn, axis=1)
    assert of_median(runs) == pytest.approx(middle.var(), rel=0.03)
    assert deviations_of_median(runs) == pytest.approx(((drawn - middle[:, None]) ** 2).mean(), rel=0.03)


def test_one_run_a_side_uses_the_usual_spread() -> None:
    found = difference([100.0], [110.0], KIND)
    assert (found.source, found.verdict) == ("typical spread", "no change")
    assert found.ratio == pytest.approx(1.1)
    wide = usual(KIND).deviation * math.sqrt(2) * quantile(0.95, usual(KIND).weight)
    assert math.log(found.ratio_high / found.ratio) == pytest.approx(wide)
    assert found.ratio_low * found.ratio_high == pytest.approx(found.ratio**2)


def test_quiet_repeated_runs_narrow_the_range() -> None:
    alone = difference([100.0], [103.0], KIND)
    repeated = difference([100.0, 100.2, 99.9, 100.1, 99.8], [103.0, 103.1, 102.8, 103.2, 102.9], KIND)
    assert repeated.source == "repeated runs"
    assert repeated.ratio_high - repeated.ratio_low < (alone.ratio_high - alone.ratio_low) / 3


def test_noisy_repeated_runs_widen_the_range() -> None:
    noisy = difference([60.0, 100.0, 150.0], [70.0, 130.0, 170.0], KIND)
    assert noisy.verdict == "no change"
    assert noisy.ratio_high / noisy.ratio_low > 2


@pytest.mark.parametrize(("after", "verdict"), [(130.0, "longer"), (77.0, "shorter"), (101.0, "no change")])
def test_a_change_of_all_runs_is_seen(after: float, verdict: str) -> None:
    steady = (0.98, 1.0, 1.01, 1.03, 0.99)
    found = difference([100 * each for each in steady], [after * each for each in steady], KIND)
    assert found.verdict == verdict
    assert (found.before_ms, found.after_ms) == (pytest.approx(100), pytest.approx(after))


def test_one_slow_run_neither_alarms_nor_hides_a_change() -> None:
    steady = [98.0, 100.0, 101.0, 103.0]
    assert difference([*steady, 99.0], [*steady, 250.0], KIND).verdict == "no change"
    assert difference([*steady, 250.0], [1.3 * each for each in [*steady, 99.0]], KIND).verdict == "longer"


def test_an_unknown_kind_has_the_spread_of_all() -> None:
    assert usual("unheard runtime") == usual("* *")


@pytest.mark.parametrize(("before", "after"), [([], [1.0]), ([1.0], []), ([0.0], [1.0]), ([1.0], [-1.0])])
def test_a_side_needs_a_duration(before: list[float], after: list[float]) -> None:
    with pytest.raises(ValueError, match="above 0"):
        difference(before, after, KIND)
