"""`crystalperf gate`: check budgets, and exit with 0 within, 3 over, 4 undecided."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crystalperf.cli.gate_formats import FORMATS, sentence
from crystalperf.cli.output import progress, write, write_answer
from crystalperf.cli.page import Page
from crystalperf.cli.runs import find_run
from crystalperf.cli.text import printable
from crystalperf.cli.writing import write_file
from crystalperf.indexes.errors import SettingError
from crystalperf.query.compare import budgets as parsing
from crystalperf.query.compare.gate import gate as check
from crystalperf.query.frameworks.registry import get
from crystalperf.query.results.gate import Budget, Gate
from crystalperf.query.text.gate import HEADS, cells, headline, notes

if TYPE_CHECKING:
    from crystalperf.query.run import Run

CODES = {"within": 0, "over": 3, "undecided": 4}
"""Exit codes by outcome; 1 is an error, and 2 a command line that cannot be parsed."""

USUAL_SLOWDOWN = "10%"
"""The limit of a slowdown if a baseline is given without one."""


def gate(
    names: Sequence[str],
    baseline: Sequence[str],
    limits: Sequence[str],
    slowdown: str,
    config: str,
    formats: Sequence[str],
    *,
    as_json: bool,
) -> int:
    """Check the budgets of runs and write the outcome; returns the exit code."""
    wanted = [_format(each) for each in formats]
    _check_targets([target for _, target in wanted if target is not None], [*names, *baseline, config])
    if sum(target is None for _, target in wanted) + as_json > 1:
        raise SettingError(
            "several formats for standard output; write all but one to a file, as in --format junit=FILE"
        )
    runs, before = ({name: find_run(name) for name in _distinct(each)} for each in (names, baseline))
    if both := runs.keys() & before.keys():
        raise SettingError(f"{min(both)}: is on both sides; a baseline needs other runs")
    words = get(next(iter(runs.values())).header().framework).advisor.metrics
    file = _config(config)
    stated = [parsing.budget(each, words) for each in limits] + ([parsing.slowdown(slowdown)] if slowdown else [])
    every = parsing.together(stated, parsing.of_file(file, words) if file is not None else [])
    answer = _checked(runs, before, every, file)
    for form, target in wanted:
        text = FORMATS[form](answer, file)
        if target is None:
            write(text)
        else:
            write_file(target, text)
    if as_json:
        write_answer(answer)
    elif all(target is not None for _, target in wanted):
        write(gate_text(answer))
    return CODES[answer.outcome]


def _checked(runs: dict[str, Run], before: dict[str, Run], every: list[Budget], file: Path | None) -> Gate:
    compares = any(each.metric == parsing.SLOWDOWN for each in every)
    if before and not compares:
        every = [*every, parsing.slowdown(USUAL_SLOWDOWN)]
    if not before and compares:
        raise SettingError("a slowdown needs runs to compare with; name them with --baseline")
    if not every:
        where = f"{file} has no table [gate]" if file is not None else f"there is no {parsing.FILE} in this folder"
        raise SettingError(f"no budget: {where}; give one, for example --max runtime=10m, or --baseline RUN")
    with progress() as step:
        step("checking budgets")
        return check(runs, before, every)


def _distinct(names: Sequence[str]) -> Sequence[str]:
    if twice := [each for each in names if names.count(each) > 1]:
        raise SettingError(f"{twice[0]}: is given twice; name each run once")
    return names


def _config(config: str) -> Path | None:
    """The file with budgets: the given one, or that in this folder if there is one."""
    if config:
        return Path(config)
    usual = Path(parsing.FILE)
    return usual if usual.is_file() else None


def _format(text: str) -> tuple[str, Path | None]:
    """FORMAT or FORMAT=FILE.  Raises SettingError."""
    form, _, target = text.partition("=")
    if form not in FORMATS:
        raise SettingError(f"--format {text}: not a format; choose {', '.join(FORMATS)}, and FORMAT=FILE for a file")
    return form, Path(target) if target else None


def _check_targets(targets: Sequence[Path], read: Sequence[str]) -> None:
    """Raise SettingError if the outcome would be written over a file that the command reads, or over itself."""
    inputs = {Path(each).resolve() for each in (*read, parsing.FILE) if each}
    seen = set[Path]()
    for target in targets:
        if target.resolve() in inputs:
            raise SettingError(f"{target}: is an input of this command; write the outcome to another file")
        if target.resolve() in seen:
            raise SettingError(f"{target}: is named for two formats; give each format its own file")
        seen.add(target.resolve())


def gate_text(answer: Gate) -> str:
    """The outcome for the terminal."""
    page = Page()
    page.strong(printable(headline(answer)))
    page.line()
    page.table(HEADS, [cells(each) for each in answer.checks], "<>>><")
    more = [f"{sentence(each, answer)}." for each in answer.checks if each.undecided is not None]
    for number, each in enumerate([*notes(answer), *more]):
        if number == 0:
            page.line()
        page.paragraph(printable(each))
    return page.text()
