"""TensorFlow's timeline, Chrome's JSON made of RunMetadata, converted back to its steps.

It lacks the bytes of transfers and the real threads; its inputs say what a kernel waited for.  The profiler's trace
viewer writes the same format from an XPlane: such a file is read as an XPlane.
"""

from __future__ import annotations

from collections.abc import Iterator

from crystalperf.query.frameworks.ml.tensorflow import graph, xplane
from crystalperf.query.frameworks.ml.tensorflow.messages import DeviceStats, NodeStats, RunMetadata
from crystalperf.query.frameworks.ml.tensorflow.xplane import HostOperations, Line, Plane, Traced
from crystalperf.query.frameworks.ml.training import chrome, times
from crystalperf.query.frameworks.ml.training.chrome import Event
from crystalperf.query.frameworks.ml.training.program import Program
from crystalperf.query.inputs.containers import LogFile
from crystalperf.query.trace.records import Problems

_COMPUTE = " Compute"


def program(log: LogFile, problems: Problems, framework: str, of_line: HostOperations) -> Program:
    """The program of a timeline."""
    processes: dict[object, str] = {}
    threads: dict[tuple[object, object], str] = {}
    ran: list[Event] = []
    doubts = times.Doubts()
    for part in log.parts:
        pairs = chrome.Pairs(doubts)
        for events in chrome.read(log, part, problems, {}):
            for each in pairs.joined(events):
                if each.ph == "M" and each.name == "process_name":
                    processes[each.pid] = str(each.facts.name or "")
                elif each.ph == "M" and each.name == "thread_name":
                    threads[each.pid, each.tid] = str(each.facts.name or "")
                elif each.ph == "X" and doubts.span(chrome.number(each.ts), chrome.number(each.dur)):
                    ran.append(each)
        pairs.finish()
    doubts.report(log.origin, problems)
    if any(each.cat == "Op" for each in ran):
        step = RunMetadata(list(_devices(ran, processes)))
        return graph.program([("", step)], log.origin, problems)
    planes = list(_planes(ran, processes, threads))
    return xplane.of_planes([(log.app_id or framework, planes)], log.origin, problems, framework, of_line)


def _devices(ran: list[Event], processes: dict[object, str]) -> Iterator[DeviceStats]:
    by_process: dict[object, list[Event]] = {}
    for each in ran:
        by_process.setdefault(each.pid, []).append(each)
    for pid, events in by_process.items():
        name = processes.get(pid, "")
        if name.endswith(_COMPUTE):
            device = name.removesuffix(_COMPUTE)
            yield DeviceStats(device, [_node(each, "/stream:" in device or "/memcpy" in device) for each in events])


def _node(event: Event, stream: bool) -> NodeStats:
    facts = event.facts
    name, operator = str(facts.name or event.name), str(facts.op or event.name)
    start, length = chrome.number(event.ts) or 0.0, chrome.number(event.dur) or 0.0
    label = f"{name} = {operator}({', '.join(facts.inputs)})"
    if stream:
        name, label = f"{name}:{operator}", str(event.name)
    elif operator == "RecvTensor":
        label = ""
    return NodeStats(name, start, start + length, 0.0, label, 0)


def _planes(
    ran: list[Event], processes: dict[object, str], threads: dict[tuple[object, object], str]
) -> Iterator[Plane]:
    by_thread: dict[tuple[object, object], list[Traced]] = {}
    for each in ran:
        start, length = chrome.number(each.ts), chrome.number(each.dur)
        if start is not None and length is not None:
            found = Traced(str(each.name), start / 1e3, (start + length) / 1e3, each.facts.stats)
            by_thread.setdefault((each.pid, each.tid), []).append(found)
    for pid, name in processes.items():
        lines = [
            Line(threads.get((process, tid), str(tid)), events)
            for (process, tid), events in by_thread.items()
            if process == pid
        ]
        yield Plane(name, lines, {})
