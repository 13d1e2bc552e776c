"""Inter-annotator agreement: confusion, Cohen's kappa, agreement by class."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from crystalperf.indexer.labels.tables import CLASSES, Reading

Pair = tuple[str, str]


def pairs(readings: Iterable[Reading]) -> dict[str, Pair]:
    """The labels of the two independent readings of every function with two readings, ordered by annotator."""
    by_id: dict[str, list[Reading]] = defaultdict(list)
    for each in readings:
        if each.kind == "independent":
            by_id[each.id].append(each)
    found: dict[str, Pair] = {}
    for identifier, both in by_id.items():
        if len(both) == 2:
            first, second = sorted(both, key=lambda each: each.annotator)
            found[identifier] = (first.label, second.label)
    return found


def cohen_kappa(both: Sequence[Pair]) -> float:
    """Agreement beyond chance (Cohen 1960): 1 is full, 0 is chance level; NaN if only one label occurs.

    >>> round(cohen_kappa([("a", "a")] * 20 + [("a", "b")] * 5 + [("b", "a")] * 10 + [("b", "b")] * 15), 2)
    0.4
    """
    total = len(both)
    if not total:
        return float("nan")
    first, second = Counter(pair[0] for pair in both), Counter(pair[1] for pair in both)
    observed = sum(one == other for one, other in both) / total
    expected = sum(first[label] * second[label] for label in first) / total**2
    return float("nan") if expected == 1 else (observed - expected) / (1 - expected)


def confusion(both: Sequence[Pair]) -> dict[Pair, int]:
    """The count of each unordered pair of labels; keys in the order of CLASSES."""
    counts = Counter(tuple(sorted(pair, key=CLASSES.index)) for pair in both)
    return {(one, other): counts[one, other] for place, one in enumerate(CLASSES) for other in CLASSES[place:]}


def class_agreement(both: Sequence[Pair], label: str) -> float:
    """The share of readings with a label whose other reading has it too; NaN if no reading has it."""
    given = sum((one == label) + (other == label) for one, other in both)
    return 2 * sum(one == other == label for one, other in both) / given if given else float("nan")
