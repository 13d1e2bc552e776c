"""Typed resolution of JVM calls: class files have owner, method and descriptor of each call.

    graph = read_jars(jars)                       the class files of a package
    found = typed_calls(graph, Sources(functions, classes))
    resolved, counts = resolve_typed_calls(calls, found, functions)       the calls of the texts, resolved

A call belongs to the innermost function around its line in the file that declares its class.  It is resolved as the JVM
does, in its owner, the superclasses and the interfaces, with one of these statuses:

    function    exactly one function of the index: nothing overrides it
    functions   several: overrides in subclasses, overloads that the lines do not distinguish, or a lambda's
                interface; the known ones are kept
    outside     a method of a class outside the package, whose owner and name are known
    field       a compiler-generated member that only reads or sets a field, such as a `val` for other classes; no
                function runs
    accessor    one that looks like `field`, but without code in any class file
    made        another compiler-generated member: a default argument, a case class's unapply
    no source   a class of the package whose source is not in the index
    nowhere     neither its owner nor a supertype has such a method
    unknown     of Python (`indexer.pytyped`): the type of the receiver is unknown
"""

from __future__ import annotations

import lzma
import re
import zipfile
import zlib
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple

from crystalperf.indexer.classfile import ABSTRACT, BRIDGE, MAX_BYTES, Call, ClassFile, ClassFileError, Method, read
from crystalperf.indexer.records import ParsedFile, starts
from crystalperf.indexes.errors import BuildError
from crystalperf.indexes.names import demangle

Status = Literal["function", "functions", "outside", "field", "accessor", "made", "no source", "nowhere", "unknown"]

MAX_TARGETS = 64
"""Maximum overrides that a call resolves to; if there are more, only the declared function is named."""

_NUMBERED = re.compile(r"\$\d")
"""Part of the names of anonymous and local classes, which have no numbers in the source."""

_HOPS = 3
"""Maximum chain of forwarders that is followed: a bridge, a static forwarder, a trait's."""

_OF_EVERY_OBJECT = frozenset(
    ["<init>", "clone", "equals", "finalize", "getClass", "hashCode", "notify", "notifyAll", "toString", "wait"]
)


class Known(NamedTuple):
    """The needed fields of a function of the index; `class_name` is its binary name, `name` its simple one."""

    kind: str
    name: str
    class_name: str
    enclosing: int | None
    file: str
    first_line: int
    last_line: int


@dataclass(frozen=True, slots=True)
class Meaning:
    """The meaning of a call; `targets` are functions by number, first the declared one if the index has it."""

    status: Status
    targets: tuple[int, ...]
    owner: str
    name: str
    written: str = ""
    """The name in the source text, if known."""
    is_open: bool = False
    """Whether other functions may run than the targets: a lambda, or one of too many overrides."""


@dataclass(frozen=True)
class Sources:
    """The functions of an index by number, and the file that declares each class."""

    functions: Sequence[Known]
    classes: Mapping[str, str]
    _files: dict[str, str | None] = field(default_factory=dict)

    @classmethod
    def of(cls, parsed: Sequence[ParsedFile]) -> Sources:
        """The parsed functions and classes, in the numbering of an index."""
        functions = [
            Known(
                each.kind,
                each.name,
                ".".join(part for part in (each.package, (each.class_name or "").replace(".", "$")) if part),
                None if each.enclosing is None else start + each.enclosing,
                file.file,
                each.first_line,
                each.last_line,
            )
            for start, file in zip(starts(parsed), parsed, strict=True)
            for each in file.functions
        ]
        return cls(functions, {each.class_name: file.file for file in parsed for each in file.classes})

    def file_of(self, class_name: str) -> str | None:
        """The file of a class; an anonymous class is in the file of its enclosing class."""
        if class_name not in self._files:
            name = class_name
            while name not in self.classes and "$" in name[1:]:
                name = name[: name.rindex("$", 1)]
            self._files[class_name] = self.classes.get(name)
        return self._files[class_name]

    def at(self, file: str, line: int, owner: str, method: str) -> int | None:
        """The innermost function around a line that can be this method of this class."""
        starts, numbers = self._by_file.get(file, ((), ()))
        meant = demangle(method)
        around = None
        for position in range(bisect_right(starts, line) - 1, -1, -1):
            number = numbers[position]
            function = self.functions[number]
            if function.last_line < line:
                continue
            around = number if around is None else around
            if self._fits(function, owner, meant.name, meant.is_lambda):
                return number
            if function.enclosing is None and function.kind != "lambda":
                break
        return around if meant.is_lambda else None

    @staticmethod
    def _fits(function: Known, owner: str, name: str, is_lambda: bool) -> bool:
        if is_lambda:
            return function.kind == "lambda" or function.name == name
        if name in ("<init>", "<clinit>", "$init$"):
            # A nested class may have no body in the index; the body of the enclosing class is not its body.
            same_class = _NUMBERED.search(owner) or owner.rstrip("$") == function.class_name.rstrip("$")
            return function.kind in ("constructor", "initialiser") and bool(same_class)
        return function.kind != "lambda" and function.name == name

    def named(self, class_name: str, method: str) -> tuple[int, ...]:
        """The functions of that name in a class; those of a companion object count for its class."""
        meant = demangle(method)
        if meant.is_lambda:
            return ()
        found = self._by_name.get((class_name.rstrip("$"), meant.name), ())
        if meant.name == "<init>":  # explicit constructors; if there are none, the class body
            written = tuple(each for each in found if self.functions[each].kind == "constructor")
            return written or found[:1]
        return found

    @cached_property
    def _by_file(self) -> dict[str, tuple[tuple[int, ...], tuple[int, ...]]]:
        """First lines and numbers of each file's functions, sorted by first line, outermost first."""
        found: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
        for number, each in enumerate(self.functions):
            found[each.file].append((each.first_line, -each.last_line, number))
        ordered = {file: sorted(each) for file, each in found.items()}
        return {file: (tuple(a for a, _, _ in each), tuple(n for _, _, n in each)) for file, each in ordered.items()}

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], tuple[int, ...]]:
        found: dict[tuple[str, str], list[int]] = defaultdict(list)
        for number, each in enumerate(self.functions):
            if each.kind == "lambda":
                continue
            name = "<init>" if each.kind in ("constructor", "initialiser") else each.name
            found[each.class_name.rstrip("$"), name].append(number)
        return {key: tuple(each) for key, each in found.items()}


@dataclass
class Graph:
    """The class files of a package by class name."""

    classes: dict[str, ClassFile] = field(default_factory=dict)
    problems: list[tuple[str, str]] = field(default_factory=list)
    """Unreadable class files, with the reason."""

    @cached_property
    def subclasses(self) -> Mapping[str, Sequence[str]]:
        """Classes that extend or implement a class directly."""
        found: dict[str, list[str]] = defaultdict(list)
        for each in self.classes.values():
            for above in (each.super_name, *each.interfaces):
                if above is not None:
                    found[above].append(each.name)
        return found

    @cached_property
    def _declared(self) -> dict[str, dict[tuple[str, str], Method]]:
        return {
            name: {(each.name, each.descriptor): each for each in file.methods} for name, file in self.classes.items()
        }

    def method(self, class_name: str, name: str, descriptor: str) -> Method | None:
        """A method declared in the class, without supertypes."""
        return self._declared.get(class_name, {}).get((name, descriptor))

    def declaring(self, call: Call) -> tuple[str, Method] | str | None:
        """The JVM's method lookup: the class and the method, or the outside class that must have it, or None."""
        waiting, seen = [call.owner], set()
        outside: str | None = None
        while waiting:
            name = waiting.pop(0)
            if name in seen:
                continue
            seen.add(name)
            file = self.classes.get(name)
            if file is None:
                if outside is None and (name != "java.lang.Object" or call.name in _OF_EVERY_OBJECT):
                    outside = name
                continue
            if (found := self.method(name, call.name, call.descriptor)) is not None:
                return name, found
            # Superclasses before interfaces, as the JVM does.
            waiting[:0] = [file.super_name] if file.super_name else []
            waiting += file.interfaces
        return outside

    @cached_property
    def of_lambdas(self) -> frozenset[tuple[str, str, str]]:
        """Class, name and descriptor of the methods that lambdas and method references implement anywhere."""
        found = set()
        for interface, name, descriptor in {each for file in self.classes.values() for each in file.lambdas}:
            declared = self.declaring(Call("interface", interface, name, descriptor))
            if isinstance(declared, tuple):
                found.add((declared[0], name, descriptor))
        return frozenset(found)

    def overriding(self, class_name: str, name: str, descriptor: str) -> list[tuple[str, Method]]:
        """The overrides of a method in subclasses of a class; at most MOST_TARGETS + 1."""
        found: list[tuple[str, Method]] = []
        waiting, seen = list(self.subclasses.get(class_name, ())), set()
        while waiting and len(found) <= MAX_TARGETS:
            below = waiting.pop()
            if below in seen:
                continue
            seen.add(below)
            method = self.method(below, name, descriptor)
            if method is not None and not method.flags & ABSTRACT:
                found.append((below, method))
            waiting += self.subclasses.get(below, ())
        return found


def read_jars(jars: Iterable[Path], handling: bool = False) -> Graph:
    """The class files of these archives, the first of a name; damaged ones become problems.

    `handling` also finds the calls in exception handlers.  Classes for a newer Java (META-INF/versions) are left out.
    Raises BuildError for a file that is not an archive.
    """
    graph = Graph()
    for jar in jars:
        try:
            with zipfile.ZipFile(jar) as archive:
                _read_jar(archive, graph, handling)
        except (OSError, zipfile.BadZipFile) as error:
            raise BuildError(f"{jar}: not a readable jar ({type(error).__name__})") from error
    return graph


def _read_jar(archive: zipfile.ZipFile, graph: Graph, handling: bool) -> None:
    for entry in archive.infolist():
        if not entry.filename.endswith(".class") or entry.filename.startswith("META-INF/"):
            continue
        try:
            if entry.file_size > MAX_BYTES:
                raise ClassFileError("too large")
            with archive.open(entry) as stream:
                file = read(stream.read(MAX_BYTES + 1), handling)
        except (ClassFileError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError) as error:
            graph.problems.append((entry.filename, f"an unreadable class file ({error}); left out"))
        else:
            graph.classes.setdefault(file.name, file)


def typed_calls(graph: Graph, sources: Sources) -> Iterator[tuple[int, Meaning]]:
    """Each call in a source function: the number of the calling function, and the call's meaning."""
    meanings: dict[Call, Meaning] = {}
    for file in graph.classes.values():
        source = sources.file_of(file.name)
        if source is None:
            continue
        for method in file.methods:
            if method.flags & BRIDGE:
                continue
            for line, call in method.calls:
                caller = sources.at(source, line, file.name, method.name)
                if caller is None:
                    continue
                if call not in meanings:
                    meanings[call] = meaning(graph, sources, call)
                yield caller, meanings[call]


def meaning(graph: Graph, sources: Sources, call: Call) -> Meaning:
    """The meaning of a call (see the module docstring)."""
    name = demangle(call.name).name or call.name
    if call.owner.startswith("["):
        return Meaning("outside", (), "java.lang.Object", name)
    found = graph.declaring(call)
    if found is None:
        return Meaning("nowhere", (), call.owner, name)
    if isinstance(found, str):
        return Meaning("outside", (), found, name)
    owner, method = found
    if sources.file_of(owner) is None:
        return Meaning("no source", (), owner, name)
    declared = _functions(graph, sources, owner, method)
    others: list[tuple[str, Method]] = []
    unknown = False  # whether other functions may run than the targets
    if call.kind in ("virtual", "interface", "lambda"):
        others = graph.overriding(call.owner, call.name, call.descriptor)
        if len(others) > MAX_TARGETS:
            others, unknown = [], True
        unknown |= (owner, method.name, method.descriptor) in graph.of_lambdas
    instead = {each: _functions(graph, sources, *each) for each in others}
    # Of an abstract method and its one implementation, the implementation runs.
    below = {each for found in instead.values() for each in found}
    alone = not unknown and method.flags & ABSTRACT and len(below) == 1
    runs = tuple(dict.fromkeys(chain(() if alone else declared, *instead.values())))
    without = [each for each, found in [((owner, method), declared), *instead.items()] if not found]
    fields = [each for each in without if _is_field(graph, each[1])]
    if not runs:
        if not unknown and fields and len(fields) == sum(not each.flags & ABSTRACT for _, each in without):
            return Meaning("field", (), owner, name)
        return Meaning("accessor" if _looks_like_field(method) else "made", (), owner, name)
    sure = len(runs) == 1 and not unknown and not fields
    return Meaning("function" if sure else "functions", runs, owner, name, is_open=unknown)


def _is_field(graph: Graph, method: Method) -> bool:
    """Whether a compiler-generated method reads or sets a field, or forwards to one that does."""
    for _ in range(_HOPS):
        if method.is_accessor:
            return True
        if len(method.calls) != 1 or demangle(method.calls[0][1].name).name != demangle(method.name).name:
            return False
        onward = graph.declaring(method.calls[0][1])
        if not isinstance(onward, tuple) or "$default$" in method.name:
            return False
        method = onward[1]
    return False


def _looks_like_field(method: Method) -> bool:
    """Whether a method without code looks like a field accessor, by name and type."""
    made = method.descriptor.startswith("()") or method.name.endswith("_$eq")
    return made and not method.calls and "$default$" not in method.name


def _functions(graph: Graph, sources: Sources, owner: str, method: Method) -> tuple[int, ...]:
    """The functions from which a method of a class file was compiled; several if overloads are ambiguous."""
    for _ in range(_HOPS):
        file = sources.file_of(owner)
        if file is None:
            return ()
        if method.first_line:
            number = sources.at(file, method.first_line, owner, method.name)
            if number is not None and not (method.flags & BRIDGE):
                return (number,)
        # A method without lines is abstract or native, or forwards to a method of the same name.
        if method.flags & ABSTRACT or not method.calls:
            return sources.named(owner, method.name)
        forwarded = [each for _, each in method.calls if demangle(each.name).name == demangle(method.name).name]
        # `apply` and `copy` of a case class, and the conversion of an implicit class, create an instance of the class.
        made = [each for _, each in method.calls if each.name == "<init>" and method.descriptor.endswith(_type(each))]
        onward = graph.declaring((forwarded or made)[0]) if forwarded or made else None
        if not isinstance(onward, tuple):
            return ()
        owner, method = onward
    return ()


def _type(call: Call) -> str:
    """The end of a descriptor that returns an instance of the owner of a call."""
    return f")L{call.owner.replace('.', '/')};"


def written_as(meaning: Meaning) -> tuple[str, ...]:
    """The names by which a text may call a method: the class name for a constructor, either one for `apply`."""
    if meaning.written:
        return (meaning.written,)
    simple = meaning.owner.rpartition(".")[2].rstrip("$").rpartition("$")[2]
    return {"<init>": (simple,), "apply": ("apply", simple)}.get(meaning.name, (meaning.name,))


def resolve_typed_calls(
    calls: Sequence[tuple[int, str]], found: Iterable[tuple[int, Meaning]], functions: Sequence[Known]
) -> tuple[dict[tuple[int, str], int | str | None], Counter[str]]:
    """Resolve the calls of texts, each a caller and a simple name; also returns the number of calls by status.

    A call resolves to the number of the only possible function, to CLASS.METHOD if that is outside or a field, or to
    None if several are possible; calls without types are left out.  A lambda's calls also count for the enclosing
    function, as in texts.
    """
    counts: Counter[str] = Counter()
    meant: dict[tuple[int, str], set[Meaning]] = defaultdict(set)
    for caller, meaning in found:
        counts[meaning.status] += 1
        at: int | None = caller
        while at is not None:
            for name in written_as(meaning):
                meant[at, name].add(meaning)
            at = functions[at].enclosing if functions[at].kind == "lambda" else None
    resolved: dict[tuple[int, str], int | str | None] = {}
    for call in calls:
        meanings = meant.get(call, set())
        targets = {target for each in meanings for target in each.targets}
        statuses = {each.status for each in meanings}
        # Not a function of the index: one of another library, or compiler-generated for a field.
        elsewhere = {f"{each.owner}.{each.name}" for each in meanings if each.status in ("outside", "field")}
        if len(targets) == 1 and statuses == {"function"}:
            resolved[call] = next(iter(targets))
        elif statuses and statuses <= {"outside", "field"} and len(elsewhere) == 1:
            resolved[call] = next(iter(elsewhere))
        elif targets or (statuses and statuses <= {"outside", "field"}):
            resolved[call] = None
    return resolved, counts
