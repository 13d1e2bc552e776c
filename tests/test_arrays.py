"""Array operations are as numpy's."""

from __future__ import annotations

import math

import numpy as np
import pytest

from crystalperf.query.trace.arrays import median


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 100, 101])
def test_medians_are_those_of_numpy(count: int) -> None:
    chance = np.random.default_rng(count)
    for values in (
        chance.lognormal(3.0, 4.0, count),
        chance.integers(-5, 5, count),
        chance.integers(1 << 60, 1 << 62, count),
        np.where(chance.random(count) < 0.4, np.inf, 1.0),
    ):
        assert median(values) == np.median(values)
        assert median(values.tolist()) == np.median(values)
    assert math.isnan(median([*range(count), math.nan]))


def test_there_is_no_median_of_nothing() -> None:
    assert math.isnan(median([]))
