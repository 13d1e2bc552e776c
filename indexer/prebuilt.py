"""`make indexes`: build the indexes that ship with CrystalPerf and put their exports into indexes/.

An export changes git for ever, so it is made again only when the classifiers or the sources change.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from indexer.build import build
from indexes.exports import export_index, pin, prebuilt_folder

NAMES = ("spark-4.0.1",)
"""What ships: names that the catalogue knows."""


def main(names: Sequence[str]) -> None:
    """Build, export and pin each of the names, all of them without one."""
    with tempfile.TemporaryDirectory() as scratch:
        for name in names or NAMES:
            built = build(name, output=Path(scratch) / f"{name}.duckdb", progress=True)
            folder = export_index(built, prebuilt_folder() / name)
            pin(name, folder)
            size = sum(each.stat().st_size for each in folder.iterdir())
            print(f"{name}: {size / 1e6:.2f} MB in {folder}")


if __name__ == "__main__":
    main(sys.argv[1:])
