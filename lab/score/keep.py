"""Store a sweep in the repository: ``python -m lab keep SUITE --out DIR --to lab/recordings/sweeps``.

It stores all rows as Parquet, and the recordings of the first baseline run of each recorder (or of `--bases` runs),
gzipped, so that `python -m lab score --out lab/recordings/sweeps` starts from the same runs.
"""

from __future__ import annotations

import gzip
import json
import shutil
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

from lab.errors import LabError
from lab.machine.shares import summarize
from lab.runs.suites import Suite
from lab.runs.sweep import read_rows, write_rows
from lab.score.pairs import recorder


def keep(suite: Suite, out: Path, to: Path, recorders: Collection[str], bases: int = 1) -> int:
    """Copy a suite's rows, and this number of baseline runs per sweep and recorder; returns the bytes written.

    Raises LabError if `out` has no rows of the suite.
    """
    rows = read_rows(out, suite)
    if not rows:
        raise LabError(f"{out} has no runs of {suite.name}; make some with python -m lab run {suite.name} --out {out}.")
    folder = to / suite.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    kept: Counter[tuple[int, str]] = Counter()
    for row in rows:
        key, log = (row["sweep"], recorder(row)), row["event_log"]
        if row["role"] == "base" and key[1] in recorders and kept[key] < bases:
            kept[key] += 1
            _keep_run(row, out, to)
            ticks = out / row["run"] / "truth"
            if (ticks / "ticks.parquet").exists():  # store their evaluation by the current code
                truth = summarize(ticks, out / log, row["start_ms"], row["end_ms"])
                row["stages"] = json.dumps(truth["stages"])
    write_rows(rows, folder / "rows.parquet")
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _keep_run(row: dict[str, Any], out: Path, to: Path) -> None:
    """Copy a run's log, and its recordings gzipped; updates their names in the row."""
    log = to / row["event_log"]
    if (out / row["event_log"]).is_dir():
        # Hidden checksum files of Hadoop's local file system are not needed.
        shutil.copytree(out / row["event_log"], log, ignore=shutil.ignore_patterns(".*"))
    else:
        log.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(out / row["event_log"], log)
    names = []
    for name in json.loads(row["recordings"]):
        names.append(f"{name}.gz")
        target = to / names[-1]
        target.parent.mkdir(parents=True, exist_ok=True)
        # Without a name and a time in the header, the same recording gives the same bytes.
        with open(target, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
            packed.write((out / name).read_bytes())
    row["recordings"] = json.dumps(names)
