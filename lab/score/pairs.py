"""Predictions against ground truth: ``python -m lab score [SUITE…] --out DIR``.

A prediction starts from one recorded baseline run of a sweep, like a user's, and has the resources of another
configuration; the ground truth is the median of that configuration's unrecorded runs.  If a baseline was recorded
several times, each recording gives a separate prediction.  The baseline itself is never scored.  Nothing is fitted here
except Ernest, which requires it; it uses the tuning set.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from crystalperf.query.results.answers import Prediction
from lab.runs.suites import Configuration, Suite, configurations
from lab.runs.sweep import read_rows
from lab.score.predictors import (
    Base,
    Predictor,
    amdahl,
    answer,
    ernest,
    from_code,
    linear,
    no_change,
    plain,
    shipped,
    slots_alone,
)
from lab.score.vectors import profiled

Arm = tuple[str, str]
"""Recorder of the baseline run, and the predictor's name."""

SHIPPED: Arm = ("jfr20", "shipped")

SERIES = ("sweeps", "repeated", "again")
"""Sibling folders with reruns of suites (lab/recordings)."""


def suites_parser(what: str | None) -> argparse.ArgumentParser:
    """The command line of a table over suites: `suites`, `out` where their runs are, `profiles`."""
    parser = argparse.ArgumentParser(description=what, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "suites", nargs="*", default=["q9", "q6", "gzip-text"], help="suites with recorded baseline runs"
    )
    parser.add_argument("--out", type=Path, default=Path("lab/recordings/sweeps"), help="the folder of their runs")
    parser.add_argument("--profiles", type=Path, required=True, help="the folder for run files")
    return parser


@dataclass(frozen=True)
class Measured:
    """The data of a suite.

    Attributes:
        bases: its recorded baseline runs by sweep and recorder (`jfr20`, `async20`, …; `none` is a log without
        samples). actual_ms: the median runtime of each configuration that ran.
        base_ms: every runtime of an unrecorded baseline run, by sweep.
        logs: the logs of baseline runs that JFR recorded, for sweeps without a stored unrecorded one.
        reruns_ms: by configuration the runtimes of its unrecorded runs, each series' together.
    """

    suite: Suite
    bases: Mapping[tuple[int, str], tuple[Base, ...]]
    actual_ms: Mapping[int, float]
    base_ms: Mapping[int, tuple[float, ...]]
    logs: Mapping[int, tuple[Base, ...]] = field(default_factory=dict)
    reruns_ms: Mapping[int, tuple[tuple[float, ...], ...]] = field(default_factory=dict)

    def starts(self, sweep: int, who: str) -> tuple[Base, ...]:
        """The baseline runs of a recorder; for `none`, also the logs of recorded runs."""
        return self.bases.get((sweep, who), self.logs.get(sweep, ()) if who == "none" else ())

    @property
    def scored(self) -> list[Configuration]:
        """The configurations that ran, without baselines."""
        return [one for one in configurations(self.suite) if not one.is_base and one.number in self.actual_ms]


@dataclass(frozen=True)
class Pair:
    """One prediction and its ground truth, ms; `predicted_ms` is None if the predictor refused."""

    suite: str
    configuration: Configuration
    actual_ms: float
    predicted_ms: float | None
    interval_ms: tuple[float, float] | None = None

    @property
    def deviation(self) -> float | None:
        """predicted / actual − 1."""
        return None if self.predicted_ms is None else self.predicted_ms / self.actual_ms - 1


def measured(suite: Suite, out: Path, kept: Path) -> Measured:
    """Read a sweep's runs in `out`; profiles of its baseline runs are stored in the folder `kept`."""
    rows = read_rows(out, suite)
    every = {one.number: one for one in configurations(suite)}
    bases: dict[tuple[int, str], list[Base]] = {}
    logs: dict[int, list[Base]] = {}
    unrecorded: dict[int, list[float]] = {}
    base_ms: dict[int, list[float]] = {}
    for row in rows:
        if row["sampler"] == "none":
            is_base = row["role"] == "base"
            times = base_ms.setdefault(row["sweep"], []) if is_base else unrecorded.setdefault(row["number"], [])
            times.append(float(row["wall_ms"]))
        if row["role"] == "base" and (out / row["event_log"]).exists():
            bases.setdefault((row["sweep"], recorder(row)), []).append(read_base(row, every[row["number"]], out, kept))
    for row in rows:
        wanted = (row["sweep"], SHIPPED[0]) in bases and (row["sweep"], "none") not in bases
        if wanted and row["role"] == "base" and recorder(row) == SHIPPED[0] and (out / row["event_log"]).exists():
            alone = row | {"run": f"{row['run']}-log", "recordings": "[]"}
            logs.setdefault(row["sweep"], []).append(read_base(alone, every[row["number"]], out, kept))
    return Measured(
        suite,
        {key: tuple(found) for key, found in bases.items()},
        {number: statistics.median(times) for number, times in unrecorded.items()},
        {sweep: tuple(times) for sweep, times in base_ms.items()},
        {sweep: tuple(found) for sweep, found in logs.items()},
        _reruns(suite, out),
    )


def _reruns(suite: Suite, out: Path) -> dict[int, tuple[tuple[float, ...], ...]]:
    """Runtimes of unrecorded runs by configuration and series, ms: the series in `out` and in its sibling folders.

    Series are separate, because the machine's speed changes more between series than between runs.
    """
    found: dict[int, list[tuple[float, ...]]] = {}
    for folder in (out, *(out.parent / name for name in SERIES if name != out.name)):
        times: dict[int, list[float]] = {}
        for row in read_rows(folder, suite):
            if row["sampler"] == "none":
                times.setdefault(row["number"], []).append(float(row["wall_ms"]))
        for number, several in times.items():
            found.setdefault(number, []).append(tuple(several))
    return {number: tuple(several) for number, several in found.items()}


def recorder(row: Mapping[str, Any]) -> str:
    """The recorder of a run, with its period in ms: jfr20."""
    return "none" if row["sampler"] == "none" else f"{row['sampler']}{row['sample_ms']}"


def read_base(row: Mapping[str, Any], configuration: Configuration, out: Path, kept: Path) -> Base:
    """Profile a recorded run; its scope is the query proper, which the log's own clock places."""
    run = profiled(row, out, kept)
    with duckdb.connect(str(run), read_only=True) as connection:
        ((started_at_ms,),) = connection.execute("SELECT started_at_ms FROM runs").fetchall()
    start, end = row["start_ms"] - started_at_ms, row["end_ms"] - started_at_ms
    return Base(run, f"{start}..{end}", float(row["wall_ms"]), configuration)


ARMS: tuple[tuple[str, Arm], ...] = (
    ("shipped (JFR every 20 ms, hybrid vectors)", SHIPPED),
    ("the paper's plain model (vectors from code, tasks as recorded)", ("jfr20", "plain")),
    ("vectors from code alone, nothing that Spark measured", ("jfr20", "code")),
    ("JFR every 100 ms", ("jfr100", "shipped")),
    ("async-profiler, wall clock, every 20 ms", ("async20", "shipped")),
    ("no samples (vectors from Spark's metrics)", ("none", "shipped")),
    ("no change", ("none", "no change")),
    ("linear in slots, their CPU, network and disk", ("none", "linear")),
    ("Amdahl, slots alone", ("none", "Amdahl")),
    ("Sparklens: recorded tasks on other slots", ("none", "slots alone")),
    ("Ernest, learned from the even configurations", ("none", "Ernest")),
)
"""Rows of the table, in their order."""

OTHERS = frozenset({"plain", "no change", "linear", "Amdahl", "slots alone", "Ernest"})
"""Other predictors: simple methods, and the paper's model."""


def predictors(known: Measured) -> dict[str, Predictor]:
    """All predictors by name; Ernest is fitted to baselines and the tuning set.

    For a sweep without an unrecorded baseline run, its recorded ones count, because the fit needs a baseline.
    """
    every = configurations(known.suite)
    lessons = [(one, known.actual_ms[one.number]) for one in known.scored if one.role == "even"]
    for one in (each for each in every if each.is_base):
        recorded = [base.wall_ms for base in known.starts(one.sweep, "none")]
        lessons += [(one, wall) for wall in known.base_ms.get(one.sweep, recorded)]
    return {
        "shipped": shipped,
        "plain": plain,
        "code": from_code,
        "no change": no_change,
        "linear": linear,
        "Amdahl": amdahl,
        "slots alone": slots_alone,
        "Ernest": ernest(lessons),
    }


def pairs(known: Measured, arm: Arm) -> list[Pair]:
    """Predictions of every configuration from every baseline run of the arm's recorder."""
    who, name = arm
    if name == "shipped":
        return _pairs(known, who, answer)
    predictor = predictors(known)[name]
    return _pairs(known, who, lambda base, one: _as_prediction(base, predictor(base, one)))


def _pairs(known: Measured, who: str, ask: Callable[[Base, Configuration], Prediction]) -> list[Pair]:
    found = []
    for one in known.scored:
        for base in known.starts(one.sweep, who):
            given = ask(base, one)
            found.append(
                Pair(known.suite.name, one, known.actual_ms[one.number], given.predicted_ms, given.interval_ms)
            )
    return found


def _as_prediction(base: Base, predicted_ms: float | None) -> Prediction:
    return Prediction(base.scope, "makespan", "", base.wall_ms, base.wall_ms, predicted_ms)


def noise(known: Measured) -> list[float]:
    """Deviations of unrecorded baseline runs from the median of their sweep: the noise floor."""
    return [time / statistics.median(times) - 1 for times in known.base_ms.values() if len(times) > 1 for time in times]
