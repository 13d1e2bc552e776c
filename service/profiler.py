"""The process that makes one run file of a job's inputs; what it may cost ends with it.

`python -m crystalperf.service.profiler`, isolated.  It is told what to do on stdin, in JSON, and says on stdout, a line
of JSON each: {"step": …}, then {"run": name} or {"error": {kind, what, remedy}}.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path
from typing import Any

import msgspec

from crystalperf.indexes.children import end_with_parent, error_report
from crystalperf.indexes.errors import InputError, NoAnswerError

OTHER_ADDRESSES = 6 << 30
"""Beside the memory of a job: programs, stacks of threads, what allocators reserve and never touch."""


class Work(msgspec.Struct):
    """What to profile: paths of inputs, all below `within` where that is given, the application, the indexes.

    With `fetched` they are addresses, whose logs are put into that folder.
    """

    paths: list[str]
    app: str | None
    indexes: list[str]
    within: str | None
    fetched: str | None
    memory_bytes: int
    file_bytes: int
    seconds: float


def work() -> None:
    """Do what stdin says."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    end_with_parent()

    def say(**content: Any) -> None:
        answers.write(json.dumps(content) + "\n")
        answers.flush()

    asked = msgspec.json.decode(sys.stdin.buffer.read(), type=Work)
    addresses = asked.memory_bytes + OTHER_ADDRESSES
    resource.setrlimit(resource.RLIMIT_AS, (addresses, addresses))
    resource.setrlimit(resource.RLIMIT_FSIZE, (asked.file_bytes, asked.file_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    cpu_s = int(asked.seconds) * (os.cpu_count() or 1) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    try:
        if asked.within is not None:
            check_within(asked.paths, Path(asked.within))
        say(run=_profiled(asked, lambda step: say(step=step)))
    except MemoryError:
        say(error=error_report(NoAnswerError("the profile needs more memory than it may take; give less of the input")))
    except Exception as error:
        say(error=error_report(error))


def _profiled(asked: Work, progress: Any) -> str:
    from crystalperf.query.inputs.served import handed_out
    from crystalperf.query.runfile.pipeline import profile_inputs

    paths = asked.paths
    if asked.fetched is not None:
        paths = [str(handed_out(each, asked.app, Path(asked.fetched), progress)) for each in paths]
    return profile_inputs(list(paths), None, asked.app, tuple(asked.indexes), progress).stem


def check_within(paths: list[str], folder: Path) -> None:
    """Refuse paths that lead out of a folder, by themselves or by a link somewhere below them."""
    root = folder.resolve()
    for path in paths:
        links = [Path(path)]
        for parent, folders, files in os.walk(path):
            beside = [Path(parent, name) for name in (*folders, *files)]
            links += [each for each in beside if each.is_symlink()]
        for each in links:
            if not each.resolve().is_relative_to(root):
                raise InputError(f"{each.name}: leads out of the folder that the service may read")


if __name__ == "__main__":
    work()
