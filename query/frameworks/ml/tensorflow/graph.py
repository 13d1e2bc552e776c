"""Steps of a TensorFlow graph: the work of the program, from RunMetadata of one or several processes.

Each kernel is a segment of its own, because the graph records what it waited for: its inputs, in its own partition or
by a transfer from another.  A trace has single steps, with untraced ones in between; so each worker's steps are placed
end to end, and its time between them is left out.

TensorFlow records no threads.  A device has as many lanes as it ran kernels concurrently.  A kernel that had its inputs
and started as another of its process ended waited for the other's thread: an executor runs small kernels on its own
thread, one after another, even if other threads of the pool are idle.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from crystalperf.indexes.regex import regex
from crystalperf.query.frameworks.ml.tensorflow.messages import (
    DeviceStats,
    NodeDef,
    NodeStats,
    RunMetadata,
    Transfer,
    kernel_label,
    transfer_label,
)
from crystalperf.query.frameworks.ml.tensorflow.operator_kinds import is_input, likely_of
from crystalperf.query.frameworks.ml.training import times
from crystalperf.query.frameworks.ml.training.devices import PCIE, roofline_bound
from crystalperf.query.frameworks.ml.training.lanes import CLOSE_MS, WAIT_MS, WAIT_SHARE
from crystalperf.query.frameworks.ml.training.program import Device, Operation, Program, Segment, Source, Step, numbered
from crystalperf.query.frameworks.ml.training.servers import Demand, union_ms
from crystalperf.query.trace.contract import EdgeKind
from crystalperf.query.trace.records import Problems

_TASK = regex(r"/job:(?P<job>[^/]+)/replica:\d+/task:(?P<task>\d+)")
_ACCELERATOR = regex(r"(?:device:)?(?P<kind>gpu|tpu):(?P<number>\d+)", re.IGNORECASE)
_STREAM = regex(r"/stream:(?P<stream>\w+)|/memcpy", re.IGNORECASE)
_COPY = regex(r"MEMCPY(?P<way>[HD]to[HDA])", re.IGNORECASE)
_EDGE = regex(r"^edge_\d+_")
_CLIENT_OPS = frozenset(["_SOURCE", "_SINK"])

CLOCKS_APART_MS = 0.2
"""Clocks of two machines count as equal up to this skew."""


@dataclass
class _Kernel:
    """One kernel or transfer of a step; ms on the clock of its task until clocks are aligned."""

    device: str
    task: str
    node: str
    operator: str
    start_ms: float
    end_ms: float
    ready_ms: float | None
    inputs: list[str]
    label: str
    stream: bool = False
    transfer: Transfer | None = None
    bytes: int | None = None
    sources: list[int] = field(default_factory=list)


@dataclass
class _TracedStep:
    owner: str
    number: str
    kernels: list[_Kernel]

    @property
    def start_ms(self) -> float:
        return min(each.start_ms if each.ready_ms is None else each.ready_ms for each in self.kernels)

    @property
    def end_ms(self) -> float:
        return max(each.end_ms for each in self.kernels)


def task_of(device: str) -> str:
    """`worker:0` of /job:worker/replica:0/task:0/device:CPU:0; the process itself if no job is named."""
    found = _TASK.search(device)
    if found is None or found["job"] == "localhost":
        return "process"
    return f"{found['job']}:{found['task']}"


def device_of(device: str) -> str:
    """The task, and its accelerator if any: `worker:0`, `worker:0 GPU:1`."""
    accelerator = _ACCELERATOR.search(device)
    task = task_of(device)
    return task if accelerator is None else f"{task} {accelerator['kind'].upper()}:{accelerator['number']}"


def program(steps: Sequence[tuple[str, RunMetadata]], origin: str, problems: Problems) -> Program:
    """The work of the steps; each is (its name, its RunMetadata), in order of time."""
    traced, doubts = [], times.Doubts()
    for number, (label, found) in enumerate(steps, 1):
        kernels = _plausible(list(_kernels(found, doubts)), doubts)
        if kernels:
            _tie(kernels, found.partitions)
            _align(kernels, origin, problems)
            _cut_at_launches(kernels)
            traced.append(_TracedStep(_owner(kernels), label or str(number), kernels))
    doubts.report(origin, problems)
    if not any(found.partitions for _, found in steps) and traced:
        problems.add(
            "no graph",
            "info",
            origin,
            None,
            "steps have no graph (set RunOptions.output_partition_graphs), so CrystalPerf reads the inputs of a kernel"
            " from its label",
        )
    return _stacked(traced)


def _kernels(found: RunMetadata, doubts: times.Doubts) -> Iterator[_Kernel]:
    has_all = {device_of(each.device) for each in found.devices if each.device.endswith("stream:all")}
    for each in found.devices:
        stream = _STREAM.search(each.device)
        if stream is not None and device_of(each.device) in has_all and stream["stream"] not in ("all", None):
            continue  # a repetition of the streams' kernels
        own = []
        for node in each.nodes:
            if node.name in _CLIENT_OPS:
                continue
            if node.start <= 0:
                doubts.counts["unset"] += 1
            elif node.end < node.start:
                doubts.counts["negative"] += 1
            else:
                own.append(_kernel(each, node, stream is not None))
        if stream is not None and stream["stream"] not in ("all", None):
            _end_overlong(own, doubts)
        yield from own


def _end_overlong(kernels: Sequence[_Kernel], doubts: times.Doubts) -> None:
    """End the kernels of one stream that the next ones contradict."""
    own = sorted(kernels, key=lambda one: one.start_ms)
    starts, ends = [each.start_ms for each in own], [each.end_ms for each in own]
    bounded = times.overlong([each.operator for each in own], starts, ends, WAIT_MS)
    doubts.counts["corrected"] += len(bounded)
    for place, end_ms in bounded.items():
        own[place].end_ms = end_ms


def _plausible(kernels: list[_Kernel], doubts: times.Doubts) -> list[_Kernel]:
    """The kernels of a step without those of another time, by task because tasks have clocks of their own."""
    windows = {}
    for task in dict.fromkeys(each.task for each in kernels):
        own = [each for each in kernels if each.task == task]
        windows[task] = times.window([each.start_ms for each in own], [each.end_ms for each in own])
    kept = [each for each in kernels if windows[each.task].holds(each.start_ms, each.end_ms, doubts)]
    for each in kept:
        if each.ready_ms is not None and each.ready_ms < windows[each.task].first - times.APART_MS:
            each.ready_ms = None
    return kept


def _kernel(device: DeviceStats, node: NodeStats, stream: bool) -> _Kernel:
    transfer = transfer_label(node.label) if node.name == "RecvTensor" else None
    label = None if transfer is not None else kernel_label(node.label)
    operator = node.name if label is None else label[0]
    if stream:
        operator = node.label.rpartition("@@")[2] or node.label or node.name
        copy = _COPY.search(node.name) or _COPY.search(node.label)
        operator = copy[0] if copy is not None else node.name.partition(":")[2] or operator
    ready = node.scheduled / 1e3 if 0 < node.scheduled <= node.start else None
    return _Kernel(
        device=device_of(device.device),
        task=task_of(device.device),
        node=node.name.partition(":")[0] if stream else node.name,
        operator=operator,
        start_ms=node.start / 1e3,
        end_ms=node.end / 1e3,
        ready_ms=ready,
        inputs=[] if label is None else label[1],
        label=node.label,
        stream=stream,
        transfer=transfer,
        bytes=None if transfer is None else transfer.bytes or node.bytes,
    )


# Dependencies -----------------------------------------------------------------------------------------------------


def plain(name: str) -> str:
    """The node's name in the name of an input: without the mark of a control edge and the output's number."""
    return name.removeprefix("^").partition(":")[0]


def _tie(kernels: list[_Kernel], partitions: Sequence[Sequence[NodeDef]]) -> None:
    """Set for each kernel which others it waited for."""
    by_node: dict[tuple[str, str], _Runs] = {}
    by_edge: dict[str, _Runs] = {}
    for number in sorted(range(len(kernels)), key=lambda one: kernels[one].end_ms):
        each = kernels[number]
        if each.transfer is not None:
            by_edge.setdefault(each.transfer.edge, _Runs()).add(number, each.end_ms)
        elif not each.stream:
            by_node.setdefault((each.device, each.node), _Runs()).add(number, each.end_ms)
    graph = {(device_of(node.device), node.name): node for nodes in partitions for node in nodes}
    sends = {node.tensor: node for nodes in partitions for node in nodes if node.op in ("_Send", "_HostSend")}
    search = _Search(by_node, by_edge, graph, sends)
    for number, each in enumerate(kernels):
        if each.stream:
            each.sources += search.launchers(each)
            continue
        if each.transfer is not None:  # the request came before the tensor was ready
            found = search.senders(each.transfer, each.end_ms)
        elif (each.device, each.node) in graph:
            found = search.inputs(each.device, graph[each.device, each.node].inputs, each.start_ms)
        else:
            found = search.inputs(each.device, each.inputs, each.start_ms)
        each.sources = sorted(source for source in found if source != number)


def _cut_at_launches(kernels: list[_Kernel]) -> None:
    """Split kernels that continued after launching a kernel, which waited for the part before only, not for their
    end."""
    launches: dict[int, list[_Kernel]] = {}
    for each in kernels:
        for source in each.sources if each.stream else ():
            if kernels[source].start_ms < each.start_ms < kernels[source].end_ms - CLOSE_MS:
                launches.setdefault(source, []).append(each)
    for source, launched in launches.items():
        for each in sorted(launched, key=lambda one: one.start_ms):
            rest = kernels[source]
            if rest.start_ms < each.start_ms:
                kernels.append(replace(rest, end_ms=each.start_ms))
                part = len(kernels) - 1
                kernels[source] = replace(rest, start_ms=each.start_ms, ready_ms=None, sources=[part])
            each.sources = [part if one == source else one for one in each.sources]


@dataclass
class _Runs:
    """Runs of a node, or sends of a tensor, by their ends: one per step, except in loops."""

    numbers: list[int] = field(default_factory=list)
    ends_ms: list[float] = field(default_factory=list)

    def add(self, number: int, end_ms: float) -> None:
        self.numbers.append(number)
        self.ends_ms.append(end_ms)

    def before(self, moment_ms: float) -> list[int]:
        """The run that produced the input of a kernel which began at a moment: the last that had ended.

        If there is only one, it counts at any time, because clocks of machines differ; of several, none if all ended
        later.
        """
        place = bisect_right(self.ends_ms, moment_ms + CLOSE_MS)
        return self.numbers if len(self.numbers) == 1 else self.numbers[max(place - 1, 0) : place]


@dataclass
class _Search:
    """Kernels by their names in the graph."""

    by_node: Mapping[tuple[str, str], _Runs]
    by_edge: Mapping[str, _Runs]
    graph: Mapping[tuple[str, str], NodeDef]
    sends: Mapping[str, NodeDef]

    def inputs(self, device: str, names: Iterable[str], moment_ms: float) -> set[int]:
        """The kernels that produced the inputs of one that began at a moment; a node that did not run is replaced by
        its own inputs."""
        found: set[int] = set()
        seen: set[tuple[str, str]] = set()
        pending = [(device, plain(each)) for each in names]
        while pending:
            where, name = pending.pop()
            if (where, name) in seen:
                continue
            seen.add((where, name))
            ran = self.by_node.get((where, name))
            node = self.graph.get((where, name))
            if ran is not None:
                found.update(ran.before(moment_ms))
            elif node is None:
                found |= self._by_label(where, name, moment_ms)
            elif node.op in ("_Recv", "_HostRecv"):
                found |= self.received(node.tensor, moment_ms)
            else:
                pending += [(where, plain(each)) for each in node.inputs]
        return found

    def received(self, tensor: str, moment_ms: float) -> set[int]:
        """The transfer of a tensor, or if none was traced, the kernel that produced it."""
        if tensor in self.by_edge:
            return set(self.by_edge[tensor].before(moment_ms))
        send = self.sends.get(tensor)
        return set() if send is None else self.inputs(device_of(send.device), send.inputs, moment_ms)

    def senders(self, transfer: Transfer, moment_ms: float) -> set[int]:
        """The kernels that produced a tensor before it was sent."""
        send = self.sends.get(transfer.edge)
        if send is not None:
            return self.inputs(device_of(send.device), send.inputs, moment_ms)
        made = self.by_node.get((device_of(transfer.source), _EDGE.sub("", transfer.edge)))
        return set() if made is None else set(made.before(moment_ms))

    def launchers(self, kernel: _Kernel) -> list[int]:
        """The kernels that launched one on a stream; for a copy, whose node is an edge of the graph, the producer of
        its tensor.
        """
        made = _EDGE.sub("", kernel.node)
        places = ((kernel.device, kernel.node), (kernel.task, made), (kernel.device, made))
        found = next((self.by_node[place] for place in places if place in self.by_node), None)
        return [] if found is None else found.before(kernel.start_ms)

    def _by_label(self, device: str, name: str, moment_ms: float) -> set[int]:
        """The kernel of an input that only a label names: `w/read_S7` is the transfer of edge_15_w/read."""
        bare = re.sub(r"(/_\d+|_S\d+)$", "", name)
        if (device, bare) in self.by_node:
            return set(self.by_node[device, bare].before(moment_ms))
        sent = [runs for edge, runs in self.by_edge.items() if _EDGE.sub("", edge) == bare]
        return {number for runs in sent for number in runs.before(moment_ms)}


# Clocks -----------------------------------------------------------------------------------------------------------


def _owner(kernels: Sequence[_Kernel]) -> str:
    """The task that owns the step: the one that computed most; a parameter server only if it is the only task."""
    busy: dict[str, float] = {}
    for each in kernels:
        if each.transfer is None:
            busy[each.task] = busy.get(each.task, 0.0) + each.end_ms - each.start_ms
    return max(busy, key=lambda task: (not task.startswith("ps:"), busy[task]), default="process")


def _align(kernels: list[_Kernel], origin: str, problems: Problems) -> None:
    """Shift all tasks to the owner's clock: nothing arrives before it was sent, in either direction."""
    owner = _owner(kernels)
    for task in sorted({each.task for each in kernels} - {owner}):
        least, most = float("-inf"), float("inf")
        for each in kernels:
            for source in (kernels[number] for number in each.sources):
                if (source.task, each.task) == (owner, task):
                    least = max(least, source.end_ms - each.end_ms)
                elif (source.task, each.task) == (task, owner):
                    most = min(most, each.end_ms - source.end_ms)
        shift = 0.0 if least <= 0 <= most else min(max(0.0, least), most) if least <= most else (least + most) / 2
        if abs(shift) <= CLOCKS_APART_MS:
            continue
        meaning = f"clocks of machines differ: CrystalPerf corrected that of {task} by about {abs(shift):.1f} ms"
        problems.add("clocks apart", "info", origin, task, meaning)
        for position, each in enumerate(kernels):
            if each.task == task:
                ready = None if each.ready_ms is None else each.ready_ms + shift
                moved = replace(each, start_ms=each.start_ms + shift, end_ms=each.end_ms + shift, ready_ms=ready)
                kernels[position] = moved


# Steps end to end -------------------------------------------------------------------------------------------------


def _stacked(traced: Sequence[_TracedStep]) -> Program:
    begin = min((each.start_ms for each in traced), default=0.0)
    until: dict[str, float] = {}
    last: dict[str, list[int]] = {}
    segments: list[Segment] = []
    marked: list[Step] = []
    owners = {each.owner for each in traced}
    for each in traced:
        at = until.get(each.owner, begin)
        until[each.owner] = at + each.end_ms - each.start_ms
        process = each.owner if len(owners) > 1 else ""
        marked.append(Step(each.number, process, at, until[each.owner], f"step {each.number} of {each.owner}"))
    steps = numbered(marked)
    for each, step in zip(traced, steps, strict=True):
        shift = step.start_ms - each.start_ms
        last[each.owner] = _add(segments, each.kernels, shift, step, last.get(each.owner, []))
    return Program(
        segments=segments,
        devices=_devices(segments),
        steps=steps,
        start_ms=begin,
        end_ms=max(until.values(), default=begin),
        properties={
            "processes": str(len(owners)),
            "synchronous": "no" if any(each.startswith("ps") for each in _tasks(traced)) else "yes",
            **_demand(traced),
        },
    )


def _demand(traced: Sequence[_TracedStep]) -> dict[str, str]:
    """The demand of a mean step on parameter servers and their links, as properties; none if no server moves bytes.

    The capacity of a link is the highest rate that it had at a server while a transfer was active.
    """
    moved: dict[tuple[str, str], list[_Kernel]] = {}
    rest, computing = [], []
    for each in traced:
        spans = [(one.start_ms, one.end_ms) for one in each.kernels if one.transfer is not None]
        owned = [
            (one.start_ms, one.end_ms)
            for one in each.kernels
            if one.transfer is None and one.task == each.owner and not is_input(one.operator)
        ]
        computed_ms = union_ms([*spans, *owned]) - union_ms(spans)
        computing.append(computed_ms)
        rest.append(max(each.end_ms - each.start_ms - union_ms(spans) - computed_ms, 0.0))
        for one in each.kernels:
            if one.transfer is None or not one.bytes:
                continue
            source = task_of(one.transfer.source)
            way = ("out", source) if source.startswith("ps") else ("in", one.task)
            if way[1].startswith("ps"):
                moved.setdefault(way, []).append(one)
    amounts = {way: sum(one.bytes or 0 for one in found) for way, found in moved.items()}
    rates: dict[str, float] = {}
    for way, amount in amounts.items():
        lasted = union_ms((one.start_ms, one.end_ms) for one in moved[way])
        rates[way[0]] = max(rates.get(way[0], 0.0), amount / lasted if lasted > 0 else 0.0)
    fetched, sent = (sum(amount for way, amount in amounts.items() if way[0] == name) for name in ("out", "in"))
    if not all(rates.get(name) for name in ("out", "in")):
        return {}
    share = max(amount / (fetched if way[0] == "out" else sent) for way, amount in amounts.items())
    count = len(traced)
    times = (sum(computing) / count, sum(rest) / count)
    return Demand(fetched / count, sent / count, share, *times, rates["out"], rates["in"]).properties


def _tasks(traced: Sequence[_TracedStep]) -> set[str]:
    return {kernel.task for each in traced for kernel in each.kernels}


def _add(segments: list[Segment], kernels: list[_Kernel], shift: float, step: Step, before: list[int]) -> list[int]:
    """Add a step's kernels; returns the segments without a successor in the step, for which its next step waits."""
    order = sorted(range(len(kernels)), key=lambda number: (kernels[number].start_ms, kernels[number].end_ms))
    numbers = {old: len(segments) + new for new, old in enumerate(order)}
    streams: dict[str, int] = {}
    awaited: set[int] = set()
    waited = _threads(kernels, step.start_ms - shift)
    for old in order:
        each = kernels[old]
        sources = [Source(numbers[one], "input") for one in each.sources if numbers[one] < numbers[old]]
        sources += [
            Source(numbers[one], why, kind) for one, why, kind in waited.get(old, ()) if numbers[one] < numbers[old]
        ]
        if each.stream:
            if each.device in streams:
                sources.append(Source(streams[each.device], "same stream", "order"))
            streams[each.device] = numbers[old]
        awaited |= {one.segment for one in sources}
        start = each.start_ms + shift
        known = [segments[one.segment].end_ms for one in sources]
        ready = None if each.ready_ms is None else min(max([each.ready_ms + shift, step.start_ms, *known]), start)
        if not sources:
            sources = [Source(one, "the step before") for one in before]
        segments.append(
            Segment(_name(each), [_operation(each, shift)], sources, step.scope_id, None if each.stream else ready)
        )
    return [number for number in numbers.values() if number not in awaited]


def _threads(kernels: Sequence[_Kernel], begin_ms: float) -> dict[int, list[tuple[int, str, EdgeKind]]]:
    """By kernel that started later than its inputs were ready: the kernels that it waited for, why, and how.

    The last kernel of its process that ended in between freed its thread.  If the thread was idle after that, the
    kernel waited for a stream on which something ended just before it started.
    """
    on_threads, on_streams = _by_task(kernels, stream=False), _by_task(kernels, stream=True)
    found: dict[int, list[tuple[int, str, EdgeKind]]] = {}
    for task, runs in on_threads.items():
        for number in runs.numbers:
            each = kernels[number]
            begin = begin_ms if each.ready_ms is None else each.ready_ms
            ready = max([begin, *(kernels[one].end_ms for one in each.sources)])
            for other in runs.before(each.start_ms):
                if other != number and kernels[other].end_ms > ready + CLOSE_MS:
                    found.setdefault(number, []).append((other, "same thread", "order"))
                    ready = kernels[other].end_ms
            gap = each.start_ms - ready
            for other in on_streams[task].before(each.start_ms) if gap > WAIT_MS and task in on_streams else ():
                if 0 <= each.start_ms - kernels[other].end_ms <= max(WAIT_MS, WAIT_SHARE * gap):
                    found.setdefault(number, []).append((other, "waited for it", "barrier"))
    return found


def _by_task(kernels: Sequence[_Kernel], *, stream: bool) -> dict[str, _Runs]:
    """Kernels on threads of each task, or on streams of its accelerators."""
    found: dict[str, _Runs] = {}
    for number in sorted(range(len(kernels)), key=lambda one: kernels[one].end_ms):
        each = kernels[number]
        if each.transfer is None and each.stream is stream:
            found.setdefault(each.task, _Runs()).add(number, each.end_ms)
    return found


def _name(each: _Kernel) -> str:
    if each.transfer is not None:
        return f"{_EDGE.sub('', each.transfer.edge)} from {task_of(each.transfer.source)}"
    return each.node if each.operator in each.node or each.operator == each.node else f"{each.node} ({each.operator})"


def _operation(each: _Kernel, shift: float) -> Operation:
    device, kind, resource, likely = each.device, "op", "", ""
    if each.node == "RecvTensor":
        device, kind, resource = f"network into {each.task}", "transfer", "net"
    elif _COPY.match(each.operator):
        kind, resource = "copy", PCIE.name
    elif each.stream:
        kind, resource = "kernel", roofline_bound(each.operator)
    elif is_input(each.operator):
        kind = "input"
    else:
        likely = likely_of(each.operator)
    return Operation(
        device, each.start_ms + shift, each.end_ms + shift, each.operator, each.node, resource, likely, kind, each.bytes
    )


def _devices(segments: Sequence[Segment]) -> list[Device]:
    by_device: dict[str, list[tuple[float, int]]] = {}
    for segment in segments:
        for each in segment.operations:
            by_device.setdefault(each.device, []).extend([(each.start_ms, 1), (each.end_ms, -1)])
    found = []
    for name, moments in sorted(by_device.items()):
        most = now = 0
        for _, change in sorted(moments):
            now += change
            most = max(most, now)
        host = re.sub(r"^network into | (GPU|TPU):\d+$", "", name)
        found.append(Device(name, host, accelerator=bool(re.search(r" (GPU|TPU):\d+$", name)), lanes=max(most, 1)))
    return found
