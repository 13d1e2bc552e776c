"""Distinct stacks of a profile in another tool's format, as a recording without samples, or with timed ones."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from crystalperf.indexes.errors import InputError
from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.regex import regex
from crystalperf.query.recordings import jfr
from crystalperf.query.recordings.jfr.merge import Merged
from crystalperf.query.recordings.jfr.model import CPU, WALL, ProblemLog
from crystalperf.query.trace.arrays import median
from crystalperf.query.trace.records import Floats, Ints

MAX_FRAMES = 2048
"""Maximum frames of a stack; a deeper one is truncated at the root."""

MAX_FRAMES_IN_ALL = 50_000_000
"""Maximum frames of all stacks of a file, repeated ones included: a hostile file repeats deep stacks cheaply."""

Frame = tuple[str, str, int]
"""Class, method and line; the class is empty for native functions, the line 0 if unknown."""

_NOTES = regex(r"(@\d+)?(_\[[a-z0-9]\])*$")
_LINE_NUMBER = regex(r":(\d{1,7})$")
_CLASS = regex(r"[\w$.+/-]*[\w$]")
_METHOD = regex(r"[^\W\d][\w$-]*|\$[\w$-]*|<(?:cl)?init>")
_PYTHON = regex(r"(\S[^;()]*) \(([^();]+\.pyx?|<frozen [\w.]+>)(?::(\d{1,7}))?\)")
_BLOCKING_CALL = regex(r"futex|wait|poll|select|recv|accept|connect|sleep|lll_lock")
_BLOCKING_JAVA = regex(
    r"java\.lang\.(Object\.wait|Thread\.sleep)|(sun|jdk\.internal)\.misc\.Unsafe\.park|sun\.nio\.ch\.|java\.net\."
    r"|java\.io\.(FileInputStream|FileOutputStream|RandomAccessFile)\."
)


@frozen
class SampledThread:
    """The samples of a thread in order: the number of each one's stack, and its weight, (samples,)."""

    name: str
    stack: Ints
    weight: Floats


@frozen
class Collapsed:
    """The stacks of one file as a recording without samples, and the count or time of each, (stacks,)."""

    recording: jfr.Recording
    weight: Floats
    of_tasks: bool = False
    """Whether it has the stacks of tasks alone, so that it need not show other threads."""
    unit_ms: float | None = None
    """Time of a weight of 1, ms; None if the file does not state it."""
    threads: tuple[SampledThread, ...] = ()
    """The samples of each thread in their order, if the file has it."""


@frozen
class TimedSample:
    """A sample at a Unix time: its thread and its stack by number, and the time that it represents."""

    time_ns: int
    thread: int
    stack: int
    weight_ns: int


class StackTable:
    """Numbers the distinct frames and stacks of a file, and sums the weights of stacks."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._frames: dict[Frame, int] = {}
        self._stacks: dict[bytes, int] = {}
        self._weights: list[float] = []
        self._frames_seen = 0

    def __len__(self) -> int:
        return len(self._stacks)

    def frame(self, frame: Frame) -> int:
        """The number of a frame."""
        return self._frames.setdefault(frame, len(self._frames))

    def add(self, leaf_first: Sequence[int], weight: float) -> int:
        """Add a stack of numbered frames; returns its number.  Raises InputError past MAX_FRAMES_IN_ALL."""
        self._frames_seen += len(leaf_first) + 1
        if self._frames_seen > MAX_FRAMES_IN_ALL:
            raise InputError(f"{self._path}: its stacks have more than {MAX_FRAMES_IN_ALL} frames; record less at once")
        number = self._stacks.setdefault(array("i", leaf_first[:MAX_FRAMES]).tobytes(), len(self._stacks))
        if number == len(self._weights):
            self._weights.append(0.0)
        self._weights[number] += weight
        return number

    def collapsed(
        self, *, of_tasks: bool = False, unit_ms: float | None = None, threads: Sequence[SampledThread] = ()
    ) -> Collapsed:
        """The stacks and the sum of their weights."""
        weights = np.array(self._weights, dtype=np.float64)
        return Collapsed(self._recording(), weights, of_tasks, unit_ms, tuple(threads))

    def timed(self, samples: Sequence[TimedSample], threads: Sequence[jfr.Thread], *, on_cpu: bool) -> jfr.Recording:
        """A recording with samples; `on_cpu` is whether the profiler samples only threads on the CPU."""
        ordered = sorted(samples, key=lambda each: each.time_ns)
        stack = np.array([each.stack for each in ordered], dtype=np.int32)
        weight_ns = np.array([each.weight_ns for each in ordered], dtype=np.int64)
        frames = list(self._frames)
        leaves = (np.frombuffer(key[:4], dtype=np.int32).tolist() for key in self._stacks)
        running = np.array([all(could_run(*frames[each][:2]) for each in leaf) for leaf in leaves], dtype=np.uint8)
        count = len(ordered)
        kind = CPU if on_cpu else WALL
        return replace(
            self._recording(),
            threads=tuple(threads),
            samples=jfr.Samples(
                time_ns=np.array([each.time_ns for each in ordered], dtype=np.int64),
                thread=np.array([each.thread for each in ordered], dtype=np.int32),
                stack=stack,
                ticks=np.ones(count, dtype=np.int32),
                kind=np.full(count, kind, dtype=np.uint8),
                state=running[stack],
                period_ns=weight_ns,
                state_names=("STATE_SLEEPING", "STATE_RUNNABLE"),
            ),
            periods_ns={jfr.SAMPLE_KINDS[kind]: int(median(weight_ns))} if count else {},
        )

    def _recording(self) -> jfr.Recording:
        class_names, class_id = _numbered([each[0] for each in self._frames])
        method_names, method_id = _numbered([each[1] for each in self._frames])
        arrays = [np.frombuffer(key, dtype=np.int32) for key in self._stacks]
        offsets = np.concatenate([[0], np.cumsum([len(each) for each in arrays])]).astype(np.int64)
        return replace(
            Merged().recording(ProblemLog()),
            frames=jfr.Frames(
                class_id=class_id,
                method_id=method_id,
                line=np.array([each[2] for each in self._frames], dtype=np.int32),
                class_names=class_names,
                method_names=method_names,
            ),
            stacks=jfr.Stacks(
                offsets=offsets,
                frame_index=np.concatenate([np.empty(0, dtype=np.int32), *arrays]),
                truncated=np.array([len(each) >= MAX_FRAMES for each in arrays], dtype=np.bool_),
            ),
        )


def frame_of(text: str) -> Frame:
    """Class, method and line of a frame's text: `java/lang/Thread.run:840_[0]` → ('java.lang.Thread', 'run', 840).

    py-spy's frames have the file in place of a class: `read (io/tables.py:12)` → ('io/tables.py', 'read', 12).
    """
    if text.endswith(")") and (python := _PYTHON.fullmatch(text)) is not None:
        return python[2], python[1], int(python[3] or 0)
    text = _NOTES.sub("", text)
    line = _LINE_NUMBER.search(text)
    text = text[: line.start()] if line else text
    bare = text.partition("(")[0]
    class_name, _, method = bare.rpartition(".")
    if not _CLASS.fullmatch(class_name) or not _METHOD.fullmatch(method) or ".so" in class_name:
        class_name, method = "", text
    return class_name.replace("/", "."), method, int(line[1]) if line else 0


def could_run(class_name: str, method: str) -> bool:
    """Whether a thread with this leaf frame ran code or was ready to run.

    Such stacks lack thread states.  By async-profiler's rule a thread sleeps in system calls that a signal interrupts;
    without native frames, in the JVM's methods that make these calls.
    """
    if not class_name:
        return _BLOCKING_CALL.search(method) is None
    return _BLOCKING_JAVA.match(f"{class_name}.{method}") is None


def _numbered(texts: Sequence[str]) -> tuple[tuple[str, ...], np.ndarray[tuple[int], np.dtype[np.int32]]]:
    numbers: dict[str, int] = {}
    ids = np.array([numbers.setdefault(text, len(numbers)) for text in texts], dtype=np.int32)
    return tuple(numbers), ids
