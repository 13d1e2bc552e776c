"""Where measured functions stand in the sources: by file and name, and for Java by parameter types."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from crystalperf.indexer.labels.functions import Located, functions_of, source_lines, text_hash
from crystalperf.indexer.labels.libraries import libraries
from crystalperf.indexes.errors import InputError


def python_lines(source: str, qualified: str, line: int = 0) -> tuple[int, int] | None:
    """First and last line of a Python function by its __qualname__; the definition nearest to `line`."""
    found: list[tuple[int, int]] = []

    def search(node: ast.AST, path: tuple[str, ...]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                its = (*path, child.name)
                if ".".join(its) == qualified and not isinstance(child, ast.ClassDef):
                    found.append((child.lineno, child.end_lineno or child.lineno))
                search(child, its)
            else:
                search(child, path)

    search(ast.parse(source), ())
    return min(found, key=lambda lines: abs(lines[0] - line)) if found else None


def same_text(one: Path, other: Path, qualified: str) -> bool:
    """Whether two versions of a Python file have the same text of a function."""
    texts = []
    for path in (one, other):
        lines = python_lines(path.read_text(encoding="utf-8"), qualified)
        if lines is None:
            return False
        texts.append(text_hash(source_lines(path)[lines[0] - 1 : lines[1]]))
    return texts[0] == texts[1]


_ANNOTATION = re.compile(r"@\w+(?:\([^)]*\))?|\bfinal\b")


def parameter_types(signature: str) -> tuple[str, ...]:
    """The simple names of a Java method's parameter types, without their type arguments.

    >>> parameter_types("public static Path write(Path path, Iterable<? extends CharSequence> lines, OpenOption... o)")
    ('Path', 'Iterable', 'OpenOption...')
    """
    inside = signature[signature.find("(") + 1 :] if "(" in signature else ""
    depth, end = 1, len(inside)
    for position, character in enumerate(inside):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            end = position
            break
    inside = _ANNOTATION.sub(" ", inside[:end])
    previous = ""
    while previous != inside:
        previous, inside = inside, re.sub(r"<[^<>]*>", " ", inside)
    types = []
    for parameter in inside.split(","):
        words = re.sub(r"\s*(\.\.\.|\[\])", r"\1 ", parameter).split()
        if len(words) >= 2:
            simple = words[0] if words[0].endswith("...") else words[0].rpartition(".")[2]
            types.append(simple + "[]" * words[1].count("[]"))  # `byte b[]` is an array too
    return tuple(types)


def find(
    library: str, wanted: Iterable[tuple[str, str]], folder: Path, lines: Mapping[tuple[str, str], int] | None = None
) -> dict[tuple[str, str], Located]:
    """Functions by (file, name), where name is the end of the qualified name.

    Of several, the one at the first line that `lines` tells, or for Java the one with the parameter types that follow
    the name, `write(byte[],int,int)`. Raises InputError naming the first that is missing or ambiguous.
    """
    its = next(each for each in libraries() if each.name == library)
    pairs = list(wanted)
    by_file: dict[str, list[Located]] = defaultdict(list)
    for located in functions_of(its, folder, {file for file, _ in pairs}):
        by_file[located.file].append(located)
    found: dict[tuple[str, str], Located] = {}
    for file, name in pairs:
        plain, bracket, types = name.partition("(")
        same = [
            each
            for each in by_file[file]
            if f".{each.function.qualified_name}".endswith(f".{plain}")
            and (not bracket or ",".join(parameter_types(each.function.signature)) == types.rstrip(")"))
        ]
        if len(same) > 1 and lines and (file, name) in lines:
            same = [min(same, key=lambda each: abs(each.function.first_line - lines[file, name]))]
        if len(same) != 1:
            kinds = "; ".join(f"({','.join(parameter_types(each.function.signature))})" for each in same)
            raise InputError(f"{library}: {file} has {len(same)} functions {name} {kinds}")
        found[file, name] = same[0]
    return found
