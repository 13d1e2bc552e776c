"""Parser of class files: supertypes, methods and the calls in their code.  Everything else is skipped.

    read(data).methods[3].calls      (line, Call(kind, owner, name, descriptor)) in the order of the code

It reads the constant pool, the method table, and from each method's code the invoke instructions, the lines, and
whether the method is an accessor (JVMS 4.4, 4.6, 4.7.3, 6.5).  A lambda or a method reference counts as a call of the
method that its bootstrap names.  A damaged or hostile file raises ClassFileError.  Memory is bounded by a multiple of
the file size, because shared names are decoded once.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from crystalperf.indexes.errors import BuildError

Kind = Literal["virtual", "special", "static", "interface", "lambda", "dynamic"]

MAGIC = 0xCAFEBABE
ABSTRACT, BRIDGE = 0x0400, 0x0040
"""Flags of methods."""

MAX_BYTES = 32 << 20
"""Maximum size of a class file; the JVM's limits make a larger one improbable."""

LONGEST_SHARED = 500
"""Maximum bytes of a text that is cached across class files, most of which name the same classes."""

_INVOKES: dict[int, Kind] = {182: "virtual", 183: "special", 184: "static", 185: "interface", 186: "dynamic"}
_LAMBDAS = frozenset(["java.lang.invoke.LambdaMetafactory"])


class ClassFileError(BuildError):
    """The bytes are not a valid class file; the text says what is wrong."""


@dataclass(frozen=True, slots=True)
class Call:
    """The target of an invoke instruction; `kind` is lambda for a method that a bootstrap passes on."""

    kind: Kind
    owner: str
    """Binary name with '.': java.util.Map$Entry; of an array its type: [I."""
    name: str
    descriptor: str


@dataclass(frozen=True, slots=True)
class Method:
    """A method; `first_line` is the smallest line of its code, 0 without lines."""

    name: str
    descriptor: str
    flags: int
    first_line: int
    calls: tuple[tuple[int, Call], ...]
    is_accessor: bool = False
    """Whether the code only returns a field or a constant, or sets a field."""
    handling: frozenset[int] = frozenset()
    """The positions in `calls` that only an exception handler makes; empty unless requested."""


@dataclass(frozen=True, slots=True)
class ClassFile:
    """A class with its supertypes and methods."""

    name: str
    super_name: str | None
    interfaces: tuple[str, ...]
    methods: tuple[Method, ...]
    lambdas: frozenset[tuple[str, str, str]] = frozenset()
    """Interface, name and descriptor of each method that a lambda or a method reference here implements."""


def read(data: bytes, handling: bool = False) -> ClassFile:
    """Read a class file; `handling` also finds the calls in exception handlers.  Raises ClassFileError."""
    if len(data) > MAX_BYTES:
        raise ClassFileError(f"a class file larger than {MAX_BYTES >> 20} MiB")
    try:
        return _Reader(data, handling).read()
    except (struct.error, IndexError) as error:
        raise ClassFileError(f"not a class file, or damaged ({type(error).__name__})") from error


# Bytes of the operands of each instruction; -1 for those of variable length (JVMS 6.5).
_OPERANDS = [0] * 256
for _opcode in (16, 18, 21, 22, 23, 24, 25, 54, 55, 56, 57, 58, 169, 188):
    _OPERANDS[_opcode] = 1
for _opcode in (17, 19, 20, 132, *range(153, 169), *range(178, 185), 187, 189, 192, 193, 198, 199):
    _OPERANDS[_opcode] = 2
_OPERANDS[197] = 3
for _opcode in (185, 186, 200, 201):
    _OPERANDS[_opcode] = 4
for _opcode in (170, 171, 196, *range(202, 256)):
    _OPERANDS[_opcode] = -1
_LENGTHS = bytes(each + 1 if each >= 0 else 0 for each in _OPERANDS)

_ACCESSOR = re.compile(
    rb"""
    (?: \x2A\xB4.. (?:\xC0..)?  | \xB2..              # this.field, which a generic class casts; Class.field
      | [\x01-\x0F] | \x10. | \x11.. | \x12. | [\x13\x14]..  # a constant
    ) [\xAC-\xB0]                                      # is returned,
    | (?: \x2A [\x1B\x1F\x23\x27\x2B] \xB5..        # or this.field = argument,
        | [\x1A\x1E\x22\x26\x2A] \xB3..            # Class.field = argument
    ) \xB1                                             # and nothing is
    """,
    re.DOTALL | re.VERBOSE,
)
"""Matches the code of a method that only reads or sets a field (JVMS 6.5)."""

_CONSTANTS = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
"""Bytes of a constant after its tag, except for texts."""


class _Reader:
    """The state of reading one class file; `at` is the offset of the next byte."""

    def __init__(self, data: bytes, handling: bool) -> None:
        self.data = data
        self.handling = handling
        self.at = 0
        self.constants: list[tuple[int, int]] = []
        """Of each constant its tag and the place of what follows; tag 0 for the second half of a long."""
        self.bootstraps: list[tuple[int, tuple[int, ...]]] = []
        # Cached by constant: a million calls may share a name of 65 KB.
        self.texts: dict[int, str] = {}
        self.names: dict[int, str] = {}
        self.calls: dict[tuple[int, int], Call] = {}
        self.lambdas: set[tuple[str, str, str]] = set()

    def read(self) -> ClassFile:
        if self.take(">I") != MAGIC:
            raise ClassFileError("not a class file: its magic number is missing")
        self.take(">I")  # version
        self._read_constants()
        self.u2()  # flags
        name, super_index = self.class_name(self.u2()), self.u2()
        super_name = self.class_name(super_index) if super_index else None
        interfaces = tuple(self.class_name(self.u2()) for _ in range(self.u2()))
        for _ in range(self.u2()):  # fields
            self.at += 6
            for _ in self.attributes():
                pass
        found = [self._method() for _ in range(self.u2())]
        for attribute, start, end in self.attributes():
            if attribute == "BootstrapMethods":
                self._read_bootstraps(start, end)
        methods = tuple(self._finished(*each) for each in found)
        return ClassFile(name, super_name, interfaces, methods, frozenset(self.lambdas))

    def _read_constants(self) -> None:
        count = self.u2()
        self.constants = [(0, 0)]
        while len(self.constants) < count:
            tag = self.data[self.at]
            self.constants.append((tag, self.at + 1))
            if tag == 1:
                self.at += 3 + self.u2_at(self.at + 1)
            else:
                size = _CONSTANTS.get(tag)
                if size is None:
                    raise ClassFileError(f"a constant of the unknown kind {tag}")
                self.at += 1 + size
                if tag in (5, 6):
                    self.constants.append((0, 0))

    def _method(self) -> tuple[int, str, str, int, int]:
        """Flags, name, descriptor, and start and end of the code, 0 without code."""
        flags, name, descriptor = self.u2(), self.text(self.u2()), self.text(self.u2())
        code = (0, 0)
        for attribute, start, end in self.attributes():
            if attribute == "Code":
                code = (start, end)
        return flags, name, descriptor, *code

    def _finished(self, flags: int, name: str, descriptor: str, start: int, end: int) -> Method:
        """The method with its calls; this needs the bootstraps of the class."""
        if not start:
            return Method(name, descriptor, flags, 0, ())
        size = struct.unpack_from(">I", self.data, start + 4)[0]
        code = start + 8
        if code + size > end:
            raise ClassFileError(f"the code of {name} is longer than its attribute")
        lines = self._lines(code + size, end)
        calls: list[tuple[int, Call]] = []
        asides = set()
        main = _main_way(self.data[code : code + size]) if self.handling and self.u2_at(code + size) else None
        line = position = 0
        for offset, opcode, constant in self._invokes(code, code + size):
            if main is not None and offset not in main:
                asides.add(len(calls))
            while position < len(lines) and lines[position][0] <= offset:
                line = lines[position][1]
                position += 1
            if (opcode, constant) not in self.calls:
                self.calls[opcode, constant] = self._call(opcode, constant)
            calls.append((line, self.calls[opcode, constant]))
        is_accessor = _ACCESSOR.fullmatch(self.data, code, code + size) is not None
        first_line = min((each for _, each in lines), default=0)
        return Method(name, descriptor, flags, first_line, tuple(calls), is_accessor, frozenset(asides))

    def _lines(self, at: int, end: int) -> list[tuple[int, int]]:
        """(offset, line) of a method's code, by offset; `at` is the start of its exception table."""
        self.at = at
        self.at = at + 2 + 8 * self.u2()
        lines: list[tuple[int, int]] = []
        for attribute, start, stop in self.attributes():
            if attribute == "LineNumberTable":
                numbers = struct.unpack_from(f">{2 * self.u2_at(start)}H", self.data[start + 2 : stop])
                lines += zip(numbers[::2], numbers[1::2], strict=True)
        if self.at > end:
            raise ClassFileError("attributes of a method's code reach beyond it")
        return sorted(lines)

    def _invokes(self, at: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Offset, opcode and constant of each invoke instruction."""
        data, lengths, first = self.data, _LENGTHS, at
        while at < end:
            opcode = data[at]
            length = lengths[opcode]
            if length:
                if 182 <= opcode <= 186:
                    yield at - first, opcode, data[at + 1] << 8 | data[at + 2]
                at += length
            elif opcode == 196:  # wide
                at += 6 if data[at + 1] == 132 else 4
            elif opcode in (170, 171):  # switches, aligned to a multiple of four
                table = at + 4 - (at - first) % 4
                if opcode == 170:
                    low, high = struct.unpack_from(">ii", data, table + 4)
                    count = 4 * (high - low + 1) + 12
                else:
                    count = 8 * struct.unpack_from(">i", data, table + 4)[0] + 8
                if not 8 <= count <= end - table:
                    raise ClassFileError("a switch that does not fit its method")
                at = table + count
            else:
                raise ClassFileError(f"the unknown instruction {opcode}")

    def _call(self, opcode: int, constant: int) -> Call:
        if opcode != 186:
            return Call(_INVOKES[opcode], *self.member(constant))
        tag, place = self.constants[constant]
        if tag != 18:
            raise ClassFileError("an invokedynamic without a call site")
        handle, arguments = self.bootstraps[self.u2_at(place)]
        owner, name, descriptor = self.handle(handle)
        if owner in _LAMBDAS and len(arguments) >= 2:
            self._note_lambda(self.u2_at(place + 2), arguments[0])
            return Call("lambda", *self.handle(arguments[1]))
        return Call("dynamic", owner, name, descriptor)

    def _note_lambda(self, site: int, erased: int) -> None:
        """Record the interface method that the lambda of a call site implements: interface, name and descriptor."""
        (tag, named), (kind, descriptor) = self.constants[site], self.constants[erased]
        if tag != 12 or kind != 16:
            raise ClassFileError("a lambda without a type")
        made = self.text(self.u2_at(named + 2)).rpartition(")")[2]
        interface = made.removeprefix("L").removesuffix(";").replace("/", ".")
        self.lambdas.add((interface, self.text(self.u2_at(named)), self.text(self.u2_at(descriptor))))

    def _read_bootstraps(self, at: int, end: int) -> None:
        self.at, self.bootstraps = at, []  # a class has one such table (JVMS 4.7.23)
        for _ in range(self.u2()):
            handle, count = self.u2(), self.u2()
            if self.at + 2 * count > end:
                raise ClassFileError("a table of bootstraps reaches beyond its end")
            self.bootstraps.append((handle, struct.unpack_from(f">{count}H", self.data, self.at)))
            self.at += 2 * count

    # Constants and plain values

    def handle(self, constant: int) -> tuple[str, str, str]:
        """The member of a method handle."""
        tag, place = self.constants[constant]
        if tag != 15:
            raise ClassFileError("an invalid method handle")
        return self.member(self.u2_at(place + 1))

    def member(self, constant: int) -> tuple[str, str, str]:
        """Owner, name and descriptor of a method or field."""
        tag, place = self.constants[constant]
        if tag not in (9, 10, 11):
            raise ClassFileError("a call whose target is not a method")
        tag, named = self.constants[self.u2_at(place + 2)]
        if tag != 12:
            raise ClassFileError("a method without name and type")
        return self.class_name(self.u2_at(place)), self.text(self.u2_at(named)), self.text(self.u2_at(named + 2))

    def class_name(self, constant: int) -> str:
        """The binary name of a class constant, with '.' between packages."""
        tag, place = self.constants[constant]
        if tag != 7:
            raise ClassFileError("an invalid class constant")
        named = self.u2_at(place)
        if named not in self.names:
            self.names[named] = self.text(named).replace("/", ".")
        return self.names[named]

    def text(self, constant: int) -> str:
        """A text constant; NUL and characters beyond 16 bits, which have a special encoding, become U+FFFD."""
        if constant not in self.texts:
            tag, place = self.constants[constant]
            if tag != 1:
                raise ClassFileError("an invalid text constant")
            data = self.data[place + 2 : place + 2 + self.u2_at(place)]
            self.texts[constant] = _shared(data) if len(data) <= LONGEST_SHARED else data.decode("utf-8", "replace")
        return self.texts[constant]

    def attributes(self) -> Iterator[tuple[str, int, int]]:
        """Name, start and end of each attribute here; `at` then is after the last one."""
        for _ in range(self.u2()):
            name = self.text(self.u2())
            size = self.take(">I")
            start, end = self.at, self.at + size
            if end > len(self.data):
                raise ClassFileError(f"the attribute {name[:40]} reaches beyond the file")
            yield name, start, end
            self.at = end

    def u2(self) -> int:
        value = self.u2_at(self.at)
        self.at += 2
        return value

    def u2_at(self, at: int) -> int:
        return self.data[at] << 8 | self.data[at + 1]

    def take(self, form: str) -> Any:
        value = struct.unpack_from(form, self.data, self.at)[0]
        self.at += struct.calcsize(form)
        return value


def _main_way(code: bytes) -> set[int]:
    """Offsets of the instructions that run without an exception: those reachable from the first one."""
    onward: dict[int, list[int]] = {}
    at = 0
    while at < len(code):
        opcode = code[at]
        size = _LENGTHS[opcode]
        to: list[int] = []
        if 153 <= opcode <= 168 or opcode in (198, 199):
            to = [at + struct.unpack_from(">h", code, at + 1)[0]]
        elif opcode in (200, 201):
            to = [at + struct.unpack_from(">i", code, at + 1)[0]]
        elif opcode == 196:  # wide
            size = 6 if code[at + 1] == 132 else 4
        elif opcode in (170, 171):
            table = at + 4 - at % 4
            if opcode == 170:
                low, high = struct.unpack_from(">ii", code, table + 4)
                count, first, step = high - low + 1, table + 12, 4
            else:
                count, first, step = struct.unpack_from(">i", code, table + 4)[0], table + 12, 8
            end = first + step * count - (0 if opcode == 170 else 4)
            if not table + 8 <= end <= len(code):
                raise ClassFileError("a switch that does not fit its method")
            to = [at + struct.unpack_from(">i", code, each)[0] for each in (table, *range(first, end, step))]
            size = end - at
        if not size:
            raise ClassFileError(f"the unknown instruction {opcode}")
        ends = opcode in (167, 169, 170, 171, 191, 200) or 172 <= opcode <= 177
        onward[at] = to if ends else [*to, at + size]
        at += size
    reached, waiting = set[int](), [0]
    while waiting:
        at = waiting.pop()
        if at in onward and at not in reached:
            reached.add(at)
            waiting += onward[at]
    return reached


@lru_cache(maxsize=65536)
def _shared(data: bytes) -> str:
    return data.decode("utf-8", "replace")
