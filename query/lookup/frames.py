"""Resolves frames of stacks, `at java.util.HashMap.get(HashMap.java:564)`, to functions of indexes, many at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from crystalperf.indexes import guard
from crystalperf.indexes.places import QUALIFIED_NAME
from crystalperf.query.attribution.code.names import Frame, parse_frame
from crystalperf.query.attribution.code.resolve import load_indexes, resolve

_WHY = {
    "class": "an index has the class, but not this function",
    "hidden": "a class that the JVM generates for lambdas and proxies, without source",
    "generated": "code generated at run time, without source",
    "unknown": "not in any of the indexes",
    "unreadable": "not a frame; write package.Class.method:line, 'at a.B.m(F.scala:12)' or 'path.py:12 (f)'",
}

_NOTHING = (
    "SELECT 0 AS turn, 0 AS function_id, NULL AS qualified_name, '' AS file, 0 AS first_line, 0 AS last_line LIMIT 0"
)

Found = dict[str, Any]


def resolve_frames(texts: Sequence[str], names: Sequence[str]) -> list[Found]:
    """The function of each frame and how it was found, or why not; `names` are the indexes in order of priority.

    Raises IndexFileError if one of them does not exist.
    """
    frames = [parse_frame(text) for text in texts]
    connection = guard.fresh()
    try:
        columns = _columns(frames)
        connection.execute("CREATE TEMP TABLE frames AS SELECT * FROM columns")
        del columns
        indexes = load_indexes(connection, names, "frames")
        table = resolve(connection, "frames", indexes)
        select = f"SELECT turn, function_id, {QUALIFIED_NAME} AS qualified_name, file, first_line, last_line"
        functions = f"{select} FROM {indexes.functions}" if indexes.names else _NOTHING
        rows = connection.execute(
            f"SELECT frame_id, how, index_name, symbol, qualified_name, file, first_line, last_line"
            f" FROM {table} LEFT JOIN ({functions}) USING (turn, function_id)"
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
