"""First uses of kernels: launches that load a kernel, or make room for it, where they take much of a thread's time."""

from __future__ import annotations

from crystalperf.query.frameworks.ml.pytorch.kineto import Process, Thread
from crystalperf.query.frameworks.ml.pytorch.lanes import Built
from crystalperf.query.frameworks.ml.pytorch.names import kernel_name
from crystalperf.query.frameworks.ml.training.lanes import without
from crystalperf.query.frameworks.ml.training.program import Operation

FIRST_USE = "first use of kernels"
"""What a thread does in a launch that loads the kernel, or makes room for it."""

FIRST_USE_MS = 1.0
"""A first launch of a kernel that took longer is its first use …"""

FIRST_USE_SHARE = 0.2
"""… where all of these took more than this share of what is traced of the thread."""


def cut(built: Built, process: Process, thread: Thread, number: int) -> None:
    """Cut out of a thread the launches in which a kernel was loaded, where they take much of its time."""
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
