"""Collectives of ranks: as operations, as matched parts, and for the skew of the ranks' clocks."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

from crystalperf.query.frameworks.ml.pytorch.kineto import Process, Ran
from crystalperf.query.frameworks.ml.pytorch.lanes import Built
from crystalperf.query.frameworks.ml.pytorch.names import collective_key, is_collective, kernel_name
from crystalperf.query.frameworks.ml.pytorch.outermost import Outermost
from crystalperf.query.frameworks.ml.training.collectives import Collective, report_uneven, shifts
from crystalperf.query.frameworks.ml.training.program import Operation
from crystalperf.query.trace.records import Problems


def align_clocks(processes: Sequence[Process], origin: str, problems: Problems) -> None:
    """Correct the skew between the clocks of ranks, from their collectives."""
    parts = []
    for process in processes:
        on_threads = [each for thread in process.threads.values() for each in thread.collectives]
        on_streams = [each for stream in process.streams.values() for each in stream if is_collective(each.name)]
        for each in (*on_threads, *on_streams):
            operation = as_operation(process, each)
            if (key := collective_key(operation.operator, each.group)) is not None:
                parts.append(Collective(0, process.label, key, operation))
    report_uneven(parts, origin, problems)
    found = shifts(parts)
    for label, shift_ms in found.items():
        meaning = (
            f"clocks of ranks differ: CrystalPerf corrected that of {label} by about {abs(shift_ms):.1f} ms, from its"
            " collectives"
        )
        problems.add("clocks apart", "info", origin, label, meaning)
    for process in processes:
        process.shift_ms = found.get(process.label, 0.0)


def as_operation(process: Process, each: Ran) -> Operation:
    """A collective as an operation, with the network as its bottleneck."""
    name = kernel_name(each.name) if is_collective(each.name) else each.name
    return Operation(
        process.label, process.ms(each.start), process.ms(each.end), name, "", "net", kind="collective",
        bytes=each.bytes,
    )  # fmt: skip


def add(
    built: Built,
    process: Process,
    numbers: Mapping[tuple[str, str], int],
    by_thread: Mapping[tuple[str, str], Sequence[Outermost]],
) -> None:
    """Add collectives that the process's threads execute (gloo).

    Each was requested by an operator c10d::…, or by the operator that ran when it began, because the reducer of
    DistributedDataParallel requests them without an operator of its own.
    """
    every = sorted(
        (process.ms(each.ran.start), process.ms(each.ran.end), numbers[key], each.ran.name)
        for key, operators in by_thread.items()
        for each in operators
    )
    requests = [each[:3] for each in every if each[3].startswith("c10d::")]
    others = [each[:3] for each in every if not each[3].startswith("c10d::")]
    found = sorted(
        (
            (numbers[key], each)
            for key in process.threads
            for each in built.lanes[numbers[key]].operations
            if each.kind == "collective"
        ),
        key=lambda one: one[1].start_ms,
    )
    last_ms = float("-inf")
    for lane, each in found:
        launch = _begun(requests, each.start_ms)
        if len(requests) < len(found) and (launch is None or launch[0] < last_ms):  # none, or of another collective
            launch = _begun(others, each.start_ms)
        last_ms = each.start_ms
        launcher = None if launch is None else (launch[2], min(launch[1], each.start_ms))
        if (name := collective_key(each.operator)) is not None:
            built.collectives.append(Collective(lane, process.label, name, each, launcher))


def _begun(operators: Sequence[tuple[float, float, int]], moment: float) -> tuple[float, float, int] | None:
    """The last operator that had begun at a moment."""
    place = bisect_right(operators, (moment, float("inf"), 0)) - 1
    return operators[place] if place >= 0 else None
