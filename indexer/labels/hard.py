"""Choose hard functions to read: python -m crystalperf.indexer.labels.hard DIR JARS OUT [--seed N].

This is draw 3 of the training set (`sample.py` has draws 1 and 2).  The shipped model labels each of these functions
disk or net, but no device API is within three typed calls.  Many only use the words of a device; others reach the
device in a way that types do not show.  Annotators decide: they see neither the model's label nor how a function was
drawn.  The command writes candidates.tsv and batches/ to OUT, as draws 1 and 2 do.

DIR holds the libraries from indexer.labels.fetch.  JARS/LIBRARY holds the archives of a JVM library (see
indexer.baselines.callees).  Libraries without archives, and C++, have no typed calls and are left out.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

from crystalperf.indexer.baselines.callees import Hops, of_class_files, of_python
from crystalperf.indexer.labels.functions import Located, functions_of
from crystalperf.indexer.labels.libraries import Library, libraries, source_files
from crystalperf.indexer.labels.rebuild import as_record
from crystalperf.indexer.labels.reserve import FRAMEWORKS
from crystalperf.indexer.labels.sample import BATCH_SIZE, Candidate, capped, may_be_drawn, readability, write
from crystalperf.indexer.labels.tables import SETS, Label, Measured, committed, read_labels, read_table
from crystalperf.indexer.modelfile import load
from crystalperf.indexer.pyfacts import read_facts
from crystalperf.indexer.pytyped import Linked
from crystalperf.indexer.typed import read_jars
from crystalperf.indexer.vectors import Classifier
from crystalperf.indexer.wordvectors import as_text
from crystalperf.indexes.errors import report_errors

SIZES = {"disk": 600, "net": 600}
"""Number of functions to label, by the shipped model's label."""

PREFIX = "v"
"""Prefix of the ids of this draw."""

_FILES = {"java": 160, "scala": 160, "python": 300}
"""Maximum files of a library, by its language; they are chosen by a hash of their paths."""

_FUNCTIONS = 1500
"""Maximum functions of a library, chosen in the same way."""


def order(seed: int, choice: str, text: str) -> float:
    """A pseudo-random key of a text from 0 to 1, different for each choice, and independent of other texts."""
    digest = hashlib.sha256(f"{seed} {choice} {text}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def pool_of(library: Library, folder: Path, seed: int, taken: set[str]) -> list[Located]:
    """The functions of a library that may be drawn: from some files, each text once, not yet labelled or measured."""
    root = folder / library.name
    names = sorted(
        (path.relative_to(root).as_posix() for path in source_files(library, folder)),
        key=lambda name: order(seed, "file", name),
    )
    kept = list(islice((name for name in names if may_be_drawn(root, name)), _FILES[library.language]))
    found = {each.text_hash: each for each in functions_of(library, folder, kept) if each.text_hash not in taken}
    return sorted(found.values(), key=lambda each: order(seed, "looked at", each.text_hash))[:_FUNCTIONS]


def hops_of(library: Library, folder: Path, jars: Path, pool: Sequence[Located]) -> dict[str, Hops]:
    """The distances to device APIs, by typed calls, of the functions in `pool` that have any; by hash of the text."""
    records = [as_record("", _unlabelled(each), each) for each in pool]
    root = folder / library.name
    if library.language == "python":
        texts = ((path.relative_to(root).as_posix(), path.read_bytes()) for path in root.rglob("*.py"))
        facts = (read_facts(text, file) for file, text in texts)
        return of_python(Linked.of(each for each in facts if each), records)
    return of_class_files(read_jars(sorted((jars / library.name).glob("*.jar"))), records)


def _unlabelled(each: Located) -> Label:
    function = each.function
    place = (each.library, each.version, each.file, function.first_line, function.last_line, function.qualified_name)
    return Label(each.text_hash, *place, each.text_hash, "", 0, "")


def hard(pool: Sequence[Located], hops: dict[str, Hops], model: Classifier) -> list[tuple[Located, str]]:
    """Functions that the model labels with a device although their typed calls reach none, with that label."""
    quiet = [each for each in pool if hops.get(each.text_hash) == {}]
    if not quiet:
        return []
    judged = model.judge([as_text(each) for each in quiet])
    predicted = model.vectors(judged).combined.argmax(axis=1)
    named = [(each, model.resources[at]) for each, at in zip(quiet, predicted, strict=True)]
    return [(each, resource) for each, resource in named if resource in SIZES]


def choose(found: Iterable[tuple[Located, str]], seed: int) -> list[tuple[Located, str]]:
    """A sample of each device, spread over libraries, files and classes, with few short getters."""
    by_device: dict[str, dict[str, Located]] = defaultdict(dict)
    for located, resource in found:
        by_device[resource].setdefault(located.text_hash, located)
    chosen = []
    for resource, size in SIZES.items():
        members = list(by_device[resource].values())
        per_library = Counter(each.library for each in members)

        def drawing_key(each: Located, per_library: Counter[str] = per_library) -> float:
            # The weight of a library is the square root of its size, so that large ones do not dominate.
            return float(order(seed, "drawn", each.text_hash) ** (per_library[each.library] ** 0.5 / readability(each)))

        picked = capped(sorted(members, key=drawing_key, reverse=True), size)
        chosen += [(each, resource) for each in picked]
    return sorted(chosen, key=lambda each: order(seed, "read", each[0].text_hash))


def sample(folder: Path, jars: Path, seed: int) -> list[Candidate]:
    """The candidates of the draw; the same for the same sources, archives, tables, model and seed."""
    measured = read_table(committed("measured"), Measured)
    taken = {each.text_hash for each in measured}
    taken |= {each.text_hash for name in SETS for each in read_labels(name) if not each.id.startswith(PREFIX)}
    places = {(each.library, each.file, each.qualified_name) for each in measured}
    model = load()
    found: list[tuple[Located, str]] = []
    for library in libraries():
        has_types = library.language == "python" or any((jars / library.name).glob("*.jar"))
        if library.set != "train" or library.name in FRAMEWORKS or library.language not in _FILES or not has_types:
            continue
        pool = pool_of(library, folder, seed, taken)
        pool = [each for each in pool if (each.library, each.file, each.function.qualified_name) not in places]
        hops = hops_of(library, folder, jars, pool)
        new = hard(pool, hops, model)
        print(library.name, len(pool), "typed", len(hops), "hard", len(new), file=sys.stderr, flush=True)
        found += new
    return [
        Candidate(f"{PREFIX}{number:04d}", "train", f"train3-{number // BATCH_SIZE:03d}", located, "", 1.0)
        for number, (located, _) in enumerate(choose(found, seed))
    ]


@report_errors
def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m crystalperf.indexer.labels.hard", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("folder", type=Path, help="the sources that crystalperf.indexer.labels.fetch fetched")
    parser.add_argument("jars", type=Path, help="a folder of archives for each JVM library")
    parser.add_argument("out", type=Path, help="the folder for candidates.tsv and batches/")
    parser.add_argument("--seed", type=int, default=20261126)
    arguments = parser.parse_args()
    candidates = sample(arguments.folder, arguments.jars, arguments.seed)
    write(candidates, arguments.out)
    for library, count in sorted(Counter(each.located.library for each in candidates).items()):
        print(f"{library}\t{count}")


if __name__ == "__main__":
    sys.exit(main())
