"""Reader of Java flight recordings in Python and numpy: JDK 11 to 25, OpenJDK 8u262 on, async-profiler.

    recording = read("app.jfr")
    recording.samples.time_ns, recording.samples.stack      # arrays, sorted by time
    for frame in recording.stacks.frames(7):                # leaf first
        recording.frames.name(frame)

The package depends on nothing else of the project (numpy; cramjam for recordings wrapped in lz4).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .beginning import is_jfr
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

_WHERE = {"is_jfr": "beginning", "read": "reader"}
"""Modules of functions; all other names are of the model."""


def __getattr__(name: str) -> object:
    """Names are imported on first use: recognising a file needs only its first bytes."""
    if name not in __all__:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    found = globals()[name] = getattr(import_module(f"{__name__}.{_WHERE.get(name, 'model')}"), name)
    return found
