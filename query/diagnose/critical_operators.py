"""The critical path by operator, for stages that run different operators one after the other.

A training step has hundreds of short path segments; the operators in them show where the time goes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import duckdb
import numpy as np

from crystalperf.indexes.resources import with_other
from crystalperf.query import sql
from crystalperf.query.execution.execution import Execution
from crystalperf.query.results.answers import PathItem, PathOperator
from crystalperf.query.trace.arrays import safe_divide
from crystalperf.query.trace.records import Floats


def path_by_operator(
    connection: duckdb.DuckDBPyConnection, execution: Execution, path: Sequence[PathItem]
) -> tuple[PathOperator, ...]:
    """Wall-clock time of the critical path by operator, the most first; empty if the tasks of a stage are alike.

    A segment's time on a resource is divided among the operators of its stage by their own time on that resource.  If
    they have none, or the segment belongs to no stage, the time stays under the segment's name.
    """
    if not execution.in_order:
        return ()
    return path_by(connection, execution, path, sql.text("stage_operators"))


def path_by(
    connection: duckdb.DuckDBPyConnection, execution: Execution, path: Sequence[PathItem], question: str
) -> tuple[PathOperator, ...]:
    """The same by other names; `question` has the parameters and rows of query/sql/stage_operators.sql."""
    names = with_other(execution.names)
    of_stages: dict[str, dict[str, Floats]] = defaultdict(dict)
    asked = question.format(names=", ".join(f"{name}_ms" for name in names))
    for stage, operator, *parts in connection.execute(asked, {"stages": [each.id for each in path]}).fetchall():
        of_stages[stage][operator] = of_stages[stage].get(operator, 0.0) + np.array(parts)
    times: dict[str, Floats] = defaultdict(lambda: np.zeros(len(names)))
    segments: dict[str, set[str]] = defaultdict(set)
    for item in path:
        left = np.array([item.resource_ms[name] for name in names])
        operators = of_stages.get(item.id, {})
        whole: Floats = np.sum([np.zeros(len(names)), *operators.values()], axis=0)
        for operator, own in operators.items():
            share = safe_divide(own, whole)
            if (share > 0).any():
                times[operator] += share * left
                segments[operator].add(item.id)
        left[whole > 0] = 0.0
        if left.any():
            times[item.name] += left
            segments[item.name].add(item.id)
    ranked = sorted(times.items(), key=lambda each: (-each[1].sum(), each[0]))
    return tuple(
        PathOperator(name, len(segments[name]), dict(zip(names, parts.tolist(), strict=True)))
        for name, parts in ranked
        if parts.sum() > 0
    )
