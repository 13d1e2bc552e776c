"""Profiles of real logs and recorded runs, as Markdown tables.

    python -m lab.checks.corpus logs ../shared/real-inputs
    python -m lab.checks.corpus runs RUN…

`logs` takes every event log that MANIFEST.tsv lists, `runs` folders that lab.runs.spark made.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import crystalperf as cp
from crystalperf import indexes as contract
from crystalperf.indexes import resources
from crystalperf.indexes.errors import CrystalPerfError
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.load import load
from crystalperf.query.inputs.discover import discover
from crystalperf.query.predict.scenario_replay import replay_baseline
from crystalperf.query.run import Run
from crystalperf.query.simulate.replay import Replayed
from lab.pages import cell, head

CONSERVED = 1e-3
"""Tolerance for the sum of a task's, stage's or run's parts, as a share of its time."""


@dataclass(frozen=True)
class Profiled:
    """One run file and its answers; `replayed` is the run unchanged."""

    run: Run
    execution: Execution
    answer: cp.Debug
    replayed: Replayed
    seconds: float

    @property
    def replay_error(self) -> float:
        """(replayed − runtime) / runtime."""
        runtime = self.execution.runtime_ms
        return (self.replayed.makespan_ms - runtime) / runtime if runtime else 0.0


def profiled(paths: Sequence[Path], app: str | None, folder: Path) -> Profiled:
    """Profile, analyze and replay.  Raises CrystalPerfError."""
    begin = time.perf_counter()
    kept = folder / "run.duckdb"
    kept.unlink(missing_ok=True)  # a run of another application is never replaced
    run = cp.profile(paths, output=kept, app=app)
    answer = run.debug()
    seconds = time.perf_counter() - begin
    connection = contract.open_read_only(run.path, "run")
    execution = load(connection)
    connection.close()
    return Profiled(run, execution, answer, replay_baseline(execution).replayed, seconds)


def check(found: Profiled) -> str:
    """`ok`, or the inconsistency: parts of tasks, stages and the run, the graph, tasks that start too early."""
    wrong = []
    connection = contract.open_read_only(found.run.path, "run")
    sums = " + ".join(f"{name}_ms" for name in (*resources(), "other"))
    off = f"abs({sums} - (finish_ms - launch_ms)) > {CONSERVED} * (finish_ms - launch_ms) + 1e-6"
    if connection.execute(f"SELECT count(*) FROM tasks WHERE {off}").fetchall()[0][0]:
        wrong.append("tasks' parts")
    off = f"abs({sums} - (end_ms - start_ms)) > {CONSERVED} * (end_ms - start_ms) + 1e-6"
    if connection.execute(f"SELECT count(*) FROM nodes WHERE {off}").fetchall()[0][0]:
        wrong.append("nodes' parts")
    connection.close()
    runtime = found.answer.runtime_ms
    if abs(sum(found.answer.resource_ms.values()) - runtime) > CONSERVED * runtime + 1e-6:
        wrong.append("the run's parts")
    try:
        found.execution.dag.check()
    except AssertionError as error:
        wrong.append(str(error))
    return ", ".join(wrong) or "ok"


def stage_errors(found: Profiled) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """(stages, 2) in ms: errors of a replayed stage's first launch and last end."""
    rows = []
    tasks = found.execution.tasks
    offset = found.execution.scope.start_ms - found.replayed.start_ms
    for number in range(len(found.execution.dag.stages)):
        mine = tasks.stage == number
        start = found.replayed.launch_ms[mine].min() + offset - tasks.launch_ms[mine].min()
        end = found.replayed.finish_ms[mine].max() + offset - tasks.finish_ms[mine].max()
        rows.append((abs(start), abs(end)))
    return np.array(rows, dtype=np.float64).reshape(-1, 2)


# Tables -----------------------------------------------------------------------------------------------------------


def logs_table(folder: Path, scratch: Path) -> list[str]:
    """A row for every application in the event logs of a manifest."""
    lines = head("log | result | >tasks | >stages | >replay error | check | >seconds")
    done: set[Path] = set()
    with (folder / "MANIFEST.tsv").open(encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream, delimiter="\t") if row["kind"] == "spark-eventlog"]
    for row in rows:
        path, source = folder / row["path"], row["source_path"]
        if path.parent.name.startswith("eventlog_v2_"):
            path, source = path.parent, str(Path(source).parent)
        if path in done:
            continue
        done.add(path)
        name = f"{row['source_repo']} `{cell(source)}`"
        try:
            several = [_id(each.app_id, each.attempt) for each in discover([path]).applications]
        except CrystalPerfError as error:
            lines.append(f"| {name} | {_sentence(error, path)} | | | | | |")
            continue
        if not several:
            lines.append(f"| {name} | no event log in it | | | | | |")
        for app in several:
            which = f"{name}, {app}" if len(several) > 1 else name
            lines.append(f"| {which} | {_log_cells(path, app, scratch)} |")
        print(lines[-1], file=sys.stderr, flush=True)
    return [*lines, _summary(lines[2:])]


def _summary(lines: Sequence[str]) -> str:
    """The total row of the table of logs."""
    rows = [[each.strip() for each in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    good = [row for row in rows if row[2]]
    near = sum(abs(float(row[4].removesuffix(" %"))) <= 2 for row in good)
    tasks, stages = (sum(int(row[place]) for row in good) for place in (2, 3))
    fine, seconds = sum(row[5] == "ok" for row in good), sum(float(row[6]) for row in good)
    what = f"{len(good)} profiles, {len(rows) - len(good)} sentences"
    return f"| all | {what} | {tasks} | {stages} | {near} within 2 % | {fine} ok | {seconds:.0f} |"


def _log_cells(path: Path, app: str, scratch: Path) -> str:
    try:
        found = profiled([path], app, scratch)
    except CrystalPerfError as error:
        return f"{_sentence(error, path)} | | | | | "
    lost = [each for each in found.run.header().problems if each.severity != "info"]
    result = "profile" + (f"; {len(lost)} kinds of data loss or repair" if lost else "")
    tasks, stages = len(found.execution.tasks), len(found.execution.dag.stages)
    off = f"{100 * found.replay_error:+.1f} %"
    return f"{result} | {tasks} | {stages} | {off} | {check(found)} | {found.seconds:.1f}"


def _id(app_id: str, attempt: str | None) -> str:
    return app_id if attempt is None else f"{app_id}/{attempt}"


def _sentence(error: CrystalPerfError, path: Path) -> str:
    return cell(str(error).replace(str(path), path.name).replace(str(path.parent), "…"))


def runs_table(folders: Iterable[Path], scratch: Path) -> list[str]:
    """A row for every recorded run: errors of the replay, and coverage of the samples."""
    lines = head(
        "run | >runtime s | >tasks | >replay error | >stage start off by, median / p95 ms"
        " | >stage end off by, median / p95 ms | >samples on tasks | >decided | >run time accounted for | check"
    )
    for folder in folders:
        try:
            found = profiled([folder], None, scratch)
        except CrystalPerfError as error:
            lines.append(f"| {folder.name} | {_sentence(error, folder)} | | | | | | | | |")
            continue
        start, end = (f"{np.median(column):.0f} / {np.percentile(column, 95):.0f}" for column in stage_errors(found).T)
        samples = found.answer.samples
        decided = f"{100 * samples.resolved / samples.on_tasks:.1f} %" if samples.on_tasks else "no samples"
        runtime = found.answer.runtime_ms
        unknown = found.answer.other_ms.get("unknown", 0.0)
        lines.append(
            f"| {folder.name} | {runtime / 1e3:.1f} | {len(found.execution.tasks)} |"
            f" {100 * found.replay_error:+.2f} % | {start} | {end} | {samples.on_tasks} | {decided} |"
            f" {100 * (1 - unknown / runtime):.1f} % | {check(found)} |"
        )
        print(lines[-1], file=sys.stderr, flush=True)
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m lab.checks.corpus", description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("logs", "runs"))
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("CRYSTALPERF_HOME", f"{folder}/home")
        if given.what == "logs":
            lines = logs_table(given.paths[0], Path(folder))
        else:
            lines = runs_table(given.paths, Path(folder))
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
