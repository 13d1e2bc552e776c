"""Read public files one by one: `python -m lab.checks.inputs FOLDER… [--write PAGE --mark NAME]`.

Every file below the folders becomes a profile, or one sentence that says what it is; the table has the results.  A page
gets the summary, and the rows of files that were read if it has the marks `NAME, read`.
The command exits with 1 if a file crashed CrystalPerf, or if a refusal does not say what the file is.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import crystalperf as cp
from crystalperf.indexes.errors import CrystalPerfError
from crystalperf.query.run import Run
from crystalperf.query.trace.vocabulary import plural
from lab.checks.verdicts import first_sentence
from lab.pages import cell, head, put

UNNAMED = re.compile(r": is (?:(?:JSON|text|a binary file) of unknown kind|blank|empty)")
"""Sentences that do not say what a file is."""


@dataclass(frozen=True)
class Row:
    """A file and its result.

    `framework` is the framework it was read as, `sentence` its bottleneck; if it was refused, `framework` is empty and
    `sentence` is the reason.  `tasks` is a count with its noun, `step_ms` the mean step, or the whole run if it has no
    steps.  If `broke`, `sentence` is an exception that no reader may raise.  `cpu_s` is the CPU time of reading.
    """

    name: str
    sentence: str
    framework: str = ""
    tasks: str = ""
    step_ms: float = 0.0
    steps: int = 0
    broke: bool = False
    cpu_s: float = 0.0

    @property
    def is_unnamed(self) -> bool:
        """Whether the refusal does not say what the file is."""
        return not self.framework and not self.broke and UNNAMED.search(self.sentence) is not None


def checked(path: Path, name: str, scratch: Path) -> Row:
    """The result of one file."""
    begin = time.process_time()
    kept = scratch / "run.duckdb"
    kept.unlink(missing_ok=True)
    try:
        run = cp.profile([path], output=kept)
        row = _read(run, name)
    except CrystalPerfError as error:
        row = Row(name, str(error).replace(str(path), path.name))
    except Exception as error:
        row = Row(name, f"{type(error).__name__}: {error}", broke=True)
    return replace(row, cpu_s=time.process_time() - begin)


def _read(run: Run, name: str) -> Row:
    verdict = run.verdict()
    header, words = verdict.header, verdict.header.vocabulary
    ((count,),) = run.sql("SELECT count(*) FROM tasks").rows
    ((step_ms, steps),) = run.sql("SELECT properties['step_ms'], properties['steps'] FROM runs").rows
    return Row(
        name,
        first_sentence(verdict),
        header.framework,
        f"{count} {words.task if count == 1 else plural(words.task)}",
        float(step_ms) if step_ms else verdict.debug.runtime_ms,
        int(steps or 0),
    )


def rows(folders: Sequence[Path], reported: Callable[[Row], None] = lambda _: None) -> list[Row]:
    """A row for every file below the folders; `reported` is called with each row."""
    found = []
    with tempfile.TemporaryDirectory() as scratch:
        for folder in folders:
            files = sorted(each for each in folder.rglob("*") if each.is_file()) if folder.is_dir() else [folder]
            for path in files:
                name = str(path.relative_to(folder.parent)) if folder.is_dir() else path.name
                found.append(checked(path, name, Path(scratch)))
                reported(found[-1])
    return found


def summary(found: Sequence[Row]) -> list[str]:
    """For each folder: the number of files, the number of files read, and the kinds of the others."""
    lines = head("folder | files | read | refused: what they are")
    by_folder: dict[str, list[Row]] = {}
    for each in found:
        by_folder.setdefault(os.path.dirname(each.name) or ".", []).append(each)
    for folder, mine in by_folder.items():
        whats: dict[str, int] = {}
        for each in mine:
            if not each.framework:
                what = _what(each.sentence)
                whats[what] = whats.get(what, 0) + 1
        reported = "; ".join(f"{count} × {what}" if count > 1 else what for what, count in whats.items())
        read = sum(bool(each.framework) for each in mine)
        lines.append(f"| {cell(folder)} | {len(mine)} | {read} | {cell(reported)} |")
    read = sum(bool(each.framework) for each in found)
    broke, unnamed = sum(each.broke for each in found), sum(each.is_unnamed for each in found)
    refused = len(found) - read - broke
    whole = f"{len(found)} files: {read} read, {refused} refused in a sentence, {unnamed} of them unnamed"
    return [*lines, "", f"{whole}, {broke} crashed CrystalPerf." if broke else f"{whole}."]


def _what(sentence: str) -> str:
    """The kind of a file according to a refusal, without the file's name and the fix."""
    found = re.search(r"^[^:]+: (?:is )?(?P<what>.+?)(?:; |$)", sentence)
    return found["what"] if found else sentence


def table(found: Sequence[Row]) -> list[str]:
    """The rows as a table."""
    lines = head("file | read as | what is in it | step [ms] | first sentence, or why it is refused | CPU [s]")
    for each in found:
        step = f"{each.step_ms:.1f}" + ("" if each.steps else " (all)") if each.framework else ""
        cells = (each.name, each.framework or ("broke" if each.broke else "refused"), each.tasks, step, each.sentence)
        lines.append(f"| {' | '.join(cell(text) for text in cells)} | {each.cpu_s:.1f} |")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 1 if a file crashed CrystalPerf, or a refusal does not say what it is."""
    parser = argparse.ArgumentParser(prog="python -m lab.checks.inputs", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="folders of files, or files")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the summary into this page")
    parser.add_argument("--mark", default="public files", metavar="NAME", help="the name of the marks in the page")
    given = parser.parse_args(arguments)

    def report(row: Row) -> None:
        print(f"{row.name}: {row.framework or row.sentence} ({row.cpu_s:.1f} s of CPU)", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory() as home:
        os.environ.setdefault("CRYSTALPERF_HOME", home)
        found = rows(given.folders, report)
    if given.write is not None:
        put(given.write, given.mark, summary(found))
        if f"<!-- {given.mark}, read -->" in given.write.read_text(encoding="utf-8"):
            put(given.write, f"{given.mark}, read", table([each for each in found if each.framework]))
    print("\n".join([*table(found), "", *summary(found)]))
    return int(any(each.broke or each.is_unnamed for each in found))


if __name__ == "__main__":
    sys.exit(main())
