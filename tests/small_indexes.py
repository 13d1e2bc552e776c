"""Small indexes for tests that join with one: sources under tests/data, as indexed with vectors from a hash.

They are committed as text (tests/data/indexes, one row a line), so that the tests of resolving and of exports need no
parser, and whoever changes the parser sees in a diff what it makes of the sources.  tests/test_build.py says when they
are not what the indexer makes any more; `python -m tests.small_indexes` writes them again.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import numpy as np

from crystalperf.indexes import attach, create, tables
from crystalperf.indexes.content import content_hash

DATA = Path(__file__).parent / "data"
SOURCES = DATA / "sources"
INDEXES = {"small-1.0": SOURCES} | {f"{each}-1": SOURCES / each for each in ("scala", "java", "python")}
INDEXES |= {"acme-1": DATA / "acme" / "src"}
OF_THE_BUILD = ("schema_version", "kind", "tool_version", "built_at", "build_seconds", "content_hash")
"""Facts that the next build or the next loading creates again."""


def small_index(name: str, path: Path, /, **changed: str) -> Path:
    """Write the committed index as a file to `path`, as the indexer would; `changed` are facts of its metadata."""
    rows: dict[str, list[dict[str, object]]] = {each.name: [] for each in tables("index")}
    for line in kept_path(name).read_text(encoding="utf-8").split("\n")[:-1]:
        table, row = json.loads(line)
        rows[table].append(row)
    facts = {str(row["key"]): str(row["value"]) for row in rows.pop("metadata")} | changed
    with create(path, "index", facts) as connection:
        for table, found in rows.items():
            for row in found:
                marks = ", ".join("?" * len(row))
                connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", list(row.values()))
        connection.execute("INSERT INTO metadata VALUES ('content_hash', ?)", [content_hash(connection, "built")])
    return path


def kept_path(name: str) -> Path:
    return DATA / "indexes" / f"{name}.jsonl"


def lines(path: Path) -> Iterator[str]:
    """An index's rows, each as a line."""
    with duckdb.connect() as connection:
        attach(connection, path, "index", "i")
        for table in tables("index"):
            found = connection.execute(f"SELECT * FROM i.{table.name} ORDER BY ALL")
            names = [each[0] for each in found.description or []]
            for row in found.fetchall():
                if table.name != "metadata" or row[0] not in OF_THE_BUILD:
                    # Shares are 32 bits wide: 0.295, not 0.29499998688697815.
                    values = [float(str(np.float32(each))) if isinstance(each, float) else each for each in row]
                    yield json.dumps([table.name, dict(zip(names, values, strict=True))], ensure_ascii=False) + "\n"


def build_again(name: str, path: Path) -> Path:
    """The index as the indexer makes it today; needs the indexer extra."""
    from crystalperf.indexer.build import build
    from crystalperf.indexer.sources import open_source
    from tests.hash_classifier import HashClassifier

    return build(name, open_source(name, [INDEXES[name]]), output=path, classifier=HashClassifier())


def main(say: Callable[[str], None] = print) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name in INDEXES:
            path = kept_path(name)
            path.parent.mkdir(exist_ok=True)
            path.write_text("".join(lines(build_again(name, Path(folder) / f"{name}.duckdb"))), encoding="utf-8")
            say(f"{path.relative_to(DATA.parent.parent)}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
