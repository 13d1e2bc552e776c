"""Operators of a stream against ground truth: CPU shares, and the busy time of a record at another CPU quota.

This is the experiment of the paper's §7.3, on any two runs of one job.  CPU shares are compared with the kernel's CPU
time by thread (lab.flink.truth), and busy times of the second run with predictions from the first.  In a job without
chaining (`--no-chaining`), each operator has separate threads.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb

import crystalperf as cp
from crystalperf.query.execution.evidence import computes
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.load import load
from crystalperf.query.execution.stream import Stream
from crystalperf.query.run import Run
from crystalperf.query.streaming.predict import changed
from crystalperf.query.trace.sample_kinds import WAKING
from lab.errors import LabError
from lab.flink.baselines import requested_scenario
from lab.flink.truth import WARM_UP_S
from lab.pages import head

NETWORK = "network (Netty)"
_NETTY = "Flink Netty"
_COMM = 15
"""Length of a thread's name in the kernel."""

_EVENT_LOOP = "EventLoop.run"  # Netty's over NIO, or over epoll if available

_RAN = f"{computes()} AND kind <> '{WAKING}'"  # a thread that waits for the CPU is not on it


@dataclass(frozen=True)
class Shares:
    """Shares of CPU time by operator, and of the network threads: reported, by samples, and true.

    `event_loop` is the share of these samples in an event loop of Netty.
    """

    reported: Mapping[str, float]
    sampled: Mapping[str, float]
    true: Mapping[str, float]
    event_loop: float


def report(base: Path, other: Path | None) -> str:
    """The tables of one run, or of two runs with different CPU quotas.  Raises LabError."""
    lines = []
    for folder in (base, other) if other else (base,):
        row = _row(folder)
        lines += [f"{folder.name}: {row['cluster']['cpu_cores']} of a core each TaskManager", ""]
        lines += head("operator | CPU, reported % | kernel % | points | samples %")
        found = shares(_run(folder), row)
        lines += [
            f"| {name} | {100 * reported:.1f} | {100 * found.true[name]:.1f}"
            f" | {100 * (reported - found.true[name]):+.1f} | {100 * found.sampled[name]:.1f} |"
            for name, reported in found.reported.items()
        ]
        lines += ["", f"Samples on the CPU in an event loop of Netty: {100 * found.event_loop:.1f} %", ""]
    if other:
        lines += _busy_times(base, other)
    return "\n".join(lines).rstrip()


def shares(run: Run, row: Mapping[str, object]) -> Shares:
    """CPU shares of the time after warm-up, like the ground truth (lab.flink.truth)."""
    with run.reading() as connection:
        stream = _flow(connection, load(connection, "all"))
        names = tuple(each.name for each in stream.stations)
        start_ms = _marked_ms(connection)
        reported = dict(connection.execute(_REPORTED, [_NETTY, NETWORK, start_ms]).fetchall())
        sampled = dict(connection.execute(_SAMPLED.format(on_cpu=_RAN), [_NETTY, NETWORK, start_ms]).fetchall())
        loop = connection.execute(_LOOP.format(on_cpu=_RAN), [_EVENT_LOOP, _NETTY, start_ms]).fetchone()
    true = dict.fromkeys((*names, NETWORK), 0.0)
    threads = row["threads_ms"]
    assert isinstance(threads, Mapping)
    for times in threads.values():
        for thread, ms in times.items():
            if (name := _owner(thread, names)) is not None:
                true[name] += ms
    return Shares(
        _normed({name: reported.get(name, 0.0) for name in true}),
        _normed({name: sampled.get(name, 0.0) for name in true}),
        _normed(true),
        0.0 if loop is None else loop[0] or 0.0,
    )


_REPORTED = """
    -- measured CPU time by operator, and of network threads: name, ms
    SELECT CASE WHEN l.task_id IS NULL THEN $2 ELSE g.name END AS name,
        sum(l.cpu_ms * (l.end_ms - greatest(l.start_ms, $3)) / (l.end_ms - l.start_ms))
    FROM thread_loads AS l
    LEFT JOIN tasks AS u ON u.task_id = l.task_id
    LEFT JOIN stages AS g ON g.stage_id = u.stage_id
    WHERE (l.task_id IS NOT NULL OR starts_with(l.thread, $1)) AND l.end_ms > greatest(l.start_ms, $3)
    GROUP BY 1
"""

_SAMPLED = """
    -- CPU time on samples by operator, and of network threads: name, ms
    SELECT CASE WHEN s.task_id IS NULL THEN $2 ELSE g.name END AS name, sum(weight_ms)
    FROM samples AS s
    JOIN stacks USING (stack_id)
    LEFT JOIN tasks AS u ON u.task_id = s.task_id
    LEFT JOIN stages AS g ON g.stage_id = u.stage_id
    WHERE {on_cpu} AND (s.task_id IS NOT NULL OR starts_with(s.thread, $1)) AND s.time_ms >= $3
    GROUP BY 1
"""

_LOOP = """
    -- the share of CPU samples of operators and network threads under Netty's event loop
    SELECT sum(weight_ms) FILTER (len(list_filter(frames, lambda f: contains(f, $1))) > 0) / sum(weight_ms)
    FROM samples AS s JOIN stacks USING (stack_id)
    WHERE {on_cpu} AND (s.task_id IS NOT NULL OR starts_with(s.thread, $2)) AND s.time_ms >= $3
"""


def _marked_ms(connection: duckdb.DuckDBPyConnection) -> float:
    """The start of the ground truth: the first subtask plus the warm-up."""
    first = connection.execute("SELECT min(launch_ms) FROM tasks").fetchone()
    assert first is not None
    return float(first[0]) + 1e3 * WARM_UP_S


def _owner(thread: str, names: tuple[str, ...]) -> str | None:
    """The operator of a thread name, which the kernel has truncated."""
    if thread.startswith(_NETTY):
        return NETWORK
    return next((name for name in names if thread.strip() == name[:_COMM].strip()), None)


def _normed(sums: Mapping[str, float]) -> dict[str, float]:
    whole = sum(sums.values()) or 1.0
    return {name: each / whole for name, each in sums.items()}


def _busy_times(base: Path, other: Path) -> Iterator[str]:
    """Busy time of a record at each operator: the first run's, the prediction for the second run, and the second's."""
    cores = [_row(folder)["cluster"]["cpu_cores"] for folder in (base, other)]
    before, predicted = _predicted(_run(base), cores[1] / cores[0])
    with _run(other).reading() as connection:
        after = _flow(connection, load(connection, "all"))
    yield f"Busy time of a record, µs; predicted with cpu_speed={cores[1] / cores[0]:g}x"
    yield ""
    yield from head(f"operator | at {cores[0]} of a core | predicted at {cores[1]} | measured | off %")
    for was, reported, true in zip(before.stations, predicted.stations, after.stations, strict=True):
        off = 100 * (reported.record_ms / true.record_ms - 1) if true.record_ms else float("nan")
        yield (
            f"| {was.name} | {1e3 * was.record_ms:.1f} | {1e3 * reported.record_ms:.1f} | {1e3 * true.record_ms:.1f} |"
            f" {off:+.0f} |"
        )


def _predicted(run: Run, ratio: float) -> tuple[Stream, Stream]:
    """A run's stream, and its prediction for another CPU speed."""
    with run.reading() as connection:
        execution = load(connection, "all")
        stream = _flow(connection, execution)
    return stream, changed(stream, execution, requested_scenario(execution, [f"cpu_speed={ratio:g}x"]))[0]


def _flow(connection: duckdb.DuckDBPyConnection, execution: Execution) -> Stream:
    stream = None if execution.planner.stream is None else execution.planner.stream(connection, execution)
    if stream is None:
        raise LabError("the run is not a stream with a steady period; only streams have figures by operator")
    return stream


def _run(folder: Path) -> Run:
    return cp.profile([folder / "collected", folder / "recordings"])


def _row(folder: Path) -> dict[str, dict[str, float]]:
    try:
        row: dict[str, dict[str, float]] = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    except OSError as error:
        raise LabError(f"{folder}: no run.json; `python -m lab.flink run` makes one") from error
    return row
