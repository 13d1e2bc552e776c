"""Micro-batches: a stream that a framework processes as a sequence of small jobs, and the time of such a job.

    time of a batch = fixed_ms + row_ms × rows

The fixed part is planning, writing logs, commits and starting tasks; the other grows with the rows.  Both follow from
batches of different sizes by least squares.  If all batches have the same number of rows, they do not show how their
time splits: row_ms is then between 0 and all of the part that processes rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np

from crystalperf.indexes.frozen import frozen
from crystalperf.query.results.assumptions import Assumption
from crystalperf.query.trace.records import Floats

FEW = 5
"""Minimum batches from which their time can be split."""

BUSY = 0.95
"""Share of the time in batches from which one follows the other, so that the stream has no interval of its own."""

Z90 = 1.6449

SAME_ROWS = 0.05
"""Relative standard deviation of the rows of batches up to which all batches are alike."""

ROW_SD = 0.05
"""Relative standard deviation of the time of a row in larger or smaller batches than the recorded ones."""

UNSURE = 2.0
"""Ratio of the ends of the range of a row's time from which the highest rate is a lower bound."""

FARTHEST = 4.0
"""Ratio of the rows of a batch to those of the largest recorded batch, above which a rate is a lower bound."""


@frozen
class BatchStage:
    """A stage that every batch runs.

    Attributes:
        tasks: its number of tasks.
        wall_ms: its mean wall-clock time.
        start_ms: time of one of its tasks that does not depend on the rows, such as starting and committing state.
        row_ms: time of all its tasks together for one row of input.
        partitioned: whether its tasks are the partitions that a setting defines.
    """

    tasks: int
    wall_ms: float
    start_ms: float
    row_ms: float
    partitioned: bool

    def fixed_wall_ms(self, tasks: int, slots: float) -> float:
        """Wall-clock time without rows, of tasks that run in waves."""
        return math.ceil(tasks / slots) * self.start_ms

    def row_wall_ms(self, tasks: int, slots: float) -> float:
        """Wall-clock time for one row of input, of tasks that share its work evenly and run in waves."""
        return math.ceil(tasks / slots) * self.row_ms / tasks


@frozen
class BatchCost:
    """Time of a batch: `time_ms` with `rows`, and `row_ms` for each more; the 90 % range of row_ms is `row_range`.

    `mean_sd` is the standard error of time_ms, relative to it.
    """

    rows: float
    time_ms: float
    row_ms: float
    row_range: tuple[float, float]
    mean_sd: float

    @property
    def fixed_ms(self) -> float:
        return self.time_ms - self.row_ms * self.rows

    def of(self, rows: float) -> float:
        """The time of a batch with this number of rows, ms."""
        return self.fixed_ms + self.row_ms * rows

    def ends(self) -> tuple[BatchCost, BatchCost]:
        """The cost at both ends of the range of row_ms."""
        low, high = (replace(self, row_ms=each, row_range=(each, each)) for each in self.row_range)
        return low, high

    def at_rate(self, rate: float, least_ms: float) -> tuple[float, float] | None:
        """The interval between batches and the time of one, ms, at `rate` rows per ms; None if batches get ever longer.

        A batch begins `least_ms` after the previous one, or when that ends, and has the rows that arrived since then.
        """
        time_ms = self.of(rate * least_ms)
        if time_ms <= least_ms:
            return least_ms, time_ms
        share = rate * self.row_ms
        if share >= 1:
            return None
        time_ms = self.fixed_ms / (1 - share)
        return max(time_ms, least_ms), time_ms

    def plus(self, fixed_ms: float, row_ms: float) -> BatchCost:
        """The cost with that much more for each batch and for each row; no part falls below nothing."""
        row = max(self.row_ms + row_ms, 0.0)
        fixed = max(self.fixed_ms + fixed_ms, 0.0)
        low, high = (max(each + row_ms, 0.0) for each in self.row_range)
        return replace(self, time_ms=fixed + row * self.rows, row_ms=row, row_range=(low, high))


@frozen
class MicroBatches:
    """The batches of a stream after its warm-up, without those that had no rows.

    Attributes:
        query: the name of the stream.
        start_ms, rows, time_ms: by batch, in the order of their starts.
        parts_ms: mean time of the parts of a batch, by the framework's names.
        main: the name of the part that processes the rows.
        stages: the stages that every batch runs; empty if batches differ in them.
        slots: slots of all workers; None if unknown.
        falls_behind: whether more rows arrived than were processed.
        others: number of other streams in the run.
        repartitioned: an assumption about another number of partitions; None if there is none.
    """

    query: str
    start_ms: Floats
    rows: Floats
    time_ms: Floats
    parts_ms: Mapping[str, float]
    main: str
    stages: tuple[BatchStage, ...] = ()
    slots: float | None = None
    falls_behind: bool = False
    others: int = 0
    repartitioned: Assumption | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def interval_ms(self) -> float:
        """Mean time between the starts of two batches; NaN for fewer than two."""
        return float(np.diff(self.start_ms).mean()) if len(self) > 1 else math.nan

    @property
    def rate_per_s(self) -> float:
        """Rows per second; the rows of a batch arrived before it began.  NaN for fewer than two batches."""
        return 1e3 * float(self.rows[1:].mean()) / self.interval_ms if len(self) > 1 else math.nan

    @property
    def busy_share(self) -> float:
        """Share of the time in which a batch runs."""
        return float(self.time_ms[:-1].mean()) / self.interval_ms if len(self) > 1 else math.nan

    @property
    def least_interval_ms(self) -> float:
        """The interval that the trigger or the source sets; 0 if each batch begins when the previous one ends."""
        return 0.0 if self.busy_share >= BUSY else self.interval_ms

    @cached_property
    def cost(self) -> BatchCost:
        """The time of a batch by its rows, by least squares."""
        rows, time_ms = self.rows, self.time_ms
        mean_rows, mean_ms = float(rows.mean()), float(time_ms.mean())
        most = min(self.parts_ms.get(self.main, mean_ms), mean_ms) / mean_rows
        spread = rows - mean_rows
        square = float((spread**2).sum())
        if len(self) < FEW or square <= len(self) * (SAME_ROWS * mean_rows) ** 2:
            mean_sd = float(time_ms.std()) / mean_ms / math.sqrt(len(self))
            return BatchCost(mean_rows, mean_ms, most / 2, (0.0, most), mean_sd)
        slope = max(float((spread * time_ms).sum()) / square, 0.0)
        rest = time_ms - mean_ms - slope * spread
        residual = math.sqrt(float((rest**2).sum()) / (len(self) - 2))
        slope = _positive(slope, residual / math.sqrt(square))
        error = Z90 * math.hypot(residual / math.sqrt(square), ROW_SD * slope)
        low, row_ms, high = (min(each, most) for each in (max(slope - error, 0.0), slope, slope + error))
        return BatchCost(mean_rows, mean_ms, row_ms, (low, high), residual / mean_ms / math.sqrt(len(self)))

    @property
    def alike(self) -> bool:
        """Whether all batches have about the same number of rows, so that their time cannot be split."""
        return len(self) < FEW or float(self.rows.std()) <= SAME_ROWS * float(self.rows.mean())

    def changed(self, tasks: float, slots: float) -> BatchCost:
        """The time of a batch with these ratios of partitions and slots to the recorded ones.

        The modelled difference of each stage is scaled by its recorded time over its modelled one.
        """
        cost = self.cost
        if not self.slots or (tasks == 1 and slots == 1):
            return cost
        before, after = self.slots, max(self.slots * slots, 1.0)
        for each in self.stages:
            count = max(round(each.tasks * tasks), 1) if each.partitioned else each.tasks
            fixed_ms, row_ms = each.fixed_wall_ms(each.tasks, before), each.row_wall_ms(each.tasks, before)
            modelled_ms = fixed_ms + row_ms * cost.rows
            times = each.wall_ms / modelled_ms if modelled_ms > 0 else 0.0
            more_ms = each.fixed_wall_ms(count, after) - fixed_ms
            cost = cost.plus(times * more_ms, times * (each.row_wall_ms(count, after) - row_ms))
        return cost

    def highest_rate(self, cost: BatchCost) -> tuple[float, bool]:
        """The highest rate that batches of this cost sustain, rows per second, and whether it is a lower bound.

        It is one if the cost of a row may be anything, or if its batches would be far larger than recorded ones.
        """
        low, high = cost.row_range
        rate = 1e3 / cost.row_ms if cost.row_ms > 0 else math.inf
        if high > UNSURE * low or rate * self.interval_ms / 1e3 > FARTHEST * float(self.rows.max()):
            return (1e3 / high if high > 0 else math.inf), True
        return rate, False


def _positive(value: float, sd: float) -> float:
    """The mean of a normal distribution around `value`, at least 0, of which only the positive part is possible."""
    if sd <= 0:
        return value
    ratio = value / sd
    density = math.exp(-(ratio**2) / 2) / math.sqrt(2 * math.pi)
    return value + sd * density / (0.5 * (1 + math.erf(ratio / math.sqrt(2))))
