"""The recorded work of a training program, independent of its profiler, and its trace.

    device     a process, or an accelerator of one, with the threads or streams that it runs operators on
    operation  one instance of an operator on a device
    segment    consecutive operations on one thread or stream that wait for nothing else in between
    step       one round of training, of one process or of all

A segment starts when those that it waits for have ended.  The time in between is the runtime's own: dispatching,
launching, Python.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crystalperf.indexes.errors import InputError
from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.resources import Resource, known
from crystalperf.query.frameworks.ml.training.devices import GPU, HBM, LATENCY, MODEL, MODELS, PCIE, model_of
from crystalperf.query.frameworks.ml.training.memory import DeviceMemory
from crystalperf.query.frameworks.ml.training.roofline import Kernel, summary
from crystalperf.query.inputs.containers import LogFile
from crystalperf.query.trace.contract import Bounds, Edge, EdgeKind, Scope, Stage, Trace, Worker, rows
from crystalperf.query.trace.records import Columns, Problems, RunTables, integers, numbers, objects, shortened

ACCELERATORS = "accelerators"
"""The property with their number, if a run has any."""


@dataclass(slots=True)
class Operation:
    """One instance of an operator, or a part of one that another operation interrupts; times in ms.

    `operator` is its kind, in the framework's words, and `name` the instance's, if it has one.  `resource` is the
    measured bottleneck; `likely` the one that its kind suggests, a share by resource.  Both may be empty.  `bytes`
    crossed a link or a device.  `function` is the innermost function, (file, name, line): if its label says that its
    code uses a device, the label takes precedence over `likely`.
    """

    device: str
    start_ms: float
    end_ms: float
    operator: str
    name: str = ""
    resource: str = ""
    likely: str = ""
    kind: str = ""
    bytes: int | None = None
    module: str | None = None
    place: str | None = None
    function: tuple[str, str, int] | None = None
    kernel: Kernel | None = None
    """The work of a kernel: its shares by what bounds it take precedence over `resource`."""


@dataclass(slots=True)
class Source:
    """A segment, by its number, that another waits for, and why."""

    segment: int
    why: str
    kind: EdgeKind = "barrier"


@dataclass(slots=True)
class Segment:
    """Consecutive operations; `ready_ms` is when it could have started, None if that is its start."""

    name: str
    operations: list[Operation]
    sources: list[Source] = field(default_factory=list)
    step: str | None = None
    ready_ms: float | None = None

    @property
    def start_ms(self) -> float:
        return self.operations[0].start_ms

    @property
    def end_ms(self) -> float:
        return max(each.end_ms for each in self.operations)


@frozen
class Device:
    """A process, or an accelerator of one; `slots` is the number of its threads or streams."""

    name: str
    host: str
    accelerator: bool = False
    model: str | None = None
    lanes: int = 0


@frozen
class Step:
    """A round of training of one process, or of all if `process` is empty; ms."""

    number: str
    process: str
    start_ms: float
    end_ms: float
    name: str | None = None

    @property
    def scope_id(self) -> str:
        return f"step:{self.number}" if not self.process else f"step:{self.process}/{self.number}"


def numbered(steps: Iterable[Step]) -> list[Step]:
    """Steps, each with a unique number in its process: the second 0 is 0.2.

    Those of a process are in order of time.  Programs restart the count in each epoch, and names of files repeat.  A
    step recorded twice at once, as by two threads, is kept once.
    """
    found: dict[str, Step] = {}
    last: dict[str, Step] = {}
    times: dict[str, int] = {}
    for each in steps:
        as_recorded = each.scope_id
        if as_recorded in last and each.start_ms < last[as_recorded].end_ms:
            continue
        last[as_recorded] = own = each
        while own.scope_id in found:
            times[as_recorded] = times.get(as_recorded, 1) + 1
            own = replace(each, number=f"{each.number}.{times[as_recorded]}")
        found[own.scope_id] = own
    return list(found.values())


@frozen
class Exchange:
    """One process in a collective: it arrived, its bytes began to move when the last process arrived, and ended; ms.

    `step` is the number of the step of all processes in which it began.
    """

    name: str
    worker_id: str
    bytes: int | None
    arrived_ms: float
    began_ms: float
    ended_ms: float
    step: str | None = None


@frozen
class Program:
    """A recorded part of a training; times in ms on one clock, in Unix time if the profiler records it.

    `step_ms` is the mean step if `steps` do not show it because they are of all processes.
    """

    segments: Sequence[Segment]
    devices: Sequence[Device]
    steps: Sequence[Step]
    start_ms: float
    end_ms: float
    exchanges: Sequence[Exchange] = ()
    name: str | None = None
    version: str | None = None
    step_ms: float | None = None
    memory: DeviceMemory | None = None
    properties: Mapping[str, str] = field(default_factory=dict)

    def since_start(self, moments_ms: Iterable[float]) -> NDArray[np.float64]:
        """Moments relative to its start, ms."""
        return np.array(list(moments_ms), dtype=np.float64) - self.start_ms


def mean_step_ms(steps: Sequence[Step]) -> float | None:
    """The mean step: of each process first, then over processes, because workers may each train at their own speed."""
    by_process: dict[str, list[float]] = {}
    for each in steps:
        by_process.setdefault(each.process, []).append(each.end_ms - each.start_ms)
    means = [sum(each) / len(each) for each in by_process.values()]
    return sum(means) / len(means) if means else None


def nothing_ran(origin: str, problems: Problems, instead: str) -> InputError:
    """The error for a trace without operators: its damage, or `instead`, how to record a trace with operators."""
    damage = next((each.meaning for each in problems if each.severity == "data loss"), None)
    if damage is not None:
        return InputError(f"{origin}: cannot read any operator of the trace: {damage}")
    return InputError(f"{origin}: the trace has no operators; {instead}")


def trace(found: Program, framework: str, log: LogFile, problems: Problems) -> Trace:
    """The trace of a framework's program, read from a log."""
    accelerated = any(each.accelerator for each in found.devices)
    resources = (*known(), GPU, HBM, LATENCY, PCIE) if accelerated else known()
    every = sorted(
        (
            (number, position, each)
            for number, segment in enumerate(found.segments)
            for position, each in enumerate(segment.operations)
        ),
        key=lambda one: (one[2].start_ms, *one[:2]),
    )
    operations = [each for _, _, each in every]
    tasks = _tasks(found, operations, [number for number, _, _ in every])
    return Trace(
        run=_run(found, framework, log, operations),
        workers=rows([Worker(each.name, each.lanes, host=each.host) for each in found.devices]),
        stages=_stages(found),
        tasks=tasks,
        bounds=_bounds(operations, tasks["finish_ms"] - tasks["launch_ms"], resources),
        dependencies=rows(
            [
                Edge(_stage_id(source.segment), _stage_id(number), source.kind, source.why)
                for number, segment in enumerate(found.segments)
                for source in segment.sources
            ]
        ),
        scopes=rows([_scope(each, found) for each in found.steps]),
        resources=resources,
        problems=tuple(problems),
        task_functions=tuple(each.function for each in operations) if any(e.function for e in operations) else (),
        raw=_raw(found, operations),
    )


def _run(found: Program, framework: str, log: LogFile, operations: Sequence[Operation]) -> dict[str, Any]:
    mean = mean_step_ms(found.steps) if found.step_ms is None else found.step_ms
    accelerators = sum(each.accelerator for each in found.devices)
    most = max(Counter(each.process for each in found.steps).values(), default=0)
    return {
        "app_id": log.app_id or framework,
        "name": shortened(found.name),
        "framework": framework,
        "framework_version": shortened(found.version, 40),
        "measure": "step time" if found.steps else "makespan",
        "started_at_ms": round(found.start_ms),
        "duration_ms": found.end_ms - found.start_ms,
        "complete": True,
        "properties": {
            **{key: value for key, value in {**found.properties, **_of_kernels(found, operations)}.items() if value},
            **({ACCELERATORS: str(accelerators)} if accelerators else {}),
            **({} if mean is None else {"step_ms": f"{mean:.6g}", "steps": str(most)}),
        },
        "libraries": [],
    }


def _of_kernels(found: Program, operations: Sequence[Operation]) -> dict[str, str]:
    """Properties of the run's kernels, and the model of its accelerators with its peaks if they are all of one."""
    kernels = ((each.kernel, each.end_ms - each.start_ms) for each in operations if each.kernel is not None)
    models = {model_of(each.model) for each in found.devices if each.accelerator}
    model = (models.pop() or "") if len(models) == 1 else ""
    return {**summary(kernels), MODEL: model, **(MODELS[model].peaks() if model else {})}


def _stage_id(number: int) -> str:
    return f"segment:{number}"


def _tasks(found: Program, operations: Sequence[Operation], segment_of: Sequence[int]) -> Columns:
    """Operations as tasks, each with the number of its segment."""
    length = found.end_ms - found.start_ms
    launch = np.clip(found.since_start(each.start_ms for each in operations), 0.0, length)
    finish = np.clip(found.since_start(each.end_ms for each in operations), launch, length)
    host = {each.name: each.host for each in found.devices}
    count = len(operations)
    return {
        "task_id": np.arange(count, dtype=np.int64),
        "stage_id": objects([_stage_id(each) for each in segment_of]),
        "worker_id": objects([each.device for each in operations]),
        "host": objects([host.get(each.device) for each in operations]),
        "launch_ms": launch,
        "finish_ms": finish,
        "status": objects(["succeeded"] * count),
        "reason": objects([None] * count),
        "recomputed": objects([False] * count),
        "pipeline_wait_ms": numbers(
            [
                length if each.kind == "input" and not (each.resource or each.likely) else 0.0
                for each, length in zip(operations, (finish - launch).tolist(), strict=True)
            ]
        ),
    }


def _stages(found: Program) -> dict[str, Any]:
    length = found.end_ms - found.start_ms
    listed = []
    for number, each in enumerate(found.segments):
        start = min(max(each.start_ms - found.start_ms, 0.0), length)
        ready = None if each.ready_ms is None else min(max(each.ready_ms - found.start_ms, 0.0), start)
        listed.append(
            Stage(
                _stage_id(number),
                task_count=len(each.operations),
                first_launch_ms=start,
                end_ms=min(max(each.end_ms - found.start_ms, start), length),
                name=shortened(each.name, 200),
                scope_id=each.step,
                priority=number,
                submit_ms=ready,
            )
        )
    return rows(listed)


def _scope(each: Step, found: Program) -> Scope:
    start = each.start_ms - found.start_ms
    return Scope(each.scope_id, "step", max(start, 0.0), each.end_ms - found.start_ms, shortened(each.name))


def _bounds(operations: Sequence[Operation], lasting: Any, resources: Sequence[Resource]) -> Bounds:
    names = [each.name for each in resources]
    floor, likely, outside = (np.zeros((len(operations), len(names) + 1)) for _ in range(3))
    for row, each in enumerate(operations):
        if each.kernel is not None and each.kernel.shares is not None:
            for name, share in each.kernel.shares.by_resource.items():
                floor[row, names.index(name)] = share * lasting[row]
        elif each.resource in names:
            floor[row, names.index(each.resource)] = lasting[row]
        elif each.likely in names:
            likely[row, names.index(each.likely)] = lasting[row]
    return Bounds(np.asarray(lasting, np.float64), floor, likely, outside)


def _works(kernels: Sequence[Kernel | None]) -> dict[str, Any]:
    """The work of kernels, None where nothing is known."""
    return {
        "flops": numbers([None if each is None else each.work.flops for each in kernels]),
        "moved_bytes": numbers([None if each is None else each.bytes for each in kernels]),
        "unit": objects([None if each is None else each.work.unit for each in kernels]),
        "bound": objects([None if each is None else each.bound for each in kernels]),
        "known_by": objects([None if each is None else each.work.known_by for each in kernels]),
    }


def _raw(found: Program, operations: Sequence[Operation]) -> RunTables:
    """The tables of trainings; schema.sql in this folder has their columns."""
    short = cache(partial(shortened, longest=200))  # a million operations have some hundred names
    exchanges, memory = found.exchanges, found.memory
    return {
        "training_operations": {
            "task_id": np.arange(len(operations), dtype=np.int64),
            "operator": objects([short(each.operator) or "?" for each in operations]),
            "name": objects([short(each.name) for each in operations]),
            "kind": objects([each.kind or None for each in operations]),
            "bytes": integers([each.bytes for each in operations]),
            "module": objects([short(each.module) for each in operations]),
            "call_site": objects([short(each.place) for each in operations]),
            **_works([each.kernel for each in operations]),
        },
        "training_collectives": {
            "name": objects([each.name for each in exchanges]),
            "worker_id": objects([each.worker_id for each in exchanges]),
            "step": objects([each.step for each in exchanges]),
            "bytes": integers([each.bytes for each in exchanges]),
            "arrived_ms": numbers(found.since_start(each.arrived_ms for each in exchanges)),
            "began_ms": numbers(found.since_start(each.began_ms for each in exchanges)),
            "ended_ms": numbers(found.since_start(each.ended_ms for each in exchanges)),
        },
        "training_memory": {
            "worker_id": objects([] if memory is None else [memory.device] * len(memory.parts)),
            "part": objects([] if memory is None else list(memory.parts)),
            "bytes": integers([] if memory is None else list(memory.parts.values())),
        },
        "training_devices": {
            "worker_id": objects([each.name for each in found.devices]),
            "accelerator": objects([each.accelerator for each in found.devices]),
            "model": objects([shortened(each.model, 200) for each in found.devices]),
        },
    }
