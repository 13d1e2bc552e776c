"""Stages of two runs that do the same: by their plan, their place in the program, and their order; not by number.

First stages match whose operators are the same with their descriptions, then those whose operators have the same
names, then those with the same place in the program, and last those of the same query with similar operators.  Stages
that several have in common match in their order, those of queries with the same name first.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence

from crystalperf.query.compare.accounts import Account, StageAccount

SIMILAR = 0.5
"""Minimum share of operators that two stages have in common to match, of those that either has."""

Pair = tuple[StageAccount | None, StageAccount | None]


def matched(before: Account, after: Account) -> list[Pair]:
    """Every stage of either run, with its counterpart or None."""
    left, right = list(before.stages), list(after.stages)
    found: list[Pair] = []
    for key in _keys():
        for same_query in (True, False):
            pairs = list(_paired(left, right, key, (before, after) if same_query else None))
            found += pairs
            left, right = _without(left, [one for one, _ in pairs]), _without(right, [other for _, other in pairs])
    pairs = list(_similar(left, right, before, after))
    left, right = _without(left, [one for one, _ in pairs]), _without(right, [other for _, other in pairs])
    return [*found, *pairs, *((each, None) for each in left), *((None, each) for each in right)]


def _keys() -> Sequence[Callable[[StageAccount], Hashable]]:
    return (
        lambda each: (each.details, each.call_site, each.name) if each.details else None,
        lambda each: (each.operators, each.call_site, each.name) if each.operators else None,
        lambda each: (each.operators, each.call_site, each.name) if not each.operators else None,
        lambda each: each.operators or None,
    )


def _paired(
    left: Sequence[StageAccount],
    right: Sequence[StageAccount],
    key: Callable[[StageAccount], Hashable],
    runs: tuple[Account, Account] | None,
) -> Iterator[tuple[StageAccount, StageAccount]]:
    """Stages with the same key, in their order; with `runs` only those of queries of the same name."""
    waiting: dict[Hashable, list[StageAccount]] = {}
    for each in right:
        if (found := key(each)) is not None:
            waiting.setdefault((found, _query(each, runs and runs[1])), []).append(each)
    for each in left:
        if (found := key(each)) is not None and (others := waiting.get((found, _query(each, runs and runs[0])))):
            yield each, others.pop(0)


def _query(stage: StageAccount, run: Account | None) -> str:
    return "" if run is None else run.scopes.get(stage.scope or "", "")


def _similar(
    left: Sequence[StageAccount], right: Sequence[StageAccount], before: Account, after: Account
) -> Iterator[tuple[StageAccount, StageAccount]]:
    """Stages of queries of the same name with similar operators, the most similar first."""
    ranked = sorted(
        (
            (-_likeness(one, other), number, place)
            for number, one in enumerate(left)
            for place, other in enumerate(right)
            if _query(one, before) == _query(other, after) and _likeness(one, other) >= SIMILAR
        ),
    )
    used: set[tuple[str, int]] = set()
    for _, number, place in ranked:
        if not {("before", number), ("after", place)} & used:
            used |= {("before", number), ("after", place)}
            yield left[number], right[place]


def _likeness(one: StageAccount, other: StageAccount) -> float:
    """The share of operators that both stages have, of those that either has."""
    every = {*one.operators, *other.operators}
    return len({*one.operators} & {*other.operators}) / len(every) if every else 0.0


def _without(stages: Sequence[StageAccount], gone: Sequence[StageAccount]) -> list[StageAccount]:
    ids = {each.id for each in gone}
    return [each for each in stages if each.id not in ids]
