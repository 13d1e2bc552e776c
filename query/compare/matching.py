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
    """Stages of queries of the same name with similar operators, the most similar first.

    Stages with the same operators are alike, so that only different sets of operators are compared with each other.
    """
    one, other = (_alike(*each) for each in ((left, before), (right, after)))
    ranked = sorted(
        (
            (-likeness, number, place)
            for number, (query, operators, _) in enumerate(one)
            for place, (its_query, its_operators, _) in enumerate(other)
            if query == its_query and (likeness := _likeness(operators, its_operators)) >= SIMILAR
        ),
    )
    for _, number, place in ranked:
        mine, others = one[number][2], other[place][2]
        yield from zip(mine, others, strict=False)
        count = min(len(mine), len(others))
        del mine[:count], others[:count]


def _alike(stages: Sequence[StageAccount], run: Account) -> list[tuple[str, frozenset[str], list[StageAccount]]]:
    """The stages with operators by the name of their query and their operators, in the order of the first of each."""
    found: dict[tuple[str, frozenset[str]], list[StageAccount]] = {}
    for each in stages:
        if each.operators:
            found.setdefault((_query(each, run), frozenset(each.operators)), []).append(each)
    return [(query, operators, alike) for (query, operators), alike in found.items()]


def _likeness(one: frozenset[str], other: frozenset[str]) -> float:
    """The share of operators that both stages have, of those that either has."""
    both = len(one & other)
    return both / (len(one) + len(other) - both)


def _without(stages: Sequence[StageAccount], gone: Sequence[StageAccount]) -> list[StageAccount]:
    ids = {each.id for each in gone}
    return [each for each in stages if each.id not in ids]
