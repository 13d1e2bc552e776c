"""Performance analysis of a run: where its time went and what a change would bring, from its log, samples and indexes.

profile(paths) -> Run      read logs and samples, attribute time, store the profile as one DuckDB file
open_run(path) -> Run      open a stored profile
Run.verdict(), Run.debug(), Run.predict(), Run.sweep()  the analyses
as_json(answer)            an answer as JSON for scripts
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
    """Read logs and samples, in any order, detect their formats by content, and store the profile as a run file.

    `paths` is one path or several.  `output` is the path of the run file, by default in the user's cache.  An existing
    file is reused while its inputs and indexes are unchanged; the run of another application is overwritten only with
    `replace`.  `app` chooses among several applications.  `indexes` names resource indexes (NAME-VERSION); by default
    those that match the run.  `progress` receives a short description of each step.  Raises CrystalPerfError.
    """
    from crystalperf.query.run import Run
    from crystalperf.query.runfile.pipeline import profile_inputs

    given = [paths] if isinstance(paths, str | Path) else paths
    place = None if output is None else Path(output)
    return Run(profile_inputs(given, place, app, tuple(indexes), progress, replace=replace))


def open_run(path: str | Path) -> Run:
    """Open a run file that profile() wrote.  Raises IndexFileError if it is not a run file."""
    from crystalperf.query.run import Run

    return Run(Path(path))


def __getattr__(name: str) -> object:
    # Importing duckdb and numpy takes longer than printing a help text, so the types are imported on first use.
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
