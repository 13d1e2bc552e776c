"""Parses a code change in the format of `git diff`: the added and removed lines of each file."""

from __future__ import annotations

from collections.abc import Mapping

from crystalperf.indexes.errors import InputError
from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.regex import regex

MAX_BYTES = 64 << 20
"""Maximum size of a change."""

_HUNK = regex(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


@frozen
class ChangedFile:
    """A file after a change: its `path` in the change, added lines by number from 1, and removed lines."""

    path: str
    added: Mapping[int, str]
    removed: tuple[str, ...]


def changed_files(text: str) -> tuple[ChangedFile, ...]:
    """The files that exist after a change.  Raises InputError for a text that is not a unified diff."""
    found: list[ChangedFile] = []
    path, added, removed = "", dict[int, str](), list[str]()
    old_left = new_left = number = 0
    hunks = 0

    def finish() -> None:
        if path and path != "/dev/null" and added:
            found.append(ChangedFile(path, dict(added), tuple(removed)))

    for line in text.split("\n"):
        if old_left > 0 or new_left > 0:  # a line inside a hunk is never a header
            if line.startswith("+"):
                added[number] = line[1:]
                number, new_left = number + 1, new_left - 1
            elif line.startswith("-"):
                removed.append(line[1:])
                old_left -= 1
            elif not line.startswith("\\"):
                number, old_left, new_left = number + 1, old_left - 1, new_left - 1
        elif line.startswith("+++ "):
            finish()
            path = _path(line[4:])
            added, removed = {}, []
        elif match := _HUNK.match(line):
            hunks += 1
            old_left, new_left = int(match[2] or 1), int(match[4] or 1)
            number = int(match[3])
    finish()
    if not hunks:
        raise InputError("the change is not a unified diff; create one with `git diff` or `git show`")
    return tuple(found)


def _path(text: str) -> str:
    """The file's name after `+++ `, without git's b/ and without a time."""
    name = text.split("\t")[0].rstrip("\r").strip('"')
    return name.removeprefix("b/")
