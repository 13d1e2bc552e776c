"""Compare critical paths of steps with those of HTA: `python -m lab.checks.critical TRACE… [--step N]`.

HTA (Holistic Trace Analysis, `pip install HolisticTraceAnalysis 'pandas<3'`) finds the heaviest path through the work
that a step launched, even if that work ran after the step.  Our path covers the step's own time.  So the comparison is
by moments of the step: is the path on the host or on an accelerator?  HTA has no place for the time between two
operators of a thread, which has no weight, and for its delays.

HTA's path is of the step with the profiler, and so is ours here; elsewhere steps are without it (untraced.py).  The
time for which the accelerator was busy in all steps is compared too, from HTA's table of the trace.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import crystalperf as cp
from crystalperf.query.frameworks.ml.pytorch import untraced
from crystalperf.query.frameworks.ml.training.servers import union_ms
from lab.errors import LabError
from lab.pages import head

HOST, DEVICE, UNKNOWN = "host", "device", ""


@dataclass(frozen=True)
class Part:
    """A segment of a path, ms after the step's start, and where it is: HOST, DEVICE or UNKNOWN (unknown)."""

    start_ms: float
    end_ms: float
    where: str


@dataclass(frozen=True)
class Found:
    """HTA's path: its parts in order, the sum of its weights, and how much of that is delays between kernels.

    `busy_ms` is how long kernels ran in its steps together, which take `window_ms`: it leaves out the last one.
    """

    parts: list[Part]
    weight_ms: float
    delays_ms: float
    busy_ms: float
    window_ms: float


def theirs(trace: Path, step: str) -> Found:
    """HTA's path for a step.  Raises LabError if HTA is missing or fails."""
    try:
        analysis: Any = importlib.import_module("hta.trace_analysis")
    except ImportError:
        raise LabError("HTA is not installed; pip install HolisticTraceAnalysis into this environment") from None
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        try:
            found = analysis.TraceAnalysis(trace_files={0: str(trace.absolute())}, trace_dir="")
            instance, begin_us = _instance(found.t, f"ProfilerStep#{step}")
            graph, worked = found.critical_path_analysis(rank=0, annotation="ProfilerStep", instance_id=instance)
        except Exception as error:  # it raises whatever pandas and networkx do
            raise LabError(f"HTA fails ({type(error).__name__}: {str(error)[:80]})") from error
    if not worked:
        raise LabError("HTA finds no path")
    return _path(graph, begin_us, *_busy_ms(found.t))


def _busy_ms(trace: Any) -> tuple[float, float]:
    """The union of kernels and copies between the first step's begin and the last one's end, and that time."""
    frame, numbers = trace.get_trace(0), trace.symbol_table.get_sym_id_map()
    marks = frame[frame.name.isin([number for mark, number in numbers.items() if "ProfilerStep" in mark])]
    begin, end = marks[marks.stream == -1].ts.min(), (marks.ts + marks.dur)[marks.stream == -1].max()
    # The GPU's own marks of steps and annotations are on streams too, but belong to no launch.
    ran = frame[(frame.stream >= 0) & (frame.correlation > 0)]
    spans = zip(ran.ts.clip(begin, end), (ran.ts + ran.dur).clip(begin, end), strict=True)
    busy = union_ms((float(start) / 1e3, float(until) / 1e3) for start, until in spans)
    return busy, float(end - begin) / 1e3


def _instance(trace: Any, name: str) -> tuple[int, float]:
    """The position of the host's step mark of that name in HTA's order, and its start, µs."""
    frame, numbers = trace.get_trace(0), trace.symbol_table.get_sym_id_map()
    marks = frame[frame.name.isin([number for mark, number in numbers.items() if "ProfilerStep" in mark])]
    for place, (mark, stream, begin_us) in enumerate(zip(marks.name, marks.stream, marks.ts, strict=True)):
        if mark == numbers[name] and stream == -1:
            return place, float(begin_us)
    raise LabError(f"HTA has no step {name}")


def _path(graph: Any, begin_us: float, busy_ms: float, window_ms: float) -> Found:
    parts = []
    weights: dict[str, float] = defaultdict(float)
    nodes = [graph.node_list[each] for each in graph.critical_path_nodes]
    for source, target in pairwise(nodes):
        edge = graph.edges[source.idx, target.idx]["object"]
        weights[edge.type.name] += float(edge.weight)
        where = UNKNOWN
        if edge.type.name == "OPERATOR_KERNEL" and edge.weight > 0:
            where = HOST if graph.trace_df.stream.loc[target.ev_idx] == -1 else DEVICE
        parts.append(Part((source.ts - begin_us) / 1e3, (target.ts - begin_us) / 1e3, where))
    return Found(parts, sum(weights.values()) / 1e3, weights["KERNEL_KERNEL_DELAY"] / 1e3, busy_ms, window_ms)


def ours(run: cp.Run, scope: str) -> list[Part]:
    """Our path of the same step; its parts cover the step without gaps."""
    statement = "SELECT DISTINCT stage_id, accelerator FROM tasks JOIN training_devices USING (worker_id)"
    on_device: dict[str, bool] = {str(stage): bool(accelerator) for stage, accelerator in run.sql(statement).rows}
    path = run.debug(scope).critical_path
    begin_ms = path[0].start_ms
    return [
        Part(
            each.start_ms - begin_ms,
            each.end_ms - begin_ms,
            UNKNOWN if each.id not in on_device else DEVICE if on_device[each.id] else HOST,
        )
        for each in path
    ]


def busy_ms(run: cp.Run, window_ms: float) -> float:
    """How long an operation ran on an accelerator in the first part of a run."""
    statement = """
        SELECT launch_ms, finish_ms FROM tasks JOIN training_devices USING (worker_id)
        JOIN training_operations USING (task_id) WHERE accelerator AND kind <> 'runtime'"""
    return union_ms((float(start), min(float(end), window_ms)) for start, end in run.sql(statement).rows)


def together(one: Iterable[Part], other: Iterable[Part]) -> Mapping[tuple[str, str], float]:
    """The time of each pair of places on the two paths, ms; both paths are in order of time."""
    found: dict[tuple[str, str], float] = defaultdict(float)
    rest = [each for each in other if each.end_ms > each.start_ms]
    for each in one:
        while rest and rest[0].end_ms <= each.start_ms:
            rest.pop(0)
        for compared in rest:
            if compared.start_ms >= each.end_ms:
                break
            shared = min(each.end_ms, compared.end_ms) - max(each.start_ms, compared.start_ms)
            found[each.where, compared.where] += max(shared, 0.0)
    return found


def row(trace: Path, number: int, scratch: Path) -> str:
    """A row of the table; the reason, if one of the two has no path."""
    kept = scratch / "run.duckdb"
    kept.unlink(missing_ok=True)
    with patch.object(untraced, "retime", return_value=None):
        run = cp.profile([trace], output=kept)
    scopes = [each.id for each in run.debug().scopes]
    if number >= len(scopes):
        return f"| {trace.name} | has {len(scopes)} steps | | | | | | | |"
    mine = ours(run, scopes[number])
    length_ms = mine[-1].end_ms
    try:
        its = theirs(trace, scopes[number].removeprefix("step:"))
    except LabError as error:
        return f"| {trace.name} | {length_ms:.2f} | {error} | | | | | | |"
    compared = together(mine, its.parts)
    same = sum(ms for (one, other), ms in compared.items() if one == other != UNKNOWN) / length_ms
    apart = sum(ms for (one, other), ms in compared.items() if UNKNOWN not in (one, other) and one != other) / length_ms
    return (
        f"| {trace.name} | {length_ms:.2f} | {its.parts[0].start_ms:.2f} to {its.parts[-1].end_ms:.2f} |"
        f" {its.weight_ms:.2f} | {its.delays_ms:.2f} | {100 * same:.0f} | {100 * apart:.0f} |"
        f" {100 * (1 - same - apart):.0f} | {its.busy_ms:.2f} and {busy_ms(run, its.window_ms):.2f} |"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m lab.checks.critical", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("traces", nargs="+", type=Path, metavar="TRACE", help="of PyTorch, one rank, with steps")
    parser.add_argument("--step", default=0, type=int, metavar="N", help="which of its steps, from 0")
    given = parser.parse_args(arguments)
    try:
        which = f"HTA {version('HolisticTraceAnalysis')}"
    except ModuleNotFoundError:
        which = "HTA"
    path = f"path of {which} [ms after the step's begin] | its sum [ms] | of that delays [ms]"
    print(
        "\n".join(head(f"trace | step [ms] | {path} | same % | other % | unknown % | busy, HTA and CrystalPerf [ms]"))
    )
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("CRYSTALPERF_HOME", folder)
        for trace in given.traces:
            print(row(trace, given.step, Path(folder)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
