"""Reading logs in a pool of processes on one machine.

A process reads one log at a time, within limits of memory and time.  If a log crashes its process or takes too long,
the pool replaces the process and records a row about that log.  The largest logs are read first, so that no process
ends with a large one.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from multiprocessing.connection import Connection, wait
from pathlib import Path
from socket import socketpair
from typing import NamedTuple

from crystalperf.fleet.logs import Item
from crystalperf.fleet.reading import Read, failed, read
from crystalperf.indexes import guard
from crystalperf.indexes.children import end_with_parent, own_module
from crystalperf.query.inputs.bounds import VARIABLE, longest_s
from crystalperf.query.text.figures import grouped

LOGS_EACH = 500
"""Logs after which a process is replaced, so that memory kept by libraries does not accumulate."""

_LOOK_EVERY_S = 1.0
"""Time between two looks for processes that take too long."""


class Child(NamedTuple):
    """A process, its log, and the time by which the log must be read (time.monotonic())."""

    process: subprocess.Popen[bytes]
    item: Item
    until_s: float

    @classmethod
    def of(cls, process: subprocess.Popen[bytes], item: Item) -> Child:
        return cls(process, item, time.monotonic() + longest_s(item.size_bytes))


def read_all(items: Sequence[Item], scratch: Path, processes: int, memory_bytes: int) -> Iterator[Read]:
    """The rows of all items, in order of completion; `memory_bytes` is the limit of each process."""
    left = list(reversed(items))  # pop() returns the largest
    pool: dict[Connection, Child] = {}
    threads = max(len(os.sched_getaffinity(0)) // processes, 1)  # more threads would only wait for the other processes

    def begin(item: Item) -> None:
        pipe, process = _started(scratch, memory_bytes, threads)
        with suppress(ConnectionError):  # it has ended already: handled below
            pipe.send_bytes(_encoded(item))
        pool[pipe] = Child.of(process, item)

    try:
        while left or pool:
            while left and len(pool) < processes:
                begin(left.pop())
            ready = wait(list(pool), timeout=_LOOK_EVERY_S)
            for late in [each for each, child in pool.items() if each not in ready and _is_late(child)]:
                process, item, _ = pool.pop(late)
                process.kill()
                process.wait()
                late.close()
                why = f"reading it took more than {longest_s(item.size_bytes):.0f} s; raise {VARIABLE}=seconds=NUMBER"
                yield failed(item, f"{item.name}: {why}")
            for pipe in ready:
                assert isinstance(pipe, Connection)
                process, item, _ = pool.pop(pipe)
                try:
                    answer = pipe.recv_bytes()
                except (EOFError, OSError):  # possibly in the middle of an answer
                    code = process.wait()
                    yield failed(item, _death(item, code, memory_bytes))
                    pipe.close()
                    continue
                if not answer:  # it has read LOGS_EACH logs and ends
                    process.wait()
                    pipe.close()
                    left.append(item)
                    continue
                if left:
                    following = left.pop()
                    with suppress(ConnectionError):
                        pipe.send_bytes(_encoded(following))
                    pool[pipe] = Child.of(process, following)
                else:
                    pipe.close()
                    process.wait()
                log, _, rows = answer.partition(b"\n")
                yield Read(log.decode(), item.name, rows)
    finally:
        for pipe, (process, _, _) in pool.items():
            process.kill()
            process.wait()
            pipe.close()


def _is_late(child: Child) -> bool:
    return time.monotonic() > child.until_s


def memory_of(processes: int) -> int:
    """The memory limit of each process, bytes: an equal share of 80 % of the machine's memory."""
    return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 0.8 / max(processes, 1))


def _death(item: Item, code: int, memory_bytes: int) -> str:
    ended = f"by signal {signal.Signals(-code).name}" if code < 0 else f"with {code}"
    return (
        f"{item.name}: the process that read it ended {ended}, probably because memory ran out;"
        f" the limit is {_mib(memory_bytes)} for each process"
    )


def _started(scratch: Path, memory_bytes: int, threads: int) -> tuple[Connection, subprocess.Popen[bytes]]:
    """A new process that reads logs, and the pipe to it.  It is isolated, unlike those of `multiprocessing`."""
    mine, theirs = socketpair()
    with theirs:
        process = subprocess.Popen(
            own_module("crystalperf.fleet.local"),
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # the parent handles Ctrl-C and ends the process
        )
    pipe = Connection(mine.detach())
    with suppress(ConnectionError):
        pipe.send_bytes(json.dumps([str(scratch), memory_bytes, threads]).encode())
    return pipe, process


def _encoded(item: Item) -> bytes:
    """An item as ASCII JSON, which preserves any file name."""
    return json.dumps(asdict(item)).encode()


def _serve(pipe: Connection) -> None:
    """Read logs, one at a time, until the pipe is closed."""
    end_with_parent()
    try:
        place, memory_bytes, guard.THREADS = json.loads(pipe.recv_bytes())
        if sys.platform == "linux":
            resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
        for number in range(LOGS_EACH + 1):
            facts = json.loads(pipe.recv_bytes())
            if number == LOGS_EACH:
                pipe.send_bytes(b"")
                return
            item = Item(**{**facts, "companions": tuple(facts["companions"])})
            try:
                answer = read(item, Path(place))
            except MemoryError:
                why = f"reading it takes more memory than the limit of {_mib(memory_bytes)} for each process"
                answer = failed(item, f"{item.name}: {why}")
            pipe.send_bytes(answer.log.encode() + b"\n" + answer.rows)
    except (EOFError, ConnectionError):
        return


def _mib(count: int) -> str:
    return f"{grouped(count >> 20)} MiB"


if __name__ == "__main__":
    _serve(Connection(os.dup(0)))
