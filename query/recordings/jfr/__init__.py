"""Reader of Java flight recordings in Python and numpy: JDK 11 to 25, OpenJDK 8u262 on, async-profiler.

    recording = read("app.jfr")
    recording.samples.time_ns, recording.samples.stack      # arrays, sorted by time
    for frame in recording.stacks.frames(7):                # leaf first
        recording.frames.name(frame)

The package depends on nothing else of the project (numpy; cramjam for recordings wrapped in lz4).
"""

from __future__ import annotations

from .model import (
    INTERVAL_KINDS,
    SAMPLE_KINDS,
    Frames,
    HeapUse,
    Intervals,
    JfrError,
    Jvm,
    NetworkLoad,
    Problem,
    ProcessLoad,
    Recording,
    Samples,
    Stacks,
    Thread,
    ThreadCpuLoad,
    Throttling,
)
from .reader import read
from .source import is_jfr

__all__ = [
    "INTERVAL_KINDS",
    "SAMPLE_KINDS",
    "Frames",
    "HeapUse",
    "Intervals",
    "JfrError",
    "Jvm",
    "NetworkLoad",
    "Problem",
    "ProcessLoad",
    "Recording",
    "Samples",
    "Stacks",
    "Thread",
    "ThreadCpuLoad",
    "Throttling",
    "is_jfr",
    "read",
]
