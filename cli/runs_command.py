"""`crystalperf runs`: list and remove the runs in the cache."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crystalperf.cli.kept_answers import forget
from crystalperf.cli.output import print_message, write, write_json
from crystalperf.cli.rows import rows_text
from crystalperf.cli.runs import find_kept, kept_runs, runs_folder
from crystalperf.indexes.errors import CrystalPerfError, InputError
from crystalperf.query.text.figures import time_unit

MOST = 30
"""Maximum runs that are listed without `--all`, because each file is opened."""


def runs(names: Sequence[str], *, remove: bool, every: bool, as_json: bool) -> int:
    """List the runs whose names contain one of `names`, the newest first, or remove those named so.

    Raises InputError for a name to remove that no run has.
    """
    if remove and not names:
        raise InputError("--rm needs the names of the runs to remove; `crystalperf runs` lists them")
    if remove:
        for path in [find_kept(each) for each in names]:
            path.unlink(missing_ok=True)
            forget(path)
            print_message(f"removed {path}")
        return 0
    found = [each for each in kept_runs() if not names or any(name in each for name in names)]
    shown = found if every else found[:MOST]
    rows = [_row(runs_folder() / f"{name}.duckdb") for name in shown]
    if as_json:
        write_json({"folder": str(runs_folder()), "total": len(found), "runs": rows})
        return 0
    if not rows:
        print_message(f"no such run in {runs_folder()}" if names else f"no runs in {runs_folder()}")
        return 0
    write(rows_text(list(rows[0]), [list(each.values()) for each in rows], more=False))
    if len(shown) < len(found):
        print_message(f"{len(found) - len(shown)} older runs are not listed; --all lists them")
    return 0


def _row(path: Path) -> dict[str, Any]:
    """A run's name in the cache, that of its job, its framework, its length, and when the file was saved."""
    from crystalperf import query

    saved = time.strftime("%Y-%m-%d %H:%M", time.localtime(path.stat().st_mtime))
    try:
        header = query.open_run(path).header()
    except CrystalPerfError:
        return {
            "run": path.stem,
            "job": "(not of this version)",
            "framework": "",
            "runtime": "",
            "saved": saved,
        }
    runtime = time_unit(header.duration_ms).text(header.duration_ms)
    framework = header.framework_title
    return {"run": path.stem, "job": header.name, "framework": framework, "runtime": runtime, "saved": saved}
