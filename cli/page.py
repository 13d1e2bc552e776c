"""Text layout for the terminal: lines, wrapped paragraphs, tables.

A page is 80 columns wide unless the terminal has another width.  Only terminals that support colour get it.  For the
rest, and where no table has to be squeezed, this module does without rich, whose import takes 25 ms of CPU time.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from functools import cached_property
from io import StringIO
from typing import TYPE_CHECKING, Literal

from crystalperf.cli.text import cut_right, printable
from crystalperf.indexes.regex import regex
from crystalperf.query.text.figures import tied

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 80
WIDEST = 120
"""Maximum width: longer lines are hard to read."""

NARROWEST = 12
"""Minimum width of a column that is cut."""


_ONE_COLUMN = regex("[ -~¡-ɏ‐-‧←-⋿]*")
"""A text whose characters are all one column wide: Latin letters, punctuation, arrows and operators."""


class Page:
    """A page of text: lines, wrapped paragraphs, tables."""

    def __init__(self) -> None:
        self._terminal = sys.stdout.isatty()
        known = self._terminal or "COLUMNS" in os.environ
        self.width = min(max(shutil.get_terminal_size((WIDTH, 24)).columns, 60), WIDEST) if known else WIDTH
        self._plain = not self._terminal and not os.environ.keys() & {"FORCE_COLOR", "TTY_COMPATIBLE"}
        self._text = StringIO()

    @cached_property
    def _console(self) -> Console:
        from rich.console import Console

        # rich reads NO_COLOR, FORCE_COLOR and TERM.
        return Console(
            file=self._text,
            width=self.width,
            force_terminal=True if self._terminal else None,
            highlight=False,
            markup=False,
            emoji=False,
            soft_wrap=False,
        )

    def line(self, text: str = "", style: Literal["", "bold"] = "") -> None:
        if self._plain and text.isprintable():
            self._text.write(text + "\n")
            return
        from rich.text import Text

        self._console.print(Text(text, style=style), soft_wrap=True)

    def strong(self, text: str) -> None:
        for each in wrapped(text, self.width):
            self.line(each, "bold")

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
        if self._plain and (lines := _columns([heads, *cells], sides, self.width)) is not None:
            self._text.writelines(lines)
            return
        from rich.table import Table
        from rich.text import Text

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


def _columns(rows: Sequence[Sequence[str]], sides: str, width: int) -> list[str] | None:
    """The lines of a table; None if they are too long, or if a character may have another width than one column."""
    if not all(len(row) == len(sides) and all(map(_ONE_COLUMN.fullmatch, row)) for row in rows):
        return None
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    if sum(widths) + 2 * (len(widths) - 1) > width:
        return None
    return [
        "  ".join(
            each.ljust(wide) if side == "<" else each.rstrip().rjust(wide)
            for each, side, wide in zip(row, sides, widths, strict=True)
        )
        + "\n"
        for row in rows
    ]


def wrapped(text: str, width: int, hanging: str = "") -> list[str]:
    """The lines of a wrapped text; a number stays with its unit, and a word longer than a line stays whole."""
    lines = textwrap.wrap(tied(text), width, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False)
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]
