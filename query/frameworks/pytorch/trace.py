"""Traces of one rank or of many as the trace that every framework hands over.

A rank's threads are lanes of its process, the streams of each accelerator lanes of that.  Kernels wait for their launch
and for the kernel before them on their stream, or on another where theirs went on as that ended; a thread that
synchronises, or whose call waits for its copy, waits for a kernel; a collective waits for all ranks.  The thread
that trains is never idle: what lies between its operators is Python, or waiting for its data.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise

from indexes.errors import InputError
from indexes.resources import CPU
from query.frameworks.pytorch.kineto import (
    COLLECTIVE,
    MOST_EVENTS,
    SYNCHRONIZES,
    Outermost,
    Process,
    Ran,
    Thread,
    collective_key,
    inputs,
    kernel_name,
    mark_phase,
    outermost,
)
from query.frameworks.training import chrome, collectives, program
from query.frameworks.training.collectives import Collective
from query.frameworks.training.devices import HBM, PCIE, bound_by
from query.frameworks.training.lanes import (
    CLOSE_MS,
    MOST_STRETCHES,
    WAIT_MS,
    Lane,
    Signal,
    end_in_time,
    filled,
    stretches,
    waits,
)
from query.frameworks.training.program import Device, Operation, Program, Step
from query.inputs.containers import LogFile
from query.model.records import Problems, shortened
from query.model.trace import Trace

PYTHON = "Python"
"""What a thread does between two operators."""

WAIT_FOR_INPUT = "DataLoader"
"""What it does while it asks for its next batch, beside operators."""

OWN_BATCHES = "making batches (num_workers=0)"
"""What it does while its loader has no workers, beside operators."""

WAITING = "waiting for the accelerator"
"""What a thread does, or a stream that it waits for, while nothing that the trace has runs on an accelerator."""

RUNTIME_GAP_MS = 0.2
"""A gap between two operators of another thread than the main one that is no longer is its engine's own time."""

FIRST_USE = "first use of kernels"
"""What a thread does in a launch that loads the kernel, or makes room for it."""

FIRST_USE_MS = 1.0
"""A first launch of a kernel that took longer is its first use …"""

FIRST_USE_SHARE = 0.2
"""… where all of these took more than this share of what is traced of the thread."""

SYNCHRONOUS_MS = 0.005
"""A call of the runtime that took less did not wait."""

SYNCHRONOUS_LAG_MS = 0.1
"""A call that waits for its copy returns as that ends: no farther apart than this, also a bit before."""

POLLED_MS = 0.2
"""A gap of the main thread that is longer may be a loop that asks until a kernel has told something to it."""

_GAP_MS = 0.008
"""Between two kernels that were both launched early enough: what the device needs to go from one to the next."""

_APART_SHARE = 0.005
"""Of what is traced of accelerators, how much later than the first of a stretch of kernels the last may have been
launched, for a faster one would wait for that."""

_BEHIND_SHARE = 0.03
"""Of its steps' time, how much longer an accelerator took for their work, so that marks do not tell their length."""

_QUEUED_MS = (0.0, 0.01, 0.05, 0.2, 1.0, 5.0, 25.0, 100.0, 1000.0)
"""How much later than a stretch of kernels begins the last of them may have been launched, in the order of trying."""


def read(log: LogFile) -> Trace:
    """The trace of a run.  Raises InputError, one sentence."""
    problems = Problems(log.problems)
    processes = []
    names: dict[str, str] = {}
    for number, part in enumerate(log.parts):
        process = Process(str(number), most=MOST_EVENTS // len(log.parts))
        for events in chrome.read(log, part, problems, process.header):
            process.take(events, names)
        process.label = f"rank {process.rank if process.rank is not None else number}"
        if process.threads or process.streams:
            processes.append(process)
    if not any(each.streams or any(t.operators or t.calls for t in each.threads.values()) for each in processes):
        raise program.nothing_ran(log.origin, problems, "profile with ProfilerActivity.CPU, and some steps")
    _shorten(processes, log.origin, problems)
    return program.trace(of_processes(processes, log.app_id or "pytorch", log.origin, problems))


def _shorten(processes: Sequence[Process], origin: str, problems: Problems) -> None:
    """Where steps of a rank were left out, leave them out of all, and say so."""
    if not any(math.isfinite(each.until_us) for each in processes):
        return
    for each in processes:  # what it told of steps later on, the last of which may have been cut
        each.leave_out(each.until_us)
    common = set.intersection(*({number for number, _, _ in each.steps} for each in processes))
    if common:
        for each in processes:
            each.leave_out(max(end for number, _, end in each.steps if number in common))
    what = f"its first {len(common)} steps" if common else "what it begins with"
    meaning = f"the trace holds more than {MOST_EVENTS // 1000} 000 events: answers are about {what}"
    problems.add("long trace", "data loss", origin, None, meaning)


_Done = tuple[float, float, int]
"""What ran on a stream: its end and its begin, ms, and the number of the stream's lane."""


@dataclass(frozen=True)
class _Wait:
    """A call in which a thread waited for its accelerator, ms: until `done_ms` for what the trace has, and then until
    `untold_ms` for what it has not."""

    start_ms: float
    done_ms: float
    untold_ms: float
    call: str
    operator: str


@dataclass
class _Built:
    """Lanes and signals being put together."""

    lanes: list[Lane] = field(default_factory=list)
    signals: list[Signal] = field(default_factory=list)
    collectives: list[Collective] = field(default_factory=list)
    devices: dict[str, Device] = field(default_factory=dict)
    launches: list[tuple[int, list[tuple[Operation, tuple[int, float] | None]]]] = field(default_factory=list)
    """By lane of a stream, its kernels with the lane and the moment of their launch."""


def of_processes(processes: Sequence[Process], app_id: str, origin: str, problems: Problems) -> Program:
    """What the processes of a run did."""
    labels = _labels(processes)
    steps = [_steps(process, labels[number], len(processes)) for number, process in enumerate(processes)]
    built = _Built()
    shift = _clock_shifts(processes, labels, origin, problems)
    for number, process in enumerate(processes):
        _add_process(built, process, labels[number], shift.get(labels[number], 0.0))
    events = list(_events(built))
    more, told = collectives.joined(built.collectives, built.lanes)
    for lane in built.lanes:  # collectives of other ranks began later than they seemed to
        lane.operations.sort(key=lambda each: each.start_ms)
    queued = _queued(built)
    of_ranks = [_moved(each, shift.get(label, 0.0)) for label, mine in zip(labels, steps, strict=True) for each in mine]
    common = _common_steps(of_ranks, len(processes))
    behind = {label: found for label in labels if (found := _behind(built, of_ranks, label)) is not None}
    _keep_within(built, of_ranks, labels, behind)
    ends = [each.end_ms for each in behind.values()]
    common[-1:] = [replace(each, end_ms=max(each.end_ms, *ends)) if ends else each for each in common[-1:]]
    cut = stretches(
        built.lanes,
        [*built.signals, *more, *events, *queued],
        borders=sorted({each.start_ms for each in common}),
        name=_stretch_name,
        step=lambda lane, moment: next((e.scope_id for e in common if e.start_ms <= moment < e.end_ms), None),
    )
    if not cut:
        raise InputError(f"{origin}: holds no operator within its steps; profile whole steps")
    start = min([each.start_ms for each in common] or [min(each.start_ms for each in cut)])
    end = max([*(each.end_ms for each in common), *(each.end_ms for each in cut)])
    if any(each.calls for process in processes if not process.tells_host for each in process.threads.values()):
        meaning = "operators of the CPU (profile with ProfilerActivity.CPU too): of threads only calls are known"
        problems.add("no operators", "data loss", origin, None, meaning)
    if not common:
        problems.add(
            "no steps",
            "info",
            origin,
            None,
            "the trace marks no steps (call profiler.step() behind each): answers are about all of it",
        )
    return Program(
        framework="pytorch",
        app_id=app_id,
        origin=origin,
        stretches=cut,
        devices=_with_lanes(built),
        steps=common,
        problems=problems,
        name=_name(processes[0]),
        start_ms=start,
        end_ms=end,
        started_at_ms=start,
        step_ms=program.mean_step_ms(_told_by(of_ranks, behind.values())),
        properties={
            **_properties(processes),
            "queued_ms": f"{max(each.queued_ms for each in behind.values()):.6g}" if behind else "",
        },
        collectives=[
            {**each, "step": next((s.number for s in common if s.start_ms <= each["began_ms"] < s.end_ms), None)}
            for each in told
        ],
    )


def _labels(processes: Sequence[Process]) -> list[str]:
    """Names of processes: their ranks, or their order where these are not told or not of each its own."""
    found = [each.label for each in processes]
    return found if len(set(found)) == len(found) else [f"rank {number}" for number in range(len(found))]


def _name(process: Process) -> str | None:
    name = process.header.get("traceName")
    if not isinstance(name, str) or re.search(r"(?:^|/)tmp\w*\.json$", name):
        return None  # the profiler packs a temporary file
    return shortened(re.sub(r".*/", "", name))


def _properties(processes: Sequence[Process]) -> dict[str, str]:
    """What predictions and answers depend on."""
    info = processes[0].header.get("distributedInfo")
    facts = info if isinstance(info, dict) else {}
    world = facts.get("world_size")
    return {
        "backend": str(facts["backend"])[:40] if isinstance(facts.get("backend"), str) else "",
        "world_size": str(world) if isinstance(world, int) else "",
        "processes": str(max(world if isinstance(world, int) else 1, len(processes))),
        "synchronous": "yes",
    }


# Clocks and steps -------------------------------------------------------------------------------------------------


def _ms(process: Process, us: float, shift: float = 0.0) -> float:
    return (us + process.base_us) / 1e3 + shift


def _steps(process: Process, label: str, ranks: int) -> list[Step]:
    return program.numbered(
        Step(number, label if ranks > 1 else "", _ms(process, start), _ms(process, end), f"step {number}")
        for number, start, end in sorted(process.steps, key=lambda each: each[1:])
    )


def _moved(step: Step, shift: float) -> Step:
    return replace(step, start_ms=step.start_ms + shift, end_ms=step.end_ms + shift)


def _common_steps(of_ranks: Sequence[Step], ranks: int) -> list[Step]:
    """Steps of all ranks: from when the first of them begins to where it begins its next."""
    by_number: dict[str, list[Step]] = {}
    for each in of_ranks:
        by_number.setdefault(each.number, []).append(each)
    found = [
        Step(number, "", min(e.start_ms for e in mine), max(e.end_ms for e in mine), f"step {number}")
        for number, mine in by_number.items()
        if len({each.process for each in mine}) == ranks
    ]
    found.sort(key=lambda each: each.start_ms)
    return [
        replace(each, end_ms=min(each.end_ms, following.start_ms))
        for each, following in zip(found, [*found[1:], replace(found[-1], start_ms=float("inf"))], strict=True)
    ] if found else []  # fmt: skip


def _clock_shifts(
    processes: Sequence[Process], labels: Sequence[str], origin: str, problems: Problems
) -> dict[str, float]:
    """What to add to the times of ranks whose clocks are apart, by their collectives; ms."""
    parts = []
    for process, label in zip(processes, labels, strict=True):
        on_threads = [each for thread in process.threads.values() for each in thread.collectives]
        on_streams = [each for stream in process.streams.values() for each in stream if COLLECTIVE.search(each.name)]
        for each in (*on_threads, *on_streams):
            operation = _collective(process, label, each, 0.0)
            if (key := collective_key(operation.operator, each.group)) is not None:
                parts.append(Collective(0, label, key, operation))
    collectives.tell_uneven(parts, origin, problems)
    found = collectives.shifts(parts)
    for label, shift in found.items():
        meaning = (
            f"clocks of ranks were off, that of {label} by about {abs(shift):.1f} ms by its collectives: put right"
        )
        problems.add("clocks apart", "info", origin, label, meaning)
    return found


@dataclass(frozen=True)
class _Behind:
    """An accelerator that got behind the thread that marks a rank's steps, ms.

    It worked for these `steps` from `begin_ms`, as what it had before them had ended, to `end_ms`; as the last was
    marked, `queued_ms` of that were left.
    """

    process: str
    steps: int
    begin_ms: float
    end_ms: float
    queued_ms: float


def _behind(built: _Built, steps: Sequence[Step], label: str) -> _Behind | None:
    """How far an accelerator got behind over a rank's steps; None where it is no farther behind than at their begin."""
    mine = [each for each in steps if each.process in ("", label)]
    if not mine:
        return None
    begin, end = min(each.start_ms for each in mine), max(each.end_ms for each in mine)
    of_rank = [each for number, kernels in built.launches if built.lanes[number].process == label for each in kernels]
    within = [each for each, launch in of_rank if launch is not None and begin <= launch[1] < end]
    if not within:
        return None
    last = max(each.end_ms for each in within)
    earlier = (each.end_ms for each, launch in of_rank if launch is None or launch[1] < begin)
    since = max(begin, max(earlier, default=begin))
    if last - since <= (1 + _BEHIND_SHARE) * (end - begin):
        return None
    return _Behind(mine[0].process, len(mine), since, last, last - end)


def _told_by(steps: Sequence[Step], behind: Iterable[_Behind]) -> list[Step]:
    """Steps by their marks, but one as long as their mean for each rank whose accelerator got behind."""
    found = {each.process: each for each in behind}
    return [each for each in steps if each.process not in found] + [
        Step("", each.process, each.begin_ms, each.begin_ms + (each.end_ms - each.begin_ms) / each.steps)
        for each in found.values()
    ]


def _keep_within(built: _Built, steps: Sequence[Step], labels: Sequence[str], behind: Mapping[str, _Behind]) -> None:
    """Leave out what ran before a rank's first step, and what began after its last, or was launched after that."""
    launches = dict(built.launches)
    for label in labels:
        mine = [each for each in steps if each.process in ("", label)]
        if not mine:
            continue
        begin, end = min(each.start_ms for each in mine), max(each.end_ms for each in mine)
        for number, lane in enumerate(built.lanes):
            if lane.process == label:
                until = end
                if label in behind:
                    ends = (
                        e.end_ms for e, launch in launches.get(number, ()) if launch is not None and launch[1] < end
                    )
                    until = max(end, max(ends, default=end))
                kept = [each for each in lane.operations if begin - CLOSE_MS <= each.start_ms < until]
                lane.operations = kept


# Lanes ------------------------------------------------------------------------------------------------------------


def _add_process(built: _Built, process: Process, label: str, shift: float) -> None:
    main = process.main_thread()
    built.devices[label] = Device(label, 0, label)
    numbers: dict[tuple[str, str], int] = {}
    launched: dict[int, tuple[int, Ran]] = {}
    by_thread: dict[tuple[str, str], list[Outermost]] = {}
    order = sorted(process.threads, key=lambda key: key != main)
    for key in order:
        thread = process.threads[key]
        by_thread[key] = outermost(thread)
        numbers[key] = len(built.lanes)
        is_main = key == main
        lane = Lane(label, "main thread" if is_main else f"thread {key[1]}", label, infers=not is_main)
        lane.lets_go = "any" if is_main or thread.operators or thread.collectives else "none"
        lane.operations = filled(_thread_operations(process, label, thread, by_thread[key], shift))
        lane.operations += [_collective(process, label, each, shift) for each in thread.collectives]
        built.lanes.append(lane)
        for call in thread.calls:
            if call.correlation is not None:
                launched[call.correlation] = (numbers[key], call)
    streams, of_call = _add_streams(built, process, label, shift, launched, by_thread, numbers)
    _add_collectives(built, process, label, numbers, by_thread, shift)
    waited: list[_Wait] = []
    for key in order:
        waited += _cut_synchronous(built, process, process.threads[key], numbers[key], streams, of_call, shift)
        _cut_first_uses(built, process, process.threads[key], numbers[key], shift)
    _fill_idle(built, label, waited)
    if main is not None:
        others = [built.lanes[number] for key, number in numbers.items() if key != main]
        threads = [each for each in others if each.lets_go == "any"]
        polled = _polled(built, numbers[main])
        _fill_main(built, process, process.threads[main], numbers[main], threads, polled, shift)
    for key, number in numbers.items():
        if key != main:
            lane = built.lanes[number]
            lane.operations = filled(lane.operations, _engine) if process.tells_host else filled(lane.operations)


def _thread_operations(
    process: Process, label: str, thread: Thread, operators: Iterable[Outermost], shift: float
) -> Iterator[Operation]:
    for each in operators:
        yield Operation(
            label, _ms(process, each.ran.start, shift), _ms(process, each.ran.end, shift), each.operator, each.phase,
            likely="cpu", kind="op", module=each.module, place=each.place,
        )  # fmt: skip
    inside = [(each.ran.start, each.ran.end) for each in operators]
    starts = [start for start, _ in inside]
    for call in thread.calls:  # those within an operator are its own time
        place = bisect_right(starts, call.start) - 1
        if place < 0 or inside[place][1] < call.end:
            yield Operation(
                label, _ms(process, call.start, shift), _ms(process, call.end, shift), call.name, "", likely="cpu",
                kind="runtime",
            )  # fmt: skip


def _collective(process: Process, label: str, each: Ran, shift: float) -> Operation:
    name = kernel_name(each.name) if COLLECTIVE.search(each.name) else each.name
    return Operation(
        label, _ms(process, each.start, shift), _ms(process, each.end, shift), name, "", "net", kind="collective",
        bytes=each.bytes,
    )  # fmt: skip


def _add_collectives(
    built: _Built,
    process: Process,
    label: str,
    numbers: Mapping[tuple[str, str], int],
    by_thread: Mapping[tuple[str, str], Sequence[Outermost]],
    shift: float,
) -> None:
    """Collectives that threads of the process carry out (gloo): an operator c10d::… has asked for each."""
    asked = sorted(
        (_ms(process, each.ran.start, shift), _ms(process, each.ran.end, shift), numbers[key])
        for key, mine in by_thread.items()
        for each in mine
        if each.ran.name.startswith("c10d::")
    )
    for key in process.threads:
        for each in built.lanes[numbers[key]].operations:
            if each.kind == "collective" and (name := collective_key(each.operator)) is not None:
                place = bisect_right(asked, (each.start_ms, float("inf"), 0)) - 1
                launcher = None
                if place >= 0:
                    _, end, lane = asked[place]
                    launcher = (lane, min(end, each.start_ms))
                built.collectives.append(Collective(numbers[key], label, name, each, launcher))


def _add_streams(
    built: _Built,
    process: Process,
    label: str,
    shift: float,
    launched: Mapping[int, tuple[int, Ran]],
    by_thread: Mapping[tuple[str, str], Sequence[Outermost]],
    numbers: Mapping[tuple[str, str], int],
) -> tuple[list[_Done], dict[int, _Done]]:
    """The streams of the process' accelerators; returns what ran there by its end, and by the number of its call."""
    ended: list[_Done] = []
    of_call: dict[int, _Done] = {}
    starts = {numbers[key]: [each.ran.start for each in mine] for key, mine in by_thread.items()}
    theirs = {numbers[key]: mine for key, mine in by_thread.items()}
    models = _models(process)
    tells_calls = any(each.calls for each in process.threads.values())
    for (device, stream), ran in sorted(process.streams.items()):
        name = f"{label} GPU {device}"
        built.devices.setdefault(name, Device(name, 0, label, True, models.get(device)))
        number = len(built.lanes)
        lane = Lane(name, f"stream {stream}", label)
        lane.lets_go = "devices" if tells_calls else "any"  # a thread that waits for a kernel calls the runtime for it
        kernels: list[tuple[Operation, tuple[int, float] | None]] = []
        for each in sorted(ran, key=lambda one: one.start):
            host = launched.get(each.correlation) if each.correlation is not None else None
            by = None
            if host is not None and host[0] in starts:
                place = bisect_right(starts[host[0]], host[1].start) - 1
                if place >= 0 and theirs[host[0]][place].ran.end >= host[1].start:
                    by = theirs[host[0]][place]
            operation = _kernel(process, name, each, by, shift)
            if kernels and operation.start_ms < kernels[-1][0].end_ms:
                operation.start_ms = min(kernels[-1][0].end_ms, operation.end_ms)
            launch = None if host is None else (host[0], min(_ms(process, host[1].end, shift), operation.start_ms))
            kernels.append((operation, launch))
            ended.append((operation.end_ms, operation.start_ms, number))
            if each.correlation is not None:
                of_call[each.correlation] = ended[-1]
            if operation.kind == "collective" and (key := collective_key(operation.name, each.group)) is not None:
                built.collectives.append(Collective(number, label, key, operation, (number, operation.start_ms)))
        lane.operations = [each for each, _ in kernels]
        lane.infers = any(launch is None for _, launch in kernels)  # else it waited for launches and for other streams
        built.lanes.append(lane)
        built.launches.append((number, kernels))
    return sorted(ended), of_call


def _models(process: Process) -> dict[str, str]:
    listed = process.header.get("deviceProperties")
    found = {}
    for each in listed if isinstance(listed, list) else []:
        if isinstance(each, dict) and isinstance(each.get("name"), str):
            found[str(each.get("id"))] = each["name"]
    return found


def _kernel(process: Process, device: str, each: Ran, by: Outermost | None, shift: float) -> Operation:
    kind, resource, name = "kernel", bound_by(each.name), kernel_name(each.name)
    if each.name.startswith(("Memcpy", "Memset")):
        kind = "copy"
        resource = PCIE.name if re.search(r"HtoD|DtoH|PtoP", each.name) else HBM.name
        name = each.name
    elif COLLECTIVE.search(each.name):
        kind, resource = "collective", "net"
    return Operation(
        device, _ms(process, each.start, shift), _ms(process, each.end, shift),
        name if by is None else by.operator, name, resource, kind=kind, bytes=each.bytes,
        module=None if by is None else by.module, place=None if by is None else by.place,
    )  # fmt: skip


def _events(built: _Built) -> Iterator[Signal]:
    """Streams that waited for another of their process: one that had nothing to do, though its next kernel had been
    launched, went on as soon as a kernel there had ended.  (Traces tell of such events only where asked to.)"""
    ends: dict[str, list[tuple[float, int]]] = {}
    for number, kernels in built.launches:
        ends.setdefault(built.lanes[number].process, []).extend((each.end_ms, number) for each, _ in kernels)
    for of_process in ends.values():
        of_process.sort()
    for number, kernels in built.launches:
        others = ends[built.lanes[number].process]
        until = float("-inf")
        for each, launch in kernels:
            # A call that waits for its copy does not tell when it had launched it.
            waits_for_it = launch is not None and launch[1] >= each.start_ms and each.kind == "copy"
            ready = until if launch is None or waits_for_it else max(until, launch[1])
            if launch is not None and each.start_ms - ready > WAIT_MS:
                first = bisect_left(others, (max(ready, each.start_ms - WAIT_MS), len(built.lanes)))
                last = bisect_right(others, (each.start_ms + CLOSE_MS, len(built.lanes)))
                end, other = next((one for one in reversed(others[first:last]) if one[1] != number), (0.0, number))
                if other != number:
                    yield Signal(other, min(end, each.start_ms), number, each.start_ms, "event of another stream")
            until = each.end_ms


def _queued(built: _Built) -> list[Signal]:
    """Launches as signals: kernels that had all been launched when the first of them began wait for nothing else.

    Where that leaves more stretches than can be told apart, those of kernels that were launched soon after count too.
    """

    def signals(slack: float, apart: float) -> list[Signal]:
        return [each for number, kernels in built.launches for each in _launch_signals(number, kernels, slack, apart)]

    for slack in _QUEUED_MS:
        found = signals(slack, math.inf)
        if 2 * len(found) <= MOST_STRETCHES:
            break
    times = [each for _, kernels in built.launches for each, _ in kernels]
    traced_ms = max((each.end_ms for each in times), default=0.0) - min((each.start_ms for each in times), default=0.0)
    finer = signals(slack, max(slack, _APART_SHARE * traced_ms))
    if 2 * len(finer) <= MOST_STRETCHES:
        found = finer
    for number, kernels in built.launches:
        lane = built.lanes[number]
        launched_ms = {each.start_ms: launch[1] for each, launch in kernels if launch is not None}
        lane.operations = filled(lane.operations, partial(_launch_gap, launched_ms, max(slack, _GAP_MS)))
    return found


def _launch_gap(
    launched_ms: Mapping[float, float], longest_ms: float, last: Operation, following: Operation
) -> Iterator[Operation]:
    """A gap within one stretch of kernels: until the next was launched the device waited for the thread that does so.

    `launched_ms` is when each kernel was launched, by its start.
    """
    start, end = last.end_ms, following.start_ms
    if end - start > longest_ms or following.kind == "collective":
        return
    launched = min(max(launched_ms.get(end, start), start), end)
    if launched > start:
        yield Operation(last.device, start, launched, "waiting for launches", resource=CPU, kind="runtime")
    if end > launched:
        yield Operation(last.device, launched, end, "between kernels", kind="runtime")


def _launch_signals(
    number: int, kernels: Sequence[tuple[Operation, tuple[int, float] | None]], slack: float, apart: float
) -> Iterator[Signal]:
    begin, last = float("-inf"), None
    until, first = float("-inf"), float("inf")
    for each, launch in kernels:
        late = launch is not None and (launch[1] > begin + slack or launch[1] > first + apart)
        if late or each.start_ms > until + max(slack, _GAP_MS) or each.kind == "collective":
            if last is not None:
                yield last
            begin, last, first = each.start_ms, None, float("inf")
        if launch is not None:
            first = min(first, launch[1])
        if launch is not None and (last is None or launch[1] > last.source_ms):
            last = Signal(launch[0], min(launch[1], begin), number, begin, "launch")
        until = each.end_ms
    if last is not None:
        yield last


# Threads that wait ------------------------------------------------------------------------------------------------


def _cut_synchronous(
    built: _Built,
    process: Process,
    thread: Thread,
    number: int,
    streams: Sequence[_Done],
    of_call: Mapping[int, _Done],
    shift: float,
) -> list[_Wait]:
    """Cut out of a thread the calls in which it waited for its accelerator; returns these, with what made them.

    What a call waited for longer than for anything that the trace has is of no known resource.
    """
    lane = built.lanes[number]
    found: list[_Wait] = []
    until = float("-inf")
    for call in sorted(thread.calls, key=lambda each: each.start):
        start, end = _ms(process, call.start, shift), _ms(process, call.end, shift)
        if end - start < SYNCHRONOUS_MS or start < until:
            continue
        copy = None if call.correlation is None else of_call.get(call.correlation)
        synchronises = SYNCHRONIZES.search(call.name) is not None
        if "Memcpy" in call.name and copy is not None:
            done, began, stream = copy
            if began >= end or abs(end - done) > SYNCHRONOUS_LAG_MS:
                continue  # an asynchronous copy
            if not start < _last(streams, began)[0] >= began - WAIT_MS:
                start = began  # the copy waited for nothing: what passed before it was the call's own time
        elif synchronises:
            done, _, stream = _last(streams, end)
        else:
            continue
        done = min(done, end)
        if done > start + CLOSE_MS:
            built.signals.append(Signal(stream, done, number, done, "synchronize"))
        else:
            done = start
        untold = end if synchronises and end - done > SYNCHRONOUS_LAG_MS else done
        if untold > start:
            found.append(_Wait(start, done, untold, call.name, _around(lane.operations, start)))
            until = untold
    if found:
        lane.operations = list(_without(lane.operations, [(each.start_ms, each.untold_ms) for each in found]))
        lane.operations += [
            _waiting(lane.device, each.done_ms, each.untold_ms, each) for each in found if each.untold_ms > each.done_ms
        ]
        lane.operations.sort(key=lambda each: each.start_ms)
    return found


def _cut_first_uses(built: _Built, process: Process, thread: Thread, number: int, shift: float) -> None:
    """Cut out of a thread the launches in which a kernel was loaded, where they take much of its time."""
    lane = built.lanes[number]
    names = {
        each.correlation: each.name
        for stream in process.streams.values()
        for each in stream
        if each.correlation is not None
    }
    seen: set[str] = set()
    found: list[Operation] = []
    for call in sorted(thread.calls, key=lambda each: each.start):
        kernel = names.get(call.correlation) if call.correlation is not None else None
        if kernel is None or "Launch" not in call.name or kernel in seen:
            continue
        seen.add(kernel)
        start, end = _ms(process, call.start, shift), _ms(process, call.end, shift)
        if end - start > FIRST_USE_MS and (not found or start >= found[-1].end_ms):
            found.append(Operation(lane.device, start, end, FIRST_USE, kernel_name(kernel), kind="runtime"))
    if not found:
        return
    traced_ms = max(each.end_ms for each in lane.operations) - min(each.start_ms for each in lane.operations)
    if sum(each.end_ms - each.start_ms for each in found) > FIRST_USE_SHARE * traced_ms:
        kept = _without(lane.operations, [(each.start_ms, each.end_ms) for each in found])
        lane.operations = sorted([*kept, *found], key=lambda each: each.start_ms)


def _around(operations: Sequence[Operation], moment: float) -> str:
    """The operator that a thread was in."""
    return next((each.operator for each in operations if each.start_ms <= moment < each.end_ms), "")


def _waiting(device: str, start: float, end: float, wait: _Wait) -> Operation:
    name = wait.call if wait.operator in ("", wait.call) else f"{wait.operator}: {wait.call}"
    return Operation(device, start, end, WAITING, name, kind="runtime")


def _fill_idle(built: _Built, label: str, waits_of: Sequence[_Wait]) -> None:
    """Say where accelerators had nothing to do, though a thread waited for what it had launched on them.

    Something that the trace does not have let the next kernel go on, such as another process.
    """
    mine = [(number, kernels) for number, kernels in built.launches if built.lanes[number].process == label]
    every = sorted(
        (each.start_ms, each.end_ms, number, each.start_ms if launch is None else launch[1])
        for number, kernels in mine
        for each, launch in kernels
    )
    ordered = sorted(waits_of, key=lambda each: each.start_ms)
    starts = [each.start_ms for each in ordered]
    until = float("inf")
    for start, end, number, launched in every:
        place = bisect_right(starts, start) - 1
        if start - until > RUNTIME_GAP_MS and place >= 0 and ordered[place].done_ms > start:
            begin = max(until, ordered[place].start_ms, launched if launched < start else until)
            if start - begin > RUNTIME_GAP_MS:
                lane = built.lanes[number]
                lane.operations.append(_waiting(lane.device, begin, start, ordered[place]))
        until = end if math.isinf(until) else max(until, end)


def _last(streams: Sequence[_Done], moment: float) -> _Done:
    """What ended last at a moment or before it."""
    place = bisect_right(streams, (moment + CLOSE_MS, float("inf"), 0)) - 1
    return streams[place] if place >= 0 else (float("-inf"), float("-inf"), 0)


def _without(operations: Sequence[Operation], holes: Sequence[tuple[float, float]]) -> Iterator[Operation]:
    """Operations less some stretches, which are sorted and disjoint."""
    ends = [end for _, end in holes]
    for each in operations:
        begin = each.start_ms
        for start, end in holes[bisect_right(ends, begin) :]:
            if start >= each.end_ms:
                break
            if start > begin:
                yield replace(each, start_ms=begin, end_ms=start)
            begin = max(begin, end)
        if begin < each.end_ms or each.start_ms == each.end_ms:
            yield replace(each, start_ms=begin)


def _fill_main(
    built: _Built,
    process: Process,
    thread: Thread,
    number: int,
    threads: Sequence[Lane],
    polled: Mapping[float, Signal],
    shift: float,
) -> None:
    """Say what the main thread did between its operators: waited for another thread, for its data, or ran Python."""
    lane = built.lanes[number]
    lane.operations.sort(key=lambda each: each.start_ms)
    sentinels = [
        Operation(
            lane.device, _ms(process, moment, shift), _ms(process, moment, shift), PYTHON, kind="python", likely="cpu"
        )
        for _, start, end in process.steps
        for moment in (start, end)
    ]
    lane.operations = sorted([*lane.operations, *sentinels], key=lambda each: (each.start_ms, each.end_ms))
    others = [each for each in threads if each.operations]
    lanes = {id(each): position for position, each in enumerate(built.lanes)}
    end_in_time(lane, others)
    waited = waits(lane, others)
    for _, end, which in waited:
        built.signals.append(Signal(lanes[id(others[which])], end, number, end, "waited for it"))
    holes = {begin: end for begin, end, _ in waited}
    for begin, signal in polled.items():
        if begin not in holes:
            holes[begin] = signal.target_ms
            built.signals.append(signal)
    synchronised = {each.target_ms for each in built.signals if each.target == number and each.why == "synchronize"}
    asked = sorted(
        (_ms(process, each.start, shift), _ms(process, each.end, shift), each.name) for each in inputs(thread)
    )

    python = _python if process.tells_host else _untold

    def between(last: Operation, following: Operation) -> Iterator[Operation]:
        begin = holes.get(last.end_ms, last.end_ms)
        if following.start_ms in synchronised:
            return
        place = bisect_right(asked, (begin, float("inf"), ""))
        for start, end, name in asked[max(place - 1, 0) : place + 2]:
            start, end = max(start, begin), min(end, following.start_ms)
            if end > start:
                yield from python(lane.device, begin, start)
                yield _asking(lane.device, start, end, name)
                begin = end
        yield from python(lane.device, begin, following.start_ms)

    lane.operations = filled(lane.operations, between)
    lane.cuts = list(_phase_cuts(lane.operations, process, thread, shift))


def _polled(built: _Built, number: int) -> dict[float, Signal]:
    """The gaps of a thread in which it asked again and again until a kernel had told something, by their begin.

    It calls nothing meanwhile, goes on as that kernel ends, and had launched nothing behind it on its stream: DeepEP
    waits so for the numbers of tokens that are on their way.
    """
    of_lanes = []
    for stream, kernels in built.launches:
        if built.lanes[stream].process == built.lanes[number].process:
            known = [(launch[1], each.end_ms) for each, launch in kernels if launch is not None]
            of_lanes.append((stream, known, [launched for launched, _ in known]))
    found = {}
    operations = sorted(built.lanes[number].operations, key=lambda each: each.start_ms)
    for last, following in pairwise(operations):
        begin, end = last.end_ms, following.start_ms
        if end - begin <= POLLED_MS:
            continue
        for stream, known, launched in of_lanes:
            place = bisect_right(launched, begin) - 1
            done = known[place][1] if place >= 0 else begin
            if done > begin and abs(done - end) <= SYNCHRONOUS_LAG_MS:
                told = min(done, end)
                found[begin] = Signal(stream, told, number, told, "polled")
    return found


def _python(device: str, start: float, end: float) -> Iterator[Operation]:
    if end > start:
        yield Operation(device, start, end, PYTHON, likely="cpu", kind="python")


def _untold(device: str, start: float, end: float) -> Iterator[Operation]:
    """Between two calls of the runtime, of a thread whose operators were not traced."""
    if end > start:
        yield Operation(device, start, end, "between calls", kind="runtime")


def _asking(device: str, start: float, end: float, mark: str) -> Operation:
    """A thread asks for its next batch: it waits for its loader's workers, or makes the batch itself."""
    name = mark.partition("#")[2] or mark
    if "_SingleProcess" in mark:
        return Operation(device, start, end, OWN_BATCHES, name, likely="cpu", kind="python")
    return Operation(device, start, end, WAIT_FOR_INPUT, name, kind="input")


def _engine(last: Operation, following: Operation) -> Iterator[Operation]:
    """Short gaps of threads that autograd's engine has: its own time."""
    if following.start_ms - last.end_ms <= RUNTIME_GAP_MS and "collective" not in (last.kind, following.kind):
        yield Operation(last.device, last.end_ms, following.start_ms, "autograd engine", likely="cpu", kind="runtime")


def _phase_cuts(operations: Sequence[Operation], process: Process, thread: Thread, shift: float) -> Iterator[float]:
    """Where one part of a step ends and the next begins."""
    marks = sorted(
        (_ms(process, each.start, shift), _ms(process, each.end, shift), found)
        for each in thread.marks
        if (found := mark_phase(each.name)) is not None
    )
    last = ""
    for each in operations:
        place = bisect_right(marks, (each.start_ms, float("inf"), "")) - 1
        inside = place >= 0 and marks[place][1] > each.start_ms
        now = (
            marks[place][2] if inside else "input" if each.kind == "input" else each.name if each.kind == "op" else last
        )
        if now not in (last, "communication"):
            if last:
                yield each.start_ms
            last = now


# Names ------------------------------------------------------------------------------------------------------------


def _stretch_name(lane: Lane, operations: Sequence[Operation]) -> str:
    """The part of the step, and what took longest in it."""
    longest = max(operations, key=lambda each: each.end_ms - each.start_ms)
    more = f" and {len(operations) - 1} more" if len(operations) > 1 else ""
    if longest.kind in ("kernel", "copy", "collective"):
        return f"{longest.name or longest.operator}{more}"
    time: dict[str, float] = {}
    for each in operations:
        named = "input" if each.kind == "input" else each.name if each.kind == "op" else ""
        time[named] = time.get(named, 0.0) + each.end_ms - each.start_ms
    part = max((each for each in time if each), key=lambda each: time[each], default="")
    return f"{part}: {longest.operator}{more}" if part and part != "input" else f"{longest.operator}{more}"


def _with_lanes(built: _Built) -> list[Device]:
    return [
        replace(each, lanes=sum(lane.device == each.name and bool(lane.operations) for lane in built.lanes))
        for each in built.devices.values()
        if any(lane.device == each.name and lane.operations for lane in built.lanes)
    ]
