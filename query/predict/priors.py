"""Imputation of unknown time in logs without samples, from the run's own evidence and from priors of recorded runs.

A log without samples has the CPU time of a task and its waits for other workers' data; the cause of the remaining time
is unknown.  There are two sources for it:

    CPU wait  tasks that read and wrote nothing outside the run did not wait for a device, so their time beyond CPU time
              was a wait for a CPU; the other tasks of the run waited as long per second of CPU time
    priors    samples of recorded runs show the resources of such time, by the operator that reads, and by where its
              files are (`priors.csv`, which `python -m lab.score.priors` writes; docs/model.md)

The first source takes precedence, because it is from this run and its machines.  Both are for predictions only: other
runs are not evidence of where the time of a run went.
"""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from functools import cache
from importlib.resources import files

import numpy as np

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.resources import CPU, with_other
from crystalperf.query.execution.execution import Execution
from crystalperf.query.results.assumptions import Assumption, TimeImputed
from crystalperf.query.trace.records import Floats

PLAIN_SHARE = 0.1
"""Minimum share of the run's CPU time in tasks without a device, to estimate CPU waits from them."""

MAX_WAITS = 100.0
"""Maximum CPU wait per second of CPU time, seconds: more would mean a hundredth of a core for each task."""

ANY = "*"
"""The operator of the default row, for readers without a row of their own."""

REMOTE_LOCALITIES = "far"
"""The place of input on other machines.  For other input, all but 2 % of the unknown time in recorded runs was CPU
wait, for which the run itself is better evidence."""


@frozen
class Prior:
    """Resources of the unknown time of recorded runs, (resources + 1,) shares that sum to 1.

    `deviation` is the standard deviation of the devices' share between recordings, relative to it.
    """

    shares: tuple[float, ...]
    deviation: float
    recordings: int


@cache
def priors(framework: str, names: tuple[str, ...]) -> dict[tuple[str, str], Prior]:
    """The priors of a framework by (operator, place); `names` are the resources of the shares."""
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


def unknown_ms(execution: Execution) -> Floats:
    """Unknown time of each task in the log, (tasks,) in ms, without the overhead of starting and reporting a task."""
    unknown = execution.tasks.parts_ms[:, -1] - execution.tasks.pipeline_wait_ms
    left = np.maximum(unknown - execution.volumes.overhead_ms, 0.0)
    measured = execution.volumes.timed & ~np.isin(execution.tasks.stage, list(execution.delegating))
    found: Floats = np.where(measured, left, 0.0)
    return found


def cpu_wait_per_cpu_second(execution: Execution, left_ms: Floats) -> tuple[float, float] | None:
    """CPU wait per second of CPU time, and the relative deviation of stages from it.

    None if too few tasks had no device to wait for, or if they waited longer than a CPU wait can be.
    """
    volumes, stage = execution.volumes, execution.tasks.stage
    plain = (volumes.input == 0) & (volumes.output == 0) & (volumes.spill_disk == 0)
    plain &= volumes.timed & ~np.isin(stage, list(execution.delegating))
    on_cpu = volumes.total_cpu_ms[plain]
    if on_cpu.sum() < PLAIN_SHARE * volumes.total_cpu_ms[volumes.timed].sum():
        return None
    count = len(execution.dag.stages)
    work = np.bincount(stage[plain], on_cpu, count)
    waits = np.bincount(stage[plain], left_ms[plain], count)
    per_second = float(waits.sum() / work.sum())
    if per_second > MAX_WAITS:
        return None
    apart = np.divide(waits, work, out=np.zeros(count), where=work > 0) - per_second
    deviation = float(np.sqrt((work * apart**2).sum() / work.sum()))
    return per_second, deviation / per_second if per_second > 0 else 0.0


def unknown_cpu_wait_share(execution: Execution) -> float:
    """The share of task time that may be CPU wait, if a log has CPU times but no evidence of CPU waits; otherwise 0."""
    if execution.has_samples or not execution.volumes.timed.any():
        return 0.0
    left = unknown_ms(execution)
    if cpu_wait_per_cpu_second(execution, left) is not None:
        return 0.0
    return float(left.sum()) / (float(execution.tasks.duration_ms.sum()) or 1.0)


def impute_from_priors(execution: Execution) -> tuple[Execution, tuple[Assumption, ...]]:
    """The execution with its unknown time imputed to resources, and the assumption behind it.

    An execution with samples, or of a framework without priors, does not change.
    """
    known = priors(execution.words.framework, execution.names)
    if execution.has_samples or not known or not execution.volumes.timed.any():
        return execution, ()
    left, far = unknown_ms(execution), execution.volumes.far > 0
    cpu_wait = cpu_wait_per_cpu_second(execution, left)
    parts = execution.tasks.parts_ms.copy()
    imputed = np.zeros_like(parts)
    cpu, deviation = execution.names.index(CPU), 0.0
    if cpu_wait is not None:
        imputed[:, cpu] = np.minimum(cpu_wait[0] * execution.volumes.total_cpu_ms, left)
        deviation = cpu_wait[1]
    used: list[Prior] = []
    rest = left - imputed.sum(axis=1)
    for number in np.unique(execution.tasks.stage[far & (left > 0)]).tolist():
        reads_far = far & (execution.tasks.stage == number)
        prior = known.get((execution.readers.get(number, ANY), REMOTE_LOCALITIES)) or known.get(
            (ANY, REMOTE_LOCALITIES)
        )
        if prior is None:
            continue
        used.append(prior)
        shares = np.array(prior.shares)
        if cpu_wait is not None:
            shares[cpu] = 0.0
            shares /= max(shares.sum(), 1e-9)
        imputed[reads_far] += shares * rest[reads_far, None]
    imputed[:, -1] = 0.0
    if not imputed.any():
        return execution, ()
    parts += imputed
    parts[:, -1] -= imputed.sum(axis=1)
    busy = float(execution.tasks.duration_ms.sum()) or 1.0
    share = imputed.sum(axis=0)[:-1] / busy
    apart = np.full(len(share), max((each.deviation for each in used), default=deviation))
    apart[cpu] = max(deviation, apart[cpu] if cpu_wait is None else 0.0)
    evidence = replace(
        execution.evidence,
        sampling=np.hypot(execution.evidence.sampling, np.minimum(apart, 1.0) * share),
        unseen_resources=max(execution.evidence.unseen_resources - float(share.sum()), 0.0),
        missing_cpu_share=max(execution.evidence.missing_cpu_share - float(share.sum()), 0.0),
    )
    with_imputed = replace(execution, tasks=replace(execution.tasks, parts_ms=parts), evidence=evidence)
    return with_imputed, (_imputation(imputed, cpu, cpu_wait, used, busy),)


def _imputation(
    imputed: Floats, cpu: int, cpu_wait: tuple[float, float] | None, used: list[Prior], busy_ms: float
) -> TimeImputed:
    """The assumption of imputed time: how much, and from which sources."""
    whole = imputed.sum(axis=0)
    return TimeImputed(
        imputed_ms=float(imputed.sum()),
        task_ms=busy_ms,
        devices_ms=float(whole.sum() - whole[cpu]),
        cpu_wait_ms=float(whole[cpu]),
        waits_per_cpu_second=None if cpu_wait is None else cpu_wait[0],
        recordings=max((each.recordings for each in used), default=0),
    )
