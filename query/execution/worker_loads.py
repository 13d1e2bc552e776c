"""CPU and network load of processes as recordings measured it, as arrays."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import numpy as np
from numpy.typing import NDArray

from crystalperf.indexes.frozen import frozen
from crystalperf.query import sql
from crystalperf.query.execution.clock import Clock
from crystalperf.query.execution.execution import ScopeTime
from crystalperf.query.trace.records import Floats, Ints


@frozen
class Loads:
    """Load measurements of processes, (measurements,) each: the worker, the measured interval, and the cores in use.

    `quota` is the CPU quota of the container, cores, and `throttled` the share of the quota's periods in which it was
    used up; `received_per_s` are received bytes of the network per second.  All three are NaN if not measured.
    `has_tasks` is whether any task ran on the worker in the interval; worker -1 is another process, such as the
    driver.
    """

    worker: Ints
    since_ms: Floats
    until_ms: Floats
    cores: Floats
    quota: Floats
    throttled: Floats
    received_per_s: Floats
    has_tasks: NDArray[np.bool_]


def measured_loads(
    connection: duckdb.DuckDBPyConnection, scope: ScopeTime, clock: Clock, workers: Mapping[str, int]
) -> Loads:
    """The load measurements within a scope, by the clock.

    Outside of the scope workers may have had more or less: a container's quota changes, other load comes and goes.
    """
    if not sql.has_rows(connection, "loads"):
        none = np.empty(0)
        return Loads(np.empty(0, dtype=np.int64), none, none, none, none, none, none, np.empty(0, dtype=np.bool_))
    columns = connection.execute(sql.text("worker_loads"), {"begin": scope.start_ms, "end": scope.end_ms}).fetchnumpy()

    def column(name: str) -> Floats:
        return np.ma.filled(np.ma.asarray(columns[name], dtype=np.float64), np.nan)

    return Loads(
        worker=np.array([workers.get(name, -1) for name in columns["worker_id"].tolist()], dtype=np.int64),
        since_ms=clock.at(column("since_ms")),
        until_ms=clock.at(column("time_ms")),
        cores=column("cpu_cores"),
        quota=column("quota_cores"),
        throttled=column("throttled"),
        received_per_s=column("received_bytes_per_s"),
        has_tasks=np.asarray(columns["has_tasks"], dtype=np.bool_),
    )
