"""Where input is read from: this machine's disks or, over the network, somebody else's.

The index labels reading storage as disk, since the code is the same.  Whether it is the network's time depends on
the file system and on where the task ran; the log tells both, by the locations in plans and RDD names and by the
locality of tasks.  What is made of it is an assumption and printed as one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import duckdb
import numpy as np

from indexes import resources
from query import sql
from query.model.records import Columns
from query.model.tables import readable

Reach = Literal["net", "replicas", "local"]
"""net: always over the network; replicas: local where a task ran beside a replica; local: this machine's disks."""

_REPLICAS = ("hdfs", "viewfs", "maprfs", "webhdfs", "swebhdfs", "ofs", "o3fs")
_LOCAL = ("file", "local")
_LOCATION = re.compile(r"(?:^|[\[\s,])(?:([a-z][a-z0-9+.-]{1,15}):)?(/[^\s,\]]*)")
_FAR = ("RACK_LOCAL", "ANY")
"""Localities of tasks that ran on another machine than the input that they were wanted near."""

_MOST_LOCATIONS = 5


@dataclass(frozen=True)
class Input:
    """What one stage attempt reads: the root of a file system, and how far away that is."""

    stage_id: int
    attempt: int
    root: str
    reach: Reach


def inputs(connection: duckdb.DuckDBPyConnection, stages: str = "stages") -> list[Input]:
    """The file systems that stages read, by their plans' scans and by the RDDs that are named by a file.

    A stage that scans, but whose metrics are of no scan in the query's last plan (it was planned anew), may have
    read whatever its query reads.
    """
    rows = connection.execute(
        f"""
        WITH scans AS (
            SELECT
                stages.stage_id, stages.attempt, operators.location,
                list_has_any(operators.accumulators, stages.accumulators) AS here
            FROM operators JOIN {stages} AS stages ON operators.sql_id = stages.sql_id
            WHERE operators.location IS NOT NULL AND contains(coalesce(stages.kind, 'scan'), 'scan')
        )
        SELECT DISTINCT stage_id, attempt, location
        FROM scans
        QUALIFY here OR NOT bool_or(coalesce(here, false)) OVER (PARTITION BY stage_id, attempt)
        UNION
        SELECT stage_id, attempt, location FROM {stages} WHERE location IS NOT NULL
        ORDER BY ALL
        """
    ).fetchall()
    default = connection.execute("SELECT properties['spark.hadoop.fs.defaultFS'] FROM runs").fetchone()
    scheme = (default[0] if default else None) or ""
    found = {
        Input(stage_id, attempt, root, reach(root))
        for stage_id, attempt, location in rows
        for root in roots(location, scheme)
    }
    return sorted(found, key=lambda each: (each.stage_id, each.attempt, each.root))


def roots(location: str, default: str = "") -> list[str]:
    """The file systems in a location: `InMemoryFileIndex(1 paths)[s3a://bucket/table]` → s3a://bucket.

    A path without a scheme lies on the default file system; where that is not known it says nothing.
    """
    found = []
    for scheme, path in _LOCATION.findall(location):
        if scheme:
            authority = re.match(r"//([^/]*)", path)
            found.append(f"{scheme}://{authority[1]}" if authority and authority[1] else f"{scheme}:")
        elif default:
            found.append(default.rstrip("/"))
    return list(dict.fromkeys(found))


def reach(root: str) -> Reach:
    """How far a file system is; one that is not known is a service somewhere, as nearly all are."""
    scheme = root.partition(":")[0]
    return "local" if scheme in _LOCAL else "replicas" if scheme in _REPLICAS else "net"


def view_task_samples(connection: duckdb.DuckDBPyConnection, read_tasks: Columns, read_stages: Columns) -> None:
    """Make the view task_samples (query/sql/task_samples.sql) of a run file that has its samples and operators.

    `read_tasks` and `read_stages` are what the log gave.  A stage that also reads local files keeps its labels: its
    samples do not tell which file they read.
    """
    for name, columns, wanted in (
        ("read_tasks", read_tasks, ("task_id", "stage_id", "stage_attempt", "locality")),
        ("read_stages", read_stages, ("stage_id", "attempt", "sql_id", "accumulators", "location", "kind")),
    ):
        view, select = readable({each: columns[each] for each in wanted})  # noqa: RUF059 (read by DuckDB)
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT {select} FROM view")
    stages: dict[tuple[int, int], set[Reach]] = {}
    for each in inputs(connection, "read_stages"):
        stages.setdefault((each.stage_id, each.attempt), set()).add(each.reach)
    far = {key: "replicas" in kinds for key, kinds in stages.items() if "local" not in kinds}
    elsewhere = {  # noqa: F841 (read by DuckDB)
        "stage_id": np.array([stage_id for stage_id, _ in far], dtype=np.int64),
        "stage_attempt": np.array([attempt for _, attempt in far], dtype=np.int64),
        "by_locality": np.array(list(far.values()), dtype=bool),
    }
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE remote_reads AS
        SELECT task_id FROM read_tasks JOIN elsewhere USING (stage_id, stage_attempt)
        WHERE NOT by_locality OR locality IN {_FAR}
        """
    )
    vector = ", ".join(_moved(name) for name in resources())
    text = sql.text("task_samples")
    connection.execute(text.format(vector=vector))


def _moved(name: str) -> str:
    """SQL: a resource's share, with storage's moved to the network where the sample reads remote input."""
    if name == "disk":
        return "CASE WHEN is_remote THEN 0 ELSE stacks.disk END AS disk"
    if name == "net":
        return "CASE WHEN is_remote THEN stacks.net + stacks.disk ELSE stacks.net END AS net"
    return f"stacks.{name}"


def assumptions(connection: duckdb.DuckDBPyConnection, stages: Sequence[tuple[int, int]], sampled: bool) -> list[str]:
    """One sentence per file system that the given stages read from elsewhere."""
    known = [each for each in inputs(connection) if (each.stage_id, each.attempt) in set(stages)]
    mixed = {(each.stage_id, each.attempt) for each in known if each.reach == "local"}
    by_root: dict[str, list[Input]] = {}
    for each in known:
        if each.reach != "local":
            by_root.setdefault(each.root, []).append(each)
    found = []
    for root, users in list(by_root.items())[:_MOST_LOCATIONS]:
        keys = [(each.stage_id, each.attempt) for each in users]
        where = f"input from {root}"
        if all(key in mixed for key in keys):
            found.append(f"{where}: read together with local files, so reading stays counted as disk")
        elif users[0].reach == "net":
            counted = "counted as net" if sampled else "which Spark does not measure: it stays unknown"
            found.append(f"{where}: read over the network, {counted}")
        else:
            marks = ", ".join("(?, ?)" for _ in keys)
            far, total = connection.execute(
                f"""
                SELECT count(*) FILTER (locality IN {_FAR}), count(*) FROM tasks
                WHERE (stage_id, stage_attempt) IN ({marks})
                """,
                [number for key in keys for number in key],
            ).fetchall()[0]
            rest = "counted as net for these, as disk for the others" if sampled else "Spark does not measure it"
            found.append(f"{where}: {far} of {total} tasks ran on a machine without the data; {rest}")
    if len(by_root) > _MOST_LOCATIONS:
        found.append(f"input from {len(by_root) - _MOST_LOCATIONS} more file systems, likewise")
    return found
