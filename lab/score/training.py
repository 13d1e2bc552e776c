"""Predicted and measured steps of PyTorch or TensorFlow: ``python -m lab.score.training DIR``, Markdown tables.

`--write PAGE --mark NAME` puts the last table into a page.

DIR is the output of ``python -m lab.runs.training sweep``.  Each configuration is predicted from the traces of its
model's first baseline run.  The ground truth is its untraced steps: for each process the mean of the second half (in
older rows without it, the median of all), then the mean over processes, and the median over runs.  A prediction is of
all traced steps together, divided by their number.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import crystalperf as cp
from crystalperf.indexes.errors import CrystalPerfError
from crystalperf.query.predictors.linear import in_proportion
from crystalperf.query.predictors.paleo import ring_ms, step_ms
from crystalperf.query.run import Run
from crystalperf.query.text.sentences import texts_of
from lab.errors import LabError
from lab.pages import head
from lab.runs.training import SWEPT, Configuration, base_of, role_of
from lab.scored import OURS, Scored, from_median, spread

ROLES = ("even", "odd")
BATCH = 16
"""Default batch size of the lab's trainings (torch_job.py)."""
_SENT = "SELECT coalesce(sum(bytes) / count(DISTINCT (worker_id, step)), 0) FROM training_collectives"
_FETCHED = """
SELECT sum(bytes) / count(DISTINCT scope_id)
FROM training_operations JOIN tasks USING (task_id) JOIN stages USING (stage_id)
WHERE kind = 'transfer' AND worker_id LIKE 'network into worker:%'
"""
RATIO = "CrystalPerf's change, times the untraced base"
"""The same predictions without the profiler's own cost."""


@dataclass(frozen=True)
class Base:
    """A recorded baseline: its run, its traced step, and the untraced steps of its repetitions, ms.

    `bytes` is the data of a process in the collectives of a step, or its fetches from parameter servers.
    """

    configuration: Configuration
    run: Run
    traced_ms: float
    steps_ms: tuple[float, ...]
    bytes: float

    @property
    def step_ms(self) -> float:
        return statistics.median(self.steps_ms)


def asks(one: Configuration, base: Configuration) -> list[str]:
    """The settings for `crystalperf predict` from the baseline to a configuration."""
    found = []
    if one.cores != base.cores:
        found.append(f"cpu_speed={(one.cores or 1) / (base.cores or 1):.6g}x")
    if one.network_bps != base.network_bps:
        found.append(f"network={(one.network_bps or 0) / 1e6:g}Mbps")
    if one.disk_bytes_per_s != base.disk_bytes_per_s:
        found.append(f"disk={(one.disk_bytes_per_s or 0) / 1e6:g}MB/s")
    if one.ranks != base.ranks:
        found.append(f"ranks={one.ranks / base.ranks:g}x")
    if (batch := one.asked.get("batch", BATCH)) != BATCH:
        found.append(f"batch={batch / BATCH:g}x")
    return found


def _linear(one: Configuration, base: Base) -> float:
    """All time scales with the CPU; the network has no effect."""
    return in_proportion(base.step_ms, [(one.cores or 1) / (base.configuration.cores or 1)])


def _no_change(_one: Configuration, base: Base) -> float:
    return base.step_ms


def _in_turn(one: Configuration, base: Base) -> float:
    """Paleo's terms (Qi et al., ICLR '17): computing, then a ring's 2 (n - 1) / n of the bytes over the link, or all
    workers' fetches over the parameter server's link.

    Computing is the baseline's step minus the transfer, instead of operations over the device's rate, which a trace
    does not have: this favours Paleo in comparison with its own paper.
    """

    def sending_ms(of: Configuration) -> float:
        bytes_per_s = (of.network_bps or 1) / 8
        if of.servers:
            return 1e3 * base.bytes * of.ranks / of.servers / bytes_per_s
        return ring_ms(base.bytes, of.ranks, bytes_per_s)

    speed = (one.cores or 1) / (base.configuration.cores or 1)
    return step_ms(base.step_ms, sending_ms(base.configuration), speed, sending_ms(one))


BASELINES: Mapping[str, Callable[[Configuration, Base], float]] = {
    "no change": _no_change,
    "all in proportion to the CPU": _linear,
    "computing, then sending (Paleo's terms)": _in_turn,
}


def score(out: Path, roles: Sequence[str] = ROLES) -> tuple[list[str], list[str]]:
    """A table of every configuration with its ground truth and its prediction, and one of all errors.

    Raises LabError.
    """
    truths = _truths(out)
    swept = [each for each in SWEPT if each.name in truths]
    wanted = {each.name: each for each in map(base_of, swept)}
    bases = {name: _base(out, each, truths) for name, each in wanted.items()}
    lines = head("configuration | role | step [ms] | predicted | error | 90 % range")
    found = {role: Scored() for role in roles}
    for one in swept:
        if (role := role_of(one)) in roles:
            measured = statistics.median(truths[one.name])
            lines.append(_scored(one, role, measured, bases[base_of(one).name], found[role]))
    all_of = head("predicted by | role | configurations | mean ± sd % | median % | worst % | covered % | half-width %")
    for role, scored in found.items():
        all_of += [f"| {who} | {role} | {scored.cells(who)} |" for who in scored.off]
        if floor := from_median(truths[each.name] for each in swept if role_of(each) == role):
            runs = (
                f"{len(floor)} runs | {spread(floor)} | {100 * statistics.median(floor):.1f} | {100 * max(floor):.0f}"
            )
            all_of.append(f"| a run itself, of the median of its reruns | {role} | {runs} | | |")
    for name, base in bases.items():
        away = [abs(each / base.step_ms - 1) for each in base.steps_ms]
        mean, worst, traced = (
            100 * each for each in (statistics.mean(away), max(away), base.traced_ms / base.step_ms - 1)
        )
        all_of.append(f"| {name}: its {len(away)} runs around their median | | | {mean:.1f} | | {worst:.0f} | | |")
        all_of.append(f"| {name}: its traced steps against these | | | {traced:+.1f} | | | | |")
    return lines, all_of


def _scored(one: Configuration, role: str, truth_ms: float, base: Base, into: Scored) -> str:
    """The row of a configuration; its predictions go `into`."""
    for name, baseline in BASELINES.items():
        into.take(name, baseline(one, base), truth_ms)
    head = f"| {one.name} | {role} | {truth_ms:.0f}"
    recorded = [f"network={(base.configuration.network_bps or 0) / 1e6:g}Mbps"]
    if base.configuration.disk_bytes_per_s:
        recorded.append(f"disk={base.configuration.disk_bytes_per_s / 1e6:g}MB/s")
    recorded += [f"cpu_speed={base.configuration.cores:g}"] if base.configuration.cores else []
    try:
        reported = base.run.predict(asks(one, base.configuration), recorded=recorded)
    except CrystalPerfError as error:
        return f"{head} | {error} | | |"
    if reported.predicted_ms is None:
        return f"{head} | {'; '.join(texts_of(reported.refused[:1], reported.words))} | | |"
    per_step = base.traced_ms / reported.runtime_ms
    if reported.steady_step_ms is not None:
        per_step = reported.steady_step_ms[0] / reported.runtime_ms
    predicted = reported.predicted_ms * per_step
    off = predicted / truth_ms - 1
    into.take(OURS, predicted, truth_ms)
    into.take(RATIO, reported.predicted_ms / reported.runtime_ms * base.step_ms, truth_ms)
    if reported.interval_ms is None:
        return f"{head} | {predicted:.0f} | {100 * off:+.0f} % | |"
    low, high = (each * per_step for each in reported.interval_ms)
    missed = "" if into.take_range(predicted, (low, high), truth_ms) else ", misses"
    return f"{head} | {predicted:.0f} | {100 * off:+.0f} % | {low:.0f} to {high:.0f}{missed} |"


def _truths(out: Path) -> dict[str, list[float]]:
    """Steps of each configuration's runs, ms, by its name without the repetition's number."""
    file = out / "rows.jsonl"
    if not file.exists():
        raise LabError(f"{file}: no such file; create it with `python -m lab.runs.training sweep -o {out}`")
    found: dict[str, list[float]] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        row: dict[str, Any] = json.loads(line)
        steps_ms = row.get("settled_ms", row["step_ms"])
        found.setdefault(row["name"].rpartition(".")[0], []).append(statistics.mean(steps_ms))
    return found


def _base(out: Path, one: Configuration, truths: Mapping[str, Sequence[float]]) -> Base:
    traces = out / f"{one.name}.0" / "traces"
    if one.name not in truths or not traces.exists():
        raise LabError(f"{traces}: no traces of a baseline run; run the sweep first")
    run = cp.profile([traces])
    with run.reading() as connection:
        sent = connection.execute(_FETCHED if one.servers else _SENT).fetchone()
    assert sent is not None
    return Base(one, run, run.header().step_ms or 0.0, tuple(truths[one.name]), float(sent[0]))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 0, or 1 with one sentence on stderr."""
    parser = argparse.ArgumentParser(prog="python -m lab.score.training", description="predict the sweep of trainings")
    parser.add_argument("out", type=Path, metavar="DIR")
    parser.add_argument("--only", choices=ROLES, help="even: tuning set, odd: test set")
    given = parser.parse_args(arguments)
    try:
        each, all_of = score(given.out, ROLES if given.only is None else (given.only,))
        print("\n".join([*each, "", *all_of]))
    except LabError as error:
        print(f"python -m lab.score.training: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
