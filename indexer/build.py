"""Build an index from a source: parse, classify, write.

source ─ parse (processes) ─ functions ─ classify (batches) ─ vectors ─┐
           │               └ names, calls ──────│──────────────────────┴─ index (renamed into place)
           │    class files ─┘                  │
           └────────── cache of builds ─────────┘
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from crystalperf.indexer.cache import Kept
from crystalperf.indexer.callgraph import resolve_calls
from crystalperf.indexer.catalogue import known_source
from crystalperf.indexer.evidence import Called, called_by
from crystalperf.indexer.measured import measured_shares
from crystalperf.indexer.pytyped import Linked, python_calls
from crystalperf.indexer.records import Function, ParsedFile, starts
from crystalperf.indexer.sources import Source, SourceFile, hash_file
from crystalperf.indexer.typed import Meaning, Sources, read_jars, resolve_typed_calls, typed_calls
from crystalperf.indexer.vectors import Classifier, Floats, FunctionText, Remember, Vectors
from crystalperf.indexer.workers import parse_files
from crystalperf.indexes.content import content_hash
from crystalperf.indexes.errors import BuildError
from crystalperf.indexes.exports import built_path, split_name
from crystalperf.indexes.packing import MEASURED, MODEL
from crystalperf.indexes.resources import resources
from crystalperf.indexes.store import create

BATCH = 4096
"""Functions classified at a time: large enough to be efficient, small enough to show progress."""

STEPS = 200
"""Probabilities in an index are multiples of 1/200: finer than the models, and equal on all machines."""

Warnings = list[tuple[str, str]]


def build(  # noqa: PLR0913 - what a caller may set, by keyword
    name: str,
    source: Source | None = None,
    *,
    output: Path | None = None,
    model: str | None = None,
    workers: int = 2,
    progress: bool = False,
    classifier: Classifier | None = None,
    classes: Sequence[Path] = (),
) -> Path:
    """Build the index NAME-VERSION and return its path.

    source      the source to index; None fetches a package of the catalogue
    output      the file to write; None for the user's cache, where `locate` finds it
    model       the classifiers: None for the shipped ones, else a name or path
    classifier  overrides `model`
    classes     archives with the class files of that source, from which calls are resolved by type

    Raises BuildError if there is nothing to index, or an archive of class files is invalid, and IndexFileError if the
    file is not writable.  Unreadable files are listed in the index's table `build_warnings`.
    """
    package, version = split_name(name)
    started = time.monotonic()
    warnings: Warnings = []
    with _progress(progress) as bar:
        fetching = bar.add_task("fetch", total=None, unit="")
        source = source or known_source(name, warnings)
        bar.update(fetching, total=1, completed=1)
        if classifier is None:
            classifier = _load_classifier(model)
        kept = Kept(name, classifier.identity)
        parsed, source_facts = _parse(source, kept, workers, warnings, bar)
        functions = [function for each in parsed for function in each.functions]
        if not functions:
            raise BuildError(f"{name}: no function in Scala, Java, Python or C++ found in {_listed(source.locations)}")
        calls, counts, called = _calls(parsed, functions, classes, warnings)
        measured = measured_shares(functions)
        vectors = _classify(classifier, parsed, called, measured, kept.remember, bar)
        metadata = {
            "name": package,
            "version": version,
            **source_facts,
            **_of_classifier(classifier),
            "arguments": _arguments(model, workers, classes),
            "functions": str(len(functions)),
        }
        if classes or counts:
            metadata["source_calls"] = json.dumps(dict(sorted(counts.items())))
        path = output or built_path(name)
        writing = bar.add_task("write", total=None, unit="")
        with create(path, "index", metadata) as connection:
            names = symbols(package, version, functions)
            _fill(connection, _Content(names, parsed, functions, vectors, frozenset(measured), calls, warnings))
            facts = [("content_hash", content_hash(connection, "built"))]
            facts += [("build_seconds", f"{time.monotonic() - started:.1f}")]
            connection.executemany("INSERT INTO metadata VALUES (?, ?)", facts)
        kept.write()
        bar.update(writing, total=1, completed=1)
    return path


def _arguments(model: str | None, workers: int, classes: Sequence[Path]) -> str:
    """The metadata on the arguments of build(), as JSON."""
    given = {"classes": [each.name for each in classes]} if classes else {}
    return json.dumps({"model": model, "workers": workers} | given)


def _fill(connection: duckdb.DuckDBPyConnection, content: _Content) -> None:
    for table, columns in _tables(content):
        # DuckDB reads the variable `columns` by name.
        connection.execute(f"INSERT INTO {table} ({', '.join(columns)}) SELECT * FROM columns")


def _of_classifier(classifier: Classifier) -> dict[str, str]:
    """The metadata of the classifier."""
    names = {f"model_{key.removeprefix('model_')}": str(value) for key, value in classifier.identity.items()}
    return {"resources": json.dumps(classifier.resources), **names}


def _parse(
    source: Source, kept: Kept, workers: int, warnings: Warnings, bar: Progress
) -> tuple[list[ParsedFile], dict[str, str]]:
    """All parsed files in order of path, and the metadata of the source."""
    hashes: dict[str, bytes] = {}
    parsed: list[ParsedFile] = []
    task = bar.add_task("parse", total=None, unit="files")

    def met(each: ParsedFile) -> None:
        parsed.append(each)
        warnings.extend((each.file, problem) for problem in each.errors)
        bar.update(task, total=max(len(hashes), len(parsed)), advance=1)

    def unknown(files: Iterable[SourceFile]) -> Iterator[tuple[str, Any, bytes]]:
        for each in files:
            digest = hashes[each.file] = hash_file(each)
            known = kept.file(digest)
            if known is not None:
                met(known)
            else:
                yield each.file, each.language, each.text

    for each in parse_files(unknown(source.files(warnings)), workers):
        kept.keep_file(hashes[each.file], each)
        met(each)
    bar.update(task, total=len(parsed))
    parsed.sort(key=lambda each: each.file)
    by_language = Counter(each.language for each in parsed)
    faulty = Counter(each.language for each in parsed if each.errors)
    facts = {
        "source": json.dumps([Path(each).name for each in source.locations]),
        "source_artifacts": json.dumps(source.artifacts),
        "source_origin": source.origin,
        "source_hash": hashlib.sha256(b"".join(hashes[file] for file in sorted(hashes))).hexdigest(),
        "source_files": json.dumps(dict(sorted(by_language.items()))),
        "source_files_with_errors": json.dumps(dict(sorted(faulty.items()))),
        "source_bytes": str(sum(each.size_bytes for each in parsed)),
    }
    if source.revision:
        facts["source_revision"] = source.revision
    return parsed, facts


def _callees(file: ParsedFile) -> list[tuple[str, ...]]:
    """The names that each function of a file calls."""
    names: list[list[str]] = [[] for _ in file.functions]
    for call in file.calls:
        names[call.caller].append(call.name)
    return [tuple(each) for each in names]


def _classify(
    classifier: Classifier,
    parsed: Sequence[ParsedFile],
    called: Callable[[], Called],
    measured: Mapping[int, Floats],
    remember: Remember,
    bar: Progress,
) -> Vectors:
    """The vectors of all functions, columns in the order of the schema's resources, rounded, rows summing to 1.

    `measured` are the shares of functions, by number, that replace a model's.
    """
    order = resources()
    if sorted(classifier.resources) != sorted(order):
        raise BuildError(
            f"the model has the resources {_listed(classifier.resources)}, the schema {_listed(order)}; train a model"
            " for the schema's resources"
        )
    texts = _texts(parsed)
    task = bar.add_task("classify", total=len(texts), unit="functions")
    parts = []
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        parts.append(remember(batch, classifier.judge))
        bar.update(task, advance=len(batch))
    found = classifier.vectors(np.concatenate(parts), called)
    columns = [classifier.resources.index(each) for each in order]
    combined, confidence = found.combined[:, columns], found.confidence.copy()
    for number, shares in measured.items():
        combined[number], confidence[number] = shares, shares.max()
    vectors = Vectors(
        code=_rounded(found.code[:, columns]),
        doc=_rounded(found.doc[:, columns]),
        combined=_rounded(combined),
        confidence=_in_steps(confidence).astype(np.float32),
        deciders={number: each for number, each in found.deciders.items() if number not in measured},
    )
    if len(vectors.combined) != len(texts) or not np.isfinite(vectors.combined).all():
        raise BuildError("the model did not return a vector for every function; train it again")
    return vectors


def _texts(parsed: Sequence[ParsedFile]) -> list[FunctionText]:
    """The inputs of a classifier, one for each function."""
    return [
        FunctionText(
            function.code,
            function.doc,
            file.language,
            function.qualified_name,
            function.class_name,
            function.package,
            callees,
        )
        for file in parsed
        for function, callees in zip(file.functions, _callees(file), strict=True)
    ]


def _rounded(vectors: Floats) -> Floats:
    """The rounded vectors; the largest share absorbs the rounding error, so that rows sum to 1."""
    rounded = _in_steps(vectors)
    largest = np.argmax(np.nan_to_num(rounded, nan=-1.0), axis=1)
    rows = np.arange(len(rounded))
    rounded[rows, largest] += 1.0 - rounded.sum(axis=1)
    return _in_steps(rounded).astype(np.float32)


def _in_steps(values: NDArray[Any]) -> NDArray[np.float64]:
    rounded: NDArray[np.float64] = np.round(np.round(values.astype(np.float64) * STEPS) / STEPS, 3)
    return rounded


Columns = dict[str, NDArray[Any]]


ResolvedCall = tuple[int, str, int | None]
"""Caller, name, and the called function if it is unambiguous."""


@dataclass(frozen=True)
class _Content:
    """The content of an index; `symbols` are those of the functions."""

    symbols: Iterable[str]
    parsed: Sequence[ParsedFile]
    functions: Sequence[Function]
    vectors: Vectors
    measured: frozenset[int]
    """Functions whose shares were measured, by number."""
    calls: Sequence[ResolvedCall]
    warnings: Warnings


def _tables(content: _Content) -> Iterator[tuple[str, Columns]]:
    """Each table with its columns, in an order that depends only on the source."""
    yield "functions", _function_columns(content)
    classes = sorted(
        {
            (each.class_name, file.file, each.first_line, each.last_line)
            for file in content.parsed
            for each in file.classes
        }
    )
    yield "classes", _columns(classes, ("class_name", "file", "first_line", "last_line"))
    names = sorted(
        {
            (function.runtime_class, method, number)
            for number, function in enumerate(content.functions)
            for method in function.runtime_methods
            if function.runtime_class
        }
    )
    yield "runtime_names", _columns(names, ("class_name", "method", "function_id"))
    yield (
        "calls",
        {
            "caller_id": np.array([caller for caller, _, _ in content.calls], np.int32),
            "callee_name": _objects(name for _, name, _ in content.calls),
            "callee_id": _objects(callee for _, _, callee in content.calls),
        },
    )
    yield "build_warnings", _columns(sorted(set(content.warnings)), ("file", "problem"))


def _function_columns(content: _Content) -> Columns:
    functions, vectors = content.functions, content.vectors
    files = [file for file in content.parsed for _ in file.functions]
    enclosing = [
        None if function.enclosing is None else start + function.enclosing
        for start, file in zip(starts(content.parsed), content.parsed, strict=True)
        for function in file.functions
    ]
    columns: Columns = {
        "function_id": np.arange(len(functions), dtype=np.int32),
        "symbol": _objects(content.symbols),
        "language": _objects(file.language for file in files),
        "kind": _objects(each.kind for each in functions),
        "qualified_name": _objects(each.qualified_name for each in functions),
        "package": _objects(each.package for each in functions),
        "class_name": _objects(each.class_name for each in functions),
        "enclosing_id": _objects(enclosing),
        "file": _objects(file.file for file in files),
        "first_line": np.array([each.first_line for each in functions], np.int32),
        "last_line": np.array([each.last_line for each in functions], np.int32),
        "text_hash": _objects(text_hash(each.doc, each.code) for each in functions),
        "code_chars": np.array([len(each.code) for each in functions], np.int32),
        "doc_chars": np.array([len(each.doc) for each in functions], np.int32),
    }
    for prefix, values in (("code_", vectors.code), ("doc_", vectors.doc), ("", vectors.combined)):
        for number, resource in enumerate(resources()):
            columns[prefix + resource] = np.ma.masked_invalid(values[:, number])
    columns["confidence"] = vectors.confidence
    columns["source"] = _objects(MEASURED if number in content.measured else MODEL for number in range(len(functions)))
    deciders = (vectors.deciders.get(number) for number in range(len(functions)))
    columns["decided_by"] = _objects(
        functions[each].qualified_name if isinstance(each, int) else each for each in deciders
    )
    return columns


def _calls(
    parsed: Sequence[ParsedFile], functions: Sequence[Function], classes: Sequence[Path], warnings: Warnings
) -> tuple[list[ResolvedCall], Counter[str], Callable[[], Called]]:
    """The calls of all texts, by caller and name, the number of typed calls by status, and what finds typed callees.

    Unreadable class files, and archives without a call of these functions, become warnings.
    """
    written = [
        (start + call.caller, call.name, call.receiver)
        for start, file in zip(starts(parsed), parsed, strict=True)
        for call in file.calls
    ]
    callees = resolve_calls(functions, written)
    found: list[ResolvedCall] = [(*call[:2], callee) for call, callee in zip(written, callees, strict=True)]
    typed: list[tuple[int, Meaning]] = []
    if facts := [each.facts for each in parsed if each.facts]:
        typed += python_calls(Linked.of(facts), functions)
    sources = Sources.of(parsed)
    if classes:
        graph = read_jars(classes)
        warnings += graph.problems
        meant = list(typed_calls(graph, sources))
        if not meant:
            warnings.append(
                (classes[0].name, "its class files have no call of this source; calls are resolved by name only")
            )
        typed += meant
    resolved, counts = resolve_typed_calls([call[:2] for call in found], typed, sources.functions)
    found = [
        (caller, target, None) if isinstance(target, str) else (caller, name, target)
        for caller, name, callee in found
        for target in (resolved.get((caller, name), callee),)
    ]
    return sorted(found, key=lambda call: call[:2]), counts, partial(called_by, typed, sources.functions)


def symbols(package: str, version: str, functions: Sequence[Function]) -> list[str]:
    """The symbols of all functions of a package; equal descriptors get the suffixes (+1), (+2) … in order."""
    seen: Counter[str] = Counter()
    found = []
    for function in functions:
        descriptor = function.descriptor
        repeated = seen[descriptor]
        seen[descriptor] += 1
        if repeated:
            descriptor = f"{descriptor.removesuffix('().')}(+{repeated})."
        found.append(f"{package} {version} {descriptor}")
    return found


def text_hash(doc: str, code: str) -> str:
    """First 6 hex digits of the SHA-256 of documentation and code; it differs if a function changed."""
    return hashlib.sha256(f"{doc}\0{code}".encode("utf-8", "surrogatepass")).hexdigest()[:6]


def _objects(values: Iterable[str | int | None]) -> NDArray[np.object_]:
    """A column with NULLs; DuckDB before 1.3 ignores numpy's masks on integers."""
    return np.array([*values, ""], dtype=object)[:-1]


def _columns(rows: Sequence[tuple[Any, ...]], names: Sequence[str]) -> Columns:
    found: Columns = {}
    for number, name in enumerate(names):
        values = [row[number] for row in rows]
        is_number = bool(values) and isinstance(values[0], int)
        found[name] = np.array(values, np.int32) if is_number else _objects(values)
    return found


def _load_classifier(model: str | None) -> Classifier:
    if importlib.util.find_spec("torch") is None:
        raise BuildError(
            "building an index needs the indexer's packages: `pip install '.[indexer]'` in a checkout of CrystalPerf"
        )
    from crystalperf.indexer.modelfile import load

    return load(model)


class _Rate(ProgressColumn):
    """Units per second; rich's column shows the rate only if the total is unknown."""

    def render(self, task: Task) -> str:
        speed = task.finished_speed or task.speed
        return f"{speed:,.0f}/s" if speed and task.fields["unit"] else ""


def _progress(shown: bool) -> Progress:
    return Progress(
        TextColumn("{task.description:9}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} {task.fields[unit]}"),
        _Rate(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(file=sys.stderr),
        disable=not shown,
    )


def _listed(items: Sequence[str]) -> str:
    return ", ".join(items)
