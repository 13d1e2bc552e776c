"""docs/reference/reading-the-output.md: its screen is the real one, and it has each kind, word, column and exit code.

python -m tests.test_output_page      writes the screen and the tables of findings again
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from crystalperf.query.frameworks.registry import get
from crystalperf.query.results.answers import Cause
from crystalperf.query.results.findings import IdleCause
from crystalperf.query.results.kinds import Basis
from crystalperf.query.text.answers import cause_words
from crystalperf.query.text.finding_kinds import tables, with_tables

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reference" / "reading-the-output.md"
SCREENS = ROOT / "tests" / "data" / "screens"
NOTES = {
    "A": "crystalperf-lab",
    "B": "Bottleneck:",
    "C": "What to do",
    "D": "Critical path",
    "E": "other:",
    "F": "What if",
    "G": "No effect",
    "H": "Check:",
    "I": "Saved as",
}
"""The letter of a note, and the start of the line that it is about."""


def screen() -> str:
    """The Spark screen as a block, with the letters of the notes."""
    lines = ["```"]
    for line in (SCREENS / "spark.txt").read_text(encoding="utf-8").splitlines():
        letter = next((letter for letter, start in NOTES.items() if line.startswith(start)), "")
        lines.append(f"{letter:3}{line}".rstrip())
    return "\n".join([*lines, "```"]) + "\n"


def written(page: str) -> str:
    """A page with its screen and its tables written again."""
    between = re.compile(r"(?<=<!-- screen -->\n).*?(?=<!-- end of screen -->)", re.DOTALL)
    return with_tables(between.sub(lambda _match: screen(), page))


@pytest.fixture(scope="module")
def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def test_screen_and_tables_are_current(page: str) -> None:
    assert page == written(page), "write them again with `python -m tests.test_output_page`"
    assert all(f"| {letter} | " in page for letter in NOTES)


def test_tables_have_findings_of_every_framework() -> None:
    found = tables()
    assert {"| all | `spilling`", "| Spark | `compiling`", "| PyTorch | `first-use`", "| training | `input`"} <= {
        " |".join(row.split(" |")[:2]) for row in found["finding kinds"].splitlines()
    }
    assert "`more-data`" in found["straggler causes"]


@pytest.mark.parametrize("word", get_args(Basis))
def test_page_explains_each_basis(page: str, word: str) -> None:
    assert f"| {word} | " in page


def test_page_explains_each_cause(page: str) -> None:
    assert all(f"| `{each}` | " in page for each in get_args(IdleCause))
    vocabulary = get("spark").vocabulary
    for each in get_args(Cause):
        words = cause_words(each, vocabulary)
        assert f"| {words if each == 'no scope' else words.partition(' (')[0]} | " in page


@pytest.mark.parametrize("name", ["spark.txt", "stream.txt", "training.txt", "failed.txt"])
def test_page_explains_each_column_of_the_screens(page: str, name: str) -> None:
    text = (SCREENS / name).read_text(encoding="utf-8")
    heads = [line for line in text.splitlines() if line.startswith(("Critical path", "What if", "Vertex"))]
    assert len(heads) >= 2
    for head in re.split(r"  +", "  ".join(heads)):
        assert head.partition(" [")[0] in page
    for start in re.findall(
        r"^(No effect|No prediction|Only bounds|Highest rate|Check|What to do)\b", text, re.MULTILINE
    ):
        assert f"| {start}" in page


def test_exit_codes_are_those_of_the_command_line(page: str) -> None:
    table = page[page.index("| exit code |") :]
    rows = re.findall(r"^\| \d+ \|.*$", table, re.MULTILINE)
    assert len(rows) == 6
    assert set(rows) <= set((ROOT / "docs" / "cli.md").read_text(encoding="utf-8").splitlines())


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
