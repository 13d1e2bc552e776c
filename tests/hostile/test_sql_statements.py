"""No SQL statement changes a file, writes one, reads one that it was not given, or reaches the network."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import duckdb
import pytest

from crystalperf.query.run import Run
from crystalperf.query.statements import child

Answer = Callable[..., tuple[int, str, str]]

WRITERS = (
    "COPY (SELECT 1 AS a) TO '{path}' (FORMAT csv, USE_TMP_FILE false)",
    "COPY (SELECT 1 AS a) TO '{path}' (FORMAT csv)",
    "COPY (SELECT 1 AS a) TO '{path}' (FORMAT json, USE_TMP_FILE false)",
    "COPY (SELECT 1 AS a) TO '{path}' (FORMAT parquet, USE_TMP_FILE false)",
    "COPY (SELECT 1 AS a) TO '{path}' (FORMAT parquet, PER_THREAD_OUTPUT true, OVERWRITE_OR_IGNORE true)",
    "COPY (SELECT 1 AS a, 2 AS b) TO '{path}' (FORMAT csv, PARTITION_BY (a), OVERWRITE true)",
    "COPY (SELECT 'x'::BLOB AS a) TO '{path}' (FORMAT blob, USE_TMP_FILE false)",
    "COPY runs TO '{path}' (FORMAT csv, USE_TMP_FILE false, APPEND true)",
    "WITH a AS MATERIALIZED (COPY (SELECT 1) TO '{path}' (FORMAT csv, USE_TMP_FILE false)) SELECT * FROM a",
    "WITH a AS (COPY (SELECT 1) TO '{path}' (FORMAT csv, USE_TMP_FILE false) RETURNING *) SELECT * FROM a",
    "SELECT * FROM (COPY (SELECT 1) TO '{path}' (FORMAT csv, USE_TMP_FILE false))",
    "SELECT * FROM query('COPY (SELECT 1) TO ''{path}'' (FORMAT csv, USE_TMP_FILE false)')",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO '{path}' (FORMAT csv, USE_TMP_FILE false)",
    "EXPORT DATABASE '{path}'",
    "EXPORT DATABASE run TO '{path}' (FORMAT parquet)",
    "COPY FROM DATABASE run TO '{path}'",
    "ATTACH '{path}' AS other",
    "ATTACH '{path}' AS other (READ_WRITE)",
    "ATTACH OR REPLACE '{path}' AS run",
    "CREATE DATABASE '{path}'",
    "SET temp_directory = '{path}'",
    "SET log_query_path = '{path}'",
    "SET profiling_output = '{path}'",
    "SET secret_directory = '{path}'",
    "SET home_directory = '{path}'",
    "SET extension_directory = '{path}'",
    "CALL enable_logging(storage = 'file', storage_path = '{path}')",
    "SELECT * FROM enable_logging(storage = 'file', storage_path = '{path}')",
    "PRAGMA enable_profiling = 'json'",
    "CREATE TABLE run.mine AS SELECT 1",
    "CHECKPOINT run",
    "FORCE CHECKPOINT run",
    "SELECT * FROM force_checkpoint('run')",
)

READERS = (
    "SELECT * FROM '{path}'",
    "SELECT * FROM read_csv('{path}')",
    "SELECT * FROM read_csv_auto('{path}')",
    "SELECT * FROM read_csv('{path}', auto_detect = false, columns = {{'a': 'VARCHAR'}}, sep = chr(1))",
    "SELECT * FROM read_text('{path}')",
    "SELECT * FROM read_blob('{path}')",
    "SELECT * FROM read_json('{path}')",
    "SELECT * FROM read_json_objects('{path}')",
    "SELECT * FROM read_ndjson_auto('{path}')",
    "SELECT * FROM read_parquet('{path}')",
    "SELECT * FROM parquet_metadata('{path}')",
    "SELECT * FROM parquet_schema('{path}')",
    "SELECT * FROM parquet_kv_metadata('{path}')",
    "SELECT * FROM read_duckdb('{path}')",
    "SELECT * FROM sniff_csv('{path}')",
    "SELECT * FROM glob('{path}')",
    "SELECT * FROM query('FROM read_text(''{path}'')')",
    "SELECT * FROM query_table('{path}')",
    "SELECT (SELECT content FROM read_text('{path}'))",
    "SELECT * FROM run.tasks, LATERAL (SELECT * FROM read_text('{path}'))",
    "WITH a AS MATERIALIZED (FROM read_text('{path}')) SELECT * FROM a",
    "DESCRIBE SELECT * FROM read_csv('{path}')",
    "SUMMARIZE SELECT * FROM read_csv('{path}')",
    "EXPLAIN ANALYZE SELECT * FROM read_csv('{path}')",
    "PIVOT (FROM read_csv('{path}')) ON columns(*) USING count(*)",
    "SELECT * FROM sqlite_scan('{path}', 'a')",
    "SELECT * FROM st_read('{path}')",
    "IMPORT DATABASE '{path}'",
    "COPY tasks FROM '{path}'",
    "LOAD '{path}'",
    "INSTALL '{path}'",
    "FORCE INSTALL x FROM '{path}'",
    "SELECT * FROM read_text(['{path}', '{path}'])",
    "SELECT * FROM read_text('{path}' || '')",
    "CREATE MACRO f() AS TABLE FROM read_text('{path}')",
    "CREATE TEMP TABLE t AS FROM read_text('{path}')",
    "CREATE PERSISTENT SECRET (TYPE s3, KEY_ID '{path}')",
    "UPDATE EXTENSIONS",
)


@dataclass(frozen=True)
class Places:
    """Targets of statements: the attached run, its write-ahead log, a file next to it, a folder, a free name."""

    run: Path
    secret: Path
    free: Path

    def named(self) -> list[str]:
        run, secret = str(self.run), str(self.secret)
        compared = self.run.parent
        return [
            run,
            f"{run}.wal",
            secret,
            str(self.free),
            str(compared),
            f"{compared}/*",
            f"file://{secret}",
            f"{compared}/./../{compared.name}/{self.secret.name}",
            f"/proc/self/root{run}",
        ]


@pytest.fixture(scope="module")
def places(log_run: Run, tmp_path_factory: pytest.TempPathFactory) -> Places:
    folder = tmp_path_factory.mktemp("interface")
    secret = folder / "secret.csv"
    secret.write_text("a\nswordfish\n")
    return Places(Path(shutil.copy(log_run.path, folder / "run.duckdb")), secret, folder / "free")


@pytest.fixture(scope="module")
def frontend(places: Places) -> Iterator[duckdb.DuckDBPyConnection]:
    connection = child.opened(places.run, [])
    yield connection
    connection.close()


def statements(places: Places) -> list[str]:
    return [each.format(path=path) for path in places.named() for each in (*WRITERS, *READERS)]


def seen(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_no_statement_changes_or_reads_a_file(
    places: Places, frontend: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(places.run.parent)
    before = seen(places.run.parent)
    tried = statements(places)
    assert len(tried) >= 230
    reported = []
    for statement in tried:
        try:
            reported.append(str(frontend.execute(statement).fetchall()))
        except (duckdb.Error, NotImplementedError) as error:
            reported.append(str(error))
        assert (
            os.listdir(places.run.parent) == [Path(each).name for each in before] or seen(places.run.parent) == before
        )
        assert "swordfish" not in reported[-1], statement
    assert seen(places.run.parent) == before


def test_the_run_stays_readable_after_all_of_them(frontend: duckdb.DuckDBPyConnection) -> None:
    assert frontend.execute("SELECT count(*) > 0 FROM tasks").fetchall() == [(True,)]


@pytest.mark.few(2)
@pytest.mark.parametrize("number", range(12))
def test_a_statement_that_writes_ends_in_one_sentence(
    number: int, crystalperf: Answer, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(places.run.parent)
    before = seen(places.run.parent)
    statement = Random(number).choice(WRITERS[:16]).format(path=Random(number + 100).choice(places.named()))
    code, out, err = crystalperf("sql", "--run", places.run, "--json", statement)
    assert (code, err.count("\n")) == (1, 1)
    assert json.loads(out)["schema"] == "crystalperf.error/2"
    assert "bug" not in err
    assert seen(places.run.parent) == before


def test_a_cached_index_is_not_overwritten(crystalperf: Answer, tmp_path: Path) -> None:
    from crystalperf import indexes
    from crystalperf.indexes.exports import built_path

    path = built_path("kept-1.0")
    with indexes.create(path, "index", {}):
        pass
    before = path.read_bytes()
    try:
        for way in ("COPY (SELECT 1)", "WITH a AS MATERIALIZED (COPY (SELECT 1)"):
            more = " SELECT 1" if way.startswith("WITH") else ""
            end = ")" if way.startswith("WITH") else ""
            statement = f"{way} TO '{path}' (FORMAT csv, USE_TMP_FILE false){end}{more}"
            code, out, _ = crystalperf("sql", "--index", "kept-1.0", statement)
            assert (code, out) == (1, "")
            assert path.read_bytes() == before
    finally:
        path.unlink()
