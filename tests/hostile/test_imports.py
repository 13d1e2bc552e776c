"""An exported index from elsewhere is looked at before it is loaded, and its hash means one content only."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from pathlib import Path

import duckdb
import pytest

from crystalperf import indexes
from crystalperf.indexes import exports
from crystalperf.indexes.content import content_hash
from crystalperf.indexes.errors import IndexFileError
from crystalperf.indexes.exports import import_index, pinned_hashes, prebuilt_folder

SHIPPED = "parquet-1.15.2"


@pytest.fixture
def export(tmp_path: Path) -> Path:
    """A copy of a shipped export, whose hash is pinned."""
    return Path(shutil.copytree(prebuilt_folder() / SHIPPED, tmp_path / SHIPPED))


def test_claimed_pinned_hash_does_not_load_everything(
    export: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """94 kB of Parquet that say one long text a million times."""
    monkeypatch.setattr(exports, "_MAX_TEXT_BYTES", 100 << 20)
    path = export / "build_warnings.parquet"
    duckdb.execute(
        f"COPY (SELECT repeat('x', 1000) AS file, repeat('y', 1000) AS problem FROM range(1000000)) TO '{path}'"
    )
    assert path.stat().st_size < 1 << 20
    assert json.loads((export / "metadata.json").read_text())["content_hash"] == pinned_hashes()[SHIPPED]
    loaded = []
    monkeypatch.setattr("crystalperf.indexes.content.content_hash", lambda *_: loaded.append(1))
    with pytest.raises(IndexFileError, match="MiB"):
        import_index(export, tmp_path / "built.duckdb")
    assert not loaded
    assert sorted(os.listdir(tmp_path)) == [SHIPPED]


def test_shipped_index_is_accepted(export: Path, tmp_path: Path) -> None:
    assert import_index(export, tmp_path / "built.duckdb").is_file()


@pytest.mark.parametrize("name", ["metadata.json", "functions.parquet", "calls.parquet"])
def test_pipe_in_an_export_does_not_block(name: str, export: Path, tmp_path: Path) -> None:
    (export / name).unlink()
    os.mkfifo(export / name)
    with pytest.raises(IndexFileError):
        import_index(export, tmp_path / "built.duckdb")


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":' * 50_000,
        "null",
        "[]",
        '{"kind": 1}',
        "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"),
        "",
    ],
    ids=lambda each: each[:10],
)
def test_metadata_of_any_shape_is_one_sentence(text: str, export: Path, tmp_path: Path) -> None:
    (export / "metadata.json").write_text(text)
    with pytest.raises(IndexFileError):
        import_index(export, tmp_path / "built.duckdb")


@pytest.mark.parametrize("odd", ["\ud800", "a\0b"])
@pytest.mark.parametrize("place", ["key", "value"])
def test_texts_invalid_in_duckdb_are_refused(place: str, odd: str, export: Path, tmp_path: Path) -> None:
    facts = json.loads((export / "metadata.json").read_text())
    facts.update({odd: "x"} if place == "key" else {"x": odd})
    (export / "metadata.json").write_text(json.dumps(facts))
    with pytest.raises(IndexFileError, match="metadata"):
        import_index(export, tmp_path / "built.duckdb", trust=True)


def test_different_contents_have_different_hashes(tmp_path: Path) -> None:
    """A NUL separates the texts in the hash; a NUL in a text could make two keys equal."""
    found = set()
    for metadata in ({"a": "b", "c": "d"}, {"a": "b\0c\0d"}, {"a\0b": "c\0d"}):
        with indexes.create(tmp_path / "a.duckdb", "index", metadata) as connection, suppress(IndexFileError):
            found.add(content_hash(connection, "built"))
    assert len(found) == 1
    with indexes.create(tmp_path / "b.duckdb", "index", {}) as connection:
        connection.execute("INSERT INTO build_warnings VALUES ('a' || chr(0) || 'b', 'c')")
        with pytest.raises(IndexFileError, match="NUL"):
            content_hash(connection, "built")
