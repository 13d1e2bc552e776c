"""A second process that reads every other batch of a large log.

It is `python -m crystalperf.query.frameworks.spark.log.second_process`.

Most of the time of a large log goes into the ends of its tasks, which do not depend on each other.  Both processes go
through the whole log, because batch borders are known only after unpacking, but split and decode only their own
batches.  The first process takes over the second's results in the order of the log, so that the tables are the same to
the last row.  It never depends on the second: it reads batches itself that are not as Spark writes them, and all
batches after the second process has ended.

    parent → child   Request, msgpack
    child → parent   for each of its batches the length (8 bytes, little endian) and BatchResult, msgpack; 0 for a
                     batch that the parent has to read
"""

from __future__ import annotations

import os
import resource
import stat
import subprocess
from contextlib import suppress
from pathlib import Path

import msgspec

from crystalperf.indexes import guard
from crystalperf.indexes.children import own_module
from crystalperf.query.inputs.containers import Batch, LogFile, is_url

MIN_BYTES = 128 << 20
"""Minimum stored size of a log that a second process reads; it takes 0.2 s to start."""

FIRST = 24
"""The first batch of the second process, which has every other one from then on; until then it starts."""

_PIPE_BYTES = 1 << 20
"""How far the second process may be ahead, some batches: the largest pipe without a privilege."""

_MAX_RESULT_BYTES = 256 << 20
"""Maximum size of the second process's result for a batch; a batch has some MiB."""


class Request(msgspec.Struct):
    """The request: a log's files as bytes, because names need not be text, the first batch, and whether parts of
    metrics that the log leaves out are 0."""

    paths: list[bytes]
    first: int
    zeros: bool


class BatchResult(msgspec.Struct, array_like=True, gc=False):
    """The result of a batch: its tasks, and its other lines by their position.

    `columns` are those of run.TASK_FIELDS as bytes of float64; `texts` are new ones, with consecutive codes; `started`
    are tasks without an end after their start in the batch; `peaks` are those of executors' memory (peaks.py).
    """

    first_line: int
    count: int
    columns: bytes
    texts: list[list[str | None]]
    started: dict[float, bytes]
    others: list[tuple[int, bytes]]
    peaks: list[tuple[tuple[str, int | None, int], tuple[float, ...]]]


class Second:
    """The second process of a log, and the turns of both; a context manager that ends the process.

    There is none if the log is small or not a plain file, or if only one CPU is available.
    """

    def __init__(self, log: LogFile) -> None:
        self._paths = _paths(log)
        self._number = -1
        self._process: subprocess.Popen[bytes] | None = None
        self._zeros = False

    def __enter__(self) -> Second:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def tasks(self, batch: Batch, *, zeros: bool) -> BatchResult | None:
        """The second process's result for the log's next batch; None if the first process has to read it."""
        self._number += 1
        if self._number == 1 and self._paths:  # the first batch has Spark's version, which decides on `zeros`
            self._start(zeros)
        if self._process is None or not is_second(self._number, FIRST):
            return None
        result = self._next_result() if zeros is self._zeros else None
        if result is not None and (result.first_line, result.count) != (batch.first_line, batch.count):
            result = None  # the log is being written to
            self._end()
        return result

    def _start(self, zeros: bool) -> None:
        with suppress(OSError):
            self._process = subprocess.Popen(
                own_module(f"{__package__}.second_process"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # this process handles Ctrl-C and ends the other
                pipesize=_PIPE_BYTES,
            )
            self._zeros = zeros
            assert self._process.stdin is not None
            paths = [os.fsencode(each) for each in self._paths]
            self._process.stdin.write(msgspec.msgpack.encode(Request(paths, FIRST, zeros)))
            self._process.stdin.close()

    def _next_result(self) -> BatchResult | None:
        assert self._process is not None
        assert self._process.stdout is not None
        stream = self._process.stdout
        head = stream.read(8)
        size = int.from_bytes(head, "little")
        if len(head) == 8 and size == 0:
            return None
        try:
            if len(head) == 8 and size <= _MAX_RESULT_BYTES:
                return msgspec.msgpack.decode(stream.read(size), type=BatchResult)
        except msgspec.MsgspecError:
            pass
        self._end()  # incomplete, empty, or other output: stop using the process
        return None

    def _end(self) -> None:
        if self._process is None:
            return
        self._process.kill()
        for each in (self._process.stdin, self._process.stdout):
            if each is not None:
                with suppress(OSError):
                    each.close()
        self._process.wait()
        self._process = None


def is_second(number: int, first: int) -> bool:
    """Whether a batch is the second process's."""
    return number >= first and (number - first) % 2 == 0


def _paths(log: LogFile) -> list[str]:
    """The files of a log for a second process; empty if it should not run."""
    bounded = resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY  # the limit is per process
    if guard.THREADS == 1 or bounded or _cpus() < 2:
        return []
    sizes = []
    for part in log.parts:
        if part.member is not None or is_url(part.path) or part.path.startswith(("/dev/", "/proc/")):
            return []
        try:
            status = os.stat(part.path)
        except OSError:
            return []
        if not stat.S_ISREG(status.st_mode):
            return []
        sizes.append(status.st_size)
    return [os.path.abspath(part.path) for part in log.parts] if sum(sizes) >= MIN_BYTES else []


_QUOTAS = (
    ("/sys/fs/cgroup/cpu.max", None),
    ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "/sys/fs/cgroup/cpu/cpu.cfs_period_us"),
)
"""Files with a container's CPU quota and its period: cgroup v2 has both in one file."""


def _cpus() -> float:
    """The CPUs available to this process: a container may see more than its quota allows."""
    cpus = float(len(os.sched_getaffinity(0)))
    for quota, period in _QUOTAS:
        with suppress(OSError, ValueError):
            numbers = " ".join(Path(each).read_text() for each in (quota, period) if each).split()
            used_us, period_us = (float(each) for each in numbers)  # "max" is not a number: there is no quota
            if used_us > 0:
                cpus = min(cpus, used_us / period_us)
    return cpus
