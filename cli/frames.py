"""`crystalperf index resolve`: resolve stack frames to functions."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence

from crystalperf.cli.output import print_message, progress, write
from crystalperf.cli.text import counted, printable
from crystalperf.indexes.errors import IndexFileError, InputError
from crystalperf.query.lookup.frames import Found
from crystalperf.query.lookup.frames import resolve_frames as find_functions
from crystalperf.query.lookup.functions import known_names

LONGEST_FRAME = 10_000
"""Maximum characters of a line of stdin; a longer line is not a frame."""

MAX_FRAMES = 10_000_000
"""Maximum frames of one call, so that an endless stdin ends with an error."""


def resolve_frames(frames: Sequence[str], names: Sequence[str], *, as_json: bool) -> int:
    """Print the function of each frame, in order, or why there is none; frames come from stdin if none is given."""
    texts = list(frames) or _stdin_lines()
    if not texts:
        raise InputError("no frames: give them as arguments, or one per line on stdin")
    chosen = list(names) or known_names()
    if not chosen:
        raise IndexFileError("there is no index; build one with `crystalperf index build jdk-17`")
    distinct = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    with progress() as step:
        step("finding functions")
        found = find_functions(list(distinct), chosen)
    answers = (found[distinct[text]] for text in texts)
    if as_json:
        lines = [json.dumps(each) for each in found]
        write("[\n" + ",\n".join(lines[distinct[text]] for text in texts) + "\n]\n")
    else:
        write("".join(f"{line}\n" for line in map(_line, answers)))
    if not names:
        print_message(_which(chosen, found))
    return 0


def _which(chosen: Sequence[str], found: Sequence[Found]) -> str:
    """If the user named no index: a sentence on which indexes resolved the frames."""
    counts = Counter(each["index_name"] for each in found if each["function"])
    answered = ", ".join(f"{name} ({counted(count, 'frame')})" for name, count in counts.most_common())
    verb = "was" if len(chosen) == 1 else "were"
    return (
        f"No --index was given: {counted(len(chosen), 'available index')} {verb} searched in the order of"
        f" `crystalperf index list`, and the first match counts: {answered or 'none'}."
        " Use --index to name the versions that ran"
    )


def _stdin_lines() -> list[str]:
    if sys.stdin.isatty():
        return []
    found = []
    for line in iter(lambda: sys.stdin.buffer.readline(LONGEST_FRAME), b""):
        text = line.decode("utf-8", "replace").strip()
        if text:
            found.append(text)
        if len(found) > MAX_FRAMES:
            raise InputError(f"stdin: more than {MAX_FRAMES} frames; split them into several calls")
    return found


def _line(found: Found) -> str:
    frame = printable(found["frame"])
    if found["function"] is None:
        return f"{frame}  ->  none: {found['why_none']}"
    where = f"{found['index_name']} {found['file']}:{found['first_line']}-{found['last_line']}"
    how = "a native method" if found["how"] == "native" else f"by {found['how']}"
    return printable(f"{frame}  ->  {found['function']}  ({where}, {how})")
