"""XPlanes: the output of the profiler of TensorFlow 2 and JAX, one for each process.

A plane is a host or a device, a line of it a thread or a stream, with nested events.  Operators of the host are events
named 'node:Operator'.  The profile records dependencies of operators only as launches of kernels and the order on
each thread.  So an operator is assumed to wait for what ended last before it (query.frameworks.ml.training.lanes).

Numbers of fields are those of tsl/profiler/protobuf/xplane.proto.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from crystalperf.indexes.regex import regex
from crystalperf.query.frameworks.ml.tensorflow.operator_kinds import is_input, likely_of
from crystalperf.query.frameworks.ml.training import collectives, steady, times
from crystalperf.query.frameworks.ml.training.assembly import Assembly
from crystalperf.query.frameworks.ml.training.collectives import Collective
from crystalperf.query.frameworks.ml.training.devices import PCIE, roofline_bound
from crystalperf.query.frameworks.ml.training.gaps import fill_idle
from crystalperf.query.frameworks.ml.training.lanes import WAIT_MS, Lane, Signal, filled
from crystalperf.query.frameworks.ml.training.nesting import innermost
from crystalperf.query.frameworks.ml.training.program import Device, Operation, Program, Step, numbered
from crystalperf.query.inputs.containers import Part
from crystalperf.query.trace.records import Problems
from crystalperf.query.trace.wire import (
    DamagedMessageError,
    all_of,
    double,
    fields,
    last_number,
    last_text,
    messages,
    signed,
    text,
    why_damaged,
)


@dataclass(slots=True)
class Traced:
    """An event of a line, ms; `stats` as text."""

    name: str
    start_ms: float
    end_ms: float
    stats: dict[str, str] = field(default_factory=dict)


@dataclass
class Line:
    """A thread of a host or a stream of a device."""

    name: str
    events: list[Traced]


@dataclass
class Plane:
    """A host or a device."""

    name: str
    lines: list[Line]
    stats: dict[str, str]


Launches = dict[str, tuple[int | None, float]]
"""By correlation the lane of the thread that launched a kernel, None if that has no operations, and the moment, ms."""

_ASKS = regex(r"block_until_ready|BlockHostUntilReady|_value$|__array__$")
"""Functions of JAX in which a host waits for results."""

HostOperations = Callable[[str, Line], Iterable[Operation]]
"""(process, thread) → its operations."""

_KEPT_STATS = frozenset(
    [
        "hlo_module",
        "hlo_op",
        "step_num",
        "correlation_id",
        "memcpy_details",
        "tf_op",
        "name",
        "kernel_type",
        "instance_key",
        "stage_id",
    ]
)
_OPERATOR = regex(r"(?P<node>[^:\s][^:]*):(?P<op>[A-Z_]\w*)")
_EAGER = regex(r"EagerLocalExecute: (?P<op>(?!__)\w+)")
_NEXT_BATCH = "IteratorGetNextOp::DoCompute"
_DEVICE = regex(r"/device:(?P<kind>GPU|TPU|CUSTOM):(?P<number>\w+)")
_NANOSECONDS = regex(r"\d{1,19}")
"""Of Unix time."""

_STREAM = regex(r"Stream #")
_COPY = regex(r"Mem(?:cpy|set)(?P<way>\w*)", re.IGNORECASE)
_SIZE = regex(r"(?:size|num_bytes):(?P<bytes>\d+)")
_COLLECTIVE = regex(
    r"Collective(Reduce|Gather|Bcast|AllToAll|ReduceScatter)|nccl\w*|all-?reduce|all-?gather", re.IGNORECASE
)


def program(
    files: Sequence[tuple[Part, bytes]], origin: str, problems: Problems, framework: str, of_line: HostOperations
) -> Program:
    """The program of the XPlanes of one or several processes."""
    found = []
    for part, message in files:
        try:
            found.append((_process(part, len(files)), list(planes(message))))
        except DamagedMessageError as error:
            why = f"an XPlane that cannot be read ({why_damaged(message, error)})"
            problems.add("damaged trace", "data loss", part.name, None, why)
    return of_planes(found, origin, problems, framework, of_line)


def _process(part: Part, count: int) -> str:
    return "process" if count == 1 else os.path.basename(part.name).removesuffix(".xplane.pb")


# Reading ----------------------------------------------------------------------------------------------------------


def planes(message: bytes) -> Iterator[Plane]:
    """The planes of an XSpace, in Unix ms if the profiler recorded its start.  Raises DamagedMessageError."""
    read = [_plane(each) for each in messages(message, 1)]
    begins = (each.stats.get("profile_start_time", "") for each in read)
    shift = next((int(each) for each in begins if _NANOSECONDS.fullmatch(each)), 0) / 1e6
    for plane in read:
        for line in plane.lines:
            for each in line.events:
                each.start_ms += shift
                each.end_ms += shift
        yield plane


def _plane(message: memoryview) -> Plane:
    found = all_of(message)
    names = {number: last_text(of, 2) for number, of in _entries(found.get(4, ()))}
    stat_names = {number: last_text(of, 2) for number, of in _entries(found.get(5, ()))}
    lines = [_line(each, names, stat_names) for each in found.get(3, ()) if isinstance(each, memoryview)]
    name = last_text(found, 2)
    stats = _stats(found.get(6, ()), stat_names, None)
    return Plane(name, lines, stats)


def _entries(values: Sequence[int | memoryview]) -> Iterator[tuple[int, dict[int, list[int | memoryview]]]]:
    """Key and message of a map's entries."""
    for each in values:
        if isinstance(each, memoryview):
            entry = all_of(each)
            if 2 in entry and isinstance(entry[2][-1], memoryview):
                yield last_number(entry, 1), all_of(entry[2][-1])


def _line(message: memoryview, names: dict[int, str], stat_names: dict[int, str]) -> Line:
    name = display = ""
    begin_ns = 0
    raw: list[memoryview] = []
    for number, _, value in fields(message):
        if number == 2:
            name = text(value)
        elif number == 11:
            display = text(value)
        elif number == 3:
            begin_ns = signed(value)
        elif number == 4 and isinstance(value, memoryview):
            raw.append(value)
    return Line(display or name, [_event(each, begin_ns / 1e6, names, stat_names) for each in raw])


def _event(message: memoryview, begin_ms: float, names: dict[int, str], stat_names: dict[int, str]) -> Traced:
    metadata = offset = length = 0
    stats: list[int | memoryview] = []
    for number, _, value in fields(message):
        if number == 1:
            metadata = signed(value)
        elif number == 2:
            offset = signed(value)
        elif number == 3:
            length = signed(value)
        elif number == 4:
            stats.append(value)
    start = begin_ms + offset / 1e9
    return Traced(names.get(metadata, ""), start, start + length / 1e9, _stats(stats, stat_names, _KEPT_STATS))


def _stats(values: Sequence[int | memoryview], names: dict[int, str], kept: frozenset[str] | None) -> dict[str, str]:
    found = {}
    for each in values:
        if not isinstance(each, memoryview):
            continue
        name, value = "", ""
        for number, _, content in fields(each):
            if number == 1:
                name = names.get(signed(content), "")
                if kept is not None and name not in kept:
                    break
            elif number == 2:
                value = f"{double(content):g}"
            elif number in (3, 4):
                value = str(content if number == 3 else signed(content))
            elif number == 5:
                value = text(content)
            elif number == 7:
                value = names.get(signed(content), "")
        if name and value:
            found[name] = value
    return found


# Program ----------------------------------------------------------------------------------------------------------


def of_planes(
    processes: Sequence[tuple[str, Sequence[Plane]]],
    origin: str,
    problems: Problems,
    framework: str,
    of_line: HostOperations,
) -> Program:
    """The program of each process's planes; times in ms on one clock."""
    built = Assembly()
    steps: list[Step] = []
    launches: Launches = {}
    for process, its_planes in processes:
        doubts = times.Doubts()
        _leave_out(its_planes, doubts)
        doubts.report(process if len(processes) > 1 else origin, problems)
        launches = _add_threads(built, process, its_planes, of_line)
        _add_streams(built, process, its_planes, launches)
        own = _steps(process if len(processes) > 1 else "", its_planes)
        if framework == "jax":
            _add_python(built, process, its_planes, own)
        steps += own
    collectives.report_uneven(built.collectives, origin, problems)
    if len(built.lanes) > 1 and not built.signals:
        problems.add(
            "no dependencies",
            "info",
            origin,
            None,
            "an XPlane does not record what an operator waited for: CrystalPerf assumes the operation that ended last"
            " before it in its process",
        )
    every = [each for _, its_planes in processes for each in its_planes]
    known = {"processes": str(len(processes))}
    found = _steady(every, steps, launches) if framework == "jax" and len(processes) == 1 else None
    if found is not None:
        steps, known = list(found.steps), known | found.properties()
        for lane in built.lanes:
            lane.operations = [
                each for each in lane.operations if steps[0].start_ms <= each.start_ms < steps[-1].end_ms
            ]
    return replace(built.program(steps, built.join()), version=_version(framework, every), properties=known)


def _steady(every: Sequence[Plane], steps: Sequence[Step], launches: Launches) -> steady.Steady | None:
    """The steps of a process and its accelerators."""
    kernels = [
        steady.Kernel(launches[number][1], each.start_ms, each.end_ms)
        for plane in every
        if _DEVICE.match(plane.name)
        for line in _streams(plane)
        for each in line.events
        if (number := each.stats.get("correlation_id", "")) in launches
    ]
    waits = [
        each.start_ms
        for plane in every
        if plane.name.startswith("/host:")
        for line in plane.lines
        for each in line.events
        if _ASKS.search(each.name)
    ]
    return steady.of_marks(steps, kernels, waits)


def _leave_out(its_planes: Sequence[Plane], doubts: times.Doubts) -> None:
    """Leave out events with an impossible time, and end overlong kernels where the next one of their stream begins."""
    lines = [line for plane in its_planes for line in plane.lines]
    for line in lines:
        line.events = [each for each in line.events if doubts.span(each.start_ms, each.end_ms - each.start_ms)]
        if _STREAM.match(line.name):
            line.events.sort(key=lambda each: each.start_ms)
            names, starts = [each.name for each in line.events], [each.start_ms for each in line.events]
            bounded = times.overlong(names, starts, [each.end_ms for each in line.events], WAIT_MS)
            doubts.counts["corrected"] += len(bounded)
            for place, end_ms in bounded.items():
                line.events[place].end_ms = end_ms
    every = [each for line in lines for each in line.events]
    window = times.window([each.start_ms for each in every], [each.end_ms for each in every])
    for line in lines:
        line.events = [each for each in line.events if window.holds(each.start_ms, each.end_ms, doubts)]


def _add_threads(built: Assembly, process: str, its_planes: Sequence[Plane], of_line: HostOperations) -> Launches:
    """Add the threads of a process; returns its launches of kernels."""
    launches: Launches = {}
    for line in (line for plane in its_planes if plane.name.startswith("/host:") for line in plane.lines):
        lane, number = Lane(process, line.name, process, filled(of_line(process, line))), len(built.lanes)
        launches |= {
            each.stats["correlation_id"]: (number if lane.operations else None, each.end_ms)
            for each in line.events
            if "correlation_id" in each.stats
        }
        if lane.operations:
            built.lanes.append(lane)
            built.collectives += [
                Collective(number, process, f"{each.operator} {each.name}", each)
                for each in lane.operations
                if each.kind == "collective"
            ]
    return launches


def _add_python(built: Assembly, process: str, its_planes: Sequence[Plane], steps: Sequence[Step]) -> None:
    """Add what the thread that marks the steps does while nothing is recorded: JAX traces Python only if asked to."""
    marking = {
        line.name
        for plane in its_planes
        if plane.name.startswith("/host:")
        for line in plane.lines
        if any("step_num" in each.stats for each in line.events)
    }
    lanes = [each for each in built.lanes if each.process == process]
    for lane in lanes:
        if lane.device == process and lane.name in marking:
            fill_idle(lane, (each for each in lanes if each is not lane), steps)
            return


def _add_streams(built: Assembly, process: str, its_planes: Sequence[Plane], launches: Launches) -> None:
    """Add the streams of a process' accelerators, with signals from the launches of their kernels."""
    for plane in its_planes:
        if (matched := _DEVICE.match(plane.name)) is None:
            continue
        name = f"{process} {matched['kind']}:{matched['number']}"
        for line in _streams(plane):
            lane = Lane(name, line.name, process, filled(_kernels(name, line)))
            if lane.operations:
                built.signals += _launched(line, launches, len(built.lanes))
                built.lanes.append(lane)
                names = ("gpu_device_name", "device_type_string", "device_vendor")
                model = next((found for each in names if (found := plane.stats.get(each))), None)
                built.devices[name] = Device(name, process, accelerator=True, model=model)


def _version(framework: str, read: Sequence[Plane]) -> str | None:
    return next((found for each in read if (found := each.stats.get(f"{framework}_version"))), None)


def of_line(process: str, line: Line) -> Iterator[Operation]:
    """The operators of a thread of TensorFlow, the outermost of its events.

    dense/MatMul:MatMul            a node of a graph
    EagerLocalExecute: MatMul      an operator that Python runs eagerly; nodes of a function have their own events
    IteratorGetNextOp::DoCompute   the wait for the next batch
    Iterator::Prefetch::Map        prefetches batches: it computes, reads, or waits for another stage
    """
    for each in line.events:
        found = _OPERATOR.fullmatch(each.name) or _EAGER.fullmatch(each.name)
        if each.end_ms <= each.start_ms:
            continue
        if found is None:
            if each.name == _NEXT_BATCH:
                yield Operation(process, each.start_ms, each.end_ms, "IteratorGetNext", kind="input")
            elif line.name.startswith("tf_data") and each.name.startswith("Iterator::"):
                yield Operation(process, each.start_ms, each.end_ms, each.name, kind="input")
            continue
        operator, kind, resource, likely = found["op"], "op", "", ""
        if operator in ("_Send", "_Recv"):
            kind = "runtime"
        elif _COLLECTIVE.search(operator):
            kind, resource = "collective", "net"
        elif is_input(operator):
            kind = "input"
        else:
            likely = likely_of(operator)
            if not likely and line.name.startswith("tf_data"):
                kind = "input"  # the program's own Python, which produces batches
        node = found.groupdict().get("node") or ""
        yield Operation(process, each.start_ms, each.end_ms, operator, node, resource, likely, kind)


def _streams(plane: Plane) -> list[Line]:
    """The lines of a device with its kernels; the others repeat them by scope or module."""
    streams = [each for each in plane.lines if _STREAM.match(each.name)]
    return streams or [each for each in plane.lines if each.name in ("XLA Ops", "TensorFlow Ops")][:1]


def _kernels(device: str, line: Line) -> Iterator[Operation]:
    """The operations of a device's line; of nested operators, such as a loop and its body, the innermost."""
    ran = [each for each in line.events if each.end_ms > each.start_ms]
    if _STREAM.match(line.name):
        yield from (_kernel(device, each) for each in ran)
        return
    for within, start_ms, end_ms in innermost(ran):
        yield replace(_kernel(device, within[-1]), start_ms=start_ms, end_ms=end_ms)


def _kernel(device: str, each: Traced) -> Operation:
    size = _SIZE.search(each.stats.get("memcpy_details", ""))
    copy, kind, resource = _COPY.match(each.name), "kernel", roofline_bound(each.name)
    if copy is not None:
        kind = "copy"
        resource = PCIE.name if re.search(r"H2D|D2H|HtoD|DtoH", copy["way"]) else "gpumem"
    elif _COLLECTIVE.match(each.name):
        kind, resource = "collective", "net"
    return Operation(
        device, each.start_ms, each.end_ms, each.name, each.stats.get("tf_op", ""), resource, kind=kind,
        bytes=None if size is None else int(size["bytes"]),
    )  # fmt: skip


def _launched(line: Line, launches: Launches, number: int) -> Iterator[Signal]:
    """The launches of a stream's kernels by threads of the host."""
    for each in line.events:
        lane, moment = launches.get(each.stats.get("correlation_id", ""), (None, 0.0))
        if lane is not None and lane < number and moment <= each.start_ms:
            yield Signal(lane, moment, number, each.start_ms, "launch")


def _steps(process: str, its_planes: Sequence[Plane]) -> list[Step]:
    """Steps that the program marked, else those of a device."""
    marked = [
        (each.start_ms, each.end_ms, each.stats["step_num"])
        for plane in its_planes
        if plane.name.startswith("/host:")
        for line in plane.lines
        for each in line.events
        if "step_num" in each.stats and each.end_ms > each.start_ms
    ]
    if not marked:
        shown = [
            [(each.start_ms, each.end_ms, each.name) for each in line.events]
            for plane in its_planes
            for line in plane.lines
            if line.name == "Steps"
        ]
        marked = max(shown, key=len, default=[])
        ran = [each for plane in its_planes for line in _streams(plane) for each in line.events]
        length = max((each.end_ms for each in ran), default=0.0) - min((each.start_ms for each in ran), default=0.0)
        if sum(end - start for start, end, _ in marked) < length / 2:
            marked = []  # steps of one device among many, or without a duration
    return numbered(Step(number, process, start, end, f"step {number}") for start, end, number in sorted(marked))
