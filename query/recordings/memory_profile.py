"""Reader of the text of memory_profiler: the memory of a process after each line of a function.

    Filename: /srv/job/job.py

    Line #    Mem usage    Increment  Occurrences   Line Contents
    =============================================================
        12    180.0 MiB    180.0 MiB           1   def score(texts):
        13    300.0 MiB    120.0 MiB           1       long = texts.str.repeat(200)

Memory is of the whole process.  An increment is against the line that ran before; the first line has no line before it,
so its memory is that at the function's start.  https://pypi.org/project/memory-profiler/ 0.61
"""

from __future__ import annotations

from collections.abc import Iterator

from crystalperf.indexes.errors import InputError
from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.regex import regex
from crystalperf.query.recordings.whole import content
from crystalperf.query.trace.records import Problems

_MIB = float(2**20)
_FILE = "Filename: "
_BEGINNING = regex(
    rb"\s{0,99}Filename: [^\n]{1,4096}\r?\n\s{0,99}Line #\s{1,9}Mem usage\s{1,9}Increment\s{1,9}Occurrences"
)
_LINE = regex(
    r"\s{0,9}(\d{1,9})\s{1,99}(-?\d{1,12}\.\d{1,6}) MiB\s{1,99}(-?\d{1,12}\.\d{1,6}) MiB\s{1,99}(\d{1,12})(?:\s.*)?"
)
_FUNCTION = regex(r"\s{0,9}\d{1,9}[\s\d.+-]{1,99}(?:MiB[\s\d.+-]{1,99}){0,2}(?:async )?def (\w{1,200})\(")
"""A line with the head of the function; after a decorator, it is not measured."""
_MAX_LINES = 1_000_000


@frozen
class MeasuredLine:
    """A line: memory of the process after it, and its increase by it, bytes; both are as the file has them, so sums if
    calls were merged."""

    line: int
    memory_bytes: float
    grown_bytes: float
    times: int


@frozen
class FunctionMemory:
    """The measured lines of one function, in their order; `function` is None if its text does not name it."""

    file: str
    function: str | None
    lines: tuple[MeasuredLine, ...]


@frozen
class MemoryProfile:
    """The functions of one profile."""

    functions: tuple[FunctionMemory, ...]


def is_memory_profile(beginning: bytes) -> bool:
    """Whether a file with this beginning is the text of memory_profiler, 0.58 or newer."""
    return _BEGINNING.match(beginning) is not None


def read(path: str, problems: Problems) -> MemoryProfile:
    """The functions of a profile.  Raises InputError if it has no measured line."""
    text = content(path, "a profile of memory_profiler", problems).decode("utf-8", "replace")
    found = tuple(each for each in _functions(text.replace("\r\n", "\n").split("\n")[:_MAX_LINES]) if each.lines)
    if not found:
        raise InputError(f"{path}: a profile of memory_profiler without a measured line; profile while the job is busy")
    return MemoryProfile(found)


def _functions(lines: list[str]) -> Iterator[FunctionMemory]:
    file, function, measured = "", None, list[MeasuredLine]()
    for line in lines:
        if line.startswith(_FILE):
            yield FunctionMemory(file, function, tuple(measured))
            file, function, measured = line.removeprefix(_FILE).strip(), None, []
            continue
        if function is None and (defined := _FUNCTION.match(line)) is not None:
            function = defined[1]
        if (match := _LINE.fullmatch(line)) is not None:
            number, memory, grown, times = match.groups()
            measured.append(MeasuredLine(int(number), float(memory) * _MIB, float(grown) * _MIB, int(times)))
    yield FunctionMemory(file, function, tuple(measured))
