"""The functions of fetched libraries, as annotators and trainings get them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from crystalperf.indexer.labels.libraries import LANGUAGES, Library, source_files
from crystalperf.indexer.records import Function, Language, ParsedFile
from crystalperf.indexer.workers import parse_files

_TEST = re.compile(
    r"(?:^|/)(?:tests?|testing|testlib|test_util|testutil|mocks?|benchmarks?|examples?|kernel_tests)(?:/|$)"
    r"|(?:^|/)(?:test_|conftest|Mock[A-Z])[^/]*$|_test(?:_util|lib|_base)?\.\w+$|_tests?\.py$"
    r"|(?:Test|Tests|Suite|ITCase|TestBase)\.\w+$"
)
_GENERATED = re.compile(
    r"generated (?:by|from|automatically|code)|do not (?:edit|modify)|auto-?generated|automatically generated",
    re.IGNORECASE,
)
_NOT_IN_NAMES = frozenset('{};"\n\t')
HEAD_BYTES = 3000
"""Bytes at the start of a file that are searched for a notice that it is generated."""


@dataclass(frozen=True, slots=True)
class Located:
    """A function and its location; `file` is relative to the library's folder."""

    library: str
    version: str
    file: str
    language: Language
    function: Function
    callees: tuple[str, ...]  # simple names of callees, in order of appearance
    text_hash: str  # of its lines, see text_hash()


def text_hash(lines: Iterable[str]) -> str:
    """16 hex digits of the SHA-256 of source lines, ignoring white space.

    The hash covers lines, not the parser's result, so that labels outlive changes of the parser.
    """
    return hashlib.sha256(" ".join(" ".join(lines).split()).encode("utf-8")).hexdigest()[:16]


def source_lines(path: Path) -> list[str]:
    """The lines of a file, as the parser counts them."""
    return path.read_bytes().decode("utf-8", "replace").split("\n")


def is_handwritten(file: str, head: str) -> bool:
    """Whether a file is neither a test nor generated, by its path and its first characters."""
    return not _TEST.search(file) and not _GENERATED.search(head)


def functions_of(library: Library, folder: Path, files: Iterable[str] | None = None) -> Iterator[Located]:
    """The functions with a body in the files of a library (all, or those named), in order of file and line.

    Lambdas and the code of class bodies are left out, because they have no name to look up in a sample.  Tests and
    generated files are left out unless `files` names them.  A named file that does not exist has no functions.  Raises
    InputError if the library has not been fetched.
    """
    root = folder / library.name
    names = [path.relative_to(root).as_posix() for path in source_files(library, folder)]
    if files is not None:
        requested = set(files)
        names = [name for name in names if name in requested]
    sources = (
        (name, LANGUAGES[PurePosixPath(name).suffix], text)
        for name in names
        if (text := (root / name).read_bytes())
        and (files is not None or is_handwritten(name, text[:HEAD_BYTES].decode("utf-8", "replace")))
    )
    for parsed in parse_files(sources):
        yield from _located(library, parsed, source_lines(root / parsed.file))


def _located(library: Library, parsed: ParsedFile, lines: list[str]) -> Iterator[Located]:
    callees: dict[int, dict[str, None]] = {}
    for call in parsed.calls:
        callees.setdefault(call.caller, {})[call.name] = None
    for position, function in enumerate(parsed.functions):
        # C++ macros can mislead the grammar, which then takes half a file for a name.
        readable = not set(function.qualified_name) & _NOT_IN_NAMES
        if function.has_body and function.kind not in ("lambda", "initialiser") and readable:
            yield Located(
                library.name,
                library.version,
                parsed.file,
                parsed.language,
                function,
                tuple(callees.get(position, ())),
                text_hash(lines[function.first_line - 1 : function.last_line]),
            )
