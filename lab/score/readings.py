"""Annotators' labels of functions against measurements (paper, §3.4).

    python -m lab.score.readings [--write docs/dataset.md]

compares the committed tables `measured` and `measured_readings` in indexer/labels.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from crystalperf.indexer.labels.agreement import cohen_kappa
from crystalperf.indexer.labels.libraries import libraries
from crystalperf.indexer.labels.tables import CLASSES, Measured, Reading, committed, read_table
from crystalperf.indexes.errors import report_errors
from lab.pages import put

_CLEAR = 0.6
"""A label with at least this share is clear: 1.5 times all other shares together."""


def caller_label(its: Measured) -> str:
    """The label by the caller's clock alone, without writes of the kernel after the return."""
    parts = {"cpu": its.cpu, "disk": its.disk - its.deferred, "net": its.net, "wait": its.wait}
    return max(parts, key=lambda name: parts[name])


def report(measured: Sequence[Measured], readings: Sequence[Reading]) -> str:
    """The measurements, and the agreement of labels with them, as Markdown."""
    parts = ["### Measured functions by library and class\n\n" + _by_library(measured)]
    by_id = {each.id: each for each in measured}
    pairs = [(by_id[each.id], each) for each in readings if each.id in by_id]
    if pairs:
        parts += [
            "### Reading against measuring\n\n" + _agreement(pairs),
            "### What was read (rows) as what was measured (columns)\n\n" + _confusion(pairs),
        ]
    return "\n\n".join(parts)


def _by_library(measured: Sequence[Measured]) -> str:
    counts = Counter((each.library, each.label) for each in measured)
    rows: list[list[object]] = [
        [name, sum(counts[name, label] for label in CLASSES), *(counts[name, label] for label in CLASSES)]
        for name in dict.fromkeys(library.name for library in libraries())
        if any(counts[name, label] for label in CLASSES)
    ]
    rows.append(["all", len(measured), *(sum(each.label == label for each in measured) for label in CLASSES)])
    clear = [each for each in measured if getattr(each, each.label) >= _CLEAR]
    rows.append(["clear", len(clear), *(sum(each.label == label for each in clear) for label in CLASSES)])
    caller = Counter(caller_label(each) for each in measured)
    rows.append(["by the caller's clock alone", len(measured), *(caller[label] for label in CLASSES)])
    return _table(["library", "all", *CLASSES], rows)


def _agreement(pairs: Sequence[tuple[Measured, Reading]]) -> str:
    groups: Mapping[str, list[tuple[str, str]]] = {
        "all": [(its.label, reading.label) for its, reading in pairs],
        "clear": [(its.label, reading.label) for its, reading in pairs if getattr(its, its.label) >= _CLEAR],
        "read as certain (3)": [(its.label, reading.label) for its, reading in pairs if reading.sure == 3],
        "by the caller's clock alone": [(caller_label(its), reading.label) for its, reading in pairs],
    }
    rows = []
    for name, its in groups.items():
        row: list[object] = [name, len(its), _share(sum(one == other for one, other in its), len(its))]
        row.append(f"{cohen_kappa(its):.3f}" if its else "")
        for label in CLASSES:
            read_as = [one for one, other in its if other == label]
            row.append(_share(sum(one == label for one in read_as), len(read_as)))
        rows.append(row)
    return _table(["", "functions", "agree", "Cohen's κ", *(f"read {label}" for label in CLASSES)], rows)


def _confusion(pairs: Sequence[tuple[Measured, Reading]]) -> str:
    counts = Counter((reading.label, its.label) for its, reading in pairs)
    rows: list[list[object]] = [[read, *(counts[read, truth] for truth in CLASSES)] for read in CLASSES]
    return _table(["", *CLASSES], rows)


def differences(measured: Sequence[Measured], readings: Sequence[Reading]) -> list[str]:
    """One line for each function whose label differs from its measurement, the clearest first."""
    by_id = {each.id: each for each in measured}
    differ = [(by_id[each.id], each) for each in readings if each.id in by_id and by_id[each.id].label != each.label]
    differ.sort(key=lambda pair: getattr(pair[0], pair[1].label))
    return [
        f"{its.id} read {reading.label} ({reading.sure}), measured {its.label}: cpu {its.cpu:.2f} disk {its.disk:.2f}"
        f" (deferred {its.deferred:.2f}) net {its.net:.2f} wait {its.wait:.2f} {its.library} {its.qualified_name}"
        for its, reading in differ
    ]


def _table(heading: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [heading, ["---"] * len(heading), *([str(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else ""


@report_errors
def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the figures into this page")
    given = parser.parse_args()
    measured = read_table(committed("measured"), Measured)
    readings = read_table(committed("measured_readings"), Reading)
    figures = report(measured, readings)
    if given.write:
        put(given.write, "measured", ["", figures, ""])
    print("\n".join([figures, "", *differences(measured, readings)]))


if __name__ == "__main__":
    sys.exit(main())
