"""Type facts of one Python file: names, classes, and each call as steps from an absolute name.

A path is a tuple of steps.  It starts with the parts of an absolute name, followed by attributes and these:

    ()       the result of a call; for a class, its instance
    super()  an instance of a class, with the members of its bases
    with     the value that `with` binds

    import a.b as c; x = c.D(1); x.f()      f is called on ("a", "b", "D", "()"), so the path is (…, "()", "f")

If the type is unknown, the path is (UNKNOWN, reason, name).  `indexer.pytyped` resolves paths across files.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

Steps = tuple[str, ...]

UNKNOWN: Final = "?"
CALLED: Final = "()"
ENTERED: Final = "with"
SUPER: Final = "super()"

MAX_STEPS = 24
"""Maximum steps; longer paths are unknown, because a chain of n calls would take O(n²) memory."""

_LITERALS: Mapping[type[ast.expr], str] = {
    ast.JoinedStr: "str", ast.List: "list", ast.ListComp: "list", ast.Dict: "dict", ast.DictComp: "dict",
    ast.Set: "set", ast.SetComp: "set", ast.Tuple: "tuple", ast.Compare: "bool",
}  # fmt: skip
_THROUGH = frozenset(["Annotated", "ClassVar", "Final", "Optional", "Required"])
"""Annotations that are equivalent to their subscript."""
_UNTYPED = frozenset(["Any", "Callable", "object"])


@dataclass(frozen=True, slots=True)
class PyFunction:
    """A function: its location, and the path of its return value."""

    line: int
    returns: Steps
    is_property: bool = False


@dataclass(frozen=True, slots=True)
class PyCall:
    """A call: the qualified name and line of the enclosing function, the name as written, the callee's path."""

    caller: str
    caller_line: int
    name: str
    steps: Steps


@dataclass(frozen=True, slots=True)
class PyFacts:
    """The facts about a module; keys are qualified names."""

    module: str
    functions: Mapping[str, PyFunction] = field(default_factory=dict)
    classes: Mapping[str, tuple[Steps, ...]] = field(default_factory=dict)
    """The paths of each class's bases."""
    values: Mapping[str, Steps] = field(default_factory=dict)
    """The value of a name in a module or class: an import, or the type of the assigned value."""
    stars: tuple[Steps, ...] = ()
    """Modules imported with `*`."""
    calls: tuple[PyCall, ...] = ()


def read_facts(text: bytes, file: str) -> PyFacts | None:
    """The facts of a file at a path relative to the root of its packages; None if Python cannot parse it."""
    parts = file.removesuffix(".py").split("/")
    is_package = parts[-1] == "__init__" and len(parts) > 1
    module = ".".join(parts[:-1] if is_package else parts)
    try:
        tree = ast.parse(text)
        return _Reader(module, is_package).read(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@dataclass
class _Scope:
    """The scope of a function, a class or the module during reading."""

    path: str
    line: int
    outer: _Scope | None = None
    is_class: bool = False
    class_path: str = ""
    """The class of a method and of functions nested in it."""
    names: dict[str, list[Steps]] = field(default_factory=dict)
    returns: list[Steps] = field(default_factory=list)

    def bind(self, name: str, path: Steps) -> None:
        """Add a path that a name is bound to in this scope."""
        found = self.names.setdefault(name, [])
        if path not in found:
            found.append(path)


class _Reader:
    """Reads one file: names first, then calls, so that calls see names bound further down."""

    def __init__(self, module: str, is_package: bool) -> None:
        self.module = module
        self.package = module if is_package else module.rpartition(".")[0]
        self.functions: dict[str, PyFunction] = {}
        self.classes: dict[str, tuple[Steps, ...]] = {}
        self.attributes: dict[str, list[Steps]] = {}
        self.stars: list[Steps] = []
        self.calls: list[PyCall] = []
        self.scopes: list[tuple[_Scope, list[ast.AST], ast.AST]] = []

    def read(self, tree: ast.Module) -> PyFacts:
        top = _Scope(self.module, 1)
        self._collect(top, tree.body, tree)
        # Returns first, because a call's value in the same file is resolved elsewhere, by its path only.
        for scope, body, node in self.scopes:
            for each in body:
                self._read_calls(scope, each)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self._finish(scope, node)
        values = {f"{self.module}.{name}": _agreed(paths) for name, paths in top.names.items()}
        for scope, _, node in self.scopes:
            if isinstance(node, ast.ClassDef):
                values |= {f"{scope.path}.{name}": _agreed(paths) for name, paths in scope.names.items()}
        for name, paths in self.attributes.items():
            values.setdefault(name, _agreed(paths))
        defined = self.functions.keys() | self.classes.keys()
        values = {name: path for name, path in values.items() if name not in defined or path[0] != UNKNOWN}
        values = {name: path for name, path in values.items() if ".".join(path) != name}
        return PyFacts(self.module, self.functions, self.classes, values, tuple(self.stars), tuple(self.calls))

    # Names ------------------------------------------------------------------------------------------------------

    def _collect(self, scope: _Scope, body: Iterable[ast.stmt], node: ast.AST) -> None:
        """Bind the names that a scope's statements define, and collect its inner scopes."""
        nodes: list[ast.AST] = []
        self.scopes.append((scope, nodes, node))
        waiting: list[ast.AST] = [*reversed([*body])]
        inner: list[tuple[_Scope, Sequence[ast.stmt], ast.AST]] = []
        assigned: list[tuple[ast.expr, Steps | ast.expr, str]] = []
        while waiting:
            each = waiting.pop()
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{scope.path}.{each.name}"
                scope.bind(each.name, tuple(name.split(".")))
                nodes += each.decorator_list
                is_class = isinstance(each, ast.ClassDef)
                below = _Scope(name, each.lineno, scope, is_class, name if is_class else scope.class_path)
                if isinstance(each, ast.ClassDef):
                    self.classes[name] = ()
                else:
                    self.functions[name] = PyFunction(each.lineno, (UNKNOWN, "result", each.name))
                inner.append((below, each.body, each))
                continue
            nodes.append(each)
            self._bind_statement(scope, each, assigned)
            for within in _expressions(each):
                if isinstance(within, ast.comprehension):
                    assigned.append((within.target, (UNKNOWN, "an element of a loop", ""), ""))
                elif isinstance(within, ast.Lambda):
                    for argument in (*within.args.posonlyargs, *within.args.args, *within.args.kwonlyargs):
                        scope.bind(argument.arg, (UNKNOWN, "a parameter without a type", argument.arg))
                elif isinstance(within, ast.NamedExpr):
                    assigned.append((within.target, within.value, ""))
            waiting += [child for child in ast.iter_child_nodes(each) if isinstance(child, _STATEMENTS)][::-1]
        # In textual order, so that the type of a name is known where it is assigned to another.
        for target, value, how in assigned:
            path = self._value(scope, value) if isinstance(value, ast.expr) else value
            self._assign(scope, target, (*path, how) if how and path[0] != UNKNOWN else path)
        for below, statements, definition in inner:
            if isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef):
                self._bind_parameters(below, definition)
            elif isinstance(definition, ast.ClassDef):
                nodes += definition.bases  # calls there run in the scope that defines the class
                self.classes[below.path] = tuple(self._class(scope, each) for each in definition.bases)
            self._collect(below, statements, definition)

    def _bind_statement(
        self, scope: _Scope, node: ast.AST, assigned: list[tuple[ast.expr, Steps | ast.expr, str]]
    ) -> None:
        if isinstance(node, ast.Import):
            for each in node.names:
                path = tuple(each.name.split("."))
                scope.bind(each.asname or path[0], path if each.asname else path[:1])
        elif isinstance(node, ast.ImportFrom):
            base = self._base(node)
            for each in node.names:
                if each.name == "*":
                    self.stars.append(base)
                else:
                    scope.bind(each.asname or each.name, (*base, each.name))
        elif isinstance(node, ast.Assign):
            assigned += [(target, node.value, "") for target in node.targets]
        elif isinstance(node, ast.AnnAssign):
            assigned.append((node.target, self._annotated(scope, node.annotation), ""))
        elif isinstance(node, ast.AugAssign):
            pass  # `x += …` keeps the type, or makes it unknown
        elif isinstance(node, ast.For | ast.AsyncFor):
            assigned.append((node.target, (UNKNOWN, "an element of a loop", ""), ""))
        elif isinstance(node, ast.With | ast.AsyncWith):
            for item in node.items:
                if item.optional_vars is not None:
                    assigned.append((item.optional_vars, item.context_expr, ENTERED))
        elif isinstance(node, ast.ExceptHandler) and node.name:
            kind = self._value(scope, node.type) if node.type else (UNKNOWN, "", "")
            scope.bind(node.name, (*kind, CALLED) if kind[0] != UNKNOWN else kind)

    def _base(self, node: ast.ImportFrom) -> Steps:
        parts = self.package.split(".") if self.package else []
        parts = parts[: len(parts) - node.level + 1] if node.level else []
        return (*parts, *(node.module.split(".") if node.module else ()))

    def _assign(self, scope: _Scope, target: ast.expr, path: Steps) -> None:
        if isinstance(target, ast.Name):
            scope.bind(target.id, path)
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and scope.class_path:
            owner = self._name(scope, target.value.id)
            if owner == (*scope.class_path.split("."), CALLED):
                found = self.attributes.setdefault(f"{scope.class_path}.{target.attr}", [])
                if path not in found:
                    found.append(path)
        elif isinstance(target, ast.Tuple | ast.List):
            for each in target.elts:
                self._assign(scope, each, (UNKNOWN, "an element of a tuple", ""))

    def _bind_parameters(self, scope: _Scope, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        given = node.args
        positional = [*given.posonlyargs, *given.args]
        defaults: dict[str, ast.expr | None] = dict(
            zip((each.arg for each in positional[::-1]), given.defaults[::-1], strict=False)
        )
        defaults |= dict(zip((each.arg for each in given.kwonlyargs), given.kw_defaults, strict=True))
        outer = scope.outer or scope
        for each in (*positional, *given.kwonlyargs):
            path: Steps = (UNKNOWN, "a parameter without a type", each.arg)
            default = defaults.get(each.arg)
            if each.annotation is not None:
                path = self._annotated(outer, each.annotation)
            elif isinstance(default, ast.Constant) and isinstance(default.value, str | bytes):
                path = self._value(outer, default)
            scope.bind(each.arg, path)
        for extra, kind in ((given.vararg, "tuple"), (given.kwarg, "dict")):
            if extra is not None:
                scope.bind(extra.arg, ("builtins", kind, CALLED))
        decorators = {each.id for each in node.decorator_list if isinstance(each, ast.Name)}
        if outer.is_class and positional and "staticmethod" not in decorators:
            of_class = "classmethod" in decorators or node.name in ("__new__", "__init_subclass__")
            path = tuple(outer.path.split("."))
            scope.names[positional[0].arg] = [path if of_class else (*path, CALLED)]

    # Types ------------------------------------------------------------------------------------------------------

    def _name(self, scope: _Scope, name: str) -> Steps:
        at: _Scope | None = scope
        while at is not None:
            if name in at.names and (at is scope or not at.is_class):
                return _agreed(at.names[name])
            at = at.outer
        if hasattr(builtins, name):
            return ("builtins", name)
        return (UNKNOWN, "a name that nothing binds", name) if not self.stars else (*self.module.split("."), name)

    def _value(self, scope: _Scope, node: ast.expr) -> Steps:  # noqa: PLR0911 - a kind of expression each
        """The path of an expression's value."""
        if isinstance(node, ast.Name):
            return self._name(scope, node.id)
        if isinstance(node, ast.Attribute):
            return _on(self._value(scope, node.value), node.attr)
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id == "super" and scope.class_path:
                return (*scope.class_path.split("."), SUPER)
            if isinstance(node.func, ast.Name) and node.func.id == "type" and len(node.args) == 1:
                instance = self._value(scope, node.args[0])
                return instance[:-1] if instance[-1] == CALLED and instance[0] != UNKNOWN else (UNKNOWN, "a class", "")
            return _on(self._value(scope, node.func), CALLED)
        if isinstance(node, ast.Constant):
            if node.value is None or node.value is ...:
                return (UNKNOWN, "None", "")
            return ("builtins", type(node.value).__name__, CALLED)
        if type(node) in _LITERALS:
            return ("builtins", _LITERALS[type(node)], CALLED)
        if isinstance(node, ast.Await | ast.NamedExpr | ast.Starred):
            return self._value(scope, node.value)
        if isinstance(node, ast.IfExp):
            return _agreed([self._value(scope, node.body), self._value(scope, node.orelse)])
        if isinstance(node, ast.BoolOp):
            return _agreed([self._value(scope, each) for each in node.values])
        if isinstance(node, ast.BinOp):
            left = self._value(scope, node.left)
            return left if left[:1] == ("builtins",) and left[-1] == CALLED else (UNKNOWN, "an operator's result", "")
        kind = "an element" if isinstance(node, ast.Subscript) else "another expression"
        return (UNKNOWN, kind, "")

    def _annotated(self, scope: _Scope, node: ast.expr) -> Steps:
        """The path of an instance of an annotation's type."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                node = ast.parse(node.value, mode="eval").body
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                return (UNKNOWN, "an annotation", "")
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            sides = [each for each in (node.left, node.right) if not _is_none(each)]
            return _agreed([self._annotated(scope, each) for each in sides])
        if isinstance(node, ast.Subscript):
            outer = self._value(scope, node.value)
            inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            if outer[-1] in _THROUGH and inner:
                return self._annotated(scope, inner[0])
            if outer[-1] == "Union":
                return _agreed([self._annotated(scope, each) for each in inner if not _is_none(each)])
            if outer[-1] in ("Type", "type") and inner:
                instance = self._annotated(scope, inner[0])
                return instance[:-1] if instance[0] != UNKNOWN else instance
            node = node.value
        path = self._value(scope, node)
        if path[0] == UNKNOWN or path[-1] in _UNTYPED:
            return (UNKNOWN, "an annotation", "")
        if path[0] == "typing":
            path = _OF_TYPING.get(path[-1], path)
        return _on(path, CALLED)

    def _class(self, scope: _Scope, node: ast.expr) -> Steps:
        """The path of a base class: Generic for Generic[T]."""
        return self._value(scope, node.value if isinstance(node, ast.Subscript) else node)

    def _finish(self, scope: _Scope, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        returns: Steps
        if node.returns is not None and not _is_none(node.returns):
            returns = self._annotated(scope.outer or scope, node.returns)
        else:
            returns = _agreed(scope.returns) if scope.returns else (UNKNOWN, "None", "")
        names = {_last(each) for each in node.decorator_list}
        self.functions[scope.path] = PyFunction(node.lineno, returns, bool(names & _PROPERTIES))

    # Calls ------------------------------------------------------------------------------------------------------

    def _read_calls(self, scope: _Scope, statement: ast.AST) -> None:
        """Read the calls in a statement's expressions; nested statements are separate items of the scope's list."""
        if isinstance(statement, ast.Return) and statement.value is not None and not _is_none(statement.value):
            path = self._value(scope, statement.value)
            if path not in scope.returns:
                scope.returns.append(path)
        for node in _expressions(statement):
            if isinstance(node, ast.Call):
                self._add_call(scope, node)

    def _add_call(self, scope: _Scope, node: ast.Call) -> None:
        name = node.func.id if isinstance(node.func, ast.Name) else _last(node.func)
        caller = scope.path + (".<body>" if scope.is_class else "" if scope.outer else ".<module>")
        self.calls.append(PyCall(caller, scope.line, name, self._value(scope, node.func)))


_STATEMENTS = (ast.stmt, ast.ExceptHandler, ast.match_case)
_PROPERTIES = frozenset(["property", "cached_property", "tf_property"])
_OF_TYPING: Mapping[str, Steps] = {
    name: ("builtins", name.lower()) for name in ("Dict", "FrozenSet", "List", "Set", "Tuple", "Text")
} | {"Text": ("builtins", "str"), "IO": ("io", "IOBase"), "TextIO": ("io", "IOBase"), "BinaryIO": ("io", "IOBase")}


def _expressions(node: ast.AST) -> Iterator[ast.AST]:
    """An expression's parts and the expression; for a statement its expressions, without nested statements."""
    if isinstance(node, ast.expr):
        yield node
    waiting = [each for each in ast.iter_child_nodes(node) if not isinstance(each, _STATEMENTS)]
    while waiting:
        each = waiting.pop()
        yield each
        waiting += ast.iter_child_nodes(each)


def _on(path: Steps, step: str) -> Steps:
    if path[0] == UNKNOWN:
        return path
    return (*path, step) if len(path) < MAX_STEPS else (UNKNOWN, "a long chain", step)


def _agreed(paths: Sequence[Steps]) -> Steps:
    """The path on which all known paths agree; paths of None are ignored, since no method is called on None."""
    known = [each for each in dict.fromkeys(paths) if each[:2] != (UNKNOWN, "None")]
    if not known:
        return paths[0] if paths else (UNKNOWN, "None", "")
    if len(known) == 1 or all(each[0] != UNKNOWN and CALLED not in each for each in known):
        return known[0]  # the first of several imports for different systems or versions
    unknown = [each for each in known if each[0] == UNKNOWN]
    return unknown[0] if unknown else (UNKNOWN, "one of several types", "")


def _last(node: ast.expr) -> str:
    if isinstance(node, ast.Call):
        return ""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
