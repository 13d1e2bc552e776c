"""Comparison of the hosts of each stage: how long tasks took on a host and on the others, by resource."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import numpy as np

from crystalperf.indexes.frozen import frozen
from crystalperf.query import sql
from crystalperf.query.execution.execution import Execution
from crystalperf.query.trace.arrays import by_number, order_within
from crystalperf.query.trace.records import Floats, Ints

MAX_HOSTS = 200
"""Maximum hosts of a stage that are compared; each is compared with all others."""


@frozen
class HostTime:
    """Median time on one resource of a stage's tasks on one host, and of its tasks on all other hosts."""

    stage: str
    host: str
    resource: str
    tasks: int
    median_ms: float
    others_ms: float
    median_bytes: float
    others_bytes: float
    others_duration_ms: float


@frozen
class HostTimes:
    """The host times of all stages that ran on several hosts, by resource.

    `rows` are pairs of a stage and a host, with the number of its tasks there, in order.  Each median time is
    (resources, rows), in ms; medians of bytes and durations are (rows,).
    """

    resources: tuple[str, ...]
    rows: Sequence[tuple[str, str, int]]
    median_ms: Floats
    others_ms: Floats
    median_bytes: Floats
    others_bytes: Floats
    others_duration_ms: Floats

    def of(self, resource: int, row: int) -> HostTime:
        """The time of one host in one stage on the resource of that number."""
        stage, host, tasks = self.rows[row]
        medians = (each[resource, row] for each in (self.median_ms, self.others_ms))
        more = (each[row] for each in (self.median_bytes, self.others_bytes, self.others_duration_ms))
        return HostTime(stage, host, self.resources[resource], tasks, *map(float, (*medians, *more)))


def host_times(connection: duckdb.DuckDBPyConnection, execution: Execution) -> HostTimes:
    """The times of the hosts of all stages that ran on several, by resource in the order of their names.

    No host is faster or slower on `other`: that time needs none of its resources.
    """
    names, bounds = tuple(sorted(execution.names)), {"begin": execution.scope.start_ms, "end": execution.scope.end_ms}
    compared = sql.text("compared_hosts").format(most_hosts=MAX_HOSTS)
    hosts = connection.execute(compared, bounds).fetchall()
    if not hosts:
        return HostTimes(names, (), *(np.empty((len(names), 0)) for _ in range(2)), *(np.empty(0) for _ in range(3)))
    parts = ", ".join(f"coalesce({name}_ms, 0) AS {name}_ms" for name in names)
    query = sql.text("host_tasks").format(hosts=compared, resources=parts)
    columns = connection.execute(query, bounds).fetchnumpy()
    whose = Split(columns.pop("number"), columns.pop("of_stage"), len(hosts))
    _, others_duration_ms = whose.medians(columns.pop("duration_ms"))
    own_bytes, others_bytes = whose.medians(columns.pop("read_bytes"))
    median_ms, others_ms = zip(*(whose.medians(columns.pop(f"{name}_ms")) for name in names), strict=True)
    return HostTimes(
        names, hosts, np.stack(median_ms), np.stack(others_ms), own_bytes, others_bytes, others_duration_ms
    )


class Split:
    """Leave-one-part-out medians: of the rows of each part of a stage, and of all the other rows of that stage.

    Without a part, the middle of a sorted stage moves by as many rows as the part has before it.  So each stage is
    sorted once, not once for each part.
    """

    def __init__(self, part: Ints, stage: Ints, parts: int) -> None:
        """`part` of each row, −1 for rows of no part, and its `stage`, from 0 on, (rows,).

        Each part has at least one row, and so has the rest of its stage.
        """
        self._by_stage, self._of_stages = by_number(stage), np.bincount(stage)
        self._part = part[self._by_stage]
        self._rows = np.bincount(part[part >= 0], minlength=parts)
        self._begin = np.cumsum(self._rows) - self._rows
        of_part = np.zeros(parts, dtype=np.int64)
        of_part[part[part >= 0]] = stage[part >= 0]
        self._stage_begin = (np.cumsum(self._of_stages) - self._of_stages)[of_part]
        self._others = self._of_stages[of_part] - self._rows

    def medians(self, values: Floats) -> tuple[Floats, Floats]:
        """The medians of each part's rows, and of the other rows of its stage, (parts,)."""
        ordered = values[self._by_stage]
        order = order_within(ordered, self._of_stages)
        ordered, part = ordered[order], self._part[order]
        place = np.flatnonzero(part >= 0)
        place = place[by_number(part[place])]
        own = ordered[place]
        # How many rows of others come before each row of a part: ascending within a part, and with `apart` in all.
        apart = np.arange(len(self._rows)) * (len(values) + 1)
        before = place - np.arange(len(place)) + np.repeat(apart + self._begin - self._stage_begin, self._rows)

        def rest(rank: Ints) -> Floats:
            passed = np.searchsorted(before, apart + rank, side="right") - self._begin
            found: Floats = ordered[self._stage_begin + rank + passed]
            return found

        medians = _middle(own[self._begin + (self._rows - 1) // 2], own[self._begin + self._rows // 2])
        return medians, _middle(rest((self._others - 1) // 2), rest(self._others // 2))


def _middle(low: Floats, high: Floats) -> Floats:
    return low * 0.5 + high * 0.5
