"""Parses a chunk's type descriptions into the byte layout of each type.

The metadata event is a tree of named elements with string attributes. Nothing about the layout of events or
pools is assumed: recorders differ in the order and the number of fields.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from crystalperf.indexes.frozen import frozen

from .varint import Truncated, read_varint, varint_stream

MAX_DEPTH = 12
MAX_LEAVES = 5000  # visited fields of one type; nested types could multiply without limit
MAX_ELEMENTS = 2_000_000  # of a metadata event; real ones have some ten thousand

INT_BITS = {"char": 16, "short": 16, "int": 32, "long": 64}


@frozen
class Leaf:
    """One value in the bytes of a type.

    code: "v" integer (`bits` wide), "b" single byte, "f" float, "d" double, "s" string, "a" array of `items`.
    ref: id of the type whose pool an integer points into, or 0. task: of a time or a time span.
    """

    path: str
    code: str
    bits: int = 64
    ref: int = 0
    unit: str = ""
    items: tuple[Leaf, ...] = ()


Layout = tuple[Leaf, ...]


class Field(NamedTuple):
    name: str
    type_id: int
    in_pool: bool
    is_array: bool
    unit: str


@dataclass
class Type:
    id: int
    name: str
    fields: list[Field] = field(default_factory=list)


class Types:
    """All types of a chunk by id, and their layouts."""

    def __init__(self, types: dict[int, Type]) -> None:
        self.by_id = types
        self._layouts: dict[int, Layout | None] = {}
        self._visits = 0

    def name(self, type_id: int) -> str:
        known = self.by_id.get(type_id)
        return known.name if known else f"type {type_id}"

    def ids(self, name: str) -> list[int]:
        return [t.id for t in self.by_id.values() if t.name == name]

    def event_ids(self) -> set[int]:
        """Types that identify events in a damaged chunk: all with a time, metadata and pools."""
        timed = {t.id for t in self.by_id.values() if any(each.name == "startTime" for each in t.fields)}
        return timed | {0, 1}

    def layout(self, type_id: int) -> Layout | None:
        """The leaves of a type in byte order, or None if the type is unknown or nests without limit."""
        if type_id not in self._layouts:
            leaves: list[Leaf] = []
            self._visits = 0
            whole = type_id in self.by_id and self._flatten(self.by_id[type_id], "", 0, leaves)
            self._layouts[type_id] = tuple(leaves) if whole else None
        return self._layouts[type_id]

    def _flatten(self, of: Type, prefix: str, depth: int, leaves: list[Leaf]) -> bool:
        self._visits += 1 + len(of.fields)
        if depth > MAX_DEPTH or self._visits > MAX_LEAVES:
            return False
        if not of.fields:
            primitive = _primitive(of.name, prefix, "")
            if primitive:
                leaves.append(primitive)
            return True
        for each in of.fields:
            path = f"{prefix}.{each.name}" if prefix else each.name
            items = leaves if not each.is_array else []
            known = self.by_id.get(each.type_id)
            if each.in_pool:
                items.append(Leaf(path, "v", 64, each.type_id))
            elif known is None:
                return False
            else:
                primitive = _primitive(known.name, path, each.unit)
                if primitive:
                    items.append(primitive)
                elif not self._flatten(known, path, depth + 1, items):
                    return False
            if each.is_array:
                leaves.append(Leaf(path, "a", items=tuple(items)))
        return True


def _primitive(type_name: str, path: str, unit: str) -> Leaf | None:
    if type_name in INT_BITS:
        return Leaf(path, "v", INT_BITS[type_name], 0, unit)
    if type_name in ("boolean", "byte"):
        return Leaf(path, "b", 1 if type_name == "boolean" else 8)
    if type_name in ("float", "double"):
        return Leaf(path, type_name[0])
    return Leaf(path, "s") if type_name == "java.lang.String" else None


def read_string(buf: memoryview | bytes, pos: int, end: int) -> tuple[str | int | None, int]:
    """A string at `pos`: text, None, or the key of an entry in the pool of strings."""
    if pos >= end:
        raise Truncated
    code = buf[pos]
    pos += 1
    if code == 0:
        return None, pos
    if code == 1:
        return "", pos
    if code == 2:
        return read_varint(buf, pos, end)
    if pos < end and buf[pos] < 128:
        length, pos = buf[pos], pos + 1
    else:
        length, pos = read_varint(buf, pos, end)
    if length < 0 or length > end - pos or code > 5:
        raise Truncated
    if code == 4 and (plain := bytes(buf[pos : pos + length])).isascii():  # then each unit is a byte
        return plain.decode("ascii"), pos + length
    if code == 4:
        units = bytearray()
        for _ in range(length):
            unit, pos = read_varint(buf, pos, end)
            units += (unit & 0xFFFF).to_bytes(2, "little")
        return units.decode("utf-16-le", "replace"), pos
    text = str(buf[pos : pos + length], "utf-8" if code == 3 else "latin-1", "replace")
    return text, pos + length


@dataclass
class _Element:
    name: str
    attributes: dict[str, str]
    children: list[_Element] = field(default_factory=list)


def read_types(buf: memoryview, pos: int, end: int) -> Types:
    """The types in the metadata event with its body (behind size and type) at `pos`. Raises Truncated."""
    for _ in range(3):  # start, duration, id of the metadata
        _, pos = read_varint(buf, pos, end)
    return _types(bytes(buf[pos:end]))  # slices of bytes take half the time


@lru_cache(maxsize=2)
def _types(body: bytes) -> Types:
    """The types in a metadata event from its strings on: all chunks of a JVM have the same."""
    count, at = read_varint(body, 0, len(body))
    if not 0 <= count <= min(len(body) - at, MAX_ELEMENTS):
        raise Truncated
    strings: list[str] = []
    for _ in range(count):
        text, at = read_string(body, at, len(body))
        strings.append(text if isinstance(text, str) else "")
    root = _read_tree(varint_stream(np.frombuffer(body, np.uint8, offset=at))[0].tolist(), strings)
    types: dict[int, Type] = {}
    annotations: dict[int, str] = {}
    elements = [e for top in root.children if top.name == "metadata" for e in top.children if e.name == "class"]
    for element in elements:
        type_id = _int(element.attributes.get("id"))
        annotations[type_id] = element.attributes.get("name", "")
    for element in elements:
        type_id = _int(element.attributes.get("id"))
        fields = [_field(child, annotations) for child in element.children if child.name == "field"]
        types[type_id] = Type(type_id, element.attributes.get("name", ""), fields)
    if not types:
        raise Truncated
    return Types(types)


def _read_tree(values: list[int], strings: list[str]) -> _Element:
    """The tree of elements from the integers: for each element its name, attributes and number of children."""
    root: _Element | None = None
    open_elements: list[tuple[_Element, int]] = []  # with the number of children still to come
    total, at = 0, 0
    while root is None or open_elements:
        if at + 2 > len(values):
            raise Truncated
        name, count = values[at : at + 2]
        total += 1 + count
        first, at = at + 2, at + 2 + 2 * count
        if not 0 <= name < len(strings) or count < 0 or at >= len(values) or total > MAX_ELEMENTS:
            raise Truncated
        named = values[first:at]
        if named and (min(named) < 0 or max(named) >= len(strings)):
            raise Truncated
        attributes = {strings[key]: strings[value] for key, value in zip(named[::2], named[1::2], strict=True)}
        children = values[at]
        at += 1
        if not 0 <= children <= len(values) - at:
            raise Truncated
        element = _Element(strings[name], attributes)
        if open_elements:
            parent, left = open_elements[-1]
            parent.children.append(element)
            open_elements[-1] = (parent, left - 1)
        else:
            root = element
        open_elements.append((element, children))
        while open_elements and open_elements[-1][1] == 0:
            open_elements.pop()
    return root


def _field(element: _Element, annotations: dict[int, str]) -> Field:
    unit = ""
    for child in element.children:
        annotation = annotations.get(_int(child.attributes.get("class")), "") if child.name == "annotation" else ""
        if annotation in ("jdk.jfr.Timespan", "jdk.jfr.Timestamp"):
            unit = child.attributes.get("value", "")
    return Field(
        element.attributes.get("name", ""),
        _int(element.attributes.get("class")),
        element.attributes.get("constantPool") == "true",
        element.attributes.get("dimension", "0") not in ("", "0"),
        unit,
    )


@lru_cache(maxsize=10_000)
def _int(text: str | None) -> int:
    # Ids are written as signed or unsigned 64-bit decimals; events carry them as signed.
    try:
        value = int(text or "0") if len(text or "") < 24 else 0
    except ValueError:
        return 0
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)
