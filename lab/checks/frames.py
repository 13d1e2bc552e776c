"""Do the frames of real recordings have an index?  A row for every recording at hand, and what most of the rest is.

    python -m lab.checks.frames lab/recordings tests/data ../shared/real-inputs/jfr [--write docs/index.md]

A folder that holds one application's log and its recordings is a run, read with the indexes that the product picks for
it.  A recording without a log is read with one index of each package, the newest, as stand-ins.  Counted is each Java
frame of a source once for every stack it is in, times the time of that stack (collapsed stacks: its count); hidden
classes of the JVM, code generated while running, and native and Python frames are not.

    known      a function of an index, by class and line or by class and method; native methods too
    class      the class is indexed, but no function of it is there: what a compiler makes
    unknown    in no index

Of runs, `decided` is the share of the time sampled in tasks whose stack has a function that decides it.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import duckdb
import numpy as np

from crystalperf import query
from crystalperf.indexes import guard
from crystalperf.indexes.errors import CrystalPerfError
from crystalperf.indexes.exports import available, split_name
from crystalperf.query.attribution.code.libraries import Ran, fitting
from crystalperf.query.attribution.code.names import is_python
from crystalperf.query.attribution.code.resolve import load_indexes, resolve
from crystalperf.query.attribution.samples.threadtime import thread_time
from crystalperf.query.frameworks.registry import get
from crystalperf.query.inputs.discover import discover
from crystalperf.query.inputs.files import SampleFile
from crystalperf.query.recordings import collapsed, jfr
from crystalperf.query.trace.records import Problems
from lab.pages import head, put

Frame = tuple[str, str, int]
"""Class, method, line; the class is empty for native functions, the line 0 where it is not told."""

MOST = 3
"""Packages without an index that a row names."""

WORTH_NAMING = 0.001
"""Share of a recording's frame time below which a package is not named."""

_JAVA = re.compile(r"(?!lib\S*\.(?:so|dylib)\b)(?:[A-Z$_][^.]*$|[^\[<(]*\.)")
"""A class in a package, or one in none that is written like one: not a native library, nor the launcher `java`."""

_EXPECTED = "expected"
"""In the names of folders with what another reader made of recordings beside them."""

_LOG_ENDS = (".json", ".zstd", ".zst")
"""How names of logs end that have no `eventlog` in them."""


@dataclass(frozen=True)
class Stack:
    """A distinct stack, its time, and of runs how much of that was in tasks and how much of that was decided."""

    frames: tuple[Frame, ...]
    weight: float
    in_units: float = 0.0
    decided: float = 0.0


@dataclass(frozen=True)
class Counted:
    """Frame time by what the indexes say, and that in no index by package."""

    how: Mapping[str, float]
    packages: Mapping[str, float]

    @property
    def total(self) -> float:
        return sum(self.how.values())

    def share(self, *how: str) -> float:
        """Of the frame time, that which is so."""
        return sum(self.how.get(each, 0.0) for each in how) / self.total if self.total else 0.0


@dataclass(frozen=True)
class Row:
    """One recording, or one run with all its recordings; `tasks` is None without a log, `decided` (a share) also where
    no time was sampled in tasks."""

    name: str
    everything: Counted
    tasks: Counted | None = None
    decided: float | None = None


def is_java(class_name: str) -> bool:
    """Whether a frame's class is one of the JVM's: not of a native library, the kernel, or Python."""
    return _JAVA.match(class_name) is not None and not is_python(class_name)


def package(class_name: str) -> str:
    """The first three parts of a class's package."""
    return ".".join([*takewhile(lambda part: not part[:1].isupper(), class_name.split(".")[:-1])][:3]) or "no package"


# Reading --------------------------------------------------------------------------------------------------------------


def of_file(file: SampleFile) -> list[Stack]:
    """The stacks of one recording and their time in ms, or their counts."""
    if file.kind == "collapsed":
        read = collapsed.read(file.path, Problems())
        recording, weights = read.recording, read.weight.tolist()
    else:
        recording = jfr.read(file.path)
        time = thread_time(recording)
        known = time.stack >= 0
        weights = np.bincount(time.stack[known], time.weight_ms[known], len(recording.stacks)).tolist()
    names = recording.frames
    frames = list(zip(names.owners(), names.methods(), np.maximum(names.line, 0).tolist(), strict=True))
    return [
        Stack(tuple(frames[each] for each in recording.stacks.frames(number).tolist()), weight)
        for number, weight in enumerate(weights)
        if weight > 0
    ]


def of_run(path: Path) -> tuple[list[Stack], list[tuple[str, bool]]]:
    """The stacks of a run file, and the indexes that fit it, each with whether its lines are those that ran."""
    with duckdb.connect(str(path), read_only=True) as connection:
        rows = connection.execute(
            "SELECT frames, sum(weight_ms), coalesce(sum(weight_ms) FILTER (unit_id IS NOT NULL), 0),"
            " coalesce(sum(weight_ms) FILTER (unit_id IS NOT NULL AND deciding_depth IS NOT NULL), 0)"
            " FROM samples JOIN stacks USING (stack_id) GROUP BY stack_id, frames HAVING sum(weight_ms) > 0"
        ).fetchall()
        facts = connection.execute("SELECT framework, java_version, libraries, framework_version FROM runs").fetchall()[
            0
        ]
    stacks = [Stack(tuple(map(split_frame, frames)), *weights) for frames, *weights in rows]
    classes = {owner for stack in stacks for owner, _, _ in stack.frames}
    fits = fitting(get(facts[0]), Ran(facts[1], facts[2] or [], facts[3]), classes)
    return stacks, [(each.found, each.is_exact) for each in fits if each.found is not None]


def split_frame(text: str) -> Frame:
    """A frame as run files have it: 'package.Class.method:line', the class empty for native functions."""
    name, _, line = text.rpartition(":")
    if not line.isdigit():
        name, line = text, "0"
    owner, _, method = name.rpartition(".")
    return owner, method, int(line)


def newest() -> list[tuple[str, bool]]:
    """One index of each package at hand, for recordings of which no log says what ran."""
    best: dict[str, tuple[list[int], str]] = {}
    for each in available():
        name, version = split_name(each.name)
        numbers = [int(number) for number in re.findall(r"\d+", version)]
        best[name] = max(best.get(name, ([], "")), (numbers, each.name))
    return [(name, False) for _, name in best.values()]


# Counting -------------------------------------------------------------------------------------------------------------


def told(stacks: Sequence[Stack], indexes: Sequence[tuple[str, bool]]) -> dict[Frame, str]:
    """Of each Java frame of a source, whether it is known, of a known class, or unknown."""
    frames = sorted({frame for stack in stacks for frame in stack.frames if is_java(frame[0])})
    if not frames:
        return {}
    owners, methods, lines = zip(*frames, strict=True)
    columns = {  # noqa: F841 (read by DuckDB)
        "frame_id": np.arange(len(frames), dtype=np.int32),
        "class_name": np.array(owners, dtype=object),
        "method": np.array(methods, dtype=object),
        "line": np.array(lines, dtype=np.int32),
    }
    with guard.fresh() as connection:
        connection.execute("CREATE TEMP TABLE frames AS SELECT * FROM columns")
        loaded = load_indexes(connection, [name for name, _ in indexes], "frames")
        others = [name for name, is_exact in indexes if not is_exact]
        table = resolve(connection, "frames", loaded, other_version=others)
        rows = connection.execute(f"SELECT frame_id, how FROM {table}").fetchall()
    kinds = {"line": "known", "name": "known", "native": "known"}
    found = {frames[number]: kinds.get(how, how) for number, how in rows}
    return {frame: how for frame, how in found.items() if how not in ("hidden", "generated")}


def counted(stacks: Sequence[tuple[Stack, float]], how: Mapping[Frame, str]) -> Counted:
    """Frame time of these stacks, each with the time it counts for."""
    times: defaultdict[str, float] = defaultdict(float)
    packages: defaultdict[str, float] = defaultdict(float)
    for stack, weight in stacks:
        for frame in stack.frames:
            if frame in how:
                times[how[frame]] += weight
                if how[frame] == "unknown":
                    packages[package(frame[0])] += weight
    return Counted(times, packages)


def row_of_run(name: str, folder: Path, scratch: Path) -> Row:
    """All recordings of one run together."""
    stacks, indexes = of_run(query.profile([folder], output=scratch).path)
    how = told(stacks, indexes)
    in_tasks = sum(stack.in_units for stack in stacks)
    return Row(
        name,
        counted([(stack, stack.weight) for stack in stacks], how),
        counted([(stack, stack.in_units) for stack in stacks], how),
        sum(stack.decided for stack in stacks) / in_tasks if in_tasks else None,
    )


def rows_of_file(name: str, path: Path) -> Iterator[Row]:
    """The recording that a file is, of which no log is at hand; none where it is something else or cannot be read."""
    try:
        found = [of_file(each) for each in discover([path]).samples]
    except (CrystalPerfError, jfr.JfrError):
        return
    for stacks in found:
        yield Row(name, counted([(stack, stack.weight) for stack in stacks], told(stacks, newest())))


def rows(places: Sequence[Path]) -> Iterator[Row]:
    """The runs and the recordings in these folders, and in the folders in them; those without a Java frame too."""
    with tempfile.TemporaryDirectory() as scratch:
        for place in places:
            for folder, folders, files in os.walk(place):
                folders[:] = sorted(each for each in folders if _EXPECTED not in each)
                here = Path(folder)
                name = str(here.relative_to(place.parent))
                if is_run(here):
                    folders.clear()
                    yield row_of_run(name, here, Path(scratch, f"{len(os.listdir(scratch))}.duckdb"))
                    continue
                for file in sorted(files):
                    yield from rows_of_file(f"{name}/{file}", here / file)


def is_run(folder: Path) -> bool:
    """Whether a folder holds the log of one application and recordings, itself or in folders right in it."""
    if not any("eventlog" in each.name or each.suffix in _LOG_ENDS for each in folder.iterdir()):
        return False
    try:
        inputs = discover([folder])
    except CrystalPerfError:
        return False
    return len(inputs.applications) == 1 and bool(inputs.samples)


# Telling --------------------------------------------------------------------------------------------------------------


def table(found: Sequence[Row]) -> list[str]:
    """The rows with a Java frame as a table, and how many had none."""
    lines = head("recording | >known % | >class known % | >in tasks known % | >task time decided % | most of the rest")
    kept = [row for row in found if row.everything.total]
    for row in kept:
        known = percent(row.tasks.share("known")) if row.tasks and row.tasks.total else ""
        tasks = f"{known} | {percent(row.decided) if row.decided is not None else ''}"
        lines.append(
            f"| {row.name} | {percent(row.everything.share('known'))} | {percent(row.everything.share('class'))} |"
            f" {tasks} | {rest(row.tasks or row.everything)} |"
        )
    lines.append(f"\n{len(kept)} recordings and runs; {len(found) - len(kept)} more have no Java frame of a source.")
    return lines


def percent(share: float) -> str:
    """A share as text: 97.3."""
    return f"{100 * share:.1f}"


def rest(of: Counted) -> str:
    """The packages that most frame time without an index is in: `com.acme 12.0, org.json 3.1`."""
    most = Counter(of.packages).most_common(MOST)
    return ", ".join(f"{name} {percent(time / of.total)}" for name, time in most if time >= WORTH_NAMING * of.total)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into this page")
    given = parser.parse_args(arguments)
    found = []
    for row in rows(given.places):
        found.append(row)
        print(f"{row.name}: {percent(row.everything.share('known'))} {rest(row.everything)}", file=sys.stderr)
    if given.write is None:
        print("\n".join(table(found)))
    else:
        put(given.write, "frames", table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
