"""Search for the best point of a grid whose points are expensive to score.

The grid has a few dimensions, such as workers, memory and partitions, of up to some dozens of values each.  The search
is a coordinate search that keeps several points:

    1  from the recorded point, try all values of the first dimension, and go on with the best of them, then those of
       the second dimension, and so on (a round)
    2  in further rounds, do the same from the `width` best known points, because dimensions depend on each other:
       the best number of partitions is another one with other slots
    3  after a round that found no better point, try all points of a plane of two dimensions through the best one, if
       the rest of `most` scores is enough for it; go on with rounds if one is better
    4  end if none is, or after `most` scores

It is deterministic: the order of dimensions and values decides between equal scores.  A point is scored once.
tests/test_tuning.py compares it with exhaustive search.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any

from crystalperf.indexes.frozen import frozen

Point = tuple[int, ...]
"""The number of a value for each dimension."""

Score = Any
"""Anything that compares; less is better.  None: the point is impossible."""

WIDTH = 3


@frozen
class Found:
    """The best point with its score, the number of scored points, and whether the search ended by itself."""

    point: Point
    score: Score
    tried: int
    complete: bool


@dataclass
class _Scores:
    """Scores of points, each computed once, up to `most` of them."""

    score: Callable[[Point], Score | None]
    most: int
    known: dict[Point, Score | None] = field(default_factory=dict)
    tried: int = 0
    skipped: bool = False

    def add(self, point: Point) -> None:
        """Score a point, unless it is known or there are enough scores; impossible points do not count."""
        if point in self.known:
            return
        if self.tried >= self.most:
            self.skipped = True
            return
        self.known[point] = self.score(point)
        self.tried += self.known[point] is not None

    def best(self, count: int) -> list[Point]:
        """The best points, best first; of equal scores the one that was tried first."""
        scored = [(score, each) for each, score in self.known.items() if score is not None]
        return [each for _, each in sorted(scored, key=lambda pair: pair[0])[:count]]


def search(
    sizes: Sequence[int], start: Point, score: Callable[[Point], Score | None], *, most: int, width: int = WIDTH
) -> Found:
    """The best point of a grid with `sizes` values per dimension; `start` must be possible."""
    scores = _Scores(score, most)
    scores.add(start)
    best, keeps = start, 1
    while True:
        for dimension, size in enumerate(sizes):
            for point in scores.best(keeps):
                for value in range(size):
                    scores.add(_moved(point, {dimension: value}))
        before, best = best, scores.best(1)[0]
        if best == before and keeps == width and not scores.skipped:
            best = _best_of_planes(scores, sizes, best)
        if scores.skipped or (best == before and keeps == width):
            return Found(best, scores.known[best], scores.tried, not scores.skipped)
        keeps = width


def _best_of_planes(scores: _Scores, sizes: Sequence[int], best: Point) -> Point:
    """The best point of the planes through a point for which there are enough scores left."""
    for one, other in combinations(range(len(sizes)), 2):
        if sizes[one] * sizes[other] <= scores.most - scores.tried:
            for values in product(range(sizes[one]), range(sizes[other])):
                scores.add(_moved(best, dict(zip((one, other), values, strict=True))))
    return scores.best(1)[0]


def _moved(point: Point, values: Mapping[int, int]) -> Point:
    return tuple(values.get(dimension, value) for dimension, value in enumerate(point))
