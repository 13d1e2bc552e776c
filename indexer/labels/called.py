"""Collect the typed callees of the labelled functions: python -m crystalperf.indexer.labels.called.

    python -m crystalperf.indexer.labels.called --texts texts.jsonl measured.jsonl --sources DIR --jars JARS \\
        -o called.jsonl

The calls of each labelled or measured function are resolved as in an index (indexer.typed, indexer.pytyped).  Lines of
called.jsonl are functions (`id`: their callees, and the distances to device APIs) and callees (`key`: their texts).
`indexer.labels.fetch` fetches sources and archives.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crystalperf.indexer.evidence import DEVICES, Called, Callees, callees_by_caller
from crystalperf.indexer.labels.libraries import LANGUAGES, Library, libraries, source_files
from crystalperf.indexer.labels.reserve import FRAMEWORKS, is_reserved
from crystalperf.indexer.pytyped import Linked, python_calls
from crystalperf.indexer.records import Function, ParsedFile, starts
from crystalperf.indexer.typed import Known, Meaning, Sources, read_jars, typed_calls
from crystalperf.indexer.workers import parse_files
from crystalperf.indexes.errors import report_errors


@dataclass(frozen=True)
class Source:
    """A parsed library: its functions and their calls."""

    files: Sequence[ParsedFile]
    functions: Sequence[Function]
    known: Sequence[Known]
    """The same functions, by the same numbers."""
    calls: Mapping[int, Callees]


def read_source(library: Library, folder: Path, jars: Path) -> Source:
    """Parse a whole library and resolve its calls."""
    root = folder / library.name
    names = [path.relative_to(root).as_posix() for path in source_files(library, folder)]
    # Unlike an index, this reads no reserved files of a framework: callees there count as unknown.
    names = [name for name in names if library.name not in FRAMEWORKS or not is_reserved(name)]
    texts = ((name, LANGUAGES[name[name.rindex(".") :]], (root / name).read_bytes()) for name in names)
    files = list(parse_files(texts))
    functions = [each for file in files for each in file.functions]
    within = Sources.of(files)
    archives = sorted((jars / library.name).glob("*.jar"))
    found: Iterator[tuple[int, Meaning]] = iter(())
    if archives:
        found = typed_calls(read_jars(archives), within)
    elif library.language == "python":
        found = python_calls(Linked.of(each.facts for each in files if each.facts), functions)
    return Source(files, functions, within.functions, callees_by_caller(found, within.functions))


def collect(texts: Sequence[Path], sources: Path, jars: Path, out: Path) -> None:
    """Write called.jsonl: `{"id": …}` lines of labelled functions, `{"key": …}` lines of their callees."""
    by_library: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for path in texts:
        for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
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
    for number, (each, at) in enumerate(zip(source.functions, source.known, strict=True)):
        places[at.file, each.qualified_name].append(number)
    names: dict[int, tuple[str, ...]] = defaultdict(tuple)
    for start, file in zip(starts(source.files), source.files, strict=True):
        for call in file.calls:
            names[start + call.caller] += (call.name,)

    nearest = Called.of(source.calls, [each.name for each in source.known]).nearest.tolist()
    needed: dict[int, None] = {}
    for record in records:
        same = places.get((record["file"], record["qualified_name"]), ())
        if not same:
            continue
        number = min(same, key=lambda at: abs(source.functions[at].first_line - record["first_line"]))
        if number not in source.calls:
            continue
        its = source.calls[number]
        functions = [each for each in its.functions if each != number]
        needed |= dict.fromkeys(functions)
        yield {
            "id": record["id"],
            "hops": {device: far for device, far in zip(DEVICES, nearest[number], strict=True) if far},
            "devices": its.devices,
            "callees": [f"{library} {each}" for each in functions],
            "outside": its.outside,
            "unknown": its.unknown,
        }
    languages = {each.file: each.language for each in source.files}
    for number in needed:
        each, place = source.functions[number], source.known[number].file
        yield {
            "key": f"{library} {number}",
            "library": library,
            "file": place,
            "language": languages[place],
            "qualified_name": each.qualified_name,
            "code": each.code,
            "doc": each.doc,
            "package": each.package,
            "class_name": each.class_name,
            "callees": names[number],
            "has_body": each.has_body,
        }


@report_errors
def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m crystalperf.indexer.labels.called", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--texts", type=Path, nargs="+", required=True, help="labelled functions, then measured ones")
    parser.add_argument("--sources", type=Path, required=True, help="libraries from crystalperf.indexer.labels.fetch")
    parser.add_argument("--jars", type=Path, required=True, help="their archives, from the same command")
    parser.add_argument("-o", "--output", type=Path, required=True)
    arguments = parser.parse_args()
    collect(arguments.texts, arguments.sources, arguments.jars, arguments.output)


if __name__ == "__main__":
    sys.exit(main())
