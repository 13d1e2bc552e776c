"""Reader of collapsed stacks: one stack a line, root first, `;` between frames, and its number of samples.

    java/lang/Thread.run_[0];org/apache/spark/executor/Executor$TaskRunner.run_[0];…;java/io/FileInputStream.read_[j] 17

The format is that of async-profiler and its converter (with or without threads, lines, library names, signatures), and
of FlameGraph's scripts.  It has no times, and does not state the unit of its counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from crystalperf.indexes.errors import InputError
from crystalperf.query.inputs.containers import LogFile, Part, batches
from crystalperf.query.recordings import flame_graph, jfr
from crystalperf.query.recordings.jfr.merge import Merged
from crystalperf.query.recordings.jfr.model import ProblemLog
from crystalperf.query.trace.records import Floats, Problems

_MAX_FRAMES = 2048
_LINE = re.compile(rb"(.+\S)[ \t](\d{1,18})(?:\.\d+)?\r?")
_THREAD = re.compile(r"\[.* tid=\d+\]|\[.*\]|.*-\d+/\d+")
_NOTES = re.compile(r"(@\d+)?(_\[[a-z0-9]\])*$")
_LINE_NUMBER = re.compile(r":(\d{1,7})$")
_CLASS = re.compile(r"[\w$.+/-]*[\w$]")
_BLOCKING_CALL = re.compile(r"futex|wait|poll|select|recv|accept|connect|sleep|lll_lock")
_BLOCKING_JAVA = re.compile(
    r"java\.lang\.(Object\.wait|Thread\.sleep)|(sun|jdk\.internal)\.misc\.Unsafe\.park|sun\.nio\.ch\.|java\.net\."
    r"|java\.io\.(FileInputStream|FileOutputStream|RandomAccessFile)\."
)
_METHOD = re.compile(r"[^\W\d][\w$-]*|\$[\w$-]*|<(?:cl)?init>")


@dataclass(frozen=True)
class Collapsed:
    """The stacks of one file as a recording without samples, and the count of each, (stacks,)."""

    recording: jfr.Recording
    weight: Floats
    of_tasks: bool = False
    """Whether it has the stacks of tasks alone, so that it need not show other threads."""


def read(path: str, problems: Problems) -> Collapsed:
    """The distinct stacks of a file, plain or compressed; other lines are counted in `problems`.

    Raises InputError if the file cannot be opened or has no stack.
    """
    if (found := flame_graph.read(path, problems)) is not None:
        return _of_stacks(path, found, of_tasks=True)
    stacks: dict[bytes, float] = {}
    frames: dict[str, int] = {}
    for batch in batches(LogFile(path, (Part(path),)), problems):
        for position, line in enumerate(batch.lines):
            if not line or line.isspace() or line.startswith(b"#"):  # a comment, such as Austin's header
                continue
            match = _LINE.fullmatch(line)
            if match is None:
                where = f"line {batch.first_line + position}"
                meaning = "lines that are not a stack followed by a count were left out"
                problems.add("damaged_stack", "data loss", path, where, meaning)
                continue
            texts = match[1].decode("utf-8", errors="replace").split(";")
            if len(texts) > 1 and _THREAD.fullmatch(texts[0]):
                del texts[0]
            # The leaf first, as in recordings; a stack that is too deep is truncated at the root.
            numbers = [frames.setdefault(text, len(frames)) for text in reversed(texts[-_MAX_FRAMES:])]
            key = np.array(numbers, dtype=np.int32).tobytes()
            stacks[key] = stacks.get(key, 0.0) + float(match[2])
    if not stacks:
        raise InputError(f"{path}: has no line with a stack followed by a count")
    return Collapsed(_recording(list(frames), list(stacks)), np.array(list(stacks.values())))


def _of_stacks(path: str, found: Iterable[tuple[Sequence[str], float]], *, of_tasks: bool) -> Collapsed:
    """Stacks as texts of frames, the root first, and their weights.  Raises InputError without any."""
    stacks: dict[bytes, float] = {}
    frames: dict[str, int] = {}
    for texts, weight in found:
        numbers = [frames.setdefault(text, len(frames)) for text in reversed(texts[-_MAX_FRAMES:])]
        key = np.array(numbers, dtype=np.int32).tobytes()
        stacks[key] = stacks.get(key, 0.0) + weight
    if not stacks:
        raise InputError(f"{path}: the flame graph has no sample; save it again while the job is busy")
    return Collapsed(_recording(list(frames), list(stacks)), np.array(list(stacks.values())), of_tasks)


def frame(text: str) -> tuple[str, str, int]:
    """Class, method and line of a frame's text: `java/lang/Thread.run:840_[0]` → ('java.lang.Thread', 'run', 840).

    The class is empty for native functions, the line 0 if unknown.
    """
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

    Collapsed stacks lack thread states.  By async-profiler's rule a thread sleeps in system calls that a signal
    interrupts; without native frames, in the JVM's methods that make these calls.
    """
    if not class_name:
        return _BLOCKING_CALL.search(method) is None
    return _BLOCKING_JAVA.match(f"{class_name}.{method}") is None


def _recording(texts: list[str], stacks: list[bytes]) -> jfr.Recording:
    parsed = [frame(text) for text in texts]
    class_names, class_id = _numbered([each[0] for each in parsed])
    method_names, method_id = _numbered([each[1] for each in parsed])
    arrays = [np.frombuffer(key, dtype=np.int32) for key in stacks]
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in arrays])]).astype(np.int64)
    return replace(
        Merged().recording(ProblemLog()),
        frames=jfr.Frames(
            class_id=class_id,
            method_id=method_id,
            line=np.array([each[2] for each in parsed], dtype=np.int32),
            class_names=class_names,
            method_names=method_names,
        ),
        stacks=jfr.Stacks(
            offsets=offsets,
            frame_index=np.concatenate(arrays),
            truncated=np.array([len(each) >= _MAX_FRAMES for each in arrays]),
        ),
    )


def _numbered(texts: list[str]) -> tuple[tuple[str, ...], np.ndarray[tuple[int], np.dtype[np.int32]]]:
    numbers: dict[str, int] = {}
    ids = np.array([numbers.setdefault(text, len(numbers)) for text in texts], dtype=np.int32)
    return tuple(numbers), ids
