"""Rows of a SQL answer as a table.

This module does not use rich, because importing that takes longer than most statements.
"""

from __future__ import annotations

import os
import shutil
import sys
import unicodedata
from collections.abc import Sequence

from crystalperf.cli.text import cut_right, grouped, printable

WIDTH = 80
WIDEST = 250
"""Width without a terminal, and the maximum width of a terminal, in columns."""

NARROWEST = 12
"""Minimum width of a column that is cut."""

WHOLE = frozenset(("run", "qualified_name", "function", "callee", "caller", "symbol"))
"""Columns whose cells are never cut: only a complete name identifies a function or a run."""

_GAP = "  "


def rows_text(columns: Sequence[str], rows: Sequence[Sequence[object]], *, more: bool) -> str:
    """The rows of a SQL answer as a table: numbers right-aligned, long cells cut except for function names."""
    width = _page_width()
    names = [printable(each) for each in columns]
    texts = [["" if each is None else printable(_cell(each)) for each in row] for row in rows]
    widths = [max([_cells(name), *(_cells(row[number]) for row in texts)]) for number, name in enumerate(names)]
    gives_way = [number for number, name in enumerate(columns) if name not in WHOLE]
    while _total(widths) > width and max((widths[each] for each in gives_way), default=0) > NARROWEST:
        widest = max(gives_way, key=lambda each: widths[each])
        widths[widest] -= 1
    lines: list[str] = []
    if _total(widths) <= width:
        left = [_is_text(rows, number) for number in range(len(columns))]
        lines = [_line(cells, widths, left) for cells in (names, *texts)]
        lines[0] = _dim(lines[0])
    else:  # too many columns for the width: one line a value, a blank line between rows
        longest = max(map(_cells, names))
        for number, row in enumerate(texts):
            if number:
                lines.append("")
            for column, name, cell in zip(columns, names, row, strict=True):
                space = max(width - longest - len(_GAP), NARROWEST)
                cut = cell if column in WHOLE else _fitting(cell, space)
                lines.append(f"{_padded(name, longest, left=True)}{_GAP}{cut}".rstrip())
    if not rows:
        lines.append("no rows")
    if more:
        lines.append(f"{grouped(len(rows))} rows shown of more; --limit 0, --csv or --json print all")
    return "\n".join(lines) + "\n"


def _is_text(rows: Sequence[Sequence[object]], column: int) -> bool:
    values = [row[column] for row in rows if row[column] is not None]
    return not values or not all(isinstance(each, int | float) and not isinstance(each, bool) for each in values)


def _cell(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _line(cells: Sequence[str], widths: Sequence[int], left: Sequence[bool]) -> str:
    fitting = [_fitting(*each) for each in zip(cells, widths, strict=True)]
    return _GAP.join(_padded(*each) for each in zip(fitting, widths, left, strict=True)).rstrip()


def _padded(text: str, width: int, left: bool) -> str:
    space = " " * (width - _cells(text))
    return text + space if left else space + text


def _fitting(text: str, width: int) -> str:
    """The start of a text, at most `width` terminal columns wide."""
    cut = cut_right(text, width)
    while _cells(cut) > width:
        cut = cut_right(cut, len(cut) - 1)
    return cut


def _cells(text: str) -> int:
    """The width of a text in terminal columns: two for a Chinese character, none for a combining accent."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(each) else 1 + (unicodedata.east_asian_width(each) in "WF") for each in text)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _page_width() -> int:
    if not sys.stdout.isatty() and "COLUMNS" not in os.environ:
        return WIDTH
    return min(max(shutil.get_terminal_size((WIDTH, 24)).columns, 60), WIDEST)


def _dim(line: str) -> str:
    plain = not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") in (None, "dumb", "unknown")
    return line if plain else f"\x1b[2m{line}\x1b[0m"
