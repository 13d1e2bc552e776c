"""Reader of profiles of cProfile, as `pstats` stores them: calls and time by function, without stacks and times.

The files are in Python's `marshal` format, whose own reader is not safe for files of others.  This one knows only the
types that a profile has: a dictionary from (file, line, function) to (calls that are not recursive, calls, own time,
time with callees, callers), times in seconds.  https://docs.python.org/3/library/profile.html
"""

from __future__ import annotations

import math
import struct

from crystalperf.indexes.errors import InputError
from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.regex import regex
from crystalperf.query.recordings.whole import content
from crystalperf.query.trace.records import Problems

_BEGINNING = regex(rb"[\x7b\xfb][\x29\xa9]\x03[\x41\x5a\x61\x74\x75\x7a\xc1\xda\xe1\xf4\xf5\xfa]")
"""A dictionary whose first key is a tuple of three that begins with a text."""
_REFERENCED = 0x80
_MAX_DEPTH = 8
_MAX_LINE = 2**31 - 1


class _DamagedError(Exception):
    """The content ends early, or has a type that no profile has."""


Key = tuple[str, int, str]
"""File, line and name of a function."""


@frozen
class CallerTime:
    """The time of a function while another one, `key`, called it: its own, and with its callees."""

    key: Key
    own_ms: float
    total_ms: float


@frozen
class FunctionCalls:
    """A function's calls; `own_ms` is without its callees, `total_ms` with them.  Builtins have no file (`~`)."""

    file: str
    line: int
    function: str
    calls: int
    own_ms: float
    total_ms: float
    callers: tuple[CallerTime, ...] = ()

    @property
    def key(self) -> Key:
        return self.file, self.line, self.function


@frozen
class CallProfile:
    """The functions of one profile, that with the most own time first."""

    functions: tuple[FunctionCalls, ...]

    @property
    def total_ms(self) -> float:
        return sum(each.own_ms for each in self.functions)


def is_pstats(beginning: bytes) -> bool:
    """Whether a file with this beginning is a profile of cProfile."""
    return _BEGINNING.match(beginning) is not None


def read(path: str, problems: Problems) -> CallProfile:
    """The functions of a profile.  Raises InputError if it is damaged, or has no function."""
    try:
        value = _Reader(content(path, "a profile of cProfile", problems)).value()
        found = [_calls(key, counts) for key, counts in value.items()] if isinstance(value, dict) else []
    except (_DamagedError, struct.error, UnicodeDecodeError, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{path}: not a complete profile of cProfile ({error}); dump it again") from error
    if not found:
        raise InputError(f"{path}: a profile of cProfile without a function; profile while the job is busy")
    return CallProfile(tuple(sorted(found, key=lambda each: -each.own_ms)))


def _calls(key: object, counts: object) -> FunctionCalls:
    if not isinstance(counts, tuple) or len(counts) != 5:
        raise _DamagedError("an entry of unknown form")
    _, calls, own_s, total_s, callers = counts
    file, line, function = _key(key)
    own_ms, total_ms = _ms(own_s), _ms(total_s)
    called = callers.items() if isinstance(callers, dict) else ()
    by = [CallerTime(_key(each), _ms(times[2]), _ms(times[3])) for each, times in called if _is_measured(times)]
    return FunctionCalls(file, line, function, int(calls), own_ms, total_ms, tuple(by))


def _key(key: object) -> Key:
    if not isinstance(key, tuple) or len(key) != 3:
        raise _DamagedError("an entry of unknown form")
    file, line, function = key
    if not isinstance(file, str) or not isinstance(function, str):
        raise _DamagedError("an entry of unknown form")
    return file, line if isinstance(line, int) and 0 < line < _MAX_LINE else 0, function


def _is_measured(times: object) -> bool:
    """Whether a caller has times; the profiler in pure Python counts its calls only."""
    return isinstance(times, tuple) and len(times) == 4


def _ms(seconds: object) -> float:
    found = 1000.0 * float(seconds) if isinstance(seconds, int | float) else math.nan
    if not math.isfinite(found):
        raise _DamagedError("a time that is not a number")
    return max(found, 0.0)


class _Reader:
    """Reads the values of a marshalled profile."""

    def __init__(self, data: bytes) -> None:
        self._data, self._place = data, 0
        self._known: list[object] = []

    def value(self, depth: int = 0) -> object:
        if depth > _MAX_DEPTH:
            raise _DamagedError("values that are nested too deeply")
        code = self._bytes(1)[0]
        kind = code & ~_REFERENCED
        number = len(self._known) if code & _REFERENCED else -1
        if number >= 0:
            self._known.append(None)  # a container is numbered before its content
        found = self._plain(chr(kind), depth)
        if number >= 0:
            self._known[number] = found
        return found

    def _plain(self, kind: str, depth: int) -> object:
        match kind:
            case "N":
                return None
            case "i":
                return self._int()
            case "l":
                return self._long()
            case "g":
                return struct.unpack("<d", self._bytes(8))[0]
            case "z" | "Z":
                return self._bytes(self._bytes(1)[0]).decode("ascii")
            case "a" | "A" | "t" | "u":
                return self._bytes(self._int()).decode("utf-8", "surrogatepass")
            case ")":
                return self._tuple(depth)
            case "{":
                return self._dict(depth)
            case "r":
                number = self._int()
                if not 0 <= number < len(self._known):
                    raise _DamagedError("an unknown reference")
                return self._known[number]
        raise _DamagedError("a value of unknown type")

    def _tuple(self, depth: int) -> tuple[object, ...]:
        found = tuple([self.value(depth + 1) for _ in range(self._bytes(1)[0])])
        if any(isinstance(each, tuple) for each in found):  # references could repeat them without end
            raise _DamagedError("a value of unknown form")
        return found

    def _dict(self, depth: int) -> dict[object, object]:
        found: dict[object, object] = {}
        while self._data[self._place : self._place + 1] != b"0":
            key = self.value(depth + 1)
            found[key] = self.value(depth + 1)
        self._place += 1
        return found

    def _int(self) -> int:
        number: int = struct.unpack("<i", self._bytes(4))[0]
        return number

    def _long(self) -> int:
        size = self._int()
        digits = struct.unpack(f"<{min(abs(size), 16)}H", self._bytes(2 * min(abs(size), 16)))
        amount: int = sum(digit << (15 * place) for place, digit in enumerate(digits))
        return amount if size > 0 else -amount

    def _bytes(self, count: int) -> bytes:
        found = self._data[self._place : self._place + count]
        if count < 0 or len(found) < count:
            raise _DamagedError("it ends early")
        self._place += count
        return found
