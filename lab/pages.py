"""Tables in pages: a command puts its output between two marks, `<!-- NAME -->` and `<!-- end of NAME -->`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from lab.errors import LabError


def cell(text: str) -> str:
    """Text as a cell of a Markdown table: one line, no bar of its own."""
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


def head(titles: str) -> list[str]:
    """The first two lines of a Markdown table of "one | two | >three": a column with > is right-aligned."""
    columns = [each.strip() for each in titles.split("|")]
    rule = "".join("---:|" if each.startswith(">") else "---|" for each in columns)
    return [row(*(each.removeprefix(">") for each in columns)), f"|{rule}"]


def row(*cells: object) -> str:
    """A row of a Markdown table."""
    return f"| {' | '.join(map(str, cells))} |"


def put(page: Path, mark: str, lines: Sequence[str]) -> None:
    """Replace the text between a page's marks.  Raises LabError if they are missing."""
    text = page.read_text(encoding="utf-8")
    pattern = _between(mark)
    if not pattern.search(text):
        raise LabError(f"{page} has no <!-- {mark} --> … <!-- end of {mark} -->; add the two lines.")
    table = "\n".join(lines) + "\n"
    page.write_text(pattern.sub(lambda match: match[1] + table + match[2], text), encoding="utf-8")


def _between(mark: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- {re.escape(mark)} -->\n).*?(<!-- end of {re.escape(mark)} -->)", re.DOTALL)
