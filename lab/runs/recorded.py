"""The command line of scripts that each make the event log of one of several kinds of runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from lab.errors import LabError


def run(
    program: str,
    description: str | None,
    kinds: Collection[str],
    record: Callable[[str, Path], Path],
    arguments: Sequence[str] | None = None,
) -> int:
    """``python -m PROGRAM KIND --out DIR`` prints the log that `record` makes; 0, or 1 with one sentence on stderr."""
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=description)
    parser.add_argument("kind", choices=list(kinds))
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of the log; it is replaced")
    given = parser.parse_args(arguments)
    try:
        print(record(given.kind, given.out.resolve()))
    except LabError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0
