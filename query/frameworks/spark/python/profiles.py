"""Profiles of Python workers as tables of a Spark run: spark_python_times and spark_python_functions.

Samples with Unix times belong to the stages whose tasks ran at that time.  Without times, the user's functions in a
stack identify its stage, because plans name them; the rest is shared out in proportion to the time that tasks waited.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from crystalperf.query.frameworks.spark import frames
from crystalperf.query.frameworks.spark.python import clock, worker_frames
from crystalperf.query.frameworks.spark.python.stages import PythonStage, python_stages, running, sharing
from crystalperf.query.frameworks.spark.python.worker_frames import Frame, Part, Placed
from crystalperf.query.trace.contract import Trace
from crystalperf.query.trace.records import Floats, Ints, Problems, RunTables, table

if TYPE_CHECKING:
    from crystalperf.query.recordings import jfr
    from crystalperf.query.recordings.pstats import CallProfile, FunctionCalls
    from crystalperf.query.recordings.stacktable import Collapsed

SAMPLE_MS = 10.0
"""The time of a sample if the file does not state its rate: py-spy's default is 100 samples per second."""

MIN_IDLE = 0.1
"""Share of samples between tasks from which on a profile has waiting threads, too."""

_UDF_FILE = re.compile(r"udf_(\d{1,18})(?:_perf)?\.pstats")
"""The name of Spark's dumps: `udf_7_perf.pstats` of the session's profiler, `udf_7.pstats` of the older one."""
_RDD_FILE = re.compile(r"rdd_\d+\.pstats")
_BUILTIN_READ = re.compile(r"method 'read\w*' of '_io|method 'recv\w*' of '_socket")
_BUILTIN_PICKLE = re.compile(r"pickle|_struct|method '(write|flush)' of '_io")
_MOST_FUNCTIONS = 200


@dataclass(frozen=True)
class _Stack:
    """A sampled stack of a worker within a task; `times_ms` are since the start of the run, None without times."""

    frames: tuple[Frame, ...]
    placed: Placed
    weight_ms: float
    times_ms: Floats | None = None


@dataclass
class _Function:
    """The time of a user's function in a stage, and of each of its lines."""

    calls: int | None = None
    own_ms: float = 0.0
    total_ms: float = 0.0
    lines_ms: dict[int, float] = field(default_factory=dict)


@dataclass
class _Tables:
    """The rows of both tables."""

    times: dict[tuple[str, str | None, Part, str, str, str], float] = field(default_factory=dict)
    functions: dict[tuple[str, str, str, str, str, str], _Function] = field(default_factory=dict)

    def add_time(self, key: tuple[str, str | None, Part, str, str, str], ms: float) -> None:
        self.times[key] = self.times.get(key, 0.0) + ms

    def tables(self) -> RunTables:
        rows = [(*key, ms) for key, ms in self.times.items() if ms > 0]
        ordered = sorted(self.functions.items(), key=lambda each: (each[0][0], -each[1].own_ms))
        functions = [
            (*key, max(each.lines_ms, key=each.lines_ms.__getitem__, default=0) or None, each.calls, each.own_ms,
             each.total_ms)
            for key, each in ordered
        ]  # fmt: skip
        return {
            "spark_python_times": table(
                "stage_id worker_id part matched_by recorder origin time_ms", rows, real="time_ms"
            ),
            "spark_python_functions": table(
                "stage_id udf function file recorder origin line calls own_ms total_ms", functions,
                whole="line calls", real="own_ms total_ms",
            ),
        }  # fmt: skip


def read(
    profiles: Sequence[tuple[str, Collapsed | jfr.Recording | CallProfile]], trace: Trace, problems: Problems
) -> RunTables:
    """The tables of Python workers; `problems` says how each file is used."""
    from crystalperf.query.recordings.pstats import CallProfile

    stages = python_stages(trace)
    found = _Tables()
    waiting: list[tuple[str, str | None, _Stack]] = []
    for path, profile in profiles:
        name = Path(path).name
        if not stages:
            meaning = "a profile of Python workers, but no stage of this run has any; left out"
        elif isinstance(profile, CallProfile):
            meaning = _add_calls(name, profile, stages, found)
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
    for name, worker, each in sorted(waiting, key=lambda each: each[2].placed.function is None):
        _add_stack(name, worker, each, stages, found)
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


def _add_stack(name: str, worker: str | None, stack: _Stack, stages: Sequence[PythonStage], found: _Tables) -> None:
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
    found: _Tables, stage: PythonStage, udf: Frame, users: Sequence[Frame], origin: str, ms: float
) -> None:
    """Add the time of a stack to the innermost of the user's functions, and once to each of them."""
    seen: set[tuple[str, str]] = set()
    for place, frame in enumerate(users):
        file, function, line = frame
        key = stage.stage_id, worker_frames.named(udf), worker_frames.named(frame), file, "samples", origin
        each = found.functions.setdefault(key, _Function())
        if place == 0:
            each.own_ms += ms
            each.lines_ms[line] = each.lines_ms.get(line, 0.0) + ms
        if (file, function) not in seen:
            each.total_ms += ms
        seen.add((file, function))


# Calls ----------------------------------------------------------------------------------------------------------------


def _add_calls(name: str, profile: CallProfile, stages: Sequence[PythonStage], found: _Tables) -> str:
    """Add a profile of cProfile, which Spark dumps for each UDF or RDD; returns how it is used."""
    match = _UDF_FILE.search(name)
    number = int(match[1]) if match else None
    called = {each.function for each in profile.functions}
    exact = [each for each in stages if any(number in ids for ids in each.functions.values())]
    of_rdd = _RDD_FILE.search(name) is not None
    chosen = exact or [each for each in stages if of_rdd and not each.functions]
    how = "function" if exact else "operator"
    if not chosen and number is None:
        chosen = [each for each in stages if called & set(each.functions)]
    if not chosen:
        return "a profile of Python functions of which no plan of this run has the id; left out"
    users = [each for each in profile.functions if each.file != "~" and worker_frames.owner(each.file) == "user"]
    whole = sum(each.weight_ms(None, left=False) for each in chosen)
    for stage in chosen:
        share = stage.weight_ms(None, left=False) / whole
        named = {each for each, ids in stage.functions.items() if number in ids} or called & set(stage.functions)
        for part, ms in _parts(profile.functions, whole_task=of_rdd):
            found.add_time((stage.stage_id, None, part, how, "calls", name), ms * share)
        for each in users[:_MOST_FUNCTIONS]:
            function = worker_frames.named((each.file, each.function, 0))
            udf = next(iter(sorted(named)), function)
            key = stage.stage_id, udf, function, each.file, "calls", name
            row = found.functions.setdefault(key, _Function(calls=0, lines_ms={each.line: 0.0}))
            row.calls = (row.calls or 0) + round(each.calls * share)
            row.own_ms += each.own_ms * share
            row.total_ms += each.total_ms * share
    return "calls and time of Python functions, by Spark's profiler; its own cost is in them"


def _parts(functions: Sequence[FunctionCalls], whole_task: bool) -> Iterator[tuple[Part, float]]:
    """The own time of functions by part; `whole_task` is whether PySpark's own are in the profile, as those of RDDs."""
    for each in functions:
        file = "" if each.file == "~" else each.file
        of = worker_frames.owner(file)
        if not whole_task:
            yield "user", each.own_ms
        elif of == "native" and _BUILTIN_READ.search(each.function):
            yield "wait", each.own_ms
        elif of in ("serializer", "pyspark", "worker") or (of == "native" and _BUILTIN_PICKLE.search(each.function)):
            yield "serialization", each.own_ms
        else:
            yield "user", each.own_ms
