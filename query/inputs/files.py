"""The kinds of input files: parts of logs, applications, recordings of samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, get_args

from crystalperf.indexes.frozen import frozen
from crystalperf.query.inputs.containers import LogFile, Part, head
from crystalperf.query.trace.records import Problem

HEAD_BYTES = 64 << 10
DEEPER_HEAD_BYTES = 8 << 20  # the run's id may follow some hundred KB of its configuration


@frozen
class Head:
    """The first HEAD_BYTES of one file, or member of a zip; `text` is decompressed."""

    part: Part
    folder: str
    name: str
    size: int
    text: bytes

    def deeper(self) -> bytes:
        """The first DEEPER_HEAD_BYTES of the file, for readers that need them."""
        return self.text if len(self.text) < HEAD_BYTES else head(self.part, DEEPER_HEAD_BYTES)


@frozen
class LogPart:
    """A file that a framework recognised as a log, or as a part of one.

    Its head has the run's `app_id`, `attempt`, the user's name for it, and its start in Unix ms.  `facts` are
    for the framework itself, to order the parts.
    """

    part: Part
    folder: str
    name: str
    size: int
    app_id: str | None = None
    attempt: str | None = None
    app_name: str | None = None
    started: float | None = None
    facts: Mapping[str, int | None] = field(default_factory=dict)


@frozen
class Application:
    """One attempt of one application, and its log.  `started_at_ms` is Unix time, None if unknown."""

    framework: str
    app_id: str
    attempt: str | None
    name: str | None
    started_at_ms: float | None
    log: LogFile
    size: int = 0


SampleKind = Literal["jfr", "collapsed", "pprof", "speedscope", "perf script", "pstats", "memory profile"]
SAMPLE_KINDS: tuple[SampleKind, ...] = get_args(SampleKind)


@frozen
class SampleFile:
    """A recording of stack samples."""

    path: str
    kind: SampleKind


@frozen
class Inputs:
    """Applications, the newest attempt of each first; recordings in order of their names; problems of discovery."""

    applications: tuple[Application, ...]
    samples: tuple[SampleFile, ...]
    problems: tuple[Problem, ...]
