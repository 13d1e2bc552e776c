"""Attributes reads of storage to disk or network, by file system and locality.

The index labels all reads of storage as disk, because the code is the same.  Whether the time is the network's depends
on the file system and on where the task ran; the trace has both.  The attribution is an assumption and printed as one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import duckdb
import numpy as np

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.regex import regex
from crystalperf.indexes.resources import DISK, NET
from crystalperf.query import sql
from crystalperf.query.attribution.locality import (
    PROCESS_LOCAL,
    REMOTE_LOCALITIES,
    Reach,
    far_stages,
    kept_stages,
    reach,
    reaches,
)
from crystalperf.query.results.assumptions import (
    Assumption,
    InputCached,
    InputMixed,
    InputPartlyRemote,
    InputRemote,
    MoreInputs,
)
from crystalperf.query.trace.inserting import readable
from crystalperf.query.trace.records import Columns, objects

_LOCATION = regex(r"(?:^|[\[\s,])(?:([a-z][a-z0-9+.-]{1,15}):)?(/[^\s,\]]*)")
_MAX_LOCATIONS = 5


@frozen
class Input:
    """An input of one stage: the root of a file system, and its reach."""

    stage_id: str
    root: str
    reach: Reach


def inputs(connection: duckdb.DuckDBPyConnection) -> list[Input]:
    """The inputs of all stages, in the order of the stages."""
    rows = connection.execute("SELECT stage_id, root FROM stage_inputs ORDER BY rowid").fetchall()
    return [Input(stage_id, root, reach(root)) for stage_id, root in rows]


def roots(location: str, default: str = "") -> list[str]:
    """The file systems in a location: `InMemoryFileIndex(1 paths)[s3a://bucket/table]` → s3a://bucket.

    A path without a scheme is on the `default` file system; without a default it is ignored.
    """
    found = []
    for scheme, path in _LOCATION.findall(location):
        if scheme:
            authority = re.match(r"//([^/]*)", path)
            found.append(f"{scheme}://{authority[1]}" if authority and authority[1] else f"{scheme}:")
        elif default:
            found.append(default.rstrip("/"))
    return list(dict.fromkeys(found))


def view_task_samples(connection: duckdb.DuckDBPyConnection, read_tasks: Columns, names: Sequence[str]) -> None:
    """Make the view task_samples (query/sql/task_samples.sql) in a run file that has its samples and stage_inputs.

    `read_tasks` are the tasks of the trace, `names` the run's resources.  A stage that also reads local files keeps its
    labels: its samples do not say which file they read.
    """
    tasks: Columns = {"data_locality": objects([None] * len(read_tasks["task_id"])), **read_tasks}
    view, select, texts = readable({each: tasks[each] for each in ("task_id", "stage_id", "data_locality")})  # noqa: RUF059
    connection.execute(f"CREATE OR REPLACE TEMP TABLE read_tasks AS SELECT {select} FROM view", texts)
    read = reaches(connection)
    far, keeps = far_stages(read), kept_stages(read)
    elsewhere = {  # noqa: F841 (read by DuckDB)
        "stage_id": objects(far),
        "by_place": np.array(list(far.values()), dtype=bool),
        "keeps": np.array([each in keeps for each in far], dtype=bool),
    }
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE remote_reads AS
        SELECT task_id FROM read_tasks JOIN elsewhere USING (stage_id)
        WHERE (NOT by_place OR data_locality IN {REMOTE_LOCALITIES})
            AND NOT (keeps AND coalesce(data_locality, '') = '{PROCESS_LOCAL}')
        """
    )
    connection.execute(sql.text("task_samples").format(vector=", ".join(_moved(name) for name in names)))


def _moved(name: str) -> str:
    """SQL: a resource's share; if the sample reads remote input, the share of disk counts as network."""
    if name == DISK:
        return f"CASE WHEN is_remote THEN 0 ELSE stacks.{DISK} END AS {DISK}"
    if name == NET:
        return f"CASE WHEN is_remote THEN stacks.{NET} + stacks.{DISK} ELSE stacks.{NET} END AS {NET}"
    return f"stacks.{name}"


def assumptions(
    connection: duckdb.DuckDBPyConnection, stages: Sequence[str], sampled: bool, title: str
) -> list[Assumption]:
    """The assumptions about input: one for each non-local file system of the given stages, one about cached data.

    `title` is the display name of the run's framework.
    """
    wanted, keeps = set(stages), kept_stages(reaches(connection))
    unmeasured_by = None if sampled else title
    known = [each for each in inputs(connection) if each.stage_id in wanted]
    mixed = {each.stage_id for each in known if each.reach == "local"}
    by_root: dict[str, list[Input]] = {}
    for each in known:
        if each.reach != "local":
            by_root.setdefault(each.root, []).append(each)
    found: list[Assumption] = []
    for root, users in list(by_root.items())[:_MAX_LOCATIONS]:
        keys = [each.stage_id for each in users]
        if users[0].reach == "memory":
            part = [key for key in keys if keeps[key]]
            elsewhere = _counted(connection, part, f"data_locality IS DISTINCT FROM '{PROCESS_LOCAL}'")[0]
            alone = [key for key in keys if not keeps[key]]
            elsewhere += _counted(connection, alone, f"data_locality IN {REMOTE_LOCALITIES}")[0]
            total = _counted(connection, keys, "true")[1]
            found.append(InputCached(len(users), total - elsewhere, total))
        elif all(key in mixed for key in keys):
            found.append(InputMixed(root))
        elif users[0].reach == "net":
            found.append(InputRemote(root, unmeasured_by))
        else:
            far, total = _counted(connection, keys, f"data_locality IN {REMOTE_LOCALITIES}")
            cached, _ = _counted(
                connection, [key for key in keys if keeps.get(key)], f"data_locality = '{PROCESS_LOCAL}'"
            )
            found.append(InputPartlyRemote(root, far, total - cached, unmeasured_by))
    if len(by_root) > _MAX_LOCATIONS:
        found.append(MoreInputs(len(by_root) - _MAX_LOCATIONS))
    return found


def _counted(connection: duckdb.DuckDBPyConnection, stages: Sequence[str], condition: str) -> tuple[int, int]:
    """The number of tasks of these stages that satisfy a SQL condition, and the number of all."""
    held, total = connection.execute(
        f"SELECT count(*) FILTER ({condition}), count(*) FROM tasks WHERE list_contains(?, stage_id)", [list(stages)]
    ).fetchall()[0]
    return held, total
