"""Predictions from logs alone: ``python -m lab.score.alone --profiles FOLDER [--role odd]``, a Markdown table.

Every kept base is taken without its samples.  It is asked as somebody asks who knows the run's bandwidth, and as
somebody who does not and asks for a ratio; each with what a log leaves open shared out by priors, and without.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from crystalperf import query
from crystalperf.query.predict.estimate import predict
from crystalperf.query.results.answers import Prediction
from crystalperf.query.simulate.transfers import MODEL
from lab.runs.suites import configurations, find_suite
from lab.runs.sweep import read_rows
from lab.score.pairs import Measured, measured, recorder, suites_parser
from lab.score.predictors import Base, execution, world_of


def without_samples(known: Measured, out: Path, kept: Path) -> Iterator[tuple[str, Base]]:
    """Every base of a suite that was kept, read from its log alone, by its recorder's name."""
    every = {one.number: one for one in configurations(known.suite)}
    for row in read_rows(out, known.suite):
        if row["role"] == "base" and (out / row["event_log"]).exists():
            name = row["run"].replace("/", "-")
            run = query.profile([out / row["event_log"]], output=kept / f"{name}-log.duckdb").path
            (base,) = (
                each
                for each in known.bases[row["sweep"], recorder(row)]
                if each.run == kept / f"{name}.duckdb" and each.configuration == every[row["number"]]
            )
            yield recorder(row), replace(base, run=run)


def answers(known: Measured, base: Base, role: str, *, stated: bool, borrowed: bool) -> list[tuple[float, Prediction]]:
    """What happened, ms, and what was predicted, of each configuration of a role."""
    found, run = [], execution(base)
    for one in known.scored:
        if one.role == role and one.sweep == base.configuration.sweep:
            world = world_of(base, one)
            world = world if stated else replace(world, recorded=run.recorded)
            found.append((known.actual_ms[one.number], predict(run, world, physics=replace(MODEL, borrowed=borrowed))))
    return found


def row(found: Sequence[tuple[float, Prediction]]) -> list[str]:
    """Mean deviation and the worst, %, refusals, how many intervals held, and their median half-width, %."""
    off = [abs(each.predicted_ms / actual - 1) for actual, each in found if each.predicted_ms is not None]
    ranges = [(actual, each.interval_ms) for actual, each in found if each.interval_ms is not None]
    held = sum(low <= actual <= high for actual, (low, high) in ranges)
    widths = [(high / low) ** 0.5 - 1 for _, (low, high) in ranges]
    mean = f"{100 * statistics.mean(off):.1f} ({100 * max(off):.0f})" if off else ""
    width = f"± {100 * statistics.median(widths):.0f}" if widths else ""
    return [mean, f"{len(found) - len(off)} of {len(found)}", f"{held} of {len(ranges)}", width]


def main() -> None:
    """Print the table of the suites in a folder."""
    parser = suites_parser(__doc__)
    parser.add_argument("--role", choices=("even", "odd"), default="even", help="which configurations are scored")
    given = parser.parse_args()
    heads = ["bandwidth", "base", "shared out", "mean % (worst)", "refused", "held", "half-width %"]
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    known = [measured(find_suite(name), given.out, given.profiles) for name in given.suites]
    bases = [(each, name, base) for each in known for name, base in without_samples(each, given.out, given.profiles)]
    for stated in (True, False):
        whole: dict[bool, list[tuple[float, Prediction]]] = {False: [], True: []}
        word = "stated" if stated else "not stated"
        for each, name, base in bases:
            for borrowed in (False, True):
                found = answers(each, base, given.role, stated=stated, borrowed=borrowed)
                whole[borrowed] += found
                if found:
                    cells = [word, f"{each.suite.name}, {name}", "yes" if borrowed else "no", *row(found)]
                    print(f"| {' | '.join(cells)} |", flush=True)
        for borrowed in (False, True):
            cells = [word, "all", "yes" if borrowed else "no", *row(whole[borrowed])]
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
