"""Indexes by name, exports there and back, and strangers' indexes."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import duckdb
import numpy as np
import pytest

from crystalperf.indexes import attach, exports
from crystalperf.indexes.content import _add_column
from crystalperf.indexes.errors import IndexFileError, Remedy
from crystalperf.indexes.exports import (
    Available,
    available,
    export_index,
    import_index,
    locate,
    nearest,
    split_name,
    verify,
)
from crystalperf.indexes.temporary import remove_stale
from tests.refusals import refused
from tests.small_indexes import small_index


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_index("small-1.0", tmp_path_factory.mktemp("built") / "small-1.0.duckdb")


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache and an empty folder of prebuilt indexes."""
    monkeypatch.setenv("CRYSTALPERF_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(exports, "prebuilt_folder", lambda: tmp_path / "prebuilt")
    (tmp_path / "prebuilt").mkdir()
    return tmp_path


def rows(path: Path, table: str) -> list[tuple[object, ...]]:
    connection = duckdb.connect()
    attach(connection, path, "index", "i")
    return connection.execute(f"SELECT * FROM i.{table} ORDER BY ALL").fetchall()


def test_an_export_comes_back_the_same(built: Path, tmp_path: Path) -> None:
    folder = export_index(built, tmp_path / "small-1.0")
    path = import_index(folder, tmp_path / "back.duckdb", trust=True)
    assert verify(path) == verify(built)
    for table in ("functions", "classes", "runtime_names", "calls", "build_warnings"):
        assert rows(path, table) == rows(built, table)
    facts = dict(rows(path, "metadata"))  # type: ignore[arg-type]
    assert facts == dict(rows(built, "metadata"))  # type: ignore[arg-type]


def test_an_export_that_is_killed_between_two_names_loses_nothing(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = export_index(built, tmp_path / "small-1.0")
    whole = {each.name: each.read_bytes() for each in folder.iterdir()}
    renamed = Path.rename

    def killed(path: Path, target: Path) -> Path:
        if path.name == "export":
            raise KeyboardInterrupt
        return renamed(path, target)

    monkeypatch.setattr(Path, "rename", killed)
    with pytest.raises(KeyboardInterrupt):
        export_index(built, folder)
    monkeypatch.undo()
    remove_stale(tmp_path)
    (before,) = tmp_path.iterdir()
    assert {each.name: each.read_bytes() for each in before.iterdir()} == whole


def test_an_unknown_export_needs_trust(built: Path, tmp_path: Path) -> None:
    folder = export_index(built, tmp_path / "small-1.0")
    with refused(IndexFileError, folder, remedy=Remedy("vouch for the index")):
        import_index(folder, tmp_path / "back.duckdb")
    assert not (tmp_path / "back.duckdb").exists()


def test_a_changed_export_is_refused_even_when_trusted(built: Path, tmp_path: Path) -> None:
    folder = export_index(built, tmp_path / "small-1.0")
    target = folder / "calls.parquet"
    changed = tmp_path / "changed.parquet"
    duckdb.execute(f"COPY (SELECT * REPLACE ('other' AS callee_name) FROM '{target}') TO '{changed}'")
    shutil.move(changed, target)
    with refused(IndexFileError, folder):
        import_index(folder, tmp_path / "back.duckdb", trust=True)
    assert [each.name for each in tmp_path.iterdir()] == ["small-1.0"]


@pytest.mark.few(2)
@pytest.mark.parametrize("damage", ["cut", "noise", "missing", "columns", "metadata", "schema"])
def test_damaged_exports_are_one_sentence(built: Path, tmp_path: Path, damage: str) -> None:
    folder = export_index(built, tmp_path / "small-1.0")
    table, facts = folder / "functions.parquet", folder / "metadata.json"
    if damage == "cut":
        table.write_bytes(table.read_bytes()[:-100])
    elif damage == "noise":
        table.write_bytes(table.read_bytes()[:200] + b"\xff" * 4096 + table.read_bytes()[4296:])
    elif damage == "missing":
        table.unlink()
    elif damage == "columns":
        table.unlink()
        duckdb.execute(f"COPY (SELECT 1 AS x) TO '{table}'")
    elif damage == "metadata":
        facts.write_text("{")
    else:
        facts.write_text(json.dumps({**json.loads(facts.read_text()), "schema_version": "999"}))
    with pytest.raises(IndexFileError) as error:
        import_index(folder, tmp_path / "back.duckdb", trust=True)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "back.duckdb").exists()


def test_a_prebuilt_index_is_unpacked_on_first_use(built: Path, places: Path) -> None:
    folder = export_index(built, places / "prebuilt" / "small-1.0")
    exports.pin("small-1.0", folder)
    assert available() == [Available("small-1.0", "prebuilt", folder)]
    first = locate("small-1.0")
    assert verify(first) == verify(built)
    stamp = first.stat().st_mtime_ns
    assert locate("small-1.0") == first
    assert first.stat().st_mtime_ns == stamp
    stale = first.with_name("small-1.0-0123456789abcdef.duckdb")
    other = first.with_name("small-1.0-extra-0123456789abcdef.duckdb")
    first.rename(stale)
    other.write_bytes(b"")
    locate("small-1.0")
    assert not stale.exists()
    assert other.exists()


def test_an_export_that_is_not_pinned_is_not_unpacked(built: Path, places: Path) -> None:
    export_index(built, places / "prebuilt" / "small-1.0")
    with refused(IndexFileError, "small-1.0"):
        locate("small-1.0")


def test_indexes_built_by_the_user_take_precedence(built: Path, places: Path) -> None:
    folder = export_index(built, places / "prebuilt" / "small-1.0")
    exports.pin("small-1.0", folder)
    own = exports.built_path("small-1.0")
    own.parent.mkdir(parents=True)
    shutil.copy(built, own)
    assert locate("small-1.0") == own


def test_a_missing_index_names_the_nearest(built: Path, places: Path) -> None:
    folder = places / "home" / "indexes"
    folder.mkdir(parents=True)
    for name in ("spark-3.5.7", "spark-4.0.1", "spark-4.1.0", "jdk-17"):
        (folder / f"{name}.duckdb").write_bytes(b"")
    assert nearest("spark-4.0.3") == "spark-4.0.1"
    assert nearest("spark-3.4.0") == "spark-3.5.7"
    assert nearest("spark-5.0.0") == "spark-4.1.0"
    assert nearest("flink-1.20.3") is None
    missing = Remedy("build the index", {"index": "spark-4.0.3"})
    with refused(IndexFileError, "spark-4.0.1", "jdk-17", "spark-3.5.7", remedy=missing):
        locate("spark-4.0.3")
    with refused(IndexFileError, "flink"):
        locate("flink-1.20.3")


def test_names() -> None:
    assert split_name("scala-library-2.13.16") == ("scala-library", "2.13.16")
    assert split_name("lz4-java-1.8.0") == ("lz4-java", "1.8.0")
    assert split_name("netty-4.1.118.Final") == ("netty", "4.1.118.Final")
    for wrong in ("spark", "../x-1", "a/b-1", "-1", ""):
        with refused(IndexFileError, wrong):
            split_name(wrong)


def test_verify_finds_a_changed_index(built: Path, tmp_path: Path) -> None:
    changed = tmp_path / "changed.duckdb"
    shutil.copy(built, changed)
    with duckdb.connect(str(changed)) as connection:
        connection.execute("UPDATE functions SET confidence = 0.5 WHERE function_id = 3")
    with refused(IndexFileError, changed):
        verify(changed)


@pytest.mark.later  # it unpacks them all; every test that profiles reads some of them
def test_shipped_exports_are_complete(tmp_path: Path) -> None:
    """Every export in indexes/ is pinned and can be unpacked by this DuckDB."""
    shipped = sorted(exports.prebuilt_folder().glob("*/metadata.json"))
    if not shipped:
        pytest.skip("no prebuilt index is shipped yet")
    assert {each.parent.name for each in shipped} == set(exports.pinned_hashes())
    sizes = {each.parent.name: import_index(each.parent, tmp_path / "back.duckdb").stat().st_size for each in shipped}
    assert sizes["spark-4.0.1"] <= 12_000_000
    assert sum(path.stat().st_size for each in shipped for path in each.parent.iterdir()) <= 30_000_000


def test_negative_zero_does_not_change_the_content_hash() -> None:
    """Parquet does not keep -0.0 apart from 0.0, so the hash must not either."""
    found = []
    for zero in (0.0, -0.0):
        digest = hashlib.sha256()
        _add_column(digest, np.array([zero, 1.0], dtype=np.float32))
        found.append(digest.hexdigest())
    assert found[0] == found[1]
