"""A run file or an index from a stranger is data: nothing in it runs, whoever opens it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from crystalperf import indexes
from crystalperf.indexes.errors import IndexFileError
from crystalperf.query.run import Run

Answer = Callable[..., tuple[int, str, str]]

SECRET = "root-of-all-secrets"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret.csv"
    path.write_text(f"a\n{SECRET}\n")
    return path


SPOILT = {
    "metadata is a view": """
        CREATE TABLE kept AS FROM metadata; DROP TABLE metadata;
        CREATE VIEW metadata AS
        SELECT key, concat(value, (SELECT content FROM read_text('{secret}'))) AS value FROM kept
    """,
    "runs is a view": """
        CREATE TABLE kept AS FROM runs; DROP TABLE runs;
        CREATE VIEW runs AS SELECT * REPLACE ((SELECT content FROM read_text('{secret}')) AS name) FROM kept
    """,
    "a view that does not end": """
        DROP TABLE samples;
        CREATE VIEW samples AS SELECT count(*) AS a FROM range(1000000000000) t(i), range(1000000) u(j)
    """,
    "an additional view": "CREATE VIEW mine AS FROM read_text('{secret}')",
    "a macro in the place of a function": "CREATE MACRO coalesce(a, b) AS (SELECT content FROM read_text('{secret}'))",
    "a macro named sum": "CREATE MACRO sum(a) AS 1",
    "a type": "CREATE TYPE mine AS ENUM ('a')",
    "a sequence": "CREATE SEQUENCE mine",
    "a schema": "CREATE SCHEMA mine",
    "a column that computes": """
        CREATE TABLE kept AS FROM import_stats; DROP TABLE import_stats;
        CREATE TABLE import_stats (name VARCHAR, severity VARCHAR, origin VARCHAR, count BIGINT, first_where VARCHAR,
            meaning VARCHAR GENERATED ALWAYS AS (repeat('x', 100000000)))
    """,
    "a table whose name is SQL": """CREATE TABLE "x AS SELECT 1; --" (a INTEGER)""",
    "a table that is missing": "DROP TABLE tasks",
    "a column that is missing": "ALTER TABLE tasks DROP COLUMN launch_ms",
    "a column of another type": "ALTER TABLE tasks ALTER launch_ms TYPE VARCHAR",
    "resources whose names are SQL": "UPDATE resources SET name = 'cpu_ms) FROM tasks; --' WHERE name = 'cpu'",
    "bytes whose names are SQL": "UPDATE resources SET moves = ['input_bytes) FROM tasks; --'] WHERE name = 'disk'",
}


@pytest.mark.few(4)
@pytest.mark.parametrize("how", SPOILT)
def test_a_run_file_that_is_not_only_tables_is_refused(
    how: str, crystalperf: Answer, run_copy: Path, secret: Path
) -> None:
    with duckdb.connect(str(run_copy)) as connection:
        connection.execute(SPOILT[how].format(secret=secret))
    for arguments in (
        ("sql", "--run", run_copy, "SELECT * FROM metadata"),
        ("debug", run_copy),
        ("predict", run_copy, "--set", "cores=2x"),
    ):
        code, out, err = crystalperf(*arguments)
        assert (code, out, err.count("\n")) == (1, "", 1)
        assert SECRET not in err
        assert "bug" not in err
        assert str(run_copy) in err


def test_nothing_is_read_before_the_file_is_checked(run_copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection that looks at the catalogue has no file system, whichever files a view would read."""
    from crystalperf.indexes import guard

    with duckdb.connect(str(run_copy)) as connection:
        connection.execute("CREATE VIEW mine AS SELECT 1")
    seen: list[bool] = []
    check = guard.check_nothing_runs

    def looked(connection: duckdb.DuckDBPyConnection, path: Path, alias: str) -> object:
        with pytest.raises(duckdb.PermissionException):
            connection.execute(f"FROM read_blob('{run_copy}')")
        seen.append(True)
        return check(connection, path, alias)

    monkeypatch.setattr(guard, "check_nothing_runs", looked)
    with pytest.raises(IndexFileError, match="a view, 'mine'"):
        indexes.open_read_only(run_copy, "run")
    assert seen == [True]


@pytest.mark.parametrize("kind", ["run", "index"])
def test_every_reader_is_locked(kind: indexes.Kind, tmp_path: Path) -> None:
    with indexes.create(tmp_path / "a.duckdb", kind, {}) as connection:
        if kind == "run":
            connection.execute(
                "INSERT INTO runs (framework, app_id, measure, started_at_ms, duration_ms, complete)"
                " VALUES ('spark', 'a', 'runtime', 0, 0, true)"
            )
    connection = indexes.open_read_only(tmp_path / "a.duckdb", kind)
    for statement in (
        f"COPY (SELECT 1) TO '{tmp_path / 'a.duckdb'}' (FORMAT csv, USE_TMP_FILE false)",
        f"FROM read_blob('{tmp_path / 'a.duckdb'}')",
        f"ATTACH '{tmp_path / 'b.duckdb'}' AS b",
        "SET disabled_filesystems = ''",
        "SET enable_external_access = true",
        "INSERT INTO metadata VALUES ('a', 'b')",
    ):
        with pytest.raises(duckdb.Error):
            connection.execute(statement)
    assert connection.execute("SELECT count(*) FROM metadata").fetchall()[0][0] > 3


def test_database_file_of_another_kind_is_not_loaded(tmp_path: Path) -> None:
    """DuckDB would look for an extension that reads SQLite."""
    (tmp_path / "a.duckdb").write_bytes(b"SQLite format 3\0" + bytes(4096))
    with pytest.raises(IndexFileError, match=r"a\.duckdb"):
        indexes.open_read_only(tmp_path / "a.duckdb", "run")


def test_file_name_that_looks_like_a_url_is_a_file(
    crystalperf: Answer, run_copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_copy.rename(tmp_path / "md:run.duckdb")
    code, out, _ = crystalperf("sql", "--run", "md:run.duckdb", "--csv", "SELECT count(*) > 0 AS some FROM tasks")
    assert (code, out) == (0, "some\ntrue\n")


def test_write_ahead_log_next_to_a_file_is_not_replayed(crystalperf: Answer, run_copy: Path) -> None:
    run_copy.with_name(run_copy.name + ".wal").write_bytes(b"\0" * 100)
    code, out, err = crystalperf("debug", run_copy)
    assert (code, out) == (1, "")
    assert ".wal" in err


def test_an_index_with_a_view_is_refused(tmp_path: Path) -> None:
    with indexes.create(tmp_path / "a.duckdb", "index", {}):
        pass
    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
        connection.execute("DROP TABLE calls; CREATE VIEW calls AS SELECT 1 AS caller_id, '' AS callee_name, 1 AS x")
    with pytest.raises(IndexFileError, match="a view, 'calls'"):
        indexes.attach(duckdb.connect(), tmp_path / "a.duckdb", "index", "a")


def test_changed_file_is_checked_again(run_copy: Path) -> None:
    assert Run(run_copy).header().complete
    with duckdb.connect(str(run_copy)) as connection:
        connection.execute("CREATE VIEW mine AS SELECT 1")
    with pytest.raises(IndexFileError, match="a view"):
        Run(run_copy)
