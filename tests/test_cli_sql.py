"""`crystalperf sql`: what it answers, and what it does not let a statement do."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from crystalperf import indexes
from crystalperf.indexes.content import content_hash
from crystalperf.indexes.exports import built_path
from crystalperf.query.frameworks.registry import get
from crystalperf.query.run import Run

FUNCTION = (
    "INSERT INTO functions BY NAME SELECT {id} AS function_id, 'tiny {version} a/B#{name}().' AS symbol, 'java' AS"
    " language, 'method' AS kind, 'a.B.{name}' AS qualified_name, 'a' AS package, 'B' AS class_name, 'a/B.java' AS"
    " file, {id} * 10 AS first_line, {id} * 10 + 5 AS last_line, 'ab' AS text_hash, 30 AS code_chars, 0 AS doc_chars,"
    " {cpu} AS cpu, {disk} AS disk, 0 AS net, 0.9 AS confidence, 'model' AS source"
)

Answer = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def run_file(log_run: Run) -> str:
    return str(log_run.path)


@pytest.fixture
def tiny(own_cache: None) -> Iterator[tuple[str, str]]:
    """Two indexes of one class with two functions each; `seek` reads from disk in the second alone."""
    names = ("tiny-1.0", "tiny-2.0")
    for name, disk in zip(names, (0.25, 0.75), strict=True):
        version = name.split("-")[1]
        with indexes.create(built_path(name), "index", {"functions": "2"}) as connection:
            connection.execute(FUNCTION.format(id=1, version=version, name="add", cpu=1.0, disk=0.0))
            connection.execute(FUNCTION.format(id=2, version=version, name="seek", cpu=1 - disk, disk=disk))
            connection.execute("INSERT INTO classes VALUES ('a.B', 'a/B.java', 1, 30)")
            connection.execute("INSERT INTO runtime_names VALUES ('a.B', 'add', 1), ('a.B', 'seek', 2)")
            connection.execute("INSERT INTO calls VALUES (2, 'add', 1), (2, 'elsewhere', NULL)")
    yield names
    for name in names:
        built_path(name).unlink()


# Answers ------------------------------------------------------------------------------------------------------------


def test_all_tables_of_a_run_are_there(crystalperf: Answer, run_file: str) -> None:
    _, out, _ = crystalperf("sql", "--run", run_file, "--json", "SHOW TABLES")
    found = {each["name"] for each in json.loads(out)}
    wanted = "runs resources workers scopes stages tasks dependencies nodes edges samples stacks import_stats"
    assert found >= set(wanted.split())
    assert found >= {each.name for each in indexes.tables("run")}
    assert found >= {each.name for each in get("spark").reader.raw()} >= {"spark_jobs", "spark_stages", "spark_tasks"}


def test_functions_are_a_union_with_index_name(crystalperf: Answer, tiny: tuple[str, str]) -> None:
    statement = "SELECT index_name, qualified_name, disk FROM functions ORDER BY ALL"
    code, out, err = crystalperf("sql", "--index", tiny[0], "--index", tiny[1], "--json", statement)
    assert (code, err) == (0, "")
    assert json.loads(out) == [
        {"index_name": "tiny-1.0", "qualified_name": "a.B.add", "disk": 0.0},
        {"index_name": "tiny-1.0", "qualified_name": "a.B.seek", "disk": 0.25},
        {"index_name": "tiny-2.0", "qualified_name": "a.B.add", "disk": 0.0},
        {"index_name": "tiny-2.0", "qualified_name": "a.B.seek", "disk": 0.75},
    ]


def test_run_and_index_together(crystalperf: Answer, run_file: str, tiny: tuple[str, str]) -> None:
    statement = "SELECT (SELECT count(*) FROM tasks) > 0 AS t, (SELECT count(*) FROM functions) AS f"
    _, out, _ = crystalperf("sql", "--run", run_file, "--index", tiny[0], "--json", statement)
    assert json.loads(out) == [{"t": True, "f": 2}]


def test_json_is_a_list_of_objects_of_any_length(crystalperf: Answer, run_file: str) -> None:
    for rows in (0, 25_000):
        code, out, _ = crystalperf("sql", "--run", run_file, "--json", f"SELECT range AS n FROM range({rows})")
        assert code == 0
        assert json.loads(out) == [{"n": each} for each in range(rows)]


def test_json_has_a_place_for_every_value(crystalperf: Answer, run_file: str) -> None:
    statement = (
        "SELECT 'nan'::DOUBLE AS a, 'infinity'::FLOAT AS b, 1.50::DECIMAL(9, 2) AS c, DATE '2026-11-21' AS d,"
        " INTERVAL 1 MINUTE AS e, '\\x00\\xff'::BLOB AS f, [1, NULL] AS g, {'x': [true]} AS h, MAP {1: 'y'} AS i,"
        " 170141183460469231731687303715884105727 AS j, NULL AS k, 'é\\n' AS l, 1 AS m, 2 AS m,"
        " '4b2f8f0c-5d4e-4f5e-9d5b-0123456789ab'::UUID AS n"
    )
    code, out, err = crystalperf("sql", "--run", run_file, "--json", statement)
    assert (code, err) == (0, "")
    assert json.loads(out) == [
        {
            "a": None, "b": None, "c": 1.5, "d": "2026-11-21", "e": "0:01:00", "f": "00ff", "g": [1, None],
            "h": {"x": [True]}, "i": {"1": "y"}, "j": 2**127 - 1, "k": None, "l": "é\\n", "m": 1, "m_2": 2,
            "n": "4b2f8f0c-5d4e-4f5e-9d5b-0123456789ab",
        }
    ]  # fmt: skip
    assert crystalperf("sql", "--run", run_file, "--csv", statement)[0] == 0
    assert crystalperf("sql", "--run", run_file, statement)[0] == 0


def test_csv_for_a_spreadsheet_has_no_formulas(crystalperf: Answer, run_file: str) -> None:
    texts = ["=1+1", "+1", "-1", "@a", "\tx", "\rx", "a=b", "", "'=1"]
    listed = ", ".join(f"('{text.replace(chr(39), chr(39) * 2)}')" for text in texts)
    statement = f'SELECT text, -1.5 AS number FROM (VALUES {listed}) AS texts("text")'
    named = f'SELECT "text" AS "=cmd()", number FROM ({statement})'
    for asked, head in ((statement, "text"), (named, "'=cmd()")):
        code, out, _ = crystalperf("sql", "--run", run_file, "--csv", "--escape-formulas", asked)
        assert code == 0
        (first, _), *rows = list(csv.reader(io.StringIO(out, newline="")))
        assert first == head
        assert [text for text, _ in rows] == ["'=1+1", "'+1", "'-1", "'@a", "'\tx", "'\rx", "a=b", "", "'=1"]
        assert {number for _, number in rows} == {"-1.5"}
    assert "\n=1+1," in crystalperf("sql", "--run", run_file, "--csv", statement)[1]  # as it is, unless asked
    code, out, err = crystalperf("sql", "--run", run_file, "--escape-formulas", statement)
    assert (code, out) == (1, "")
    assert {"--escape-formulas", "--csv"} <= set(err.split())


def test_csv_reads_back(crystalperf: Answer, run_file: str) -> None:
    statement = "SELECT 'a,\"b\nc' AS text, 1.5 AS number, NULL AS nothing, [1, 2] AS list"
    code, out, _ = crystalperf("sql", "--run", run_file, "--csv", statement)
    assert code == 0
    assert list(csv.reader(io.StringIO(out))) == [
        ["text", "number", "nothing", "list"],
        ["a,\"b\nc", "1.5", "", "[1, 2]"],
    ]  # fmt: skip


def test_a_table_is_cut_and_says_so(crystalperf: Answer, run_file: str) -> None:
    _, out, _ = crystalperf("sql", "--run", run_file, "SELECT range AS n FROM range(100)")
    assert out.split("\n")[0].strip() == "n"
    assert re.findall(r"\d+", out.split("\n", 1)[1])[:41] == [*map(str, range(40)), "40"]  # rows, and how many they are
    _, out, _ = crystalperf("sql", "--run", run_file, "--limit", "0", "SELECT range AS n FROM range(100)")
    assert out.rstrip().endswith("99")
    _, out, _ = crystalperf("sql", "--run", run_file, "--limit", "100", "SELECT range AS n FROM range(100)")
    assert out.split() == ["n", *map(str, range(100))]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "statement",
    [
        "FROM nodes, (SELECT repeat('long ', 100) AS a)",
        "SELECT repeat('long ', 100) AS a, repeat('text ', 100) AS b",
        "FROM stages",
    ],
)
def test_a_table_stays_within_80_columns(statement: str, crystalperf: Answer, run_file: str) -> None:
    _, out, _ = crystalperf("sql", "--run", run_file, statement)
    assert max(map(len, out.split("\n"))) <= 80


def test_the_prebuilt_comments_explain_the_tables(crystalperf: Answer, run_file: str) -> None:
    statement = "SELECT comment FROM duckdb_views() WHERE view_name = 'tasks'"
    _, out, _ = crystalperf("sql", "--run", run_file, "--json", statement)
    assert json.loads(out) == [{"comment": indexes.table("run", "tasks").comment}]


def test_metadata_of_all_files(crystalperf: Answer, run_file: str, tiny: tuple[str, str]) -> None:
    statement = "SELECT file, value FROM metadata WHERE key = 'kind' ORDER BY file"
    _, out, _ = crystalperf("sql", "--run", run_file, "--index", tiny[0], "--json", statement)
    assert json.loads(out) == [{"file": "run", "value": "run"}, {"file": "tiny-1.0", "value": "index"}]


# Refusals -----------------------------------------------------------------------------------------------------------

HOSTILE = [
    "COPY runs TO 'out.csv'",
    "COPY (SELECT 1) TO 'out.csv'",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO 'out.csv'",
    "EXPORT DATABASE 'out'",
    "IMPORT DATABASE 'out'",
    "ATTACH 'other.db'",
    "ATTACH ':memory:' AS other",
    "DETACH run",
    "USE run",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SELECT * FROM read_csv('{file}')",
    "SELECT * FROM read_text('{file}')",
    "SELECT * FROM read_blob('{file}')",
    "SELECT * FROM read_json('{file}')",
    "SELECT * FROM read_parquet('{file}')",
    "SELECT * FROM parquet_metadata('{file}')",
    "SELECT * FROM sniff_csv('{file}')",
    "SELECT * FROM glob('{folder}/*')",
    "SELECT * FROM '{file}'",
    "SELECT * FROM query('SELECT * FROM read_text(''{file}'')')",
    "SELECT * FROM query('COPY runs TO ''out.csv''')",
    "SELECT * FROM 'https://127.0.0.1/x.parquet'",
    "SELECT getenv('HOME')",
    "SET memory_limit = '1TB'",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "RESET memory_limit",
    "SET VARIABLE a = 1",
    "PRAGMA database_list",
    "PRAGMA enable_profiling",
    "CALL pragma_version()",
    "CREATE TABLE t AS SELECT 1",
    "CREATE MACRO f() AS 1",
    "CREATE SECRET (TYPE s3)",
    "INSERT INTO run.runs SELECT * FROM run.runs",
    "UPDATE run.tasks SET task_id = 1",
    "DELETE FROM run.tasks",
    "ALTER TABLE run.tasks ADD COLUMN x INTEGER",
    "DROP TABLE run.tasks",
    "DROP VIEW tasks",
    "CHECKPOINT run",
    "VACUUM",
    "BEGIN",
    "PREPARE p AS SELECT 1",
    "EXECUTE p",
    "SELECT 1; DROP VIEW tasks",
    "SELECT 1; SELECT 2",
    "",
    " -- nothing",
    "SELECT nonsense FROM",
    "SELECT * FROM nonsense",
    "SELECT * FROM connection",  # a variable of ours
    "SELECT CAST('x' AS INTEGER)",
    "SELECT CASE WHEN range < 24000 THEN 1 ELSE CAST('x' AS INTEGER) END FROM range(25000)",
    "SELECT '\udcff'",
    "SELECT " + "(" * 900 + "1" + ")" * 900 + " + 'x'::INTEGER",
    "SELECT " + "(" * 900,
    "SELECT * FROM " + "(SELECT * FROM " * 6000 + "x" + ")" * 6000,
    "SELECT '" + "x" * 200_000 + "'",
]


@pytest.mark.few(6)
@pytest.mark.parametrize("statement", HOSTILE, ids=lambda each: ascii(each)[:50])
def test_a_hostile_statement_ends_in_one_sentence(
    crystalperf: Answer, run_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    monkeypatch.chdir(tmp_path)
    secret = tmp_path / "secret.csv"
    secret.write_text("word\nswordfish\n")
    before = Path(run_file).read_bytes()
    text = statement.replace("{file}", str(secret)).replace("{folder}", str(tmp_path))
    code, out, err = crystalperf("sql", "--run", run_file, "--json", text)
    assert code == 1
    assert json.loads(out)["schema"] == "crystalperf.error/2"
    assert err.startswith("crystalperf: ")
    assert err.count("\n") == 1
    assert len(err) < 600
    assert "--traceback" not in err
    assert "swordfish" not in err + out
    assert os.listdir(tmp_path) == ["secret.csv"]
    assert Path(run_file).read_bytes() == before


@pytest.mark.later
def test_statement_that_hangs_the_parser_is_refused(
    crystalperf: Answer, run_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crystalperf.query.statements.asking.PARSE_S", 1.0)
    code, out, err = crystalperf("sql", "--run", run_file, "SELECT " + "(" * 90_000)
    assert (code, out) == (1, "")
    assert "nested" in err


def test_long_list_is_accepted(crystalperf: Answer, run_file: str) -> None:
    values = ", ".join(map(str, range(10_000)))
    code, out, _ = crystalperf(
        "sql", "--run", run_file, "--json", f"SELECT count(*) AS n FROM tasks WHERE 7 IN ({values})"
    )
    assert code == 0
    assert json.loads(out)[0]["n"] > 0


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "statement",
    [
        "WITH RECURSIVE a AS (SELECT 1 AS x UNION ALL SELECT x FROM a) SELECT count(*) FROM a",
        "SELECT count(*) FROM range(10000000000000)",
        "SELECT range FROM range(10000000000000)",
    ],
)
def test_a_statement_without_end_is_stopped(
    crystalperf: Answer, run_file: str, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    code, out, err = crystalperf("sql", "--run", run_file, "--timeout", "0.5", "--limit", "0", statement)
    assert (code, out) == (1, "")
    assert "--timeout" in err


def test_memory_has_a_limit(crystalperf: Answer, run_file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crystalperf.query.statements.asking.MEMORY_LIMIT", 64 << 20)
    statement = "SELECT * FROM range(100000000) ORDER BY hash(range)"
    code, out, err = crystalperf("sql", "--run", run_file, statement)
    assert (code, out) == (1, "")
    assert "memory" in err


def test_missing_table_names_the_option_that_adds_it(crystalperf: Answer, tiny: tuple[str, str]) -> None:
    assert "--index NAME" in crystalperf("sql", "FROM functions")[2]
    assert "--run RUN" in crystalperf("sql", "--index", tiny[0], "FROM tasks")[2]
    assert "--run RUN" in crystalperf("sql", "--index", tiny[0], "FROM spark_tasks")[2]


# The index commands that read -----------------------------------------------------------------------------------------


def test_index_list_and_show(crystalperf: Answer, tiny: tuple[str, str]) -> None:
    _, out, _ = crystalperf("index", "list", "--json")
    listed = {each["name"]: each for each in json.loads(out)}
    assert listed["tiny-1.0"]["functions"] == 2
    assert listed["tiny-1.0"]["origin"] == "built"
    assert "tiny-2.0" in crystalperf("index", "list")[1]
    code, out, _ = crystalperf("index", "show", "B.seek", "--index", "tiny-2.0", "--json")
    assert code == 0
    (shown,) = json.loads(out)
    assert (shown["qualified_name"], shown["file"], shown["first_line"]) == ("a.B.seek", "a/B.java", 20)
    assert shown["disk"] == 0.75
    assert shown["callees"] == ["a.B.add", "elsewhere"]
    _, out, _ = crystalperf("index", "show", "add", "--index", "tiny-2.0")
    assert "called by   a.B.seek" in out
    code, out, err = crystalperf("index", "show", "absent", "--index", "tiny-2.0")
    assert (code, out) == (1, "")
    assert "absent" in err


def test_index_verify_notices_a_changed_row(crystalperf: Answer, tmp_path: Path) -> None:
    from crystalperf.indexes.content import content_hash

    name = "true-1.0"
    try:
        for spoiled in (False, True):
            with indexes.create(built_path(name), "index", {}) as connection:
                connection.execute(FUNCTION.format(id=1, version="1.0", name="add", cpu=1.0, disk=0.0))
                stated = content_hash(connection, "built")
                connection.execute("INSERT INTO metadata VALUES ('content_hash', ?)", [stated])
                if spoiled:
                    connection.execute("UPDATE functions SET first_line = 3")
            code, out, err = crystalperf("index", "verify", name)
            assert code == int(spoiled)
            assert (out == "") == spoiled
            assert ("hash" in err) == spoiled
            code, out, _ = crystalperf("index", "verify", name, "--json")
            assert code == int(spoiled)
            assert (json.loads(out)[0]["problem"] is not None) == spoiled
    finally:
        built_path(name).unlink()


def test_index_export_and_import(crystalperf: Answer, tmp_path: Path) -> None:
    with indexes.create(built_path("odd-1"), "index", {"name": "odd", "version": "1"}) as connection:
        found = content_hash(connection, "built")
        connection.execute("INSERT INTO metadata VALUES ('content_hash', ?)", [found])
    code, out, _ = crystalperf("index", "export", "odd-1", tmp_path)
    assert (code, out) == (0, f"Saved as {tmp_path / 'odd-1'}\n")
    built_path("odd-1").unlink()
    code, _, err = crystalperf("index", "import", tmp_path / "odd-1")
    assert code == 1
    assert "--trust" in err
    assert crystalperf("index", "import", tmp_path / "odd-1", "--trust")[0] == 0
    assert built_path("odd-1").is_file()
    assert crystalperf("index", "export", "odd-1", tmp_path)[0] == 0  # again
    (tmp_path / "odd-1" / "thesis.txt").write_text("mine")
    (tmp_path / "none" / "odd-1").mkdir(parents=True)
    (tmp_path / "none" / "odd-1" / "metadata.json").write_text('{"mine": 1}')
    (tmp_path / "other" / "odd-1").mkdir(parents=True)
    facts = (tmp_path / "odd-1" / "metadata.json").read_text()
    (tmp_path / "other" / "odd-1" / "metadata.json").write_text(facts.replace('"odd"', '"even"'))
    for folder in (tmp_path, tmp_path / "none", tmp_path / "other"):
        before = sorted(folder.rglob("*"))
        code, out, err = crystalperf("index", "export", "odd-1", folder)
        assert (code, out, err.count("\n")) == (1, "", 1)
        assert str(folder / "odd-1") in err
        assert sorted(folder.rglob("*")) == before
    built_path("odd-1").unlink()
    (tmp_path / "odd-2").mkdir()
    (tmp_path / "odd-2" / "mine.txt").write_text("mine")
    code, _, err = crystalperf("index", "import", tmp_path / "odd-2", "--trust")
    assert (code, err.count("\n")) == (1, 1)


def test_index_show_refuses_a_source_that_it_would_not_read(crystalperf: Answer, tiny: tuple[str, str]) -> None:
    code, out, err = crystalperf("index", "show", "seek", "--index", tiny[0], "--source", "anywhere")
    assert (code, out) == (1, "")
    assert all(each in err for each in ("--source", "--why"))


def test_index_resolve(crystalperf: Answer, tiny: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    frames = ["a.B.seek:22", "at a.B.add(B.java:12)", "x.Y.z:3", "not a frame"]
    code, out, err = crystalperf("index", "resolve", "--index", "tiny-1.0", "--json", *frames)
    assert (code, err) == (0, "")
    answers = json.loads(out)
    assert [each["function"] for each in answers] == ["a.B.seek", "a.B.add", None, None]
    assert [each["how"] for each in answers] == ["line", "line", "unknown", "unreadable"]
    stdin = io.TextIOWrapper(io.BytesIO("\n".join([*frames, frames[0]]).encode()))
    monkeypatch.setattr("sys.stdin", stdin)
    code, out, _ = crystalperf("index", "resolve", "--index", "tiny-1.0")
    assert code == 0
    lines = out.rstrip("\n").split("\n")
    assert len(lines) == 5
    assert "a.B.seek  (tiny-1.0 a/B.java:20-25, by line)" in lines[0]
    assert lines[4] == lines[0]
    assert "none:" in lines[2]


def test_index_diff_ranks_changes(crystalperf: Answer, tiny: tuple[str, str]) -> None:
    code, out, err = crystalperf("index", "diff", *tiny, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert [each["qualified_name"] for each in found["label"]] == ["a.B.seek"]  # 0.25 disk, then 0.75
    assert found["label"][0]["before"] == {"cpu": 0.75, "disk": 0.25, "net": 0.0}
    assert found["label"][0]["change"] == 0.5
    assert found["label"][0]["why"]
    assert found["share"] == found["moved"] == found["new"] == found["gone"] == []
    _, out, _ = crystalperf("index", "diff", *tiny)
    assert out.count("a.B.seek") == 1
    with indexes.create(built_path("tiny-3.0"), "index", {}) as connection:
        connection.execute(FUNCTION.format(id=1, version="3.0", name="add", cpu=0.9, disk=0.1))
        connection.execute(FUNCTION.format(id=2, version="3.0", name="fresh", cpu=1.0, disk=0.0))
    try:
        found = json.loads(crystalperf("index", "diff", tiny[0], "tiny-3.0", "--json")[1])
    finally:
        built_path("tiny-3.0").unlink()
    kinds = {what: [each["qualified_name"] for each in found[what]] for what in ("share", "new", "gone")}
    assert kinds == {"share": ["a.B.add"], "new": ["a.B.fresh"], "gone": ["a.B.seek"]}
