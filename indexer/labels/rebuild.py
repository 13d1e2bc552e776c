"""The labelled texts from the fetched sources: python -m crystalperf.indexer.labels.rebuild DIR -o texts.jsonl.

The labels are committed without code; this command joins them with the sources.  It leaves out, and counts, functions
whose text has changed.  Measured functions (measured.tsv) are left out of the training set, so that they can test
models; --measured writes only them, as set `measured`, with the measured label.

The output has one JSON object a line:

    id, set, library, version, language, file, first_line, last_line, qualified_name, label, sure, weight, stratum,
    code, doc, package, class_name (null outside a class), callees (simple names, in order of appearance)
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from crystalperf.indexer.labels.functions import Located, functions_of, source_lines, text_hash
from crystalperf.indexer.labels.libraries import libraries
from crystalperf.indexer.labels.tables import DRAWS, SETS, Label, Measured, read_table
from crystalperf.indexes.errors import CrystalPerfError, InputError

_HERE = Path(__file__).parent
_CLEAR, _LIKELY = 0.75, 0.6


def rebuild(
    folder: Path, tables: Path = _HERE, draws: frozenset[str] = frozenset(DRAWS.values())
) -> Iterator[tuple[str, Label, Located | None]]:
    """(set, label, function) of every label, of the training set only these draws; None if the text has changed.

    Raises InputError if there are no labels, or a library has not been fetched.
    """
    held_out = {key for each in read_measured(tables) for key in _keys(each)}
    found = [
        (name, each)
        for name in SETS
        if (tables / f"{name}.tsv").is_file()
        for each in read_table(tables / f"{name}.tsv", Label)
        if name != "train" or (DRAWS[each.id[0]] in draws and held_out.isdisjoint(_keys(each)))
    ]
    if not found:
        raise InputError(f"{tables}: contains no labels; expected one of {', '.join(f'{name}.tsv' for name in SETS)}")
    yield from _join(found, folder)


def rebuild_measured(folder: Path, tables: Path = _HERE) -> Iterator[tuple[str, Label, Located | None]]:
    """The same for every measured function, as set `measured`; its sureness follows from the share of its device."""
    found = [("measured", as_label(each)) for each in read_measured(tables)]
    if not found:
        raise InputError(f"{tables}: contains no measured functions; expected measured.tsv")
    yield from _join(found, folder)


def read_measured(tables: Path = _HERE) -> list[Measured]:
    """The measured functions; may be empty."""
    path = tables / "measured.tsv"
    return read_table(path, Measured) if path.is_file() else []


def as_label(measured: Measured) -> Label:
    """A measured function as a labelled one; `sure` is 3 if its device has 3/4 of the time or more, 2 from 3/5 on."""
    share = getattr(measured, measured.label)
    return Label(
        measured.id,
        measured.library,
        measured.version,
        measured.file,
        measured.first_line,
        measured.last_line,
        measured.qualified_name,
        measured.text_hash,
        measured.label,
        3 if share >= _CLEAR else 2 if share >= _LIKELY else 1,
        "",
    )


def _keys(its: Label | Measured) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Keys by which two rows are the same function: its text, or its location if the text is of another version."""
    return (its.text_hash,), (its.library, its.file, its.qualified_name, str(its.first_line))


def _join(found: list[tuple[str, Label]], folder: Path) -> Iterator[tuple[str, Label, Located | None]]:
    by_library: dict[str, list[tuple[str, Label]]] = defaultdict(list)
    for name, each in found:
        by_library[each.library].append((name, each))
    for library in libraries():
        if library.name not in by_library:
            continue
        candidates: dict[str, list[Located]] = defaultdict(list)
        for located in functions_of(library, folder, {each.file for _, each in by_library[library.name]}):
            candidates[located.file].append(located)
        texts: dict[str, list[str]] = {}
        for name, each in by_library[library.name]:
            if each.file not in texts:
                path = folder / library.name / each.file
                texts[each.file] = source_lines(path) if path.is_file() else []
            yield name, each, _find(each, candidates[each.file], texts[each.file])


def _find(label: Label, candidates: list[Located], lines: list[str]) -> Located | None:
    """The labelled function: at its old lines if their text is unchanged, else where its text is now."""
    same = [each for each in candidates if each.function.qualified_name == label.qualified_name]
    if text_hash(lines[label.first_line - 1 : label.last_line]) == label.text_hash:
        # The text exists, so keep it even if the parser now gives it another name.
        same = same or [each for each in candidates if each.function.first_line == label.first_line]
        return min(same, key=lambda each: abs(each.function.first_line - label.first_line), default=None)
    length = label.last_line - label.first_line
    for each in same:
        start = each.function.first_line - 1
        if text_hash(lines[start : start + length + 1]) == label.text_hash:
            return each
    return None


def as_record(set_name: str, label: Label, located: Located) -> dict[str, object]:
    """The JSON object of one labelled function."""
    function = located.function
    return {
        "id": label.id,
        "set": set_name,
        "library": label.library,
        "version": label.version,
        "language": located.language,
        "file": label.file,
        "first_line": function.first_line,
        "last_line": function.last_line,
        "qualified_name": function.qualified_name,
        "label": label.label,
        "sure": label.sure,
        "weight": label.weight,
        "stratum": label.stratum,
        "code": function.code,
        "doc": function.doc,
        "package": function.package,
        "class_name": function.class_name,
        "callees": located.callees,
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m crystalperf.indexer.labels.rebuild", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("folder", type=Path, help="the sources that crystalperf.indexer.labels.fetch fetched")
    parser.add_argument("-o", "--output", type=Path, default=Path("texts.jsonl"))
    parser.add_argument("--tables", type=Path, default=_HERE, help="the folder of train.tsv and the others")
    parser.add_argument("--measured", action="store_true", help="the measured functions instead of the labelled ones")
    parser.add_argument(
        "--draws", default="123", help="draws of the training set to use; the shipped model learned from 12"
    )
    arguments = parser.parse_args()
    if not arguments.draws or set(arguments.draws) - set(DRAWS.values()):
        parser.error(
            f"--draws {arguments.draws}: the draws are {', '.join(DRAWS.values())}; write 12 for the first two"
        )
    found = (
        rebuild_measured(arguments.folder, arguments.tables)
        if arguments.measured
        else rebuild(arguments.folder, arguments.tables, frozenset(arguments.draws))
    )
    count, changed = 0, list[str]()
    partial = arguments.output.with_name(arguments.output.name + ".partial")
    try:
        with partial.open("w", encoding="utf-8") as opened:
            for set_name, label, located in found:
                if located is None:
                    changed.append(label.id)
                    continue
                opened.write(json.dumps(as_record(set_name, label, located), ensure_ascii=False) + "\n")
                count += 1
        partial.rename(arguments.output)
    except CrystalPerfError as error:
        partial.unlink(missing_ok=True)
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{arguments.output} cannot be written: {error.strerror}; name another file with -o", file=sys.stderr)
        return 1
    print(f"{count} texts in {arguments.output}", file=sys.stderr)
    if changed:
        print(f"{len(changed)} left out, their text has changed: {' '.join(changed[:9])} …", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
