"""Parser of a source file into functions: tree-sitter captures, nested by their byte ranges.

The queries (`queries/<language>.scm`) only classify nodes.  This module finds the nesting in one sweep over the
captures in order of position.  It never walks the tree: a node's parent is found by recursion through the tree, which
crashes the interpreter on deeply nested files.

    >>> parse_file(b"object A { def f(x: Int) = x }", "scala", "A.scala").functions[1].qualified_name
    'A.f'
"""

from __future__ import annotations

import importlib
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from pathlib import Path

from tree_sitter import Language as Grammar
from tree_sitter import Node, Parser, Query, QueryCursor

from crystalperf.indexer.documentation import clean_comment, clean_docstring, is_documentation
from crystalperf.indexer.pyfacts import read_facts
from crystalperf.indexer.records import Call, ClassLines, Function, FunctionKind, Language, ParsedFile
from crystalperf.indexes.names import encode

MAX_FILE_BYTES = 5_000_000
"""Maximum file size.  Larger files are generated tables, and parsing takes about 100 bytes for each byte of source."""

MAX_DEPTH = 40
"""Maximum nesting; deeper functions belong to the enclosing one.  A nested function's text is stored once per level."""

_BLANK_LINES = re.compile(r"\n(?:[ \t\r]*\n)+")
_SPACES = re.compile(r"\s+")
_REVERSED_RECEIVER = re.compile(rb"(?:\.|::|>-)([\w$]*[A-Za-z_$](?:(?:\.|::|>-)[\w$]*[A-Za-z_$])*)")
"""Matches backwards from the called name; a forward search would start at every earlier character."""
_SIMPLE_NAME = re.compile(r"[\w$+-]+")
_SCALA_ABSTRACT = re.compile(
    r"function_declaration|type_definition|(class|object|trait|enum)_definition|va[lr]_declaration"
    r"|(im|ex)port_declaration|block_comment|comment|self_type|end_marker|annotation"
)
"""Members for which a trait needs no `$init$`."""

_SCALA_REPAIRS = ((re.compile(rb'\binline(?=")'), b"inlinE"), (re.compile(rb"\(using(?= *=)"), b"(usinG"))
"""Names that the grammar mistakes for Scala 3 keywords, with replacements of the same length."""


@dataclass(slots=True)
class _Scope:
    """A package, type or function that encloses the current position."""

    end: int
    is_type: bool
    package: str
    classes: tuple[str, ...]
    prefix: str
    """Prefix of qualified names declared here, with the separator."""
    descriptor: str
    binary: str
    """Binary name of the type, '' outside of types."""
    is_local: bool
    function: int | None
    """The function that the code here belongs to: for a type its initialiser."""
    outer: int | None
    """The function that members declared here are nested in."""
    depth: int
    cut: list[tuple[int, int]] = field(default_factory=list)
    """Byte ranges within a type that belong to its members."""
    anonymous: int = 0
    """Number of anonymous classes so far, because javac numbers them."""


def parse_file(source: bytes | Path | str, language: Language, file: str) -> ParsedFile:
    """Parse one file in this process.

    `source` is the text or a path to it, `file` the name to report, relative to the source root with '/'.  No content
    of a file raises an exception.  But a hostile file can take long, so use `indexer.workers.parse_files` for whole
    sources: its processes can be killed.
    """
    text = source if isinstance(source, bytes) else Path(source).read_bytes()
    if len(text) > MAX_FILE_BYTES:
        problem = f"{len(text) / 1e6:.1f} MB, more than the {MAX_FILE_BYTES / 1e6:.0f} MB that are parsed; left out"
        return ParsedFile(file, language, len(text), errors=(problem,))
    return _Sweep(text, language, file).run()


class _Sweep:
    """The state of one pass over one file."""

    def __init__(self, text: bytes, language: Language, file: str) -> None:
        self.text = text
        self.language = language
        self.file = file
        self.separator = "::" if language == "cpp" else "."
        self.functions: list[Function] = []
        self.bodies: list[tuple[int, int, list[tuple[int, int]]] | None] = []
        self.classes: list[ClassLines] = []
        self.calls: dict[tuple[int, str], str] = {}
        self.comments: dict[int, int] = {}
        self.decorated: dict[int, int] = {}
        self.line_starts = [0, *(match.end() for match in re.finditer(rb"\n", text))]
        self.too_deep = 0

    def run(self) -> ParsedFile:
        parser, query = _grammar(self.language)
        tree = parser.parse(self.text)
        if self.language == "scala" and tree.root_node.has_error:
            repaired = self.text
            for pattern, replacement in _SCALA_REPAIRS:
                repaired = pattern.sub(replacement, repaired)
            if repaired != self.text:
                tree = parser.parse(repaired)
        captures = QueryCursor(query).captures(tree.root_node)
        self.comments = {node.end_byte: node.start_byte for node in captures.pop("comment", ())}
        for node in captures.pop("decorated", ()):
            # In order of appearance, so that nested templates start at the outer one.
            inner = node.child_by_field_name("definition") or node.named_children[-1]
            self.decorated[inner.start_byte] = self.decorated.get(node.start_byte, node.start_byte)
        not_functions = {node.start_byte for node in captures.pop("not_function", ())}
        errors = captures.pop("error", [])
        events = [
            (node.start_byte, -node.end_byte, tag, node)
            for tag, nodes in captures.items()
            for node in nodes
            if not (tag == "function.lambda" and node.start_byte in not_functions)
        ]
        events.sort(key=lambda event: event[:3])
        self._sweep(tree.root_node, events)
        return ParsedFile(
            self.file,
            self.language,
            len(self.text),
            tuple(self._with_bodies()),
            tuple(self.classes),
            tuple(Call(caller, name, receiver) for (caller, name), receiver in self._calls_with_lambdas()),
            tuple(self._problems(errors)),
            read_facts(self.text, self.file) if self.language == "python" else None,
        )

    def _sweep(self, root: Node, events: Sequence[tuple[int, int, str, Node]]) -> None:
        stack = [self._file_scope(root)]
        last = (-1, -1)
        for start, negative_end, tag, node in events:
            while start >= stack[-1].end and len(stack) > 1:
                stack.pop()
            scope = stack[-1]
            if tag == "call":
                if scope.function is not None:
                    self._call(scope.function, start, -negative_end)
                continue
            if (start, negative_end) == last:
                continue
            last = (start, negative_end)
            entered: _Scope | None
            if tag == "package":
                entered = self._enter_package(scope, node)
            elif tag.startswith("type.") or tag == "package_object":
                entered = self._enter_type(scope, tag.removeprefix("type."), node)
            else:
                entered = self._enter_function(scope, tag.removeprefix("function."), node)
            if entered is not None:
                stack.append(entered)

    # Scopes -----------------------------------------------------------------------------------------------------

    def _file_scope(self, root: Node) -> _Scope:
        module = ""
        if self.language == "python":
            parts = self.file.removesuffix(".py").split("/")
            module = ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)
        scope = _Scope(
            end=len(self.text) + 1,
            is_type=self.language == "python",
            package=module,
            classes=(),
            prefix=module + "." if module else "",
            descriptor=module.replace(".", "/") + "/" if module else "",
            binary=module,
            is_local=False,
            function=None,
            outer=None,
            depth=0,
        )
        if self.language == "python" and self.text.strip():
            last = max(1, self.text.count(b"\n") + (not self.text.endswith(b"\n")))
            scope.function = self._add(
                scope, "initialiser", "<module>", ("<module>",), (1, last), (0, len(self.text)), _docstring(root)
            )
            self.bodies[scope.function] = (0, len(self.text), scope.cut)
        return scope

    def _enter_package(self, scope: _Scope, node: Node) -> _Scope | None:
        name = node.child_by_field_name("name") or next(iter(node.named_children), None)
        if name is None and self.language != "cpp":
            return None
        name_text = _SPACES.sub("", self._text(name)).replace("`", "") if name is not None else "(anonymous namespace)"
        if self.language == "cpp":
            name_text = name_text.replace(".", "::")
        package = scope.package + self.separator + name_text if scope.package else name_text
        path = package.replace("::", ".").replace(".", "/") + "/"
        entered = replace(
            scope, package=package, prefix=package + self.separator, descriptor=path, cut=[], end=node.end_byte
        )
        if self.language == "java" or (self.language == "scala" and node.child_by_field_name("body") is None):
            # `package a.b` applies to the rest of its enclosing block.
            entered.end = scope.end
        return entered

    def _enter_type(self, scope: _Scope, kind: str, node: Node) -> _Scope | None:
        if scope.depth >= MAX_DEPTH:
            self.too_deep += 1
            return None
        start = self._start(node)
        if scope.is_type:
            scope.cut.append((self._doc_start(start), node.end_byte))
        name = "<anonymous>" if kind == "anonymous" else self._name(node) or "<anonymous>"
        package = scope.package
        if kind == "package_object":
            package = f"{package}.{name}" if package else name
            name, kind = "package", "object"
            scope = replace(
                scope, package=package, prefix=package + ".", descriptor=package.replace(".", "/") + "/", cut=[]
            )
        is_local = scope.is_local or scope.outer is not None or name == "<anonymous>" or self._in_code(scope)
        binary = self._binary_name(scope, name, kind)
        lines = (self._line(start), self._last_line(node))
        entered = _Scope(
            end=node.end_byte,
            is_type=True,
            package=package,
            classes=(*scope.classes, name),
            prefix=scope.prefix if name == "package" else f"{scope.prefix}{name}{self.separator}",
            descriptor=f"{scope.descriptor}{_escaped(name)}{'.' if kind == 'object' else '#'}",
            binary=binary,
            is_local=is_local,
            function=None,
            outer=scope.function if not scope.is_type or name == "<anonymous>" else scope.outer,
            depth=scope.depth + 1,
        )
        if not is_local and binary and self.language in ("scala", "java"):
            self.classes.append(ClassLines(binary, *lines))
            if kind == "object":
                # Static forwarders are in the class without `$`.
                self.classes.append(ClassLines(binary.removesuffix("$"), *lines))
        if self._runs_code(kind, node):
            name_and_methods = _initialiser_names(self.language, kind, name)
            doc = _docstring(node) if self.language == "python" else self._doc(start)
            entered.function = self._add(
                entered, "initialiser", *name_and_methods, lines, (start, node.end_byte), doc, outer=entered.outer
            )
            self.bodies[entered.function] = (start, node.end_byte, entered.cut)
        return entered

    def _enter_function(self, scope: _Scope, tag: str, node: Node) -> _Scope | None:
        if scope.depth >= MAX_DEPTH:
            self.too_deep += 1
            return None
        start = self._start(node)
        is_member = scope.is_type
        kind: FunctionKind = "method" if is_member and scope.classes else "function"
        methods: tuple[str, ...]
        if tag == "lambda":
            kind, name, methods = "lambda", "<lambda>", ("<lambda>",) if self.language == "python" else ()
        elif tag == "static":
            kind, name, methods = "initialiser", "<clinit>", ("<clinit>",)
        else:
            name = self._name(node)
            if not name:
                return None
            if tag == "constructor" or (self.language == "scala" and name == "this"):
                kind, name = "constructor", "<init>"
            if self.language == "cpp":
                scope, name, kind = self._cpp_owner(scope, name, kind)
            methods = (name,)
        has_body = tag not in ("abstract", "method") or node.child_by_field_name("body") is not None
        if self.language == "scala":
            has_body = tag != "abstract"
        if is_member and kind != "lambda":
            scope.cut.append((self._doc_start(start), node.end_byte))
        if self.language == "scala" and not scope.classes and kind == "function" and scope.function is None:
            self._scala_file_object(scope, node)
        doc = ""
        if kind != "lambda":
            doc = _docstring(node) if self.language == "python" else self._doc(start)
        outer = scope.function if not is_member or kind == "lambda" else scope.outer
        number = self._add(
            scope,
            kind,
            name,
            methods if has_body else (),
            (self._line(start), self._last_line(node)),
            (start, node.end_byte),
            doc,
            outer=outer,
            signature=self._signature(node, tag),
            has_body=has_body,
        )
        return _Scope(
            end=node.end_byte,
            is_type=False,
            package=scope.package,
            classes=scope.classes,
            prefix=f"{scope.prefix}{name}{self.separator}",
            descriptor=f"{scope.descriptor}{_escaped(name)}().",
            binary=scope.binary,
            is_local=True,
            function=number,
            outer=number,
            depth=scope.depth + 1,
        )

    def _add(  # noqa: PLR0913, PLR0917 - what is known of a Function only where it is met
        self,
        scope: _Scope,
        kind: FunctionKind,
        name: str,
        methods: tuple[str, ...],
        lines: tuple[int, int],
        span: tuple[int, int],
        doc: str,
        outer: int | None = None,
        signature: str = "",
        has_body: bool = True,
    ) -> int:
        """Record a function; returns its number.  Code of initialisers is set when all members are known."""
        self.functions.append(
            Function(
                kind=kind,
                name=name,
                qualified_name=scope.prefix + name,
                package=scope.package,
                class_name=".".join(scope.classes) or None,
                enclosing=outer,
                first_line=lines[0],
                last_line=lines[1],
                code="" if kind == "initialiser" and name != "<clinit>" else self._slice(*span).rstrip(),
                doc=doc,
                signature=signature,
                descriptor=f"{scope.descriptor}{_escaped(name)}().",
                runtime_class=scope.binary,
                runtime_methods=methods,
                has_body=has_body,
            )
        )
        self.bodies.append(None)
        return len(self.functions) - 1

    # Names ------------------------------------------------------------------------------------------------------

    def _name(self, node: Node) -> str:
        if self.language == "cpp" and node.type == "function_definition":
            return self._cpp_name(node)
        name = node.child_by_field_name("name") or node.child_by_field_name("pattern")
        if name is None and node.type == "given_definition":
            # Scala derives the name of an anonymous given from its type: given_Ordering_Int.
            given = node.child_by_field_name("return_type")
            return "given_" + "_".join(re.findall(r"\w+", self._text(given))) if given is not None else ""
        if name is not None and name.type.endswith("pattern"):
            return "<pattern>"  # lazy val (a, b) = …
        return self._text(name).replace("`", "") if name is not None else ""

    def _cpp_name(self, node: Node) -> str:
        declarator = node.child_by_field_name("declarator")
        found = None
        for _ in range(20):
            if declarator is None:
                break
            found = declarator
            declarator = declarator.child_by_field_name("declarator")
            if declarator is None and found.type in ("reference_declarator", "parenthesized_declarator"):
                declarator = next(iter(found.named_children), None)
        return _SPACES.sub("", self._text(found)).partition("(")[0] if found is not None else ""

    def _cpp_owner(self, scope: _Scope, name: str, kind: FunctionKind) -> tuple[_Scope, str, FunctionKind]:
        """`int A::B::f()` belongs to B: its scope, simple name and kind."""
        *owners, name = _split_cpp(name)
        if owners:
            # A file does not distinguish namespaces from classes; in the indexed code classes are in CamelCase.
            first_class = next((at for at, owner in enumerate(owners) if owner[:1].isupper()), len(owners))
            spaces, classes = owners[:first_class], owners[first_class:]
            package = "::".join(filter(None, [scope.package, *spaces]))
            path = package.replace("::", "/") + "/" if package else ""
            scope = replace(
                scope,
                package=package,
                classes=(*scope.classes, *classes),
                prefix=scope.prefix + "".join(owner + "::" for owner in owners),
                descriptor=path + "".join(_escaped(each) + "#" for each in (*scope.classes, *classes)),
                binary="::".join(filter(None, [package, *scope.classes, *classes])),
            )
            kind = "method" if classes else kind
        if scope.classes and name == scope.classes[-1]:
            kind = "constructor"
        return scope, name, kind

    def _binary_name(self, scope: _Scope, name: str, kind: str) -> str:
        if self.language == "python":
            return scope.binary
        if self.language == "cpp":
            return "::".join(filter(None, [scope.package, *scope.classes, name]))
        suffix = "$" if kind == "object" else ""
        if not scope.classes:
            package = f"{scope.package}." if scope.package else ""
            return package + encode(name) + suffix
        outer = scope.binary
        if name == "<anonymous>":
            if self.language == "scala":
                return outer.removesuffix("$") + "$$anon"
            scope.anonymous += 1
            return f"{outer}${scope.anonymous}"
        if scope.outer is not None and not scope.is_type:
            return f"{outer.removesuffix('$')}${encode(name)}$1" if self.language == "scala" else f"{outer}$1{name}"
        return f"{outer}{'' if outer.endswith('$') else '$'}{encode(name)}{suffix}"

    def _scala_file_object(self, scope: _Scope, node: Node) -> None:
        """Scala 3 compiles top-level definitions of `File.scala` into the object `File$package`."""
        stem = self.file.rpartition("/")[2].removesuffix(".scala")
        binary = f"{scope.package}." * bool(scope.package) + f"{stem}$package"
        if not scope.binary:
            scope.binary = binary + "$"
            for name in (binary, binary + "$"):
                self.classes.append(ClassLines(name, 1, self.text.count(b"\n") + 1))

    @staticmethod
    def _in_code(scope: _Scope) -> bool:
        return not scope.is_type and scope.function is not None

    # Text -------------------------------------------------------------------------------------------------------

    def _slice(self, start: int, end: int) -> str:
        return self.text[start:end].decode("utf-8", "replace")

    def _text(self, node: Node) -> str:
        return self._slice(node.start_byte, node.end_byte)

    def _start(self, node: Node) -> int:
        return self.decorated.get(node.start_byte, node.start_byte)

    def _line(self, offset: int) -> int:
        return bisect_right(self.line_starts, offset)

    def _last_line(self, node: Node) -> int:
        """The last line with text: some Scala nodes extend to the start of the next one."""
        end = node.end_byte
        while end > node.start_byte + 1 and self.text[end - 1] in b" \t\r\n":
            end -= 1
        return self._line(end - 1)

    def _signature(self, node: Node, tag: str) -> str:
        if tag in ("lambda", "static"):
            return ""
        name = node.child_by_field_name("name") or node.child_by_field_name("pattern")
        if name is None:
            name = node.child_by_field_name("declarator")
        body = node.child_by_field_name("body") or node.child_by_field_name("value")
        start = name.start_byte if name is not None else node.start_byte
        end = body.start_byte if body is not None else node.end_byte
        return _SPACES.sub(" ", self._slice(start, min(end, start + 2000))).strip().rstrip("={:;").strip()

    def _comment_before(self, start: int) -> tuple[int, int] | None:
        """Start and end of the comment directly before an offset, except for white space."""
        while start > 0 and self.text[start - 1] in b" \t\r\n":
            start -= 1
        begin = self.comments.get(start)
        if begin is None and self.comments.get(start + 1) is not None:  # a line comment that ends with its newline
            begin, start = self.comments[start + 1], start + 1
        return (begin, start) if begin is not None else None

    def _doc_span(self, start: int) -> tuple[int, int] | None:
        """Start and end of the documentation directly before an offset; ordinary comments in between are skipped."""
        end = 0
        while (comment := self._comment_before(start)) is not None:
            text = self.text[comment[0] : comment[0] + 4].decode("utf-8", "replace")
            is_line = text.startswith(("///", "//!"))
            if end and not is_line:
                break
            start = comment[0]
            if is_documentation(text):
                end = end or comment[1]
                if not is_line:
                    return start, end
        if not end:
            return None
        while self.text[start : start + 3] not in (b"///", b"//!"):
            start = self.text.index(b"\n", start) + 1
            start += len(self.text[start:]) - len(self.text[start:].lstrip())
        return start, end

    def _doc(self, start: int) -> str:
        span = self._doc_span(start)
        return clean_comment(self._slice(*span)) if span else ""

    def _doc_start(self, start: int) -> int:
        span = self._doc_span(start)
        return span[0] if span else start

    def _runs_code(self, kind: str, node: Node) -> bool:
        """Whether the body of a type has code: field initialisers, statements, an implicit constructor."""
        if self.language == "python":
            return True
        if self.language == "cpp":
            return False
        body = node.child_by_field_name("body")
        members = [each.type for each in body.named_children] if body is not None else []
        if kind == "trait":
            return any(not _SCALA_ABSTRACT.fullmatch(each) for each in members)
        if self.language == "scala" or kind in ("enum", "anonymous"):
            return True
        if kind == "interface":
            return "constant_declaration" in members
        if "constructor_declaration" not in members or "block" in members:
            return True
        fields = [each for each in body.named_children if each.type == "field_declaration"] if body is not None else []
        return any(
            declarator.child_by_field_name("value") is not None
            for each in fields
            for declarator in each.children_by_field_name("declarator")
        )

    # Results ----------------------------------------------------------------------------------------------------

    def _call(self, caller: int, start: int, end: int) -> None:
        name = self._slice(start, end).replace("`", "")
        key = (caller, name)
        if key not in self.calls:
            receiver = b""
            if self.text[start - 1 : start] in (b".", b":", b">"):
                match = _REVERSED_RECEIVER.match(self.text[max(0, start - 80) : start][::-1])
                receiver = match[1][::-1] if match else b""
            self.calls[key] = receiver.decode("utf-8", "replace")

    def _calls_with_lambdas(self) -> Iterable[tuple[tuple[int, str], str]]:
        """Calls of each function, including those of its lambdas, by caller."""
        calls: list[dict[str, str]] = [{} for _ in self.functions]
        for (caller, name), receiver in self.calls.items():
            calls[caller][name] = receiver
        for number in range(len(self.functions) - 1, -1, -1):
            function = self.functions[number]
            if function.kind == "lambda" and function.enclosing is not None:
                calls[function.enclosing] = {**calls[number], **calls[function.enclosing]}
        return (((caller, name), receiver) for caller, names in enumerate(calls) for name, receiver in names.items())

    def _with_bodies(self) -> Iterable[Function]:
        for function, body in zip(self.functions, self.bodies, strict=True):
            if body is None:
                yield function
                continue
            start, end, cut = body
            parts, at = [], start
            for cut_start, cut_end in cut:
                parts.append(self._slice(at, max(at, cut_start)))
                at = max(at, cut_end)
            parts.append(self._slice(at, end))
            yield replace(function, code=_BLANK_LINES.sub("\n", "".join(parts)).strip())

    def _problems(self, errors: Sequence[Node]) -> Iterable[str]:
        if errors:
            lines = sum(each.end_point.row - each.start_point.row + 1 for each in errors)
            first = min(each.start_point.row for each in errors) + 1
            places = "1 place is" if len(errors) == 1 else f"{len(errors)} places are"
            yield f"{places} not parsed, the first at line {first}; functions in {lines} lines may be missing"
        if self.too_deep:
            yield f"{self.too_deep} functions nested deeper than {MAX_DEPTH} levels count for the one around them"


@cache
def _grammar(language: Language) -> tuple[Parser, Query]:
    module = importlib.import_module(f"tree_sitter_{language}")
    grammar = Grammar(module.language())
    text = files("crystalperf.indexer").joinpath("queries").joinpath(f"{language}.scm").read_text(encoding="utf-8")
    return Parser(grammar), Query(grammar, text)


def _initialiser_names(language: Language, kind: str, name: str) -> tuple[str, tuple[str, ...]]:
    if language == "python":
        return "<body>", (name,)
    if kind == "trait":
        return "<init>", ("$init$",)
    if kind == "interface":
        return "<clinit>", ("<clinit>",)
    return "<init>", ("<init>", "<clinit>")


def _docstring(node: Node) -> str:
    """The docstring of a Python module, class or function."""
    body = node if node.type == "module" else node.child_by_field_name("body")
    if body is None:
        return ""
    for statement in body.named_children:
        if statement.type == "comment":
            continue
        literal = next(iter(statement.named_children), None) if statement.type == "expression_statement" else None
        if literal is not None and literal.type == "string" and literal.text is not None:
            return clean_docstring(literal.text.decode("utf-8", "replace"))
        return ""
    return ""


def _split_cpp(name: str) -> list[str]:
    """`a::B<T>::operator==` → ['a', 'B', 'operator==']: split at `::` outside of template arguments."""
    head, operator, tail = name.partition("operator")
    parts, depth, part = [], 0, ""
    for piece in re.split(r"(::|<|>)", head if operator and (not head or head.endswith("::")) else name):
        if piece == "<":
            depth += 1
        elif piece == ">":
            depth -= 1
        elif depth == 0 and piece == "::":
            parts.append(part)
            part = ""
        elif depth == 0:
            part += piece
    if operator and (not head or head.endswith("::")):
        part = operator + tail
    return [*filter(None, parts), part]


def _escaped(name: str) -> str:
    """A name for a descriptor, in backticks unless it is a plain identifier, as in SCIP."""
    return name if _SIMPLE_NAME.fullmatch(name) else f"`{name}`"
