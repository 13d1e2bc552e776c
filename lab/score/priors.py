"""Learn priors for time that logs do not attribute: ``python -m lab.score.priors --profiles FOLDER``.

It writes query/predict/priors.csv.  Every stored recording is read with and without its samples; the difference shows
the resources of the time that the log alone does not attribute.  Recordings are averaged by workload first, so that a
workload with many recordings counts once.  `--without WORKLOAD` excludes one, to score the others' priors on it.

Recordings are of baselines, which are never scored.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np

from crystalperf import query
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.load import load
from crystalperf.query.predict.priors import ANY, REMOTE_LOCALITIES, unknown_ms
from crystalperf.query.trace.records import Floats
from lab.runs.suites import SUITES
from lab.runs.sweep import read_rows

RECORDINGS = Path("lab/recordings")
MIN_S = 2.0
"""Minimum unattributed time of a reader in a recording."""


@dataclass(frozen=True)
class Reported:
    """Attribution by samples of the time that one recording's log leaves open, ms by resource and other, by reader."""

    workload: str
    framework: str
    names: tuple[str, ...]
    by_reader: dict[tuple[str, str], Floats]


@dataclass(frozen=True)
class Kept:
    """A stored run with samples; the query itself began and ended at `times_ms` (epoch)."""

    workload: str
    name: str
    log: Path
    recordings: tuple[Path, ...]
    times_ms: tuple[float, float]


def kept() -> Iterator[Kept]:
    """Every stored run with samples.  Its warm-up passes are not part of the query."""
    for suite in SUITES.values():
        out = RECORDINGS / "sweeps"
        for row in read_rows(out, suite):
            if row["role"] == "base" and row["sampler"] != "none" and (out / row["event_log"]).exists():
                recordings = tuple(out / name for name in json.loads(row["recordings"]))
                times = row["start_ms"], row["end_ms"]
                yield Kept(row["workload"], row["run"].replace("/", "-"), out / row["event_log"], recordings, times)
    for workload, name in (("q9", "demo-q9"), ("gzip-text", "gzip-text/cluster")):
        folder = RECORDINGS / name
        row = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        recordings, times = tuple(sorted(folder.glob("*.jfr.gz"))), (row["start_ms"], row["end_ms"])
        yield Kept(workload, name.replace("/", "-"), next(folder.glob("eventlog*")), recordings, times)


def reported(run: Kept, profiles: Path) -> Reported:
    """One recording, read with and without its samples."""

    def read(inputs: tuple[Path, ...], called: str) -> Execution:
        found = query.profile(inputs, output=profiles / f"{called}.duckdb").path
        with duckdb.connect(str(found), read_only=True) as connection:
            ((began_ms,),) = connection.execute("SELECT started_at_ms FROM runs").fetchall()
            start, end = (each - began_ms for each in run.times_ms)
            return load(connection, f"{max(start, 0)}..{end}")

    sampled, alone = read((run.log, *run.recordings), run.name), read((run.log,), f"{run.name}-log")
    left = unknown_ms(alone)
    more = np.maximum(sampled.tasks.parts_ms - alone.tasks.parts_ms, 0.0)
    more[:, -1] = np.maximum(left - more[:, :-1].sum(axis=1), 0.0)
    whole = more.sum(axis=1)
    more *= np.divide(left, whole, out=np.zeros(len(left)), where=whole > 0)[:, None]
    found: dict[tuple[str, str], Floats] = {}
    for task, number in enumerate(alone.tasks.stage.tolist()):
        # For local files, all but 2 % was waiting for a CPU, which the run itself shows.
        if alone.volumes.far[task] > 0:
            key = (alone.readers.get(number, ANY), REMOTE_LOCALITIES)
            found[key] = found.get(key, np.zeros(more.shape[1])) + more[task]
    return Reported(run.workload, alone.words.framework, alone.names, found)


def rows(every: list[Reported]) -> list[dict[str, object]]:
    """A row for each reader and place; for other readers, the mean over all readers of a place."""
    keys = sorted({(each.framework, *key) for each in every for key in each.by_reader})
    keys += [(framework, ANY, REMOTE_LOCALITIES) for framework in sorted({each.framework for each in every})]
    found: list[dict[str, object]] = []
    for framework, reader, place in dict.fromkeys(keys):
        by_workload: dict[str, list[Floats]] = {}
        for each in every:
            mine = [
                times
                for (its, where), times in each.by_reader.items()
                if each.framework == framework and where == place and reader in (its, ANY)
            ]
            if mine and float(np.sum(mine)) >= MIN_S * 1e3:
                by_workload.setdefault(each.workload, []).append(np.sum(mine, axis=0))
        if not by_workload:
            continue
        shares = [np.mean([times / times.sum() for times in runs], axis=0) for runs in by_workload.values()]
        mean, names = np.mean(shares, axis=0), every[0].names
        devices = [float(each[:-1].sum() - each[names.index("cpu")]) for each in shares]
        apart = statistics.stdev(devices) / statistics.mean(devices) if len(devices) > 1 and max(devices) > 0 else 1.0
        found.append(
            {
                "framework": framework,
                "operator": reader,
                "place": place,
                **{name: f"{share:.3f}" for name, share in zip((*names, "other"), mean.tolist(), strict=True)},
                "deviation": f"{min(apart, 1.0):.2f}",
                "recordings": sum(map(len, by_workload.values())),
                "workloads": len(by_workload),
                "open_s": f"{float(np.sum(np.concatenate(list(by_workload.values())))) / 1e3:.0f}",
            }
        )
    return found


def text_of(found: list[dict[str, object]]) -> str:
    """Rows as CSV."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(found[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(found)
    return out.getvalue()


def main() -> None:
    """Print the priors, or write them to a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profiles", type=Path, required=True, help="folder that run files are kept in")
    parser.add_argument("--without", default="", help="a workload to exclude")
    parser.add_argument("--write", type=Path, help="the file to write; by default the rows are printed")
    given = parser.parse_args()
    given.profiles.mkdir(parents=True, exist_ok=True)
    every = [reported(each, given.profiles) for each in kept() if each.workload != given.without]
    found = text_of(rows(every))
    if given.write:
        given.write.write_text(found, encoding="utf-8")
    else:
        print(found)


if __name__ == "__main__":
    main()
