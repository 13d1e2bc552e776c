"""The child process that profiles one job, within limits of time, memory and disk.

The service starts it as `python -m crystalperf.service.profiler`, isolated.  It reads Work as JSON from stdin and
writes JSON lines to stdout: {"step": …} for each step, then {"run": name} or {"error": {kind, message, remedy}}.
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
"""Address space besides a job's memory: programs, thread stacks, memory that allocators reserve and never touch."""


class Work(msgspec.Struct):
    """The input of a job: paths (all below `within`, if given), the application and the indexes.

    If `fetched` is given, the paths are addresses, and their logs are downloaded into that folder.
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
    """Profile the job on stdin."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    end_with_parent()

    def send(**content: Any) -> None:
        answers.write(json.dumps(content) + "\n")
        answers.flush()

    request = msgspec.json.decode(sys.stdin.buffer.read(), type=Work)
    addresses = request.memory_bytes + OTHER_ADDRESSES
    resource.setrlimit(resource.RLIMIT_AS, (addresses, addresses))
    resource.setrlimit(resource.RLIMIT_FSIZE, (request.file_bytes, request.file_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    cpu_s = int(request.seconds) * (os.cpu_count() or 1) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    try:
        if request.within is not None:
            check_within(request.paths, Path(request.within))
        send(run=_profiled(request, lambda step: send(step=step)))
    except MemoryError:
        send(error=error_report(NoAnswerError("the job exceeded its memory limit; use a smaller part of the input")))
    except Exception as error:
        send(error=error_report(error))


def _profiled(request: Work, progress: Any) -> str:
    from crystalperf.query.inputs.served import fetch_log
    from crystalperf.query.runfile.pipeline import profile_inputs

    paths = request.paths
    if request.fetched is not None:
        paths = [str(fetch_log(each, request.app, Path(request.fetched), progress)) for each in paths]
    return profile_inputs(list(paths), None, request.app, tuple(request.indexes), progress).stem


def check_within(paths: list[str], folder: Path) -> None:
    """Raise InputError for a path that leads out of the folder, directly or through a link below it."""
    root = folder.resolve()
    for path in paths:
        links = [Path(path)]
        for parent, folders, files in os.walk(path):
            entries = [Path(parent, name) for name in (*folders, *files)]
            links += [each for each in entries if each.is_symlink()]
        for each in links:
            if not each.resolve().is_relative_to(root):
                raise InputError(f"{each.name}: outside of the folders that the service may read")


if __name__ == "__main__":
    work()
