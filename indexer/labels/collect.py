"""Merge annotators' files into tables: python -m crystalperf.indexer.labels.collect DIR WORK [--into FOLDER].

WORK holds the output of sample.py and out/ANNOTATOR/*.tsv (lines `id, label, sure`, tab-separated):

    out/A/train-007.tsv          an independent reading of a batch
    out/H/disagreement-000.tsv   third readings, which decide disagreements
    out/I/audit-000.tsv          the final audit of finished labels

Readings of measured functions (out/J/measured-000.tsv) are not among them: `measured_readings` has these.

Each draw has a separate WORK.  Rows of the tables whose ids are not in its candidates.tsv belong to other draws and
stay.

Every run writes the tables of all readings so far, and WORK/disagreements/ and WORK/audit/ with the functions that
still need a third reading or an audit.  The work is finished when both are empty.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from crystalperf.indexer.labels.functions import Located, functions_of
from crystalperf.indexer.labels.libraries import libraries
from crystalperf.indexer.labels.reserve import violations
from crystalperf.indexer.labels.sample import BATCH_SIZE, COLUMNS, show
from crystalperf.indexer.labels.statistics import report
from crystalperf.indexer.labels.tables import CLASSES, SETS, Audit, Label, Reading, Row, read_table, write_table
from crystalperf.indexes.errors import CrystalPerfError, InputError

AUDITED_PER_CLASS = 30
_AUDITED_CLASSES = ("cpu", "disk", "net")


_KINDS = {"disagreement": "third"}
_ROLES = ("third", "correction", "audit")
"""Kinds of readings other than the independent ones, by the first word of the file's name."""


@dataclass(frozen=True, slots=True)
class Place:
    """A row of candidates.tsv: the location of a function when it was drawn, and how it was drawn."""

    id: str
    set: str
    batch: str
    library: str
    file: str
    first_line: int
    qualified_name: str
    stratum: str
    weight: float


@dataclass(frozen=True, slots=True)
class Collected:
    """All readings so far."""

    labels: dict[str, list[Label]]  # by set, in order of id
    readings: list[Reading]
    audits: list[Audit]
    unsettled: dict[str, Located]  # by id: two readings that differ, no third yet
    missing: list[str]  # ids that are no longer in the sources


def read_candidates(work: Path) -> dict[str, Place]:
    """candidates.tsv by id.  Raises InputError if it is missing or damaged."""
    path = work / "candidates.tsv"
    try:
        lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
        if lines[0].split("\t") != list(COLUMNS):
            raise InputError(f"{path}: not a file that python -m crystalperf.indexer.labels.sample wrote")
        places = {}
        for line in lines[1:]:
            cell = dict(zip(COLUMNS, line.split("\t"), strict=True))
            places[cell["id"]] = Place(
                cell["id"],
                cell["set"],
                cell["batch"],
                cell["library"],
                cell["file"],
                int(cell["first_line"]),
                cell["qualified_name"],
                cell["stratum"],
                float(cell["weight"]),
            )
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path} cannot be read, run python -m crystalperf.indexer.labels.sample first: {error}"
        ) from error
    return places


def read_outputs(work: Path, places: Mapping[str, Place]) -> tuple[list[Reading], list[tuple[str, str, str]]]:
    """All readings, and those of the audit as (id, annotator, label).  Raises InputError, which names the bad line."""
    readings: list[Reading] = []
    audits: list[tuple[str, str, str]] = []
    seen: set[tuple[str, str, str]] = set()
    for path in sorted((work / "out").glob("*/*.tsv")):
        annotator = path.parent.name
        if not re.fullmatch("[A-Z]", annotator):
            raise InputError(f"{path.parent}: the name of an annotator's folder must be one letter, A to Z")
        if path.name.startswith("measured-"):
            continue
        kind = _KINDS.get(path.name.split("-")[0], path.name.split("-")[0])
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
            if not line:
                continue
            where = f"{path}, line {number}"
            cells = line.removesuffix("\r").split("\t")
            if len(cells) != 3 or cells[1] not in CLASSES or cells[2] not in ("1", "2", "3"):
                raise InputError(f"{where}: {line!r} is not id, label ({', '.join(CLASSES)}) and sure (1 to 3)")
            identifier, label, sure = cells
            if identifier not in places:
                raise InputError(f"{where}: unknown function {identifier}")
            if kind not in _ROLES and places[identifier].batch != path.stem:
                raise InputError(f"{where}: {identifier} belongs to {places[identifier].batch}, not to {path.stem}")
            role = kind if kind in _ROLES else "independent"
            if (identifier, annotator, role) in seen:
                raise InputError(f"{where}: {annotator} read {identifier} twice")
            seen.add((identifier, annotator, role))
            if role == "audit":
                audits.append((identifier, annotator, label))
            else:
                readings.append(Reading(identifier, annotator, label, int(sure), role, places[identifier].set))
    return sorted(readings, key=lambda each: (each.id, each.kind, each.annotator)), sorted(audits)


def agreed_label(readings: Sequence[Reading]) -> tuple[str, int, str] | None:
    """Label, sureness and annotators from the readings of one function; None if two differ and there is no third.

    Two readings that agree get the higher of their sureness.  A third reading decides, with at most likely (2), since
    one of three disagreed; one by either of the first two annotators is not independent and is ignored.  A correction,
    from measuring functions of the same kind, overrides all readings.
    """
    independent = [each for each in readings if each.kind == "independent"]
    names = "".join(sorted(each.annotator for each in independent))
    for each in readings:
        if each.kind == "correction":
            return each.label, each.sure, f"{names}/{each.annotator}"
    if len({each.label for each in independent}) == 1:
        return independent[0].label, max(each.sure for each in independent), names
    for each in readings:
        if each.kind == "third" and each.annotator not in {one.annotator for one in independent}:
            return each.label, min(2, each.sure), f"{names}/{each.annotator}"
    return None


def collect(folder: Path, work: Path) -> Collected:
    """Merge the readings under `work` with the locations of the functions in the sources under `folder`."""
    places = read_candidates(work)
    readings, audits = read_outputs(work, places)
    by_id: dict[str, list[Reading]] = defaultdict(list)
    for each in readings:
        by_id[each.id].append(each)
    located = locate([places[identifier] for identifier in by_id], folder)
    labels: dict[str, list[Label]] = {name: [] for name in SETS}
    unsettled: dict[str, Located] = {}
    for identifier, its in sorted(by_id.items()):
        if identifier not in located or not any(each.kind == "independent" for each in its):
            continue
        place, found = places[identifier], located[identifier]
        agreed = agreed_label(its)
        if agreed is None:
            unsettled[identifier] = found
            continue
        function = found.function
        labels[place.set].append(
            Label(
                identifier,
                found.library,
                found.version,
                found.file,
                function.first_line,
                function.last_line,
                function.qualified_name,
                found.text_hash,
                *agreed,
                place.weight,
                place.stratum,
            )
        )
    for name, its_labels in labels.items():
        if broken := violations(name, its_labels):
            raise InputError(f"a reserved function is labelled: {broken[0]}")
    final = {each.id: each for each in (label for its_labels in labels.values() for label in its_labels)}
    checked = [
        Audit(identifier, final[identifier].label, annotator, label)
        for identifier, annotator, label in audits
        if identifier in final and annotator not in final[identifier].annotators
    ]
    return Collected(labels, readings, checked, unsettled, sorted(set(by_id) - set(located)))


def locate(places: Iterable[Place], folder: Path) -> dict[str, Located]:
    """The functions at places, by id, as the current parser finds them: same file and name, nearest first line."""
    by_library: dict[str, list[Place]] = defaultdict(list)
    for place in places:
        by_library[place.library].append(place)
    found: dict[str, Located] = {}
    for library in libraries():
        if library.name not in by_library:
            continue
        candidates: dict[tuple[str, str], list[Located]] = defaultdict(list)
        for each in functions_of(library, folder, {place.file for place in by_library[library.name]}):
            candidates[each.file, each.function.qualified_name].append(each)
        for place in by_library[library.name]:
            if same := candidates.get((place.file, place.qualified_name)):
                found[place.id] = min(same, key=lambda each: abs(each.function.first_line - place.first_line))
    return found


def merge(
    path: Path,
    kind: type[Row],
    fresh: Sequence[Row],
    places: Mapping[str, Place],
    order: Callable[[Row], tuple[str, ...]],
) -> list[Row]:
    """The rows of other draws in an existing table, merged with the fresh rows, in order.

    Raises InputError if an id of this draw belongs to another function in the table.
    """
    kept: list[Row] = []
    for row in read_table(path, kind) if path.is_file() else []:
        if row.id not in places:
            kept.append(row)
        elif isinstance(row, Label) and (row.library, row.file) != (places[row.id].library, places[row.id].file):
            raise InputError(f"{path}: {row.id} is a function of {row.library} in {row.file}, drawn with another WORK")
    kept.extend(fresh)
    kept.sort(key=order)
    return kept


def write_open(name: str, located: Mapping[str, Located], work: Path, seed: int = 1) -> None:
    """WORK/disagreements/disagreement-nnn.txt or WORK/audit/audit-nnn.txt: functions to read, shuffled."""
    target = work / ("disagreements" if name == "disagreement" else name)
    if target.exists():
        shutil.rmtree(target)
    target.mkdir(parents=True)
    order = sorted(located)
    random.Random(seed).shuffle(order)
    for start in range(0, len(order), BATCH_SIZE):
        shown = "\n".join(show(each, located[each]) for each in order[start : start + BATCH_SIZE])
        (target / f"{name}-{start // BATCH_SIZE:03d}.txt").write_text(shown, encoding="utf-8")


def draw_audit(labels: Sequence[Label], seed: int = 1) -> list[Label]:
    """AUDITED_PER_CLASS random labels of each device."""
    drawn: list[Label] = []
    for name in _AUDITED_CLASSES:
        members = [each for each in labels if each.label == name]
        drawn += random.Random(seed).sample(members, min(AUDITED_PER_CLASS, len(members)))
    return drawn


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m crystalperf.indexer.labels.collect", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("folder", type=Path, help="the sources that crystalperf.indexer.labels.fetch fetched")
    parser.add_argument("work", type=Path, help="the folder of candidates.tsv, batches/ and out/")
    parser.add_argument(
        "--into", type=Path, default=Path(__file__).parent, help="the folder for the tables (indexer/labels)"
    )
    arguments = parser.parse_args()
    try:
        collected = collect(arguments.folder, arguments.work)
        places, into = read_candidates(arguments.work), arguments.into
        for name, labels in collected.labels.items():
            if labels:
                path = into / f"{name}.tsv"
                write_table(path, Label, merge(path, Label, labels, places, lambda each: (each.id,)))
        path = into / "readings.tsv"
        by_function = merge(
            path, Reading, collected.readings, places, lambda each: (each.id, each.kind, each.annotator)
        )
        write_table(path, Reading, by_function)
        if collected.audits:
            path = into / "audit.tsv"
            write_table(
                path, Audit, merge(path, Audit, collected.audits, places, lambda each: (each.id, each.annotator))
            )
        write_open("disagreement", collected.unsettled, arguments.work)
        audited = {each.id for each in collected.audits}
        drawn = [] if collected.unsettled else draw_audit(collected.labels["train"])
        to_audit = locate([places[each.id] for each in drawn if each.id not in audited], arguments.folder)
        write_open("audit", to_audit, arguments.work)
    except CrystalPerfError as error:
        print(error, file=sys.stderr)
        return 1
    print(report(arguments.into))
    print(f"{len(collected.unsettled)} disagreements need a third reading: {arguments.work / 'disagreements'}")
    print(f"{len(to_audit)} labels await the audit: {arguments.work / 'audit'}")
    if collected.missing:
        print(f"{len(collected.missing)} functions are no longer in the sources: {collected.missing[:9]} …")
    return 0


if __name__ == "__main__":
    sys.exit(main())
