"""Runs of the suite: makes the missing ones, and keeps a row of each."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import crystalperf as cp
from lab.errors import LabError
from lab.machine.host import find_cgroups
from lab.runs.cluster import spark_environment
from lab.runs.series import make_missing, read_lines, write_lines
from lab.streams.suite import Configuration, configurations

TIMEOUT_S = 180
_GROUP = "crystalperf-streams"
_LARGEST = {1: ("cpu.shares", 262_144), 2: ("cpu.weight", 10_000)}
"""The weight of a run's cgroup, by the version of cgroups: other work on the machine waits for it."""

_A_RUN_S = 60.0
_SEED = 20210714


def plan(repetitions: int, wanted: Iterable[str]) -> list[tuple[Configuration, int]]:
    """Runs in a fixed random order, in each repetition the baselines first; of the configurations whose names are
    `wanted`, all if there are none."""
    names, rng = set(wanted), random.Random(_SEED)
    planned: list[tuple[Configuration, int]] = []
    for repetition in range(repetitions):
        every = [each for each in configurations() if not names or each.name in names]
        rng.shuffle(every)
        planned += [(each, repetition) for each in sorted(every, key=lambda one: not one.is_base)]
    return planned


def run_suite(out: Path, repetitions: int, wanted: Iterable[str], minutes: float | None) -> int:
    """Make the runs without a row in OUT/rows.jsonl; returns the number still missing (lab.runs.series)."""
    out.mkdir(parents=True, exist_ok=True)
    rows = read_lines(out, key)
    missing = [each for each in plan(repetitions, wanted) if (each[0].name, each[1]) not in rows]

    def made(planned: tuple[Configuration, int]) -> str:
        one, repetition = planned
        found = measured(run_once(one, folder_of(out, one, repetition)))
        facts = {"name": one.name, "repetition": repetition, **found}
        rows[one.name, repetition] = json.dumps(facts)
        return f"{found['batches']} batches of {found['rows']:.0f} rows, {found['batch_ms']:.0f} ms"

    return make_missing(
        missing,
        made,
        lambda planned: planned[0].name,
        lambda: write_lines(out, rows.values()),
        minutes=minutes,
        first_guess_s=_A_RUN_S,
    )


def folder_of(out: Path, one: Configuration, repetition: int) -> Path:
    return out / f"{one.name}-{repetition}"


def key(row: dict[str, Any]) -> tuple[str, int]:
    return row["name"], row["repetition"]


def run_once(one: Configuration, folder: Path) -> Path:
    """Run a configuration once; returns its event log.  Raises LabError if it fails."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "configuration.json").write_text(json.dumps(one.as_json()), encoding="utf-8")
    environment = spark_environment()
    command = _with_priority([sys.executable, "-m", "lab.streams.job", str(folder)])
    with open(folder / "output.txt", "wb") as output:
        done = subprocess.run(command, stdout=output, stderr=output, env=environment, timeout=TIMEOUT_S, check=False)
    shutil.rmtree(folder / "scratch", ignore_errors=True)
    if done.returncode:
        raise LabError(f"{one.name} failed with code {done.returncode}; see {folder / 'output.txt'}.")
    return log_in(folder)


def _with_priority(command: list[str]) -> list[str]:
    """The command in a cgroup of its own with the largest weight; as it is where there are no cgroups, or no root."""
    mount = find_cgroups()
    if mount is None:
        return command
    name, weight = _LARGEST[mount.version]
    folder = mount.cpu / _GROUP
    try:
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(str(weight))
    except OSError:
        return command
    return ["sh", "-c", f'echo $$ > {folder}/cgroup.procs && exec "$@"', "sh", *command]


def log_in(folder: Path) -> Path:
    """The event log in a run's folder.  Raises LabError without one."""
    found = [each for each in folder.glob("local-*") if not each.name.endswith(".inprogress")]
    if not found:
        raise LabError(f"{folder} has no event log of a run that ended.")
    return found[0]


def measured(log: Path) -> dict[str, float]:
    """The batches of a run after its warm-up: their number, and means."""
    run = cp.profile(log)
    batches = run.execution("all").micro_batches
    if batches is None or len(batches) < 2:
        raise LabError(f"{log} has no batches of a stream after its warm-up.")
    return {
        "batches": len(batches),
        "rows": float(batches.rows.mean()),
        "batch_ms": float(batches.time_ms.mean()),
        "interval_ms": batches.interval_ms,
        "rate_per_s": batches.rate_per_s,
        "processed_per_s": 1e3 * float(batches.rows.sum() / batches.time_ms.sum()),
        "last_rows": float(batches.rows[-1]),
    }


def keep(out: Path, to: Path) -> None:
    """Copy the rows, and the log of the first run of each baseline, from which predictions start."""
    to.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(out / "rows.jsonl", to / "rows.jsonl")
    for one in configurations():
        if one.is_base:
            log = log_in(folder_of(out, one, 0))
            shutil.copyfile(log, to / f"{one.name}{log.suffix}")
