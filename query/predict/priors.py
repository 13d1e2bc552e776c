"""What a log alone leaves open, by the run's own evidence and by what recorded runs spent such time on.

Without samples a log has the CPU time of a unit and its waits for other workers' data; the rest is of no known cause.
Two things are known of it:

    starving  units that read and wrote nothing outside the run had no device to wait for, so what they took beyond
              their CPU time was waiting for a CPU; the other units of the run waited as long for each second of theirs
    priors    of recorded runs the samples told what such time was, by the operator that reads, and where its files lie
              (`priors.csv`, which `python -m lab.score.priors` writes; docs/model.md)

The first goes before the second, for it is of this run and these machines.  Both only serve predictions: what a run's
time went to is not answered by other runs.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

import numpy as np

from crystalperf.indexes.resources import CPU, with_other
from crystalperf.query.execution.execution import Execution
from crystalperf.query.results.assumptions import Assumption, TimeImputed
from crystalperf.query.trace.records import Floats

PLAIN_SHARE = 0.1
"""Share of the run's CPU time in units without a device from which they tell how long units wait for a CPU."""

MOST_WAITS = 100.0
"""Seconds for each of CPU time beyond which nobody waits for a CPU: a hundredth of a core for each unit."""

ANY = "*"
"""The operator of the row that holds for readers without one of their own."""

FAR = "far"
"""The place of input on other machines; of other input, all but 2 % of what recorded runs left open was waiting for a
CPU, of which the run itself tells more."""


@dataclass(frozen=True)
class Prior:
    """What recorded runs spent the time on that their logs leave open, (resources + 1,) shares that sum to 1.

    `deviation` is the standard deviation of the devices' share between recordings, relative to it.
    """

    shares: tuple[float, ...]
    deviation: float
    recordings: int


@cache
def priors(framework: str, names: tuple[str, ...]) -> dict[tuple[str, str], Prior]:
    """The priors of a framework by (operator, place); `names` are the resources that shares are of."""
    text = files(__package__).joinpath("priors.csv").read_text(encoding="utf-8")
    return {
        (row["operator"], row["place"]): Prior(
            tuple(float(row.get(name) or 0) for name in with_other(names)),
            float(row["deviation"]),
            int(row["recordings"]),
        )
        for row in csv.DictReader(io.StringIO(text))
        if row["framework"] == framework
    }


def open_ms(execution: Execution) -> Floats:
    """The time of each unit that its log leaves open, (units,); starting and reporting a unit is not among it."""
    unknown = execution.units.parts_ms[:, -1] - execution.units.upstream_ms
    left = np.maximum(unknown - execution.volumes.overhead_ms, 0.0)
    measured = execution.volumes.timed & ~np.isin(execution.units.group, list(execution.delegating))
    found: Floats = np.where(measured, left, 0.0)
    return found


def starving(execution: Execution, left_ms: Floats) -> tuple[float, float] | None:
    """How long units wait for a CPU for each second of CPU time, and how far groups deviate from that, relative.

    None where too few of the units had no device to wait for, or where they waited longer than for a CPU.
    """
    volumes, group = execution.volumes, execution.units.group
    plain = (volumes.input == 0) & (volumes.output == 0) & (volumes.spill_disk == 0)
    plain &= volumes.timed & ~np.isin(group, list(execution.delegating))
    on_cpu = volumes.on_cpu_ms[plain]
    if on_cpu.sum() < PLAIN_SHARE * volumes.on_cpu_ms[volumes.timed].sum():
        return None
    count = len(execution.dag.groups)
    work = np.bincount(group[plain], on_cpu, count)
    waits = np.bincount(group[plain], left_ms[plain], count)
    per_second = float(waits.sum() / work.sum())
    if per_second > MOST_WAITS:
        return None
    apart = np.divide(waits, work, out=np.zeros(count), where=work > 0) - per_second
    deviation = float(np.sqrt((work * apart**2).sum() / work.sum()))
    return per_second, deviation / per_second if per_second > 0 else 0.0


def waits_unknown(execution: Execution) -> float:
    """The share of unit time that may be waiting for a CPU, of a log that has CPU times and does not tell; else 0."""
    if execution.has_samples or not execution.volumes.timed.any():
        return 0.0
    left = open_ms(execution)
    if starving(execution, left) is not None:
        return 0.0
    return float(left.sum()) / (float(execution.units.duration_ms.sum()) or 1.0)


def borrowed(execution: Execution) -> tuple[Execution, tuple[Assumption, ...]]:
    """The execution with what its log leaves open shared out, and where the shares come from.

    One with samples, or of a framework without recorded runs, stays as it is.
    """
    known = priors(execution.words.framework, execution.names)
    if execution.has_samples or not known or not execution.volumes.timed.any():
        return execution, ()
    left, far = open_ms(execution), execution.volumes.far > 0
    tells = starving(execution, left)
    parts = execution.units.parts_ms.copy()
    lent = np.zeros_like(parts)
    cpu, deviation = execution.names.index(CPU), 0.0
    if tells is not None:
        lent[:, cpu] = np.minimum(tells[0] * execution.volumes.on_cpu_ms, left)
        deviation = tells[1]
    used: list[Prior] = []
    rest = left - lent.sum(axis=1)
    for number in np.unique(execution.units.group[far & (left > 0)]).tolist():
        mine = far & (execution.units.group == number)
        prior = known.get((execution.readers.get(number, ANY), FAR)) or known.get((ANY, FAR))
        if prior is None:
            continue
        used.append(prior)
        shares = np.array(prior.shares)
        if tells is not None:
            shares[cpu] = 0.0
            shares /= max(shares.sum(), 1e-9)
        lent[mine] += shares * rest[mine, None]
    lent[:, -1] = 0.0
    if not lent.any():
        return execution, ()
    parts += lent
    parts[:, -1] -= lent.sum(axis=1)
    busy = float(execution.units.duration_ms.sum()) or 1.0
    share = lent.sum(axis=0)[:-1] / busy
    apart = np.full(len(share), max((each.deviation for each in used), default=deviation))
    apart[cpu] = max(deviation, apart[cpu] if tells is None else 0.0)
    evidence = replace(
        execution.evidence,
        sampling=np.hypot(execution.evidence.sampling, np.minimum(apart, 1.0) * share),
        unseen=max(execution.evidence.unseen - float(share.sum()), 0.0),
        unseen_cpu=max(execution.evidence.unseen_cpu - float(share.sum()), 0.0),
    )
    lender = replace(execution, units=replace(execution.units, parts_ms=parts), evidence=evidence)
    return lender, (_imputed(lent, cpu, tells, used, busy),)


def _imputed(
    lent: Floats, cpu: int, tells: tuple[float, float] | None, used: list[Prior], busy_ms: float
) -> TimeImputed:
    """Where the shares come from."""
    whole = lent.sum(axis=0)
    return TimeImputed(
        imputed_ms=float(lent.sum()),
        task_ms=busy_ms,
        devices_ms=float(whole.sum() - whole[cpu]),
        cpu_wait_ms=float(whole[cpu]),
        waits_per_cpu_second=None if tells is None else tells[0],
        recordings=max((each.recordings for each in used), default=0),
    )
