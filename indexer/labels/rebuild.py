"""The labelled texts from the fetched sources: python -m indexer.labels.rebuild DIR -o texts.jsonl.

The labels are committed without any code; this puts both together again, and leaves out, with a count, what no longer
has the text that was labelled. One JSON object a line:

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

from indexer.labels.functions import Located, functions_of, source_lines, text_hash
from indexer.labels.libraries import libraries
from indexer.labels.tables import SETS, Label, read_table
from indexes.errors import CrystalPerfError, InputError

_HERE = Path(__file__).parent


def rebuild(folder: Path, tables: Path = _HERE) -> Iterator[tuple[str, Label, Located | None]]:
    """(set, label, function) of every label; None where the sources no longer hold the labelled text.

    Raises InputError where nothing has been labelled or a library has not been fetched.
    """
    found = [
        (name, each)
        for name in SETS
        if (tables / f"{name}.tsv").is_file()
        for each in read_table(tables / f"{name}.tsv", Label)
    ]
    if not found:
        raise InputError(f"{tables} holds no labels: there is none of {', '.join(f'{name}.tsv' for name in SETS)}")
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
    """The labelled function: at its old lines where their text is unchanged, else wherever its text is now."""
    same = [each for each in candidates if each.function.qualified_name == label.qualified_name]
    if text_hash(lines[label.first_line - 1 : label.last_line]) == label.text_hash:
        # The text is there, so a parser that names it otherwise must not lose it.
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
        prog="python -m indexer.labels.rebuild", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("folder", type=Path, help="the sources that indexer.labels.fetch fetched")
    parser.add_argument("-o", "--output", type=Path, default=Path("texts.jsonl"))
    parser.add_argument("--tables", type=Path, default=_HERE, help="the folder of train.tsv and the others")
    arguments = parser.parse_args()
    count, changed = 0, list[str]()
    partial = arguments.output.with_name(arguments.output.name + ".partial")
    try:
        with partial.open("w", encoding="utf-8") as opened:
            for set_name, label, located in rebuild(arguments.folder, arguments.tables):
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
