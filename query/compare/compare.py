"""Runs of a job against each other: whether the difference is noise, and the parts that sum to it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Protocol

from crystalperf.indexes.errors import InputError, SettingError
from crystalperf.query.compare.accounts import Account, account
from crystalperf.query.compare.causes import CauseEffect, Sides, effects, same_plan, totals
from crystalperf.query.compare.matching import Pair, matched
from crystalperf.query.compare.noise import difference, kind_of
from crystalperf.query.compare.parts import part_of
from crystalperf.query.compare.pooling import pooled, typical
from crystalperf.query.execution.load import ALL
from crystalperf.query.frameworks.registry import get
from crystalperf.query.results.comparison import (
    INCOMPLETE,
    ChangedSlots,
    Collected,
    ComparedRun,
    ComparedStage,
    Comparison,
    ComputeWait,
    DifferentJobs,
    NotCompared,
    NotSucceeded,
    OneSideSampled,
    OperatorChange,
    Part,
    PredictedChange,
    SettingChange,
    Side,
    TaskOverhead,
    Unexplained,
)
from crystalperf.query.results.refusals import RefusedError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    import duckdb

    from crystalperf.query.diagnose.comparer import Comparer
    from crystalperf.query.execution.execution import Execution
    from crystalperf.query.results.answers import Debug, Header, Prediction

SMALL = 0.005
"""Parts below this share of the longer runtime, or a hundredth of the difference, are not named."""

SAME_JOB = 0.3
"""Minimum share of the stages' time in stages with a counterpart for runs to be of the same job."""

PREDICTED = ("workers", "cores", "memory")
"""Settings that logs record, so that the runs before predict the runtime with those of the runs after."""


class ComparableRun(Protocol):
    """A run that can be compared, as crystalperf.query.run.Run."""

    @property
    def path(self) -> Path:
        """Its run file."""

    def header(self) -> Header:
        """Name, framework, duration and size of the run."""

    def debug(self, scope: str = "all") -> Debug:
        """Where the time of a scope went."""

    def execution(self, scope: str = "all") -> Execution:
        """A scope as arrays."""

    def reading(self) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
        """The locked, read-only connection."""

    def predict(self, settings: Sequence[str] = (), *, scope: str = "all", path: bool = True) -> Prediction:
        """The runtime under changed resources."""


@dataclass(frozen=True)
class Given:
    """One run of a side, the name by which the user gave it, and the scope of it to compare."""

    run: ComparableRun
    name: str
    scope: str = ALL


Recall = Callable[[Given, Sequence[Given], float], PredictedChange | None]
"""The prediction that was made of a run before those after began, which took so long, ms; None if there is none."""


def compared(
    before: Sequence[Given],
    after: Sequence[Given],
    progress: Callable[[str], None] = lambda _: None,
    recall: Recall = lambda *_: None,
) -> Comparison:
    """The comparison of two sides, each of one run or several of the same job.

    `recall` has a prediction that was made before the runs after; without one, it is computed now.  Raises InputError
    if the runs are of different frameworks, or if one is given twice.
    """
    _checked(before, after)
    steps = _steps([each.run.header() for each in (*before, *after)], before[0].scope)
    read = [[_account(each, steps, progress) for each in side] for side in (before, after)]
    progress("matching stages")
    one, other = (pooled(each) for each in read)
    first = before[typical([each.runtime_ms for each in read[0]])]
    header = first.run.header()
    comparer = get(header.framework).comparer
    settings = setting_changes(one.properties, other.properties, comparer)
    sides, pairs = Sides(one, other, comparer, settings), matched(one, other)
    change_ms = other.runtime_ms - one.runtime_ms
    operators = _operator_changes(sides)
    parts = _parts(sides, effects(sides, pairs), operators, change_ms)
    progress("predicting the resources of the runs after")
    predicted = recall(first, after, other.runtime_ms) or _predicted(first, one, other)
    return Comparison(
        before=_side(before, read[0], one),
        after=_side(after, read[1], other),
        difference=difference(
            [each.runtime_ms for each in read[0]], [each.runtime_ms for each in read[1]],
            kind_of(header.framework, "step" if header.measure == "step time" else "runtime"),
        ),
        measure=header.measure,
        scope=first.scope,
        steps=steps,
        parts=_with_prediction(parts, predicted, one.runtime_ms, change_ms),
        stages=_compared_stages(pairs, comparer),
        settings=settings,
        operators=operators,
        predicted=predicted,
        not_compared=(*_not_compared((*before, *after), pairs), *_unlike_samples(before, after)),
        before_wait_ms=one.wait_ms,
        after_wait_ms=other.wait_ms,
        words=first.run.execution(first.scope).words,
    )  # fmt: skip


def _checked(before: Sequence[Given], after: Sequence[Given]) -> None:
    """Raise InputError or SettingError if the sides cannot be compared at all."""
    if not before or not after:
        raise SettingError("each side of a comparison needs a run")
    first, seen = before[0], dict[tuple[str, str], str]()
    for each in (*before, *after):
        own, known = each.run.header(), first.run.header()
        if own.framework != known.framework:
            raise InputError(
                f"{each.name}: a run of {own.framework_title}, but {first.name} is one of {known.framework_title};"
                " compare runs of one framework"
            )
        key = str(each.run.path), each.scope
        if key in seen:
            raise InputError(f"{each.name}: is the same run as {seen[key]}; name another run of the job")
        seen[key] = each.name


def _steps(headers: Sequence[Header], scope: str) -> int | None:
    """The number of steps of each run to compare: the least, because profilers record different numbers of them.

    None for a part of a run, and if runs do not repeat steps.
    """
    counts = [each.steps for each in headers if each.steps and each.step_ms]
    return min(counts) if scope == ALL and len(counts) == len(headers) else None


def _account(given: Given, steps: int | None, progress: Callable[[str], None]) -> Account:
    """The account of a run; of a run with more than `steps` steps, that of the first ones, at the mean time of a step.

    Raises InputError if the run cannot be compared.
    """
    progress(f"reading {given.name}")
    execution = given.run.execution(given.scope)
    if execution.stream is not None:
        raise InputError(
            f"{given.name}: is a stream of records, and only runs that end are compared; compare the output of"
            " `analyze` for both streams"
        )
    if not execution.runtime_ms > 0:
        raise InputError(f"{given.name}: no time passes in it; compare runs that did something")
    debug, header = given.run.debug(given.scope), given.run.header()
    with given.run.reading() as connection:
        advisor = get(execution.words.framework).advisor
        found = account(connection, execution, advisor, debug.outcome.lost if debug.outcome else ())
    if steps is None or not header.steps or not header.step_ms or header.steps == steps:
        return found
    scopes = [each.id for each in sorted(debug.scopes, key=lambda each: each.start_ms)]
    kept = {*scopes[: round(len(scopes) * steps / header.steps)]}
    return replace(
        found,
        runtime_ms=header.step_ms * steps,
        stages=tuple(each for each in found.stages if each.scope is None or each.scope in kept),
    )


def setting_changes(
    before: Mapping[str, str], after: Mapping[str, str], comparer: Comparer
) -> tuple[SettingChange, ...]:
    """The settings with different values, those with a known effect on times first."""
    found = [
        SettingChange(
            key, before.get(key), after.get(key), any(each != "none" for each in comparer.effects(key))
        )
        for key in sorted({*before, *after})
        if before.get(key) != after.get(key) and comparer.is_setting(key)
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda each: not each.matters))


def _operator_changes(sides: Sides) -> tuple[OperatorChange, ...]:
    """The operators of which plans of the same name have more or fewer, by query."""
    found = []
    one, other = (_operators_by_name(each, sides.comparer) for each in (sides.before, sides.after))
    for scope in [each for each in one if each in other]:
        for name in sorted({*one[scope], *other[scope]}):
            if one[scope][name] != other[scope][name]:
                found.append(OperatorChange(scope, name, one[scope][name], other[scope][name]))
    return tuple(found)


def _operators_by_name(account: Account, comparer: Comparer) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    for scope, operators in account.plans.items():
        counts = found.setdefault(account.scopes.get(scope, scope), Counter())
        counts.update(each for each in operators if each not in comparer.adapters)
    return found


def _parts(
    sides: Sides, found: Sequence[CauseEffect], operators: tuple[OperatorChange, ...], change_ms: float
) -> list[Part]:
    """The parts, without small ones, which are part of the unexplained rest."""
    least_ms = max(SMALL * max(sides.before.runtime_ms, sides.after.runtime_ms), 0.01 * abs(change_ms))
    parts = []
    for (cause, subject), of_cause in totals(found).items():
        if cause != "unexplained" and abs(sum(each.ms for each in of_cause)) >= least_ms:
            parts.append(part_of(cause, subject, of_cause, sides, operators))
    rest_ms = change_ms - sum(each.ms for each in parts)
    return [*parts, Unexplained(rest_ms, "measured", ())]


def _ranked(parts: Sequence[Part], change_ms: float) -> tuple[Part, ...]:
    """Those in the direction of the difference first, the largest first; the unexplained rest last."""
    sign = -1.0 if change_ms < 0 else 1.0
    return tuple(sorted(parts, key=lambda each: (isinstance(each, Unexplained), -sign * each.ms)))


def _with_prediction(
    parts: Sequence[Part], predicted: PredictedChange | None, before_ms: float, change_ms: float
) -> tuple[Part, ...]:
    """The parts, with effects of fewer or more slots that the account of a stage shows elsewhere.

    A worker with fewer slots often has less CPU, too, for collecting garbage, compiling, and starting tasks.  So other
    time without a measured cause belongs to the slots, as far as the prediction of the runs before expects it.
    """
    slots = next((each for each in parts if isinstance(each, ChangedSlots)), None)
    if slots is None or predicted is None or predicted.predicted_ms is None:
        return _ranked(parts, change_ms)
    gap_ms = predicted.predicted_ms - before_ms - slots.ms
    moved, found = 0.0, list[Part]()
    for each in parts:
        take_ms = 0.0
        if isinstance(each, ComputeWait | TaskOverhead | Collected | Unexplained) and slots.ms * gap_ms > 0:
            take_ms = _within(each.ms, gap_ms - moved)
        moved += take_ms
        if each is not slots and (take_ms != each.ms or isinstance(each, Unexplained)):
            found.append(replace(each, ms=each.ms - take_ms))
    return _ranked([*found, replace(slots, ms=slots.ms + moved)], change_ms)


def _within(ms: float, most_ms: float) -> float:
    """The part of a time that is in the same direction as another and not longer; 0 if it is in the other direction."""
    return math.copysign(min(abs(ms), abs(most_ms)), ms) if ms * most_ms > 0 else 0.0


def _predicted(first: Given, before: Account, after: Account) -> PredictedChange | None:
    """The prediction of the typical run before for the resources of those after; None if logs show no difference."""
    words = {inner: word for word, inner in reversed(list(first.run.header().vocabulary.settings.items()))}
    texts = []
    for key in PREDICTED:
        one, other = before.resources.get(key), after.resources.get(key)
        if one and other and one != other:
            texts.append(f"{words.get(key, key)}={other:.0f}{'B' if key == 'memory' else ''}")
    if not texts:
        return None
    try:
        found = first.run.predict(texts, scope=first.scope, path=False)
    except RefusedError as error:
        return PredictedChange(tuple(texts), None, None, after.runtime_ms, (error.refusal,))
    except SettingError:
        return None
    return PredictedChange(tuple(texts), found.predicted_ms, found.interval_ms, after.runtime_ms, found.refused)


def _side(given: Sequence[Given], accounts: Sequence[Account], one: Account) -> Side:
    runs = []
    for each, own in zip(given, accounts, strict=True):
        header, outcome = each.run.header(), each.run.debug(each.scope).outcome
        status = "unknown" if outcome is None else outcome.status
        runs.append(ComparedRun(str(each.run.path), each.name, header.name, header.app_id, own.runtime_ms, status))
    return Side(
        tuple(runs),
        one.version,
        one.runtime_ms,
        one.workers,
        one.slots or None,
        one.memory_bytes,
        median(each.input_bytes for each in accounts),
    )


def _compared_stages(pairs: Sequence[Pair], comparer: Comparer) -> tuple[ComparedStage, ...]:
    found = []
    for one, other in pairs:
        some = one or other
        assert some is not None
        found.append(
            ComparedStage(
                before=one.id if one else None,
                after=other.id if other else None,
                name=some.name,
                before_ms=one.wall_ms if one else 0.0,
                after_ms=other.wall_ms if other else 0.0,
                before_resource_ms=one.resource_ms if one else {},
                after_resource_ms=other.resource_ms if other else {},
                before_tasks=one.tasks if one else 0.0,
                after_tasks=other.tasks if other else 0.0,
                before_bytes=one.read_bytes if one else 0.0,
                after_bytes=other.read_bytes if other else 0.0,
                same_plan=one is not None and other is not None and same_plan(one, other, comparer.adapters),
            )
        )
    return tuple(sorted(found, key=lambda each: -abs(each.after_ms - each.before_ms)))


def _unlike_samples(before: Sequence[Given], after: Sequence[Given]) -> Iterator[NotCompared]:
    sampled = [[each.run.execution(each.scope).has_samples for each in side] for side in (before, after)]
    if (all(sampled[0]) and not any(sampled[1])) or (all(sampled[1]) and not any(sampled[0])):
        yield OneSideSampled(after=sampled[1][0])


def _not_compared(given: Sequence[Given], pairs: Sequence[Pair]) -> Iterator[NotCompared]:
    cut = False
    for each in given:
        outcome = each.run.debug(each.scope).outcome
        if outcome is not None and outcome.status in INCOMPLETE:
            cut = True
            yield NotSucceeded(each.name, outcome.status)
    whole = sum(each.wall_ms for pair in pairs for each in pair if each)
    both = sum(each.wall_ms for pair in pairs if all(pair) for each in pair if each)
    if whole > 0 and both < SAME_JOB * whole and not cut:  # a log without an end lacks the stages after it
        yield DifferentJobs(both / whole)
