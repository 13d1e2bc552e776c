"""What a job's own other runs bring: ``python -m lab.score.own --profiles FOLDER``, a Markdown table.

From every recorded base, a configuration is predicted in the light of the medians of a few others: those whose role is
`even`, drawn at random (always the same).  ℓ of query.predict.rerun_errors is chosen on even configurations, each
predicted from others of them; odd ones are only scored.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from crystalperf.query.predict.rerun_errors import ALIKE, Guess, Seen, half_width, learned
from lab.runs.suites import Configuration, find_suite
from lab.score.pairs import Measured, measured, suites_parser
from lab.score.predictors import Base, answer, world_of

DRAWS = 20
"""Random choices of the runs that are known, for each configuration."""

RECORDER = "jfr20"


@dataclass(frozen=True)
class Score:
    """Deviations and half-widths, shares, of predictions in the light of so many other runs; how many held.

    `points` are interval scores of log runtimes (Winkler 1972): the interval's width, and 20 times what it missed by.
    """

    off: tuple[float, ...]
    widths: tuple[float, ...]
    points: tuple[float, ...]
    held: int

    def row(self) -> list[str]:
        count = len(self.off)
        return [
            str(count),
            f"{100 * statistics.mean(self.off):.1f}",
            f"{100 * sorted(self.off)[math.ceil(0.95 * count) - 1]:.0f}",
            f"± {100 * statistics.median(self.widths):.0f}",
            f"{100 * self.held / count:.0f}",
            f"{statistics.mean(self.points):.3f}",
        ]


def guesses(known: Measured, base: Base) -> dict[int, Guess]:
    """What is predicted of each configuration of the base's sweep, by its number; refusals are left out."""
    found = {}
    for one in known.scored:
        if one.sweep == base.configuration.sweep:
            given = answer(base, one)
            if given.predicted_ms is not None and given.interval_ms is not None:
                ratios = {key: math.log(ratio) for key, ratio in world_of(base, one).ratios.items()}
                found[one.number] = Guess(ratios, given.predicted_ms, given.interval_ms)
    return found


def score(known: Sequence[Measured], role: str, count: int, alike: float = ALIKE) -> Score:
    """Every configuration of a role in the light of `count` even ones, itself left out."""
    off, widths, points, held = [], [], [], 0
    for each in known:
        for (_, recorder), bases in sorted(each.bases.items()):
            for position, base in enumerate(bases if recorder == RECORDER else ()):
                made = _guessed(each, base)
                for one in (one for one in each.scored if one.role == role and one.number in made):
                    others = [two for two in each.scored if two.role == "even" and two.number in made and two != one]
                    for chosen in _draws(others, count, f"{each.suite.name} {position} {one.number}"):
                        seen = [Seen(made[two.number], each.actual_ms[two.number]) for two in chosen]
                        guess, actual = learned(made[one.number], seen, alike=alike), each.actual_ms[one.number]
                        off.append(abs(guess.predicted_ms / actual - 1))
                        widths.append(half_width(guess))
                        low, high = (math.log(actual / end) for end in guess.interval_ms)
                        points.append(low - high + 20 * max(-low, high, 0.0))
                        held += guess.interval_ms[0] <= actual <= guess.interval_ms[1]
    return Score(tuple(off), tuple(widths), tuple(points), held)


_MADE: dict[tuple[str, str], dict[int, Guess]] = {}


def _guessed(known: Measured, base: Base) -> dict[int, Guess]:
    key = (known.suite.name, str(base.run))
    if key not in _MADE:
        _MADE[key] = guesses(known, base)
    return _MADE[key]


def _draws(others: Sequence[Configuration], count: int, seed: str) -> list[list[Configuration]]:
    chance = random.Random(seed)
    if not count:
        return [[]]
    return [chance.sample(list(others), count) for _ in range(DRAWS)] if len(others) >= count else []


def main() -> None:
    """Print how far off predictions are with 0 to 4 other runs, and what ℓ does to even ones."""
    given = suites_parser(__doc__).parse_args()
    known = [measured(find_suite(name), given.out, given.profiles) for name in given.suites]
    for alike in (0.35, 0.7, 1.4, 2.8, 5.6, 11.2):
        found = score(known, "even", 2, alike)
        print(f"ℓ = {alike}, even, 2 other runs: {' | '.join(found.row())}")
    heads = ["other runs", "scored", "predictions", "mean %", "95 % below", "half-width %", "held %", "interval score"]
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for role in ("even", "odd"):
        for count in (0, 1, 2, 4):
            print(f"| {count} | {role} | {' | '.join(score(known, role, count).row())} |")


if __name__ == "__main__":
    main()
