"""Resource vectors of stages against ground truth from the kernel.

Each recorded baseline run of a suite gives two vectors for each stage: the profile's, and that of
``lab.machine.shares`` from samples of its task threads.  Their differences are averaged over the stages, weighted by
task time or equally.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from crystalperf import query
from crystalperf.indexes import resources
from crystalperf.query.attribution.storage import view_task_samples
from crystalperf.query.execution.evidence import sampled_sums
from crystalperf.query.frameworks.spark.trace import stage_key
from lab.machine.shares import summarize
from lab.pages import head
from lab.runs.suites import Suite
from lab.runs.sweep import read_rows

Floats = npt.NDArray[np.float64]
Vectors = Mapping[str, Floats]
"""Shares of cpu, disk, net and other by stage attempt, the id of its stage: stage:3.0."""

ARMS = ("hybrid", "metrics only", "code only")
"""Sources of vectors: Spark's log with recordings and labels; Spark's log alone; recordings and labels alone."""


@dataclass(frozen=True)
class Truth:
    """The ground truth of a stage's tasks: shares of cpu, disk, net and other, and the unexplained share.

    Attributes:
        residual: share of task time in unexplained futex waits; it is part of ``shares``' other.
    """

    task_ms: float
    shares: Floats
    residual: float


@dataclass(frozen=True)
class Off:
    """One stage of one run: errors of a vector's shares."""

    task_ms: float
    error: Floats
    residual: float

    @property
    def beyond(self) -> Floats:
        """The part of each share's error that the residual cannot explain, whichever resource it truly was."""
        named, other = self.error[:-1], self.error[-1:]
        least_named = np.maximum.reduce([named - self.residual, -named, np.zeros(len(named))])
        least_other = np.maximum.reduce([other, -other - self.residual, np.zeros(1)])
        return np.concatenate([least_named, least_other])


def truth_of(folder: Path, row: Mapping[str, Any], out: Path) -> dict[str, Truth]:
    """The ground truth of a run by stage attempt, from its samples if they are stored, else from its row."""
    ticks = folder / "truth"
    if (ticks / "ticks.parquet").exists():
        stages = summarize(ticks, out / row["event_log"], row["start_ms"], row["end_ms"])["stages"]
    else:
        stages = json.loads(row["stages"])
    return {
        stage_key(one["stage_id"], one["stage_attempt"]): Truth(
            one["task_ms"],
            np.array([one[name] for name in (*resources(), "other")]),
            max(one["residual_ms"], 0.0) / max(one["task_ms"], 1.0),
        )
        for one in stages
    }


def split_vectors(run: Path) -> dict[str, Floats]:
    """The vectors of a profile's stages: its tasks' times by resource."""
    sums = ", ".join(f"sum({name}_ms) AS {name}" for name in (*resources(), "other"))
    with duckdb.connect(str(run), read_only=True) as connection:
        return shares(connection, f"SELECT stage_id, {sums} FROM tasks WHERE status = 'succeeded' GROUP BY ALL")


def code_vectors(run: Path) -> dict[str, Floats]:
    """The vectors from recordings and labels only: the time sampled in each stage, by resource."""
    with duckdb.connect() as connection:
        load_samples(connection, run)
        return shares(connection, f"SELECT stage_id, {sampled_sums(resources())} FROM task_samples GROUP BY ALL")


def load_samples(connection: duckdb.DuckDBPyConnection, run: Path) -> None:
    """Copy the samples of a run file into memory, with the view `task_samples`."""
    connection.execute(f"ATTACH '{str(run).replace(chr(39), chr(39) * 2)}' AS run (READ_ONLY)")
    for name in ("runs", "samples", "stacks", "stage_inputs"):
        connection.execute(f"CREATE TABLE {name} AS FROM run.{name}")
    view_task_samples(connection, connection.execute("FROM run.tasks").fetchnumpy(), resources())


def shares(connection: duckdb.DuckDBPyConnection, select: str) -> dict[str, Floats]:
    """Rows of (stage id, time on each resource and other) as shares by stage."""
    found = {}
    for stage, *parts in connection.execute(select).fetchall():
        times = np.array(parts, dtype=np.float64)
        if times.sum() > 0:
            found[stage] = times / times.sum()
    return found


def compare(vectors: Vectors, truth: Mapping[str, Truth]) -> list[Off]:
    """The errors of vectors by stage; a stage without a vector counts as `other`."""
    unknown = np.zeros(len(resources()) + 1)
    unknown[-1] = 1.0
    return [
        Off(each.task_ms, vectors.get(stage, unknown) - each.shares, each.residual) for stage, each in truth.items()
    ]


def profiled(row: Mapping[str, Any], out: Path, kept: Path) -> Path:
    """The run file of a recorded run, from its row; `kept` is the folder for it."""
    kept.mkdir(parents=True, exist_ok=True)
    inputs = [out / row["event_log"], *(out / name for name in json.loads(row["recordings"]))]
    return query.profile(inputs, output=kept / f"{row['run'].replace('/', '-')}.duckdb").path


def recorded(suite: Suite, out: Path, kept: Path) -> dict[tuple[str, str], list[Off]]:
    """The differences of all baseline runs of a suite by recorder (`jfr 20 ms`, …, `none`) and arm."""
    found: dict[tuple[str, str], list[Off]] = {}
    for row in read_rows(out, suite):
        if row["role"] != "base" or not (out / row["event_log"]).exists():
            continue
        truth = truth_of(out / row["run"], row, out)
        is_recorded = row["sampler"] != "none"
        recorder = f"{row['sampler']} {row['sample_ms']} ms" if is_recorded else "none"
        log, name = out / row["event_log"], row["run"].replace("/", "-")
        arms = {"metrics only": split_vectors(query.profile([log], output=kept / f"{name}-log.duckdb").path)}
        if is_recorded:
            run = profiled(row, out, kept)
            arms |= {"hybrid": split_vectors(run), "code only": code_vectors(run)}
        for arm, vectors in arms.items():
            found.setdefault((recorder, arm), []).extend(compare(vectors, truth))
    return found


def average(rows: Sequence[Off], values: Iterable[Floats], *, weighted: bool = True) -> Floats:
    """The mean over stages of one array each, weighted by task time or equally."""
    weight = np.array([each.task_ms for each in rows]) if weighted else np.ones(len(rows))
    result: Floats = np.average(np.stack(list(values)), axis=0, weights=weight)
    return result


def vector_table(suite: Suite, out: Path, kept: Path) -> str:
    """Mean absolute error and bias of each share, in points, by recorder and arm, as a Markdown table.

    `kept` is a folder for run files.  Empty if the suite has no baseline run.

    """
    kept.mkdir(parents=True, exist_ok=True)
    found = recorded(suite, out, kept)
    names = (*resources(), "other")
    errors = f"error {' / '.join(names)}"
    lines = head(f"recorder | vectors | >stages | {errors} | bias | stages alike | beyond the residual")

    def place(key: tuple[str, str]) -> tuple[int, str, int]:
        return ("jfr", "async", "none").index(key[0].partition(" ")[0]), key[0], ARMS.index(key[1])

    for recorder, arm in sorted(found, key=place):
        rows = found[recorder, arm]
        size = [abs(each.error) for each in rows]
        cells = [
            points(average(rows, size)),
            points(average(rows, (each.error for each in rows)), signed=True),
            points(average(rows, size, weighted=False)),
            points(average(rows, (each.beyond for each in rows))),
        ]
        lines.append(f"| {recorder} | {arm} | {len(rows)} | {' | '.join(cells)} |")
    return "\n".join(lines) if found else ""


def points(shares: Floats, *, signed: bool = False) -> str:
    return " / ".join(f"{100 * each:+.1f}" if signed else f"{100 * each:.1f}" for each in shares.tolist())
