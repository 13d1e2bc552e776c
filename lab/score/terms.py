"""What each term of the model is worth: ``python -m lab.score.terms --out DIR``, a Markdown table.

Each term is switched off alone and the even configurations are predicted again from every recorded base.  Odd ones are
left for scoring, so a term is never kept or dropped by them.
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
from lab.score.predictors import execution, world_of

TERMS: tuple[tuple[str, Physics], ...] = (
    ("the model", MODEL),
    ("nothing is hidden behind other time (α = 0)", replace(MODEL, overlap=0.0)),
    ("all that can is hidden (α = 1)", replace(MODEL, overlap=1.0)),
    ("files on other machines cross once (ω = 1)", replace(MODEL, rereads=False)),
    ("files on other machines are a disk's", replace(MODEL, far=False)),
    ("what is written crosses the disk", replace(MODEL, written=True)),
    ("units do not slow each other's transfers", replace(MODEL, company=False)),
    ("bytes explain no unknown time", replace(MODEL, unseen=False)),
    ("what a log leaves open is not shared out", replace(MODEL, borrowed=False)),
    ("units short of CPU keep the waits of the recorded run", replace(MODEL, turns=False)),
    ("being first on a worker costs nothing", replace(MODEL, cold=False)),
    ("no bytes: all time on a device scales (Algorithm 2)", PAPER),
)

RECORDERS = ("jfr20", "async20", "none")


def off(known: Measured, recorder: str, physics: Physics) -> list[float]:
    """|predicted − actual| / actual of every even configuration from every base of a recorder; refusals left out."""
    found = []
    for one in known.scored:
        if one.role != "even":
            continue
        for base in known.bases.get((one.sweep, recorder), ()):
            answer = predict(execution(base), world_of(base, one), physics=physics)
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
