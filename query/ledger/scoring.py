"""The answer of the ledger: the accuracy of predictions by job and month, and what became of recommendations."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, median

from crystalperf.query.ledger.entries import Entry, Job
from crystalperf.query.ledger.following import followed
from crystalperf.query.ledger.matching import Held, KnownRun, held, is_later, known_runs, predictions
from crystalperf.query.ledger.moments import moment
from crystalperf.query.ledger.store import Kept
from crystalperf.query.results.ledger import Accuracy, JobLedger, Ledger, Match, Month

NORMAL = 1.6449
"""The quantile of the normal distribution for a 90 % interval."""


def scored(
    path: Path, kept: Kept, more: Sequence[KnownRun] = (), *, job: str = "", backtest: bool = False, writable: bool
) -> Ledger:
    """The accuracy of the kept predictions for the runs in the ledger, and for further ones (`more`).

    `job` is a part of the names of jobs to show; empty for all.
    """
    entries = [each for each in kept.entries if job.lower() in each.run.name.lower()]
    runs = known_runs(entries, [each for each in more if job.lower() in each.facts.name.lower()])
    made = predictions(entries)
    found = list(held(made, runs, backtest=backtest))
    first_ms = min((each.at_ms for each in made), default=math.inf)
    unfinished = [each for each in runs if not each.facts.ended_well and (backtest or is_later(each, first_ms))]
    stated = {key for each in runs for key in each.stated}
    return Ledger(
        file=str(path),
        entries=len(kept.entries),
        damaged_lines=kept.damaged,
        writable=writable,
        unstated=sum(1 for each in made if each.prediction.unstated.keys() - stated),
        unfinished_runs=len(unfinished),
        backtest=backtest,
        accuracy=accuracy(found),
        jobs=tuple(_jobs(entries, runs, found, backtest=backtest)),
    )


def _jobs(
    entries: Sequence[Entry], runs: Sequence[KnownRun], found: Sequence[Held], *, backtest: bool
) -> Iterator[JobLedger]:
    """The jobs, those with the most matches first."""
    kept, known = Counter[Job](), Counter(each.facts.job for each in runs)
    for entry in entries:
        kept[entry.run.job] += len(entry.predictions)
    matched: dict[Job, list[Held]] = {}
    for each in sorted(found, key=lambda each: (-each.run.started_at_ms, each.made.prediction.setting)):
        matched.setdefault(each.run.job, []).append(each)
    advised = followed(entries, runs, backtest=backtest)
    for job in sorted(known, key=lambda each: (-len(matched.get(each, ())), -kept[each], each)):
        own = matched.get(job, [])
        yield JobLedger(
            framework=job[0],
            name=job[1],
            plan=job[2],
            kept=kept[job],
            runs=known[job],
            accuracy=accuracy(own),
            months=tuple(_months(own)),
            matches=tuple(map(_match, own)),
            recommendations=tuple(advised.get(job, ())),
        )


def _months(found: Sequence[Held]) -> Iterator[Month]:
    months: dict[str, list[Held]] = {}
    for each in found:
        months.setdefault(moment(each.run.started_at_ms)[:7], []).append(each)
    for month in sorted(months):
        if (of_month := accuracy(months[month])) is not None:
            yield Month(month, of_month)


def _match(found: Held) -> Match:
    prediction = found.made.prediction
    return Match(
        recorded=found.made.run.app_id,
        run=found.run.app_id,
        made_at=moment(found.made.at_ms),
        started_at=moment(found.run.started_at_ms),
        setting=prediction.setting,
        scope=prediction.scope,
        predicted_ms=prediction.predicted_ms,
        range_ms=prediction.range_ms,
        actual_ms=found.actual_ms,
    )


def accuracy(found: Sequence[Held]) -> Accuracy | None:
    """The accuracy of predictions; each counts once, however many later runs it has.  None if there is no run."""
    groups: dict[int, list[Held]] = {}
    for each in found:
        groups.setdefault(id(each.made), []).append(each)
    if not groups:
        return None
    errors = [
        each[0].made.prediction.predicted_ms / median(one.actual_ms for one in each) - 1.0 for each in groups.values()
    ]
    inside = [
        fmean(ends[0] <= one.actual_ms <= ends[1] for one in each)
        for each in groups.values()
        if (ends := each[0].made.prediction.range_ms) is not None
    ]
    return Accuracy(
        predictions=len(groups),
        runs=len({each.run.identity for each in found}),
        median_error_ratio=median(errors),
        median_absolute_error_ratio=median(map(abs, errors)),
        inside_share=fmean(inside) if inside else None,
        inside_range_share=wilson(fmean(inside), len(inside)) if inside else None,
    )


def wilson(share: float, count: int) -> tuple[float, float]:
    """The 90 % interval of a share of `count` independent cases (Wilson, 1927)."""
    squared = NORMAL**2 / count
    middle = (share + squared / 2) / (1 + squared)
    reach = NORMAL / (1 + squared) * math.sqrt(share * (1 - share) / count + squared / (4 * count))
    return max(middle - reach, 0.0), min(middle + reach, 1.0)
