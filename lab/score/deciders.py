"""Functions of indexes that decide what sampled stacks are attributed to, by the time that they decide.

`collect` profiles recordings one at a time, and adds up; `with_texts` adds source text, but not of reserved files.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import duckdb

from crystalperf import query
from crystalperf.indexer.catalogue import known_source, source_at_hand
from crystalperf.indexer.labels.functions import text_hash
from crystalperf.indexer.labels.reserve import FRAMEWORKS, is_reserved
from crystalperf.indexer.records import Language
from crystalperf.indexer.workers import parse_files
from crystalperf.indexes import exports, resources, store
from crystalperf.indexes.errors import CrystalPerfError
from crystalperf.query.execution.evidence import computes
from crystalperf.query.inputs.discover import choose, discover
from crystalperf.query.inputs.registry import find

RECORDING = re.compile(r"\.(jfr|collapsed)(\.gz)?$|\.pt\.trace\.json(\.gz)?$|\.(run_metadata|xplane)\.pb$")
"""Names of files whose runs may have stacks: recordings of JVMs, and traces of trainings that state functions."""

_FOLDERS_ABOVE = 2
"""Folders between a recording and the folder that has its run's log too."""

_EXAMPLE_FRAMES = 8
_SAME = 1e-6

Key = tuple[str, str]
"""Name of an index and symbol of its function."""


@dataclass(frozen=True)
class Decider:
    """A function of an index, and the time of tasks that stacks attribute to it.

    Only samples of tasks with an attributed function count, and operations of a training that state theirs.

    Attributes:
        vector: shares of its time by resource, as in the index; they sum to 1.
        ms: the function's label decided it.
        called_ms: a call nearer the leaf decided it: for a device, or for another process.
        state_ms: the thread's state decided it: it ran or waited for a CPU, so it counts as `cpu` with any label.
        example: frames of the stack with most `ms`, leaf first.
        recordings: number of runs with such stacks.
        readable: whether its label decides time, and its file is found and not reserved; else the next three are empty.
        text_hash: of its source lines, as in indexer.labels.functions.
    """

    index: str
    symbol: str
    qualified_name: str
    file: str
    first_line: int
    last_line: int
    label: str
    confidence: float
    vector: tuple[float, ...]
    ms: float
    share: float
    called_ms: float
    state_ms: float
    example: tuple[str, ...]
    recordings: int
    readable: bool = False
    text_hash: str = ""
    doc: str = ""
    code: str = ""


@dataclass
class Sums:
    """Times of a function over runs, in ms, by what decided them; see Decider."""

    label_ms: float = 0.0
    called_ms: float = 0.0
    state_ms: float = 0.0
    runs: set[Path] = field(default_factory=set)
    most_ms: float = -1.0
    example: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Time:
    """The time of one stack in one run, by whether the thread's state decided it."""

    key: Key
    frames: tuple[str, ...]
    vector: tuple[float, ...]
    state_ms: float
    other_ms: float


def is_held_out(index_name: str, file: str) -> bool:
    """Whether a file of an index is in the reserve; that of Spark includes PySpark."""
    name = exports.split_name(index_name)[0]
    return (name in FRAMEWORKS or name == "pyspark") and is_reserved(file)


def recorded_runs(folders: Sequence[Path]) -> list[Path]:
    """The folders that each have one application, and recordings or a training's traces of it."""
    found: dict[Path, None] = {}
    for top in folders:
        for here, _, names in sorted(os.walk(top)):
            if any(RECORDING.search(name) for name in names):
                run = _folder_of_run(Path(here), top)
                if run is not None:
                    found[run] = None
    return list(found)


def _folder_of_run(here: Path, top: Path) -> Path | None:
    """The folder at or above a recording that has one application, but not above `top`."""
    for folder in [here, *here.parents][: _FOLDERS_ABOVE + 1]:
        if not folder.is_relative_to(top):
            return None
        try:
            applications = discover([folder]).applications
        except CrystalPerfError:
            continue
        if applications:
            return folder if len(applications) == 1 else None
    return None


def collect(runs: Iterable[Path], say: Callable[[str], None] = lambda _: None) -> list[Decider]:
    """The functions that decide stacks of these runs, those whose label decides most time first."""
    sums: dict[Key, Sums] = defaultdict(Sums)
    known: dict[Key, Decider] = {}
    for run in runs:
        with tempfile.TemporaryDirectory(prefix="deciding-") as scratch:
            try:
                path = query.profile([run], output=Path(scratch, "run.duckdb")).path
            except CrystalPerfError as error:
                say(f"{run}: left out: {error}")
                continue
            with duckdb.connect(str(path), read_only=True) as connection:
                times = [*_sampled(connection), *_stated(connection, run)]
        known |= _functions({each.key for each in times} - known.keys())
        for each in times:
            _add(sums[each.key], each, known[each.key].vector, run)
        say(f"{run}: {len(times)} stacks, {len(sums)} functions")
    whole = sum(each.label_ms for each in sums.values())
    found = [
        replace(
            known[key],
            ms=round(its.label_ms, 3),
            share=round(its.label_ms / whole, 9) if whole else 0.0,
            called_ms=round(its.called_ms, 3),
            state_ms=round(its.state_ms, 3),
            example=its.example[:_EXAMPLE_FRAMES],
            recordings=len(its.runs),
        )
        for key, its in sums.items()
    ]
    return sorted(found, key=lambda each: (-each.ms, -each.state_ms, each.index, each.symbol))


def _add(its: Sums, time: _Time, vector: Sequence[float], run: Path) -> None:
    """Add a stack's time; a vector that is not the function's is that of a call nearer the leaf."""
    its.state_ms += time.state_ms
    is_own = all(abs(one - other) < _SAME for one, other in zip(time.vector, vector, strict=True))
    label_ms = time.other_ms if is_own else 0.0
    its.label_ms += label_ms
    its.called_ms += time.other_ms - label_ms
    its.runs.add(run)
    if label_ms > its.most_ms:
        its.most_ms, its.example = label_ms, time.frames


def _sampled(connection: duckdb.DuckDBPyConnection) -> Iterator[_Time]:
    """The stacks of tasks' samples that have an attributed function."""
    rows = connection.execute(
        f"""
        SELECT
            index_name, symbol, frames[:{_EXAMPLE_FRAMES}], [{", ".join(resources())}],
            coalesce(sum(weight_ms) FILTER ({computes()}), 0), coalesce(sum(weight_ms) FILTER (NOT {computes()}), 0)
        FROM samples JOIN stacks USING (stack_id)
        WHERE task_id IS NOT NULL AND symbol IS NOT NULL AND weight_ms > 0
        GROUP BY stack_id, index_name, symbol, frames, {", ".join(resources())}
        ORDER BY stack_id
        """
    ).fetchall()
    for index_name, symbol, frames, vector, state_ms, other_ms in rows:
        yield _Time((index_name, symbol), tuple(frames), tuple(vector), state_ms, other_ms)


def _stated(connection: duckdb.DuckDBPyConnection, run: Path) -> Iterator[_Time]:
    """The functions that a training's trace itself names, with the time of their tasks; none for other runs.

    The run file does not say which task has which function, so the trace is read once more.
    """
    rows = connection.execute(
        f"""
        SELECT frames[1], index_name, symbol, [{", ".join(resources())}] FROM stacks
        WHERE symbol IS NOT NULL AND len(frames) = 1 AND NOT EXISTS (FROM samples)
        """
    ).fetchall()
    if not rows:
        return
    application = choose(discover([run]))
    trace = find(application.framework).reader.read(application.log)
    spent = (trace.tasks["finish_ms"] - trace.tasks["launch_ms"]).tolist()
    by_frame: dict[str, float] = defaultdict(float)
    for function, ms in zip(trace.task_functions, spent, strict=True):
        if function is not None:
            owner, name, line = function
            by_frame[f"{owner}.{name}" + (f":{line}" if line > 0 else "")] += ms
    for frame, index_name, symbol, vector in rows:
        yield _Time((index_name, symbol), (frame,), tuple(vector), 0.0, by_frame[frame])


def _functions(keys: Iterable[Key]) -> dict[Key, Decider]:
    """The rows of functions in their indexes, with times of 0."""
    by_index: dict[str, list[str]] = defaultdict(list)
    for index_name, symbol in keys:
        by_index[index_name].append(symbol)
    names, found = resources(), {}
    for index_name, symbols in by_index.items():
        with store.open_read_only(exports.locate(index_name), "index") as connection:
            rows = connection.execute(
                f"""
                SELECT symbol, qualified_name, file, first_line, last_line, confidence, [{", ".join(names)}]
                FROM functions WHERE list_contains(?::VARCHAR[], symbol)
                """,
                [symbols],
            ).fetchall()
        for symbol, name, file, first, last, confidence, vector in rows:
            label = names[vector.index(max(vector))]
            found[index_name, symbol] = Decider(
                *(index_name, symbol, name, file, first, last, label, confidence, tuple(vector)),
                *(0.0, 0.0, 0.0, 0.0, (), 0),
            )
    return found


def with_texts(found: Sequence[Decider], say: Callable[[str], None] = lambda _: None) -> list[Decider]:
    """The functions with their texts, those with one first.

    Functions whose label decides no time get none; reserved ones neither, and their files are not parsed.
    """
    texts: dict[Key, Decider] = {}
    open_ = [each for each in found if each.ms > 0 and not is_held_out(each.index, each.file)]
    for index_name in dict.fromkeys(each.index for each in open_):
        wanted = [each for each in open_ if each.index == index_name]
        try:
            its = _texts(index_name, wanted)
        except CrystalPerfError as error:
            say(f"{index_name}: no source: {error}")
            continue
        say(f"{index_name}: the texts of {len(its)} of {len(wanted)} functions")
        texts |= {(each.index, each.symbol): each for each in its}
    return sorted(
        (texts.get((each.index, each.symbol), each) for each in found),
        key=lambda each: (not each.readable, -each.ms, -each.state_ms, each.index, each.symbol),
    )


def _texts(index_name: str, wanted: Sequence[Decider]) -> Sequence[Decider]:
    """The wanted functions of an index that its source has at their place."""
    places = {(each.file, each.first_line, each.last_line, each.qualified_name): each for each in wanted}
    files = {each.file for each in wanted}
    source = source_at_hand(index_name) or known_source(index_name, [])
    lines: dict[str, list[str]] = {}

    def texts() -> Iterator[tuple[str, Language, bytes]]:
        for each in source.files([]):
            if each.file in files:
                lines[each.file] = each.text.decode("utf-8", "replace").split("\n")
                yield each.file, each.language, each.text

    found: dict[str, Decider] = {}
    for parsed in parse_files(texts()):
        for function in parsed.functions:
            place = (parsed.file, function.first_line, function.last_line, function.qualified_name)
            if (its := places.get(place)) is not None:
                own = lines[parsed.file][function.first_line - 1 : function.last_line]
                found[its.symbol] = replace(
                    its, readable=True, text_hash=text_hash(own), doc=function.doc, code=function.code
                )
    return list(found.values())


def totals(found: Sequence[Decider]) -> Mapping[str, float]:
    """Sums over functions, in ms: decided by labels, by calls, by the state of threads, and by readable labels."""
    return {
        "label_ms": sum(each.ms for each in found),
        "called_ms": sum(each.called_ms for each in found),
        "state_ms": sum(each.state_ms for each in found),
        "readable_ms": sum(each.ms for each in found if each.readable),
    }
