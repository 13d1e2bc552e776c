"""Predictions where nobody states the network: ``python -m lab.score.unstated --profiles FOLDER [--role odd]``.

Every kept base is asked for times of its network without being told how fast it was, by what recorded it.  The passes
before each query ran on a cable without a limit, so there another network changes nothing.  Markdown tables.
"""

from __future__ import annotations

from dataclasses import replace

import duckdb

from crystalperf.query.execution.load import load
from crystalperf.query.execution.scenario import Value, World
from crystalperf.query.predict.estimate import predict
from crystalperf.query.results.answers import Prediction
from lab.runs.suites import find_suite
from lab.score.alone import row
from lab.score.pairs import Measured, measured, suites_parser
from lab.score.predictors import Base, execution, world_of

Answered = list[tuple[float, Prediction]]

TIMES = (4.0, 0.25)
"""What an unlimited cable is multiplied by."""


def limited(known: Measured, base: Base, role: str) -> dict[str, Answered]:
    """What happened, ms, and what was predicted, by how the network changed, of each configuration of a role."""
    found: dict[str, Answered] = {}
    run = execution(base)
    for one in known.scored:
        if one.role == role and one.sweep == base.configuration.sweep and "network" in one.changed:
            world = world_of(base, one)
            ratio = world.ratio("network")
            answer = predict(run, replace(world, recorded=run.recorded))
            found.setdefault(f"{ratio:g} times", []).append((known.actual_ms[one.number], answer))
    return found


def unlimited(base: Base) -> dict[str, Answered]:
    """The same of the passes before the query, whose runtime no network would change."""
    found: dict[str, Answered] = {}
    with duckdb.connect(str(base.run), read_only=True) as connection:
        scopes = connection.execute("SELECT scope_id FROM scopes WHERE kind = 'sql' ORDER BY start_ms").fetchall()
        query = execution(base).scope.start_ms
        for (scope,) in scopes:
            run = load(connection, scope)
            # What reads no files on other machines and exchanges nothing has no network to ask about.
            if run.scope.end_ms > query or not (run.volumes.remote.any() or run.volumes.far.any()):
                continue
            for ratio in TIMES:
                world = World(
                    {"network": Value("network", f"{ratio:g}x", ratio=ratio)}, run.recorded, {"network": ratio}
                )
                answer = predict(run, world)
                found.setdefault(f"{ratio:g} times", []).append((run.runtime_ms, answer))
    return found


def main() -> None:
    """Print the tables of the suites in a folder."""
    parser = suites_parser(__doc__)
    parser.set_defaults(suites=["q9", "q6"])
    parser.add_argument("--role", choices=("even", "odd"), default="even", help="which configurations are scored")
    given = parser.parse_args()
    heads = ["cable", "base", "network", "mean % (worst)", "refused", "held", "half-width %"]
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    known = [measured(find_suite(name), given.out, given.profiles) for name in given.suites]
    whole: dict[tuple[str, str], Answered] = {}
    for each in known:
        for (_, recorder), bases in each.bases.items():
            for base in bases:
                for cable, answers in (("limited", limited(each, base, given.role)), ("no limit", unlimited(base))):
                    for times, found in sorted(answers.items()):
                        whole.setdefault((cable, times), []).extend(found)
                        print(f"| {' | '.join((cable, f'{each.suite.name}, {recorder}', times, *row(found)))} |")
    for (cable, times), found in sorted(whole.items()):
        print(f"| {' | '.join((cable, 'all', times, *row(found)))} |")


if __name__ == "__main__":
    main()
