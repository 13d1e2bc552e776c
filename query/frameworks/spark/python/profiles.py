"""Profiles of Python workers as tables of a Spark run: spark_python_times, _functions and _memory.

Samples with Unix times belong to the stages whose tasks ran at that time.  Without times, the user's functions in a
stack identify its stage, because plans name them; the rest is shared out in proportion to the time that tasks waited.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from crystalperf.indexes.frozen import frozen
from crystalperf.query.frameworks.spark import frames
from crystalperf.query.frameworks.spark.python import clock, worker_frames
from crystalperf.query.frameworks.spark.python.calls import add_calls
from crystalperf.query.frameworks.spark.python.memory_lines import memory_lines
from crystalperf.query.frameworks.spark.python.stages import PythonStage, python_stages, running, sharing
from crystalperf.query.frameworks.spark.python.tables import FunctionTime, PythonTables
from crystalperf.query.frameworks.spark.python.worker_frames import Frame, Placed
from crystalperf.query.inputs.reader import Labels, StackLabel
from crystalperf.query.trace.contract import Trace
from crystalperf.query.trace.records import Floats, Ints, Problems, RunTables

if TYPE_CHECKING:
    from crystalperf.query.recordings import jfr
    from crystalperf.query.recordings.profiles import Profile
    from crystalperf.query.recordings.stacktable import Collapsed

SAMPLE_MS = 10.0
"""The time of a sample if the file does not state its rate: py-spy's default is 100 samples per second."""

MIN_IDLE = 0.1
"""Share of samples between tasks from which on a profile has waiting threads, too."""


@frozen
class _Stack:
    """A sampled stack of a worker within a task; `times_ms` are since the start of the run, None without times."""

    frames: tuple[Frame, ...]
    placed: Placed
    weight_ms: float
    times_ms: Floats | None = None


def read(profiles: Sequence[tuple[str, Profile]], trace: Trace, problems: Problems, labels: Labels) -> RunTables:
    """The tables of Python workers; `problems` says how each file is used, `labels` what the code of users uses."""
    from crystalperf.query.recordings.memory_profile import MemoryProfile
    from crystalperf.query.recordings.pstats import CallProfile

    stages = python_stages(trace)
    found = PythonTables()
    waiting: list[tuple[str, str | None, _Stack]] = []
    for path, profile in profiles:
        name = Path(path).name
        if not stages:
            meaning = "a profile of Python workers, but no stage of this run has any; left out"
        elif isinstance(profile, CallProfile):
            meaning = add_calls(name, profile, stages, found)
        elif isinstance(profile, MemoryProfile):
            lines, meaning = memory_lines(name, profile, stages)
            found.memory += lines
        else:
            app_id, worker = _process(name)
            if app_id is not None and app_id != trace.run["app_id"]:
                problems.add("other application", "info", path, None, f"a profile of application {app_id}; left out")
                continue
            stacks, assumed = _stacks(profile, stages, trace)
            waiting += [(name, worker, each) for each in stacks]
            meaning = _described(stacks, assumed)
        problems.add("python profile", "info", path, None, meaning)
    # Stacks with a function of the user first: what they leave of a stage's waiting is for those without one.
    waiting.sort(key=lambda each: each[2].placed.function is None)
    of_users = [each for _, _, each in waiting if each.placed.part == "user"]
    label_of = dict(zip(map(id, of_users), _labels([_user_part(each) for each in of_users], labels), strict=True))
    for name, worker, each in waiting:
        _add_stack(name, worker, each, label_of.get(id(each)), stages, found)
    return found.tables()


def _process(name: str) -> tuple[str | None, str | None]:
    """The application and the executor in the name of a file, None for those that it does not have."""
    app_id, worker = frames.process(None, name) or (None, None)
    return app_id, worker


def _described(stacks: Sequence[_Stack], assumed: bool) -> str:
    """How a profile is used, one sentence."""
    if not stacks:
        return "a profile of Python workers without a stack of a task; record while tasks run"
    timed = all(each.times_ms is not None for each in stacks)
    how = "by their times" if timed else "by the functions in them, because their times are unknown"
    rate = f"; 1 sample is {SAMPLE_MS:.0f} ms, because the file does not state its rate" if assumed else ""
    return f"samples of Python workers, attributed to stages {how}{rate}"


# Stacks ---------------------------------------------------------------------------------------------------------------


def _stacks(
    profile: Collapsed | jfr.Recording, stages: Sequence[PythonStage], trace: Trace
) -> tuple[list[_Stack], bool]:
    """The stacks of tasks in a profile, and whether the time of a sample is assumed."""
    from crystalperf.query.recordings.stacktable import Collapsed

    recording = profile.recording if isinstance(profile, Collapsed) else profile
    keys = _keys(recording)
    offsets, index = recording.stacks.offsets.tolist(), recording.stacks.frame_index.tolist()
    every = [tuple(keys[each] for each in index[start:end]) for start, end in pairwise(offsets)]
    if isinstance(profile, Collapsed):
        weights = profile.weight * (SAMPLE_MS if profile.unit_ms is None else profile.unit_ms)
    else:
        samples = profile.samples
        at_ms = samples.time_ns / 1e6 - float(trace.run["started_at_ms"])
        during = running(stages, at_ms) > 0  # others are of another run, or of no task
        each_ms = samples.period_ns[during] / 1e6
        weights = np.bincount(samples.stack[during], each_ms, minlength=len(every)).astype(np.float64)
    idle = _has_idle(every, weights)
    places = [worker_frames.placed(each, idle) for each in every]
    if isinstance(profile, Collapsed):
        times = _ordered_times(profile, places, stages, float(trace.run["duration_ms"])) if idle else None
    else:
        times = _by_stack(samples.stack[during].astype(np.int64), at_ms[during], len(every))
    found = [
        _Stack(stack, place, weight, None if times is None else times[number])
        for number, (stack, place, weight) in enumerate(zip(every, places, weights.tolist(), strict=True))
        if place is not None and weight > 0
    ]
    return found, isinstance(profile, Collapsed) and profile.unit_ms is None


def _ordered_times(
    profile: Collapsed, places: Sequence[Placed | None], stages: Sequence[PythonStage], until_ms: float
) -> list[Floats] | None:
    """The times of each stack's samples by their order in each worker; None if a worker's start is unknown."""
    in_task = np.array([each is not None and each.part != "start" for each in places], dtype=np.float64)
    stacks, times = [], []
    for thread in profile.threads:
        busy = in_task[thread.stack] * thread.weight
        if not busy.any():
            continue
        at_ms = np.cumsum(thread.weight) - thread.weight
        begun = clock.start_ms(at_ms, busy, stages, until_ms)
        if begun is None:
            return None
        stacks.append(thread.stack)
        times.append(at_ms + begun)
    return _by_stack(np.concatenate(stacks), np.concatenate(times), len(places)) if stacks else None


def _by_stack(stack: Ints, times_ms: Floats, count: int) -> list[Floats]:
    """The times of samples by the number of their stack."""
    order = np.argsort(stack, kind="stable")
    found: list[Floats] = np.split(times_ms[order], np.cumsum(np.bincount(stack, minlength=count))[:-1])
    return found


def _keys(recording: jfr.Recording) -> list[Frame]:
    read = recording.frames
    rows = zip(read.class_id.tolist(), read.method_id.tolist(), read.line.tolist(), strict=True)
    return [(read.class_names[of], read.method_names[method], line) for of, method, line in rows]


def _has_idle(stacks: Sequence[Sequence[Frame]], weights: Floats) -> bool:
    """Whether a profile has threads that wait, by the workers and daemons in it that wait for a task."""
    of_workers = [any(worker_frames.is_worker(file, name) for file, name, _ in stack) for stack in stacks]
    between = [worker_frames.is_between_tasks(each) for each in stacks]
    return bool(weights[np.array(between)].sum() > MIN_IDLE * weights[np.array(of_workers)].sum())


def _labels(stacks: Sequence[Sequence[Frame]], labels: Labels) -> list[StackLabel | None]:
    """The labels of stacks.  An index of one folder has files without the path that a profile may have, so files are
    looked up below the folder that Python imports from, and where that finds nothing by their whole path."""
    short = [[(worker_frames.below_packages(file), name, line) for file, name, line in each] for each in stacks]
    return [one or other for one, other in zip(labels(short), labels(stacks), strict=True)]


def _user_part(stack: _Stack) -> Sequence[Frame]:
    """The frames of a stack from its leaf to the outermost function of the user, which PySpark called."""
    outermost = stack.placed.function
    place = len(stack.frames) - 1 - stack.frames[::-1].index(outermost) if outermost is not None else 0
    return stack.frames[: place + 1]


def _add_stack(
    name: str,
    worker: str | None,
    stack: _Stack,
    label: StackLabel | None,
    stages: Sequence[PythonStage],
    found: PythonTables,
) -> None:
    """Share a stack out to stages, by its times or by its functions."""
    users = _user_functions(stack)
    placed = stack.placed
    names = [worker_frames.simple(function) for _, function, _ in users]
    workers = None if worker is None else {worker}
    shares, how = sharing(stages, workers, names, placed.arrow, stack.times_ms)
    for stage, share in shares:
        ms = share * stack.weight_ms
        found.add_time((stage.stage_id, worker, placed.part, how, "samples", name), ms)
        if placed.part in ("user", "serialization"):
            _give(stage, worker, ms)
        if placed.part == "user" and placed.function is not None:
            _add_functions(found, stage, placed.function, users or [placed.function], name, ms)
            found.add_label((stage.stage_id, worker_frames.named((users or [placed.function])[0])), label, name, ms)


def _give(stage: PythonStage, worker: str | None, ms: float) -> None:
    """Note that time of a stage is attributed, to all its executors in proportion if none is known."""
    whole = sum(stage.waited_ms.values())
    for each, waited in stage.waited_ms.items():
        if worker in (None, each):
            stage.given_ms[each] = stage.given_ms.get(each, 0.0) + (ms if worker else ms * waited / whole)


def _user_functions(stack: _Stack) -> list[Frame]:
    """The user's functions in a stack, the innermost first."""
    return [each for each in stack.frames if worker_frames.owner(each[0]) == "user"]


def _add_functions(
    found: PythonTables, stage: PythonStage, udf: Frame, users: Sequence[Frame], origin: str, ms: float
) -> None:
    """Add the time of a stack to the innermost of the user's functions, and once to each of them."""
    seen: set[tuple[str, str]] = set()
    for place, frame in enumerate(users):
        file, function, line = frame
        key = stage.stage_id, worker_frames.named(udf), worker_frames.named(frame), file, "samples", origin
        each = found.functions.setdefault(key, FunctionTime())
        if place == 0:
            each.own_ms += ms
            each.lines_ms[line] = each.lines_ms.get(line, 0.0) + ms
        if (file, function) not in seen:
            each.total_ms += ms
        seen.add((file, function))
