"""A trace of PyTorch's profiler (Kineto) of one process as threads and streams.

Events of a thread are nested; the outermost operator counts, without wrappers such as compiled regions.  A thread's
waits for a kernel or another thread are cut out of it, so that they shrink with what it waited for.  Categories had
other names before PyTorch 1.12; devices of makers other than NVIDIA have some of their own.
"""

from __future__ import annotations

import math
import re
import sys
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from crystalperf.indexes.regex import regex
from crystalperf.query.frameworks.ml.pytorch.names import MODULE, STEP, is_collective, is_informative, is_mark
from crystalperf.query.frameworks.ml.training.chrome import Event, number
from crystalperf.query.frameworks.ml.training.roofline import Grid, grid_of
from crystalperf.query.frameworks.ml.training.times import Doubts
from crystalperf.query.trace.records import LARGEST

HOST = frozenset(["cpu_op", "Operator", "operator"])
CALLS = frozenset(
    ["cuda_runtime", "cuda_driver", "Runtime", "Driver", "mtia_runtime", "xpu_runtime", "privateuse1_runtime"]
)
ON_DEVICE = frozenset(
    ["kernel", "Kernel", "gpu_memcpy", "Memcpy", "gpu_memset", "Memset", "mtia_ccp_events", "xpu_kernel", "privateuse1"]
)
MARKS = frozenset(["user_annotation"])
PYTHON = frozenset(["python_function"])
_READ = HOST | CALLS | ON_DEVICE | MARKS | PYTHON

SHORTEST_US = 50.0
"""Shorter functions of a library count as a part of their callers; in a long trace also those of the program."""

MAX_EVENTS = 400_000
"""Maximum events kept of a run; a longer trace is cut to its first whole steps."""

MEMORY = "[memory]"
"""The name of events of memory; `Device Type` is 0 for the host's."""

_ON_THREAD = regex(r"gloo:(?P<what>\w+)")
_SIZES = {
    "float": 4, "double": 8, "c10::Half": 2, "c10::BFloat16": 2, "int": 4, "long": 8, "long int": 8, "unsigned char": 1,
    "bool": 1, "Float": 4, "BFloat16": 2, "Half": 2, "Double": 8, "Int": 4, "Long": 8, "Byte": 1,
}  # fmt: skip


@dataclass(slots=True)
class Ran:
    """An event on a thread or stream, µs by the trace's clock."""

    start: float
    end: float
    name: str
    correlation: int | None = None
    bytes: int | None = None
    group: str = ""
    """The processes and data of a collective, as recorded."""
    inputs: tuple[Any, Any, Any, Any] | None = None
    """Sizes, types, strides and values of an operator's inputs, as recorded; work.launch reads them."""
    grid: Grid | None = None


@dataclass(frozen=True, slots=True)
class Allocation:
    """The allocator of an accelerator handed out a block, or took it back (`bytes` < 0); µs by the trace's clock.

    Blocks of the program had `allocated` bytes then, and the allocator `reserved`.
    """

    moment: float
    thread: tuple[str, str]
    device: int
    address: int
    bytes: int
    allocated: int
    reserved: int


@dataclass
class Thread:
    """A thread of the process: its events, calls of the device's runtime, marks of the program, Python functions."""

    operators: list[Ran] = field(default_factory=list)
    calls: list[Ran] = field(default_factory=list)
    marks: list[Ran] = field(default_factory=list)
    functions: list[Ran] = field(default_factory=list)
    library: list[Ran] = field(default_factory=list)
    """Python functions of libraries, and C functions, except short ones."""
    collectives: list[Ran] = field(default_factory=list)
    has_python: bool = False
    """Whether the trace has Python functions for it, of any file."""

    def events(self) -> tuple[list[Ran], ...]:
        """All lists of its events."""
        return self.operators, self.calls, self.marks, self.functions, self.library, self.collectives


@dataclass
class Process:
    """One trace: `steps` by number, `threads` and `streams` by their names, `header` the members outside of the events.

    `shift_ms` is the correction of its times to the clock of the other processes.
    """

    label: str
    shift_ms: float = 0.0
    header: dict[str, Any] = field(default_factory=dict)
    threads: dict[tuple[str, str], Thread] = field(default_factory=dict)
    streams: dict[tuple[str, str], list[Ran]] = field(default_factory=dict)
    steps: list[tuple[str, float, float]] = field(default_factory=list)
    main: tuple[str, str] | None = None
    until_us: float = math.inf
    """Later events were left out because there are too many; by the trace's clock."""
    most: int = MAX_EVENTS
    has_host: bool = False
    """Whether it has operators or functions of threads, so that the time between them is Python."""
    recorded: array[float] = field(default_factory=lambda: array("d"))
    """When each operator and Python function began that the profiler recorded, of those left out too, µs."""
    allocations: list[Allocation] = field(default_factory=list)
    """Of accelerators, in any order; the first MAX_EVENTS of them."""
    shortest_us: float = 0.0
    """Shorter functions of the program count as a part of their callers."""
    doubts: Doubts = field(default_factory=Doubts)
    is_ascend: bool = False
    """Whether Ascend's profiler wrote it, whose events of devices have names and categories of their own."""

    @property
    def base_us(self) -> float:
        """The offset of its times to Unix time, µs."""
        base = self.header.get("baseTimeNanoseconds")
        return base / 1e3 if isinstance(base, int | float) and not isinstance(base, bool) else 0.0

    def ms(self, us: float) -> float:
        """A time of the trace as Unix time, ms."""
        return (us + self.base_us) / 1e3 + self.shift_ms

    @property
    def rank(self) -> int | None:
        info = self.header.get("distributedInfo")
        rank = info.get("rank") if isinstance(info, dict) else None
        return rank if isinstance(rank, int) else None

    def left_out_from(self) -> float:
        """From when on events are left out so far, by the trace's clock, µs."""
        return self.until_us

    def take(self, events: Sequence[Event], names: dict[str, str]) -> None:
        """Add the relevant events.  `names` interns names."""
        for each in events:
            if each.ph != "X":
                named = each.facts.name if each.ph == "M" and each.name == "process_name" else None
                self.is_ascend = self.is_ascend or named == "Ascend Hardware" or each.cat == "async_npu"
                if each.ph == "i" and each.name == MEMORY:
                    self._allocate(each)
                continue
            kind = each.cat if isinstance(each.cat, str) else ""
            if kind not in _READ:
                continue
            span = self.doubts.span(number(each.ts), number(each.dur))
            if span is None or span[0] >= self.until_us:
                continue
            start, length = span
            raw = each.name if isinstance(each.name, str) else str(each.name)
            name = names.setdefault(raw, raw)
            self._add(each, kind, raw, Ran(start, start + length, name))
        if sum(map(len, self.events())) > 1.5 * self.most:  # events come in any order: shorten now and then
            self._shorten()

    def _add(self, event: Event, kind: str, raw: str, ran: Ran) -> None:
        """Add one event of a kind that is read."""
        if kind in HOST or kind in PYTHON:
            self.has_host = True
            self.recorded.append(ran.start)
        if kind in MARKS or (kind in HOST and is_mark(raw)):
            self._mark(event, ran)
        elif kind in HOST:
            if (facts := event.facts).dims:
                ran.inputs = facts.dims, facts.types, facts.strides, facts.arguments
            self._thread(event).operators.append(ran)
        elif kind in CALLS:
            correlation = event.facts.correlation
            ran.correlation = correlation if isinstance(correlation, int) else None
            self._thread(event).calls.append(ran)
        elif kind in ON_DEVICE:
            self._on_device(event, ran)
        else:
            self._function(self._thread(event), raw, ran)

    def _allocate(self, event: Event) -> None:
        """Add an event of an accelerator's memory."""
        facts, moment = event.facts, number(event.ts)
        values = (facts.device, facts.address, facts.size, facts.allocated, facts.reserved)
        of_host = facts.device_type == 0
        known = moment is not None and all(isinstance(each, int) and abs(each) < LARGEST for each in values)
        if moment is not None and known and not of_host and facts.allocated >= 0 and len(self.allocations) < self.most:
            self.allocations.append(Allocation(moment, (str(event.pid), str(event.tid)), *values))

    def _function(self, thread: Thread, raw: str, ran: Ran) -> None:
        """Add a Python function, if it is of the program or long."""
        thread.has_python = True
        length = ran.end - ran.start
        if is_informative(raw):
            if length >= self.shortest_us or raw.startswith(MODULE):
                thread.functions.append(ran)
        elif length >= SHORTEST_US:
            thread.library.append(ran)

    def _shorten(self) -> None:
        """Keep the earliest events, up to the end of a step if there is one.

        A loop in Python calls functions, or resumes a generator, a million times a second: these are left out first.
        """
        if not self.shortest_us:
            self.shortest_us = SHORTEST_US
            for thread in self.threads.values():
                thread.functions[:] = [
                    each
                    for each in thread.functions
                    if each.end - each.start >= SHORTEST_US or each.name.startswith(MODULE)
                ]
            if sum(map(len, self.events())) <= 1.5 * self.most:
                return
        starts = sorted(each.start for events in self.events() for each in events)
        limit = starts[self.most]
        self.leave_out(max((end for _, _, end in self.steps if end <= limit), default=limit))

    def leave_out(self, from_us: float) -> None:
        """Leave out events from a time on, and steps that had not ended."""
        self.until_us = min(self.until_us, from_us)
        for events in self.events():
            events[:] = [each for each in events if each.start < self.until_us]
        self.steps = [each for each in self.steps if each[2] <= self.until_us]

    def events(self) -> Iterator[list[Ran]]:
        """All lists of its events except steps; they may be changed."""
        for each in self.threads.values():
            yield from each.events()
        yield from self.streams.values()

    def drop_empty(self) -> None:
        """Leave out threads and streams without events."""
        self.threads = {key: each for key, each in self.threads.items() if any(each.events())}
        self.streams = {key: each for key, each in self.streams.items() if each}

    def _thread(self, event: Event) -> Thread:
        return self.threads.setdefault((str(event.pid), str(event.tid)), Thread())

    def _mark(self, event: Event, ran: Ran) -> None:
        step = STEP.fullmatch(ran.name)
        if step is not None:
            self.steps.append((step["number"], ran.start, ran.end))
            self.main = str(event.pid), str(event.tid)
        elif _ON_THREAD.match(ran.name):
            ran.bytes = _bytes(event.facts.dims, event.facts.types)
            self._thread(event).collectives.append(ran)
        else:
            self._thread(event).marks.append(ran)

    def _on_device(self, event: Event, ran: Ran) -> None:
        facts = event.facts
        ran.grid = grid_of(facts.grid, facts.block)
        ran.correlation = facts.correlation if isinstance(facts.correlation, int) else None
        if isinstance(facts.bytes, int):
            ran.bytes = facts.bytes
        elif isinstance(facts.in_elements, int):
            ran.bytes = facts.in_elements * _SIZES.get(str(facts.element_type), 4)
        if is_collective(ran.name):
            parts = (facts.collective, facts.group, facts.ranks)
            ran.group = sys.intern(" ".join(str(one) for one in parts if one is not None))
        stream = facts.stream if facts.stream is not None else event.tid
        self.streams.setdefault((str(event.pid), re.sub(r"^stream ", "", str(stream))), []).append(ran)

    def main_thread(self) -> tuple[str, str] | None:
        """The thread that marks steps, else the one whose operators took the most time."""
        if self.main is not None and self.main in self.threads:
            return self.main

        def busy(thread: Thread) -> float:
            return sum(each.end - each.start for each in (*thread.operators, *thread.calls))

        return max(self.threads, key=lambda key: busy(self.threads[key]), default=None)


def _bytes(dims: Any, types: Any) -> int | None:
    """Bytes of tensors by their sizes and types."""
    if not isinstance(dims, list) or not isinstance(types, list):
        return None
    total = 0
    for shape, kind in zip(dims, types, strict=False):
        if isinstance(shape, list) and str(kind) in _SIZES:
            count = 1
            for each in shape:
                count *= each if isinstance(each, int) else 1
            total += count * _SIZES[str(kind)] if shape else 0
    return total or None
