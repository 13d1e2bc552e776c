"""Comparisons against known differences: ``python -m lab.score.compare --profiles FOLDER``.

The first table has pairs of runs with one difference that was made (`lab/recordings/changed`, lab.runs.changed): is the
first cause that `compare` names the one that was made, and which share of the difference has a cause?  Pairs whose
runtimes differ by less than 10 % have no difference to explain; they are listed and not counted.  The second table has
pairs of repeated runs, where nothing was changed: how many have no change beyond noise?  Those pairs have one run a
side, so that this checks the usual spread, which was fitted to repeated runs of the same suites.

The rules were written while the jobs in SEEN were looked at; the others only score them.  The figures are also printed
for both halves of the pairs, split by the hash of the pair's name: rules may be tuned on the first half only.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

import crystalperf
from crystalperf.query.compare.compare import Given, compared
from crystalperf.query.compare.noise import difference, kind_of
from crystalperf.query.results.comparison import Comparison, DeviceRate, Part, Unexplained
from crystalperf.query.run import Run

RECORDINGS = Path("lab/recordings")
SEEN = ("q12", "even", "q9")
LEAST = 0.10
"""Minimum difference of runtimes that a cause has to explain."""

SERIES = ("sweeps", "again", "repeated")


@dataclass(frozen=True)
class Recorded:
    """A run's folder, and the Unix times of its query, ms."""

    folder: Path
    start_ms: float
    end_ms: float


@dataclass(frozen=True)
class Pair:
    """Two runs; `causes` are those that are right, empty if nothing was changed."""

    name: str
    job: str
    before: Recorded
    after: Recorded
    causes: tuple[str, ...]


def is_tuning(pair: Pair) -> bool:
    """Whether a pair is in the half that rules may be tuned on."""
    return hashlib.sha256(pair.name.encode()).digest()[0] % 2 == 0


GROUPS: Mapping[str, Callable[[Pair], bool]] = {
    "Jobs seen": lambda pair: pair.job in SEEN,
    "Jobs not seen": lambda pair: pair.job not in SEEN,
    "First half": is_tuning,
    "Second half": lambda pair: not is_tuning(pair),
    "All": lambda _: True,
}


def key_of(part: Part) -> str:
    """A part's kind, with the resource of a device."""
    return f"{part.kind}:{part.resource}" if isinstance(part, DeviceRate) else part.kind


def first_cause(found: Comparison) -> str:
    """The first cause that is named, by key_of; empty if there is none."""
    return next((key_of(each) for each in found.parts if not isinstance(each, Unexplained)), "")


def made(folder: Path) -> list[Pair]:
    """The pairs with a known difference."""
    found = []
    for line in (folder / "rows.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        one, other = (_recorded(folder / row[side]) for side in ("before", "after"))
        found.append(Pair(row["after"], row["job"], one, other, tuple(row["causes"])))
    return found


def _recorded(folder: Path) -> Recorded:
    row = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    return Recorded(folder, row["start_ms"], row["end_ms"])


def repeated(recordings: Path) -> Iterator[Pair]:
    """Pairs of recorded baseline runs of the same job with the same resources."""
    groups: dict[tuple[str, int, str], list[Recorded]] = {}
    for rows in sorted(path for series in SERIES for path in (recordings / series).glob("*/rows.parquet")):
        found = duckdb.execute(
            "SELECT sweep, workload, run, start_ms, end_ms FROM read_parquet(?) WHERE role = 'base' ORDER BY run",
            [str(rows)],
        ).fetchall()
        for sweep, workload, run, start_ms, end_ms in found:
            folder = rows.parent / Path(run).name
            if folder.is_dir():
                group = groups.setdefault((rows.parent.name, sweep, workload), [])
                group.append(Recorded(folder, start_ms, end_ms))
    for (suite, _, workload), runs in sorted(groups.items()):
        for one, other in itertools.combinations(runs, 2):
            names = "/".join(f"{each.folder.parent.parent.name} {each.folder.name}" for each in (one, other))
            yield Pair(f"{suite} {workload}: {names}", workload, one, other, ())


def given(run: Recorded, profiles: Path | None = None) -> Given:
    """A recorded run, and the interval of its query; its run file is in the cache, or in a folder."""
    if profiles is None:
        opened = _profiled(run.folder, None)
    else:
        profiles.mkdir(parents=True, exist_ok=True)
        file = profiles / f"{'-'.join(run.folder.parts[-3:])}.duckdb"
        opened = crystalperf.open_run(file) if file.exists() else _profiled(run.folder, file)
    with opened.reading() as connection:
        (started_ms,) = connection.execute("SELECT started_at_ms FROM runs").fetchall()[0]
    return Given(opened, run.folder.name, f"{run.start_ms - started_ms}..{run.end_ms - started_ms}")


def _profiled(folder: Path, file: Path | None) -> Run:
    inputs = [each for name in ("eventlog", "jfr") if (each := folder / name).is_dir()]
    return crystalperf.profile(inputs or [folder], output=file)


def comparison(pair: Pair, profiles: Path) -> Comparison:
    return compared([given(pair.before, profiles)], [given(pair.after, profiles)])


def _verdict(pair: Pair) -> str:
    """The verdict on the times of the query, which are those of the scope that `comparison` compares."""
    one, other = (each.end_ms - each.start_ms for each in (pair.before, pair.after))
    return difference([one], [other], kind_of("spark", "runtime")).verdict


def is_scored(found: Comparison) -> bool:
    """Whether there is a difference to explain."""
    return abs(found.change_ms) >= LEAST * found.before.runtime_ms


def table(pairs: Sequence[Pair], found: Sequence[Comparison]) -> str:
    """A row for each pair with a known difference."""
    lines = [
        "| pair | before | after | made | first cause | its share | explained |",
        "|---|---|---|---|---|---|---|",
    ]
    for pair, each in zip(pairs, found, strict=True):
        first, runs = first_cause(each), (each.before, each.after)
        part_ms = sum(part.ms for part in each.parts if key_of(part) in pair.causes)
        right = "" if first in pair.causes else " ✗"
        shares = [f"{100 * part_ms / each.change_ms:.0f} %", f"{100 * (each.explained_share or 0.0):.0f} %"]
        if not is_scored(each):
            shares = ["-", "-"]
        times = " | ".join(f"{side.runtime_ms / 1000:.1f} s" for side in runs)
        lines.append(f"| {pair.name} | {times} | {' or '.join(pair.causes)} | {first}{right} | {' | '.join(shares)} |")
    return "\n".join(lines)


def summary(title: str, pairs: Sequence[Pair], found: Sequence[Comparison]) -> str:
    """How many pairs are right, and the mean explained share."""
    scored = [(pair, each) for pair, each in zip(pairs, found, strict=True) if is_scored(each)]
    right = sum(first_cause(each) in pair.causes for pair, each in scored)
    shares = [each.explained_share or 0.0 for _, each in scored]
    enough = sum(share >= 0.8 for share in shares)
    mean = 100 * sum(shares) / max(len(shares), 1)
    return (
        f"{title}: first cause right in {right} of {len(scored)} pairs; explained {mean:.0f} % on average,"
        f" at least 80 % in {enough}."
    )


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recordings", type=Path, default=RECORDINGS, metavar="DIR")
    parser.add_argument("--changed", type=Path, metavar="DIR", help="the runs of lab.runs.changed")
    parser.add_argument("--profiles", type=Path, required=True, metavar="DIR", help="the folder for run files")
    parser.add_argument("--only", choices=("made", "repeated"), help="one table only")
    options = parser.parse_args()
    if options.only != "repeated":
        pairs = made(options.changed or options.recordings / "changed")
        found = [comparison(each, options.profiles) for each in pairs]
        print(table(pairs, found))
        for title, mine in GROUPS.items():
            chosen = [n for n, pair in enumerate(pairs) if mine(pair)]
            print(f"\n{summary(title, [pairs[n] for n in chosen], [found[n] for n in chosen])}")
    if options.only != "made":
        same = list(repeated(options.recordings))
        verdicts = [_verdict(each) for each in same]
        quiet = sum(each == "no change" for each in verdicts)
        print(f"\nRepeated runs: no change beyond noise in {quiet} of {len(same)} pairs.")
        for pair, verdict in zip(same, verdicts, strict=True):
            if verdict != "no change":
                print(f"- {pair.name}: {verdict}")


if __name__ == "__main__":
    main()
