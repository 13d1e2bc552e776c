"""A run's log and samples, joined with resource indexes, become an explanation and predictions.

profile(paths) -> Run      read, resolve, write, keep as one DuckDB file
open_run(path) -> Run      the same file later
Run.verdict(), Run.debug(), Run.predict(), Run.sweep()  the questions
as_json(answer)            an answer as scripts read it
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crystalperf.query.results.answers import Debug, Header, Prediction, Sweep, Verdict
    from crystalperf.query.run import Run
    from crystalperf.query.text.as_json import as_json

__all__ = ["Debug", "Header", "Prediction", "Run", "Sweep", "Verdict", "as_json", "open_run", "profile"]


def profile(
    paths: str | Path | Sequence[str | Path],
    *,
    output: str | Path | None = None,
    app: str | None = None,
    indexes: Sequence[str] = (),
    progress: Callable[[str], None] = lambda _: None,
    replace: bool = False,
) -> Run:
    """Read logs and samples, in any order and each sniffed by content, and keep the profile as a run file.

    `paths` is one path or several.  `output` is the run file's place, by default in the user's cache.  An existing
    file is reused while its inputs and indexes are unchanged; another application's run stays there unless `replace`
    is set.  `app` chooses among several applications.  `indexes` names resource indexes
    (NAME-VERSION); by default those that fit the run.  `progress` is told each step in a few words.  Raises
    CrystalPerfError.
    """
    from crystalperf.query.run import Run
    from crystalperf.query.runfile.pipeline import profile_inputs

    given = [paths] if isinstance(paths, str | Path) else paths
    place = None if output is None else Path(output)
    return Run(profile_inputs(given, place, app, tuple(indexes), progress, replace=replace))


def open_run(path: str | Path) -> Run:
    """The run file that profile() wrote.  Raises IndexFileError where it is none."""
    from crystalperf.query.run import Run

    return Run(Path(path))


def __getattr__(name: str) -> object:
    # Importing duckdb and numpy takes longer than printing a help text, so the types come when they are asked for.
    if name in ("Debug", "Header", "Prediction", "Sweep", "Verdict"):
        from crystalperf.query.results import answers

        return getattr(answers, name)
    if name == "as_json":
        from crystalperf.query.text.as_json import as_json

        return as_json
    if name == "Run":
        from crystalperf.query.run import Run

        return Run
    raise AttributeError(f"module 'query' has no attribute '{name}'")
