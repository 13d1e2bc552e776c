"""Comparison of the hosts of each stage: how long tasks took on a host and on the others, by resource."""

from __future__ import annotations

import duckdb
import numpy as np

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.resources import with_other
from crystalperf.query import sql
from crystalperf.query.execution.execution import Execution
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


def host_times(connection: duckdb.DuckDBPyConnection, execution: Execution) -> list[HostTime]:
    """Host times of all stages that ran on several hosts, in order of stage, host and resource."""
    bounds = [execution.scope.start_ms, execution.scope.end_ms]
    hosts = connection.execute(sql.text("compared_hosts").format(most_hosts=MAX_HOSTS), bounds).fetchall()
    if not hosts:
        return []
    names = with_other(execution.names)
    given = {
        "begin": bounds[0],
        "end": bounds[1],
        "stages": [row[0] for row in hosts],
        "hosts": [row[1] for row in hosts],
    }
    query = sql.text("host_tasks").format(resources=", ".join(f"coalesce({name}_ms, 0) AS {name}_ms" for name in names))
    columns = connection.execute(query, given).fetchnumpy()
    whose = Split(columns["number"], columns["of_stage"], len(hosts))
    _, others_ms = whose.medians(columns["duration_ms"])
    own_bytes, others_bytes = whose.medians(columns["read_bytes"])
    by_name = {name: whose.medians(columns[f"{name}_ms"]) for name in sorted(names)}
    return [
        HostTime(stage, host, name, tasks, own[at], others[at], own_bytes[at], others_bytes[at], others_ms[at])
        for at, (stage, host, tasks) in enumerate(hosts)
        for name, (own, others) in by_name.items()
    ]


class Split:
    """Leave-one-part-out medians: of the rows of each part of a stage, and of all the other rows of that stage.

    Without a part, the middle of a sorted stage moves by as many rows as the part has before it.  So each stage is
    sorted once, not once for each part.
    """

    def __init__(self, part: Ints, stage: Ints, parts: int) -> None:
        """`part` of each row, −1 for rows of no part, and its `stage`, from 0 on, (rows,).

        Each part has at least one row, and so has the rest of its stage.
        """
        self._part, self._stage, self._parts = part, stage, parts
        self._rows = np.bincount(part[part >= 0], minlength=parts)
        self._begin = np.cumsum(self._rows) - self._rows
        of_part = np.zeros(parts, dtype=np.int64)
        of_part[part[part >= 0]] = stage[part >= 0]
        rows = np.bincount(stage)
        self._stage_begin = (np.cumsum(rows) - rows)[of_part]
        self._others = rows[of_part] - self._rows

    def medians(self, values: Floats) -> tuple[list[float], list[float]]:
        """The medians of each part's rows, and of the other rows of its stage, (parts,)."""
        order = np.lexsort((values, self._stage))
        ordered = values[order]
        part = self._part[order]
        place = np.flatnonzero(part >= 0)
        place = place[np.argsort(part[place], kind="stable")]
        part = part[place]
        own = ordered[place]
        # How many rows of others come before each row of a part.
        before = place - self._stage_begin[part] - (np.arange(len(place)) - self._begin[part])

        def rest(rank: Ints) -> Floats:
            passed = np.bincount(part, weights=before <= rank[part], minlength=self._parts).astype(np.int64)
            found: Floats = ordered[self._stage_begin + rank + passed]
            return found

        medians = _middle(own[self._begin + (self._rows - 1) // 2], own[self._begin + self._rows // 2])
        return medians, _middle(rest((self._others - 1) // 2), rest(self._others // 2))


def _middle(low: Floats, high: Floats) -> list[float]:
    middle: list[float] = (low * 0.5 + high * 0.5).tolist()
    return middle
