"""Reader of collapsed stacks: one stack a line, root first, `;` between frames, and its number of samples.

    java/lang/Thread.run_[0];org/apache/spark/executor/Executor$TaskRunner.run_[0];…;java/io/FileInputStream.read_[j] 17

The format is that of async-profiler and its converter (with or without threads, lines, library names, signatures), of
FlameGraph's scripts, of py-spy's format `raw` and of CrystalPerf's own export.  It has no times, and does not state the
unit of its counts.
"""

from __future__ import annotations

from crystalperf.indexes.errors import InputError
from crystalperf.indexes.regex import regex
from crystalperf.query.inputs.containers import LogFile, Part, batches
from crystalperf.query.recordings import flame_graph
from crystalperf.query.recordings.own_export import without_resource
from crystalperf.query.recordings.stacktable import MAX_FRAMES, Collapsed, StackTable, frame_of
from crystalperf.query.trace.records import Problems

_LINE = regex(rb"(.+\S)[ \t](\d{1,18})(?:\.\d+)?\r?")
_THREAD = regex(r"\[.* tid=\d+\]|\[.*\]|.*-\d+/\d+|process \d+:.*|thread \(\w+\).*")
"""A frame at the root that names a thread, a process or a stage."""


def read(path: str, problems: Problems) -> Collapsed:
    """The distinct stacks of a file, plain or compressed; other lines are counted in `problems`.

    Raises InputError if the file cannot be opened or has no stack.
    """
    table = StackTable(path)
    if (found := flame_graph.read(path, problems)) is not None:
        for graph_stack, weight in found:
            table.add([table.frame(frame_of(text)) for text in reversed(graph_stack[-MAX_FRAMES:])], weight)
        if not table:
            raise InputError(f"{path}: the flame graph has no sample; save it again while the job is busy")
        return table.collapsed(of_tasks=True)
    numbers: dict[str, int] = {}
    exported = True
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
            while len(texts) > 1 and _THREAD.fullmatch(texts[0]):
                del texts[0]
            stack, has_resource = without_resource(texts)
            exported &= has_resource
            for text in stack:
                if text not in numbers:
                    numbers[text] = table.frame(frame_of(text))
            # The leaf first, as in recordings; a stack that is too deep is truncated at the root.
            table.add([numbers[text] for text in reversed(stack[-MAX_FRAMES:])], float(match[2]))
    if not table:
        raise InputError(f"{path}: has no line with a stack followed by a count")
    return table.collapsed(of_tasks=exported)
