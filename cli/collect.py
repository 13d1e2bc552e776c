"""`crystalperf collect FRAMEWORK URL`: save the job data of a running cluster as a log."""

from __future__ import annotations

from pathlib import Path

from crystalperf.cli.output import print_message, progress, write
from crystalperf.cli.text import shell_word
from crystalperf.indexes.errors import NoAnswerError
from crystalperf.query.frameworks.registry import frameworks, get

RECORDINGS = "RECORDINGS"
"""The word for the folder of recordings that the user has to name."""


def _recordings(folder: Path) -> str:
    """The recordings for the command: those next to the log, else a word with its meaning."""
    if any(folder.glob("*.jfr")):
        return shell_word(folder)
    meaning = "the folder with the .jfr files that the workers write when they end; leave it out without any"
    return f"{RECORDINGS}\n      ({RECORDINGS}: {meaning})"


def collect(framework: str, address: str, job: str, output: str) -> int:
    """Save the log and print its path.  Raises InputError; NoAnswerError if the framework writes logs itself."""
    known = get(framework.lower())
    if known.reader.collect is None:
        able = ", ".join(each.name for each in frameworks().values() if each.reader.collect is not None)
        raise NoAnswerError(f"{known.title}: its jobs write a log themselves; `collect` supports {able}")
    with progress() as step:
        path = known.reader.collect(address, job or None, Path(output), step)
    write(f"{path}\n")
    print_message(f"Next: crystalperf analyze {shell_word(path)} {_recordings(Path(output))}")
    return 0
