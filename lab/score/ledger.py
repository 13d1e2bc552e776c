"""A ledger of the lab's runs: ``python -m lab.score.ledger --profiles FOLDER``.

Of each pair in `lab/recordings/changed` that differs in slots, workers, memory or input alone, either run predicts the
query's time with the resources of the other.  The ledger matches them as it does for a user, by what the logs record.
The runs began before the predictions were made, so that it is a backtest; but no parameter was fitted to them.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from crystalperf import __version__
from crystalperf.query.ledger.entries import RunFacts
from crystalperf.query.ledger.facts import entry_of, facts_of
from crystalperf.query.ledger.matching import Held, KnownRun, held, predictions
from crystalperf.query.ledger.scoring import accuracy
from crystalperf.query.run import Run
from crystalperf.query.text.ledger import inside, ratio
from lab.score.compare import RECORDINGS, Recorded, given, made

RECORDED = ({"slots"}, {"memory"}, {"input"})
"""Causes of a pair's difference that logs record."""


@dataclass(frozen=True)
class Side:
    """A run of a pair: its folder's name, its facts, and the scope of the measured query."""

    name: str
    run: Run
    facts: RunFacts
    scope: str


def scored(recordings: Path, profiles: Path) -> Iterator[tuple[str, str, Held]]:
    """Each prediction with the run that it is held against, and the names of both runs."""
    for pair in made(recordings / "changed"):
        if set(pair.causes) not in RECORDED:
            continue
        sides = [_side(each, profiles) for each in (pair.before, pair.after)]
        for one, other in (sides, sides[::-1]):
            answer = one.run.predict(_settings(one.facts, other.facts), scope=one.scope, path=False)
            entry = entry_of(one.run, "predict", __version__, [answer])
            found = [] if entry is None else list(
                held(predictions([entry]), [KnownRun(other.facts, math.inf)], backtest=True)
            )  # fmt: skip
            if not found:
                print(f"{one.name} to {other.name}: not matched; {[each.kind for each in answer.refused]}")
            yield from ((one.name, other.name, each) for each in found)


def _side(recorded: Recorded, profiles: Path) -> Side:
    run = given(recorded, profiles).run
    assert isinstance(run, Run)
    facts = facts_of(run)
    assert facts is not None
    with run.reading() as connection:
        (scope,) = connection.execute(
            """
            SELECT scope_id FROM scopes, runs
            WHERE started_at_ms + start_ms >= ? - 1 AND started_at_ms + end_ms <= ? + 1
            ORDER BY end_ms - start_ms DESC, scope_id DESC LIMIT 1
            """,
            [recorded.start_ms, recorded.end_ms],
        ).fetchall()[0]
    return Side(recorded.folder.name, run, facts, scope)


def _settings(before: RunFacts, after: RunFacts) -> list[str]:
    """The differences of resources, as a user would ask for them."""
    found = []
    for key in ("workers", "cores", "memory"):
        if before.resources[key] != after.resources[key]:
            found.append(f"{key}={after.resources[key] / before.resources[key]:g}x")
    times = after.resources["input"] / before.resources["input"]
    if not 0.8 < times < 1.25:
        found.append(f"input={float(f'{times:.1g}'):g}x")
    return found


def main() -> None:
    """Print the table of predictions, and their accuracy."""
    parser = argparse.ArgumentParser(description="hold predictions of the lab's runs against each other")
    parser.add_argument("--profiles", type=Path, required=True, metavar="FOLDER", help="keep run files here")
    parser.add_argument("--recordings", type=Path, default=RECORDINGS)
    arguments = parser.parse_args()
    found = sorted(scored(arguments.recordings, arguments.profiles), key=lambda each: each[:2])
    print("| predicted from | setting | held against | predicted | 90 % range | actual | error | in range |")
    print("|---|---|---|---|---|---|---|---|")
    for one, other, each in found:
        made_of, ends = each.made.prediction, each.made.prediction.range_ms
        held_in = "-" if ends is None else "yes" if ends[0] <= each.actual_ms <= ends[1] else "no"
        between = "-" if ends is None else f"{ends[0] / 1e3:.1f} to {ends[1] / 1e3:.1f} s"
        print(
            f"| {one} | {made_of.setting} | {other} | {made_of.predicted_ms / 1e3:.1f} s | {between} |"
            f" {each.actual_ms / 1e3:.1f} s | {ratio(made_of.predicted_ms / each.actual_ms - 1)} | {held_in} |"
        )
    for name, chosen in (
        ("all", found),
        ("slots, workers, memory", [each for each in found if "input" not in each[2].made.prediction.setting]),
        ("input", [each for each in found if "input" in each[2].made.prediction.setting]),
    ):
        seen = accuracy([each for _, _, each in chosen])
        if seen is not None:
            print(
                f"| {name} | {seen.predictions} predictions | {seen.runs} runs | median error"
                f" {ratio(seen.median_error_ratio)} | absolute {100 * seen.median_absolute_error_ratio:.0f} % | | |"
                f" {inside(seen)} |"
            )


if __name__ == "__main__":
    main()
