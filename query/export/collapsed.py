"""Collapsed stacks: one stack a line, root first, and its time in whole microseconds.

    [stage:3.0 count at q9.scala:5];java.lang.Thread.run;…;java.net.SocketInputStream.read;[net] 81200

The root is the stage in brackets, as async-profiler writes threads; the leaf is the resource.  So a flame graph shows
the resource of each stack as its top box, and a search for `[net]` selects all time on the network.
"""

from __future__ import annotations

from typing import BinaryIO

from crystalperf.query.export.source import Source, prepare_stacks, stacks, without_lines
from crystalperf.query.recordings.own_export import resource_frame

US_PER_MS = 1000


def write(source: Source, out: BinaryIO) -> None:
    """Write the stacks of a run, summed over its workers."""
    sampled = prepare_stacks(source)
    for each in stacks(source, sampled=sampled, by="stage"):
        frames = ";".join(map(_plain, [f"[{each.stage}]", *without_lines(each.frames)]))
        for name, time_ms in zip(source.resources, each.time_ms, strict=True):
            if (time_us := round(time_ms * US_PER_MS)) > 0:
                out.write(f"{frames};{resource_frame(name)} {time_us}\n".encode("utf-8", "replace"))


def _plain(frame: str) -> str:
    """A frame without the characters that separate frames and stacks."""
    return "".join("," if each == ";" else each if each.isprintable() else " " for each in frame)
