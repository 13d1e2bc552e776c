"""The rows of a run file that exports write, streamed in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import duckdb

from crystalperf.indexes.errors import NoAnswerError
from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.resources import with_other
from crystalperf.query import sql
from crystalperf.query.execution.evidence import sampled_sums
from crystalperf.query.trace.vocabulary import Vocabulary

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from crystalperf.query.results.answers import Debug, Header, PathItem

BATCH = 5_000
"""Rows that are in memory at once."""

LABEL_CHARACTERS = 200
"""Maximum characters of a stage's label."""


class ExportableRun(Protocol):
    """The interface of a run that exports use (query.run.Run)."""

    path: Path

    def header(self) -> Header: ...

    def debug(self, scope: str = "all") -> Debug: ...

    def reading(self) -> AbstractContextManager[duckdb.DuckDBPyConnection]: ...


@frozen
class Source:
    """A run to export.

    `connection` reads its run file; `names` are its resources; `started_at_ms` is Unix time.  `critical_path` computes
    the critical path in recorded time, empty if the run has none.
    """

    connection: duckdb.DuckDBPyConnection
    names: tuple[str, ...]
    app_id: str
    attempt: str | None
    name: str
    framework: str
    framework_version: str | None
    started_at_ms: int
    duration_ms: float
    vocabulary: Vocabulary
    critical_path: Callable[[], Sequence[PathItem]]

    @property
    def resources(self) -> tuple[str, ...]:
        """Its resources and `other`."""
        return with_other(self.names)

    def rows(self, statement: str, parameters: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """The rows of a statement; no other statement may run on the connection until all of them are read."""
        found = self.connection.execute(statement, parameters)
        while batch := found.fetchmany(BATCH):
            yield from batch

    def worker(self, worker_id: str | None, kind: str | None = None) -> str:
        """The display name of a worker, in the framework's words."""
        if worker_id is None:
            return self.name
        if kind == "driver" or worker_id == self.vocabulary.driver:
            return self.vocabulary.driver
        return f"{self.vocabulary.worker} {worker_id}"


@frozen
class Stack:
    """The time of one stack in one stage on one worker.

    worker_id  None if the run has no samples: then the stack is an operator or a stage
    stage      id and name of the stage; `driver` for samples of the driver outside tasks
    frames     class.method:line, the root first
    count      samples; tasks if the run has no samples
    time_ms    by resource, and `other` last, (resources + 1,)
    """

    worker_id: str | None
    stage: str
    frames: tuple[str, ...]
    count: int
    time_ms: tuple[float, ...]


def prepare_stacks(source: Source) -> bool:
    """Make the temporary table `exported_stacks`; returns whether its stacks are sampled ones.

    Without samples a stack is an operator; without operators, a stage.  Raises NoAnswerError if the run has no task.
    """
    connection = source.connection
    connection.execute(sql.text("exported_stacks").format(sums=sampled_sums(source.names)))
    if _has_rows(connection):
        return True
    sums = ", ".join(f"sum({name}_ms) AS {name}" for name in source.resources)
    for each in ("exported_operators", "exported_stages"):
        connection.execute(sql.text(each).format(sums=sums))
        if _has_rows(connection):
            return False
    raise NoAnswerError("the run has neither samples nor tasks, so there are no stacks to export")


def _has_rows(connection: duckdb.DuckDBPyConnection) -> bool:
    return connection.execute("SELECT 1 FROM exported_stacks LIMIT 1").fetchone() is not None


def stack_workers(source: Source) -> list[tuple[str | None, str | None]]:
    """Workers with stacks, (id, kind), in order of their start."""
    rows = source.connection.execute(
        """
        SELECT worker_id, kind FROM (SELECT DISTINCT worker_id FROM exported_stacks) LEFT JOIN workers USING (worker_id)
        ORDER BY added_ms, length(worker_id), worker_id
        """
    ).fetchall()
    return list(dict(rows).items())


def stacks(source: Source, *, sampled: bool, by: str, worker_id: str | None = None) -> Iterator[Stack]:
    """The stacks of exported_stacks, in the order of their stages.

    `by` is "worker", or "stage" for the sums over workers.  `worker_id` selects one worker if it is not None.
    """
    joined = "JOIN (SELECT stack_id, list_reverse(frames) AS frames FROM stacks) USING (stack_id)" if sampled else ""
    frames = "frames" if sampled else "[label]"
    sums = ", ".join(f"sum({name}) AS {name}" for name in source.resources)
    worker = "worker_id" if by == "worker" else "NULL"
    chosen = "" if worker_id is None else "WHERE worker_id = $1"
    label = "" if sampled else ", any_value(label) AS label"
    statement = f"""
        WITH summed AS (
            SELECT {worker} AS worker_id, stage_id, stack_id, sum(count)::BIGINT AS count, {sums} {label}
            FROM exported_stacks {chosen} GROUP BY ALL
        )
        SELECT
            worker_id, stage_id, stages.name, {frames}, count,
            {", ".join(f"summed.{each}" for each in source.resources)}
        FROM summed {joined} LEFT JOIN (SELECT stage_id, name, first_launch_ms FROM stages) AS stages USING (stage_id)
        ORDER BY first_launch_ms NULLS FIRST, stage_id, worker_id, stack_id
    """
    for row in source.rows(statement, [] if worker_id is None else [worker_id]):
        yield Stack(row[0], stage_label(source, row[1], row[2]), tuple(row[3]), row[4], tuple(row[5:]))


def stage_label(source: Source, stage_id: str | None, name: str | None) -> str:
    """The label of a stage: its id and name, or the driver's word."""
    if stage_id is None:
        return source.vocabulary.driver
    return (f"{stage_id} {name}" if name and name != stage_id else stage_id)[:LABEL_CHARACTERS]


def split_line(frame: str) -> tuple[str, int]:
    """The name and the line of a frame, 0 if unknown."""
    name, _, line = frame.rpartition(":")
    return (name, int(line)) if name and line.isdecimal() and len(line) < 10 else (frame, 0)


def without_lines(frames: Sequence[str]) -> list[str]:
    """Frames without their lines, which would divide a function into several boxes of a flame graph."""
    return [split_line(each)[0] for each in frames]
