"""`crystalperf tune`: a whole configuration, and its file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crystalperf.cli.output import print_message, progress, write, write_answer
from crystalperf.cli.page import Page
from crystalperf.cli.parts import listed
from crystalperf.cli.runs import find_run
from crystalperf.cli.text import change, printable, time_unit
from crystalperf.cli.writing import write_file
from crystalperf.indexes.errors import InputError, SettingError
from crystalperf.query.text.sentences import lines_of, texts_of
from crystalperf.query.text.tuning import (
    fragment,
    headline,
    limits_text,
    machine_sentence,
    next_sentence,
    not_tuned_sentences,
    robust_sentence,
    unverified_sentence,
    wider_sentence,
    without_sentence,
)

if TYPE_CHECKING:
    from crystalperf.query.results.tuning import Goal, Tuning

GOALS = ("time", "cost")


def tune(
    names: Sequence[str],
    goal: str,
    limits: Sequence[str],
    deadline: str,
    machines: str,
    ran_on: str,
    output: str,
    *,
    force: bool,
    as_json: bool,
) -> int:
    """Search for the best configuration of a job and print it, or write it to a file; returns the exit code."""
    from crystalperf.query.advise.machine_prices import duration_ms
    from crystalperf.query.run import Other
    from crystalperf.query.run import tune as answer_of

    if goal not in GOALS:
        raise SettingError(f"--goal {goal}: choose {' or '.join(GOALS)}")
    if bool(machines) != bool(ran_on):
        raise SettingError("prices need --prices FILE and --on NAME, the runs' own machine in that table; give both")
    if deadline and goal != "cost":
        raise SettingError("--deadline applies to --goal cost: the cheapest configuration that meets it")
    target = _target(output, [*names, machines], force=force) if output else None
    runs = [Other(each, find_run(each)) for each in names]
    wanted: Goal = "cost" if goal == "cost" else "time"
    with progress() as step:
        answer = answer_of(
            runs,
            goal=wanted,
            limits=limits,
            deadline_ms=duration_ms(deadline) if deadline else None,
            prices=Path(machines) if machines else None,
            ran_on=ran_on,
            progress=step,
        )
    if target is not None:
        write_file(target, fragment(answer))
    if as_json:
        write_answer(answer)
    else:
        write(tuning_text(answer))
    if target is not None:
        print_message(f"wrote {target}")
    return 0


def _target(output: str, inputs: Sequence[str], *, force: bool) -> Path:
    """The file to write.  Raises SettingError, InputError if it is an input, or exists already."""
    target = Path(output)
    if target.resolve() in {Path(each).resolve() for each in inputs if each}:
        raise SettingError(f"{output}: is an input of this command; write the configuration to another file")
    if not target.resolve().parent.is_dir():
        raise InputError(f"{output}: its folder does not exist; create it, or choose another file")
    if target.exists() and not (force and target.is_file()):
        raise InputError(f"{output}: exists already; choose another file, or replace it with --force")
    return target


def tuning_text(answer: Tuning) -> str:
    """The configuration for the terminal: its effect, its lines, what was left out, and the next run."""
    page = Page()
    names = printable(answer.runs[0].name) if len(answer.runs) == 1 else f"{len(answer.runs)} runs"
    page.line(f"{names}: best configuration for {answer.goal}, {limits_text(answer)}")
    page.line()
    page.strong(printable(headline(answer)))
    for each in (
        machine_sentence(answer) or wider_sentence(answer),
        robust_sentence(answer),
        unverified_sentence(answer),
    ):
        if each:
            page.paragraph(printable(each))
    if len(answer.runs) > 1:
        page.line()
        _runs(page, answer)
    if answer.settings:
        page.line()
        for setting in answer.settings:
            for line in lines_of(setting, answer.words):
                page.line(printable(line))
            before = ", ".join(f"{each.before}" for each in setting.settings)
            page.paragraph(printable(f"    was {before}; {without_sentence(setting)}"), hanging="    ")
    page.line()
    for sentence in not_tuned_sentences(answer):
        page.paragraph(printable(f"{sentence}."), hanging="  ")
    if sentence := next_sentence(answer):
        page.paragraph(printable(sentence))
    stopped = "" if answer.complete else "; the search stopped there to bound its time"
    page.paragraph(f"Predicted {answer.tried} of {answer.possible} configurations{stopped}.")
    listed(page, "Assumed", texts_of(answer.assumptions, answer.words))
    return page.text()


def _runs(page: Page, answer: Tuning) -> None:
    """Write a row for each run: recorded and tuned."""
    unit = time_unit(max(each.runtime_ms for each in answer.runs))
    rows = []
    for each in answer.runs:
        low, high = each.interval_ms or (None, None)
        rows.append(
            [
                each.name,
                unit.number(each.runtime_ms),
                unit.number(each.predicted_ms),
                "" if each.predicted_ms is None else change(each.predicted_ms, each.runtime_ms),
                "" if low is None else f"{unit.number(low)} to {unit.number(high)}",
            ]
        )
    page.table(["run", f"recorded [{unit.name}]", "tuned", "change", "90 % range"], rows, "<>>>>", cut=0)
