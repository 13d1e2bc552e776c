"""Parsing in child processes that can be killed, so that a hostile file affects only itself.

A parser can hang or crash on bad input, and its own time limit does not stop it.  So each file is parsed by a child
(`python -m crystalperf.indexer.workers`) under a memory limit, and the child is killed and replaced when a file takes
too long.

    parent → child   length of a header, the header (JSON: language, file), length of the text, the text
    child → parent   length of a message, the ParsedFile as MessagePack
"""

from __future__ import annotations

import os
import resource
import select
import signal
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import IO

import msgspec

from crystalperf.indexer.records import Language, ParsedFile
from crystalperf.indexes.children import own_module

SECONDS_PER_FILE = 10.0
MEMORY_BYTES = 2 << 30
"""Address space of a child: five times the need of the largest accepted file."""

_LENGTH = struct.Struct(">Q")
_LOOK_AHEAD = 8
"""Queued files for each worker, so that workers do not idle while results are returned in order."""


_PARSED = msgspec.msgpack.Decoder(ParsedFile)
"""Created once, in one thread: msgspec has crashed when two threads inspected a dataclass for the first time."""


class _Request(msgspec.Struct):
    language: Language
    file: str


def parse_files(
    sources: Iterable[tuple[str, Language, bytes]], workers: int = 2, seconds_per_file: float = SECONDS_PER_FILE
) -> Iterator[ParsedFile]:
    """Parse (file, language, text) triples in `workers` processes; yields in the order of `sources`.

    If the parser of a file was killed or died, the result has no functions, and the reason is in `errors`.
    """
    local = threading.local()
    with ExitStack() as stack, ThreadPoolExecutor(workers) as pool:

        def parse(file: str, language: Language, text: bytes) -> ParsedFile:
            if not hasattr(local, "worker"):
                local.worker = stack.enter_context(_Worker())
            worker: _Worker = local.worker
            return worker.parse(file, language, text, seconds_per_file)

        waiting: deque[Future[ParsedFile]] = deque()
        try:
            for source in sources:
                waiting.append(pool.submit(parse, *source))
                if len(waiting) >= workers * _LOOK_AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for each in waiting:
                each.cancel()


class _Worker:
    """One child process, started on first use, and again after it was killed."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> _Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None

    def parse(self, file: str, language: Language, text: bytes, seconds: float) -> ParsedFile:
        if self.process is None:
            self.process = _start()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        header = msgspec.json.encode(_Request(language, file))
        try:
            self.process.stdin.write(b"".join((_LENGTH.pack(len(header)), header, _LENGTH.pack(len(text)), text)))
            self.process.stdin.flush()
            message = _read_before(self.process.stdout, time.monotonic() + seconds)
        except TimeoutError:
            self.stop()
            problem = f"not parsed within {seconds:.0f} s; left out"
            return ParsedFile(file, language, len(text), errors=(problem,))
        except (EOFError, OSError):
            self.stop()
            problem = "the parser crashed or ran out of memory; left out"
            return ParsedFile(file, language, len(text), errors=(problem,))
        return _PARSED.decode(message)


def _start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        own_module("crystalperf.indexer.workers"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is the parent's to handle
    )


def _read_before(stream: IO[bytes], deadline: float) -> bytes:
    """One message of the child.  Raises TimeoutError after the deadline, EOFError if the child has died."""
    (length,) = _LENGTH.unpack(_read_bytes(stream, _LENGTH.size, deadline))
    return _read_bytes(stream, length, deadline)


def _read_bytes(stream: IO[bytes], count: int, deadline: float) -> bytes:
    parts = []
    while count > 0:
        ready, _, _ = select.select([stream], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise TimeoutError
        part = os.read(stream.fileno(), count)
        if not part:
            raise EOFError
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _serve() -> None:
    from crystalperf.indexer.parse import parse_file

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
    # If the parent was killed, SIGALRM or the broken pipe ends this process.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    while len(length := stdin.read(_LENGTH.size)) == _LENGTH.size:
        request = msgspec.json.decode(stdin.read(_LENGTH.unpack(length)[0]), type=_Request)
        text = stdin.read(_LENGTH.unpack(stdin.read(_LENGTH.size))[0])
        signal.setitimer(signal.ITIMER_REAL, 3 * SECONDS_PER_FILE)
        try:
            parsed = parse_file(text, request.language, request.file)
        except (MemoryError, RecursionError, ValueError) as error:
            problem = f"the parser failed ({type(error).__name__}); left out"
            parsed = ParsedFile(request.file, request.language, len(text), errors=(problem,))
        signal.setitimer(signal.ITIMER_REAL, 0)
        message = msgspec.msgpack.encode(parsed)
        stdout.write(_LENGTH.pack(len(message)))
        stdout.write(message)
        stdout.flush()


if __name__ == "__main__":
    _serve()
