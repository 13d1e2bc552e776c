"""Score the labels of the shipped indexes on the development functions.

    python -m crystalperf.indexer.shipped --texts texts.jsonl

`indexer.evaluate` trains every head that it scores; this reads what users get, with the callees of the whole source.
The pooling of the shipped model was fitted on these functions, so its figures are a little too good.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import numpy as np

from crystalperf.indexer.evaluate import COLUMNS, score
from crystalperf.indexer.examples import Example, read_examples
from crystalperf.indexer.vectors import Floats
from crystalperf.indexes import open_read_only
from crystalperf.indexes.errors import InputError, report_errors
from crystalperf.indexes.exports import locate
from crystalperf.indexes.resources import resources

INDEXES = {"dev-spark": "spark-4.0.1", "dev-flink": "flink-1.20.3", "dev-tensorflow": "tensorflow-2.21.0"}
"""Development sets, and the indexes of the same versions."""


def shipped_labels(index_name: str, examples: Sequence[Example]) -> Floats:
    """(n, k) shares of functions in an index; NaN rows for functions that it lacks."""
    with open_read_only(locate(index_name), "index") as connection:
        rows = connection.execute(
            f"SELECT file, qualified_name, first_line, {', '.join(resources())} FROM functions"
        ).fetchall()
    places: dict[tuple[str, str], list[tuple[int, tuple[float, ...]]]] = defaultdict(list)
    for file, name, line, *shares in rows:
        places[PurePosixPath(file).name, name].append((line, tuple(shares)))
    found = np.full((len(examples), len(resources())), np.nan, np.float32)
    for row, each in enumerate(examples):
        same = places.get((PurePosixPath(each.file).name, each.function.qualified_name))
        if same:
            found[row] = min(same, key=lambda place: abs(place[0] - each.first_line))[1]
    return found


def report(texts: Path) -> None:
    """Print the scores of each set and of all together, as drawn and weighted to the natural mix."""
    examples = [each for each in read_examples(texts) if each.set in INDEXES]
    if not examples:
        raise InputError(f"{texts}: has no development set")
    sets = np.array([each.set for each in examples])
    labels = np.array([each.label for each in examples])
    weights = np.array([each.weight for each in examples], np.float32)
    shares = np.zeros((len(examples), len(resources())), np.float32)
    for name, index_name in INDEXES.items():
        its = np.flatnonzero(sets == name)
        shares[its] = shipped_labels(index_name, [examples[int(at)] for at in its])
    known = ~np.isnan(shares[:, 0])
    print(f"| development set | functions | mix | {COLUMNS}\n|---|---|---|---|---|---|---|")
    for name in ("all", *INDEXES):
        rows = known & ((sets == name) | (name == "all"))
        for mix, weighted in (("as drawn", None), ("natural", weights[rows])):
            found = score(shares[rows], labels[rows], weighted)
            percent = f"{100 * found.accuracy:.1f} | {100 * found.macro_f1:.1f}"
            print(f"| {name} | {rows.sum()} | {mix} | {percent} | {found.calibration_error:.3f} | {found.brier:.3f} |")


@report_errors
def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m crystalperf.indexer.shipped", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument(
        "--texts", type=Path, required=True, help="labelled functions, from crystalperf.indexer.labels.rebuild"
    )
    report(parser.parse_args().texts)


if __name__ == "__main__":
    sys.exit(main())
