"""The parser's result for one source file.

ParsedFile
├── functions  Function, in order of appearance: a function's number is its position
├── classes    ClassLines: the JVM classes that the file declares, with their lines
├── calls      Call: the names that a function's text calls
├── errors     problems, one sentence each
└── facts      type facts of a Python file
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from crystalperf.indexer.pyfacts import PyFacts

Language = Literal["java", "scala", "python", "cpp"]
FunctionKind = Literal["function", "method", "constructor", "initialiser", "lambda"]

SUFFIXES: dict[str, Language] = {
    ".java": "java",
    ".scala": "scala",
    ".py": "python",
    ".cc": "cpp",
    ".cpp": "cpp",
    ".cxx": "cpp",
    ".cu": "cpp",
    ".h": "cpp",
    ".hh": "cpp",
    ".hpp": "cpp",
}


@dataclass(frozen=True, slots=True)
class Function:
    """A function, method, constructor, lambda, or the code of a class body (kind `initialiser`).

    An initialiser has the code of `<init>` and `<clinit>` outside of constructors: field initialisers, and in Scala
    the primary constructor.  Its lines are those of the class, its code the class without member functions and
    classes.
    """

    kind: FunctionKind
    name: str
    """Simple name; `<init>`, `<clinit>`, `<lambda>`, `<module>` or `<body>` (a Python class) if the source has none."""
    qualified_name: str
    """Package, classes, enclosing functions and name, joined as in the language."""
    package: str
    class_name: str | None
    """Enclosing type within the package; nested ones are joined by '.', `<anonymous>` for one without a name."""
    enclosing: int | None
    """Position of the function this one is nested in."""
    first_line: int
    last_line: int
    code: str
    doc: str
    """Documentation without comment marks, '' for none; a class's documentation belongs to its initialiser."""
    signature: str
    """The text from the name to the body, on one line."""
    descriptor: str
    """SCIP-like path of the function: `org/apache/spark/rdd/RDD#map().`; overloads share it."""
    runtime_class: str
    """Binary name of the declaring class as frames show it, or the dotted module of a Python file; '' if unknown."""
    runtime_methods: tuple[str, ...]
    """Demangled names in frames; empty for lambdas, whose names are numbers, and for functions without a body."""
    has_body: bool
    """False for abstract methods and native ones."""


@dataclass(frozen=True, slots=True)
class ClassLines:
    """A named class that frames may show, with the lines of its declaration."""

    class_name: str
    first_line: int
    last_line: int


@dataclass(frozen=True, slots=True)
class Call:
    """A called name, once per caller and name.  A lambda's calls also count for the enclosing function."""

    caller: int
    name: str
    receiver: str
    """The text before the dot at the first such call, '' if there is none or it is too long."""


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """The content of a parsed file, in its order; `errors` are the parts that could not be parsed."""

    file: str
    language: Language
    size_bytes: int
    functions: tuple[Function, ...] = ()
    classes: tuple[ClassLines, ...] = ()
    calls: tuple[Call, ...] = ()
    errors: tuple[str, ...] = ()
    facts: PyFacts | None = None


def starts(parsed: Sequence[ParsedFile]) -> tuple[int, ...]:
    """The number of each file's first function in the index."""
    return tuple(accumulate((len(each.functions) for each in parsed[:-1]), initial=0))[: len(parsed)]
