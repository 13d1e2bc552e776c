"""Collected metrics as tables of the run file, in Flink's own words (schema.sql)."""

from __future__ import annotations

from collections.abc import Mapping

from crystalperf.query.frameworks.flink.series import COLUMNS, LATENCIES, OPERATOR, WORKER, Series
from crystalperf.query.trace.records import RunTables, integers, numbers, objects


def of_series(looks: Series, start_ms: float, ids: Mapping[str, str]) -> RunTables:
    """The tables of what was looked at once a second; `ids` has the group of each vertex, times are since the start."""
    rows = [
        (sample.time_ms - start_ms, ids[vertex], index, sample.vertices[vertex], index)
        for sample in looks.samples
        for vertex in sample.vertices
        if vertex in ids
        for index in range(max((len(each) for each in sample.vertices[vertex].values()), default=0))
    ]
    loads = [
        (sample.time_ms - start_ms, worker, values)
        for sample in looks.samples
        for worker, values in sample.workers.items()
        if values
    ]
    latencies = [
        (sample.time_ms - start_ms, key.split("."), values)
        for sample in looks.samples
        for key, values in sample.latencies.items()
        if key.count(".") == 2
    ]
    operators = [
        (sample.time_ms - start_ms, ids[vertex], name, values)
        for sample in looks.samples
        for vertex, mine in sample.operators.items()
        if vertex in ids
        for name, values in mine.items()
    ]
    found: RunTables = {}
    if looks.workers:
        found["flink_task_managers"] = {
            "worker_id": objects(list(looks.workers)),
            **{
                name: numbers([_float(each.get(name)) for each in looks.workers.values()])
                for name in ("slots", "cores", "stated_cores")
            },
        }
    if rows:
        found["flink_series"] = {
            "time_ms": numbers([each[0] for each in rows]),
            "group_id": objects([each[1] for each in rows]),
            "subtask": integers([each[2] for each in rows]),
            **{name: numbers([_at(each[3].get(name), each[4]) for each in rows]) for name in COLUMNS},
        }
    if loads:
        found["flink_loads"] = {
            "time_ms": numbers([each[0] for each in loads]),
            "worker_id": objects([each[1] for each in loads]),
            **{name: numbers([each[2].get(name) for each in loads]) for name in WORKER},
        }
    if latencies:
        found["flink_latencies"] = {
            "time_ms": numbers([each[0] for each in latencies]),
            "source_group": objects([ids.get(each[1][0]) for each in latencies]),
            "operator_id": objects([each[1][1] for each in latencies]),
            "group_id": objects([ids.get(each[1][1]) for each in latencies]),
            "subtask": integers([_float(each[1][2]) for each in latencies]),
            **{
                name: numbers([_at(each[2], place) for each in latencies])
                for place, name in enumerate(("mean_ms", "median_ms", "p95_ms"))
            },
        }
        assert len(LATENCIES) == 3
    if operators:
        found["flink_operators"] = {
            "time_ms": numbers([each[0] for each in operators]),
            "group_id": objects([each[1] for each in operators]),
            "operator": objects([each[2] for each in operators]),
            **{name: numbers([_at(each[3], place) for each in operators]) for place, name in enumerate(OPERATOR)},
        }
    return found


def _at(values: list[float | None] | None, place: int) -> float | None:
    return values[place] if values is not None and place < len(values) else None


def _float(value: object) -> float | None:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
