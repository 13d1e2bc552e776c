"""A TensorFlow trace of any kind as a trace of the core (query.trace)."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator

from crystalperf.indexes.errors import InputError
from crystalperf.query.frameworks.ml.tensorflow import files, graph, timeline, xplane
from crystalperf.query.frameworks.ml.tensorflow.messages import RunMetadata, embedded, plausible, run_metadata
from crystalperf.query.frameworks.ml.tensorflow.xplane import HostOperations
from crystalperf.query.frameworks.ml.training import program
from crystalperf.query.inputs.containers import LogFile, Part, head, pieces
from crystalperf.query.inputs.files import HEAD_BYTES, Head
from crystalperf.query.trace.contract import Trace
from crystalperf.query.trace.records import Problems
from crystalperf.query.trace.wire import DamagedMessageError

_MAX_BYTES = 2 << 30
"""Maximum size of one message; Protocol Buffers write no larger ones."""


def read(log: LogFile, framework: str = "tensorflow", of_line: HostOperations = xplane.of_line) -> Trace:
    """The trace of a run.  Raises InputError.

    `framework` is the name of the run's framework; `of_line` returns the operations of a thread.
    """
    problems = Problems(log.problems)
    first = log.parts[0]
    kind = files.kind_of(
        Head(first, os.path.dirname(first.path), os.path.basename(first.name), 0, head(first, HEAD_BYTES))
    )
    if kind == "xplane":
        files_read = [(each, _bytes(each, problems)) for each in log.parts]
        found = xplane.program(files_read, log.origin, problems, framework, of_line)
    elif kind == "timeline":
        found = timeline.program(log, problems, framework, of_line)
    else:
        steps = list(_summary_steps(log, problems) if kind == "summary" else _steps(log, problems))
        if not steps:
            raise InputError(
                f"{log.origin}: the file has no traced step; run a step with RunOptions(trace_level=FULL_TRACE) and"
                " keep its RunMetadata"
            )
        found = graph.program(steps, log.origin, problems)
    if not found.segments:
        raise program.nothing_ran(log.origin, problems, "trace at least one training step")
    return program.trace(found, framework, log, problems)


def _bytes(part: Part, problems: Problems) -> bytes:
    found = bytearray()
    for piece in pieces(part, problems):
        found += piece
        if len(found) > _MAX_BYTES:
            raise InputError(f"{part.name}: larger than {_MAX_BYTES >> 30} GiB; trace fewer steps")
    return bytes(found)


def _steps(log: LogFile, problems: Problems) -> Iterator[tuple[str, RunMetadata]]:
    """(name of the step, its RunMetadata) of each file, in order of time."""
    found: list[tuple[float, str, RunMetadata]] = []
    for part in log.parts:
        try:
            each = run_metadata(_bytes(part, problems))
        except DamagedMessageError as error:
            _report_damage(problems, part, error)
            continue
        if plausible(each):
            found.append((_start(each), step_name(os.path.basename(part.name)), each))
    yield from _named(found)


def step_name(file: str) -> str:
    """The number of a step in its file's name: the one after `step`, else the last one; '' without a number."""
    named = re.findall(r"step[-_ ]?(\d+)", file, re.IGNORECASE)
    numbers = named or re.findall(r"\d+", file)
    return numbers[-1] if numbers else ""


def _named(found: list[tuple[float, str, RunMetadata]]) -> Iterator[tuple[str, RunMetadata]]:
    for _, name, each in sorted(found, key=lambda one: one[0]):
        yield name, each


def _start(found: RunMetadata) -> float:
    return min((node.start for each in found.devices for node in each.nodes if node.start > 0), default=0.0)


def _report_damage(problems: Problems, part: Part, error: Exception) -> None:
    problems.add("damaged trace", "data loss", part.name, None, f"step files that cannot be read ({error})")


def _summary_steps(log: LogFile, problems: Problems) -> Iterator[tuple[str, RunMetadata]]:
    """The steps embedded in summaries: records of a length, its checksum, the event and its checksum."""
    found: list[tuple[float, str, RunMetadata]] = []
    for part in log.parts:
        text = _bytes(part, problems)
        place = 0
        while place + 12 <= len(text):
            (length,) = struct.unpack_from("<Q", text, place)
            event = memoryview(text)[place + 12 : place + 12 + length]
            if len(event) < length:
                problems.add("damaged trace", "data loss", part.name, f"byte {place}", "the file ends within a record")
                break
            place += 16 + length
            try:
                for tag, step, message in embedded(event):
                    each = run_metadata(message)
                    if plausible(each):
                        found.append((_start(each), str(step) if step else step_name(tag), each))
            except DamagedMessageError as error:
                _report_damage(problems, part, error)
    yield from _named(found)
