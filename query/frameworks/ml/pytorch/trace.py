"""Traces of one or many ranks as a trace of the core (query.trace).

A rank's threads are lanes of its process, the streams of each accelerator lanes of that.  A collective waits for all
ranks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace

from crystalperf.indexes.errors import InputError
from crystalperf.query.frameworks.ml.pytorch import (
    batch,
    collectives,
    first_uses,
    impossible,
    launches,
    memory,
    queue,
    steps,
    streams,
    threads,
    untraced,
    waits,
)
from crystalperf.query.frameworks.ml.pytorch.files import SAYS_NOTHING
from crystalperf.query.frameworks.ml.pytorch.kineto import MAX_EVENTS, Process, Ran
from crystalperf.query.frameworks.ml.pytorch.lanes import Built
from crystalperf.query.frameworks.ml.pytorch.outermost import Outermost, outermost
from crystalperf.query.frameworks.ml.training import chrome, program
from crystalperf.query.frameworks.ml.training.lanes import Lane, and_more, filled, longest_of, named_by_longest
from crystalperf.query.frameworks.ml.training.program import Device, Operation, Program, Step
from crystalperf.query.inputs.containers import LogFile
from crystalperf.query.inputs.unsupported import ASCEND, OTHER_NAMES
from crystalperf.query.trace.contract import Trace
from crystalperf.query.trace.records import Problems, shortened


def read(log: LogFile) -> Trace:
    """The trace of a run.  Raises InputError."""
    problems = Problems(log.problems)
    processes = []
    names: dict[str, str] = {}
    for number, part in enumerate(log.parts):
        process = Process(str(number), most=MAX_EVENTS // len(log.parts))
        pairs = chrome.Pairs(process.doubts)
        for events in chrome.read(log, part, problems, process.header, process.left_out_from):
            process.take(pairs.joined(events), names)
        pairs.finish()
        if process.is_ascend:
            raise InputError(f"{part.name}: is {ASCEND}; {OTHER_NAMES}")
        impossible.correct(process)
        process.doubts.report(part.name, problems)
        process.label = f"rank {process.rank if process.rank is not None else number}"
        if process.threads or process.streams:
            processes.append(process)
    if not any(each.streams or any(t.operators or t.calls for t in each.threads.values()) for each in processes):
        raise program.nothing_ran(log.origin, problems, "profile some steps, with ProfilerActivity.CPU")
    _shorten(processes, log.origin, problems)
    return program.trace(of_processes(processes, log.origin, problems), "pytorch", log, problems)


def _shorten(processes: Sequence[Process], origin: str, problems: Problems) -> None:
    """If steps of a rank were left out, leave them out of all ranks, and report it."""
    if not any(math.isfinite(each.until_us) for each in processes):
        return
    for each in processes:  # leave out incomplete steps too
        each.leave_out(each.until_us)
    common = set.intersection(*({number for number, _, _ in each.steps} for each in processes))
    if common:
        for each in processes:
            each.leave_out(max(end for number, _, end in each.steps if number in common))
    what = f"its first {len(common)} steps" if common else "its beginning"
    meaning = f"the trace has more than {MAX_EVENTS // 1000} 000 events: results cover only {what}"
    problems.add("long trace", "data loss", origin, None, meaning)


def of_processes(processes: Sequence[Process], origin: str, problems: Problems) -> Program:
    """The program of a run's processes."""
    _label_ranks(processes)
    collectives.align_clocks(processes, origin, problems)
    extremes = _extremes(processes)
    held = memory.of_processes(processes)
    without = untraced.retime(processes[0]) if len(processes) == 1 else None
    built = Built()
    for process in processes:
        _add_process(built, process)
    events = list(launches.events(built))
    exchanges = built.join()
    for lane in built.lanes:  # alignment may have moved the start of other ranks' collectives
        lane.operations.sort(key=lambda each: each.start_ms)
    built.signals += [*events, *launches.queued(built)]
    labels = [each.label for each in processes]
    of_ranks = [each for process in processes for each in steps.of_process(process, len(processes))]
    common = steps.common(of_ranks, len(processes))
    behind = {label: late for label in labels if (late := steps.backlog(built, of_ranks, label)) is not None}
    steps.keep_within(built, of_ranks, labels, behind)
    if common and behind:
        common[-1] = replace(common[-1], end_ms=max(common[-1].end_ms, *(each.end_ms for each in behind.values())))
    found = built.program(common, exchanges, _segment_name)
    if not found.segments:
        raise InputError(f"{origin}: the trace has no operators within its steps; profile whole steps")
    _report_untraced(processes, common, origin, problems)
    return replace(
        found,
        start_ms=common[0].start_ms if common else found.start_ms,
        name=_name(processes[0]),
        memory=held,
        step_ms=program.mean_step_ms(steps.with_backlogs(of_ranks, behind.values())),
        properties={
            **_properties(processes),
            **extremes,
            **({} if without is None else without.properties()),
            **({} if held is None else held.properties()),
            "queued_ms": f"{max(each.queued_ms for each in behind.values()):.6g}" if behind else "",
        },
    )


def _report_untraced(processes: Sequence[Process], common: Sequence[Step], origin: str, problems: Problems) -> None:
    """Report what the profiler was not configured to trace."""
    if any(each.calls for process in processes if not process.has_host for each in process.threads.values()):
        meaning = "CPU operators: only runtime calls of threads are known (profile with ProfilerActivity.CPU too)"
        problems.add("no operators", "data loss", origin, None, meaning)
    if any(_launches_untraced(each) for each in processes):
        meaning = "kernels: the work on accelerators is unknown (profile with ProfilerActivity.CUDA too)"
        problems.add("no kernels", "data loss", origin, None, meaning)
    if not common:
        meaning = "the trace marks no steps, so results cover all of it (call profiler.step() after each step)"
        problems.add("no steps", "info", origin, None, meaning)


def _extremes(processes: Sequence[Process]) -> dict[str, str]:
    """The shortest and the longest traced step of the process whose steps differ most, ms."""
    ends = []
    for process in processes:
        took = [end - start for _, start, end in process.steps]
        if len(took) > 1 and min(took) > 0:
            ends.append((max(took) / min(took), min(took) / 1e3, max(took) / 1e3))
    if not ends:
        return {}
    _, shortest, longest = max(ends)
    return {"shortest_step_ms": f"{shortest:.6g}", "longest_step_ms": f"{longest:.6g}"}


def _launches_untraced(process: Process) -> bool:
    calls = (call for thread in process.threads.values() for call in thread.calls)
    return not process.streams and any("LaunchKernel" in call.name for call in calls)


def _label_ranks(processes: Sequence[Process]) -> None:
    """Label processes by their order if their ranks are not recorded or not unique."""
    if len({each.label for each in processes}) < len(processes):
        for number, each in enumerate(processes):
            each.label = f"rank {number}"


def _name(process: Process) -> str | None:
    name = process.header.get("traceName")
    if not isinstance(name, str) or re.search(r"(?:^|/)tmp\w*\.json$", name):
        return None  # the profiler packs a temporary file
    name = re.sub(r".*/", "", name)
    return None if SAYS_NOTHING.match(name) else shortened(name)


def _properties(processes: Sequence[Process]) -> dict[str, str]:
    """Properties on which predictions and answers depend."""
    info = processes[0].header.get("distributedInfo")
    facts = info if isinstance(info, dict) else {}
    world_size, examples = facts.get("world_size"), batch.examples(processes[0])
    return {
        "batch": "" if examples is None else str(examples),
        "backend": str(facts["backend"])[:40] if isinstance(facts.get("backend"), str) else "",
        "world_size": str(world_size) if isinstance(world_size, int) else "",
        "traced": str(len(processes)),
        "processes": str(max(world_size if isinstance(world_size, int) else 1, len(processes))),
        "synchronous": "yes",
    }


def _add_process(built: Built, process: Process) -> None:
    label, main = process.label, process.main_thread()
    built.devices[label] = Device(label, label)
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
        lane.releases = "any" if is_main or thread.operators or thread.collectives else "none"
        lane.operations = filled(threads.as_operations(process, thread, by_thread[key]))
        lane.operations += [collectives.as_operation(process, each) for each in thread.collectives]
        built.lanes.append(lane)
        for call in thread.calls:
            if call.correlation is not None:
                launched[call.correlation] = (numbers[key], call)
    ended, of_call = streams.add(built, process, launched, by_thread, numbers)
    collectives.add(built, process, numbers, by_thread)
    waited: list[waits.Wait] = []
    pending = queue.of_process(process, of_call)
    for key in order:
        thread = process.threads[key]
        waited += waits.cut_synchronous(built, process, thread, numbers[key], ended, of_call, pending)
        first_uses.cut(built, process, thread, numbers[key])
    waits.fill_idle(built, label, waited)
    if main is not None:
        others = [built.lanes[number] for key, number in numbers.items() if key != main]
        polled = waits.polled(built, numbers[main])
        threads.fill_main(built, process, process.threads[main], numbers[main], others, polled)
    for key, number in numbers.items():
        if key != main:
            lane = built.lanes[number]
            lane.operations = filled(lane.operations, threads.engine) if process.has_host else filled(lane.operations)


def _segment_name(lane: Lane, operations: Sequence[Operation]) -> str:
    """The name of a segment: the part of the step, and the longest operation in it."""
    longest = longest_of(operations)
    if longest.kind in ("kernel", "copy", "collective"):
        return named_by_longest(lane, operations)
    time: dict[str, float] = {}
    for each in operations:
        named = "input" if each.kind == "input" else each.name if each.kind == "op" else ""
        time[named] = time.get(named, 0.0) + each.end_ms - each.start_ms
    part = max((each for each in time if each), key=lambda each: time[each], default="")
    within = f"{part}: " if part and part != "input" else ""
    return f"{within}{longest.operator}{and_more(operations)}"
