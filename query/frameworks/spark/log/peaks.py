"""Peaks of executors' memory, by executor and stage attempt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import astuple, fields

from crystalperf.query.frameworks.spark.log import events as spark
from crystalperf.query.trace.records import LARGEST

Place = tuple[str, int | None, int]
"""Executor, stage and attempt; the stage is None if the metrics are not of one."""

Values = tuple[float, ...]
"""In the order of NAMES."""

NAMES = tuple(each.name for each in fields(spark.ExecutorMetrics))
"""The columns, in the order of the event's fields."""


class Peaks(dict[Place, Values]):
    """The largest value of each metric, by place.  Metrics that Spark never polled are left out."""

    def add(
        self, executor: str | None, stage: float | None, attempt: float | None, metrics: spark.ExecutorMetrics
    ) -> None:
        if not executor or not metrics.jvm_heap_bytes:
            return
        values = _valid(astuple(metrics))
        if values[0]:  # the heap, -1 for a task that failed before Spark polled
            place = executor, spark.whole_number(stage), spark.whole_number(attempt) or 0
            self.merge([(place, values)])

    def merge(self, found: Iterable[tuple[Place, Values]]) -> None:
        for place, values in found:
            known = self.get(place)
            self[place] = values if known is None else tuple(map(max, known, values))

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Executor, stage, attempt, and the metrics."""
        for place, values in self.items():
            yield *place, *values


def _valid(values: tuple[float | None, ...]) -> Values:
    return tuple(each if each is not None and 0 <= each < LARGEST else 0.0 for each in values)
