"""Has the index all that a framework's distribution ships?  Its archives' own classes, by package.

    python -m lab.checks.modules flink-1.20.3 org.apache.flink FOLDER [--keep tests/data/modules/flink-1.20.3.tsv]

FOLDER holds the archives of the distribution (apache-flink-libraries' `deps`, pyspark's `jars`), which may hold others.
Printed are the packages, to five parts, with classes that the index does not declare, and how many.  `--keep` writes
all packages with archive and number of classes: tests hold the catalogue and the shipped index against that list.
Classes in others, relocated and generated ones (package-info) are left out.
"""

from __future__ import annotations

import argparse
import io
import sys
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb

from crystalperf.indexes.exports import locate
from crystalperf.indexes.store import attach
from crystalperf.query.attribution.code.names import original

PARTS = 5


def classes(archive: Path | io.BytesIO, name: str, root: str) -> Iterator[tuple[str, str]]:
    """(archive, class) of the outermost classes below the package `root`, in archives in the archive too."""
    with zipfile.ZipFile(archive) as opened:
        for entry in opened.namelist():
            if entry.endswith(".jar"):
                yield from classes(io.BytesIO(opened.read(entry)), f"{name}/{Path(entry).name}", root)
            elif entry.endswith(".class") and "$" not in entry and not entry.endswith("-info.class"):
                class_name = entry.removesuffix(".class").replace("/", ".")
                if class_name.startswith(f"{root}.") and original(class_name) is None:
                    yield name, class_name


def package(class_name: str) -> str:
    """The first parts of a class's package."""
    return ".".join(class_name.split(".")[:-1][:PARTS])


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("index")
    parser.add_argument("root", help="the framework's packages: org.apache.flink")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--keep", type=Path, metavar="FILE")
    given = parser.parse_args(arguments)
    shipped = [found for jar in sorted(given.folder.rglob("*.jar")) for found in classes(jar, jar.name, given.root)]
    with duckdb.connect() as connection:
        attach(connection, locate(given.index), "index", "told")
        declared = {row[0] for row in connection.execute("SELECT class_name FROM told.classes").fetchall()}
    missing: dict[str, Counter[str]] = defaultdict(Counter)
    for archive, class_name in shipped:
        if class_name not in declared:
            missing[archive][package(class_name)] += 1
    lacking = sum(each.total() for each in missing.values())
    print(f"{len(shipped)} classes, {lacking} of them not in {given.index}")
    for archive, packages in missing.items():
        print(f"{archive}: " + ", ".join(f"{name} {count}" for name, count in packages.most_common()))
    if given.keep is not None:
        counts = Counter((archive, package(class_name)) for archive, class_name in shipped)
        lines = [f"{archive}\t{name}\t{count}\n" for (archive, name), count in sorted(counts.items())]
        given.keep.parent.mkdir(exist_ok=True)
        given.keep.write_text("".join(lines), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
