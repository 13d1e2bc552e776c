"""Missing data of a run: what was not observed, and which recording would have shown it."""

from __future__ import annotations

from pathlib import Path

import duckdb

from crystalperf.indexes.errors import Remedy
from crystalperf.indexes.resources import DISK, with_other
from crystalperf.query.attribution.code.libraries import library_of
from crystalperf.query.diagnose.advisor import Advisor
from crystalperf.query.execution.execution import Execution
from crystalperf.query.results import not_recorded as kinds
from crystalperf.query.results.not_recorded import NotRecorded
from crystalperf.query.trace.records import CONTRADICTED

MAX_WITHOUT_OPERATOR = 0.2
"""Task time without an operator is reported if it exceeds this share."""

_RECORDINGS_NAMED = 3


def not_recorded(
    connection: duckdb.DuckDBPyConnection, execution: Execution, advisor: Advisor
) -> tuple[NotRecorded, ...]:
    """The missing observations of a scope, and which recordings would have shown them."""
    left_out = _left_out(connection)
    contradicted = _contradicted(connection)
    if not execution.has_samples:  # without samples, unindexed code makes no difference
        return (*contradicted, *left_out, *_without_samples(connection, execution, advisor, bool(left_out)))
    found = [*contradicted, *_unknown_code(connection), *left_out, *_without_recording(connection, execution)]
    found += _without_operator(connection, execution, None)
    if not _ids(connection, "SELECT DISTINCT kind FROM samples") & {"wall", "park"}:
        found.append(kinds.BlockedThreadsUnsampled())
    return tuple(found)


def _ids(connection: duckdb.DuckDBPyConnection, query: str) -> set[str]:
    """The non-null texts of a query's only column."""
    return {row[0] for row in connection.execute(query).fetchall() if row[0] is not None}


def _contradicted(connection: duckdb.DuckDBPyConnection) -> list[NotRecorded]:
    rows = connection.execute("SELECT meaning FROM import_stats WHERE name = ? ORDER BY rowid", [CONTRADICTED])
    return [kinds.SequenceContradicted(meaning) for (meaning,) in rows.fetchall()]


def _unknown_code(connection: duckdb.DuckDBPyConnection) -> list[NotRecorded]:
    rows = connection.execute(
        """
        SELECT name, origin, meaning FROM import_stats
        WHERE name IN ('unindexed code', 'other index') ORDER BY name DESC, rowid
        """
    ).fetchall()
    return [
        kinds.CodeUnlabelled(meaning, remedy=index_of(origin) if name == "unindexed code" else None)
        for name, origin, meaning in rows
    ]


def index_of(prefix: str) -> Remedy:
    """The remedy for unindexed code: index its library, or the packages with this prefix."""
    library = library_of(prefix)
    return (
        Remedy("index the library", {"library": library}) if library else Remedy("index the code", {"prefix": prefix})
    )


def _left_out(connection: duckdb.DuckDBPyConnection) -> list[NotRecorded]:
    """The recordings that were not used, the first few by name."""
    rows = connection.execute(
        """
        SELECT origin, meaning FROM import_stats
        WHERE name IN ('foreign recording', 'other application', 'other time', 'unreadable recording', 'untimed stacks',
            'unmatched recording')
        ORDER BY origin, rowid
        """
    ).fetchall()
    found: list[NotRecorded] = [
        kinds.RecordingLeftOut(Path(origin).name, meaning) for origin, meaning in rows[:_RECORDINGS_NAMED]
    ]
    if len(rows) > _RECORDINGS_NAMED:
        found.append(kinds.MoreRecordingsLeftOut(len(rows) - _RECORDINGS_NAMED))
    return found


def _without_recording(connection: duckdb.DuckDBPyConnection, execution: Execution) -> list[NotRecorded]:
    """The processes of the run that left no recording."""
    found: list[NotRecorded] = []
    seen = _ids(connection, "SELECT DISTINCT worker_id FROM samples WHERE worker_id IS NOT NULL")
    drivers = _ids(connection, "SELECT worker_id FROM workers WHERE kind = 'driver'")
    if drivers and not drivers & seen:
        found.append(kinds.DriverUnsampled())
    ran = _ids(connection, "SELECT DISTINCT worker_id FROM tasks")
    missing = tuple(sorted(ran - seen))
    if missing and len(missing) == len(ran):
        found.append(kinds.AllWorkersUnsampled(execution.title))
    elif missing:
        found.append(kinds.WorkersUnsampled(missing, len(ran)))
    return found


def _without_samples(
    connection: duckdb.DuckDBPyConnection, execution: Execution, advisor: Advisor, unusable: bool
) -> list[NotRecorded]:
    sampled = execution.takes_recordings
    has_disk_time = bool(execution.tasks.parts_ms[:, execution.names.index(DISK)].any())
    storage = sampled or not has_disk_time
    found: NotRecorded = kinds.TimeUnmeasured(execution.title, storage)
    if sampled:
        remedy = Remedy("set up the job", {"framework": execution.words.framework}) if advisor.setup else None
        found = kinds.CodeUnsampled(execution.title, storage, unusable, remedy=remedy)
    return [found, *_without_operator(connection, execution, execution.title)]


def _without_operator(
    connection: duckdb.DuckDBPyConnection, execution: Execution, framework: str | None
) -> list[NotRecorded]:
    """The task time of scopes that could not be attributed to an operator, if it is much."""
    names = " + ".join(f"{name}_ms" for name in with_other(execution.names))
    total, lost = connection.execute(
        f"""
        SELECT coalesce(sum({names}), 0), coalesce(sum({names}) FILTER (basis = 'nothing'), 0)
        FROM operator_times
        WHERE scope_id IS NOT NULL
            AND stage_id IN (SELECT stage_id FROM tasks WHERE finish_ms > ? AND launch_ms < ?)
        """,
        [execution.scope.start_ms, execution.scope.end_ms],
    ).fetchall()[0]
    return [kinds.OperatorsUnknown(lost / total, framework)] if lost > MAX_WITHOUT_OPERATOR * total else []
