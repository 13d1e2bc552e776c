"""The questions of docs/sql.md, with the answers that are printed there.

python -m tests.test_cookbook      writes the answers anew, of the demo's run and the indexes that ship
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest

from crystalperf.cli.main import run
from crystalperf.query.run import Run

PAGE = Path(__file__).resolve().parent.parent / "docs" / "sql.md"
_BLOCK = re.compile(r"```\n\$ (crystalperf sql (?:[^\"]*\"){2}[^\n]*)\n(.*?)```\n", re.DOTALL)
"""A command, whose statement stands between quotes, and what it prints."""


def questions() -> list[tuple[str, str]]:
    """Each command of the page, and the answer that is printed there."""
    return [(match[1], match[2]) for match in _BLOCK.finditer(PAGE.read_text(encoding="utf-8"))]


def answer(command: str) -> str:
    """What a terminal would show."""
    _, *arguments = shlex.split(command.removesuffix(" || true"))
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(arguments)
    assert code == (1 if command.endswith("|| true") else 0), err.getvalue()
    return out.getvalue() + err.getvalue()


def test_there_are_questions_to_both_kinds_of_file() -> None:
    commands = [command for command, _ in questions()]
    assert len(commands) == PAGE.read_text(encoding="utf-8").count("```\n$ ")
    assert sum("--run" in each for each in commands) >= 10
    assert sum("--index" in each for each in commands) >= 8


@pytest.mark.parametrize("number", range(len(questions())))
def test_the_answer_is_what_the_page_says(demo_run: Run, number: int) -> None:
    command, printed = questions()[number]
    assert answer(command) == printed, "see the head of this file"


def main() -> None:
    """Write the answers."""
    run(["demo", "--json"])
    text = _BLOCK.sub(lambda match: f"```\n$ {match[1]}\n{answer(match[1])}```\n", PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
