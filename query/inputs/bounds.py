"""Bounds on what reading one input may cost: the only place that has them.

A compressed file of some kB may unpack to terabytes, and lines that are not JSON cost a hundred times more.
A reader stops at the first bound that an input reaches, keeps what it read, and names the bound.  Users raise bounds
with CRYSTALPERF_INPUT_BOUNDS, which all interfaces and their child processes read.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import fields, replace
from functools import lru_cache

from crystalperf.indexes.errors import InputError, SettingError
from crystalperf.indexes.frozen import frozen
from crystalperf.query.trace.records import Problems

VARIABLE = "CRYSTALPERF_INPUT_BOUNDS"
"""Environment variable with bounds: `ratio=1000,seconds=600`."""

ALWAYS_BYTES = 64 << 20
"""Unpacked bytes from which the ratio is a bound."""

PIECE_BYTES = 1 << 20
"""Bytes of a piece: blocks of some codecs unpack to 32 MiB, whose lines would all be in memory at once."""

_SECONDS_PER_BYTE = 4.0 / (1 << 20)
"""Of the stored file, in addition to `seconds`: a MiB unpacks to 60 MiB at most, which take a second."""

_WHOLE = 5.0
"""Elapsed time of a whole log in a fleet, relative to the CPU time of reading one."""

_BYTES_PER_MEMBER = 4 << 10
"""Unpacked bytes that allow a further member."""


MOST_VALUES = 1 << 22
"""Values of one JSON text: each takes some 100 bytes of memory, and a text of 64 MiB may have 20 million."""

_ALWAYS_DECODED_BYTES = 4 << 20


@frozen
class Bounds:
    """The bounds of one file."""

    gib: float = 64.0
    """Unpacked size, GiB."""
    ratio: float = 250.0
    """Unpacked bytes per stored byte; the logs and traces of the public collection reach 74."""
    seconds: float = 120.0
    """CPU time of this process, for a small file."""
    members: float = 10_000.0
    """Members, frames and blocks that are almost empty."""
    lines: float = 100_000.0
    """Lines or events that are not JSON, in a log or trace in which they are most."""


@lru_cache(maxsize=4)
def _stated(text: str) -> Bounds:
    found, known = Bounds(), [each.name for each in fields(Bounds)]
    for each in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = each.partition("=")
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        if name not in known or not number > 0:
            raise SettingError(f"{VARIABLE}: '{each[:60]}' is not one of {', '.join(known)} with a number above 0")
        found = replace(found, **{name: number})
    return found


def bounds() -> Bounds:
    """The bounds of this process.  Raises SettingError for invalid ones in the environment."""
    return _stated(os.environ.get(VARIABLE, ""))


def longest_s(stored_bytes: int) -> float:
    """The elapsed time that a process may take for one log of a fleet, of reading and analysing it."""
    return _WHOLE * (bounds().seconds + stored_bytes * _SECONDS_PER_BYTE)


class DamagedStream(Exception):
    """A compressed stream ends early or contradicts itself; the data before that point is valid."""


class BoundReached(DamagedStream):
    """An input reached a bound; the data before that point is valid.  `name` is the bound's."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__(f"{what}, which is more than the bound; raise it with {VARIABLE}={name}=NUMBER")
        self.name = name


class Meter:
    """The cost of reading one file so far.

    `stored_bytes` counts the bytes that were read of a member of a zip; `taken_bytes` are unpacked ones there.
    """

    def __init__(self, stored_bytes: Callable[[], int] | None = None) -> None:
        self._bounds = bounds()
        self._stored_bytes = stored_bytes
        self._begin_s = time.process_time()
        self.taken_bytes = self.given_bytes = self._members = 0

    def given(self, size: int) -> None:
        """Count unpacked bytes.  Raises BoundReached."""
        self.given_bytes += size
        stored = self.taken_bytes if self._stored_bytes is None else self._stored_bytes()
        bound = self._bounds
        if self.given_bytes > ALWAYS_BYTES and self.given_bytes > bound.ratio * stored:
            raise BoundReached("ratio", f"unpacks to {self.given_bytes / max(stored, 1):.0f} times its stored size")
        if self.given_bytes > bound.gib * (1 << 30):
            raise BoundReached("gib", f"unpacks to {self.given_bytes >> 30} GiB")
        self._check_time(stored)

    def member(self) -> None:
        """Count a member, frame or block.  Raises BoundReached."""
        self._members += 1
        if self._members > self._bounds.members + self.given_bytes // _BYTES_PER_MEMBER:
            raise BoundReached("members", f"has {self._members} members with {self.given_bytes} bytes")
        if self._members % 256 == 0:
            self._check_time(self.taken_bytes)

    def _check_time(self, stored: int) -> None:
        took_s = time.process_time() - self._begin_s
        if took_s > self._bounds.seconds + stored * _SECONDS_PER_BYTE:
            raise BoundReached("seconds", f"took {took_s:.0f} s of CPU time to this point")


def check_undecodable(count: int, lines: int, name: str, what: str = "lines") -> None:
    """Raise InputError if `count` of the first `lines` lines of a log cannot be decoded and that is too many."""
    if count > bounds().lines and 2 * count > lines:
        raise InputError(
            f"{name}: most of its first {lines} {what} are not JSON; if it is intact, raise {VARIABLE}=lines=NUMBER"
        )


def is_dense(text: bytes | str, most: int = MOST_VALUES) -> bool:
    """Whether a JSON text may have more than `most` values, so that it is not decoded; commas bound their number."""
    if len(text) <= _ALWAYS_DECODED_BYTES:
        return False
    return (text.count(",") if isinstance(text, str) else text.count(b",")) > most


def note(problems: Problems, error: DamagedStream, part: str, where: str) -> None:
    """Add the end of a stream before its end to the problems."""
    if isinstance(error, BoundReached):
        problems.add("input_bound", "error", part, where, f"reading stopped: the file {error}")
    else:
        problems.add("damaged_stream", "data loss", part, where, f"the stream {error}; the rest is missing")
