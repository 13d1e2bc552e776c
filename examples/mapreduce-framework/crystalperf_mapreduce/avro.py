"""Decodes values of Avro's binary format, by their schema: Hadoop 3 writes histories in it.

Numbers are zigzag varints, the least significant seven bits first; strings have their length before them; arrays and
maps are blocks with their count before them, up to a block of 0 values; a union has the number of its type before the
value.  Source: Apache Avro's specification, section Binary encoding.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

_FLOATS = {"float": ("<f", 4), "double": ("<d", 8)}


class Decoder:
    """The values of bytes; `at` is the place of the next one.  Raises IndexError at their end."""

    def __init__(self, schema: Any, content: bytes) -> None:
        self.schema, self.content, self.at = schema, content, 0
        self._named: dict[str, Any] = dict(_named(schema))

    def values(self) -> Iterator[Any]:
        """All values of the schema."""
        while self.at < len(self.content):
            yield self._value(self.schema)

    def _value(self, schema: Any) -> Any:
        if isinstance(schema, list):
            return self._value(schema[self._whole()])
        kind = schema["type"] if isinstance(schema, dict) else schema
        if kind == "record":
            return {each["name"]: self._value(each["type"]) for each in schema["fields"]}
        if kind == "enum":
            return schema["symbols"][self._whole()]
        if kind == "array":
            return [self._value(schema["items"]) for _ in self._items()]
        if kind == "map":
            return {self._value("string"): self._value(schema["values"]) for _ in self._items()}
        return self._value(self._named[kind]) if kind in self._named else self._simple(kind)

    def _simple(self, kind: str) -> Any:
        if kind == "null":
            return None
        if kind in ("int", "long"):
            return self._whole()
        if kind == "boolean":
            return self._take(1) != b"\0"
        if kind in _FLOATS:
            layout, size = _FLOATS[kind]
            return struct.unpack(layout, self._take(size))[0]
        if kind in ("string", "bytes"):
            return self._take(self._whole()).decode("utf-8", errors="replace")
        raise ValueError(f"{kind} is not a type of Avro")

    def _items(self) -> Iterator[None]:
        while count := self._whole():
            if count < 0:  # the size of the block in bytes follows
                self._whole()
            for _ in range(abs(count)):
                yield None

    def _whole(self) -> int:
        value = shift = 0
        while True:
            byte = self.content[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)

    def _take(self, size: int) -> bytes:
        if size < 0 or self.at + size > len(self.content):
            raise IndexError(f"a value of {size} bytes goes beyond the end")
        self.at += size
        return self.content[self.at - size : self.at]


def _named(schema: Any) -> Iterator[tuple[str, Any]]:
    """The records and enums that a schema defines, by name; other parts of it may refer to them."""
    if isinstance(schema, list):
        for each in schema:
            yield from _named(each)
    elif isinstance(schema, dict):
        if schema.get("type") in ("record", "enum"):
            yield schema["name"], schema
        for each in schema.get("fields", ()):
            yield from _named(each["type"])
        yield from _named([schema[key] for key in ("type", "items", "values") if key in schema])
