"""Do frames find their functions?  Every line of every class file of a framework, asked of the index.

    python -m lab.checks.names spark-4.0.1 JARS SOURCES
    python -m lab.checks.names flink-1.20.3 JARS SOURCES
    python -m lab.checks.names python-3.11 LIBRARY          the same for Python, by the line tables of its own compiler

JARS is a folder of the framework's jars (pyspark ships Spark's; Maven has Flink's), SOURCES one of the -sources.jar
files that the index was built from (<cache>/sources/NAME-VERSION after `crystalperf index build`).
javap reads each class's methods and line tables; each (class, method, line) is resolved in the index.  A class counts
when its module's sources have a file of the name the class was compiled from.

What javap can tell is the method.  A frame found the right function where the function has that name, or is a lambda
within it, or is the constructor or initialiser for `<init>` and `<clinit>`.  Whether a class writes a method at all is
decided by looking for its name after `def`, `lazy val` or before `(` in the lines of the class, not by the parser under
test; what a class does not write (accessors of fields, forwarders to traits, members of case classes) is counted apart.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

import duckdb
import numpy as np

from crystalperf.indexes.exports import locate
from crystalperf.indexes.names import demangle
from crystalperf.indexes.store import attach
from crystalperf.query.attribution.code.resolve import attached, resolve

CLASSES_A_CALL = 1000

_COMPILED_FROM = re.compile(r'^Compiled from "(.+)"')
_CLASS = re.compile(r"^(?!Compiled)(?:[^ ].*?)?\b(?:class|interface) ([^\s<{]+)")
_METHOD = re.compile(r"^  (?! ).*?([^\s(]+)\(.*\).*;$")
_SCALA_DEFINITION = re.compile(r"\b(?:def|lazy\s+val)\s+`?([\w$]+|[^\s\w(\[`]+)")
_JAVA_DEFINITION = re.compile(r"(\w+)[>\]\[]*\s+(\w+)\s*\(")
_JAVA_KEYWORDS = frozenset(
    ["return", "new", "else", "throw", "case", "assert", "if", "while", "for", "switch", "catch"]
)
_LINE = re.compile(r"^\s+line (\d+): \d+$")


@dataclass(frozen=True, slots=True)
class Lines:
    """A method of a class file."""

    class_name: str
    source: str
    method: str
    lines: tuple[int, ...]


def read_jar(jar: Path) -> Iterator[Lines]:
    """The line table of each method in a jar."""
    with zipfile.ZipFile(jar) as archive:
        names = [each[: -len(".class")].replace("/", ".") for each in archive.namelist() if each.endswith(".class")]
    for start in range(0, len(names), CLASSES_A_CALL):
        # Names with operators ($colon) are safe here: no shell is involved.
        command = ["javap", "-l", "-p", "-cp", str(jar), *names[start : start + CLASSES_A_CALL]]
        output = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        yield from _read(output)


def _read(output: str) -> Iterator[Lines]:
    source, class_name, method, lines = "", "", "", list[int]()
    for text in output.split("\n"):
        if match := _LINE.match(text):
            lines.append(int(match[1]))
            continue
        if text.startswith("    ") or not text:
            continue
        if lines:
            yield Lines(class_name, source, method, tuple(sorted(set(lines))))
            lines = []
        if match := _COMPILED_FROM.match(text):
            source = match[1]
        elif text.strip() == "static {};":
            method = "<clinit>"
        elif match := _METHOD.match(text):
            method = "<init>" if match[1] == class_name else match[1]
        elif match := _CLASS.match(text):
            class_name = match[1]
    if lines:
        yield Lines(class_name, source, method, tuple(sorted(set(lines))))


def main(index_name: str, jars: Path, sources: Path) -> None:
    texts: dict[str, dict[str, str]] = {}
    for archive_path in sorted(sources.glob("*-sources.jar")):
        module = archive_path.name.removesuffix("-sources.jar")
        with zipfile.ZipFile(archive_path) as archive:
            kept = [each for each in archive.namelist() if each.endswith((".scala", ".java"))]
            by_name = texts.setdefault(module, {})
            for each in kept:
                name = each.rpartition("/")[2]
                by_name[name] = by_name.get(name, "") + archive.read(each).decode("utf-8", "replace")
    chosen = [jar for jar in sorted(jars.glob("*.jar")) if jar.name.removesuffix(".jar") in texts]
    with ThreadPoolExecutor(2) as pool:
        methods = [
            (jar.name.removesuffix(".jar"), each)
            for jar, found in zip(chosen, pool.map(lambda jar: list(read_jar(jar)), chosen), strict=True)
            for each in found
        ]
    everything = len(methods)
    methods = [(module, each) for module, each in methods if each.source in texts[module]]
    print(f"{len(chosen)} jars, {everything} methods with lines, {len(methods)} of them in files of the sources")

    owner = np.repeat(np.arange(len(methods)), [len(each.lines) for _, each in methods])
    columns = {
        "frame_id": np.arange(len(owner)),
        "class_name": np.array([methods[at][1].class_name for at in owner], dtype=object),
        "method": np.array([methods[at][1].method for at in owner], dtype=object),
        "line": np.concatenate([each.lines for _, each in methods]).astype(np.int32),
    }
    connection = duckdb.connect()
    attach(connection, locate(index_name), "index", "truth")
    connection.execute("CREATE TABLE frames AS SELECT * FROM columns")
    del columns["frame_id"]
    started = time.monotonic()
    result = resolve(connection, "frames", attached([("truth", index_name)]))
    seconds = time.monotonic() - started
    print(f"{len(owner)} frames resolved in {seconds:.1f} s")
    answers = connection.execute(
        f"SELECT how, kind, qualified_name, first_line FROM {result} LEFT JOIN truth.functions USING (function_id)"
        " ORDER BY frame_id"
    ).fetchall()

    total: Counter[str] = Counter()
    wrong: Counter[tuple[str, str]] = Counter()
    examples: dict[str, list[str]] = {}
    written: dict[tuple[str, str], frozenset[str]] = {}
    extents: dict[tuple[str, str], tuple[int, int]] = {}
    for module, method in methods:
        low, high = extents.get((module, method.class_name), (method.lines[0], method.lines[-1]))
        extents[module, method.class_name] = (min(low, method.lines[0]), max(high, method.lines[-1]))
    split = {(module, name): text.split("\n") for module, by_name in texts.items() for name, text in by_name.items()}
    for at, line, (how, kind, qualified_name, _) in zip(owner, columns["line"], answers, strict=True):
        module, method = methods[at]
        meaning = demangle(method.method)
        key = (module, method.class_name)
        if key not in written:
            low, high = extents[key]
            written[key] = written_names("\n".join(split[module, method.source][max(0, low - 2) : high]))
        shown = f"{method.class_name}.{method.method}:{line} → {qualified_name}"
        is_lambda = meaning.is_lambda or "$$anonfun$" in method.class_name
        if meaning.name not in written[key] and not is_lambda:
            total["not in source"] += 1
            total["not in source, resolved"] += how in ("line", "name")
            continue
        total["in source"] += 1
        total["resolved"] += how in ("line", "name")
        if how not in ("line", "name"):
            examples.setdefault(f"not resolved ({how})", []).append(shown)
            continue
        if on_class_line(method, kind, split[module, method.source]):
            total["made by the compiler on the class's line"] += 1
            continue
        total["told by javap"] += 1
        if is_right(lambda_owner(method, meaning.name), is_lambda, kind, qualified_name, written[key]):
            total["right"] += 1
        else:
            wrong[module, method.class_name] += 1
            examples.setdefault("another function", []).append(shown)

    for name, count in total.items():
        print(f"{name:45} {count:9,}")
    print(f"resolved          {100 * total['resolved'] / total['in source']:.3f} % of lines of methods in the source")
    print(f"right function    {100 * total['right'] / total['told by javap']:.3f} % of lines where javap can tell")
    for name, shown_ones in examples.items():
        print(f"\n{name}: {len(shown_ones)}")
        for each in shown_ones[:: max(1, len(shown_ones) // 25)]:
            print("   ", each)


def check_python(index_name: str, library: Path) -> None:
    """Every line of every code object that Python compiles from the library, asked of the index.

    The right function is the one that starts at `co_firstlineno` and has the code object's name; comprehensions
    belong to the function around them.
    """
    connection = duckdb.connect()
    attach(connection, locate(index_name), "index", "truth")
    indexed = [row[0] for row in connection.execute("SELECT DISTINCT file FROM truth.functions").fetchall()]
    frames: list[tuple[str, str, int, int]] = []
    for file in indexed:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = compile((library / file).read_bytes(), file, "exec", dont_inherit=True)
        waiting = [(module, module.co_name, 1)]
        while waiting:
            code, name, first = waiting.pop()
            path = str(library / file)
            frames += [(path, name, line, first) for line in {each for *_, each in code.co_lines()} if line]
            for inner in (each for each in code.co_consts if isinstance(each, CodeType)):
                is_part = inner.co_name in ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
                own = (name, first) if is_part else (inner.co_name, inner.co_firstlineno)
                waiting.append((inner, *own))
    columns = {
        "frame_id": np.arange(len(frames)),
        "class_name": np.array([each[0] for each in frames], dtype=object),
        "method": np.array([each[1] for each in frames], dtype=object),
        "line": np.array([each[2] for each in frames], np.int32),
    }
    connection.execute("CREATE TABLE frames AS SELECT * FROM columns")
    del columns["frame_id"]
    result = resolve(connection, "frames", attached([("truth", index_name)]))
    answers = connection.execute(
        f"SELECT how, first_line, qualified_name FROM {result} LEFT JOIN truth.functions USING (function_id)"
        " ORDER BY frame_id"
    ).fetchall()
    resolved = sum(how == "line" for how, _, _ in answers)
    wrong = [
        (frame, found)
        for frame, found in zip(frames, answers, strict=True)
        if found[0] == "line" and found[1] != frame[3] and not (frame[1] == "<module>" and found[1] == 1)
    ]
    print(f"{len(indexed)} files, {len(frames):,} lines of code objects")
    print(f"resolved          {100 * resolved / len(frames):.3f} %")
    print(f"right function    {100 * (1 - len(wrong) / resolved):.3f} %")
    for frame, found in wrong[:: max(1, len(wrong) // 25)]:
        print("   ", *frame, "→", *found)


def written_names(text: str) -> frozenset[str]:
    """The names of all functions written in a text, found without a parser; constructors always are."""
    scala = _SCALA_DEFINITION.findall(text)
    java = [name for before, name in _JAVA_DEFINITION.findall(text) if before not in _JAVA_KEYWORDS]
    return frozenset([*scala, *java, "<init>", "<clinit>", "$init$"])


def on_class_line(method: Lines, kind: str | None, source_lines: list[str]) -> bool:
    """Forwarders to traits and members of case classes: one line, that of the class, while the method is elsewhere."""
    if method.method in ("<init>", "<clinit>") or len(method.lines) != 1 or kind != "initialiser":
        return False
    line = source_lines[method.lines[0] - 1] if method.lines[0] <= len(source_lines) else ""
    return bool(re.search(r"\b(class|object|trait|enum|new|record|interface)\b", line)) and "def " not in line


def lambda_owner(method: Lines, name: str) -> str:
    """The method that a lambda stands in; partial functions are classes `Outer$$anonfun$method$1`."""
    inner = re.search(r"\$\$anonfun\$(\w+?)\$\d+", method.class_name)
    return demangle(inner[1]).name if inner else "" if "$$anonfun$" in method.class_name else name


def is_right(name: str, is_lambda: bool, kind: str, qualified_name: str, written: frozenset[str]) -> bool:
    """Whether a function is what a method's name in a class file says; `written` are the functions of its class."""
    if name in ("<init>", "<clinit>", "$init$") and not is_lambda:
        return kind in ("constructor", "initialiser")
    parts = qualified_name.split(".")
    if is_lambda:
        # Lambdas of a field are named after it.
        of_field = name not in written and kind in ("lambda", "initialiser")
        return name in parts or of_field or name in ("", "<init>", "<clinit>", "$init$")
    return parts[-1] == name


if __name__ == "__main__":
    if len(sys.argv) == 3:
        check_python(sys.argv[1], Path(sys.argv[2]))
    else:
        main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
