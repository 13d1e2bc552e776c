"""Ablation of the model's terms: ``python -m lab.score.terms --out DIR``, a Markdown table.

Each term is switched off alone, and the tuning set is predicted again from every recorded baseline run.  The test set
is not used, so it does not decide about a term.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

from crystalperf.query.predict.estimate import predict
from crystalperf.query.simulate.transfers import MODEL, PAPER, Physics
from lab.pages import head
from lab.runs.suites import find_suite
from lab.score.pairs import Measured, measured, suites_parser
from lab.score.predictors import execution, scenario_of

TERMS: tuple[tuple[str, Physics], ...] = (
    ("the model", MODEL),
    ("no time overlaps other time (α = 0)", replace(MODEL, overlap=0.0)),
    ("all time that can overlap does (α = 1)", replace(MODEL, overlap=1.0)),
    ("remote files cross the network once (ω = 1)", replace(MODEL, rereads=False)),
    ("remote files count as disk", replace(MODEL, far=False)),
    ("written bytes cross the disk", replace(MODEL, written=True)),
    ("no contention between transfers", replace(MODEL, transfer_contention=False)),
    ("bytes explain no unknown time", replace(MODEL, unknown_time=False)),
    ("no imputation from priors", replace(MODEL, imputed=False)),
    ("tasks short of CPU keep the recorded waits", replace(MODEL, equal_cpu_waits=False)),
    ("no JVM warm-up", replace(MODEL, warmup=False)),
    ("no bytes: all time on a device scales (Algorithm 2)", PAPER),
)

RECORDERS = ("jfr20", "async20", "none")


def off(known: Measured, recorder: str, physics: Physics) -> list[float]:
    """|predicted − actual| / actual of the tuning set from every baseline run of a recorder, without refusals."""
    found = []
    for one in known.scored:
        if one.role != "even":
            continue
        for base in known.bases.get((one.sweep, recorder), ()):
            answer = predict(execution(base), scenario_of(base, one), physics=physics)
            if answer.predicted_ms is not None:
                found.append(abs(answer.predicted_ms / known.actual_ms[one.number] - 1))
    return found


def table(known: Sequence[Measured]) -> list[str]:
    """Mean deviation, %, by term and by suite and recorder; the worst of all in the last column."""
    arms = [(each, who) for each in known for who in RECORDERS if off(each, who, MODEL)]
    lines = head(f"switched off | {' | '.join(f'>{each.suite.name} {who}' for each, who in arms)} | >worst")
    for title, physics in TERMS:
        found = [off(each, who, physics) for each, who in arms]
        means = [f"{100 * statistics.mean(each):.1f}" if each else "refused" for each in found]
        lines.append(f"| {title} | {' | '.join(means)} | {100 * max(max(each, default=0.0) for each in found):.0f} |")
    return lines


def main() -> None:
    """Print the table of the suites in a folder."""
    given = suites_parser(__doc__).parse_args()
    print("\n".join(table([measured(find_suite(name), given.out, given.profiles) for name in given.suites])))


if __name__ == "__main__":
    main()
