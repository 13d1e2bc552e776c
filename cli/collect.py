"""`crystalperf collect FRAMEWORK URL`: a log of what a running cluster tells of a job."""

from __future__ import annotations

from pathlib import Path

from crystalperf.cli.output import progress, say, write
from crystalperf.cli.text import shell_word
from crystalperf.indexes.errors import NoAnswerError
from crystalperf.query.frameworks.registry import frameworks, get


def collect(framework: str, address: str, job: str, output: str) -> int:
    """Print where the log is.  Raises InputError, and NoAnswerError for a framework that leaves its log by itself."""
    known = get(framework.lower())
    if known.reader.collect is None:
        able = ", ".join(each.name for each in frameworks().values() if each.reader.collect is not None)
        raise NoAnswerError(f"{known.title}: writes its log by itself; collecting is for {able}")
    with progress() as step:
        path = known.reader.collect(address, job or None, Path(output), step)
    write(f"{path}\n")
    say(f"Next: crystalperf analyze {shell_word(path)}")
    return 0
