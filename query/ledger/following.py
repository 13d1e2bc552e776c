"""The fate of recommendations: whether later runs have the recommended values, and how much shorter they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.regex import regex
from crystalperf.query.compare.noise import difference, kind_of
from crystalperf.query.diagnose.comparer import Effect
from crystalperf.query.execution.scenario import size_of
from crystalperf.query.frameworks.registry import frameworks
from crystalperf.query.ledger.entries import Change, Entry, Identity, Job, Recommended, RunFacts
from crystalperf.query.ledger.matching import KnownRun, is_later, same_input
from crystalperf.query.ledger.moments import moment
from crystalperf.query.results.ledger import Followed, Status

_AMOUNT = regex(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]+)")

_CHANGED: tuple[tuple[str, Effect], ...] = (
    ("workers", "slots"),
    ("cores", "slots"),
    ("memory", "memory"),
    ("tasks", "tasks"),
)
"""Resources of runs, and the effect of a setting by which a recommendation changes each."""


@frozen
class _Advised:
    """A recommendation with the run that it is about, and when it was first made, Unix ms.

    `names` are the settings that this one and those with it change: later runs may have several of their values.
    """

    at_ms: int
    run: RunFacts
    found: Recommended
    names: frozenset[str]


@frozen
class _Outcome:
    """A recommendation with the runs that have its values."""

    answer: Followed
    after: frozenset[Identity]


def followed(entries: Iterable[Entry], runs: Iterable[KnownRun], *, backtest: bool) -> dict[Job, list[Followed]]:
    """The recommendations for each job, each once, with those that were applied first.

    With `backtest`, runs that started before the recommendation count as well.
    """
    advised: dict[tuple[Job, str, tuple[tuple[str, str], ...]], _Advised] = {}
    for entry in sorted(entries, key=lambda each: each.at_ms):
        names = frozenset(one.name for each in entry.recommendations for one in each.changes)
        for each in entry.recommendations:
            key = entry.run.job, each.kind, tuple((one.name, one.after) for one in each.changes)
            advised.setdefault(key, _Advised(entry.at_ms, entry.run, each, names))
    named: dict[tuple[str, str], list[KnownRun]] = {}
    for run in runs:
        if run.facts.ended_well:
            named.setdefault(run.facts.job[:2], []).append(run)
    found: dict[Job, list[_Outcome]] = {}
    for (job, _, _), value in advised.items():
        found.setdefault(job, []).append(_outcome(value, named.get(job[:2], ()), backtest=backtest))
    return {job: _ordered(of_job) for job, of_job in found.items()}


def _ordered(found: Sequence[_Outcome]) -> list[Followed]:
    answers = [
        replace(each.answer, together=sum(1 for one in found if one is not each and one.after & each.after))
        for each in found
    ]
    return sorted(answers, key=lambda each: (each.status != "applied", each.advised_at))


def _outcome(advised: _Advised, runs: Sequence[KnownRun], *, backtest: bool) -> _Outcome:
    found, base = advised.found, advised.run
    alike = [each for each in runs if _is_alike(each.facts, base)]
    later = [
        each.facts
        for each in alike
        if each.facts.identity != base.identity and (backtest or is_later(each, advised.at_ms))
    ]
    valued = [each for each in later if found.changes and _has(each, found.changes)]
    after = [each for each in valued if _changed(each, base) <= advised.names and _explained(each, base)]
    before = [each.facts for each in alike if not _changed(each.facts, base) and _explained(each.facts, base)]
    before_ms, after_ms = ([each.step_ms or each.runtime_ms for each in side] for side in (before, after))
    kind = kind_of(base.framework, "step" if base.step_ms else "runtime")
    answer = Followed(
        kind=found.kind,
        text=found.text,
        lines=found.lines,
        changes={each.name: each.after for each in found.changes},
        advised_at=moment(advised.at_ms),
        claimed_ms=found.saving_ms,
        claimed_range_ms=found.range_ms,
        status="applied-among-others" if valued and not after else _status(base, found.changes, later, after),
        difference=difference(before_ms, after_ms, kind) if before and after else None,
    )
    return _Outcome(answer, frozenset(each.identity for each in after))


def _status(base: RunFacts, changes: Sequence[Change], later: Sequence[RunFacts], after: Sequence[RunFacts]) -> Status:
    if not changes:
        return "unknown"
    if after:
        return "applied"
    if not later:
        return "no-later-run"
    others = any(each.settings.get(one.name) != base.settings.get(one.name) for each in later for one in changes)
    return "changed-otherwise" if others else "not-applied"


def _is_alike(run: RunFacts, base: RunFacts) -> bool:
    """Whether a run read the same input by the same plan, or by one that other settings explain."""
    if not same_input(base.resources, run.resources):
        return False
    return run.plan == base.plan or "plan" in _effects(base.framework, _changed(run, base))


def _changed(run: RunFacts, base: RunFacts) -> frozenset[str]:
    """The settings with an effect on times that differ."""
    names = {*run.settings, *base.settings}
    return frozenset(
        each
        for each in names
        if run.settings.get(each) != base.settings.get(each) and _effects(base.framework, [each]) - {"none"}
    )


def _explained(run: RunFacts, base: RunFacts) -> bool:
    """Whether the run has the resources of the other but for those that different settings change."""
    effects = _effects(base.framework, _changed(run, base))
    return all(run.resources.get(key) == base.resources.get(key) for key, its in _CHANGED if its not in effects)


def _effects(framework: str, names: Iterable[str]) -> set[Effect]:
    known = frameworks().get(framework)  # its package may not be installed
    return set() if known is None else {each for name in names for each in known.comparer.effects(name)}


def _has(run: RunFacts, changes: Sequence[Change]) -> bool:
    return all(_is_value(run.settings.get(each.name), each) for each in changes)


def _is_value(has: str | None, wanted: Change) -> bool:
    """Whether a setting has the recommended value, which may be written in another unit."""
    if has is None:
        return False
    if has.strip().lower() == wanted.after.strip().lower():
        return True
    amount = _bytes(has)
    return amount is not None and wanted.after_bytes is not None and abs(amount - wanted.after_bytes) < 0.5


def _bytes(text: str) -> float | None:
    """An amount of data with its unit, in bytes; None for any other text."""
    found = _AMOUNT.fullmatch(text.strip())
    size = None if found is None else size_of(found[2], rate=False)
    return None if found is None or size is None else float(found[1]) * size
