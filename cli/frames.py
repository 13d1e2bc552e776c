"""`crystalperf index resolve`: which function a frame of a stack falls in."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from cli.index_commands import known_names
from cli.output import progress, say, write
from cli.text import counted, printable
from indexes import guard
from indexes.errors import IndexFileError, InputError
from query.code.names import Frame, parse_frame
from query.code.resolve import load_indexes, resolve

LONGEST_FRAME = 10_000
"""Characters of a line of stdin; what is longer is no frame."""

MOST_FRAMES = 10_000_000
"""Frames of one call, so that an endless stdin ends in a sentence."""

_WHY = {
    "class": "the class is indexed, but no function of it is there",
    "hidden": "a class the JVM makes for lambdas and proxies, not in any source",
    "generated": "generated while running, not in any source",
    "unknown": "in none of the indexes",
    "unreadable": "not a frame; write package.Class.method:line, 'at a.B.m(F.scala:12)' or 'path.py:12 (f)'",
}

_FACTS = ("index_name", "function_id", "qualified_name", "file", "first_line", "last_line")

Found = dict[str, Any]


def resolve_frames(frames: Sequence[str], names: Sequence[str], *, as_json: bool) -> int:
    """Print the function each frame falls in, in their order, or why none; frames come from stdin if none is given."""
    texts = list(frames) or _stdin_lines()
    if not texts:
        raise InputError("no frames: give them as arguments, or one a line on stdin")
    chosen = list(names) or known_names()
    if not chosen:
        raise IndexFileError("no index yet; make one with `crystalperf index build jdk-17`")
    distinct = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    with progress() as step:
        step("finding functions")
        found = _resolve(list(distinct), chosen)
    answers = (found[distinct[text]] for text in texts)
    if as_json:
        lines = [json.dumps(each) for each in found]
        write("[\n" + ",\n".join(lines[distinct[text]] for text in texts) + "\n]\n")
    else:
        write("".join(f"{line}\n" for line in map(_line, answers)))
    if not names:
        say(_which(chosen, found))
    return 0


def _which(asked: Sequence[str], found: Sequence[Found]) -> str:
    """Which indexes answered where the user named none, and why those."""
    counts = Counter(each["index_name"] for each in found if each["function"])
    answered = ", ".join(f"{name} ({counted(count, 'frame')})" for name, count in counts.most_common())
    return (
        f"No --index was given, so {counted(len(asked), 'index')} at hand {'was' if len(asked) == 1 else 'were'} asked"
        f" in the order of `crystalperf index list`, and the first that knows a frame answered: {answered or 'none'};"
        " --index names the versions that ran"
    )


def _stdin_lines() -> list[str]:
    if sys.stdin.isatty():
        return []
    found = []
    for line in iter(lambda: sys.stdin.buffer.readline(LONGEST_FRAME), b""):
        text = line.decode("utf-8", "replace").strip()
        if text:
            found.append(text)
        if len(found) > MOST_FRAMES:
            raise InputError(f"stdin: more than {MOST_FRAMES} frames; give them in parts")
    return found


def _resolve(texts: Sequence[str], names: Sequence[str]) -> list[Found]:
    frames = [parse_frame(text) for text in texts]
    connection = guard.fresh()
    try:
        columns = _columns(frames)
        connection.execute("CREATE TEMP TABLE frames AS SELECT * FROM columns")
        classes = set(columns["class_name"].tolist())
        del columns
        aliases = load_indexes(connection, names, classes)
        table = resolve(connection, "frames", aliases)
        functions = (
            " UNION ALL ".join(
                f"SELECT {_quoted(name)} AS index_name, function_id, qualified_name, file, first_line, last_line"
                f" FROM {alias}.functions"
                for alias, name in aliases
            )
            or f"SELECT {', '.join(f'NULL AS {each}' for each in _FACTS)} LIMIT 0"
        )
        rows = connection.execute(
            f"SELECT frame_id, how, index_name, symbol, qualified_name, file, first_line, last_line"
            f" FROM {table} LEFT JOIN ({functions}) USING (index_name, function_id)"
        ).fetchall()
    finally:
        connection.close()
    answers = [_answer(text, "unreadable") for text in texts]
    for frame_id, how, *facts in rows:
        answers[frame_id] = _answer(texts[frame_id], how, facts)
    return answers


def _columns(frames: Iterable[Frame | None]) -> dict[str, np.ndarray[Any, Any]]:
    known = [(number, frame) for number, frame in enumerate(frames) if frame is not None]
    return {
        "frame_id": np.array([number for number, _ in known], dtype=np.int32),
        "class_name": np.array([frame.class_name for _, frame in known], dtype=object),
        "method": np.array([frame.method for _, frame in known], dtype=object),
        "line": np.array([frame.line or 0 for _, frame in known], dtype=np.int32),
    }


def _answer(text: str, how: str, facts: Sequence[Any] = (None,) * 6) -> Found:
    index_name, symbol, qualified_name, file, first_line, last_line = facts
    return {
        "frame": text,
        "function": qualified_name,
        "index_name": index_name,
        "symbol": symbol,
        "file": file,
        "first_line": first_line,
        "last_line": last_line,
        "how": how,
        "why_none": None if qualified_name else _WHY.get(how, how),
    }


def _line(found: Found) -> str:
    frame = printable(found["frame"])
    if found["function"] is None:
        return f"{frame}  ->  none: {found['why_none']}"
    where = f"{found['index_name']} {found['file']}:{found['first_line']}-{found['last_line']}"
    return printable(f"{frame}  ->  {found['function']}  ({where}, by {found['how']})")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
