"""Data missing from a log, and whether it could change the bottleneck of a scope.

Missing data may hide these parts of the critical path:

- time of stages with tasks that have no end in the log: the share of such tasks; all of the time in which none of the
  stage's other tasks is known to run
- all time without a task, if parts of the log are missing; if the start of the log is missing, an unbounded time
- waiting for the first worker, if the log does not have the start times of workers

The bottleneck is conclusive if it is the same whether none of that time is missing, or all of it went to the runner-up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import duckdb
import numpy as np

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.resources import OTHER
from crystalperf.query.diagnose.advisor import Advisor
from crystalperf.query.diagnose.bottleneck import bottleneck_of
from crystalperf.query.diagnose.stage_statistics import named
from crystalperf.query.diagnose.waiting import waiting
from crystalperf.query.execution.critical_path import Piece, WallClock
from crystalperf.query.execution.execution import Execution, Lost
from crystalperf.query.execution.load import ALL, WHOLE
from crystalperf.query.results.answers import Cause, Debug, MissingDataDoubt
from crystalperf.query.results.missing import Missing, UnannouncedWorkers, UnendedTasks, UnreadPart, UnreadParts
from crystalperf.query.trace.records import Floats


@frozen
class _Hidden:
    """An interval in which a share of a stage's time is unknown; `stage` None means time without a task."""

    start_ms: float
    end_ms: float
    share: float
    stage: str | None


@frozen
class _Missing:
    """Missing data and the maximum time of the path that it may hide; `endless` if that has no bound."""

    what: Missing
    time_ms: float
    endless: bool = False


def with_missing_data(
    connection: duckdb.DuckDBPyConnection,
    execution: Execution,
    advisor: Advisor,
    pieces: Sequence[Piece],
    alive: Floats,
    debug: Debug,
) -> Debug:
    """The diagnosis with doubts: the missing data that could change its bottleneck.

    `pieces` are its critical path, `alive` the intervals with workers (query.diagnose.waiting.with_workers).
    """
    parts = _missing_parts(execution)
    unannounced = _unannounced(connection)
    if not (execution.lost or parts or unannounced):
        return debug
    hidden = [each for lost in execution.lost for each in _hidden(lost)]
    known = _known(execution, pieces, hidden)
    missing = []
    if execution.lost:
        missing.append(_Missing(_unended(execution), _length(pieces) - _length(known)))
    if parts and execution.log.lacks_start:
        if execution.scope.text in (ALL, WHOLE):
            missing.append(_Missing(parts, 0.0, endless=True))
    elif parts:
        apart = [each for each in known if each.node.kind != "driver"]
        missing.append(_Missing(parts, _length(known) - _length(apart)))
        known = apart
    other_ms, _ = waiting(connection, execution, advisor, known, alive)
    if unannounced:
        missing.append(_Missing(UnannouncedWorkers(unannounced), other_ms.pop("no worker", 0.0)))
    missing = [each for each in missing if each.time_ms > 0 or each.endless]
    rest_debug = _of(debug, known, other_ms, execution)
    found, rest = bottleneck_of(debug), bottleneck_of(rest_debug)
    if not any(e.endless for e in missing) and _is_certain(found.name, rest_debug, sum(e.time_ms for e in missing)):
        return debug
    name = None if rest.kind in ("unknown", "nothing") else rest.name
    return replace(
        debug,
        missing_data=tuple(
            MissingDataDoubt(each.what, each.time_ms, found.name, None, name, rest.time_ms) for each in missing
        ),
    )


def _is_certain(name: str, known: Debug, missing_ms: float) -> bool:
    """Whether `name` is the bottleneck even if all missing time went to the runner-up."""
    candidates: dict[str, float] = {each: ms for each, ms in known.resource_ms.items() if each != OTHER}
    if name == "driver" and known.other_ms.get("driver", 0.0) < known.driver_ms:
        own_ms = known.driver_ms
    else:
        candidates.update(dict(known.other_ms.items()))
        own_ms = candidates.pop(name, 0.0)
    return own_ms >= max(candidates.values(), default=0.0) + missing_ms


# Intervals ------------------------------------------------------------------------------------------------------------


def _hidden(lost: Lost) -> Iterator[_Hidden]:
    """The intervals in which tasks of a stage without a recorded end may have run."""
    last_ms = lost.end_ms if lost.last_ms is None else lost.last_ms
    for stage in (lost.stage_id, None):
        yield _Hidden(lost.start_ms, last_ms, lost.share, stage)
        yield _Hidden(last_ms, lost.end_ms, 1.0, stage)


def _known(execution: Execution, pieces: Sequence[Piece], hidden: Sequence[_Hidden]) -> list[Piece]:
    """The known part of the path, split where the known share changes."""
    if not hidden:
        return list(pieces)
    wall = WallClock(execution.dag, execution.tasks, execution.driver.between, execution.names)
    start, end = (np.array([getattr(each, name) for each in hidden]) for name in ("start_ms", "end_ms"))
    found = []
    for piece in pieces:
        node = piece.node
        near = np.flatnonzero((start < piece.end_ms) & (end > piece.start_ms)).tolist()
        stage = node.node_id if node.stage is not None else None
        own = [each for each in (hidden[number] for number in near) if each.stage == stage]
        if not own or node.kind == "transfer":
            found.append(piece)
            continue
        moments = {piece.start_ms, piece.end_ms, *(each.start_ms for each in own), *(each.end_ms for each in own)}
        for begin, stop in pairwise(sorted(each for each in moments if piece.start_ms <= each <= piece.end_ms)):
            share = max((each.share for each in own if each.start_ms <= begin and each.end_ms >= stop), default=0.0)
            if share < 1 and stop > begin:
                found.append(Piece(node, begin, stop, wall.parts(node, begin, stop) * (1 - share)))
    return found


def _length(pieces: Sequence[Piece]) -> float:
    return sum(float(each.parts_ms.sum()) for each in pieces)


def _of(debug: Debug, known: Sequence[Piece], other_ms: dict[Cause, float], execution: Execution) -> Debug:
    """The diagnosis from the known part of the path only."""
    total = np.sum([each.parts_ms for each in known], axis=0) if known else np.zeros(len(execution.names) + 1)
    alone_ms = sum(float(each.parts_ms.sum()) for each in known if each.node.kind == "driver" and not each.node.held)
    return replace(
        debug, resource_ms=named(total, execution.names), other_ms=other_ms, driver_ms=alone_ms, missing_data=()
    )


# Missing data ---------------------------------------------------------------------------------------------------------


def _unended(execution: Execution) -> UnendedTasks:
    lost = execution.lost
    count, total = sum(each.lost for each in lost), sum(each.total for each in lost)
    return UnendedTasks(count, total, lost[0].stage_id if len(lost) == 1 else None, len(lost))


def _missing_parts(execution: Execution) -> UnreadParts | None:
    """The missing parts of the log by problem; None for none."""
    parts = execution.log.unread_parts
    return UnreadParts(tuple(UnreadPart(name, count) for name, count in sorted(parts.items()))) if parts else None


def _unannounced(connection: duckdb.DuckDBPyConnection) -> int:
    """The number of workers that the log has only from their tasks."""
    rows = connection.execute(
        """
        SELECT count(*) FROM workers
        WHERE kind = 'worker' AND coalesce(slots, 0) = 0 AND worker_id IN (SELECT worker_id FROM tasks)
        """
    ).fetchall()
    return int(rows[0][0])
