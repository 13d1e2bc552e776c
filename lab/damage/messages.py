"""Damage to Protocol Buffers that keeps them valid messages: a nested field is removed, repeated or changed.

mutations.damaged() changes single bytes; here all lengths stay consistent, so that readers get past the first invalid
field.
"""

from __future__ import annotations

import struct
from random import Random

from crystalperf.query.trace.wire import BYTES, FIXED32, FIXED64, VARINT, DamagedMessageError, fields, varint

Field = tuple[int, int, int | bytes]
"""Its number, its wire type and its value: numbers as the wire has them, also those of fixed width."""

_WIDTHS = {FIXED64: 8, FIXED32: 4}
_NUMBERS = (0, 1, 127, 2**31, 2**32 - 1, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1)
_DOUBLES = (0.0, -1.0, 1e308, -1e300, float("nan"), float("inf"), float("-inf"))
_TEXTS = (b"", b"x", b"-1", b"NaN", b"\xff\xfe", b"\x00\x1b[31m", b"a" * 5000, b"../../x", b"</script>", b"1" * 400)
_DEEPEST = 8
_HEADER, _FOOTER = 12, 4
"""Of a record in a file of events: its length and what checks that, and what checks the content."""


def damaged_message(random: Random, data: bytes) -> tuple[bytes, str]:
    """A message with one field changed, possibly of a nested message; other bytes stay unchanged."""
    if (parts := records(data)) is not None and len(parts) > 1:
        place = random.randrange(len(parts))
        parts[place], how = damaged_message(random, parts[place])
        return b"".join(_record(each) for each in parts), how
    return _changed(random, data, _DEEPEST)


def records(data: bytes) -> list[bytes] | None:
    """The records of a file of events (TFRecord); None for another file."""
    found, place = [], 0
    while place < len(data):
        if place + _HEADER > len(data):
            return None
        size = int.from_bytes(data[place : place + 8], "little")
        end = place + _HEADER + size
        if end + _FOOTER > len(data):
            return None
        found.append(data[place + _HEADER : end])
        place = end + _FOOTER
    return found


def _record(content: bytes) -> bytes:
    # The checksums are left out: no reader checks them, and damage would break them anyway.
    return len(content).to_bytes(8, "little") + bytes(4) + content + bytes(4)


def _changed(random: Random, data: bytes, deeper: int) -> tuple[bytes, str]:
    message = parsed(data)
    if not message:
        return data, "nothing"
    # A rare field is as likely as a common one.
    wanted = random.choice(sorted({number for number, _, _ in message}))
    place = random.choice([place for place, (number, _, _) in enumerate(message) if number == wanted])
    number, wire, value = message[place]
    if deeper and isinstance(value, bytes) and random.random() < 0.85 and parsed(value):
        # A text that happens to be a message does no harm.
        inner, how = _changed(random, value, deeper - 1)
        message[place] = (number, wire, inner)
        return encoded(message), how
    kind = random.choice(("gone", "all gone", "twice", "other value", "other value", "other number", "nested", "moved"))
    if kind == "gone":
        del message[place]
    elif kind == "all gone":
        message = [each for each in message if each[0] != number]
    elif kind == "twice":
        message[place:place] = [message[place]] * random.choice((1, 1, 200))
    elif kind == "other value":
        message[place] = _other(random, number, wire)
    elif kind == "other number":
        message[place] = (random.choice((1, 2, 3, 4, 5, 15, 2**29 - 1)), wire, value)
    elif kind == "nested":
        deep = b""
        for _ in range(random.choice((10, 1000))):
            deep = encoded([(number, BYTES, deep)])
        message[place] = (number, BYTES, deep)
    else:
        message.insert(random.randrange(len(message)), message.pop(place))
    return encoded(message), kind


def _other(random: Random, number: int, wire: int) -> Field:
    if random.random() < 0.15:
        wire = random.choice((VARINT, FIXED64, BYTES, FIXED32))
    if wire == VARINT:
        return number, wire, random.choice(_NUMBERS)
    if wire == FIXED64:
        return number, wire, int.from_bytes(struct.pack("<d", random.choice(_DOUBLES)), "little")
    if wire == FIXED32:
        return number, wire, random.getrandbits(32)
    return number, wire, random.choice(_TEXTS)


def parsed(data: bytes) -> list[Field] | None:
    """The fields of a message in order; None if it is not a message."""
    try:
        return [
            (number, wire, value if isinstance(value, int) else bytes(value)) for number, wire, value in fields(data)
        ]
    except DamagedMessageError:
        return None


def encoded(message: list[Field]) -> bytes:
    """A message of fields."""
    found = bytearray()
    for number, wire, value in message:
        found += varint(number << 3 | wire)
        if isinstance(value, bytes):
            found += varint(len(value)) + value
        else:
            found += value.to_bytes(_WIDTHS[wire], "little") if wire in _WIDTHS else varint(value)
    return bytes(found)
