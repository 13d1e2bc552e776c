"""A trace of PyTorch's profiler (Kineto) of one process as threads and streams.

What ran on a thread nests; the outermost operator is the one that counts, without wrappers such as compiled regions.
What a thread waited for, a kernel or another thread, is cut out of it, so that it shrinks with what it was waiting for.
Categories have had other names before PyTorch 1.12; devices that are not NVIDIA's have some of their own.
"""

from __future__ import annotations

import math
import re
import sys
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from query.frameworks.training.chrome import Event, number

HOST = frozenset(["cpu_op", "Operator", "operator"])
CALLS = frozenset(
    ["cuda_runtime", "cuda_driver", "Runtime", "Driver", "mtia_runtime", "xpu_runtime", "privateuse1_runtime"]
)
ON_DEVICE = frozenset(
    ["kernel", "Kernel", "gpu_memcpy", "Memcpy", "gpu_memset", "Memset", "mtia_ccp_events", "xpu_kernel", "privateuse1"]
)
MARKS = frozenset(["user_annotation"])
PYTHON = frozenset(["python_function"])

MOST_EVENTS = 400_000
"""More of a run are not kept: whole steps from its beginning are, as many as hold no more events."""

_STEP = re.compile(r"ProfilerStep#(?P<number>\d+)")
_FRAME = re.compile(r"(?P<file>[^()]+)\((?P<line>\d+)\): (?P<function>.+)")
_LIBRARY = re.compile(r"(?:^|/)(?:torch|site-packages|dist-packages|lib/python3)/|^<")
_ON_THREAD = re.compile(r"gloo:(?P<what>\w+)")
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
    """Of a collective what the trace says of who takes part, and in what."""


@dataclass
class Thread:
    """A thread of the process: what ran, calls of the device's runtime, marks of the program, Python's functions."""

    operators: list[Ran] = field(default_factory=list)
    calls: list[Ran] = field(default_factory=list)
    marks: list[Ran] = field(default_factory=list)
    functions: list[Ran] = field(default_factory=list)
    collectives: list[Ran] = field(default_factory=list)


@dataclass
class Process:
    """One trace: `steps` by number, `threads` and `streams` by their names, `header` what stands beside the events."""

    label: str
    header: dict[str, Any] = field(default_factory=dict)
    threads: dict[tuple[str, str], Thread] = field(default_factory=dict)
    streams: dict[tuple[str, str], list[Ran]] = field(default_factory=dict)
    steps: list[tuple[str, float, float]] = field(default_factory=list)
    main: tuple[str, str] | None = None
    until_us: float = math.inf
    """What began later was left out, since there was too much of it; by the trace's clock."""
    most: int = MOST_EVENTS
    tells_host: bool = False
    """Whether it has operators or functions of threads, so that what lies between these is Python."""

    @property
    def base_us(self) -> float:
        """What to add to its times for Unix time, µs."""
        base = self.header.get("baseTimeNanoseconds")
        return base / 1e3 if isinstance(base, int | float) and not isinstance(base, bool) else 0.0

    def ms(self, us: float, shift: float) -> float:
        """A time of the trace as Unix time, ms, once `shift` ms put its clock right."""
        return (us + self.base_us) / 1e3 + shift

    @property
    def rank(self) -> int | None:
        info = self.header.get("distributedInfo")
        rank = info.get("rank") if isinstance(info, dict) else None
        return rank if isinstance(rank, int) else None

    def take(self, events: Sequence[Event], names: dict[str, str]) -> None:
        """Keep of some events what counts.  `names` has each name once."""
        for each in events:
            if each.ph != "X":
                continue
            start, length = number(each.ts), number(each.dur)
            if start is None or length is None or length < 0 or start >= self.until_us:
                continue
            kind = each.cat if isinstance(each.cat, str) else ""
            raw = each.name if isinstance(each.name, str) else str(each.name)
            name = names.setdefault(raw, raw)
            self.tells_host = self.tells_host or kind in HOST or kind in PYTHON
            if kind in MARKS or (kind in HOST and is_mark(raw)):
                self._mark(each, Ran(start, start + length, name))
            elif kind in HOST:
                self._thread(each).operators.append(Ran(start, start + length, name))
            elif kind in CALLS:
                correlation = each.facts.correlation
                ran = Ran(start, start + length, name, correlation if isinstance(correlation, int) else None)
                self._thread(each).calls.append(ran)
            elif kind in ON_DEVICE:
                self._on_device(each, Ran(start, start + length, name))
            elif kind in PYTHON and is_telling(raw):
                self._thread(each).functions.append(Ran(start, start + length, name))
        if sum(map(len, self._every())) > 1.5 * self.most:  # in any order, so what is left out is known now and then
            self._shorten()

    def _shorten(self) -> None:
        """Keep what began first, up to the end of a step where there is one."""
        starts = sorted(each.start for events in self._every() for each in events)
        limit = starts[self.most]
        self.leave_out(max((end for _, _, end in self.steps if end <= limit), default=limit))

    def leave_out(self, from_us: float) -> None:
        """Leave out what began from then on, and steps that had not ended."""
        self.until_us = min(self.until_us, from_us)
        for events in self._every():
            events[:] = [each for each in events if each.start < self.until_us]
        self.steps = [each for each in self.steps if each[2] <= self.until_us]

    def _every(self) -> Iterator[list[Ran]]:
        for each in self.threads.values():
            yield from (each.operators, each.calls, each.marks, each.functions, each.collectives)
        yield from self.streams.values()

    def _thread(self, event: Event) -> Thread:
        return self.threads.setdefault((str(event.pid), str(event.tid)), Thread())

    def _mark(self, event: Event, ran: Ran) -> None:
        step = _STEP.fullmatch(ran.name)
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
        ran.correlation = facts.correlation if isinstance(facts.correlation, int) else None
        if isinstance(facts.bytes, int):
            ran.bytes = facts.bytes
        elif isinstance(facts.in_elements, int):
            ran.bytes = facts.in_elements * _SIZES.get(str(facts.element_type), 4)
        if COLLECTIVE.search(ran.name):
            told = (facts.collective, facts.group, facts.ranks)
            ran.group = sys.intern(" ".join(str(one) for one in told if one is not None))
        stream = facts.stream if facts.stream is not None else event.tid
        self.streams.setdefault((str(event.pid), re.sub(r"^stream ", "", str(stream))), []).append(ran)

    def main_thread(self) -> tuple[str, str] | None:
        """The thread that marks steps, else the one whose operators took the most time."""
        if self.main is not None and self.main in self.threads:
            return self.main

        def busy(thread: Thread) -> float:
            return sum(each.end - each.start for each in (*thread.operators, *thread.calls))

        return max(self.threads, key=lambda key: busy(self.threads[key]), default=None)


def is_telling(function: str) -> bool:
    """Whether a Python function says where in the program or in the model something ran."""
    if function.startswith("nn.Module: "):
        return True
    found = _FRAME.fullmatch(function)
    return found is not None and not _LIBRARY.search(found["file"])


def _bytes(dims: Any, types: Any) -> int | None:
    """Of tensors by their sizes and types."""
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


# Operators of a thread --------------------------------------------------------------------------------------------

_BACKWARD = "autograd::engine::evaluate_function: "
_NAMESPACED = re.compile(r"[\w.]+::")


@dataclass(slots=True)
class Outermost:
    """An operator that no other contains, with where it was called; µs."""

    ran: Ran
    phase: str
    module: str | None = None
    place: str | None = None

    @property
    def operator(self) -> str:
        return self.ran.name.removeprefix(_BACKWARD)


def outermost(thread: Thread) -> list[Outermost]:
    """The outermost operators of a thread in order, and the marks around them."""
    every = sorted(
        [
            *((each.start, -each.end, 0, each) for each in thread.functions),
            *((each.start, -each.end, 1, each) for each in thread.marks),
            *((each.start, -each.end, 2, each) for each in thread.operators),
        ],
        key=lambda one: one[:3],
    )
    found: list[Outermost] = []
    wrappers = _wrappers(thread.operators)
    functions: list[Ran] = []
    marks: list[Ran] = []
    until = float("-inf")
    for start, _, kind, each in every:
        for stack in (functions, marks):
            while stack and stack[-1].end <= start:
                stack.pop()
        if kind == 0:
            functions.append(each)
        elif kind == 1:
            marks.append(each)
        elif start >= until and id(each) not in wrappers:
            until = each.end
            found.append(Outermost(each, phase(each.name, marks), _module(functions), _place(functions)))
    return found


def _wrappers(operators: Sequence[Ran]) -> set[int]:
    """Operators that have no namespace and contain others: compiled regions, annotations of a program's own."""
    starts = sorted(each.start for each in operators)
    found = set()
    for each in operators:
        if not _NAMESPACED.match(each.name):
            inside = bisect_right(starts, each.end) - bisect_right(starts, each.start)
            if inside > 0:
                found.add(id(each))
    return found


def phase(operator: str, marks: Sequence[Ran]) -> str:
    """What part of a step it is."""
    for each in reversed(marks):
        if (named := mark_phase(each.name)) is not None:
            return named
    if operator.startswith(_BACKWARD) or "Backward" in operator:
        return "backward"
    return "communication" if operator.startswith(("c10d::", "nccl:")) else "forward"


def is_mark(operator: str) -> bool:
    """Whether what is told as an operator marks a step or a part of one: PyTorch 1.8 and 1.9 tell no other marks."""
    return _STEP.fullmatch(operator) is not None or mark_phase(operator) is not None


def mark_phase(mark: str) -> str | None:
    """The part of a step that a mark stands for."""
    if "DataLoader" in mark or mark.startswith(("enumerate(", "dataloader")):
        return "input"
    return "optimizer" if mark.startswith("Optimizer.") else None


def _module(functions: Sequence[Ran]) -> str | None:
    names = (
        each.name.removeprefix("nn.Module: ") for each in reversed(functions) if each.name.startswith("nn.Module: ")
    )
    return next(names, None)


def _place(functions: Sequence[Ran]) -> str | None:
    return next((each.name for each in reversed(functions) if not each.name.startswith("nn.Module: ")), None)


def inputs(thread: Thread) -> Iterator[Ran]:
    """When a thread asked for its next batch."""
    return (each for each in thread.marks if mark_phase(each.name) == "input")


_KERNEL = re.compile(r"(?:void )?(?:\(anonymous namespace\)::|[\w]+::)*(?P<name>[\w~]+)")


@cache
def kernel_name(text: str) -> str:
    """A kernel's name without its namespaces and template arguments; of a generic one its functor as well."""
    plain = re.sub(r"\(anonymous namespace\)::", "", text).removeprefix("void ")
    head = plain.partition("<")[0].partition("(")[0]
    name = head.rpartition("::")[2] or plain
    if name.endswith("elementwise_kernel") or name in ("reduce_kernel", "multi_tensor_apply_kernel"):
        functor = re.search(r"(?:::)(\w+(?:Functor|Ops|_functor|Op)\w*|\w+_kernel_cuda|\w+_kernel_impl)", plain)
        return f"{name} {functor[1]}" if functor else name
    return name


FREES = re.compile(r"(?:cuda|hip)Free$")
SYNCHRONIZES = re.compile(
    rf"(?:cuda|hip|mtia|xpu|cu)\w*Synchronize$|cudaMemcpy$|hipMemcpy$|deviceSynchronize|{FREES.pattern}"
)
COLLECTIVE = re.compile(
    r"nccl(?:Dev|Sym\w*)?Kernel|rccl|nccl:|mscclKernel"
    r"|(?:\b|deep_)ep::(?:inter|intra)node"  # DeepEP
    r"|cross_device_reduce_|allreduce_fusion_kernel"  # vLLM, SGLang, FlashInfer
    r"|(?:one_shot|two_shot|multimem)_all_(?:reduce|gather)|multimem_one_shot",  # PyTorch's symmetric memory
    re.IGNORECASE,
)
_BETWEEN_TWO = re.compile(r"SendRecv|gloo:(?:send|recv)")


def collective_key(name: str, group: str = "") -> str | None:
    """What tells a collective from others of its process; None of an exchange between two, where nobody else waits."""
    if _BETWEEN_TWO.search(name) and not group.startswith("all"):
        return None
    return f"{name} {group}"
