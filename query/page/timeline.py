"""The timeline of a run: every task on a lane of its worker, aggregated if there are too many for a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.resources import with_other
from crystalperf.query.execution.lanes import lanes
from crystalperf.query.page.page_text import figure_of, merged_bars_sentence
from crystalperf.query.results.page import Bars, Intervals, PageWorkers, Timeline
from crystalperf.query.text.figures import time_unit
from crystalperf.query.trace.records import Floats, Ints
from crystalperf.query.trace.vocabulary import Vocabulary

if TYPE_CHECKING:
    import duckdb

    from crystalperf.query.execution.execution import Execution

MAX_BARS = 100_000
"""Maximum rows of tasks on a page; beyond it, short consecutive tasks are merged."""

STATUSES = ("succeeded", "failed", "killed", "unfinished")

_FINEST = 20_000
"""The initial maximum length of a merged bar is the run's length divided by this."""


def timeline(connection: duckdb.DuckDBPyConnection, execution: Execution) -> Timeline:
    """The timeline of a scope, in recorded time."""
    start, end = execution.scope.start_ms, execution.scope.end_ms
    parts = ", ".join(f"coalesce({name}_ms, 0)" for name in with_other(execution.names))
    columns = connection.execute(
        f"""
        SELECT
            coalesce(worker_id, '?') AS worker_id, stage_id, status,
            greatest(launch_ms, $1) AS launch_ms, least(finish_ms, $2) AS finish_ms,
            list_position([{parts}], list_max([{parts}])) - 1 AS resource
        FROM tasks
        WHERE finish_ms > $1 AND launch_ms < $2
        ORDER BY worker_id, launch_ms, finish_ms, task_id
        """,
        [start, end],
    ).fetchnumpy()
    stages = _in_order(columns["stage_id"].tolist())
    names = dict(connection.execute("SELECT stage_id, coalesce(name, stage_id) FROM stages").fetchall())
    workers = _workers(connection, dict.fromkeys(columns["worker_id"].tolist()))
    launch = np.asarray(columns["launch_ms"], dtype=np.float64)
    finish = np.asarray(columns["finish_ms"], dtype=np.float64)
    worker = np.array([workers[each][0] for each in columns["worker_id"].tolist()], dtype=np.int64)
    lane, of_lane = lanes(worker, launch, finish, overlap_ms=0.5)  # timestamps are whole milliseconds
    stage = np.array([stages[each] for each in columns["stage_id"].tolist()], dtype=np.int64)
    status = np.array([_status(each) for each in columns["status"].tolist()], dtype=np.int64)
    resource = np.asarray(columns["resource"]).astype(np.int64)
    tasks = _Tasks(lane, launch, finish, stage, status, resource)
    bars, coarsened = _bars(tasks, end - start, execution.words.vocabulary)
    nodes = [node for node in execution.dag.nodes.values() if node.stage is None and node.end_ms > node.start_ms]
    between = [
        (node.node_id, node.name, first, last)
        for node in nodes
        for first, last in execution.clock.recorded(node.start_ms, node.end_ms)
    ]
    return Timeline(
        start_ms=start,
        end_ms=end,
        figure=figure_of(time_unit(end - start if execution.stream is not None else execution.runtime_ms)),
        workers=_places([row for _, row in workers.values()]),
        lanes=tuple(of_lane),
        stages=tuple(stages),
        stage_names=tuple(names.get(each, each) for each in stages),
        statuses=STATUSES,
        tasks=bars,
        driver=_intervals(between),
        pauses=_intervals([("", "", first, last) for first, last in execution.clock.left_out.tolist()]),
        coarsened=coarsened,
    )


def _in_order(texts: Sequence[str]) -> dict[str, int]:
    return {each: number for number, each in enumerate(dict.fromkeys(texts))}


def _status(text: str) -> int:
    return STATUSES.index(text) if text in STATUSES else 0


def _workers(connection: duckdb.DuckDBPyConnection, ran: dict[str, None]) -> dict[str, tuple[int, tuple[Any, ...]]]:
    """Workers that ran tasks or had lanes, in order of their start: the number and the row of each by id."""
    rows = connection.execute(
        """
        SELECT worker_id, host, added_ms, removed_ms, removed_reason FROM workers
        WHERE list_contains(?, worker_id) OR coalesce(slots, 0) > 0
        ORDER BY added_ms, length(worker_id), worker_id
        """,
        [list(ran)],
    ).fetchall()
    found = {row[0]: row for row in rows}
    for each in ran:  # workers that the log has only from their tasks
        found.setdefault(each, (each, None, 0.0, None, None))
    return {worker_id: (number, row) for number, (worker_id, row) in enumerate(found.items())}


def _places(rows: Sequence[tuple[Any, ...]]) -> PageWorkers:
    return PageWorkers(
        id=tuple(row[0] for row in rows),
        host=tuple(row[1] for row in rows),
        start_ms=tuple(round(row[2]) for row in rows),
        end_ms=tuple(None if row[3] is None else round(row[3]) for row in rows),
        reason=tuple(row[4] for row in rows),
    )


def _intervals(rows: Sequence[tuple[str, str, float, float]]) -> Intervals:
    ordered = sorted(rows, key=lambda row: row[2:])
    ids, names, starts, ends = zip(*ordered, strict=True) if ordered else ((), (), (), ())
    return Intervals(tuple(ids), tuple(names), tuple(starts), tuple(ends))


@frozen
class _Tasks:
    """The tasks of a run by lane, (tasks,) each; ms since application start."""

    lane: Ints
    launch: Floats
    finish: Floats
    stage: Ints
    status: Ints
    resource: Ints


def _bars(tasks: _Tasks, length_ms: float, words: Vocabulary) -> tuple[Bars, str]:
    """Tasks as rows; if there are too many, short consecutive tasks of a stage on a lane are merged into one row.

    A merged row has the status and the resource of its worst task, among these of the longest.
    """
    lane, launch, finish, stage = tasks.lane, tasks.launch, tasks.finish, tasks.stage
    count = np.ones(len(lane), dtype=np.int64)
    page_text, cell_ms = "", max(length_ms, 1.0) / _FINEST
    kept = np.arange(len(lane))
    first, last = launch, finish
    while len(kept) > MAX_BARS and cell_ms <= 2 * length_ms:  # at the limit, every stage is one row on every lane
        short = finish - launch < cell_ms
        cell = np.where(short, np.floor(launch / cell_ms), -1 - np.arange(len(lane), dtype=np.float64))
        order = np.lexsort((launch - finish, -tasks.status, cell, stage, lane))
        keys = np.stack([lane[order], stage[order], cell[order]])
        opens = np.concatenate([[True], (keys[:, 1:] != keys[:, :-1]).any(axis=0)])
        begin = np.flatnonzero(opens)
        kept = order[begin]
        first, last = np.minimum.reduceat(launch[order], begin), np.maximum.reduceat(finish[order], begin)
        count = np.diff(np.append(begin, len(order)))
        page_text = merged_bars_sentence(cell_ms, len(begin), len(lane), words)
        cell_ms *= 2
    if not page_text:
        first, last = launch, finish
    order = np.lexsort((first, lane[kept]))
    kept, first, last = kept[order], np.rint(first[order]), np.rint(last[order])
    return (
        Bars(
            lane=tuple(lane[kept].tolist()),
            start_ms=tuple(first.astype(np.int64).tolist()),
            length_ms=tuple((last - first).astype(np.int64).tolist()),
            stage=tuple(stage[kept].tolist()),
            status=tuple(tasks.status[kept].tolist()),
            resource=tuple(tasks.resource[kept].tolist()),
            count=tuple(count[order].tolist()) if page_text else (),
        ),
        page_text,
    )
