"""Lanes of tasks: logs do not record which slot ran a task, so each task takes the first free lane of its worker."""

from __future__ import annotations

import heapq

import numpy as np

from crystalperf.query.trace.records import Floats, Ints


def lanes(worker: Ints, launch_ms: Floats, finish_ms: Floats, *, overlap_ms: float = 0.0) -> tuple[Ints, list[int]]:
    """The lane of each task, (tasks,), and the worker of each lane; rows are sorted by worker and launch.

    `worker` numbers the workers from 0.  Tasks on one lane overlap by at most `overlap_ms`.
    """
    lane_in_worker = np.zeros(len(worker), dtype=np.int64)
    widest: dict[int, int] = {}
    free: list[int] = []
    running: list[tuple[float, int]] = []
    last = -1
    rows = zip(worker.tolist(), launch_ms.tolist(), finish_ms.tolist(), strict=True)
    for number, (place, start, end) in enumerate(rows):
        if place != last:
            free, running, last = [], [], place
        while running and running[0][0] <= start + overlap_ms:
            heapq.heappush(free, heapq.heappop(running)[1])
        lane = heapq.heappop(free) if free else len(running)
        lane_in_worker[number] = lane
        widest[place] = max(widest.get(place, 0), lane + 1)
        heapq.heappush(running, (end, lane))
    count = int(worker.max(initial=-1)) + 1
    of_lanes = [place for place in range(count) for _ in range(widest.get(place, 1))]
    first = np.concatenate([[0], np.cumsum([widest.get(place, 1) for place in range(count)])]).astype(np.int64)
    return first[worker] + lane_in_worker if len(worker) else lane_in_worker, of_lanes
