"""Repeated runs of the lab and of others, in the order in which they ran.

A group has the durations of one job with the same resources, from one series.  Jobs are split into two halves: of the
jobs of a kind and a place, sorted by the hash of their names, every second one is in the test half.  The tuning half
leads to query/compare/spread.csv, the test half to the rates of lab.score.gate.
"""

from __future__ import annotations

import hashlib
import json
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crystalperf.query.compare.noise import kind_of
from lab.flink.suite import configurations as flink_configurations
from lab.runs.suites import SUITES
from lab.runs.sweep import read_rows
from lab.runs.training import SWEPT, role_of
from lab.score.pairs import SERIES, recorder
from lab.score.published import Job, Rerun, reruns

RECORDINGS = Path("lab/recordings")
TRAININGS = ("sweeps/pytorch", "sweeps/tensorflow", "again/tensorflow", "batches", "files")


@dataclass(frozen=True)
class Group:
    """Repeated runs.

    kind       that of crystalperf.query.compare.noise
    place      where they ran: the lab, or the folder of published logs
    job        name of the job, the same for other resources
    resources  key of the resources
    series     the lab's series, days apart
    runs_ms    durations in the order of the runs; a throughput counts as time per record
    fits       whether the runs are in a set that may be fitted to (even configurations and baselines)
    """

    kind: str
    place: str
    job: str
    resources: str
    series: str
    runs_ms: tuple[float, ...]
    fits: bool


def halves(groups: Sequence[Group]) -> tuple[list[Group], list[Group]]:
    """The groups of the tuning half and of the test half."""
    jobs: dict[tuple[str, str], set[str]] = defaultdict(set)
    for each in groups:
        jobs[each.kind, each.place].add(each.job)
    tested = {(*where, job) for where, names in jobs.items() for job in sorted(names, key=_hash)[1::2]}
    found: tuple[list[Group], list[Group]] = ([], [])
    for each in groups:
        found[(each.kind, each.place, each.job) in tested].append(each)
    return found


def _hash(job: str) -> str:
    return hashlib.sha256(job.encode()).hexdigest()


def lab_groups() -> list[Group]:
    """All groups of the lab, also those of one run."""
    return [*_spark(), *_flink(), *_trainings()]


def _spark() -> Iterator[Group]:
    for series in SERIES:
        for suite in SUITES.values():
            times: dict[tuple[str, str, bool], list[float]] = defaultdict(list)
            for row in read_rows(RECORDINGS / series, suite):
                resources = f"{suite.name} {row['number']} {recorder(row)}"
                times[row["workload"], resources, row["role"] != "odd"].append(float(row["wall_ms"]))
            for (job, resources, fits), runs in times.items():
                yield Group(kind_of("spark", "runtime"), "lab", job, resources, series, tuple(runs), fits)


def _flink() -> Iterator[Group]:
    roles = {one.number: one.role for one in flink_configurations()}
    for series in ("sweeps", "again"):
        times: dict[tuple[str, str, int], list[float]] = defaultdict(list)
        for row in _lines(RECORDINGS / series / "flink"):
            for measure, value in _measured(row):
                times[measure, row["workload"], row["number"]].append(value)
        for (measure, job, number), runs in times.items():
            fits = roles.get(number) != "odd"
            yield Group(measure, "lab", job, str(number), series, tuple(runs), fits)


def _measured(row: dict[str, Any]) -> Iterator[tuple[str, float]]:
    if row.get("latency_ms"):
        yield kind_of("flink", "latency"), row["latency_ms"]
    if row.get("throughput_per_s"):
        yield kind_of("flink", "throughput"), 1e3 / row["throughput_per_s"]
    if row.get("makespan_ms"):
        yield kind_of("flink", "runtime"), row["makespan_ms"]


def _trainings() -> Iterator[Group]:
    swept = {each.name: each for each in SWEPT}
    for series in TRAININGS:
        times: dict[str, list[float]] = defaultdict(list)
        for row in _lines(RECORDINGS / series):
            times[row["name"].rpartition(".")[0]].append(statistics.mean(row.get("settled_ms", row["step_ms"])))
        for name, runs in times.items():
            one = swept[name]
            job = "-".join(str(one.asked[key]) for key in ("model", "files", "saved") if key in one.asked)
            kind = kind_of(one.framework, "step")
            yield Group(kind, "lab", job or one.framework, name, series, tuple(runs), role_of(one) != "odd")


def _lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "rows.jsonl").read_text(encoding="utf-8").splitlines()]


def published_groups(folders: Sequence[Path]) -> list[Group]:
    """Groups of published logs of Spark; lab.score.published describes the folders."""
    return [group for folder in folders for group in _published(folder)]


def _published(folder: Path) -> Iterator[Group]:
    of: dict[tuple[Job, int], list[Rerun]] = defaultdict(list)
    for role in ("even", "odd"):
        for each in reruns(folder, role, flat=_is_flat(folder)):
            of[each.job, each.executors].append(each)
    for (job, executors), runs in of.items():
        in_order = sorted(runs, key=lambda each: each.log.name)  # names of applications have the time of their start
        times = tuple(each.wall_ms for each in in_order)
        yield Group(kind_of("spark", "runtime"), folder.name, str(job), str(executors), "", times, fits=False)


def _is_flat(folder: Path) -> bool:
    """Whether a job's logs are in a folder for each number of executors."""
    return any("xecutors" in each.name for each in folder.glob("**/*xecutors"))
