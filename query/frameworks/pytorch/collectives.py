"""Collectives of ranks: as operations, as parts that join, and as what tells how far clocks of ranks are apart."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

from query.frameworks.pytorch.kineto import Process, Ran
from query.frameworks.pytorch.lanes import Built
from query.frameworks.pytorch.names import COLLECTIVE, collective_key, kernel_name
from query.frameworks.pytorch.operators import Outermost
from query.frameworks.training.collectives import Collective, shifts, tell_uneven
from query.frameworks.training.program import Operation
from query.model.records import Problems


def clock_shifts(
    processes: Sequence[Process], labels: Sequence[str], origin: str, problems: Problems
) -> dict[str, float]:
    """What to add to the times of ranks whose clocks are apart, by their collectives; ms."""
    parts = []
    for process, label in zip(processes, labels, strict=True):
        on_threads = [each for thread in process.threads.values() for each in thread.collectives]
        on_streams = [each for stream in process.streams.values() for each in stream if COLLECTIVE.search(each.name)]
        for each in (*on_threads, *on_streams):
            operation = as_operation(process, label, each, 0.0)
            if (key := collective_key(operation.operator, each.group)) is not None:
                parts.append(Collective(0, label, key, operation))
    tell_uneven(parts, origin, problems)
    found = shifts(parts)
    for label, shift in found.items():
        meaning = (
            f"clocks of ranks were off, that of {label} by about {abs(shift):.1f} ms by its collectives: put right"
        )
        problems.add("clocks apart", "info", origin, label, meaning)
    return found


def as_operation(process: Process, label: str, each: Ran, shift: float) -> Operation:
    """A collective as an operation, which the network holds up."""
    name = kernel_name(each.name) if COLLECTIVE.search(each.name) else each.name
    return Operation(
        label, process.ms(each.start, shift), process.ms(each.end, shift), name, "", "net", kind="collective",
        bytes=each.bytes,
    )  # fmt: skip


def add(
    built: Built,
    process: Process,
    label: str,
    numbers: Mapping[tuple[str, str], int],
    by_thread: Mapping[tuple[str, str], Sequence[Outermost]],
    shift: float,
) -> None:
    """Add collectives that threads of the process carry out (gloo): an operator c10d::… has asked for each."""
    asked = sorted(
        (process.ms(each.ran.start, shift), process.ms(each.ran.end, shift), numbers[key])
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
