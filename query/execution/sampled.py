"""The sampled time of a scope by stack and stage, and the names of frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import duckdb
import numpy as np

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.resources import with_other
from crystalperf.query import sql
from crystalperf.query.execution.evidence import sampled_sums
from crystalperf.query.trace.records import Floats, Ints

if TYPE_CHECKING:
    from crystalperf.query.execution.execution import Execution

WAITING, UNKNOWN = "waiting", "unknown"
"""Kinds of sampled time besides the resources, in this order after them."""

_EXACT = 6
"""Decimals of sampled times before branches are ranked; finer digits depend on the order of summation."""

_NAMED = (
    (r":\d+$", ""),
    (r"(\$\$Lambda|LambdaForm\$\w+)[^\w].*\.([^.]+)$", r"\1.\2"),
    (r"(Generated\w+Accessor|\$Proxy)\d+", r"\1"),
)
"""Patterns that normalize frame names: without line numbers, and without the numbers of classes that a JVM generates.
Two JVMs number the same class differently, so their stacks would be separate trees."""


@frozen
class SampledRows:
    """Sampled time of a scope, a row for each stack and owner; see sql/sampled_stacks.sql.

    stacks      the ids of all stacks, sorted, (stacks,)
    place       position of the row's stack among them, (rows,)
    owner       position of the row's stage, -1 for the driver
    time_ms     (rows, kinds): a column for each resource, then waiting and unknown time
    square_ms2  variance of the row's time, if samples are independent
    """

    stacks: Ints
    place: Ints
    owner: Ints
    time_ms: Floats
    square_ms2: Floats


def sampled(connection: duckdb.DuckDBPyConnection, execution: Execution, stages: Sequence[str]) -> SampledRows:
    """The sampled time of a scope by stack, and by stage of `stages`."""
    names = with_other(execution.names)
    query = sql.text("sampled_stacks").format(sums=sampled_sums(execution.names))
    bounds = [execution.scope.start_ms, execution.scope.end_ms]
    rows = connection.execute(query, [*bounds, list(stages)]).fetchnumpy()
    stacks, place = np.unique(np.asarray(rows["stack_id"]).astype(np.int64), return_inverse=True)
    time = np.stack([np.asarray(rows[name], dtype=np.float64) for name in names], axis=1).round(_EXACT)
    waiting = np.where(np.asarray(rows["waits"]).astype(bool), time[:, -1], 0.0)
    table = np.column_stack([time[:, :-1], waiting, time[:, -1] - waiting])
    square = np.asarray(rows["square_ms2"], dtype=np.float64).round(_EXACT)
    return SampledRows(stacks, place, np.asarray(rows["owner"]).astype(np.int64), table, square)


def name_of(frame: str) -> str:
    """SQL: the normalized name of a frame."""
    for pattern, instead in _NAMED:
        frame = f"regexp_replace({frame}, '{pattern}', '{instead}')"
    return frame
