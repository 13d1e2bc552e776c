"""The help of the commands as cli/help.json keeps it: importing typer for it takes 45 ms of CPU time.

python -m crystalperf.cli.kept_help > cli/help.json

A test compares the file with typer's texts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

_COLUMNS = 80
"""Typer's texts for this many columns and for more are the same."""


def kept_help(arguments: Sequence[str]) -> str | None:
    """The help that arguments ask for; None if they ask for something else, or if the terminal is narrow."""
    if arguments[-1:] not in (["-h"], ["--help"]) or {"COLUMNS", "_CRYSTALPERF_COMPLETE"} & os.environ.keys():
        return None
    try:
        if sys.stdout.isatty() and os.get_terminal_size(sys.stdout.fileno()).columns < _COLUMNS:
            return None
    except (OSError, ValueError):
        return None
    import json
    from importlib.resources import files

    texts: dict[str, str] = json.loads(files("crystalperf.cli").joinpath("help.json").read_bytes())
    found = texts.get(" ".join(arguments[:-1]))
    return None if found is None else found + "\n"


if __name__ == "__main__":
    import json

    from crystalperf.cli.reference import helps

    print(json.dumps(helps(_COLUMNS - 2), indent=1, ensure_ascii=False))
