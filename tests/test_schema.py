"""The contract: every table and column is explained, in schema.sql and in every file made from it."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

from crystalperf.indexes import Kind, attach, create, open_read_only, resources, tables
from crystalperf.indexes.content import content_hash
from crystalperf.indexes.errors import IndexFileError, Remedy
from crystalperf.indexes.exports import locate
from crystalperf.indexes.schema import SCHEMA_VERSIONS
from crystalperf.query.frameworks.registry import frameworks
from tests.refusals import refused

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("kind", ["index", "run"])
def test_every_table_and_column_is_explained_in_the_file(kind: Kind, tmp_path: Path) -> None:
    with create(tmp_path / "file.duckdb", kind, {}):
        pass
    connection = duckdb.connect()
    connection.execute(f"ATTACH '{tmp_path / 'file.duckdb'}' AS opened (READ_ONLY)")  # a run without its row is refused
    found = connection.execute(
        "SELECT table_name, column_name, comment FROM duckdb_columns() WHERE database_name = 'opened' AND NOT internal"
    ).fetchall()
    assert {(table, column) for table, column, _ in found} == {
        (table.name, column.name) for table in tables(kind) for column in table.columns
    }
    assert all(comment and len(comment) > 2 for _, _, comment in found)
    explained = connection.execute(
        "SELECT table_name, comment FROM duckdb_tables() WHERE database_name = 'opened' AND NOT internal"
    ).fetchall()
    assert all(comment and "one " in comment for _, comment in explained)


def test_schema_sql_is_valid_sql_for_any_resource() -> None:
    text = (ROOT / "indexes" / "schema.sql").read_text()
    connection = duckdb.connect()
    connection.execute(text.replace("<resource>", "gpu"))
    created = {row[0] for row in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
    assert created == {table.name for kind in ("index", "run") for table in tables(kind)}  # type: ignore[arg-type]


def test_a_frameworks_own_schema_is_valid_sql_and_takes_no_name_of_the_contracts() -> None:
    taken = {table.name for kind in ("index", "run") for table in tables(kind)}  # type: ignore[arg-type]
    for framework in frameworks().values():
        folder = "training" if framework.name in ("tensorflow", "jax", "pytorch", "mxnet") else framework.name
        place = ROOT / "query" / "frameworks" / ("ml/training" if folder == "training" else folder)
        connection = duckdb.connect()
        connection.execute((place / "schema.sql").read_text())
        created = {row[0] for row in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        assert created == {table.name for table in framework.reader.raw()}
        assert all(name.startswith(f"{folder}_") for name in created)
        assert not created & taken


def test_the_resources_come_from_the_schema() -> None:
    assert resources() == ("cpu", "disk", "net")
    columns = {column.name for table in tables("index") if table.name == "functions" for column in table.columns}
    for resource in resources():
        assert {resource, f"code_{resource}", f"doc_{resource}"} <= columns


def test_no_column_holds_source_text() -> None:
    for table in tables("index"):
        for column in table.columns:
            assert column.name not in ("code", "doc", "text", "documentation")
    with open_read_only(locate("python-3.11"), "index") as connection:
        origins = connection.execute("SELECT DISTINCT source FROM functions ORDER BY source").fetchall()
    assert origins == [("measured",), ("model",)]


def test_another_schema_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "old.duckdb"
    with create(path, "index", {"schema_version": str(SCHEMA_VERSIONS["index"] + 1)}):
        pass
    with refused(IndexFileError, path, SCHEMA_VERSIONS["index"], remedy=Remedy("build the index again")):
        open_read_only(path, "index")


def test_a_run_is_not_an_index(tmp_path: Path) -> None:
    with create(tmp_path / "run.duckdb", "run", {}):
        pass
    with refused(IndexFileError, tmp_path / "run.duckdb"):
        open_read_only(tmp_path / "run.duckdb", "index")


def test_a_failed_build_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file.duckdb"
    with create(path, "index", {"note": "old"}):
        pass
    with pytest.raises(RuntimeError), create(path, "index", {"note": "new"}):
        raise RuntimeError
    facts = attach(duckdb.connect(), path, "index", "i")
    assert facts["note"] == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["file.duckdb"]


@pytest.mark.parametrize(("kind", "storage"), [("run", 64), ("index", 65)])
def test_files_are_written_for_old_duckdbs(tmp_path: Path, kind: Kind, storage: int) -> None:
    """Storage version 64 is v0.9.0 to v1.1, 65 is v1.2: every DuckDB since reads it."""
    path = tmp_path / "file.duckdb"
    with create(path, kind, {}):
        pass
    assert path.read_bytes()[8:12] == b"DUCK"
    assert int.from_bytes(path.read_bytes()[12:20], "little") == storage


def test_names_are_compressed_as_declared_whatever_duckdb_samples(tmp_path: Path) -> None:
    with create(tmp_path / "file.duckdb", "index", {}) as connection:
        connection.execute("INSERT INTO classes SELECT 'a.B$' || range % 7 || range, 'x', 1, 2 FROM range(3000)")
    with duckdb.connect(str(tmp_path / "file.duckdb"), read_only=True) as connection:
        found = connection.execute(
            "SELECT DISTINCT compression FROM pragma_storage_info('classes') WHERE column_name = 'class_name'"
            " AND segment_type = 'VARCHAR'"
        ).fetchall()
    assert found == [("ZSTD",)]


def test_the_content_hash_sees_every_table(tmp_path: Path) -> None:
    seen = set()
    for table in ["", *(each.name for each in tables("index"))]:
        path = tmp_path / f"{table}.duckdb"
        with create(path, "index", {}) as connection:
            if table:
                columns = next(each for each in tables("index") if each.name == table).columns
                values = ["1" if re.match("INT|FLOAT", each.type) else "'x'" for each in columns]
                connection.execute(f"INSERT INTO {table} VALUES ({', '.join(values)})")
            seen.add(content_hash(connection, "built"))
    assert len(seen) == 1 + len(tables("index"))
