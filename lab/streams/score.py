"""Scores predictions about streaming queries: the time of a batch, and the highest rate, against real runs."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import crystalperf as cp
from crystalperf.query.results.answers import BatchPrediction, Prediction
from crystalperf.query.text.sentences import texts_of
from lab.errors import LabError
from lab.pages import head, row
from lab.scored import OURS, Scored
from lab.streams.runs import folder_of, log_in
from lab.streams.suite import OVERLOAD, Configuration, configurations

Rows = Mapping[str, Sequence[Mapping[str, Any]]]
"""The rows of runs by the name of their configuration."""

SAME, IN_PROPORTION = "as recorded", "in proportion to rows"


@dataclass(frozen=True)
class Case:
    """A configuration: the means of its runs, and the prediction for it from its job's baseline."""

    one: Configuration
    batch_ms: float
    processed_per_s: float
    runs: int
    prediction: Prediction

    @property
    def batch(self) -> BatchPrediction:
        stream = self.prediction.stream
        if stream is None or stream.batch is None:
            raise LabError(
                f"{self.one.name} has no prediction: {texts_of(self.prediction.refused, self.prediction.words)}"
            )
        return stream.batch


def read_rows(out: Path) -> Rows:
    """The rows of OUT/rows.jsonl.  Raises LabError without that file."""
    file = out / "rows.jsonl"
    if not file.exists():
        raise LabError(f"{file}: no such file; create it with `python -m lab.streams sweep --out {out}`")
    found: dict[str, list[Mapping[str, Any]]] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        one = json.loads(line)
        found.setdefault(one["name"], []).append(one)
    return found


def base_log(out: Path, one: Configuration) -> Path:
    """The log of the first run of a baseline, in a folder of runs or of kept ones."""
    kept = sorted(out.glob(f"{one.name}.*"))
    return kept[0] if kept else log_in(folder_of(out, one, 0))


def cases(out: Path, only: str | None) -> list[Case]:
    """The configurations that have runs, with their predictions."""
    rows, found = read_rows(out), []
    bases = {each.job: each for each in configurations() if each.is_base}
    runs = {job: cp.profile(base_log(out, each)) for job, each in bases.items() if each.name in rows}
    for one in configurations():
        if one.is_base or one.name not in rows or only not in (None, one.role):
            continue
        mean = partial(_mean, rows[one.name])
        prediction = runs[one.job].predict(one.settings)
        found.append(Case(one, mean("batch_ms"), mean("processed_per_s"), len(rows[one.name]), prediction))
    return found


def _mean(rows: Sequence[Mapping[str, Any]], name: str) -> float:
    return float(statistics.mean(each[name] for each in rows))


def score(out: Path, only: str | None) -> Iterator[str]:
    """Three tables: the time of a batch by configuration, the highest rates, and the errors by predictor."""
    found = cases(out, only)
    scored = Scored()
    yield from head(
        "job | rate [rows/s] | trigger [s] | partitions | set | >runs | >batch, measured [ms] | >predicted | >error"
        " | 90 % range"
    )
    for each in found:
        if not each.one.name.endswith(OVERLOAD):
            yield _batch_row(each, scored)
    yield ""
    yield from head("job | >rate [rows/s] | set | >highest rate, measured [rows/s] | >predicted | >error | 90 % range")
    for each in found:
        if each.one.name.endswith(OVERLOAD):
            yield _rate_row(each)
    yield ""
    yield from head(
        "batch predicted by | >predictions | >mean ± sd % | >median % | >worst % | >covered % | >half-width %"
    )
    for who in scored.off:
        yield f"| {who} | {scored.cells(who)} |"
    if floors := _floors(read_rows(out)):
        mean, worst = 100 * statistics.mean(floors), 100 * max(floors)
        yield row("runs of one configuration among themselves", len(floors), f"{mean:.1f}", "", f"{worst:.0f}", "", "")


def _batch_row(case: Case, scored: Scored) -> str:
    one, batch = case.one, case.batch
    scored.take(SAME, batch.recorded_ms, case.batch_ms)
    ratio = one.rate * max(one.trigger_s, batch.recorded_interval_ms / 1e3) / batch.recorded_rows
    scored.take(IN_PROPORTION, batch.recorded_ms * ratio, case.batch_ms)
    known = [one.job, one.rate, one.trigger_s, one.partitions, one.role, case.runs, f"{case.batch_ms:.0f}"]
    if batch.time_ms is None or batch.time_range_ms is None:
        return row(*known, "; ".join(texts_of(case.prediction.refused, case.prediction.words)), "", "")
    scored.take(OURS, batch.time_ms, case.batch_ms)
    holds = scored.take_range(batch.time_ms, batch.time_range_ms, case.batch_ms)
    low, high = batch.time_range_ms
    off = f"{100 * (batch.time_ms / case.batch_ms - 1):+.1f} %"
    return row(*known, f"{batch.time_ms:.0f}", off, f"{low:.0f} to {high:.0f}, {'covered' if holds else 'missed'}")


def _rate_row(case: Case) -> str:
    stream, truth = case.prediction.stream, case.processed_per_s
    known = [case.one.job, case.one.rate, case.one.role, f"{truth:.0f}"]
    if stream is None or stream.max_per_s is None:
        return row(*known, "unknown", "", "")
    least = "at least " if stream.is_lower_bound else ""
    low, high = stream.max_per_s_interval or (stream.max_per_s, stream.max_per_s)
    likely = "" if stream.is_lower_bound else f"{low:.0f} to {high:.0f}"
    return row(*known, f"{least}{stream.max_per_s:.0f}", f"{100 * (stream.max_per_s / truth - 1):+.1f} %", likely)


def _floors(rows: Rows) -> list[float]:
    """Standard deviation over mean of the time of a batch, of each configuration with several runs."""
    several = [[each["batch_ms"] for each in runs] for runs in rows.values() if len(runs) > 1]
    return [statistics.stdev(each) / statistics.mean(each) for each in several]
