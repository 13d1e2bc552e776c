"""The summary of a fleet: SQL queries over its tables, with the results as dataclasses."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path
from typing import Any

import duckdb

from crystalperf.fleet.changes import MIN_EACH, change, noise
from crystalperf.fleet.reading import HALF_WIDTH
from crystalperf.fleet.tables import VERSION, question, tables
from crystalperf.indexes import guard
from crystalperf.indexes.errors import InputError, NoAnswerError
from crystalperf.indexes.frozen import frozen
from crystalperf.query.frameworks.registry import frameworks

TOP = 10
"""Default maximum rows of each table."""

NOTICEABLE = 0.05
"""Minimum relative change of runtime; smaller changes are ignored even if significant."""


@frozen
class Job:
    """The runs of one name.  Idle core-hours are slots without a task, lost core-hours are failed tasks.

    `bottleneck` is a resource, a cause or `nothing`; streams have no runtime.
    """

    name: str
    framework: str
    runs: int
    failed_runs: int
    core_hours: float
    idle_core_hours: float
    lost_core_hours: float
    median_runtime_ms: float | None
    bottleneck: str

    @property
    def wasted_core_hours(self) -> float:
        return self.idle_core_hours + self.lost_core_hours


@frozen
class Day:
    """Core-hours of the tasks of runs that started on a day, by resource and `other`."""

    day: str
    runs: int
    core_hours: dict[str, float]


@frozen
class Recurring:
    """A finding of several runs: its total cost at most, in hours of runtime, and as a share of their runtime."""

    kind: str
    runs: int
    jobs: int
    cost_hours: float
    share: float
    basis: str
    text: str
    advice: str
    path: str


@frozen
class Regression:
    """A job whose runs take `ratio` times as long since `since`; `noise` is the scatter of one run (0.1: 10 %).

    `measure` is the quantity of the times, such as the latency of a stream's records.  Only the last change is
    reported: `before_ms` and `runs_before` describe the level just before it.  `input_ratio` is the change of the input
    size; None if the runs read no input.  `path` is the first slower run.
    """

    name: str
    plan_hash: str
    measure: str
    runs_before: int
    runs_after: int
    since: str
    before_ms: float
    after_ms: float
    ratio: float
    noise: float
    input_ratio: float | None
    path: str


@frozen
class Saving:
    """The saving of a setting over all runs with a prediction, in hours of runtime, with its 90 % range.

    `common_share` is the share of the variance that is common to all runs; more runs do not reduce it.  `core_hours`
    is the saving if the number of slots stays the same.
    """

    question: str
    setting: str
    runs: int
    refused_runs: int
    hours_now: float
    saved_hours: float
    saved_hours_range: tuple[float, float]
    common_share: float
    core_hours: float | None


@frozen
class HeldJob:
    """The usual what-ifs of a job's runs, held against runs that began later with these resources.

    `predictions` is the number of later runs, each held against the last prediction for its resources; `inside_share`
    is the share of them in its 90 % range.
    """

    name: str
    plan_hash: str
    framework: str
    predictions: int
    median_error_ratio: float
    median_absolute_error_ratio: float
    inside_share: float


@frozen
class Fleet:
    """The answer to `fleet ask`."""

    folder: str
    logs: int
    unread_logs: int
    runs: int
    first_day: str | None
    last_day: str | None
    days: int
    """Days with task time; `mix` has the last of them."""
    core_hours: float
    idle_core_hours: float
    lost_core_hours: float
    by_core_hours: tuple[Job, ...]
    by_waste: tuple[Job, ...]
    mix: tuple[Day, ...]
    recurring: tuple[Recurring, ...]
    regressions: tuple[Regression, ...]
    watched_jobs: int
    """Jobs (same name and plan) with enough runs to detect a change."""
    median_noise: float | None
    """Median scatter of one run over the watched jobs."""
    savings: tuple[Saving, ...]
    held: tuple[HeldJob, ...] = ()


@contextmanager
def opened(folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection with the fleet's tables as views of the current rows; `all_TABLE` also has superseded rows.

    Raises InputError if the folder has no fleet.
    """
    if not any((folder / "logs").glob("day=*/*.parquet")):
        raise InputError(
            f"{folder}: not the folder of a fleet; build it with `crystalperf fleet build LOGS -o {folder}`"
        )
    check_version(folder)
    connection = guard.fresh()
    try:
        for table in tables():
            there = any((folder / table.name).glob("day=*/*.parquet"))
            columns = ", ".join(
                f"{each.name if there else 'NULL'}::{each.type.removesuffix(' NOT NULL')} AS {each.name}"
                for each in table.columns
            )
            source = f"FROM read_parquet({guard.quoted(files_of(folder, table.name))}, hive_partitioning = true)"
            connection.execute(f"CREATE VIEW all_{table.name} AS SELECT {columns} {source if there else 'WHERE false'}")
        connection.execute(question("newest"))
        yield connection
    except duckdb.OutOfMemoryException as error:
        raise NoAnswerError(f"{folder}: not enough memory to query this fleet") from error
    except duckdb.Error as error:
        raise InputError(
            f"{folder}: a fleet of another version, or damaged ({str(error).splitlines()[0]}); build the fleet again"
            " in an empty folder with `crystalperf fleet build LOGS -o FOLDER`"
        ) from error
    finally:
        connection.close()


def check_version(folder: Path) -> None:
    """Raise InputError if the folder's fleet has tables of another version; it changes nothing.

    The first version has no file with its number.  A copy of the tables without `_fleet` passes.
    """
    state = folder / "_fleet"
    try:
        found = (state / "version").read_text(encoding="ascii").strip()
    except (FileNotFoundError, NotADirectoryError):
        if not any(any((state / each).glob("*")) for each in ("batches", "read")):
            return
        found = "1"
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{state / 'version'}: cannot be read ({error})") from error
    if found != str(VERSION):
        raise InputError(
            f"{folder}: a fleet of version {found[:20]}, this CrystalPerf reads version {VERSION}; build the fleet"
            " again in an empty folder with `crystalperf fleet build LOGS -o FOLDER`"
        )


def files_of(folder: Path, table: str) -> str:
    """The files of a table as a DuckDB glob, with the folder's name escaped."""
    return f"{escape(str(folder))}/{table}/day=*/*.parquet"


def summarize(folder: Path, top: int = TOP) -> Fleet:
    """The summary of the fleet in a folder, with `top` rows of each table, 0 for all.  Raises InputError."""
    with opened(folder) as connection:
        (logs, unread), (runs, first, last, hours, idle, lost) = (
            connection.execute(text).fetchall()[0]
            for text in (
                "SELECT count(*), count(*) FILTER (runs = 0) FROM logs"
                " WHERE (log, path) NOT IN (SELECT (log, path) FROM problems WHERE severity = 'not-log')",
                "SELECT count(*), min(day)::VARCHAR, max(day)::VARCHAR, coalesce(sum(core_hours), 0),"
                " coalesce(sum(greatest(core_hours - busy_core_hours, 0)), 0), coalesce(sum(lost_core_hours), 0)"
                " FROM runs",
            )
        )
        jobs = [Job(**row) for row in _rows(connection, "jobs")]
        history = list(_rows(connection, "history"))
        recurring = [Recurring(**row) for row in _rows(connection, "recurring")]
        days = _days(connection)
        savings = [_saving(row) for row in _rows(connection, "gains")]
        held = [HeldJob(**row) for row in _rows(connection, "held")]
    count = top or None
    watched = [row for row in history if len(row["runtimes_ms"]) >= 2 * MIN_EACH]
    regressions = [each for row in watched if (each := _regression(row)) is not None]
    return Fleet(
        folder=str(folder),
        logs=logs,
        unread_logs=unread,
        runs=runs,
        first_day=first,
        last_day=last,
        days=len(days),
        core_hours=hours,
        idle_core_hours=idle,
        lost_core_hours=lost,
        by_core_hours=tuple(sorted(jobs, key=lambda job: (-job.core_hours, job.name))[:count]),
        by_waste=tuple(sorted(jobs, key=lambda job: (-job.wasted_core_hours, job.name))[:count]),
        mix=tuple(days if count is None else days[-count:]),
        recurring=tuple(recurring[:count]),
        regressions=tuple(sorted(regressions, key=_most_lost)[:count]),
        watched_jobs=len(watched),
        median_noise=statistics.median(noise(row["runtimes_ms"]) for row in watched) if watched else None,
        savings=tuple(sorted(savings, key=lambda each: (-each.saved_hours, each.setting))),
        held=tuple(held[:count]),
    )


def _rows(connection: duckdb.DuckDBPyConnection, name: str) -> Iterator[dict[str, Any]]:
    cursor = connection.execute(question(name))
    columns = [each[0] for each in cursor.description]
    return (dict(zip(columns, row, strict=True)) for row in cursor.fetchall())


def _days(connection: duckdb.DuckDBPyConnection) -> list[Day]:
    found: dict[str, Day] = {}
    for row in _rows(connection, "mix"):
        day = found.setdefault(str(row["day"]), Day(str(row["day"]), 0, {}))
        day.core_hours[row["resource"]] = row["core_hours"]
        found[day.day] = Day(day.day, max(day.runs, row["runs"]), day.core_hours)
    return list(found.values())


def _regression(row: dict[str, Any]) -> Regression | None:
    runtimes = row["runtimes_ms"]
    seen = change(runtimes)
    if seen is None or seen.ratio < 1 + NOTICEABLE:
        return None
    levels = slice(seen.before, seen.first), slice(seen.first, None)
    before, after = (statistics.median(runtimes[level]) for level in levels)
    inputs = [statistics.median(row["input_bytes"][level]) for level in levels]
    return Regression(
        name=row["name"],
        plan_hash=row["plan_hash"],
        measure=row["measure"],
        runs_before=seen.first - seen.before,
        runs_after=len(runtimes) - seen.first,
        since=row["days"][seen.first],
        before_ms=before,
        after_ms=after,
        ratio=after / before,
        noise=seen.noise,
        input_ratio=inputs[1] / inputs[0] if inputs[0] > 0 else None,
        path=row["paths"][seen.first],
    )


def _most_lost(regression: Regression) -> tuple[bool, str, float, str]:
    """Sort key: the most costly regression first, by measure, because latencies and runtimes do not compare."""
    lost_ms = (regression.after_ms - regression.before_ms) * regression.runs_after
    return regression.measure != "makespan", regression.measure, -lost_ms, regression.name


def _saving(row: dict[str, Any]) -> Saving:
    saved = row["hours_now"] - row["hours_then"]
    # The common error adds up linearly over runs; independent errors add up in quadrature.
    deviation = math.hypot(row["common_deviation"], row["own_deviation"])
    key = row["setting"].partition("=")[0]
    same_slots = all(
        key != each.vocabulary.word_of(of) for each in frameworks().values() for of in ("cores", "workers")
    )
    return Saving(
        question=row["question"],
        setting=row["setting"],
        runs=row["runs"],
        refused_runs=row["refused_runs"],
        hours_now=row["hours_now"],
        saved_hours=saved,
        saved_hours_range=(
            saved - HALF_WIDTH * deviation,
            min(saved + HALF_WIDTH * deviation, row["hours_now"]),
        ),
        common_share=(row["common_deviation"] / deviation) ** 2 if deviation > 0 else 0.0,
        core_hours=row["core_hours_now"] - row["core_hours_then"] if same_slots else None,
    )
