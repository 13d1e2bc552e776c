"""Where input is read from: file systems by their scheme, tasks by their locality, samples by what they do."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pytest

import crystalperf as cp
from crystalperf import indexes
from crystalperf.indexes.resources import resources
from crystalperf.indexes.schema import table as schema_table
from crystalperf.query.attribution.storage import assumptions, inputs, reach, roots, view_task_samples
from crystalperf.query.frameworks.spark.trace import trace
from crystalperf.query.results.assumptions import Assumption, InputPartlyRemote, InputRemote
from crystalperf.query.run import Run
from crystalperf.query.trace import inserting
from crystalperf.query.trace.inserting import insert
from crystalperf.query.trace.records import Columns, coded, integers, numbered, objects
from tests.spark_tables import spark_tables


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("InMemoryFileIndex(1 paths)[s3a://bucket/a/b]", ["s3a://bucket"]),
        ("InMemoryFileIndex[hdfs://nn:8020/a, hdfs://nn:8020/b]", ["hdfs://nn:8020"]),
        ("InMemoryFileIndex(2 paths)[file:/data/x, s3://other/y]", ["file:", "s3://other"]),
        ("PreparedDeltaFileIndex(1 paths)[dbfs:/user/hive/t]", ["dbfs:"]),
        ("InMemoryFileIndex(1 paths)[/data/x]", []),
        ("hdfs://nn/logs/*.gz", ["hdfs://nn"]),
        ("nothing of the kind", []),
    ],
)
def test_roots_of_locations(location: str, expected: list[str]) -> None:
    assert roots(location) == expected


def test_a_path_without_a_scheme_is_on_the_default_file_system() -> None:
    assert roots("InMemoryFileIndex(1 paths)[/data/x]", "hdfs://nn:8020/") == ["hdfs://nn:8020"]


def test_how_far_file_systems_are() -> None:
    roots_of = {"s3a://b": "net", "gs://b": "net", "abfss://c@a": "net", "dbfs:": "net", "wasbs://x": "net"}
    roots_of |= {"hdfs://nn": "replicas", "viewfs://c": "replicas", "file:": "local"}
    assert {root: reach(root) for root in roots_of} == roots_of


# Samples --------------------------------------------------------------------------------------------------------------


def made(location: str | None, *, stage_location: str | None = None) -> tuple[duckdb.DuckDBPyConnection, Columns]:
    """A run of two tasks of one stage, one near its input and one not, each with four kinds of samples."""
    found = trace(
        spark_tables(
            operators=[
                {"sql_id": 1, "node_id": 0, "name": "Scan parquet", "location": location, "accumulators": [9]},
            ],
            stages=[
                {
                    "stage_id": 3, "attempt": 0, "sql_id": 1, "parents": [], "accumulators": [8, 9],
                    "location": stage_location, "kind": "scan", "task_count": 2, "status": "succeeded",
                },
            ],
            tasks=[
                {"task_id": 0, "stage_id": 3, "stage_attempt": 0, "locality": "NODE_LOCAL"},
                {"task_id": 1, "stage_id": 3, "stage_attempt": 0, "locality": "ANY"},
            ],
        )
    )  # fmt: skip
    connection = duckdb.connect()
    for name in ("stage_inputs", "samples", "stacks"):
        for statement in schema_table("run", name).statements():
            connection.execute(statement)
    insert(connection, "stage_inputs", found.stage_inputs)
    for stack, operator in enumerate(("scan", "exchange read", "scan", "sort")):
        connection.execute(
            "INSERT INTO stacks BY NAME SELECT ? AS stack_id, [] AS frames, false AS truncated, 0 AS attributed_depth,"
            " ? AS operator, 0.25 AS cpu, 0.5 AS disk, 0.25 AS net",
            [stack, operator],
        )
        kind = "file read" if stack == 2 else "native"
        for task in (0, 1):
            connection.execute("INSERT INTO samples VALUES (0, '1', 't', ?, ?, 1, NULL, ?)", [stack, kind, task])
    return connection, found.tasks


def disk_shares(location: str | None, *, stage_location: str | None = None) -> dict[tuple[int, str, str], float]:
    connection, tasks = made(location, stage_location=stage_location)
    view_task_samples(connection, tasks, resources())
    rows = connection.execute("SELECT task_id, operator, kind, disk, cpu + disk + net FROM task_samples").fetchall()
    assert all(total == pytest.approx(1.0) for *_, total in rows)
    return {(task, operator, kind): disk for task, operator, kind, disk, _ in rows}


def test_reading_an_object_store_is_net_and_nothing_else_changes() -> None:
    shares = disk_shares("InMemoryFileIndex(1 paths)[s3a://bucket/a]")
    for task in (0, 1):
        assert shares[task, "scan", "native"] == 0.0
        assert shares[task, "scan", "file read"] == 0.5  # seen to open a local file
        assert shares[task, "exchange read", "native"] == 0.5
        assert shares[task, "sort", "native"] == 0.5


def test_hdfs_is_net_for_tasks_away_from_their_block() -> None:
    shares = disk_shares("InMemoryFileIndex[hdfs://nn/a]")
    assert shares[0, "scan", "native"] == 0.5
    assert shares[1, "scan", "native"] == 0.0


@pytest.mark.parametrize("location", [None, "InMemoryFileIndex[file:/a]", "InMemoryFileIndex[file:/a, s3a://bucket/b]"])
def test_local_and_mixed_input_keeps_its_labels(location: str | None) -> None:
    assert set(disk_shares(location).values()) == {0.5}


def test_an_rdd_named_by_its_file_counts_too() -> None:
    assert disk_shares(None, stage_location="s3n://bucket/words.txt")[0, "scan", "native"] == 0.0


# Public logs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("log", "root", "kind"),
    [
        ("kubeflow/eventlog_v2_spark-110be3a8424d4a2789cb88134418217b", "s3a://sparksense", InputRemote),
        ("rapids-tools/gpu_oom_eventlog.zstd", "hdfs://rl-", InputPartlyRemote),
        ("rapids-tools/nds_q88_photon_db_13_3.zstd", "s3://ndsv2-data", InputRemote),
    ],
)
def test_public_logs_say_where_their_input_was(
    real_inputs: Path, tmp_path: Path, log: str, root: str, kind: type[Assumption]
) -> None:
    run = cp.profile([real_inputs / "spark-eventlog" / log], output=tmp_path / "run.duckdb")
    connection = indexes.open_read_only(run.path, "run")
    found = inputs(connection)
    assert {each.root for each in found if each.reach != "local"}
    assert all(each.root.startswith(root) for each in found)
    stages = [each.stage_id for each in found]
    assert kind in set(map(type, assumptions(connection, stages, sampled=False, title="Spark")))
    assert assumptions(connection, [], sampled=False, title="Spark") == []
    connection.close()
    assert kind in set(map(type, run.debug().assumptions))


def test_the_demo_reads_local_files_and_assumes_nothing_of_them(demo_run: Run) -> None:
    connection = indexes.open_read_only(demo_run.path, "run")
    assert {each.root for each in inputs(connection)} == {"file:"}
    connection.close()
    assert demo_run.debug().assumptions == ()


@pytest.mark.parametrize("rows_at_a_time", [1, 2, 3, 5, 100])
def test_rows_go_in_a_few_at_a_time_and_in_their_order(monkeypatch: pytest.MonkeyPatch, rows_at_a_time: int) -> None:
    monkeypatch.setattr(inserting, "_ROWS", rows_at_a_time)
    table: Columns = {
        "text": coded(np.array([1, 0, 2, 1, 1]), ["a", "b", None]),
        "number": integers([5.0, None, 3.0, None, 1.0]),
        "names": objects([["x"], [], None, ["y", "z"], []]),
    }
    with duckdb.connect() as connection:
        connection.execute("SET pandas_analyze_sample = 1000000000")
        connection.execute("CREATE TABLE found (text VARCHAR, number BIGINT, names VARCHAR[])")
        insert(connection, "found", table)
        insert(connection, "found", {})
        rows = connection.execute("SELECT * FROM found ORDER BY rowid").fetchall()
    assert rows == [("b", 5, ["x"]), ("a", None, []), (None, 3, None), ("b", None, ["y", "z"]), ("b", 1, [])]


def test_the_same_text_has_the_same_number() -> None:
    column = coded(np.array([2, 0, 1, 2, 3]), ["a", "b", "a", None])
    assert numbered(column).tolist() == [0, 0, 1, 0, 2]
    assert numbered(objects(column.tolist())).tolist() == [0, 0, 1, 0, 2]
