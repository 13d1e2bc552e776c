"""The views that ship with run files and indexes agree with the answers and with the tables."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import duckdb
import pytest

from crystalperf.indexes.exports import locate
from crystalperf.query import profile
from crystalperf.query.frameworks.spark.sql_operators import operator_times
from crystalperf.query.run import Run
from crystalperf.query.sql import summed
from crystalperf.query.statements import child
from crystalperf.query.statements.asking import answering, request_for
from crystalperf.query.statements.views import view, views, views_of
from tests.refusals import is_one_line

MANY_TASKS = Path(__file__).parent / "data/runs/rolled"

Answer = Callable[..., tuple[int, str, str]]


def rows(run: Run | None, statement: str, *names: str) -> list[dict[str, Any]]:
    files = [(name, locate(name)) for name in names]
    connection = child.opened(None if run is None else run.path, files, statement=statement)
    try:
        columns = child.execute(connection, statement)
        return [dict(zip(columns, row, strict=True)) for row in connection.fetchall()]
    finally:
        connection.close()


# All views ----------------------------------------------------------------------------------------------------------


def test_every_view_documents_itself_and_its_columns(demo_run: Run) -> None:
    shipped = [*views("run"), *views("index"), *views_of("spark")]
    python = ("python-3.11", locate("python-3.11"))
    connection = child.opened(demo_run.path, [python], statement="FROM duckdb_columns()")
    try:
        for each in shipped:
            assert each.comment
            if each.is_macro:
                continue
            question = (
                "SELECT column_name, comment FROM duckdb_columns() WHERE table_name = ? AND database_name = 'memory'"
            )
            found = dict(connection.execute(question, [each.name]).fetchall())
            assert found, each.name
            assert [name for name, comment in found.items() if not comment] == [], each.name
    finally:
        connection.close()
    assert len(shipped) >= 11


def test_sums_are_the_same_to_the_last_digit_in_whatever_order_threads_come(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("run.duckdb", "turned.duckdb")]
    profile(MANY_TASKS, output=paths[0])
    shutil.copy(*paths)
    with duckdb.connect(str(paths[1])) as connection:
        connection.execute("CREATE TEMP TABLE turned AS FROM tasks ORDER BY rowid DESC")
        connection.execute("DELETE FROM tasks; INSERT INTO tasks FROM turned")
    for name in ("stage_resources", "scope_resources", "worker_resources", "operator_resources"):
        one, turned = (rows(Run(path), f"FROM {name} ORDER BY ALL") for path in paths)
        assert one == turned, name
    with duckdb.connect(str(paths[1]), read_only=True) as connection:
        kept = connection.execute("FROM operator_times").fetchnumpy()
        again = operator_times(connection, ("cpu", "disk", "net"), False)
        assert [kept[f"{name}_ms"].tolist() for name in ("cpu", "other")] == [
            again[f"{name}_ms"].tolist() for name in ("cpu", "other")
        ]
        sums = ", ".join(f"{summed(f'{name}_ms')} AS {name}_ms" for name in ("cpu", "disk", "net", "other"))
        of_tasks = connection.execute(f"SELECT stage_id, {sums} FROM tasks GROUP BY ALL ORDER BY ALL").fetchall()
        columns = "stage_id, cpu_ms, disk_ms, net_ms, other_ms"
        of_stages = connection.execute(f"SELECT {columns} FROM stages SEMI JOIN tasks USING (stage_id) ORDER BY ALL")
        assert of_tasks == of_stages.fetchall()


def test_a_view_without_words_is_refused() -> None:
    with pytest.raises(ValueError, match="its description"):
        view("bare", "SELECT 1")


def test_table_of_the_file_never_replaces_a_shipped_view(log_run: Run, tmp_path: Path) -> None:
    """A stranger's run file may have more tables than it needs: theirs do not answer for ours."""
    import duckdb

    copy = tmp_path / "copy.duckdb"
    copy.write_bytes(log_run.path.read_bytes())
    connection = duckdb.connect(str(copy))
    connection.execute("CREATE TABLE critical_path AS SELECT 'theirs' AS name")
    connection.execute("CREATE TABLE stage_resources AS SELECT 'theirs' AS name")
    connection.close()
    for name in ("critical_path", "stage_resources"):
        names = {each["name"] for each in rows(Run(copy), f"SELECT name FROM {name}")}
        assert names, name
        assert "theirs" not in names


# Runs ---------------------------------------------------------------------------------------------------------------


def test_the_critical_path_is_that_of_the_answer(demo_run: Run) -> None:
    reported = demo_run.debug().critical_path
    found = rows(demo_run, "SELECT * FROM critical_path ORDER BY position")
    assert [each["node_id"] for each in found] == [each.id for each in reported]
    for row, item in zip(found, reported, strict=True):
        assert [row["start_ms"], row["end_ms"]] == [item.start_ms, item.end_ms]
        assert {name: row[f"{name}_ms"] for name in item.resource_ms} == dict(item.resource_ms)
    assert [each["kind"] for each in rows(demo_run, "FROM findings")] == [
        each.kind for each in demo_run.debug().findings
    ]


def test_computed_tables_are_computed_on_request(demo_run: Run) -> None:
    assert rows(demo_run, "SELECT count(*) AS n FROM duckdb_tables() WHERE table_name = 'findings'") == [{"n": 1}]
    assert rows(demo_run, "SELECT count(*) > 0 AS some FROM Critical_Path") == [{"some": True}]


@pytest.mark.parametrize("name", ["stage_resources", "worker_resources", "task_skew"])
def test_times_by_resource_add_up_to_those_of_the_tasks(demo_run: Run, name: str) -> None:
    (found,) = rows(
        demo_run, f"SELECT sum(cpu_ms + disk_ms + net_ms + other_ms) AS ms, sum(task_ms) AS whole FROM {name}"
    )
    (tasks,) = rows(demo_run, "SELECT sum(finish_ms - launch_ms) AS ms FROM tasks")
    assert found["ms"] == pytest.approx(tasks["ms"])
    assert found["whole"] == pytest.approx(tasks["ms"])


def test_spark_stage_view_equals_the_stage_view(demo_run: Run) -> None:
    id = "'stage:' || spark_stage_id || '.' || attempt AS id"
    stages = rows(demo_run, f"SELECT {id}, task_ms FROM spark_stage_resources")
    of_core = rows(demo_run, "SELECT stage_id AS id, task_ms FROM stage_resources")
    assert sorted(map(str, stages)) == sorted(map(str, of_core))


def test_hot_functions_and_operators_account_for_what_tables_hold(demo_run: Run) -> None:
    (hot,) = rows(demo_run, "SELECT sum(time_ms) AS ms, sum(samples)::INTEGER AS samples FROM hot_functions")
    (decided,) = rows(
        demo_run,
        "SELECT sum(weight_ms) AS ms, count(*) AS samples FROM samples JOIN stacks USING (stack_id)"
        " WHERE task_id IS NOT NULL AND attributed_depth IS NOT NULL AND weight_ms > 0",
    )
    assert hot == pytest.approx(decided)
    (operators,) = rows(demo_run, "SELECT sum(task_ms) AS ms FROM operator_resources")
    (times,) = rows(demo_run, "SELECT sum(cpu_ms + disk_ms + net_ms + other_ms) AS ms FROM operator_times")
    assert operators["ms"] == pytest.approx(times["ms"])


def test_stacks_of_a_function_contain_it(demo_run: Run) -> None:
    found = rows(demo_run, "SELECT frames FROM stacks_of('ShuffleBlockFetcherIterator.next') LIMIT 3")
    assert found
    for each in found:
        assert any("ShuffleBlockFetcherIterator.next:" in frame for frame in each["frames"])


# Indexes ------------------------------------------------------------------------------------------------------------


def test_a_label_is_the_largest_share(own_cache: None) -> None:
    (found,) = rows(
        None,
        "SELECT count(*) AS n, count(*) FILTER (share = greatest(cpu, disk, net)) AS largest,"
        " count(*) FILTER (CASE label WHEN 'cpu' THEN cpu WHEN 'disk' THEN disk ELSE net END = share) AS named,"
        " count(DISTINCT (index_name, function_id)) AS distinct_ones FROM labelled",
        "python-3.11",
        "pyspark-4.0.1",
    )
    (count,) = rows(None, "SELECT count(*) AS n FROM functions", "python-3.11", "pyspark-4.0.1")
    assert {*found.values()} == {count["n"]}


@pytest.mark.later  # 4 s
def test_bodies_modules_and_generated_files_are_marked(own_cache: None) -> None:
    asked_for = (
        "SELECT any_value(has_body) AS body, any_value(generated) AS made, any_value(module) AS module FROM labelled"
        " WHERE qualified_name = '{}'"
    )
    wanted = {
        "java.util.List.size": (False, False, "java.base"),
        "java.util.ArrayList.size": (True, False, "java.base"),
        "org.apache.spark.sql.catalyst.parser.SqlBaseParser.getRuleNames": (True, True, "org.apache.spark.sql"),
        "org.apache.spark.status.protobuf.StoreTypes.getDescriptor": (True, True, "org.apache.spark.status"),
    }
    for name, reported in wanted.items():
        (row,) = rows(None, asked_for.format(name), "jdk-17", "spark-4.0.1")
        assert tuple(row.values()) == reported, name


def test_each_call_is_resolved_by_name_elsewhere_or_outside(own_cache: None) -> None:
    found = {
        each["status"]: each["n"]
        for each in rows(None, "SELECT status, count(*) AS n FROM callees GROUP BY status", "python-3.11")
    }
    (counts,) = rows(None, "SELECT count(*) AS n, count(callee_id) AS resolved FROM calls", "python-3.11")
    assert found.keys() == {"resolved", "by name", "elsewhere", "outside"}
    assert sum(found.values()) == counts["n"]
    assert found["resolved"] == counts["resolved"]
    (same,) = rows(None, "SELECT count(*) FILTER (status = 'resolved') AS n FROM callers", "python-3.11")
    assert same["n"] == counts["resolved"]


def test_only_what_a_statement_needs_is_made(demo_run: Run) -> None:
    for statement, made in (("SELECT 1", set()), ("FROM scope_resources", {"scope_resources", "stage_resources"})):
        connection = child.opened(demo_run.path, [], statement=statement)
        found = {name for (name,) in connection.execute("SELECT view_name FROM duckdb_views()").fetchall()}
        connection.close()
        assert found & {each.name for each in views("run")} == made


# Errors of wrong statements -----------------------------------------------------------------------------------------


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("statement", "near"),
    [
        ("SELECT lable FROM labelled", "label"),
        ("SELECT l.qualifed_name FROM labelled AS l", "qualified_name"),
        ("SELECT * FROM labeled", "labelled"),
        ("SELECT confidense FROM functions WHERE cpu > 0.5", "confidence"),
    ],
)
def test_misspelt_name_suggests_the_nearest(crystalperf: Answer, statement: str, near: str) -> None:
    code, out, err = crystalperf("sql", "--index", "python-3.11", statement)
    assert (code, out) == (1, "")
    is_one_line(err, f'"{near}"')


def test_missing_view_names_the_option_that_adds_it(crystalperf: Answer) -> None:
    assert crystalperf("sql", "--index", "python-3.11", "FROM critical_path")[2].rstrip().endswith("--run RUN")
    assert crystalperf("sql", "--index", "python-3.11", "FROM stage_resources")[2].rstrip().endswith("--run RUN")


def test_names_of_functions_are_shown_whole(crystalperf: Answer) -> None:
    name = "org.apache.spark.sql.execution.datasources.parquet.VectorizedParquetRecordReader.initializeInternal"
    statement = f"SELECT qualified_name, label, file, symbol FROM labelled WHERE qualified_name = '{name}'"
    code, out, _ = crystalperf("sql", "--index", "spark-4.0.1", statement)
    assert code == 0
    assert name in out
    assert "VectorizedParquetRecordReader#initializeInternal()." in out


def test_an_answer_may_come_as_an_arrow_stream(demo_run: Run) -> None:
    pa = pytest.importorskip("pyarrow")
    statement = "SELECT stage_id, task_ms, tasks FROM stage_resources ORDER BY stage_id"
    with answering(request_for(statement, demo_run.path, [], form="arrow"), 60) as (_, pieces):
        table = pa.ipc.open_stream(b"".join(cast("Iterator[bytes]", pieces))).read_all()
    assert table.to_pylist() == rows(demo_run, statement)


def test_json_of_a_view(crystalperf: Answer, demo_run: Run) -> None:
    code, out, _ = crystalperf("sql", "--run", demo_run.path, "--json", "SELECT most FROM scope_resources")
    assert (code, json.loads(out)) == (0, [{"most": "cpu"}])
