"""Typed resolution of Python calls, from the facts of all files (indexer.pyfacts).

    linked = Linked.of(facts)                               the facts of all files of a source
    found = python_calls(linked, functions)                 as typed_calls() for class files

It uses imports, `self`, annotations of parameters, assignments to local names, attributes and names of modules, and
annotated or observed return values.  A method call resolves to the method of the class or of the first base that has
one, and to overrides in subclasses.  Functions outside the index are known by module and name.
"""

from __future__ import annotations

import builtins
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

from crystalperf.indexer.pyfacts import CALLED, ENTERED, SUPER, UNKNOWN, PyCall, PyFacts, PyFunction, Steps
from crystalperf.indexer.records import Function
from crystalperf.indexer.typed import MAX_TARGETS, Meaning

Kind = Literal["module", "class", "instance", "function", "outside", "outside instance", "unknown"]

_MEMBER = "member"
"""Value of `of`: a member of an instance of an outside class, about which nothing else is known."""

_DEPTH = 40
"""Maximum depth of aliases and of functions that return results of functions."""

_RESULTS: Mapping[str, str] = {
    "builtins.open": "io.IOBase", "io.open": "io.IOBase", "os.fdopen": "io.IOBase", "gzip.open": "gzip.GzipFile",
    "logging.getLogger": "logging.Logger", "re.compile": "re.Pattern", "os.getcwd": "builtins.str",
    "time.time": "builtins.float", "builtins.len": "builtins.int", "builtins.sorted": "builtins.list",
    "builtins.repr": "builtins.str", "builtins.iter": "collections.abc.Iterator", "builtins.abs": "builtins.float",
    "socket.create_connection": "socket.socket", "threading.current_thread": "threading.Thread",
    "os.environ.get": "builtins.str", "os.path.join": "builtins.str", "os.path.dirname": "builtins.str",
    "os.path.basename": "builtins.str", "os.path.abspath": "builtins.str", "os.path.realpath": "builtins.str",
    "urllib.request.urlopen": "http.client.HTTPResponse", "threading.Lock": "threading.Lock",
    "builtins.str.split": "builtins.list", "builtins.str.rsplit": "builtins.list",
    "builtins.dict.copy": "builtins.dict",
    "builtins.str.splitlines": "builtins.list", "builtins.str.encode": "builtins.bytes",
    "time.perf_counter": "builtins.float",
    "builtins.bytes.decode": "builtins.str", "builtins.list.copy": "builtins.list", "builtins.str.find": "builtins.int",
    "builtins.dict.keys": "collections.abc.KeysView", "builtins.dict.items": "collections.abc.ItemsView",
    "builtins.dict.values": "collections.abc.ValuesView",
} | {
    f"builtins.{kind}.{name}": f"builtins.{kind}"
    for kind in ("str", "bytes")
    for name in ("capitalize", "format", "join", "ljust", "lower", "lstrip", "replace", "rjust", "rstrip", "strip",
                 "title", "upper", "zfill")
} | {
    name: name
    for name in ("_socket.socket", "array.array", "collections.defaultdict", "collections.deque", "datetime.date",
                 "datetime.datetime", "datetime.timedelta", "functools.partial", "itertools.chain", "itertools.count",
                 "mmap.mmap", "numpy.dtype", "numpy.ndarray", "socket.socket", "threading.local")
}  # fmt: skip
"""Return types of common functions outside an index, and common classes with lower-case names."""

_CLASSES: Mapping[str, str] = {"collections.namedtuple": "builtins.tuple"}
"""Functions that return a class, with that class."""


class Value(NamedTuple):
    """The value of a path: a qualified name, or the reason why it is unknown; `of` is the class of a method."""

    kind: Kind
    name: str
    of: str = ""


def _unknown(reason: str) -> Value:
    return Value("unknown", reason)


@dataclass
class Linked:
    """All files of a source by qualified names."""

    modules: dict[str, PyFacts] = field(default_factory=dict)
    functions: dict[str, PyFunction] = field(default_factory=dict)
    classes: dict[str, tuple[Steps, ...]] = field(default_factory=dict)
    values: dict[str, Steps] = field(default_factory=dict)
    _found: dict[Steps, Value] = field(default_factory=dict)
    _orders: dict[str, tuple[Value, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, files: Iterable[PyFacts]) -> Linked:
        """The merged facts of files; of two files of one module the first counts."""
        linked = cls()
        for each in files:
            if each.module not in linked.modules:
                linked.modules[each.module] = each
                linked.functions.update(each.functions)
                linked.classes.update(each.classes)
                linked.values.update(each.values)
        return linked

    @cached_property
    def _packages(self) -> frozenset[str]:
        """All modules and their parent packages."""
        found: set[str] = set()
        for each in self.modules:
            while each and each not in found:
                found.add(each)
                each = each.rpartition(".")[0]
        return frozenset(found)

    @cached_property
    def _folders(self) -> frozenset[str]:
        """Packages that have modules."""
        return frozenset(each.rpartition(".")[0] for each in self._packages)

    @cached_property
    def subclasses(self) -> Mapping[str, list[str]]:
        """Classes that extend a class directly."""
        found: dict[str, list[str]] = defaultdict(list)
        for name, bases in self.classes.items():
            for base in bases:
                value = self.value(base)
                if value.kind == "class":
                    found[value.name].append(name)
        return found

    def value(self, path: Steps, depth: int = 0) -> Value:
        """The value of a path."""
        if path[0] == UNKNOWN:
            return _unknown(path[1])
        if path not in self._found:
            if depth > _DEPTH:
                return _unknown("a name that leads too far")
            self._found[path] = _unknown("a name that refers to itself")
            if len(path) == 1:
                known = path[0] in self._packages
                self._found[path] = Value("module" if known else "outside", path[0])
            else:
                before = self.value(path[:-1], depth + 1)
                self._found[path] = self._step(before, path[-1], depth + 1)
        return self._found[path]

    def _step(self, before: Value, step: str, depth: int) -> Value:
        if before.kind == "unknown":
            return before
        if step == CALLED:
            return self._result(before, depth)
        if step == SUPER:
            return Value("instance", before.name, SUPER) if before.kind == "class" else _unknown("super")
        if step == ENTERED:
            return self._entered(before, depth)
        if before.kind == "module":
            return self._of_module(before.name, step, depth)
        if before.kind == "class":
            return self._member(before, step, depth, instance=False)
        if before.kind == "instance":
            return self._member(before, step, depth, instance=True)
        if before.kind in ("outside", "outside instance"):
            if before.of or (before.kind == "outside instance" and not _may_have(before.name, step)):
                return _unknown("an attribute of what is outside")
            return Value("outside", f"{before.name}.{step}", "" if before.kind == "outside" else _MEMBER)
        within = f"{before.name}.{step}"
        if within in self.classes:
            return Value("class", within)
        return Value("function", within) if within in self.functions else _unknown("an attribute of a function")

    def _of_module(self, module: str, name: str, depth: int) -> Value:
        full = f"{module}.{name}"
        if full in self.classes:
            return Value("class", full)
        if full in self.functions:
            return Value("function", full)
        if full in self.values:
            return self.value(self.values[full], depth + 1)
        if full in self._packages:
            return Value("module", full)
        facts = self.modules.get(module)
        for star in facts.stars if facts else ():
            found = self.value((*star, name), depth + 1)
            if found.kind != "unknown":
                return found
        # A package shows its modules, except compiled ones; protoc's modules define their names at run time.
        if module in self._folders or module.endswith("_pb2"):
            return Value("outside", full)
        return _unknown("a name that its module does not show")

    def order(self, name: str, depth: int = 0) -> tuple[Value, ...]:
        """A class and its superclasses, nearest first: classes of the index, and others as values."""
        if name not in self._orders:
            self._orders[name] = (Value("class", name),)
            found = [Value("class", name)]
            for base in self.classes.get(name, ()):
                value = self.value(base, depth + 1)
                found += self.order(value.name, depth + 1) if value.kind == "class" and depth < _DEPTH else (value,)
            self._orders[name] = tuple(dict.fromkeys(found))
        return self._orders[name]

    def member(self, before: Value, name: str) -> Value:
        """An attribute of an instance."""
        return self._member(before, name, 0, instance=True)

    def _member(self, before: Value, name: str, depth: int, *, instance: bool) -> Value:
        above = _unknown("an attribute that its class does not show")
        order = self.order(before.name, depth)
        for each in order[1:] if before.of == SUPER else order:
            if each.kind == "class":
                full = f"{each.name}.{name}"
                if full in self.functions:
                    function = self.functions[full]
                    if function.is_property and instance:
                        return self.value(function.returns, depth + 1)
                    return Value("function", full, before.name if before.of != SUPER else "")
                if full in self.classes:
                    return Value("class", full)
                if full in self.values:
                    return self.value(self.values[full], depth + 1)
            elif each.kind == "outside":
                if above.kind == "unknown" and _may_have(each.name, name):
                    above = Value("outside", f"{each.name}.{name}", _MEMBER)
            else:
                return _unknown("a member of a class whose base is not known")
        if above.kind == "unknown" and hasattr(object, name):
            return Value("outside", f"builtins.object.{name}", _MEMBER)
        return above

    def _result(self, before: Value, depth: int) -> Value:
        if before.kind == "class":
            return Value("instance", before.name)
        if before.name in _CLASSES:
            return Value("outside", _CLASSES[before.name])
        if before.kind == "function":
            found = self.value(self.functions[before.name].returns, depth + 1)
            if found.kind != "unknown":
                return found
        if before.name in _RESULTS and before.kind in ("function", "outside"):
            return Value("outside instance", _RESULTS[before.name])
        if before.kind == "function":
            return _unknown("a result without a type annotation")
        if before.kind == "outside":
            last = before.name.rpartition(".")[2]
            builtin = before.name.startswith("builtins.") and before.name.count(".") == 1 and last in _TYPES
            if builtin or (last[:1].isupper() and not last.isupper()):
                return Value("outside instance", before.name)
            return _unknown("what a function outside returns")
        if before.kind == "instance":
            called = self._member(before, "__call__", depth, instance=True)
            return (
                self._result(called, depth + 1) if called.kind == "function" else _unknown("an instance that is called")
            )
        return _unknown("what is outside, called twice" if before.kind == "outside instance" else "a module, called")

    def _entered(self, before: Value, depth: int) -> Value:
        if before.kind != "instance":
            return before if before.kind == "outside instance" else _unknown("what `with` binds")
        entering = self._member(before, "__enter__", depth, instance=True)
        if entering.kind == "function":
            found = self._result(entering, depth)
            return found if found.kind != "unknown" else _unknown("what `with` binds")
        return before

    def overriding(self, function: str, class_name: str) -> list[str]:
        """The overrides of a method in subclasses of a class; at most MOST_TARGETS + 1."""
        name = function.rpartition(".")[2]
        found: list[str] = []
        waiting, seen = list(self.subclasses.get(class_name, ())), set[str]()
        while waiting and len(found) <= MAX_TARGETS:
            below = waiting.pop()
            if below in seen:
                continue
            seen.add(below)
            if f"{below}.{name}" in self.functions:
                found.append(f"{below}.{name}")
            waiting += self.subclasses.get(below, ())
        return found


_TYPES = frozenset(
    ["bool", "bytearray", "bytes", "complex", "dict", "float", "frozenset", "int", "list", "memoryview", "range", "set",
     "str", "tuple", "enumerate", "map", "filter", "zip", "reversed", "type", "object"]
)  # fmt: skip


def _may_have(class_name: str, attribute: str) -> bool:
    """Whether an outside class may have an attribute; built-in classes are inspected."""
    module, _, name = class_name.rpartition(".")
    return module != "builtins" or hasattr(getattr(builtins, name, None), attribute)


def python_calls(linked: Linked, functions: Sequence[Function]) -> Iterator[tuple[int, Meaning]]:
    """Each call in the functions of an index: the number of the calling function, and the call's meaning.

    An unresolved call has the status `unknown`, and the reason as its owner.
    """
    numbers: dict[str, list[int]] = defaultdict(list)
    for number, each in enumerate(functions):
        if each.kind != "lambda":
            numbers[each.qualified_name].append(number)
    for facts in linked.modules.values():
        for call in facts.calls:
            around = [
                number
                for number in numbers.get(call.caller, ())
                if functions[number].first_line <= call.caller_line <= functions[number].last_line
            ]
            if around:
                yield around[-1], meaning(linked, numbers, call)


def meaning(linked: Linked, numbers: Mapping[str, Sequence[int]], call: PyCall) -> Meaning:
    """The meaning of a call; `numbers` are the functions of the index by qualified name."""
    value = linked.value(call.steps)
    if value.kind in ("class", "instance"):
        of_class = value.kind == "class"
        name = "__init__" if of_class else "__call__"
        owner = value.name
        value = linked.member(Value("instance", owner), name)
        if of_class and value.name == "builtins.object.__init__":
            return Meaning("made", (), owner, name, call.name)
        # A class that is called by name creates its instance, never one of a subclass.
        value = value._replace(of="") if of_class else value
    if value.kind == "function":
        others = linked.overriding(value.name, value.of) if value.of else []
        many = len(others) > MAX_TARGETS
        targets = tuple(each for name in (value.name, *(() if many else others)) for each in numbers.get(name, ()))
        owner, _, name = value.name.rpartition(".")
        if not targets:
            return Meaning("no source", (), owner, name, call.name)
        return Meaning("function" if len(targets) == 1 and not many else "functions", targets, owner, name, call.name)
    if value.kind == "outside":
        owner, _, name = value.name.rpartition(".")
        return Meaning("outside", (), owner, name, call.name)
    if value.kind == "outside instance":
        return Meaning("outside", (), value.name, "__call__", call.name)
    return Meaning("unknown", (), value.name if value.kind == "unknown" else "a module, called", call.name, call.name)
