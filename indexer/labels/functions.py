"""The functions of fetched libraries, as they are shown to annotators and to a training."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from indexer.labels.libraries import LANGUAGES, Library, source_files
from indexer.parse import parse_file
from indexer.records import Function

_TEST = re.compile(
    r"(?:^|/)(?:tests?|testing|testlib|test_util|testutil|mocks?|benchmarks?|examples?)(?:/|$)"
    r"|(?:^|/)(?:test_|conftest)[^/]*$|_test(?:_util|lib|_base)?\.\w+$|(?:^|/)kernel_tests/|(?:^|/)Mock[A-Z]|_tests?\.py$|(?:Test|Tests|Suite|ITCase|TestBase)\.\w+$"
)
_GENERATED = re.compile(
    r"generated (?:by|from|automatically|code)|do not (?:edit|modify)|auto-?generated|automatically generated",
    re.IGNORECASE,
)
_NOT_IN_NAMES = frozenset('{};"\n')
_HEAD_CHARS = 3000
"""How far into a file its notice of being generated is looked for."""


@dataclass(frozen=True, slots=True)
class Located:
    """A function and where it is: `file` is relative to the library's folder."""

    library: str
    version: str
    file: str
    function: Function
    callees: tuple[str, ...]  # names that its text calls, in order of name
    text_hash: str


def text_hash(code: str) -> str:
    """16 hex digits of the SHA-256 of code, blind to white space: a function keeps its hash when it is only moved."""
    return hashlib.sha256(" ".join(code.split()).encode("utf-8")).hexdigest()[:16]


def is_handwritten(file: str, head: str) -> bool:
    """Whether a file is neither a test nor generated, by its path and its first characters."""
    return not _TEST.search(file) and not _GENERATED.search(head)


def functions_of(library: Library, folder: Path, files: Iterable[str] | None = None) -> Iterator[Located]:
    """The functions with a body of a library's files (of all, or of those named), in order of file and line.

    Lambdas and the code of class bodies are left out: they have no name to look up in a sample. Tests and generated
    files are left out unless `files` names them. Raises InputError where the library has not been fetched.
    """
    root = folder / library.name
    paths = source_files(library, folder) if files is None else [root / file for file in sorted(set(files))]
    names = [path.relative_to(root).as_posix() for path in paths]
    with ProcessPoolExecutor(max_workers=2) as pool:
        jobs = ((library, str(path), name, files is None) for path, name in zip(paths, names, strict=True))
        for found in pool.map(_of_file, jobs, chunksize=16):
            yield from found


def _of_file(job: tuple[Library, str, str, bool]) -> list[Located]:
    library, path, file, only_handwritten = job
    source = Path(path).read_bytes()
    if only_handwritten and not is_handwritten(file, source[:_HEAD_CHARS].decode("utf-8", "replace")):
        return []
    parsed = parse_file(source, LANGUAGES[PurePosixPath(file).suffix], file)
    callees: dict[int, list[str]] = {}
    for call in parsed.calls:
        callees.setdefault(call.caller, []).append(call.name)
    return [
        Located(
            library.name,
            library.version,
            file,
            function,
            tuple(sorted(set(callees.get(position, ())))),
            text_hash(function.code),
        )
        for position, function in enumerate(parsed.functions)
        if function.has_body
        and function.kind not in ("lambda", "initialiser")
        # C++ macros can lead the grammar astray; what it then takes for a name is half a file.
        and not set(function.qualified_name) & _NOT_IN_NAMES
    ]
