"""Labels of typed callees, as evidence of a function's own: is a rule, or a feature of the heads, worth it?

    called="python -m indexer.baselines.called"
    $called collect --texts texts.jsonl measured.jsonl --sources DIR --jars JARS -o called.jsonl
    $called table --texts texts.jsonl --measured measured.jsonl --called called.jsonl

`collect` finds whom each labelled or measured function calls, as an index does (indexer.typed's class files,
indexer.pytyped), and writes their texts and what device APIs they reach.  `table` asks the linear heads about these
callees, each time heads that learned from other libraries, and gives the answers to the heads of the function itself.
JARS is as in indexer.baselines.callees.
"""

from __future__ import annotations

import argparse
import json
import sys
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from indexer.baselines.callees import MOST_WAYS, Calls, Hops, reached
from indexer.labels.libraries import LANGUAGES, Library, libraries, source_files
from indexer.labels.reserve import FRAMEWORKS, is_reserved
from indexer.pytyped import Linked, python_calls
from indexer.records import Function, ParsedFile
from indexer.typed import Known, Meaning, Sources, read_jars, typed_calls
from indexer.workers import parse_files
from indexes.apis import device_api
from indexes.errors import told

MOST_CALLEES = 40
"""Callees of a function that are asked about, at most: the first ones."""


# 1. Whom the labelled functions call ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Callees:
    """What types say of a function's calls, each callee once, in order of appearance."""

    devices: tuple[str, ...] = ()
    """Resources of the device APIs that it calls itself."""
    functions: tuple[int, ...] = ()
    """Functions of the same source, by number."""
    outside: int = 0
    """Methods of other packages that are no device API."""
    unknown: int = 0


def callees_of(meanings: Sequence[Meaning]) -> Callees:
    """The meanings of one function's calls together."""
    devices: list[str] = []
    functions: dict[int, None] = {}
    outside: set[tuple[str, str]] = set()
    unknown: set[tuple[str, str]] = set()
    for each in meanings:
        api = device_api(each.owner, each.name) if each.status in ("function", "functions", "outside") else None
        if api is not None:
            devices.append(api.resource)
        elif each.targets:
            functions |= dict.fromkeys(each.targets[:1] if len(each.targets) > MOST_WAYS else each.targets)
        elif each.status == "outside":
            outside.add((each.owner, each.name))
        elif each.status in ("unknown", "nowhere", "no source"):
            unknown.add((each.owner, each.name))
    return Callees(tuple(devices), tuple(functions)[:MOST_CALLEES], len(outside), len(unknown))


@dataclass(frozen=True)
class Source:
    """A library as an index has it: its functions, and whom each calls."""

    files: Sequence[ParsedFile]
    starts: Sequence[int]
    functions: Sequence[Function]
    calls: Mapping[int, Callees]


def read_source(library: Library, folder: Path, jars: Path) -> Source:
    """Parse all of a library and link its calls."""
    root = folder / library.name
    names = [path.relative_to(root).as_posix() for path in source_files(library, folder)]
    # Of a framework's reserve nothing is read, though an index would: callees there count as unknown.
    names = [name for name in names if library.name not in FRAMEWORKS or not is_reserved(name)]
    texts = ((name, LANGUAGES[name[name.rindex(".") :]], (root / name).read_bytes()) for name in names)
    files = list(parse_files(texts))
    functions = [each for file in files for each in file.functions]
    starts = [0]
    for file in files:
        starts.append(starts[-1] + len(file.functions))
    meanings: dict[int, list[Meaning]] = defaultdict(list)
    archives = sorted((jars / library.name).glob("*.jar"))
    found: Iterator[tuple[int, Meaning]] = iter(())
    if archives:
        found = typed_calls(read_jars(archives), Sources(_known(files, starts), _files_of_classes(files)))
    elif library.language == "python":
        found = python_calls(Linked.of(each.facts for each in files if each.facts), functions)
    for caller, meaning in found:
        at: int | None = caller
        while at is not None:  # a lambda's calls count for what encloses it too, as in its text
            meanings[at].append(meaning)
            position = at - starts[_file_of(starts, at)]
            function = functions[at]
            enclosing = function.enclosing if function.kind == "lambda" else None
            at = None if enclosing is None else at - position + enclosing
    return Source(files, starts, functions, {caller: callees_of(its) for caller, its in meanings.items()})


def _file_of(starts: Sequence[int], number: int) -> int:
    return bisect_right(starts, number) - 1


def _known(files: Sequence[ParsedFile], starts: Sequence[int]) -> list[Known]:
    return [
        Known(
            each.kind,
            each.name,
            ".".join(part for part in (each.package, (each.class_name or "").replace(".", "$")) if part),
            None if each.enclosing is None else start + each.enclosing,
            file.file,
            each.first_line,
            each.last_line,
        )
        for start, file in zip(starts, files, strict=False)
        for each in file.functions
    ]


def _files_of_classes(files: Sequence[ParsedFile]) -> dict[str, str]:
    return {each.class_name: file.file for file in files for each in file.classes}


def collect(texts: Sequence[Path], sources: Path, jars: Path, out: Path) -> None:
    """Write called.jsonl: `{"id": …}` lines of labelled functions, `{"key": …}` lines of those that they call."""
    by_library: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for path in texts:
        for line in path.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            by_library[record["library"]].append(record)
    with out.open("w", encoding="utf-8") as opened:
        for library in libraries():
            records = by_library.get(library.name, [])
            has_types = library.language == "python" or any((jars / library.name).glob("*.jar"))
            if not records or not has_types:
                continue
            source = read_source(library, sources, jars)
            lines = list(_lines(library.name, source, records))
            opened.writelines(json.dumps(each, ensure_ascii=False) + "\n" for each in lines)
            known = [each for each in lines if "id" in each]
            print(
                library.name,
                len(records),
                "with calls",
                len(known),
                "call functions",
                sum(bool(each["callees"]) for each in known),
                "of them",
                len(lines) - len(known),
                file=sys.stderr,
                flush=True,
            )


def _lines(library: str, source: Source, records: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    places: dict[tuple[str, str], list[int]] = defaultdict(list)
    for start, file in zip(source.starts, source.files, strict=False):
        for position, each in enumerate(file.functions):
            places[file.file, each.qualified_name].append(start + position)
    names: dict[int, tuple[str, ...]] = defaultdict(tuple)
    for start, file in zip(source.starts, source.files, strict=False):
        for call in file.calls:
            names[start + call.caller] += (call.name,)

    def calls(number: Any) -> Calls:
        its = source.calls.get(number, Callees())
        return its.devices, its.functions

    def hops(number: int) -> Hops:
        return reached([calls(number)], calls)

    wanted: dict[int, None] = {}
    for record in records:
        same = places.get((record["file"], record["qualified_name"]), ())
        if not same:
            continue
        number = min(same, key=lambda at: abs(source.functions[at].first_line - record["first_line"]))
        if number not in source.calls:
            continue
        its = source.calls[number]
        functions = [each for each in its.functions if each != number]
        wanted |= dict.fromkeys(functions)
        yield {
            "id": record["id"],
            "hops": hops(number),
            "devices": its.devices,
            "callees": [f"{library} {each}" for each in functions],
            "outside": its.outside,
            "unknown": its.unknown,
        }
    for number in wanted:
        file = source.files[_file_of(source.starts, number)]
        each = source.functions[number]
        yield {
            "key": f"{library} {number}",
            "library": library,
            "file": file.file,
            "language": file.language,
            "qualified_name": each.qualified_name,
            "code": each.code,
            "doc": each.doc,
            "package": each.package,
            "class_name": each.class_name,
            "callees": names[number],
            "has_body": each.has_body,
            "hops": hops(number),
        }


@told
def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m indexer.baselines.called", description=(__doc__ or "").split("\n")[0]
    )
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("collect", help="whom each labelled function calls")
    one.add_argument("--texts", type=Path, nargs="+", required=True)
    one.add_argument("--sources", type=Path, required=True, help="libraries that indexer.labels.fetch fetched")
    one.add_argument("--jars", type=Path, required=True, help="a folder of archives for each library")
    one.add_argument("-o", "--output", type=Path, required=True)
    arguments = parser.parse_args()
    collect(arguments.texts, arguments.sources, arguments.jars, arguments.output)


if __name__ == "__main__":
    sys.exit(main())
