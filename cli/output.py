"""Output: answers to stdout, messages and progress to stderr.

An answer is complete before its first character is written, so that stdout stays empty on failure.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

if TYPE_CHECKING:
    from crystalperf.query.text.as_json import Answer

PROGRESS_AFTER_S = 0.5
"""Shorter work shows no progress."""

PROGRESS_EVERY_S = 1.0
"""Interval at which the time of a long step is updated."""


def write(text: str) -> None:
    """Write an answer, or a part of one, to stdout.

    If the reader closes the pipe (`| head -1`), the command ends without an error.  Raises CrystalPerfError if stdout
    is not writable, for example on a full disk.
    """
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        silence(sys.stdout)
        raise SystemExit(0) from None
    except OSError as error:
        silence(sys.stdout)
        cannot_write(error)


def write_json(answer: Any) -> None:
    """Write an answer as JSON, in ASCII because it may contain untrusted names and go to a terminal."""
    write(json_text(answer))


def json_text(answer: Any) -> str:
    """An answer as write_json() writes it."""
    return json.dumps(answer, indent=2, allow_nan=False) + "\n"


def write_answer(answer: Answer) -> None:
    """Write an answer about a run as the JSON that all interfaces share."""
    write(answer_text(answer))


def answer_text(answer: Answer) -> str:
    """An answer as write_answer() writes it."""
    from crystalperf.query.text.as_json import as_json

    return json_text(as_json(answer))


def print_message(message: str) -> None:
    """Print one line on stderr."""
    from crystalperf.cli.text import printable  # not at the top: a help text needs this module, but no words

    with suppress(OSError):
        print(printable(message), file=sys.stderr, flush=True)


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Yields a function to call with the name of each step; a terminal shows the current step in one line."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield lambda _step: None
        return
    line = _Line(sys.stderr)
    try:
        yield line.step
    finally:
        line.clear()


class _Line:
    """The progress line on a terminal: the current step and the total time so far."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._begin = time.monotonic()
        self._lock = threading.Lock()
        self._step = ""
        self._visible = False
        self._over = threading.Event()
        # A long step must show up even if no other step follows.
        threading.Thread(target=self._tick, daemon=True).start()

    def step(self, text: str) -> None:
        self._step = text
        if time.monotonic() - self._begin >= PROGRESS_AFTER_S:
            self._show()

    def clear(self) -> None:
        with self._lock:
            self._over.set()
            if self._visible:
                self._put("")

    def _tick(self) -> None:
        wait_s = PROGRESS_AFTER_S
        while not self._over.wait(wait_s):
            self._show()
            wait_s = PROGRESS_EVERY_S

    def _show(self) -> None:
        from crystalperf.cli.text import cut_right, printable

        with self._lock:
            if self._step and not self._over.is_set():
                self._visible = True
                self._put(f"{time.monotonic() - self._begin:5.1f} s  {cut_right(printable(self._step), 68)}")

    def _put(self, text: str) -> None:
        with suppress(OSError):
            self._stream.write("\r\x1b[K" + text)
            self._stream.flush()


def silence(stream: TextIO) -> None:
    # Python flushes stdout again at exit, and would print an error.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError, ValueError):
        os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def cannot_write(error: OSError) -> NoReturn:
    from crystalperf.indexes.errors import CrystalPerfError

    raise CrystalPerfError(
        f"standard output: cannot be written ({error.strerror or error}); free disk space, or redirect it elsewhere"
    ) from error
