"""Text layout for the terminal: lines, wrapped paragraphs, tables.

A page is 80 columns wide unless the terminal has another width.  Only terminals that support colour get it.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from io import StringIO
from typing import Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from crystalperf.cli.text import cut_right, printable
from crystalperf.query.text.figures import tied

WIDTH = 80
WIDEST = 120
"""Maximum width: longer lines are hard to read."""

NARROWEST = 12
"""Minimum width of a column that is cut."""


class Page:
    """A page of text: lines, wrapped paragraphs, tables."""

    def __init__(self) -> None:
        terminal = sys.stdout.isatty()
        known = terminal or "COLUMNS" in os.environ
        self.width = min(max(shutil.get_terminal_size((WIDTH, 24)).columns, 60), WIDEST) if known else WIDTH
        self._text = StringIO()
        # rich reads NO_COLOR, FORCE_COLOR and TERM.
        self._console = Console(
            file=self._text,
            width=self.width,
            force_terminal=True if terminal else None,
            highlight=False,
            markup=False,
            emoji=False,
            soft_wrap=False,
        )

    def line(self, text: str = "") -> None:
        self._console.print(Text(text), soft_wrap=True)

    def strong(self, text: str) -> None:
        for each in wrapped(text, self.width):
            self._console.print(Text(each, style="bold"), soft_wrap=True)

    def paragraph(self, text: str, hanging: str = "") -> None:
        """Add wrapped text with a hanging indent; words longer than a line stay whole, so that they can be pasted."""
        for each in wrapped(text, self.width, hanging):
            self.line(each)

    def table(
        self,
        heads: Sequence[str],
        rows: Sequence[Sequence[str]],
        sides: str,
        *,
        cut: int | None = None,
        strong_last: bool = False,
    ) -> None:
        """Add a table without rules.  `sides` has < or > for each column; column `cut` is cut if a line is too long."""
        cells = [[printable(each) for each in row] for row in rows]
        if cut is not None:
            widths = [max(len(row[number]) for row in (heads, *cells)) for number in range(len(heads))]
            width = max(self.width - sum(widths) - 2 * (len(widths) - 1) + widths[cut], NARROWEST)
            for row in cells:
                row[cut] = cut_right(row[cut], width)
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        for number, (head, side) in enumerate(zip(heads, sides, strict=True)):
            widest = max((len(row[number]) for row in cells), default=0) if number == cut else None
            justify: Literal["left", "right"] = "left" if side == "<" else "right"
            table.add_column(Text(head), justify=justify, overflow="fold", min_width=widest)
        for number, row in enumerate(cells):
            strong = strong_last and number + 1 == len(cells)
            table.add_row(*map(Text, row), style="bold" if strong else None)
        self._console.print(table)

    def text(self) -> str:
        lines = [line.rstrip() for line in self._text.getvalue().split("\n")]
        return "\n".join(lines).rstrip("\n") + "\n"


def wrapped(text: str, width: int, hanging: str = "") -> list[str]:
    """The lines of a wrapped text; a number stays with its unit, and a word longer than a line stays whole."""
    lines = textwrap.wrap(tied(text), width, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False)
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]
