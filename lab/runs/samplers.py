"""Sampling of JVMs: async-profiler's wall clock, as an alternative to JFR's sampler.

JFR samples threads that run Java code, and one native thread at a time; waits are events such as ThreadPark,
JavaMonitorWait or SocketRead, with their duration and stack. The lab uses the same flags that CrystalPerf recommends
(query/recordings/flags.py). async-profiler's wall clock samples all threads in the same way.
"""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path

from lab.machine.host import cache_dir
from lab.runs.maven import fetched

ASYNC_PROFILER_VERSION = "4.6"
SAMPLERS = ("jfr", "async", "none")

# The header of a JFR chunk: magic, version, then its total size in bytes; the JVM writes the size last.
_CHUNK_HEADER = struct.Struct(">4s2H q")


def async_flag(library: Path, file: str, sample_ms: int = 20) -> str:
    """The JVM flag that loads async-profiler and records the wall clock of every thread, as JFR, until exit."""
    return f"-agentpath:{library}=start,event=wall,interval={sample_ms}ms,jfr,file={file}"


def async_profiler_library() -> Path:
    """async-profiler's library for this machine, in the lab's cache."""
    library = cache_dir() / f"libasyncProfiler-{ASYNC_PROFILER_VERSION}.so"
    if library.exists():
        return library
    jar = fetched("tools.profiler", "async-profiler", ASYNC_PROFILER_VERSION, "name its library with --async-profiler")
    with zipfile.ZipFile(jar) as archive:
        content = archive.read("linux-x64/libasyncProfiler.so")
    partial = library.with_suffix(".partial")
    partial.write_bytes(content)
    partial.rename(library)
    return library


def is_complete_recording(file: Path) -> bool:
    """Whether a JFR file is complete: it ends where its last chunk ends."""
    try:
        size = file.stat().st_size
        with file.open("rb") as stream:
            position = 0
            while position < size:
                stream.seek(position)
                header = stream.read(_CHUNK_HEADER.size)
                if len(header) < _CHUNK_HEADER.size:
                    return False
                magic, _, _, chunk_bytes = _CHUNK_HEADER.unpack(header)
                if magic != b"FLR\0" or chunk_bytes < _CHUNK_HEADER.size:
                    return False
                position += chunk_bytes
    except OSError:
        return False
    return size > 0 and position == size
