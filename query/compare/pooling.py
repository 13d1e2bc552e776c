"""The account of several runs of a side: the one with the median runtime, with the mean quantities of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from statistics import fmean, median
from typing import Any, TypeVar

from crystalperf.query.compare.accounts import Account, StageAccount
from crystalperf.query.compare.matching import matched

K = TypeVar("K", bound=str)


def typical(runtimes_ms: Sequence[float]) -> int:
    """The position of the run with the median runtime; of two in the middle, the shorter."""
    order = sorted(range(len(runtimes_ms)), key=lambda each: runtimes_ms[each])
    return order[(len(order) - 1) // 2]


def pooled(accounts: Sequence[Account]) -> Account:
    """One account of the runs of a side; its times sum to their median runtime."""
    first = accounts[typical([each.runtime_ms for each in accounts])]
    whole_ms = median(each.runtime_ms for each in accounts)
    if len(accounts) > 1:
        alike: dict[str, list[StageAccount]] = {each.id: [each] for each in first.stages}
        for other in accounts:
            if other is not first:
                for own, match in matched(first, other):
                    if own is not None and match is not None:
                        alike[own.id].append(match)
        causes = {cause for each in accounts for cause in each.wait_ms}
        first = replace(
            first,
            stages=tuple(_mean(alike[each.id]) for each in first.stages),
            wait_ms={cause: fmean(each.wait_ms.get(cause, 0.0) for each in accounts) for cause in sorted(causes)},
            lost_workers=fmean(each.lost_workers for each in accounts),
        )
    sum_ms = sum(each.wall_ms for each in first.stages) + sum(first.wait_ms.values())
    return scaled(first, whole_ms, whole_ms / sum_ms if sum_ms > 0 else 1.0)


def _mean(stages: Sequence[StageAccount]) -> StageAccount:
    """The first of several stages, with the means of their numbers."""
    first = stages[0]
    found: dict[str, Any] = {}
    for each in fields(StageAccount):
        values = [getattr(stage, each.name) for stage in stages]
        if isinstance(values[0], float):
            found[each.name] = fmean(values)
        elif isinstance(values[0], Mapping):
            found[each.name] = {key: fmean(value.get(key, 0.0) for value in values) for key in values[0]}
    return replace(first, **found)


def scaled(account: Account, runtime_ms: float, factor: float) -> Account:
    """An account with its wall-clock times multiplied by a factor."""

    def times(parts: Mapping[K, float]) -> dict[K, float]:
        return {key: ms * factor for key, ms in parts.items()}

    return replace(
        account,
        runtime_ms=runtime_ms,
        stages=tuple(
            replace(each, wall_ms=each.wall_ms * factor, resource_ms=times(each.resource_ms)) for each in account.stages
        ),
        wait_ms=times(account.wait_ms),
    )
