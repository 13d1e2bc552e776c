"""CPU time of an engine's own threads, which Spark's metrics of tasks lack.

Comet runs a stage that only reads files in threads of its own: the task's thread sleeps, with hardly any CPU time (in
the lab 0.05 s of 16 s).  The operators' own metrics have the time.  Their compute time beyond the CPU time of a stage's
tasks counts as CPU time of these tasks, in proportion to their time that nothing else explains.
"""

from __future__ import annotations

import numpy as np

from crystalperf.query.frameworks.spark.engines import engine_of
from crystalperf.query.trace.records import Columns, Floats, numbers


def with_engine_cpu(tasks: Columns, operators: Columns, metrics: Columns) -> Columns:
    """Tasks with the CPU time of engines' threads in `run_cpu_ms`; where that is unknown, it stays so."""
    computed_ms = _computed_ms(operators, metrics)
    if not computed_ms:
        return tasks
    known = np.ma.filled(np.ma.asarray(tasks["run_cpu_ms"], dtype=np.float64), np.nan)
    return {**tasks, "run_cpu_ms": numbers(known + _apart_ms(computed_ms, tasks))}


def _apart_ms(computed_ms: dict[tuple[int, int], float], tasks: Columns) -> Floats:
    """The time of each task on the CPU in other threads than its own, ms."""
    stage, attempt = (np.asarray(tasks[name], dtype=np.int64) for name in ("stage_id", "stage_attempt"))
    cpu_ms = _column(tasks, "run_cpu_ms") + _column(tasks, "gc_ms")
    blocked_ms = _column(tasks, "fetch_wait_ms") + _column(tasks, "shuffle_write_ms")
    idle_ms = np.maximum(_column(tasks, "run_ms") - cpu_ms - blocked_ms, 0.0)
    found = np.zeros(len(stage))
    for (stage_id, number), computed in computed_ms.items():
        own = (stage == stage_id) & (attempt == number)
        idle = float(idle_ms[own].sum())
        if idle > 0:
            found[own] = idle_ms[own] * min(max(computed - float(cpu_ms[own].sum()), 0.0) / idle, 1.0)
    return found


def _computed_ms(operators: Columns, metrics: Columns) -> dict[tuple[int, int], float]:
    """By stage attempt, the time in which operators of engines computed on CPUs.

    An operator that a reused exchange repeats has the same metrics, and counts once.
    """
    ids = zip(operators["sql_id"].tolist(), operators["node_id"].tolist(), strict=True)
    names = {
        each: name for each, name in zip(ids, operators["name"].tolist(), strict=True) if engine_of(name) is not None
    }
    by_operator: dict[tuple[int, int, int, int], dict[str, float]] = {}
    keys = ("sql_id", "node_id", "stage_id", "stage_attempt")
    places = zip(*(metrics[name].tolist() for name in keys), strict=True) if names else ()
    for place, name, value in zip(places, metrics["name"].tolist(), metrics["value"].tolist(), strict=False):
        if place[:2] in names:
            by_operator.setdefault(place, {})[name] = value
    found: dict[tuple[int, int], float] = {}
    seen: set[tuple[object, ...]] = set()
    for (sql_id, node_id, stage, attempt), values in by_operator.items():
        name = names[sql_id, node_id]
        same = sql_id, stage, attempt, name, tuple(sorted(values.items()))
        engine = engine_of(name)
        if engine is not None and same not in seen:
            seen.add(same)
            computed = engine.computing.own_ms(values)
            if computed > 0:
                found[stage, attempt] = found.get((stage, attempt), 0.0) + computed
    return found


def _column(tasks: Columns, name: str) -> Floats:
    return np.nan_to_num(np.ma.filled(np.ma.asarray(tasks[name], dtype=np.float64), np.nan))
