"""Run the suite, with baseline runs in between, keep existing runs, and predict every configuration."""

from __future__ import annotations

import json
import random
import shutil
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import crystalperf as cp
from crystalperf.indexes.errors import CrystalPerfError
from crystalperf.query.execution.load import load
from crystalperf.query.predict.scenario_replay import replay_baseline
from crystalperf.query.predictors.amdahl import covered_ms
from crystalperf.query.run import Run
from crystalperf.query.text.sentences import texts_of
from lab.errors import LabError
from lab.flink.baselines import BASELINES, Changed, Observation
from lab.flink.runs import run_once
from lab.flink.suite import Configuration, configurations
from lab.flink.truth import Ages, ages
from lab.pages import head
from lab.runs.series import make_missing, read_lines, write_lines
from lab.scored import OURS, Scored

RECORDED = "network=100Mbps"
MEASURES = ("latency_ms", "throughput_per_s", "makespan_ms")
KEPT_UP = 0.97
"""Minimum share of its rate that the sources of a run emit if it keeps up, without warm-up."""

_SEED = 20210714
_PER_BASE = 3
_A_RUN_S = 100.0


def plan(repetitions: int, only: str | None, workloads: Iterable[str]) -> list[tuple[Configuration, int]]:
    """Runs in a fixed random order, with a baseline run of the same workload before every three."""
    every = [each for each in configurations() if each.workload in workloads]
    bases = {each.workload: each for each in every if each.is_base}
    rng, planned, made = random.Random(_SEED), list[tuple[Configuration, int]](), dict[str, int]()
    for repetition in range(repetitions):
        wanted = [each for each in every if not each.is_base and only in (None, each.role)]
        rng.shuffle(wanted)
        since: dict[str, int] = {}
        for each in wanted:
            if since.get(each.workload, _PER_BASE) >= _PER_BASE:
                planned.append((bases[each.workload], made.get(each.workload, 0)))
                made[each.workload] = made.get(each.workload, 0) + 1
                since[each.workload] = 0
            since[each.workload] += 1
            planned.append((each, repetition))
    return planned


def folder_of(out: Path, one: Configuration, repetition: int) -> Path:
    return out / f"{one.name}-{repetition}"


def run_suite(
    home: Path,
    jobs: Path,
    out: Path,
    repetitions: int,
    only: str | None,
    workloads: Iterable[str],
    minutes: float | None,
) -> int:
    """Make the runs that have neither a folder nor a stored row; returns the number still missing
    (lab.runs.series)."""
    kept = read_lines(out, _key)

    def made(planned: tuple[Configuration, int]) -> str:
        folder = folder_of(out, *planned)
        shutil.rmtree(folder, ignore_errors=True)  # files of a failed run would be mistaken for this run's

        truth = measured(run_once(planned[0].run, home, jobs, folder), ages(folder / "ages"))
        return str({key: round(value, 1) for key, value in truth.items() if value is not None})

    missing = [
        (one, repetition)
        for one, repetition in plan(repetitions, only, tuple(workloads))
        if (one.number, repetition) not in kept and not (folder_of(out, one, repetition) / "run.json").exists()
    ]

    def name(planned: tuple[Configuration, int]) -> str:
        return f"{planned[0].name} {dict(planned[0].changed)}"

    return make_missing(missing, made, name, partial(write_rows, out), minutes=minutes, first_guess_s=_A_RUN_S)


def measured(row: Mapping[str, Any], seen: Ages | None) -> dict[str, Any]:
    """The ground truth of a run by measure: the latency at a rate that it sustains, the records per second of sources
    without a rate, the makespan of a job with an end; `kept_up` is None for a run without a rate.

    Sinks may get fewer records than sources emit, always in the same proportion.
    """
    workload = row["workload"]
    rate, found = workload["rate"], dict[str, Any](zip(MEASURES, (None, None, None), strict=True), kept_up=None)
    if workload["name"] == "join":
        found["makespan_ms"] = row["job_ms"]
    elif seen is not None and seen.records:
        made = workload["records"] if rate is None else rate * workload["seconds"]
        per_s = seen.per_s * made / seen.records
        if rate is None:
            found["throughput_per_s"] = per_s
        else:
            found["kept_up"] = per_s >= KEPT_UP * rate
            found["latency_ms"] = seen.mean_ms if found["kept_up"] else None
    return found


def write_rows(out: Path) -> None:
    """Write OUT/rows.jsonl: a line for each existing run, without its threads, and the stored rows of other runs."""
    lines = list[str]()
    kept = read_lines(out, _key)
    for one, repetition in plan(9, None, {each.workload for each in configurations()}):
        file = folder_of(out, one, repetition) / "run.json"
        if file.exists():
            row = json.loads(file.read_text(encoding="utf-8"))
            truth = measured(row, ages(file.parent / "ages"))
            facts = {"number": one.number, "workload": one.workload, "role": one.role, "repetition": repetition}
            lines.append(json.dumps({**facts, "changed": dict(one.changed), **truth, "state": row["state"]}))
        elif (one.number, repetition) in kept:
            lines.append(kept[one.number, repetition])
    write_lines(out, dict.fromkeys(lines))


def _key(row: Mapping[str, Any]) -> tuple[int, int]:
    return row["number"], row["repetition"]


def score(out: Path, only: str | None) -> str:
    """Two tables: every configuration with its ground truth and the prediction from the first baseline run; and the
    errors by measure, also of other predictors.

    `out` is the folder of a sweep, or one with stored rows and data of baseline runs.  Raises LabError.
    """
    rows = out / "rows.jsonl"
    if not rows.exists():
        raise LabError(f"{rows}: no such file; create it with `python -m lab.flink sweep HOME -o {out}`")
    by_number: dict[int, list[dict[str, Any]]] = {}
    for line in rows.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        by_number.setdefault(row["number"], []).append(row)
    lines = head("configuration | measure | measured | predicted | error | 90 % range")
    found: dict[str, Scored] = {}
    bases: dict[str, tuple[Run, Observation]] = {}
    sustained: list[Sustained] = []
    wanted = [
        one
        for one in configurations()
        if not one.is_base and only in (None, one.role) and one.number in by_number
        if (_base_folder(out, one.workload) / "collected").exists()
    ]
    for one in wanted:
        if one.workload not in bases:
            bases[one.workload] = _base(
                _base_folder(out, one.workload), by_number.get(_base_of(one.workload).number, [])
            )
        run, seen = bases[one.workload]
        for measure in MEASURES:
            if truths := _values(by_number, one, measure):
                lines.append(_scored(one, measure, truths, run, seen, found.setdefault(measure, Scored())))
        if kept_up := _values(by_number, one, "kept_up"):
            sustained.append(_sustained(one, statistics.mean(kept_up) > 0.5, run))
            if not sustained[-1].truth:
                what = f"{one.workload} {dict(one.changed)} | latency_ms | does not keep up"
                lines.append(f"| {what} | {sustained[-1].said} | | |")
    if only != "odd":
        lines += [
            "",
            *head("baseline | measure | measured | modelled for the run itself | error | mean of its runs | error"),
        ]
        lines += [row for workload, (_, seen) in bases.items() for row in _replayed(workload, seen, by_number)]
    repeated = [*wanted, *(one for one in configurations() if one.is_base)]
    floors = {
        measure: [
            statistics.stdev(several) / statistics.mean(several)
            for one in repeated
            if len(several := _values(by_number, one, measure)) > 1
        ]
        for measure in MEASURES
    }
    return "\n".join([*lines, *_summary(found, floors, sustained)])


def _values(by_number: Mapping[int, list[dict[str, Any]]], one: Configuration, name: str) -> list[float]:
    """The known values of a column of a configuration's rows."""
    return [row[name] for row in by_number.get(one.number, []) if row.get(name) is not None]


@dataclass(frozen=True)
class Sustained:
    """Whether a configuration sustains its rate, measured and predicted; `said` is the answer about its latency.

    If there is no answer, the rate does not count as sustained.
    """

    truth: bool
    reported: bool
    said: str


def _summary(
    found: Mapping[str, Scored], floors: Mapping[str, Sequence[float]], sustained: Sequence[Sustained]
) -> list[str]:
    """Errors of all predictors by measure, and the number of correct predictions of sustained rates."""
    titles = "measure | predicted by | predictions | mean ± sd % | median % | worst % | covered % | half-width %"
    lines = ["", *head(titles)]
    for measure, scored in found.items():
        lines += [f"| {measure} | {who} | {scored.cells(who)} |" for who in scored.off]
        if floors[measure]:
            mean, worst = 100 * statistics.mean(floors[measure]), 100 * max(floors[measure])
            lines.append(
                f"| {measure} | runs of one configuration among themselves | {len(floors[measure])} | {mean:.1f} |"
                f" | {worst:.0f} | | |"
            )
    if sustained:
        for truth, words in ((True, "that keep up"), (False, "that do not")):
            of = [each for each in sustained if each.truth is truth]
            right = sum(each.reported is truth for each in of)
            lines.append(f"| rates {words} | {OURS} says so of {right} | {len(of)} | | | | | |")
    return lines


def _replayed(workload: str, seen: Observation, rows: Mapping[int, list[dict[str, Any]]]) -> list[str]:
    """The model's result for a baseline's recorded run, and the measured figures of this run and of all its reruns."""
    runs = rows.get(_base_of(workload).number, [])
    mine = next((row for row in runs if row["repetition"] == 0), {})
    reported: dict[str, float] = {}
    assert seen.execution is not None
    if seen.stream is not None:
        reported = {"latency_ms": seen.stream.time_ms(seen.execution.names), "throughput_per_s": seen.stream.rate_per_s}
    else:
        reported["makespan_ms"] = replay_baseline(seen.execution).replayed.makespan_ms
    found = []
    for measure, value in reported.items():
        several = [row[measure] for row in runs if row.get(measure)]
        if mine.get(measure):
            mean, off = statistics.mean(several), 100 * (value / mine[measure] - 1)
            found.append(
                f"| {workload} | {measure} | {mine[measure]:.0f} | {value:.0f} | {off:+.1f} % |"
                f" {mean:.0f} ({len(several)}) | {100 * (value / mean - 1):+.1f} % |"
            )
    return found


def _sustained(one: Configuration, truth: bool, run: Run) -> Sustained:
    try:
        reported = run.predict(list(one.asks), recorded=[RECORDED])
    except CrystalPerfError as error:
        return Sustained(truth, False, str(error))
    said = (
        "; ".join(texts_of(reported.refused[:1], reported.words))
        if reported.predicted_ms is None
        else f"{reported.predicted_ms:.0f} ms"
    )
    return Sustained(truth, reported.predicted_ms is not None, said)


def _scored(one: Configuration, measure: str, truths: list[float], run: Run, seen: Observation, into: Scored) -> str:
    """The row of a configuration; its predictions go `into`."""
    truth = statistics.mean(truths)
    asked = replace(seen, asked=one.asks)
    for name, baseline in BASELINES.items():
        into.take(name, baseline(asked, changed_of(one), measure), truth)
    head = f"| {one.workload} {dict(one.changed)} | {measure} | {truth:.0f}"
    try:
        reported = run.predict(list(one.asks), recorded=[RECORDED])
    except CrystalPerfError as error:
        return f"{head} | {error} | | |"
    predicted, interval = reported.predicted_ms, reported.interval_ms
    if measure == "throughput_per_s":
        predicted = None if reported.stream is None else reported.stream.max_per_s
        interval = None if reported.stream is None else reported.stream.max_per_s_interval
    if predicted is None:
        return f"{head} | {'; '.join(texts_of(reported.refused[:1], reported.words)) or 'no prediction'} | | |"
    into.take(OURS, predicted, truth)
    off = f"{100 * (predicted / truth - 1):+.0f} %"
    if interval is None:
        return f"{head} | {predicted:.0f} | {off} | |"
    low, high = interval
    holds = into.take_range(predicted, interval, truth)
    return f"{head} | {predicted:.0f} | {off} | {low:.0f} to {high:.0f}, {'covered' if holds else 'missed'} |"


def changed_of(one: Configuration) -> Changed:
    """The ratios of the changes to the baseline."""
    before, after = _base_of(one.workload).run, one.run
    rates = (after.workload.rate, before.workload.rate)
    return Changed(
        rate=rates[0] / rates[1] if rates[0] and rates[1] else 1.0,
        slots=after.workload.parallelism / before.workload.parallelism,
        cpu=(after.cluster.cpu_cores or 1.0) / (before.cluster.cpu_cores or 1.0),
        network=(after.cluster.network_bps or 1) / (before.cluster.network_bps or 1),
    )


def _base_of(workload: str) -> Configuration:
    return next(each for each in configurations() if each.workload == workload and each.is_base)


def _base(folder: Path, rows: list[dict[str, Any]]) -> tuple[Run, Observation]:
    """A baseline's recorded run, and the means of all its runs, from which other predictors start."""
    run = cp.profile([each for each in (folder / "collected", folder / "recordings") if each.exists()])
    with run.reading() as connection:
        execution = load(connection, "all")
        stream = None if execution.planner.stream is None else execution.planner.stream(connection, execution)
    measures = {}
    for measure in MEASURES:
        values = [row[measure] for row in rows if row.get(measure) is not None]
        if values:
            measures[measure] = statistics.mean(values)
    busy_ms = covered_ms(execution.tasks.launch_ms, execution.tasks.finish_ms)
    return run, Observation(measures, stream, busy_ms, execution, recorded=(RECORDED,))


def _base_folder(out: Path, workload: str) -> Path:
    return folder_of(out, _base_of(workload), 0)
