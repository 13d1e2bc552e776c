"""The rows of spark_python_times, spark_python_functions and spark_python_memory, while profiles are read."""

from __future__ import annotations

from dataclasses import dataclass, field

from crystalperf.indexes.resources import OTHER
from crystalperf.query.frameworks.spark.python.memory_lines import MemoryLine, as_table
from crystalperf.query.frameworks.spark.python.worker_frames import Part
from crystalperf.query.inputs.reader import StackLabel
from crystalperf.query.trace.records import RunTables, table

_ROUNDING = 1e-6
"""Shares of an index have 32 bits."""


@dataclass
class FunctionTime:
    """The time of a user's function in a stage, and of each of its lines."""

    calls: int | None = None
    own_ms: float = 0.0
    total_ms: float = 0.0
    lines_ms: dict[int, float] = field(default_factory=dict)


@dataclass
class PythonTables:
    """The rows of the tables."""

    times: dict[tuple[str, str | None, Part, str, str, str], float] = field(default_factory=dict)
    functions: dict[tuple[str, str, str, str, str, str], FunctionTime] = field(default_factory=dict)
    memory: list[MemoryLine] = field(default_factory=list)
    labels: dict[tuple[str, str, str | None, str, str], float] = field(default_factory=dict)

    def add_time(self, key: tuple[str, str | None, Part, str, str, str], ms: float) -> None:
        self.times[key] = self.times.get(key, 0.0) + ms

    def add_label(self, function: tuple[str, str], label: StackLabel | None, origin: str, ms: float) -> None:
        """Share time of a user's function, (stage, name), out to the resources of its label."""
        shares = {} if label is None else {name: share for name, share in label.shares.items() if share > 0}
        unknown = max(1.0 - sum(shares.values()), 0.0)
        for resource, share in (*shares.items(), (OTHER, unknown)):
            if share > _ROUNDING:
                key = *function, None if label is None else label.index_name, resource, origin
                self.labels[key] = self.labels.get(key, 0.0) + share * ms

    def tables(self) -> RunTables:
        rows = [(*key, ms) for key, ms in self.times.items() if ms > 0]
        ordered = sorted(self.functions.items(), key=lambda each: (each[0][0], -each[1].own_ms))
        functions = [
            (*key, max(each.lines_ms, key=each.lines_ms.__getitem__, default=0) or None, each.calls, each.own_ms,
             each.total_ms)
            for key, each in ordered
        ]  # fmt: skip
        return {
            "spark_python_times": table(
                "stage_id worker_id part matched_by recorder origin time_ms", rows, real="time_ms"
            ),
            "spark_python_functions": table(
                "stage_id udf function file recorder origin line calls own_ms total_ms", functions,
                whole="line calls", real="own_ms total_ms",
            ),
            "spark_python_memory": as_table(self.memory),
            "spark_python_labels": table(
                "stage_id function index_name resource origin time_ms",
                [(*key, ms) for key, ms in self.labels.items()], real="time_ms",
            ),
        }  # fmt: skip
