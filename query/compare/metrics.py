"""Metrics of a run that a budget may limit: ``metrics``."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Protocol

import duckdb

from crystalperf.indexes.frozen import frozen
from crystalperf.query import sql
from crystalperf.query.compare.noise import Measure
from crystalperf.query.results.answers import Debug, Header, Prediction, Sweep
from crystalperf.query.results.gate import Unit


class GatedRun(Protocol):
    """A run as crystalperf.query.run.Run."""

    def header(self) -> Header:
        """Name, framework, duration and size of the run."""

    def debug(self, scope: str = "all") -> Debug:
        """Where the time of a scope went."""

    def what_if(self, settings: tuple[str, ...]) -> Prediction | Sweep:
        """The prediction of settings."""

    def reading(self) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
        """A read-only connection to its run file."""


@frozen
class Metric:
    """A metric: its unit, and its meaning for a reader."""

    unit: Unit
    meaning: str


METRICS: Mapping[str, Metric] = {
    "runtime": Metric("ms", "from the start of the application to its end"),
    "step": Metric("ms", "mean duration of a step of a training"),
    "latency": Metric("ms", "mean time of a record of a stream"),
    "task_time": Metric("ms", "time of all tasks together"),
    "spill": Metric("bytes", "data that tasks wrote to disk because memory was short"),
    "exchanged": Metric("bytes", "data that tasks wrote for other tasks"),
    "input": Metric("bytes", "data read from storage or cache"),
    "output": Metric("bytes", "data written to storage"),
    "memory": Metric("bytes", "data in memory of the task that had most"),
    "gc": Metric("share", "garbage collection, of the time of tasks"),
    "failures": Metric("count", "attempts of tasks that failed"),
}
"""The metrics by their keys, in the order of help texts.  A framework has words for some of them (Advisor.metrics)."""

_STREAMED = ("latency", "throughput")


def metrics(run: GatedRun) -> dict[str, float | None]:
    """The metrics of a run by key, in their units; None if the run does not record one."""
    with run.reading() as connection:
        cursor = connection.execute(sql.text("gate_metrics"))
        names = [each[0] for each in cursor.description]
        found: dict[str, float | None] = dict(zip(names, cursor.fetchall()[0], strict=True))
    header, (measure, lasted_ms) = run.header(), duration(run)
    return found | {
        "runtime": header.duration_ms,
        "step": header.step_ms,
        "latency": lasted_ms if measure == "latency" else None,
    }


def duration(run: GatedRun) -> tuple[Measure, float]:
    """The measure of a run's speed, and its value, ms: of a training a step, of a stream the latency of a
    record or, at the highest rate, the time per record; else the runtime."""
    header = run.header()
    if header.step_ms:
        return "step", header.step_ms
    if header.measure in _STREAMED:
        debug = run.debug()
        if debug.measure in _STREAMED and debug.runtime_ms > 0:
            return ("latency" if debug.measure == "latency" else "throughput"), debug.runtime_ms
    return "runtime", header.duration_ms
