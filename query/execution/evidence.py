"""Resource shares of samples, and how certain the resource shares of a scope are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import duckdb
import numpy as np

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.resources import CPU, with_other
from crystalperf.query import sql
from crystalperf.query.execution.dag import Tasks
from crystalperf.query.trace.records import Floats, uses_of
from crystalperf.query.trace.sample_kinds import ON_CPU, TIMED_KINDS


@frozen
class Evidence:
    """The uncertainty of the resource shares of task time.

    `sampling` and `labels` are (resources,): standard deviations of each resource's share of the scope's task time,
    from the number of samples and from the classes' probabilities.  `unseen_resources` is the share that is `other`,
    except for measured waits for pipelined stages, if the recording has those.
    """

    sampling: Floats
    labels: Floats
    unseen_resources: float
    missing_cpu_share: float = 0.0
    """The share of task time that is unseen and may be computing: CPU time of its tasks was not measured, or another
    process computes for them.  Unseen time of other tasks does not compute; it may wait for a CPU."""


def gathered(
    connection: duckdb.DuckDBPyConnection,
    start_ms: float,
    end_ms: float,
    tasks: Tasks,
    names: Sequence[str],
    *,
    has_upstream_waits: bool,
) -> Evidence:
    """The uncertainty of a scope's resource shares from samples and labels.

    Samples arrive like a Poisson process, so a count of n has a variance of about n.  A label matters only if the
    thread state does not decide: then the function has one class or another, drawn once for all of its samples.  Two
    kinds of its time need no label: stacks that end in a call for a device (share 0 or 1), and measured waits for data
    of other workers.  The query adds samples up before it joins stacks, because there are many times more samples.
    """
    per_function = ", ".join(
        f"sum(square_ms2 * {share} * {share}) FILTER (NOT {is_interval()}) AS sampling_{name}, "
        f"pow(sum(weight_ms * sqrt(greatest({name} * (1 - {name}), 0))) FILTER (NOT {computes()}), 2) AS labels_{name}"
        for name, share in zip(names, _shares(names), strict=True)
    )
    sums = ", ".join(f"coalesce(sum({kind}_{name}), 0)" for kind in ("sampling", "labels") for name in names)
    question = f"""
        WITH seen AS (
            SELECT stack_id, kind, sum(weight_ms) AS weight_ms, sum(weight_ms * weight_ms) AS square_ms2
            FROM samples
            WHERE task_id IS NOT NULL AND time_ms BETWEEN ? AND ?
            GROUP BY ALL
        ),
        functions AS (
            SELECT
                sum(weight_ms) AS total_ms, sum(weight_ms) FILTER (NOT {computes()}) AS labelled_ms,
                {per_function}
            FROM seen JOIN stacks USING (stack_id)
            GROUP BY symbol
        )
        SELECT coalesce(sum(total_ms), 0), coalesce(sum(labelled_ms), 0), {sums} FROM functions
        """
    row = (0.0,) * (2 + 2 * len(names))
    if sql.has_rows(connection, "samples"):
        row = connection.execute(question, [start_ms, end_ms]).fetchall()[0]
    total_ms, labelled_ms, *variances = row
    waited_ms = connection.execute(
        "SELECT coalesce(sum(fetch_wait_ms), 0) FROM tasks WHERE finish_ms > ? AND launch_ms < ?", [start_ms, end_ms]
    ).fetchall()[0][0]
    busy = float(tasks.duration_ms.sum()) or 1.0
    labelled = labelled_ms / total_ms if total_ms else 0.0
    open_share = max(labelled - waited_ms / busy, 0.0) / labelled if labelled else 0.0
    deviations = np.sqrt(np.array(variances, dtype=np.float64)).reshape(2, len(names)) / (total_ms or 1.0)
    missing_ms = float((tasks.parts_ms[:, -1] - (tasks.pipeline_wait_ms if has_upstream_waits else 0.0)).sum())
    # The database adds up in the order of its threads, which changes the last digits: rounding makes the answer to a
    # request reproducible.
    sampling, labels = np.round(deviations * np.array([[1.0], [open_share]]), DECIMALS)
    return Evidence(sampling, labels, missing_ms / busy)


DECIMALS = 12
"""Decimals of a share: finer than any reported figure, coarser than what the order of a sum changes."""


def sampled_sums(names: Sequence[str]) -> str:
    """SQL: the sampled time on each resource and `other`, over rows of samples joined with stacks.

    A runnable thread is on the CPU or waits for one, whatever device its function uses; so is a thread in native code
    that only computes.  For any other thread, the function decides what it waits for.
    """
    undecided = f"CASE WHEN {computes()} OR attributed_depth IS NOT NULL THEN 0 ELSE 1 END"
    columns = zip(with_other(names), (*_shares(names), undecided), strict=True)
    return ", ".join(f"sum(weight_ms * {share}) AS {name}" for name, share in columns)


def computes() -> str:
    """SQL: whether a sampled thread is on the CPU or waits for one, by its state."""
    return f"(kind IN ({_listed(ON_CPU)}) OR (kind = 'native' AND contains(coalesce(skipped, ''), 'compute')))"


def is_interval() -> str:
    """SQL: whether a row of samples is a measured interval, rather than a tick of the sampler."""
    return f"kind IN ({_listed(tuple(TIMED_KINDS.values()))})"


def rests() -> str:
    """SQL: whether the thread of a stack is at rest, as query.inputs.frames defines it."""
    return "list_contains(string_split(coalesce(skipped, ''), ','), 'rest')"


def _shares(names: Sequence[str]) -> list[str]:
    """SQL: the share of a sample on each resource."""
    return [f"CASE WHEN {computes()} THEN {float(name == CPU)} ELSE coalesce({name}, 0) END" for name in names]


def _listed(texts: tuple[str, ...]) -> str:
    return ", ".join(f"'{text}'" for text in texts)


MEASURED = 0.02
"""Minimum share of a task's time, without garbage collection, from which its CPU time counts as measured."""


def missing_cpu_share(
    connection: duckdb.DuckDBPyConnection,
    start_ms: float,
    end_ms: float,
    delegates: Callable[[frozenset[str]], bool],
    *,
    has_upstream_waits: bool,
) -> float:
    """The share for Evidence.missing_cpu_share; `delegates` is as in query.inputs.reader.Reader."""
    rows = connection.execute(
        """
        SELECT
            any_value(io_kinds),
            sum(finish_ms - launch_ms),
            sum(tasks.other_ms - if($4, coalesce(pipeline_wait_ms, 0), 0)) AS unseen_ms,
            coalesce(sum(tasks.other_ms - if($4, coalesce(pipeline_wait_ms, 0), 0)) FILTER (
                own_cpu_ms IS NULL AND tasks.cpu_ms - coalesce(gc_ms, 0) <= $3 * (finish_ms - launch_ms)
            ), 0) AS unmeasured_ms
        FROM tasks LEFT JOIN stages USING (stage_id)
        WHERE finish_ms > $1 AND launch_ms < $2
        GROUP BY stage_id
        """,
        [start_ms, end_ms, MEASURED, has_upstream_waits],
    ).fetchall()
    busy = sum(row[1] for row in rows) or 1.0
    share = (
        sum(
            unseen_resources if delegates(uses_of(what)) else unmeasured
            for what, _, unseen_resources, unmeasured in rows
        )
        / busy
    )
    return round(float(share), DECIMALS)
