"""Labels of tasks whose functions the trace itself names."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest

from crystalperf.query.attribution.code.decide import NumberedStacks
from crystalperf.query.attribution.stated_functions import CERTAIN, LIKELY, LONG_MS, labelled
from crystalperf.query.frameworks.registry import get
from crystalperf.query.trace.contract import Bounds

NAMES = ("cpu", "disk", "net")
BOTH, LIKELY_DISK, UNKNOWN = range(3)


@pytest.mark.parametrize(
    ("slot_ms", "function", "reported"),
    [
        (LONG_MS, BOTH, (0, 0, 9, 0)),  # on either by its share alone, so on what it is more likely on
        (LONG_MS / 2, BOTH, (8, 0, 0, 1)),
        (LONG_MS, LIKELY_DISK, (0, 9, 0, 0)),
        (LONG_MS / 2, LIKELY_DISK, (0, 9, 0, 0)),
        (float("nan"), LIKELY_DISK, (0, 9, 0, 0)),
        (float("nan"), BOTH, (8, 0, 0, 1)),
        (LONG_MS, UNKNOWN, (8, 0, 0, 1)),
        (LONG_MS, -1, (8, 0, 0, 1)),
    ],
)
def test_likely_time_is_on_the_device_that_a_function_is_for(
    slot_ms: float, function: int, reported: tuple[float, ...]
) -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE stacks (stack_id INTEGER, cpu DOUBLE, disk DOUBLE, net DOUBLE)")
    rows = [(BOTH, 0.05, LIKELY, LIKELY + 0.02), (LIKELY_DISK, 0.3, CERTAIN, 0.0), (UNKNOWN, None, None, None)]
    connection.executemany("INSERT INTO stacks VALUES (?, ?, ?, ?)", rows)
    none = np.zeros((2, 4))
    bounds = Bounds(np.array([slot_ms, 5.0]), none, np.array([[8.0, 0, 0, 1], [3.0, 0, 0, 0]]), none)
    found = labelled(connection, bounds, np.array([function, -1]), NAMES)
    assert found.likely_ms.tolist() == [list(reported), [3, 0, 0, 0]]
    assert bounds.likely_ms[0].tolist() == [8, 0, 0, 1]


def test_function_has_the_number_of_its_stack_and_missing_ones_have_none() -> None:
    table = NumberedStacks(get("pytorch"))
    read = ("a.py", "read", 3)
    numbers = table.add_functions([None, read, ("a.py", "read", -1), read, ("a.py", "far", 2**40)])
    assert numbers.tolist() == [-1, 0, 1, 0, 2]
    assert list(table.frames) == [read, ("a.py", "read", 0), ("a.py", "far", 2**31 - 1)]
    assert len(table.truncated) == len(table.stacks) == 3
