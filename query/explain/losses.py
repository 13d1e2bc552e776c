"""Findings of what was lost: workers, the time until others came, and the work of units that failed or were killed.

The conventions are those of query.explain.findings.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crystalperf.query.answers.values import Finding, LostWorker
from crystalperf.query.explain.outcome import Ended, merged_reasons
from crystalperf.query.explain.wording import Terms
from crystalperf.query.frameworks import Exhausted, plural
from crystalperf.query.model.amounts import counted, lasting

SOONER = "let the cluster manager start them sooner, or keep an application for several runs"
"""What to do about workers that came late."""

NEVER = "no worker ever"
"""The rule of advice where none came; the finding's own is that of any time without a worker."""

_REASONS_SHOWN = 3
_LOST_SHOWN = 5


def no_worker(
    terms: Terms, waited_ms: float, first_worker_ms: float | None, lost: Sequence[LostWorker], lost_wait_ms: float
) -> list[Finding]:
    """What held the run up while no worker was there: `lost_wait_ms` of it since the last of them was lost."""
    workers = terms.words.workers
    what = f"waiting for {workers}: none was there to run anything"
    if first_worker_ms:
        what += f"; the first was ready after {lasting(first_worker_ms)}"
    if lost_wait_ms <= 0:
        return [Finding("no worker", waited_ms, what, "measured", terms.advice("no worker", SOONER))]
    what += f"; for {lasting(lost_wait_ms)} since {words_for_lost(terms, lost)}"
    return [Finding("no worker", waited_ms, what, "measured", _advice_on_loss(terms, lost))]


def never_a_worker(terms: Terms, waited_ms: float) -> list[Finding]:
    """What held the run up where no worker ever came, though groups waited for one."""
    words = terms.words
    what = f"no {words.worker} ever came: {plural(words.group)} waited and no {words.unit} ran"
    neutral = f"check that the cluster has free cores and memory for what one {words.worker} asks for"
    return [Finding("no worker", waited_ms, what, "measured", terms.advice(NEVER, neutral))]


def lost_workers(terms: Terms, lost: Sequence[LostWorker], workers: int, short_ms: float, slots: int) -> list[Finding]:
    """Workers that were lost: work that had to be done again, and what ran on fewer lanes from then on.

    `short_ms` is what of the critical path would not have been there on the lanes that were lost, at most.
    """
    if not lost:
        return []
    words = terms.words
    redone, redone_ms = sum(each.redone_units for each in lost), sum(each.redone_ms for each in lost)
    were = "was" if len(lost) == 1 else "were"
    what = f"{len(lost)} of {counted(workers, words.worker)} {were} lost: {words_for_lost(terms, lost)}"
    if redone:
        what += f"; {counted(redone, words.unit)} ran again, which had taken {lasting(redone_ms)}"
    if short_ms > 0:
        what += f"; what ran then had fewer {words.lanes}"
    return [
        Finding("lost workers", short_ms + redone_ms / max(slots, 1), what, "modelled", _advice_on_loss(terms, lost))
    ]


def words_for_lost(terms: Terms, lost: Sequence[LostWorker]) -> str:
    """Which of the workers were lost, when and why."""
    shown = ", ".join(each.worker for each in lost[:_LOST_SHOWN]) + (" …" if len(lost) > _LOST_SHOWN else "")
    lived = float(np.median([each.lost_ms - each.added_ms for each in lost]))
    who = f"{terms.words.worker} {shown} went" if len(lost) == 1 else f"{terms.words.workers} {shown} went"
    came = "it came" if len(lost) == 1 else "they came, in the median"
    return f"{who} {lasting(lived)} after {came} ({lost[0].why})"


def _advice_on_loss(terms: Terms, lost: Sequence[LostWorker]) -> str:
    short = next((kind for each in lost if (kind := terms.rules.exhausted(each.why))), None)
    if short is not None:
        return memory_advice(terms, short)
    where = lost[0].worker if lost[0].host is None else f"{lost[0].worker} on {lost[0].host}"
    return terms.advice("lost workers", f"look at the last lines of the log of {terms.words.worker} {where}")


def memory_advice(terms: Terms, kind: Exhausted) -> str:
    """What to do where a container, a heap or a device ran out of memory."""
    words = terms.words
    neutral: dict[Exhausted, str] = {
        "container": f"a larger container for each {words.worker} than its heap needs, or fewer {words.lanes} in it",
        "heap": f"more memory per {words.worker}, fewer {words.lanes}, or smaller {words.units}",
        "device": f"fewer {words.units} at a time on a device, or smaller {words.units}",
        "killed": f"look for who killed it; where that was for memory, fewer {words.lanes} or a larger container",
    }
    return terms.advice(f"{kind} memory", neutral[kind])


def wasted(terms: Terms, ended: Sequence[Ended], slots: int) -> list[Finding]:
    """Work that was thrown away: units that failed, and those that were killed, each with the commonest reasons.

    Those that were killed did not fail: a copy was faster, or their group was over.
    """
    found = []
    for status, neutral in (("failed", "look at why they failed"), ("killed", "look at why they were killed")):
        mine = [e for e in ended if e.status == status and not terms.rules.called_off(e.reason or "")]
        if not mine or slots <= 0:
            continue
        reasons = merged_reasons(mine)
        units, unit_ms = sum(each.units for each in mine), sum(each.unit_ms for each in mine)
        unit = terms.words.unit
        what = f"{counted(units, f'{status} {unit}')} ran for {lasting(unit_ms)} of {unit} time"
        told = "; ".join(
            reason if len(reasons) == 1 else f"{count} times {reason}" for reason, count in reasons[:_REASONS_SHOWN]
        )
        what += f": {told}" if told else ""
        short = [kind for reason, _ in reasons if (kind := terms.rules.exhausted(reason))]
        advice = memory_advice(terms, short[0]) if short else terms.advice(f"{status} units", neutral)
        found.append(Finding("wasted", unit_ms / slots, what, "modelled", advice))
    return found
