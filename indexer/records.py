"""What the parser finds in one source file.

ParsedFile
├── functions  Function, in order of appearance: a function's number is its position
├── classes    ClassLines: which JVM classes the file declares, and where
├── calls      Call: which names a function's text calls
├── errors     what could not be read, one sentence each
└── facts      of Python: what the file says of types
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

    An initialiser stands for what runs in `<init>` and `<clinit>` besides constructors: field initialisers, and in
    Scala the primary constructor.  Its lines are those of the class, its code the class without its members that
    are functions or classes themselves.
    """

    kind: FunctionKind
    name: str
    """Simple name; `<init>`, `<clinit>`, `<lambda>`, `<module>` and `<body>` (Python's class) where source has none."""
    qualified_name: str
    """Package, classes, enclosing functions and name, joined as the language does."""
    package: str
    class_name: str | None
    """Enclosing type within the package, nested ones by '.', `<anonymous>` for those without a name."""
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
    """Names in frames, demangled; empty for lambdas, whose names are numbers, and for what has no body."""
    has_body: bool
    """False for abstract methods and native ones."""


@dataclass(frozen=True, slots=True)
class ClassLines:
    """A named class a frame may show, with the lines of its declaration."""

    class_name: str
    first_line: int
    last_line: int


@dataclass(frozen=True, slots=True)
class Call:
    """A name that a function calls; once per caller and name.  A lambda's calls count for what encloses it too."""

    caller: int
    name: str
    receiver: str
    """The text before the dot at the first such call, '' for none or one too long to be a name."""


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """What the parser found in a file, in its order; `errors` are what it could not make sense of."""

    file: str
    language: Language
    size_bytes: int
    functions: tuple[Function, ...] = ()
    classes: tuple[ClassLines, ...] = ()
    calls: tuple[Call, ...] = ()
    errors: tuple[str, ...] = ()
    facts: PyFacts | None = None


def starts(parsed: Sequence[ParsedFile]) -> tuple[int, ...]:
    """Where each file's functions start in an index's numbering."""
    return tuple(accumulate((len(each.functions) for each in parsed[:-1]), initial=0))[: len(parsed)]
