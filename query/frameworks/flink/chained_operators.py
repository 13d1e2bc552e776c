"""Time of a vertex' subtasks by chained operator, from their samples.

Each operator of a chain calls the next one through an output of Flink's.  So the number of these outputs on a stack is
the position in the chain of the operator that works.
"""

from __future__ import annotations

import duckdb
import numpy as np

from crystalperf.indexes.resources import with_other
from crystalperf.query.frameworks import Operators
from crystalperf.query.trace.records import Columns, Floats, integers, objects

_PUSHED = r"\.(Chaining|CopyingChaining)Output\.pushToOperator(:|$)"

STARTING, WAITING, UNKNOWN = "starting", "waiting for other subtasks", "not known"
"""Categories of subtasks' time on no resource; Flink itself measured the first two."""


def chained(vertex: str) -> tuple[str, ...]:
    """The operators of a vertex in chain order, from its name; a single one if they are not one linear chain."""
    names = tuple(vertex.split(" -> "))
    return (vertex,) if "(" in vertex or len(names) == 1 else names


def times(connection: duckdb.DuckDBPyConnection, names: tuple[str, ...], sampled: bool) -> Columns:
    """The table operator_times; empty without samples, because nothing else separates the operators of a chain.

    Starting a stream's subtasks is on no resource (trace.py); in other jobs it is split in the proportions of the rest.
    """
    columns = with_other(names)
    sums = ", ".join(f"sum(tasks.{name}_ms)" for name in columns)
    streams = "(SELECT coalesce(properties['stream'], '') = 'true' FROM runs)"
    rows = connection.execute(
        f"""
        SELECT tasks.stage_id, any_value(stages.name), any_value(stages.scope_id),
            sum(least(coalesce(tasks.overhead_ms, 0), tasks.other_ms)
                * CASE WHEN {streams} THEN 1
                       ELSE tasks.other_ms / greatest(tasks.finish_ms - tasks.launch_ms, 1e-9) END),
            sum(coalesce(tasks.pipeline_wait_ms, 0)), {sums}
        FROM tasks JOIN stages USING (stage_id) GROUP BY tasks.stage_id ORDER BY any_value(priority)
        """
    ).fetchall()
    seen = _seen(connection, names)
    found: list[tuple[str, str | None, int | None, str, str, Floats]] = []
    node = 0
    for stage, vertex, scope, starting_ms, pipeline_wait_ms, *whole_ms in rows if sampled else ():
        parts, operators, nothing = np.array(whole_ms), chained(vertex or stage), np.zeros(len(columns))
        shares = np.stack([seen.get((stage, place), nothing[:-1]) for place in range(len(operators))])
        whole = shares.sum(axis=0)
        mixture = np.divide(shares, whole, out=np.zeros_like(shares), where=whole > 0)
        mixture[:, whole <= 0] = (shares.sum(axis=1) / max(shares.sum(), 1e-9))[:, None]
        if not shares.any():
            mixture[0] = 1.0
        for operator, share in zip(operators, mixture, strict=True):
            own = np.append(share * parts[:-1], 0.0)
            found.append((stage, scope, node, operator, "samples", own))
            node += 1
        waited_ms = min(pipeline_wait_ms, parts[-1] - starting_ms)
        left_ms = parts[-1] - starting_ms - waited_ms
        reasons = (
            (STARTING, "task metrics", starting_ms),
            (WAITING, "stream metrics", waited_ms),
            (UNKNOWN, "nothing", left_ms),
        )
        for name, basis, ms in reasons:
            if ms > 0:
                found.append((stage, scope, None, name, basis, np.append(nothing[:-1], ms)))
    times_ms = np.array([each[5] for each in found]).reshape(len(found), len(columns))
    return {
        "stage_id": objects([each[0] for each in found]),
        "scope_id": objects([each[1] for each in found]),
        "node_id": integers([each[2] for each in found]),
        "name": objects([each[3] for each in found]),
        "basis": objects([each[4] for each in found]),
        **{f"{name}_ms": times_ms[:, place] for place, name in enumerate(columns)},
    }


def _seen(connection: duckdb.DuckDBPyConnection, names: tuple[str, ...]) -> dict[tuple[str, int], Floats]:
    """By stage and position in its chain, sampled time on each resource, (resources,).

    The last position takes the samples beyond it.  A stack that no function decides counts as CPU, as most samples of
    running code are.
    """
    sums = ", ".join(f"sum(weight_ms * coalesce(chained.{name}, {float(name == 'cpu')}))" for name in names)
    rows = connection.execute(
        f"""
        WITH chained AS (
            SELECT *, len(list_filter(frames, lambda frame: regexp_matches(frame, $1))) AS pushed FROM stacks
        )
        SELECT tasks.stage_id, any_value(stages.name), pushed, {sums}
        FROM samples JOIN chained USING (stack_id) JOIN tasks USING (task_id) JOIN stages USING (stage_id)
        WHERE samples.kind NOT IN ('park', 'wait', 'sleep', 'waking')
        GROUP BY tasks.stage_id, pushed
        """,
        [_PUSHED],
    ).fetchall()
    found: dict[tuple[str, int], Floats] = {}
    for stage, vertex, pushed, *parts in rows:
        place = stage, min(pushed, len(chained(vertex or stage)) - 1)
        found[place] = found.get(place, np.zeros(len(names))) + np.array(parts)
    return found


OPERATORS = Operators(of_frame=lambda _class_name, _method: None, times=times)
