"""Run a suite: every configuration several times, in a fixed random order, with baseline runs in between.

The speed of these machines varies by 10 to 30 %, so two runs are comparable only if they are close in time. The
baseline runs repeatedly, with its samplers in turn, and repetitions of a configuration are far apart. A run is a folder
with a ``run.json``; a stopped sweep continues where it was.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from lab.errors import LabError
from lab.runs.series import make_missing
from lab.runs.spark import RunConfig, Sampling, run_once
from lab.runs.suites import Configuration, Suite, cluster_config, configurations

MAX_REPETITIONS = 7
RUN_TIMEOUT_S = 420.0
_SEED = 20210714
_FIRST_GUESS_S = 60.0
# Samplers of the baseline, in turn. Each recorded run has an unrecorded one next to it, to measure the recording's
# cost.
BASE_SAMPLERS = (
    Sampling("jfr", 20),
    Sampling("none"),
    Sampling("async", 20),
    Sampling("none"),
    Sampling("jfr", 100),
    Sampling("none"),
)


def _recorder(sampling: Sampling) -> str:
    """The recorder of a run, with its period in ms."""
    return sampling.kind if sampling.kind == "none" else f"{sampling.kind}{sampling.sample_ms}"


RECORDERS = tuple(dict.fromkeys(map(_recorder, BASE_SAMPLERS)))
MIN_BASE_RUNS = 3
CONFIGURATION_PER_BASE = 2


@dataclass(frozen=True)
class Planned:
    """One planned run: its folder's name, configuration, sampler and repetition."""

    name: str
    configuration: Configuration
    sampling: Sampling
    repetition: int


def plan(
    suite: Suite, repetitions: int, only: str | None = None, recorders: Sequence[str] | None = None
) -> list[Planned]:
    """All runs of a suite in a fixed order.

    ``only`` is None, ``base``, ``even`` or ``odd``; baseline runs stay between those of the configurations.  If
    ``recorders`` (``RECORDERS``) are given, only baseline runs of these; their names are those of the whole plan.
    """
    if unknown := sorted(set(recorders or ()) - set(RECORDERS)):
        raise LabError(f"'{unknown[0]}' is not a recorder; choose among {', '.join(RECORDERS)}.")
    if not 1 <= repetitions <= MAX_REPETITIONS:
        raise LabError(f"{repetitions} repetitions are out of range; use 1 to {MAX_REPETITIONS}.")
    rng = random.Random(_SEED)
    every = configurations(suite)
    planned: list[Planned] = []
    base_runs: dict[int, int] = {}
    most_base = MAX_REPETITIONS * 2
    bases = {one.sweep: one for one in every if one.is_base}

    def base_run(sweep: int) -> Iterator[Planned]:
        number = base_runs.get(sweep, 0)
        if number < most_base:
            base_runs[sweep] = number + 1
            sampling = BASE_SAMPLERS[number % len(BASE_SAMPLERS)]
            kind = _recorder(sampling)
            if recorders is None or kind in recorders:
                yield Planned(f"base-{sweep}-{number:02d}-{kind}", bases[sweep], sampling, number)

    for repetition in range(repetitions):
        wanted = [one for one in every if not one.is_base and (only in (None, one.role))]
        rng.shuffle(wanted)
        since: dict[int, int] = {}
        for one in wanted:
            if since.get(one.sweep, CONFIGURATION_PER_BASE) >= CONFIGURATION_PER_BASE:
                planned += base_run(one.sweep)
                since[one.sweep] = 0
            since[one.sweep] = since.get(one.sweep, 0) + 1
            planned.append(Planned(f"{one.number:03d}-{repetition}", one, Sampling("none"), repetition))
    # Both samplers record each baseline, even in sweeps of few configurations, or only the requested one.
    least = MIN_BASE_RUNS
    if recorders is not None:
        least = max(MIN_BASE_RUNS, *(1 + [*map(_recorder, BASE_SAMPLERS)].index(each) for each in recorders))
    for sweep in sorted(bases):
        while base_runs.get(sweep, 0) < least:
            planned += base_run(sweep)
    return planned


def read_run(folder: Path) -> dict[str, Any] | None:
    """The row of a run; None if it is missing or damaged."""
    try:
        row: dict[str, Any] = json.loads((folder / "run.json").read_text())
        whole = row["wall_ms"] > 0 and all((folder / name).exists() for name in row["event_logs"] + row["recordings"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return row if whole and row["event_logs"] else None


def flat_row(suite: Suite, one: Planned, run: dict[str, Any], folder: str) -> dict[str, Any]:
    """A run as one flat row: its configuration and its results."""
    cluster, truth = run["configuration"], run.get("truth") or {}
    return {
        "suite": suite.name,
        "number": one.configuration.number,
        "sweep": one.configuration.sweep,
        "role": one.configuration.role,
        "workload": one.configuration.workload,
        "scale_factor": one.configuration.scale_factor,
        "repetition": one.repetition,
        "changed": json.dumps(one.configuration.changed),
        "workers": cluster["workers"],
        "slots": cluster["slots"],
        "slot_cpu_cores": cluster["slot_cpu_cores"],
        "executor_memory_bytes": cluster["executor_memory_bytes"],
        "network_bps": cluster["network_bps"],
        "disk_bytes_per_s": cluster["disk_bytes_per_s"],
        "storage": cluster["storage"],
        "sampler": run["sampler"]["kind"],
        "sample_ms": run["sampler"]["sample_ms"],
        "wall_ms": run["wall_ms"],
        "start_ms": run["start_ms"],
        "end_ms": run["end_ms"],
        "rows": run["rows"],
        **{f"executors_{name}": value for name, value in truth.get("executors", {}).items()},
        "residual": truth.get("residual"),
        "stages": json.dumps(truth.get("stages", [])),
        "run": folder,
        "event_log": f"{folder}/{run['event_logs'][0]}",
        "recordings": json.dumps([f"{folder}/{name}" for name in run["recordings"]]),
    }


def load_rows(out: Path, suite: Suite, repetitions: int = MAX_REPETITIONS) -> list[dict[str, Any]]:
    """One flat row (``flat_row``) for each complete run under ``out``/<suite>, in the order of the configurations.

    Paths in a row are relative to ``out``.
    """
    rows = []
    for one in plan(suite, repetitions, recorders=RECORDERS):
        run = read_run(out / suite.name / one.name)
        if run is not None:
            rows.append(flat_row(suite, one, run, f"{suite.name}/{one.name}"))
    return sorted(rows, key=lambda row: (row["number"], row["repetition"]))


def read_rows(out: Path, suite: Suite) -> list[dict[str, Any]]:
    """The flat rows in ``out``/<suite>/rows.parquet, in the order of the configurations; empty without the file."""
    file = out / suite.name / "rows.parquet"
    if not file.exists():
        return []
    with duckdb.connect() as connection:
        cursor = connection.execute("SELECT * FROM read_parquet(?) ORDER BY number, repetition", [str(file)])
        names = [each[0] for each in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def write_rows(rows: Sequence[dict[str, Any]], file: Path) -> None:
    """Write flat rows as Parquet, replacing an existing file."""
    if not rows:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = file.with_suffix(".jsonl.partial")
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    building = file.with_suffix(".partial")
    with duckdb.connect() as connection:
        source, target = (str(path).replace("'", "''") for path in (lines, building))
        connection.execute(
            f"COPY (SELECT * FROM read_json('{source}', format = 'newline_delimited', sample_size = -1, "
            f"map_inference_threshold = -1, convert_strings_to_integers = false)) TO '{target}' (FORMAT parquet, "
            "COMPRESSION zstd)"
        )
    lines.unlink()
    building.rename(file)


def run_suite(
    suite: Suite,
    out: Path,
    repetitions: int,
    only: str | None = None,
    limit_minutes: float | None = None,
    recorders: Sequence[str] | None = None,
) -> int:
    """Make all missing runs of a suite; returns the number still missing (lab.runs.series).

    ``out``/<suite>/rows.parquet is written after each run.
    """
    folder = out / suite.name

    def made(one: Planned) -> str:
        target, configuration = folder / one.name, one.configuration
        shutil.rmtree(target, ignore_errors=True)
        config = RunConfig(
            query=configuration.workload,
            scale_factor=configuration.scale_factor,
            cluster=cluster_config(configuration.knobs),
            sampling=one.sampling,
            repetition=one.repetition,
            timeout_s=RUN_TIMEOUT_S,
            spark_conf=configuration.spark_conf,
        )
        return f"{run_once(config, target)['wall_ms'] / 1000:6.1f} s"

    def name(one: Planned) -> str:
        changed = " ".join(f"{knob}={value}" for knob, value in one.configuration.changed.items()) or "base"
        return f"{suite.name} {one.name}, {one.configuration.workload} {changed}"

    def after() -> None:
        write_rows(load_rows(out, suite, repetitions), folder / "rows.parquet")

    planned = plan(suite, repetitions, only, recorders)
    missing = [one for one in planned if read_run(folder / one.name) is None]
    return make_missing(missing, made, name, after, minutes=limit_minutes, first_guess_s=_FIRST_GUESS_S)
