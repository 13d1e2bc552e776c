"""speedscope's file format: a profile for each worker, whose stacks end in their resource; weights in ms.

https://www.speedscope.app/file-format-schema.json
"""

from __future__ import annotations

from functools import lru_cache
from typing import BinaryIO

import msgspec

import crystalperf
from crystalperf.query.export.source import Source, Stack, prepare_stacks, split_line, stack_workers, stacks
from crystalperf.query.recordings.own_export import resource_frame

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
EXPORTER = "crystalperf"

_FRAMES_KEPT = 20_000


def write(source: Source, out: BinaryIO) -> None:
    """Write the stacks of a run; the frames come last, because their list is complete only then."""
    sampled = prepare_stacks(source)
    head = {"$schema": SCHEMA, "exporter": f"{EXPORTER}@{crystalperf.__version__}", "name": source.name}
    out.write(msgspec.json.encode(head)[:-1] + b',"profiles":[')
    frames: dict[str, int] = {}

    def number(name: str) -> int:
        return frames.setdefault(name, len(frames))

    @lru_cache(maxsize=_FRAMES_KEPT)
    def number_without_line(frame: str) -> int:
        return number(split_line(frame)[0])

    def numbers(each: Stack) -> str:
        return ",".join(map(str, [number(f"[{each.stage}]"), *map(number_without_line, each.frames)]))

    for position, (worker_id, kind) in enumerate(stack_workers(source)):
        title = source.worker(worker_id, kind) if sampled else f"{source.worker(worker_id, kind)}: without samples"
        out.write((b"," if position else b"") + b'{"type":"sampled","name":' + msgspec.json.encode(title))
        out.write(b',"unit":"milliseconds","samples":[')
        weights: list[float] = []
        for each in stacks(source, sampled=sampled, by="worker", worker_id=worker_id):
            text = numbers(each)
            for name, time_ms in zip(source.resources, each.time_ms, strict=True):
                if time_ms > 0:
                    out.write(f"{',' if weights else ''}[{text},{number(resource_frame(name))}]".encode())
                    weights.append(round(time_ms, 6))
        out.write(b'],"weights":' + msgspec.json.encode(weights) + b',"startValue":0,"endValue":')
        out.write(msgspec.json.encode(sum(weights)) + b"}")
    out.write(b'],"activeProfileIndex":0,"shared":{"frames":')
    out.write(msgspec.json.encode([{"name": each} for each in frames]) + b"}}")
