"""Examples of the documentation show what commands print today.

python -m tests.test_shown      rewrites the screens in tests/data and the examples of README.md, docs/sql.md and
                                examples/gzip-text; read what changed before you commit it
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from crystalperf.cli.main import run
from crystalperf.query.run import Run
from tests import test_screens

ROOT = Path(__file__).resolve().parent.parent
README, SQL = ROOT / "README.md", ROOT / "docs" / "sql.md"
_QUESTION = re.compile(r"```\n\$ (crystalperf sql (?:[^\"]*\"){2}[^\n]*)\n(.*?)```\n", re.DOTALL)
"""A command, whose statement is between quotes, and what it prints."""

_REPORT = re.compile(r"(?<=```\n)(\$ crystalperf analyze [^\n]*\n).*?(?=```)", re.DOTALL)
_SHORTENED = (
    ("driver:0 ", "stage:7.0 ", "stage:10.0 ", "stage:14.0 ", "total "),
    ("cores=2x ", "executors=2x ", "=10x "),
)
"""Rows of the critical path by their beginning and of the what-ifs by their setting, which README.md shows."""


def shortened(screen: str) -> str:
    """The first screen of the demo as README.md shows it: the first thing to do, and some rows of the tables."""
    _, lead, to_do, path, what_if = (each.split("\n") for each in screen.split("\n\n")[:5])
    first = to_do[: next(number for number, each in enumerate(to_do) if each.startswith("  2"))]
    rows, settings = _SHORTENED
    stages = [each for each in path if each.startswith(rows)]
    changes = [each for each in what_if if any(setting in each for setting in settings)]
    assert (len(stages), len(changes)) == (len(rows), len(settings))
    shown = ["", *lead, "", *first, "...", path[0], *stages[:-1], "...", stages[-1], "...", what_if[0], *changes, "..."]
    return "\n".join(shown) + "\n"


def with_report(text: str) -> str:
    """README.md with the report of today."""
    screen = (test_screens.SCREENS / "spark.txt").read_text(encoding="utf-8")
    return _REPORT.sub(lambda match: match[1] + shortened(screen), text)


def questions() -> list[tuple[str, str]]:
    """Each command of docs/sql.md, and the answer that is printed there."""
    return [(match[1], match[2]) for match in _QUESTION.finditer(SQL.read_text(encoding="utf-8"))]


def answer(command: str) -> str:
    """The text that a terminal would show."""
    _, *arguments = shlex.split(command.removesuffix(" || true"))
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(arguments)
    assert code == (1 if command.endswith("|| true") else 0), err.getvalue()
    return out.getvalue() + err.getvalue()


def test_readme_shows_the_report_of_the_demo() -> None:
    text = README.read_text(encoding="utf-8")
    assert len(_REPORT.findall(text)) == 1
    assert with_report(text) == text, "see the head of this file"


def test_sql_page_asks_both_kinds_of_file() -> None:
    commands = [command for command, _ in questions()]
    assert len(commands) == SQL.read_text(encoding="utf-8").count("```\n$ ")
    assert sum("--run" in each for each in commands) >= 10
    assert sum("--index" in each for each in commands) >= 8


@pytest.mark.few(5)
@pytest.mark.parametrize("number", range(len(questions())))
def test_sql_page_shows_the_answer(demo_run: Run, number: int) -> None:
    command, printed = questions()[number]
    assert answer(command) == printed, "see the head of this file"


@pytest.mark.later
def test_readme_shows_python_that_a_strict_type_checker_accepts(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="the dev extra is not installed")
    text = README.read_text(encoding="utf-8")
    (shown,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    # The second is wrong on purpose: if it passed too, the package had no types that a checker finds.
    (tmp_path / "shown.py").write_text(shown, encoding="utf-8")
    (tmp_path / "wrong.py").write_text(f"{shown}print(run.debug().bottlenecks)\n", encoding="utf-8")
    # As in a user's project: without this repository's configuration, from which libraries are silent.
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", os.devnull, "--follow-imports", "silent"]
    done = subprocess.run(
        [*command, "--cache-dir", str(tmp_path / "cache"), "--no-error-summary", "shown.py", "wrong.py"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"MYPYPATH": str(ROOT)},
    )
    (error,) = done.stdout.rstrip("\n").split("\n")
    assert error.startswith("wrong.py:"), done.stdout + done.stderr
    assert 'has no attribute "bottlenecks"' in error


if __name__ == "__main__":
    test_screens.write()
    README.write_text(with_report(README.read_text(encoding="utf-8")), encoding="utf-8")
    run(["demo", "--json"])
    text = _QUESTION.sub(lambda match: f"```\n$ {match[1]}\n{answer(match[1])}```\n", SQL.read_text(encoding="utf-8"))
    SQL.write_text(text, encoding="utf-8")
    subprocess.run([sys.executable, ROOT / "examples" / "gzip-text" / "readme.py"], check=True)
