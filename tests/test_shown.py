"""Examples of the documentation show what commands print today.

python -m tests.test_shown      rewrites the screens in tests/data, the output in README.md, docs/sql.md and
                                examples/gzip-text; read what changed before you commit it
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from crystalperf.cli.main import run
from crystalperf.query.run import Run
from tests import test_screens, test_tutorials

ROOT = Path(__file__).resolve().parent.parent
README, SQL = ROOT / "README.md", ROOT / "docs" / "sql.md"
_QUESTION = re.compile(r"```\n\$ (crystalperf sql (?:[^\"]*\"){2}[^\n]*)\n(.*?)```\n", re.DOTALL)
"""A command, whose statement is between quotes, and what it prints."""


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


def test_readme_shows_what_its_commands_print(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = README.read_text(encoding="utf-8")
    assert text.count("$ crystalperf") == 2
    assert test_tutorials.rewritten(text) == text, "see the head of this file"


def test_readme_has_the_reruns_of_its_case() -> None:
    text = " ".join(README.read_text(encoding="utf-8").split())
    times = json.loads((test_tutorials.GZIP / "reruns.json").read_text(encoding="utf-8"))["1-core"]["2x"]
    assert len(times) == 5
    assert f"Five reruns of the counting job with two cores took {min(times):.1f} to {max(times):.1f} s." in text


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
def test_python_page_has_code_that_a_strict_type_checker_accepts(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="the dev extra is not installed")
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    shown = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)[:2])
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
    os.environ |= {"COLUMNS": "80", "NO_COLOR": "1"}
    README.write_text(test_tutorials.rewritten(README.read_text(encoding="utf-8")), encoding="utf-8")
    run(["demo", "--json"])
    text = _QUESTION.sub(lambda match: f"```\n$ {match[1]}\n{answer(match[1])}```\n", SQL.read_text(encoding="utf-8"))
    SQL.write_text(text, encoding="utf-8")
    subprocess.run([sys.executable, ROOT / "examples" / "gzip-text" / "readme.py"], check=True)
