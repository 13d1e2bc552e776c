"""Collected metrics as Flink's own tables of the run file (schema.sql)."""

from __future__ import annotations

from collections.abc import Mapping

from crystalperf.query.frameworks.flink.series import COLUMNS, LATENCIES, OPERATOR, WORKER, Series
from crystalperf.query.trace.records import Columns, RunTables, table

_TABLES = {
    "flink_task_managers": "worker_id slots cores stated_cores",
    "flink_series": " ".join(("time_ms stage_id subtask", *COLUMNS)),
    "flink_loads": " ".join(("time_ms worker_id", *WORKER)),
    "flink_latencies": "time_ms source_stage operator_id stage_id subtask mean_ms median_ms p95_ms",
    "flink_operators": " ".join(("time_ms stage_id operator", *OPERATOR)),
}
_TEXTS = {"worker_id", "stage_id", "source_stage", "operator_id", "operator"}


def of_series(metrics: Series, start_ms: float, ids: Mapping[str, str]) -> RunTables:
    """The tables of metrics sampled once a second; `ids` has the stage of each vertex, times are since the start of the
    run.

    A table without rows is left out.
    """
    rows: dict[str, list[tuple[object, ...]]] = {name: [] for name in _TABLES}
    for worker, facts in metrics.workers.items():
        known = (_float(facts.get(name)) for name in ("slots", "cores", "stated_cores"))
        rows["flink_task_managers"].append((worker, *known))
    for sample in metrics.samples:
        time_ms = sample.time_ms - start_ms
        for vertex, values in sample.vertices.items():
            for index in range(max(map(len, values.values()), default=0) if vertex in ids else 0):
                columns = (_at(values.get(name), index) for name in COLUMNS)
                rows["flink_series"].append((time_ms, ids[vertex], index, *columns))
        for worker, load in sample.workers.items():
            if load:
                rows["flink_loads"].append((time_ms, worker, *(load.get(name) for name in WORKER)))
        for key, latency in sample.latencies.items():
            if key.count(".") == 2:
                source, operator, subtask = key.split(".")
                where = ids.get(source), operator, ids.get(operator), _float(subtask)
                rows["flink_latencies"].append(
                    (time_ms, *where, *(_at(latency, place) for place in range(len(LATENCIES))))
                )
        for vertex, operators in sample.operators.items():
            for name, counts in operators.items() if vertex in ids else ():
                columns = (_at(counts, place) for place in range(len(OPERATOR)))
                rows["flink_operators"].append((time_ms, ids[vertex], name, *columns))
    return {name: _table(names, rows[name]) for name, names in _TABLES.items() if rows[name]}


def _table(names: str, rows: list[tuple[object, ...]]) -> Columns:
    return table(names, rows, whole="subtask", real=" ".join({*names.split()} - _TEXTS - {"subtask"}))


def _at(values: list[float | None] | None, place: int) -> float | None:
    return values[place] if values is not None and place < len(values) else None


def _float(value: object) -> float | None:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
