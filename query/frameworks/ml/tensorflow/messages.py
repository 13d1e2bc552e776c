"""TensorFlow's messages as typed values: RunMetadata of one step, as recorded with FULL_TRACE.

Numbers of fields are those of tensorflow/core/protobuf/config.proto, framework/step_stats.proto and graph.proto, which
have not changed since TensorFlow 1.0; `all_start_nanos` and the like were added in 1.9.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.regex import regex
from crystalperf.query.trace.wire import BYTES, all_of, fields, last_number, last_text, messages, text


@dataclass(frozen=True, slots=True)
class NodeStats:
    """The execution of one node of the graph; Unix µs.

    A damaged one may end before it starts.  `scheduled` is when its inputs were ready, 0 if not recorded.  `label` is
    'Relu = Relu(Conv2D)', or for a transfer '[4.0MB] [500Mb/s] edge_25_w from /job:ps/… to /job:worker/…'.
    """

    name: str
    start: float
    end: float
    scheduled: float
    label: str
    bytes: int


@dataclass(frozen=True, slots=True)
class DeviceStats:
    """The nodes that ran on one device, or on one of its streams."""

    device: str
    nodes: list[NodeStats]


@dataclass(frozen=True, slots=True)
class NodeDef:
    """A node of a partition of the graph; `tensor` is the key that _Send and _Recv share."""

    name: str
    op: str
    inputs: tuple[str, ...]
    device: str
    tensor: str = ""


@dataclass
class RunMetadata:
    """One step of one client."""

    devices: list[DeviceStats] = field(default_factory=list)
    partitions: list[list[NodeDef]] = field(default_factory=list)


def run_metadata(message: bytes | memoryview) -> RunMetadata:
    """A RunMetadata.  Raises DamagedMessageError."""
    found = RunMetadata()
    for number, wire, value in fields(message):
        if wire != BYTES or isinstance(value, int):
            continue
        if number == 1:
            found.devices += [_device_stats(each) for each in messages(value, 1)]
        elif number == 3:
            found.partitions.append([_node_def(each) for each in messages(value, 1)])
    return found


def _device_stats(message: memoryview) -> DeviceStats:
    device, nodes = "", []
    for number, _, value in fields(message):
        if number == 1:
            device = text(value)
        elif number == 2 and isinstance(value, memoryview):
            nodes.append(_node_stats(value))
    return DeviceStats(device, nodes)


def _node_stats(message: memoryview) -> NodeStats:
    found = all_of(message)
    nanos = last_number(found, 13)
    if nanos:
        start, length, ready = nanos / 1e3, last_number(found, 16) / 1e3, last_number(found, 17) / 1e3
    else:
        start, length, ready = float(last_number(found, 2)), float(last_number(found, 5)), float(last_number(found, 9))
    return NodeStats(
        name=last_text(found, 1),
        start=start,
        end=start + length,
        scheduled=ready,
        label=last_text(found, 8),
        bytes=sum(_output_bytes(each) for each in found.get(7, ()) if isinstance(each, memoryview)),
    )


def _output_bytes(message: memoryview) -> int:
    """The requested bytes in an output's tensor_description.allocation_description."""
    for description in messages(message, 3):
        for allocation in messages(description, 4):
            return last_number(all_of(allocation), 1)
    return 0


def _node_def(message: memoryview) -> NodeDef:
    name = op = device = tensor = ""
    inputs: list[str] = []
    for number, _, value in fields(message):
        if number == 1:
            name = text(value)
        elif number == 2:
            op = text(value)
        elif number == 3:
            inputs.append(text(value))
        elif number == 4:
            device = text(value)
        elif number == 5 and op in ("_Send", "_Recv", "_HostSend", "_HostRecv") and isinstance(value, memoryview):
            entry = all_of(value)
            if 1 in entry and text(entry[1][-1]) == "tensor_name" and 2 in entry:
                attribute = all_of(entry[2][-1])  # type: ignore[arg-type]
                tensor = last_text(attribute, 2)
    return NodeDef(name, op, tuple(inputs), device, tensor)


# Labels -----------------------------------------------------------------------------------------------------------

_KERNEL = regex(r"(?:\[[^\]]*\] ?)*(?P<name>\S+) = (?P<op>[\w.>]+)\((?P<inputs>.*)\)\s*(?:@.*)?$", re.DOTALL)
_TRANSFER = regex(
    r"\[(?P<size>[\d.]+)(?P<unit>[KMGT]?B)\] \[[^\]]*\] (?P<edge>\S+) from (?P<source>\S+) to (?P<target>\S+)"
)
_UNITS = {"B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}


def kernel_label(label: str) -> tuple[str, list[str]] | None:
    """The operator in a kernel's label and the names of its inputs; None for another label."""
    found = _KERNEL.match(label)
    if found is None:
        return None
    inputs = [each.strip() for each in found["inputs"].split(",")]
    return found["op"], [each for each in inputs if each]


@frozen
class Transfer:
    """A tensor that crossed from one device to another; `edge` is its key."""

    edge: str
    source: str
    target: str
    bytes: int


def transfer_label(label: str) -> Transfer | None:
    """The transfer in the label of a RecvTensor; None for another label."""
    found = _TRANSFER.match(label)
    if found is None:
        return None
    return Transfer(
        found["edge"], found["source"], found["target"], round(float(found["size"]) * _UNITS[found["unit"]])
    )


def plausible(found: RunMetadata) -> bool:
    """Whether TensorFlow could have written this: devices have names, nodes have times."""
    return bool(found.devices) and all(each.device.startswith("/") for each in found.devices)


def embedded(message: bytes | memoryview) -> Iterator[tuple[str, int, memoryview]]:
    """(tag, step, RunMetadata) in an event of a summary file.  Raises DamagedMessageError."""
    event = all_of(message)
    for each in event.get(8, ()):
        if isinstance(each, memoryview):
            tagged = all_of(each)
            if 2 in tagged and isinstance(tagged[2][-1], memoryview):
                yield last_text(tagged, 1), last_number(event, 2), tagged[2][-1]
