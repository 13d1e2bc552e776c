"""Streams of accelerators: their kernels and copies, with the operators and calls that launched them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

from crystalperf.query.frameworks.ml.pytorch.kernels import Kernels, by_lane
from crystalperf.query.frameworks.ml.pytorch.kineto import Process, Ran
from crystalperf.query.frameworks.ml.pytorch.lanes import Built, Launched
from crystalperf.query.frameworks.ml.pytorch.names import collective_key, is_collective, kernel_name
from crystalperf.query.frameworks.ml.pytorch.outermost import Outermost
from crystalperf.query.frameworks.ml.training.collectives import Collective
from crystalperf.query.frameworks.ml.training.devices import PCIE
from crystalperf.query.frameworks.ml.training.lanes import Lane
from crystalperf.query.frameworks.ml.training.program import Device, Operation
from crystalperf.query.frameworks.ml.training.roofline import Kernel

Done = tuple[float, float, int]
"""An operation on a stream: its end and its start, ms, and the number of the stream's lane."""


def add(
    built: Built,
    process: Process,
    launched: Mapping[int, tuple[int, Ran]],
    by_thread: Mapping[tuple[str, str], Sequence[Outermost]],
    numbers: Mapping[tuple[str, str], int],
) -> tuple[list[Done], dict[int, Done]]:
    """Add streams of the process' accelerators; returns their operations by end, and by the number of their call."""
    ended: list[Done] = []
    of_call: dict[int, Done] = {}
    starts = {numbers[key]: [each.ran.start for each in operators] for key, operators in by_thread.items()}
    theirs = {numbers[key]: operators for key, operators in by_thread.items()}
    models = _models(process)
    works = Kernels(process, launched, by_lane(process, numbers), models)
    has_calls = any(each.calls for each in process.threads.values())
    for (device, stream), ran in sorted(process.streams.items()):
        name = f"{process.label} GPU {device}"
        built.devices.setdefault(name, Device(name, process.label, True, models.get(device)))
        number = len(built.lanes)
        lane = Lane(name, f"stream {stream}", process.label)
        lane.releases = "devices" if has_calls else "any"  # a thread that waits for a kernel calls the runtime for it
        kernels: list[Launched] = []
        for each in sorted(ran, key=lambda one: one.start):
            host = launched.get(each.correlation) if each.correlation is not None else None
            by = None
            if host is not None and host[0] in starts:
                place = bisect_right(starts[host[0]], host[1].start) - 1
                if place >= 0 and theirs[host[0]][place].ran.end >= host[1].start:
                    by = theirs[host[0]][place]
            operation = _kernel(process, name, each, by, works.of(each, models.get(device)))
            if kernels and operation.start_ms < kernels[-1][0].end_ms:
                operation.start_ms = min(kernels[-1][0].end_ms, operation.end_ms)
            launch = None if host is None else (host[0], min(process.ms(host[1].end), operation.start_ms))
            kernels.append((operation, launch))
            ended.append((operation.end_ms, operation.start_ms, number))
            if each.correlation is not None:
                of_call[each.correlation] = ended[-1]
            if operation.kind == "collective" and (key := collective_key(operation.name, each.group)) is not None:
                built.collectives.append(
                    Collective(number, process.label, key, operation, (number, operation.start_ms))
                )
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


def _kernel(process: Process, device: str, each: Ran, by: Outermost | None, own: Kernel) -> Operation:
    kind, resource, name = "kernel", "", kernel_name(each.name)
    if own.kind:
        kind, resource, name = "copy", PCIE.name if own.shares is None else "", each.name
    elif is_collective(each.name):
        kind, resource = "collective", "net"
    return Operation(
        device, process.ms(each.start), process.ms(each.end),
        name if by is None else by.operator, name, resource, kind=kind, bytes=each.bytes,
        module=None if by is None else by.module, place=None if by is None else by.place,
        kernel=None if kind == "collective" else own,
    )  # fmt: skip
