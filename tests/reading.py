"""Runs of the recordings in this checkout, each profiled once, and what their files have."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import crystalperf as cp
from crystalperf.query.run import Run


@cache
def profiled(*paths: Path) -> Run:
    """The run of these files, for reading only; a process profiles them once, and its answers are kept with it."""
    return cp.profile(paths)


def rows(run: Run, statement: str) -> list[tuple[Any, ...]]:
    """The rows of a statement over a run file's tables; Run.sql() takes half a second to begin a process for each."""
    with run.reading() as connection:
        return connection.execute(statement).fetchall()
