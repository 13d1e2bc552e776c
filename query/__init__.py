"""A run's log and samples, joined with resource indexes, become an explanation and predictions.

    profile(paths) -> Run      read, resolve, assemble, keep as one DuckDB file
    open_run(path) -> Run      the same file later
    Run.debug(), Run.predict() the questions
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from query.answers import Debug, Header, Prediction, Sweep
from query.run import Run

__all__ = ["Debug", "Header", "Prediction", "Run", "Sweep", "open_run", "profile"]


def profile(
    paths: Sequence[str | Path],
    *,
    output: Path | None = None,
    app: str | None = None,
    indexes: Sequence[str] = (),
    progress: Callable[[str], None] = lambda _: None,
) -> Run:
    """Read logs and samples, in any order and each sniffed by content, and keep the profile as a run file.

    `output` is the run file's place, by default in the user's cache, where it is reused while the inputs are
    unchanged.  `app` chooses among several applications.  `indexes` names resource indexes (NAME-VERSION); by
    default those that fit the run.  `progress` is told each step in a few words.  Raises CrystalPerfError.
    """
    raise NotImplementedError


def open_run(path: str | Path) -> Run:
    """The run file that profile() wrote.  Raises IndexFileError where it is none."""
    raise NotImplementedError
