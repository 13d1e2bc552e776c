"""Which frame of a stack should decide what its time went to: rules compared on the machine's truth.

The paper's §4.1 takes the topmost frame of the framework whose source is known.  Beside it stand what CrystalPerf ships
and what else the index would allow, on the same samples of the same base runs: once as the paper uses them, a stage's
vector being the mean of its samples' labels, and once as one part of a profile, bounded by what else was measured.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np

from crystalperf.indexes import resources
from crystalperf.query.attribution.code.resolve import load_indexes, resolve
from crystalperf.query.frameworks.registry import get
from crystalperf.query.inputs.discover import discover
from crystalperf.query.runfile.pipeline import recorded_times, with_parts
from crystalperf.query.trace.contract import Trace
from lab.runs.suites import Suite
from lab.runs.sweep import read_rows
from lab.score.vectors import Floats, Off, average, compare, load_samples, points, profiled, shares, truth_of

PASSED_OVER = ("unit", "idle", "scaffolding", "wait", "collection", "generated")
"""Roles of frames that say nothing of what their time went to."""


@dataclass(frozen=True)
class Frame:
    """A frame that an index knows: its vector over the resources, whether it is a library's, and whether its role
    lets it decide."""

    vector: Floats
    is_library: bool
    speaks: bool


Stack = list[Frame]
"""The known frames of a stack, leaf first."""

Rule = Callable[[Stack], Floats | None]


def as_printed(stack: Stack) -> Floats | None:
    """The topmost frame of the framework, runners and waits alike."""
    return next((frame.vector for frame in stack if not frame.is_library), None)


def framework_first(stack: Stack) -> Floats | None:
    """The topmost frame of the framework that speaks, else of a library."""
    speaking = [frame for frame in stack if frame.speaks]
    own = [frame for frame in speaking if not frame.is_library]
    return next((frame.vector for frame in own or speaking), None)


def leaf(stack: Stack) -> Floats | None:
    """The topmost frame that speaks, of whatever index."""
    return next((frame.vector for frame in stack if frame.speaks), None)


def mean(stack: Stack) -> Floats | None:
    """All frames that speak, alike."""
    vectors = [frame.vector for frame in stack if frame.speaks]
    return np.mean(vectors, axis=0) if vectors else None


def halving(stack: Stack) -> Floats | None:
    """All frames that speak, each weighing half of the one above it."""
    vectors = [frame.vector for frame in stack if frame.speaks]
    return np.average(vectors, axis=0, weights=0.5 ** np.arange(len(vectors))) if vectors else None


RULES: dict[str, Rule] = {
    "topmost frame of the framework (§4.1 as printed)": as_printed,
    "the same without scaffolding, waits, collections": framework_first,
    "topmost frame of any index (library leaf)": leaf,
    "mean of the whole stack": mean,
    "whole stack, weights halving from the leaf": halving,
}
SHIPPED = "shipped: the second, and the device where the JDK calls the kernel for one"


def known_stacks(connection: duckdb.DuckDBPyConnection) -> dict[int, Stack]:
    """The stacks of a run in memory, by number, with what the indexes know that it was made with."""
    (names,) = connection.execute("SELECT value FROM run.metadata WHERE key = 'indexes'").fetchall()[0]
    rows = connection.execute("SELECT stack_id, frames FROM stacks").fetchall()
    texts = list(dict.fromkeys(text for _, frames in rows for text in frames))
    parsed = [_parsed(text) for text in texts]
    frames = {  # noqa: F841 (read by DuckDB)
        "frame_id": np.arange(len(texts), dtype=np.int32),
        "class_name": np.array([each[0] for each in parsed], dtype=object),
        "method": np.array([each[1] for each in parsed], dtype=object),
        "line": np.array([each[2] for each in parsed], dtype=np.int32),
    }
    connection.execute("CREATE TEMP TABLE frames AS SELECT * FROM frames")
    loaded = load_indexes(connection, json.loads(names), "frames")
    found = resolve(connection, "frames", loaded)
    framework = get("spark")
    own = set(
        framework.reader.frames.sources(connection.execute("SELECT framework_version FROM runs").fetchall()[0][0])
    )
    columns = ", ".join(f"functions.{name}" for name in resources())
    known: dict[int, Frame] = {}
    rows_found = connection.execute(
        f"SELECT frame_id, index_name, {columns}"
        f" FROM {found} JOIN {loaded.functions} AS functions USING (turn, function_id)"
    ).fetchall()
    for frame_id, name, *vector in rows_found:
        role = framework.reader.frames.annotate(*parsed[frame_id][:2])
        known[frame_id] = Frame(np.array(vector), name not in own, role not in PASSED_OVER)
    number = {text: position for position, text in enumerate(texts)}
    return {stack: [known[number[text]] for text in frames if number[text] in known] for stack, frames in rows}


def _parsed(text: str) -> tuple[str, str, int]:
    name, _, line = text.rpartition(":")
    if not name or not line.isdigit():
        name, line = text, "0"
    owner, _, method = name.rpartition(".")
    return owner, method, int(line)


def label_vectors(connection: duckdb.DuckDBPyConnection) -> dict[str, Floats]:
    """A stage's vector as the paper has it: its samples' labels, whatever their threads' states."""
    labels = [f"sum(weight_ms * coalesce({name}, 0))" for name in resources()]
    other = "sum(weight_ms * (deciding_depth IS NULL)::INTEGER)"
    return shares(connection, f"SELECT group_id, {', '.join(labels)}, {other} FROM unit_samples GROUP BY ALL")


def profile_vectors(connection: duckdb.DuckDBPyConnection, trace: Trace) -> dict[str, Floats]:
    """A stage's vector as a profile would have it; the lab's recorders see threads in every state."""
    units = trace.units
    columns = with_parts(trace, recorded_times(connection, trace, set(units["worker_id"].tolist())))
    parts = np.stack([np.ma.filled(columns[f"{name}_ms"], 0.0) for name in (*resources(), "other")], axis=1)
    succeeded = np.asarray(units["status"]) == "succeeded"
    sums: dict[str, Floats] = {}
    for group, part in zip(units["group_id"][succeeded].tolist(), parts[succeeded], strict=True):
        sums[group] = sums.get(group, np.zeros(parts.shape[1])) + part
    return {group: each / each.sum() for group, each in sums.items() if each.sum() > 0}


def rule_table(suites: Iterable[Suite], out: Path, kept: Path) -> str:
    """Mean absolute error of each share over the stages of all base runs, in points, by recorder and rule, as a
    Markdown table; empty without base runs.

    `kept` is a folder for run files.
    """
    kept.mkdir(parents=True, exist_ok=True)
    found: dict[tuple[str, str], tuple[list[Off], list[Off]]] = {}
    for row in itertools.chain.from_iterable(read_rows(out, each) for each in suites):
        if row["role"] != "base" or row["sampler"] == "none" or not (out / row["event_log"]).exists():
            continue
        truth = truth_of(out / row["run"], row, out)
        run = profiled(row, out, kept)
        trace = get("spark").reader.read(discover([out / row["event_log"]]).applications[0].log)
        with duckdb.connect() as connection:
            load_samples(connection, run)
            stacks = known_stacks(connection)
            for name, rule in {SHIPPED: None, **RULES}.items():
                if rule is not None:
                    _decide(connection, {stack: rule(frames) for stack, frames in stacks.items()})
                labels, profile = found.setdefault((f"{row['sampler']} {row['sample_ms']} ms", name), ([], []))
                labels += compare(label_vectors(connection), truth)
                profile += compare(profile_vectors(connection, trace), truth)
    lines = [
        f"| recorder | rule | labels alone: {' / '.join((*resources(), 'other'))} | in the profile |",
        "|---|---|---|---|",
    ]
    for recorder in sorted({key[0] for key in found}, reverse=True):
        for name in (*RULES, SHIPPED):
            sides = (points(average(rows, [abs(each.error) for each in rows])) for rows in found[recorder, name])
            lines.append(f"| {recorder} | {name} | {' | '.join(sides)} |")
    return "\n".join(lines) if found else ""


def _decide(connection: duckdb.DuckDBPyConnection, vectors: Mapping[int, Floats | None]) -> None:
    """Let these vectors be those of the stacks in memory."""
    decided = {stack: vector for stack, vector in vectors.items() if vector is not None}
    columns = {  # noqa: F841 (read by DuckDB)
        "stack_id": np.array(list(decided), dtype=np.int32),
        **{name: np.array([each[place] for each in decided.values()]) for place, name in enumerate(resources())},
    }
    nothing = ", ".join(f"{name} = NULL" for name in resources())
    values = ", ".join(f"{name} = columns.{name}" for name in resources())
    connection.execute(f"UPDATE stacks SET deciding_depth = NULL, {nothing}")
    connection.execute(
        f"UPDATE stacks SET deciding_depth = 0, {values} FROM columns WHERE columns.stack_id = stacks.stack_id"
    )
