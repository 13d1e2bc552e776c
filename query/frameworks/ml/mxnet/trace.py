"""A trace of MXNet's profiler as a trace of the core (query.trace).

The program calls MXNet, whose engine later runs operators on devices with its own threads: calls are the program's
lane, each thread of the engine is a lane of its device.  A call that waits (WaitAll, SyncCopyToCPU, …) waits for the
operator that ended last.  No event records which call submitted an operator: it is assumed to have waited for what
ended last.

The profiler shows each operator twice, once on its device (B, E) and once by its kind (b, e); the first counts.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from crystalperf.indexes.regex import regex
from crystalperf.query.frameworks.ml.training import chrome, program, times
from crystalperf.query.frameworks.ml.training.assembly import Assembly
from crystalperf.query.frameworks.ml.training.chrome import Event, number
from crystalperf.query.frameworks.ml.training.devices import GPU, HBM, PCIE, roofline_bound
from crystalperf.query.frameworks.ml.training.lanes import Lane, Signal, filled
from crystalperf.query.frameworks.ml.training.program import Device, Operation, Program
from crystalperf.query.inputs.containers import LogFile
from crystalperf.query.trace.contract import Trace
from crystalperf.query.trace.records import Problems

PROCESS = "process"
"""The device of the program's own calls."""

_CALL = "MXNET_C_API"
_DEVICE = regex(r"(?P<kind>cpu|gpu|cpu pinned|cpu shared)/\d*")
_WAITS = regex(r"Wait|SyncCopyToCPU")
_COPY = regex(r"Copy(?P<source>CPU|GPU)2(?P<target>CPU|GPU)")
_EXCHANGE = regex(r"KVStoreDist|Horovod|AllReduce", re.IGNORECASE)
_PRODUCT = regex(r"FullyConnected|(?:^|_)dot(?:$|_)")
_ENGINE = frozenset(["DeleteVariable", "[Deleted]", "SetupExec", "ResourceRandomSetSeed"])


def read(log: LogFile) -> Trace:
    """The trace of a run.  Raises InputError."""
    problems = Problems(log.problems)
    found = _Read()
    for part in log.parts:
        pairs = chrome.Pairs(found.doubts)
        for events in chrome.read(log, part, problems, {}):
            for each in pairs.joined(events):
                found.take(each)
        pairs.finish()
    found.leave_out()
    found.doubts.report(log.origin, problems)
    if not any(found.on_device.values()) and not any(found.calls.values()):
        raise program.nothing_ran(log.origin, problems, "run the profiler during training steps")
    return program.trace(of_events(found, log.origin, problems), "mxnet", log, problems)


@dataclass
class _Read:
    """The recorded operations, from start and end events; µs.  Operators by (device, thread), calls by thread."""

    names: dict[str, str] = field(default_factory=dict)
    on_device: dict[tuple[str, str], list[tuple[float, float, str]]] = field(default_factory=dict)
    calls: dict[str, list[tuple[float, float, str]]] = field(default_factory=dict)
    doubts: times.Doubts = field(default_factory=times.Doubts)
    _open: dict[tuple[str, str], list[float]] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        """Add an event if it is relevant."""
        if event.ph == "M" and event.name == "process_name":
            self.names[str(event.pid)] = str(event.facts.name or "")
            return
        moment, name = number(event.ts), str(event.name)
        if moment is None:
            return
        if event.cat == _CALL and event.ph in ("b", "e"):
            self._pair(event.ph, (str(event.id), name), moment, self.calls.setdefault(str(event.id), []))
        elif event.ph == "X" and (span := self.doubts.span(moment, number(event.dur))) is not None:
            key = self.names.get(str(event.pid), str(event.pid)), str(event.tid)
            self.on_device.setdefault(key, []).append((moment, moment + span[1], name))

    def _pair(self, mark: str, key: tuple[str, str], moment: float, to: list[tuple[float, float, str]]) -> None:
        """End the last open call of that name."""
        begun = self._open.setdefault(key, [])
        if mark == "b":
            begun.append(moment)
        elif begun and self.doubts.span(start := begun.pop(), moment - start) is not None:
            to.append((start, moment, key[-1]))

    def leave_out(self) -> None:
        """Leave out events hours or years apart from the others."""
        lists = [*self.on_device.values(), *self.calls.values()]
        window = times.window(
            [start for each in lists for start, _, _ in each], [end for each in lists for _, end, _ in each], per_ms=1e3
        )
        for each in lists:
            each[:] = [ran for ran in each if window.holds(ran[0], ran[1], self.doubts)]


def of_events(found: _Read, origin: str, problems: Problems) -> Program:
    """The program of a process."""
    built = Assembly()
    for place, ((device, _), ran) in enumerate(sorted(found.on_device.items()), 1):
        if ran:
            operations = filled(_operation(device, each) for each in ran)
            built.lanes.append(Lane(device, f"thread {place}", PROCESS, operations))
            built.devices[device] = Device(device, PROCESS, accelerator=device.startswith("gpu/"))
    engine = tuple(built.lanes)
    for place, (_, ran) in enumerate(sorted(found.calls.items()), 1):
        if ran:
            name, lane_number = "program" if len(found.calls) == 1 else f"program, thread {place}", len(built.lanes)
            operations, waited = _calls(sorted(ran), engine)
            built.signals += [Signal(source, moment, lane_number, moment, "waited for it") for source, moment in waited]
            built.lanes.append(Lane(PROCESS, name, PROCESS, operations, infers=False))
    problems.add(
        "no dependencies",
        "info",
        origin,
        None,
        "MXNet's profiler does not record what an operator waited for: CrystalPerf assumes the operation that ended"
        " last before it",
    )
    return built.program()


def _operation(device: str, ran: tuple[float, float, str]) -> Operation:
    start, end, name = ran
    whole = Operation(device, start / 1e3, end / 1e3, name, kind="op", likely="cpu")
    copy = _COPY.search(name)
    if copy is not None:
        between = copy["source"] != copy["target"]
        resource = PCIE.name if between else HBM.name if copy["source"] == "GPU" else "cpu"
        return replace(whole, kind="copy", resource=resource, likely="")
    if _EXCHANGE.search(name):
        return replace(whole, kind="collective", resource="net", likely="")
    if name in _ENGINE:
        return replace(whole, kind="runtime")
    kind = _DEVICE.fullmatch(device)
    if kind is not None and kind["kind"] == "gpu":
        resource = GPU.name if _PRODUCT.search(name) else roofline_bound(name)
        return replace(whole, kind="kernel", resource=resource, likely="")
    return whole


def _calls(
    ran: Sequence[tuple[float, float, str]], engine: Sequence[Lane]
) -> tuple[list[Operation], list[tuple[int, float]]]:
    """The program's calls with its own time between them; and for calls that wait, (lane, moment) of what they waited
    for.
    """
    ends = sorted((each.end_ms, number) for number, lane in enumerate(engine) for each in lane.operations)
    found: list[Operation] = []
    waited: list[tuple[int, float]] = []
    for start, end, name in ran:
        begin_ms, end_ms = start / 1e3, end / 1e3
        if _WAITS.search(name):
            place = bisect_right(ends, (end_ms, len(engine))) - 1
            if place >= 0 and ends[place][0] > begin_ms:
                begin_ms, source = ends[place]
                waited.append((source, begin_ms))
        found.append(Operation(PROCESS, begin_ms, end_ms, name, kind="op", likely="cpu"))
    until = {moment for _, moment in waited}

    def between(last: Operation, following: Operation) -> Iterator[Operation]:
        if following.start_ms not in until:
            yield Operation(PROCESS, last.end_ms, following.start_ms, "Python", kind="python", likely="cpu")

    return filled(found, between), waited
