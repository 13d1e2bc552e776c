"""Array operations: as numpy's, and their values do not depend on which way is the fastest for the size of arrays."""

from __future__ import annotations

import math

import numpy as np
import pytest

from crystalperf.query.trace.arrays import FEW, by_number, median, medians, order_within, safe_divide


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 100, 101])
def test_medians_are_those_of_numpy(count: int) -> None:
    random = np.random.default_rng(count)
    for values in (
        random.lognormal(3.0, 4.0, count),
        random.integers(-5, 5, count),
        random.integers(1 << 60, 1 << 62, count),
        np.where(random.random(count) < 0.4, np.inf, 1.0),
    ):
        assert median(values) == np.median(values)
        assert median(values.tolist()) == np.median(values)
    assert math.isnan(median([*range(count), math.nan]))


def test_there_is_no_median_of_nothing() -> None:
    assert math.isnan(median([]))


@pytest.mark.parametrize("each", [1, FEW - 1, FEW, 40])
def test_medians_of_groups_are_those_of_their_rows(each: int) -> None:
    random = np.random.default_rng(each)
    group = random.permutation(np.repeat([0, 1, 3], each))
    columns = random.integers(0, 9, (len(group), 2)).astype(np.float64)
    found = medians(group, columns, 4)
    assert np.isnan(found[2]).all()
    for number in (0, 1, 3):
        assert found[number].tolist() == np.median(columns[group == number], axis=0).tolist()


@pytest.mark.parametrize("each", [1, 40])
def test_groups_are_sorted_by_themselves(each: int) -> None:
    values = np.random.default_rng(each).random(3 * each + 1)
    rows = np.array([each, 0, 2 * each, 1])
    begin = np.cumsum(rows) - rows
    expected = [sorted(values[first : first + count]) for first, count in zip(begin, rows, strict=True)]
    assert values[order_within(values, rows)].tolist() == [value for part in expected for value in part]


@pytest.mark.parametrize("least", [-1, 0, 1 << 16])
def test_equal_numbers_keep_their_order(least: int) -> None:
    number = np.array([2, 0, 2, 1, 0]) + least
    assert by_number(number).tolist() == [1, 4, 3, 0, 2]


def test_quotients_where_the_divisor_is_above_zero() -> None:
    part = np.array([1.0, 2.0, 0.0])
    assert safe_divide(part, np.array([2.0, 4.0, 1.0])).tolist() == [0.5, 0.5, 0.0]
    assert safe_divide(part, np.array([2.0, 0.0, 0.0]), 1.0).tolist() == [0.5, 1.0, 1.0]
    assert safe_divide(part, np.array([0.0, -1.0, 0.0]), 3.0).tolist() == [3.0, 3.0, 3.0]
    assert safe_divide(np.empty(0), np.empty(0)).tolist() == []
