"""A recording's place in the run: the worker that it is of, and the units that its threads worked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from crystalperf.query.attribution.code.decide import NumberedStacks
from crystalperf.query.attribution.samples.align import Seen, assign, clock_shift, named_unit_at, unit_at
from crystalperf.query.attribution.samples.loads import process_loads
from crystalperf.query.attribution.samples.threadloads import thread_loads
from crystalperf.query.attribution.samples.threadtime import KINDS, ThreadTime, sees_all, thread_time
from crystalperf.query.inputs.reader import ReadableFramework
from crystalperf.query.recordings import jfr
from crystalperf.query.trace.contract import Trace
from crystalperf.query.trace.records import Columns, Floats, Ints, Problems, objects

ADRIFT = 0.05
"""Time sampled in units that could be tied to none is worth a word from this share."""


@dataclass(frozen=True)
class Placed:
    """One recording placed in the run: its rows of `samples`, with units where threads worked for one, `loads` and
    `thread_loads`."""

    worker_id: str | None
    clock_offset_ms: float
    pid: int | None
    rows: Columns
    loads: Columns
    thread_loads: Columns
    sees_all: bool


def place(
    name: str,
    recording: jfr.Recording,
    trace: Trace,
    table: NumberedStacks,
    framework: ReadableFramework,
    problems: Problems,
) -> Placed | None:
    """Find the worker and the units of a recording; None where it belongs to another application."""
    for each in recording.problems:
        problems.add(each.name, each.severity, name, each.first_place, each.meaning, each.count)
    units, start_of_run_ms = trace.units, float(trace.run["started_at_ms"])
    arguments = recording.jvm.java_arguments if recording.jvm else None
    process = (
        None if framework.reader.frames.process is None else framework.reader.frames.process(arguments, Path(name).name)
    )
    if process is None:
        why = f"a recording of a process that is not {framework.name}'s"
        if recording.jvm is None:
            why = "neither the recording, whose end is missing or damaged, nor its name says of which process it is"
        problems.add("foreign recording", "info", name, None, f"{why}; left out")
        return None
    app_id, worker_id = process
    if app_id is not None and app_id != trace.run["app_id"]:
        problems.add("other application", "info", name, None, f"a recording of application {app_id}; left out")
        return None
    numbers = table.add(recording)
    time = thread_time(recording)
    start_ms = time.start_ms - start_of_run_ms
    # A coordinator may name no application, but its clock is the log's.
    if app_id is None and len(start_ms) and (start_ms.max() < 0 or start_ms.min() > float(trace.run["duration_ms"])):
        problems.add("other time", "info", name, None, "a recording of another time than the log's; left out")
        return None
    stack = numbers[time.stack]
    idle = table.has_role("idle")[stack]
    in_unit = table.has_role("unit")[stack] & ~idle
    cut = np.array(table.truncated, dtype=bool)[stack] & ~idle
    in_unit |= cut & np.isin(time.thread, np.unique(time.thread[in_unit]))  # its root, the unit's frame, was cut off

    mine = np.flatnonzero(np.array([each == worker_id for each in units["worker_id"]], dtype=bool))
    mine = mine[np.argsort(np.asarray(units["launch_ms"])[mine], kind="stable")]
    launch = np.asarray(units["launch_ms"], dtype=np.float64)[mine]
    finish = np.asarray(units["finish_ms"], dtype=np.float64)[mine]
    seen = _seen(time, start_ms, in_unit, in_unit | idle)
    names = [framework.reader.frames.unit_thread(each.java_name or each.os_name) for each in recording.threads]
    unit_names = [trace.unit_threads[each] for each in mine] if trace.unit_threads else []
    if trace.unit_threads:
        position = named_unit_at(time.thread, names, start_ms, unit_names, launch, finish)
        shift, in_unit = 0.0, (position >= 0) & ~idle
    else:
        shift = clock_shift(seen, launch, finish)
        seen = Seen(seen.thread, seen.start_ms + shift, seen.end_ms + shift, seen.in_unit)
        position = unit_at(time.thread, start_ms + shift, assign(seen, launch, finish), launch, finish)
    known = (position >= 0) & in_unit
    ids = np.asarray(units["unit_id"], dtype=np.int64)[mine]
    unit_id = np.ma.MaskedArray(ids[np.maximum(position, 0)] if len(ids) else np.zeros(len(known), np.int64), ~known)
    adrift = float(time.weight_ms[in_unit & ~known].sum())
    total = float(time.weight_ms[in_unit].sum())
    if total > 0 and adrift > ADRIFT * total:
        word = framework.vocabulary.unit
        problems.add(
            f"samples without a {word}", "data loss", name, None,
            f"{100 * adrift / total:.0f} % of the time sampled in {framework.vocabulary.units} is tied to none of them",
        )  # fmt: skip
    thread_names = [f"{each.java_name or each.os_name}#{each.java_tid}" for each in recording.threads]
    rows: Columns = {
        "time_ms": start_ms + shift,
        "worker_id": objects([worker_id] * len(time.thread)),
        "thread": objects([thread_names[each] for each in time.thread.tolist()]),
        "stack_id": stack,
        "kind": objects([KINDS[each] for each in time.kind.tolist()]),
        "weight_ms": time.weight_ms,
        "bytes": np.ma.MaskedArray(time.bytes, time.bytes == 0),
        "unit_id": unit_id,
    }
    pid, offset_ms = recording.jvm.pid if recording.jvm else None, shift - start_of_run_ms
    of_threads, dated = thread_loads(recording, worker_id, offset_ms, thread_names)
    thread_of = {name: number for number, name in enumerate(thread_names)}
    threads = np.array([thread_of[each] for each in of_threads["thread"].tolist()], dtype=np.int64)
    # A unit that began late in an interval was not there in its middle, one that ended with its thread not at its end.
    middle_ms = (of_threads["start_ms"] + of_threads["end_ms"]) / 2
    middle, end = (
        named_unit_at(threads, names, moment_ms, unit_names, launch, finish)
        for moment_ms in (middle_ms, of_threads["end_ms"])
    )
    of_threads = _from_launch(of_threads, dated, np.where(end >= 0, end, middle), ids, launch)
    return Placed(
        worker_id, shift, pid, rows, process_loads(recording, worker_id, offset_ms), of_threads, sees_all(recording)
    )


def _from_launch(
    of_threads: Columns, dated: NDArray[np.bool_], position: Ints, ids: Ints, launch_ms: Floats
) -> Columns:
    """The rows with the units at their `position` among `ids`, -1 for none: a unit's thread began with it.

    So a unit also dates what has no start of its own; what nothing dates is left out.
    """
    kept = dated | (position >= 0)
    of_threads, position = {name: column[kept] for name, column in of_threads.items()}, position[kept]
    end_ms, of_unit = of_threads["end_ms"], position >= 0
    if not of_unit.any():
        none = np.ma.MaskedArray(np.zeros(len(position), np.int64), np.ones(len(position), dtype=np.bool_))
        return {**of_threads, "unit_id": none}
    begun_ms = np.where(of_unit, launch_ms[np.maximum(position, 0)], -np.inf)
    start_ms = np.maximum(of_threads["start_ms"], np.minimum(begun_ms, end_ms - 1.0))
    return {
        **of_threads,
        "start_ms": start_ms,
        "cpu_ms": of_threads["cpu_ms"] * (end_ms - start_ms) / (end_ms - of_threads["start_ms"]),
        "unit_id": np.ma.MaskedArray(ids[np.maximum(position, 0)], ~of_unit),
    }


def _seen(time: ThreadTime, start_ms: Floats, in_unit: NDArray[np.bool_], known: NDArray[np.bool_]) -> Seen:
    return Seen(
        thread=time.thread[known],
        start_ms=start_ms[known],
        end_ms=(start_ms + time.weight_ms)[known],
        in_unit=in_unit[known],
    )
