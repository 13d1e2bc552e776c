"""The table of measured functions, indexer/labels/measured.tsv."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from crystalperf.indexer.labels.functions import Located
from crystalperf.indexer.labels.tables import Measured, Reading, committed, read_table, write_table
from lab.measure.times import Run, Shares


def describe(library: str, name: str, its: Shares, run: Run) -> str:
    """One line for a reader."""
    return (
        f"{its.label():5} cpu {its.cpu:.2f} disk {its.disk:.2f} ({its.deferred:.2f}) net {its.net:.2f}"
        f" wait {its.wait:.2f} {run.wall_ms:8.1f} ms {library} {name}"
    )


Row = tuple[Located, Shares, Run, int, str]
"""Function, shares, median run, number of runs, tool."""


def store(rows: Iterable[Row], replaced: frozenset[str], path: Path | None = None) -> int:
    """Put measured functions into measured.tsv, and take out all others of the libraries in `replaced`; how many there
    are now. A function keeps its id, so that readings of it stay valid, and no id is given twice."""
    path = path or committed("measured")
    known = read_table(path, Measured) if path.is_file() else []
    readings = path.with_name("measured_readings.tsv")
    given = {each.id for each in known}
    given |= {each.id for each in read_table(readings, Reading)} if readings.is_file() else set()
    kept = {_key(each): each for each in known if each.library not in replaced}
    ids = {_key(each): each.id for each in known}
    following = 1 + max((int(each[1:]) for each in given), default=-1)
    for located, its, run, runs, tool in rows:
        function = located.function
        key = (located.library, located.file, function.qualified_name, located.text_hash)
        if key not in ids:
            ids[key] = f"m{following:04d}"
            following += 1
        kept[key] = Measured(
            ids[key],
            located.library,
            located.version,
            located.file,
            function.first_line,
            function.last_line,
            function.qualified_name,
            located.text_hash,
            its.label(),
            its.cpu,
            its.disk,
            its.net,
            its.wait,
            its.deferred,
            run.wall_ms,
            runs,
            tool,
        )
    write_table(path, Measured, sorted(kept.values(), key=lambda each: each.id))
    return len(kept)


def _key(its: Measured) -> tuple[str, str, str, str]:
    return its.library, its.file, its.qualified_name, its.text_hash
