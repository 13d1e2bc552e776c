"""A connection that asks each question once, and empty files that are kept like compiled code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from crystalperf.indexes import compiled, guard, store
from crystalperf.indexes.schema import tables
from crystalperf.query import sql
from crystalperf.query.sql.reading import MOST_ROWS, Reading


class Counting:
    """A connection that counts the statements it executes."""

    def __init__(self) -> None:
        self.connection = duckdb.connect()
        self.connection.execute("CREATE TABLE full_one AS SELECT range AS a, [range] AS b FROM range(3)")
        self.connection.execute("CREATE TABLE empty_one (a INTEGER)")
        self.count = 0

    def execute(self, *question: object) -> object:
        self.count += 1
        return self.connection.execute(*question)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> object:
        return getattr(self.connection, name)


@pytest.fixture
def counting() -> Counting:
    return Counting()


@pytest.fixture
def reading(counting: Counting) -> Reading:
    return Reading(counting)  # type: ignore[arg-type]


def test_a_question_is_asked_once(reading: Reading, counting: Counting) -> None:
    question = "SELECT a FROM full_one WHERE a < ? ORDER BY a"
    first = reading.execute(question, [2]).fetchall()
    again = reading.execute(question, [2])
    assert first == again.fetchall() == [(0,), (1,)]
    assert again.fetchall() == []
    assert [each[0] for each in again.description] == ["a"]
    assert counting.count == 1
    assert reading.execute(question, [2]).fetchone() == (0,)
    assert reading.execute(question, [2]).fetchmany(1) == [(0,)]
    assert counting.count == 1
    assert reading.execute(question, [3]).fetchall() == [(0,), (1,), (2,)]
    assert counting.count == 2


def test_parameters_of_other_types_are_other_questions(reading: Reading) -> None:
    found = [reading.execute("SELECT typeof(?)", [each]).fetchall()[0][0] for each in (1, 1.0, True, "1", None)]
    assert len(set(found)) == 5


def test_a_kept_answer_does_not_change_with_its_rows(reading: Reading) -> None:
    question = "SELECT b FROM full_one ORDER BY a"
    rows = reading.execute(question).fetchall()
    again = reading.execute(question).fetchall()
    again[0][0].append(7)
    rows.clear()
    assert reading.execute(question).fetchall() == [([0],), ([1],), ([2],)]


def test_arrays_of_a_kept_answer_are_those_of_its_question(reading: Reading) -> None:
    question = "SELECT a FROM full_one ORDER BY a"
    reading.execute(question).fetchall()
    reading.execute("SELECT 9 AS other").fetchall()
    assert reading.execute(question).fetchnumpy()["a"].tolist() == [0, 1, 2]


def test_large_answers_and_parts_of_answers_are_asked_again(reading: Reading, counting: Counting) -> None:
    for question in (f"SELECT * FROM range({MOST_ROWS + 1})",):
        assert len(reading.execute(question).fetchall()) == len(reading.execute(question).fetchall()) == MOST_ROWS + 1
    assert counting.count == 2
    assert reading.execute("SELECT a FROM full_one ORDER BY a").fetchone() == (0,)
    assert len(reading.execute("SELECT a FROM full_one ORDER BY a").fetchall()) == 3
    assert counting.count == 4


def test_tables_without_rows_are_known(reading: Reading, counting: Counting) -> None:
    assert sql.has_rows(reading, "full_one")
    assert not sql.has_rows(reading, "empty_one")
    assert counting.count == 1
    assert sql.has_rows(counting.connection, "full_one")
    assert not sql.has_rows(counting.connection, "empty_one")


def test_kept_content_is_that_of_the_same_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_folders", lambda: (tmp_path / "no" / "such", tmp_path))
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    (tmp_path / "no").write_text("not a folder")
    compiled.keep("a.empty", "CREATE", b"content")
    assert compiled.kept("a.empty", "CREATE") == b"content"
    assert compiled.kept("a.empty", "CREATE OTHER") is None
    assert compiled.kept("b.empty", "CREATE") is None
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.empty", "no"]
    whole = (tmp_path / "a.empty").read_bytes()
    (tmp_path / "a.empty").write_bytes(whole[:-4])
    assert compiled.kept("a.empty", "CREATE") is None
    (tmp_path / "a.empty").write_bytes(whole)
    (tmp_path / "a.empty").chmod(0o666)  # others may have written it
    assert compiled.kept("a.empty", "CREATE") is None


def test_nothing_is_kept_where_compiled_code_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_folders", lambda: (tmp_path,))
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    compiled.keep("a.empty", "CREATE", b"content")
    assert list(tmp_path.iterdir()) == []


def test_a_file_from_kept_content_has_the_same_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_folders", lambda: (tmp_path / "kept",))
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    found = []
    for number in range(2):
        store._empty.cache_clear()
        place = tmp_path / f"{number}.duckdb"
        with store.create(place, "run", {}):
            pass
        with duckdb.connect(str(place), read_only=True) as connection:
            question = "SELECT table_name, column_name, data_type, comment FROM duckdb_columns() WHERE NOT internal"
            found.append(connection.execute(question).fetchall())
    store._empty.cache_clear()
    assert len(list((tmp_path / "kept").iterdir())) == 1
    assert found[0] == found[1]
    assert len(found[0]) == sum(len(each.columns) for each in tables("run"))


def test_the_connection_that_built_a_file_is_used_to_read_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guard._passed_on.clear()
    place = tmp_path / "run.duckdb"
    with store.create(place, "run", {}) as connection:
        connection.execute("CREATE TEMP TABLE own AS SELECT 1 AS a")
        connection.execute("SET pandas_analyze_sample = 7")
    with monkeypatch.context() as patched:
        patched.setattr(guard, "fresh", lambda: 1 / 0)
        connection = store.open_read_only(place, "run")
    with connection:
        with pytest.raises(duckdb.CatalogException):
            connection.execute("FROM own")
        question = (
            "SELECT name, value FROM duckdb_settings() WHERE name LIKE '%compression_methods' OR name LIKE 'pandas%'"
        )
        assert dict(connection.execute(question).fetchall()) == {
            "disabled_compression_methods": "", "pandas_analyze_sample": "1000"
        }  # fmt: skip
        with pytest.raises(duckdb.PermissionException):
            connection.execute(f"COPY (SELECT 1) TO '{tmp_path / 'out.csv'}'")
    assert guard._passed_on == []


def test_scratch_tables_leave_nothing(tmp_path: Path) -> None:
    store._empty.cache_clear()
    for number in range(2):
        with store.scratch(tmp_path, "run") as connection:
            assert connection.execute("SELECT count(*) FROM metadata").fetchall() == [(0,)]
            connection.execute("INSERT INTO metadata VALUES ('a', 'b')")
            connection.execute(f"CREATE TEMP TABLE own AS SELECT {number}")
    with pytest.raises(ZeroDivisionError), store.scratch(tmp_path, "run"):
        raise ZeroDivisionError
    assert os.listdir(tmp_path) == []
    with store.create(tmp_path / "run.duckdb", "run", {}) as connection:  # the same database writes whole files again
        connection.execute("INSERT INTO scopes (scope_id, kind, start_ms, status) VALUES ('a', 'b', 0, 'succeeded')")
    assert os.listdir(tmp_path) == ["run.duckdb"]
    with duckdb.connect(str(tmp_path / "run.duckdb"), read_only=True) as connection:
        assert connection.execute("SELECT scope_id FROM scopes").fetchall() == [("a",)]


_BUILD_AND_FORK = """
import os, sys, tempfile
from pathlib import Path
from crystalperf.indexes import guard, store

folder = Path(sys.argv[1])

def build(name):
    with store.create(folder / name, "run", {}) as connection:
        connection.execute("SELECT 1")
    with tempfile.TemporaryDirectory() as own, store.scratch(Path(own), "run") as connection:
        connection.execute("SELECT 1")

build("parent")
child = os.fork()
build("child" if child == 0 else "again")
guard.connect().close()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_process_builds_files_too(tmp_path: Path) -> None:
    """DuckDB's threads exist in the parent only: a child with one of its connections hangs or crashes."""
    for _ in range(3):
        subprocess.run([sys.executable, "-c", _BUILD_AND_FORK, tmp_path], check=True, timeout=120)
        assert {each.name for each in tmp_path.iterdir()} == {"parent", "again", "child"}
        for each in tmp_path.iterdir():
            each.unlink()
