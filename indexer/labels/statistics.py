"""The figures of the dataset, computed from the committed tables.

    python -m crystalperf.indexer.labels.statistics [--write docs/dataset.md]

With --write the figures replace the text between the two `figures` marks of the data card.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from crystalperf.indexer.labels.agreement import Pair, class_agreement, cohen_kappa, confusion, pairs
from crystalperf.indexer.labels.libraries import Library, libraries
from crystalperf.indexer.labels.tables import CLASSES, DRAWS, SETS, Audit, Label, Reading, read_table
from crystalperf.indexes.errors import CrystalPerfError, InputError

_HERE = Path(__file__).parent
_MARKS = re.compile(r"(<!-- figures: [^>]*-->\n).*?(<!-- end of figures -->)", re.DOTALL)


def report(tables: Path = _HERE) -> str:
    """All figures as Markdown: counts, agreement, confusion, audit."""
    labels = {name: _read(tables / f"{name}.tsv", Label) for name in SETS}
    readings = _read(tables / "readings.tsv", Reading)
    parts = [
        "### Labels by set and class\n\n" + _by_set(labels),
        "### Training labels by draw\n\n" + _counts(labels["train"], lambda label, _: DRAWS[label.id[0]], "draw"),
        "### Training labels by language\n\n" + _counts(labels["train"], lambda _, its: its.language, "language"),
        "### Training labels by library\n\n" + _by_library(labels["train"]),
        "### Training labels by sureness\n\n" + _by_sureness(labels["train"]),
        "### Agreement of two independent readings\n\n" + _agreement(readings),
        "### What was confused with what\n\n" + _confusion(list(pairs(readings).values())),
    ]
    if audits := _read(tables / "audit.tsv", Audit):
        parts.append("### Audit\n\n" + _audit(audits))
    return "\n\n".join(parts)


def _read(path: Path, kind: type) -> list:  # type: ignore[type-arg]
    return read_table(path, kind) if path.is_file() else []


def _by_set(labels: dict[str, list[Label]]) -> str:
    rows = []
    for name, its in labels.items():
        counts, total = Counter(each.label for each in its), sum(each.weight for each in its)
        rows.append([name, len(its), *(counts[label] for label in CLASSES)])
        if name != "train" and total:
            natural = [sum(each.weight for each in its if each.label == label) / total for label in CLASSES]
            rows.append([f"{name}, natural mix", "", *(f"{100 * share:.1f} %" for share in natural)])
    return _table(["set", "all", *CLASSES], rows)


def _counts(labels: Sequence[Label], key: Callable[[Label, Library], str], title: str) -> str:
    by_name = {library.name: library for library in libraries()}
    order = {library.name: number for number, library in enumerate(libraries())}
    group = {each.id: key(each, by_name[each.library]) for each in labels}
    counts = Counter((group[each.id], each.label) for each in labels)
    # By draw, in the order of the libraries.
    in_turn = sorted(labels, key=lambda each: (each.id[0], order[each.library]))
    names = dict.fromkeys(group[each.id] for each in in_turn)
    rows = [
        [name, sum(counts[name, label] for label in CLASSES), *(counts[name, label] for label in CLASSES)]
        for name in names
        if any(counts[name, label] for label in CLASSES)
    ]
    return _table([title, "all", *CLASSES], rows)


def _by_library(labels: Sequence[Label]) -> str:
    counts = Counter((each.library, each.label) for each in labels)
    rows = [
        [library.name, library.version, library.licence, library.language]
        + [counts[library.name, label] for label in CLASSES]
        for library in libraries()
        if library.set == "train" and any(counts[library.name, label] for label in CLASSES)
    ]
    return _table(["library", "version", "licence", "language", *CLASSES], rows)


def _by_sureness(labels: Sequence[Label]) -> str:
    counts = Counter((each.label, each.sure) for each in labels)
    rows = [[label, *(counts[label, sure] for sure in (3, 2, 1))] for label in CLASSES]
    return _table(["class", "certain (3)", "likely (2)", "guess (1)"], rows)


def _agreement(readings: Sequence[Reading]) -> str:
    sets = {each.id: each.set for each in readings}
    both = pairs(readings)
    rows = []
    for name in ("all", *SETS):
        its = [pair for identifier, pair in both.items() if name in ("all", sets[identifier])]
        if its:
            same = sum(one == other for one, other in its) / len(its)
            by_class = [_share(class_agreement(its, label)) for label in CLASSES]
            rows.append([name, len(its), f"{100 * same:.1f} %", _number(cohen_kappa(its)), *by_class])
    return _table(["set", "read twice", "agree", "Cohen's κ", *CLASSES], rows)


def _confusion(both: Sequence[Pair]) -> str:
    counts = confusion(both)
    rows = [[one, *(counts.get((one, other), "") for other in CLASSES)] for one in CLASSES]
    return _table(["", *CLASSES], rows)


def _audit(audits: Sequence[Audit]) -> str:
    rows = []
    for name in ("cpu", "disk", "net", "all"):
        its = [each for each in audits if name in (each.label, "all")]
        wrong = sum(each.label != each.reading for each in its)
        rows.append([name, len(its), wrong, f"{100 * wrong / len(its):.1f} %" if its else ""])
    return _table(["label", "read once more", "differs", "error rate"], rows)


def _table(heading: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [heading, ["---"] * len(heading), *([str(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _share(value: float) -> str:
    return "" if math.isnan(value) else f"{100 * value:.1f} %"


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.3f}"


def with_figures(card: str, figures: str) -> str:
    """A data card with its figures replaced.  Raises InputError if it has no marks."""
    if not _MARKS.search(card):
        raise InputError("the data card lacks its marks <!-- figures: … --> and <!-- end of figures -->")
    return _MARKS.sub(lambda match: f"{match[1]}\n{figures}\n\n{match[2]}", card)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m crystalperf.indexer.labels.statistics", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--tables", type=Path, default=_HERE, help="the folder of train.tsv and the others")
    parser.add_argument("--write", type=Path, metavar="CARD", help="put the figures into this data card")
    arguments = parser.parse_args()
    try:
        figures = report(arguments.tables)
        if arguments.write:
            card = arguments.write.read_text(encoding="utf-8")
            arguments.write.write_text(with_figures(card, figures), encoding="utf-8")
    except CrystalPerfError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{arguments.write} cannot be read or written: {error.strerror}", file=sys.stderr)
        return 1
    print(figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
