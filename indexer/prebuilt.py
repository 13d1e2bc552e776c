"""`make indexes`: build the indexes that ship with CrystalPerf and put their exports into indexes/.

    python -m crystalperf.indexer.prebuilt [NAME…] [--to FOLDER]

Each export stays in git history, so rebuild it only if the classifiers or the sources change.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from crystalperf.indexer.build import build
from crystalperf.indexer.catalogue import class_archives, known_source
from crystalperf.indexes.exports import export_index, pin, prebuilt_folder

NAMES = (
    "spark-4.0.1",
    "spark-4.2.0",  # the newest 4 whose sources Maven has
    "spark-4.1.3",  # the newest 4.1
    "spark-3.5.9",  # the newest 3.5
    "flink-1.20.3",
    "flink-2.3.0",  # the newest 2
    "jdk-17",
    # Of libraries, the versions that Spark 4.0.1 runs with.
    "scala-library-2.13.16",
    "netty-4.1.118.Final",
    "hadoop-client-3.4.1",
    "parquet-1.15.2",
    "jvm-libraries-1",
    "kafka-clients-3.9.1",
    "python-3.11",
    "pyspark-4.0.1",
    "tensorflow-2.21.0",
    "torch-2.15.0",
    "delta-4.0.0",  # with Spark 4.0
    "iceberg-1.10.0",  # its runtime for Spark 4.0
)
"""The shipped indexes: names in the catalogue."""

MAX_BYTES = 34_000_000
"""Maximum total size of the exports, because every clone has them."""


def main() -> None:
    """Build, export and pin the named indexes, by default all; exports to another folder are not pinned."""
    parser = argparse.ArgumentParser(description="build the indexes that ship with CrystalPerf")
    parser.add_argument("names", nargs="*", metavar="NAME", help="NAME-VERSION; all that ship without one")
    parser.add_argument("--to", metavar="FOLDER", help="put the exports there and pin none of them")
    arguments = parser.parse_args()
    target = Path(arguments.to) if arguments.to else prebuilt_folder()
    total = 0
    with tempfile.TemporaryDirectory() as scratch:
        for name in arguments.names or NAMES:
            known_source(name, [])  # the build reports missing parts
            problems: list[tuple[str, str]] = []
            classes = class_archives(name, problems)
            print(*(f"{name}: {artifact}: {problem}" for artifact, problem in problems), sep="\n", end="", flush=True)
            built = build(name, output=Path(scratch) / f"{name}.duckdb", progress=True, classes=classes)
            folder = export_index(built, target / name)
            if not arguments.to:
                pin(name, folder)
            size = sum(each.stat().st_size for each in folder.iterdir())
            total += size
            print(f"{name}: {size / 1e6:.2f} MB in {folder}", flush=True)
            built.unlink()
    print(f"together {total / 1e6:.2f} MB of {MAX_BYTES / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
