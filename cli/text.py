"""Words and numbers for the terminal: those of all interfaces (query.text.figures), and those only it needs."""

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
    """A long name cut at its less specific start: `…util.HashMap.putVal`."""
    return text if len(text) <= width else "…" + text[len(text) - width + 1 :]


def shell_word(text: str | Path) -> str:
    """An argument of a command that users can paste, quoted for the shell."""
    return shlex.quote(str(text))
