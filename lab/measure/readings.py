"""Reading against measuring (paper, §3.4).

    python -m lab.measure.readings batches SOURCES WORK    write WORK/batches/measured-nnn.txt for an annotator
    python -m lab.measure.readings report WORK [--write docs/dataset.md]

The batches hold the measured functions in the form of all others, without what was measured, in a random order. An
annotator's answers go to WORK/out/LETTER/measured-nnn.tsv, as those of indexer.labels.collect do; `report` puts them
into indexer/labels/measured_readings.tsv and compares. Without WORK it compares with what is committed.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from crystalperf.indexer.labels.agreement import cohen_kappa
from crystalperf.indexer.labels.functions import Located, functions_of
from crystalperf.indexer.labels.libraries import libraries
from crystalperf.indexer.labels.sample import BATCH_SIZE, show
from crystalperf.indexer.labels.tables import CLASSES, Measured, Reading, committed, read_table, write_table
from crystalperf.indexes.errors import InputError, report_errors

SET = "measured"
_MARKS = re.compile(r"(<!-- measured: [^>]*-->\n).*?(<!-- end of measured -->)", re.DOTALL)
_CLEAR = 0.6
"""A label whose share is at least this is clear: half as much again or more than all else together."""


def located(measured: Sequence[Measured], folder: Path) -> dict[str, Located]:
    """The measured functions by id, as the sources have them."""
    by_library: dict[str, list[Measured]] = defaultdict(list)
    for each in measured:
        by_library[each.library].append(each)
    found: dict[str, Located] = {}
    for library in libraries():
        its = by_library.get(library.name, [])
        places = {(each.file, each.first_line, each.qualified_name): each.id for each in its}
        for function in functions_of(library, folder, {each.file for each in its}) if its else ():
            key = (function.file, function.function.first_line, function.function.qualified_name)
            if key in places:
                found[places[key]] = function
    return found


def write_batches(measured: Sequence[Measured], folder: Path, work: Path, seed: int = 20210715) -> int:
    """Write the batches; how many there are. Raises InputError naming a function that is not in the sources."""
    functions = located(measured, folder)
    if missing := [each for each in measured if each.id not in functions]:
        raise InputError(f"{missing[0].qualified_name} of {missing[0].library} is not in {folder} any more")
    order = sorted(functions)
    random.Random(seed).shuffle(order)
    target = work / "batches"
    target.mkdir(parents=True, exist_ok=True)
    for old in target.glob("measured-*.txt"):
        old.unlink()
    starts = range(0, len(order), BATCH_SIZE)
    for start in starts:
        shown = "\n".join(show(each, functions[each]) for each in order[start : start + BATCH_SIZE])
        (target / f"measured-{start // BATCH_SIZE:03d}.txt").write_text(shown, encoding="utf-8")
    return len(starts)


def read_answers(work: Path, measured: Sequence[Measured]) -> list[Reading]:
    """The readings under WORK/out/LETTER/measured-nnn.tsv; raises InputError naming the first bad line."""
    known = {each.id for each in measured}
    readings: dict[tuple[str, str], Reading] = {}
    for path in sorted((work / "out").glob("[A-Z]/measured-*.tsv")):
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
            if not line:
                continue
            cells = line.removesuffix("\r").split("\t")
            if len(cells) != 3 or cells[0] not in known or cells[1] not in CLASSES or cells[2] not in ("1", "2", "3"):
                raise InputError(
                    f"{path}, line {number}: {line!r} is not id, label ({', '.join(CLASSES)}), sure (1 to 3)"
                )
            reading = Reading(cells[0], path.parent.name, cells[1], int(cells[2]), "independent", SET)
            if readings.setdefault((reading.id, reading.annotator), reading) is not reading:
                raise InputError(f"{path}, line {number}: {reading.annotator} read {reading.id} twice")
    return sorted(readings.values(), key=lambda each: (each.id, each.annotator))


def caller_label(its: Measured) -> str:
    """The label by the caller's clock alone, without what the kernel wrote after the return."""
    parts = {"cpu": its.cpu, "disk": its.disk - its.deferred, "net": its.net, "wait": its.wait}
    return max(parts, key=lambda name: parts[name])


def report(measured: Sequence[Measured], readings: Sequence[Reading]) -> str:
    """What was measured and how often reading says the same, as Markdown."""
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
    """One line for each function that was read otherwise than measured, the clearest first."""
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
    parser = argparse.ArgumentParser(prog="python -m lab.measure.readings", description=(__doc__ or "").split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    batches = commands.add_parser("batches", help="write what an annotator reads")
    batches.add_argument("sources", type=Path, help="the sources that crystalperf.indexer.labels.fetch fetched")
    batches.add_argument("work", type=Path, help="the folder of batches/ and out/")
    compare = commands.add_parser("report", help="compare reading with measuring")
    compare.add_argument("work", type=Path, nargs="?", help="the folder of batches/ and out/")
    compare.add_argument("--write", type=Path, metavar="CARD", help="put the figures into this data card")
    arguments = parser.parse_args()
    measured = read_table(committed(SET), Measured)
    if arguments.command == "batches":
        count = write_batches(measured, arguments.sources, arguments.work)
        print(f"{len(measured)} functions in {count} batches in {arguments.work / 'batches'}")
        return
    table = committed(f"{SET}_readings")
    if arguments.work and (readings := read_answers(arguments.work, measured)):
        write_table(table, Reading, readings)
    readings = read_table(table, Reading) if table.is_file() else []
    figures = report(measured, readings)
    if arguments.write:
        card = arguments.write.read_text(encoding="utf-8")
        if not _MARKS.search(card):
            raise InputError(f"{arguments.write} lacks its marks <!-- measured: … --> and <!-- end of measured -->")
        card = _MARKS.sub(lambda match: f"{match[1]}\n{figures}\n\n{match[2]}", card)
        arguments.write.write_text(card, encoding="utf-8")
    print(figures)
    print("\n".join(["", *differences(measured, readings)]))


if __name__ == "__main__":
    sys.exit(main())
