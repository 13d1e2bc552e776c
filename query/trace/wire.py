"""Protocol Buffers without their library: reads and writes the fields of a message by number.

It covers only what traces and profiles use: numbers, doubles, text and messages.  A damaged field ends its message; the
fields before it remain valid.  https://protobuf.dev/programming-guides/encoding
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class DamagedMessageError(Exception):
    """A message ends within a field, or is invalid."""


def fields(message: bytes | memoryview) -> Iterator[tuple[int, int, int | memoryview]]:
    """(number, wire type, value) of each field in order.  Raises DamagedMessageError."""
    view = memoryview(message)
    place, end = 0, len(view)
    while place < end:
        key, place = _varint(view, place)
        wire, number = key & 7, key >> 3
        if number == 0:
            raise DamagedMessageError("a field has the number 0")
        if wire == VARINT:
            value, place = _varint(view, place)
            yield number, wire, value
        elif wire == BYTES:
            length, place = _varint(view, place)
            if place + length > end:
                raise DamagedMessageError("a field is longer than its message")
            yield number, wire, view[place : place + length]
            place += length
        elif wire in (FIXED64, FIXED32):
            width = 8 if wire == FIXED64 else 4
            if place + width > end:
                raise DamagedMessageError("a number is longer than its message")
            yield number, wire, int.from_bytes(view[place : place + width], "little")
            place += width
        else:
            raise DamagedMessageError(f"a field is of wire type {wire}")


_REPLACED = "\ufffd".encode()


def why_damaged(message: bytes, error: DamagedMessageError) -> str:
    """Why a message is damaged: the error, or that a transfer as text replaced bytes."""
    if message.count(_REPLACED) > len(message) / 100:
        return "its bytes were replaced by a transfer as text; copy it again as a binary file"
    return str(error)


def _varint(view: memoryview, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if place >= len(view) or shift > 63:
            raise DamagedMessageError("a number does not end")
        byte = view[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7


def signed(value: int | memoryview) -> int:
    """The signed number of an int32 or int64 field.  Raises DamagedMessageError for text."""
    if not isinstance(value, int):
        raise DamagedMessageError("a number is stored as text")
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def double(value: int | memoryview) -> float:
    """A double from its bits.  Raises DamagedMessageError for text."""
    if not isinstance(value, int):
        raise DamagedMessageError("a number is stored as text")
    found: float = struct.unpack("<d", value.to_bytes(8, "little"))[0]
    return found


def text(value: int | memoryview) -> str:
    """Text; invalid bytes are replaced."""
    return "" if isinstance(value, int) else bytes(value).decode("utf-8", "replace")


def all_of(message: bytes | memoryview) -> dict[int, list[int | memoryview]]:
    """The values of a message's fields by number.  Raises DamagedMessageError."""
    found: dict[int, list[int | memoryview]] = {}
    for number, _, value in fields(message):
        found.setdefault(number, []).append(value)
    return found


def last_number(found: dict[int, list[int | memoryview]], number: int) -> int:
    """The last value of a field of numbers, which is the valid one; 0 if absent."""
    values = found.get(number)
    return 0 if not values or not isinstance(values[-1], int) else signed(values[-1])


def last_text(found: dict[int, list[int | memoryview]], number: int) -> str:
    """The last value of a field of text; '' if absent."""
    values = found.get(number)
    return text(values[-1]) if values else ""


def messages(message: bytes | memoryview, number: int) -> Iterator[memoryview]:
    """The messages of one repeated field.  Raises DamagedMessageError."""
    for found, wire, value in fields(message):
        if found == number and wire == BYTES and not isinstance(value, int):
            yield value


def numbers(message: memoryview | int) -> Iterator[int]:
    """The numbers of one value of a repeated field: one number, or several packed ones.  Raises DamagedMessageError."""
    if isinstance(message, int):
        yield message
        return
    place = 0
    while place < len(message):
        value, place = _varint(message, place)
        yield value


# Writing ----------------------------------------------------------------------------------------------------------


def varint(value: int) -> bytes:
    """A number as a varint; a negative one as its two's complement of 64 bits."""
    if 0 <= value < 0x80:
        return _ONE_BYTE[value]
    value &= (1 << 64) - 1
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


_ONE_BYTE = [bytes([value]) for value in range(0x80)]


def number_field(number: int, value: int) -> bytes:
    """A field of an integer, a truth value or an enumeration."""
    return varint(number << 3 | VARINT) + varint(value)


def bytes_field(number: int, value: bytes) -> bytes:
    """A field of bytes or of a message."""
    return varint(number << 3 | BYTES) + varint(len(value)) + value


def text_field(number: int, value: str) -> bytes:
    """A field of text; lone surrogates are replaced."""
    return bytes_field(number, value.encode("utf-8", "replace"))


def double_field(number: int, value: float) -> bytes:
    """A field of a double."""
    return varint(number << 3 | FIXED64) + struct.pack("<d", value)


def fixed64_field(number: int, value: int) -> bytes:
    """A field of a fixed64."""
    return varint(number << 3 | FIXED64) + struct.pack("<Q", value)


def packed_field(number: int, values: Iterable[int]) -> bytes:
    """A repeated field of integers, packed."""
    return bytes_field(number, b"".join(map(varint, values)))
