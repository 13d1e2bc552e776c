"""Words and numbers as a terminal shows them: what all doors have (query.text.figures), and what only it needs."""

from __future__ import annotations

import shlex
from pathlib import Path

from crystalperf.query.text.figures import (
    NOTHING,
    TimeUnit,
    change,
    counted,
    cut_right,
    grouped,
    percent,
    printable,
    time_unit,
    volume,
)

__all__ = [
    "NOTHING",
    "TimeUnit",
    "change",
    "counted",
    "cut_left",
    "cut_right",
    "grouped",
    "percent",
    "printable",
    "shell_word",
    "time_unit",
    "volume",
]


def cut_left(text: str, width: int) -> str:
    """The end of a long name, which tells more than its beginning: `…util.HashMap.putVal`."""
    return text if len(text) <= width else "…" + text[len(text) - width + 1 :]


def shell_word(text: str | Path) -> str:
    """A word of a command that is there to be pasted."""
    return shlex.quote(str(text))
