"""First uses of kernels: launches that load a kernel, or allocate memory for it, when they take much of a thread."""

from __future__ import annotations

from crystalperf.query.frameworks.ml.pytorch.kineto import Process, Thread
from crystalperf.query.frameworks.ml.pytorch.lanes import Built
from crystalperf.query.frameworks.ml.pytorch.names import kernel_name
from crystalperf.query.frameworks.ml.training.lanes import without
from crystalperf.query.frameworks.ml.training.program import Operation

FIRST_USE = "first use of kernels"
"""The operator of a launch that loads the kernel or allocates memory for it."""

FIRST_USE_MS = 1.0
"""Minimum duration of a first launch that counts as first use …"""

FIRST_USE_SHARE = 0.2
"""… if all of these took more than this share of the thread's traced time."""


def cut(built: Built, process: Process, thread: Thread, number: int) -> None:
    """Cut the launches that loaded a kernel out of a thread, if they take much of its time."""
    lane = built.lanes[number]
    names = {
        each.correlation: each.name
        for stream in process.streams.values()
        for each in stream
        if each.correlation is not None
    }
    seen: set[str] = set()
    found: list[Operation] = []
    for call in sorted(thread.calls, key=lambda each: each.start):
        kernel = names.get(call.correlation) if call.correlation is not None else None
        if kernel is None or "Launch" not in call.name or kernel in seen:
            continue
        seen.add(kernel)
        start, end = process.ms(call.start), process.ms(call.end)
        if end - start > FIRST_USE_MS and (not found or start >= found[-1].end_ms):
            found.append(Operation(lane.device, start, end, FIRST_USE, kernel_name(kernel), kind="runtime"))
    if not found:
        return
    traced_ms = max(each.end_ms for each in lane.operations) - min(each.start_ms for each in lane.operations)
    if sum(each.end_ms - each.start_ms for each in found) > FIRST_USE_SHARE * traced_ms:
        kept = without(lane.operations, [(each.start_ms, each.end_ms) for each in found])
        lane.operations = sorted([*kept, *found], key=lambda each: each.start_ms)
