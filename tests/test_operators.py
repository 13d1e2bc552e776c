"""Task time by SQL operator: what frames and nodes are called, how a stage's time is shared out, what it sums to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from crystalperf.indexes.resources import resources
from crystalperf.indexes.schema import table as schema_table
from crystalperf.query.attribution.code.decide import attributed_frames
from crystalperf.query.frameworks.spark.framework import SPARK
from crystalperf.query.frameworks.spark.names import of_frame, of_node, title
from crystalperf.query.frameworks.spark.sql_operators import Node, Sampled, by_metrics, by_samples, nodes_of, plans
from crystalperf.query.frameworks.spark.trace import read_log
from crystalperf.query.inputs.containers import LogFile, Part
from crystalperf.query.run import Run
from tests.reading import rows

GENERATED = "org.apache.spark.sql.catalyst.expressions.GeneratedClass$GeneratedIteratorForCodegenStage"


@pytest.mark.parametrize(
    ("class_name", "method", "kind", "pipeline"),
    [
        (GENERATED + "3", "hashAgg_doAggregateWithKeys_0$", "hashaggregate", 3),
        (GENERATED + "12", "sort_addToSorter_0$", "sort", 12),
        (GENERATED + "9", "smj_findNextJoinRows_0$", "sortmergejoin", 9),
        (GENERATED + "2", "columnartorow_nextBatch_0$", "columnartorow", 2),
        (GENERATED + "2", "processNext", "wholestagecodegen", 2),
        (GENERATED + "2", "strange_thing_0", "wholestagecodegen", 2),
        ("org.apache.spark.storage.ShuffleBlockFetcherIterator", "next", "exchange read", None),
        ("org.apache.spark.sql.execution.UnsafeRowSerializerInstance$$anon$2$$anon$3", "next", "exchange read", None),
        ("org.apache.spark.shuffle.sort.ShuffleExternalSorter", "insertRecord", "exchange write", None),
        ("org.apache.spark.sql.execution.datasources.FileScanRDD$$anon$1", "hasNext", "scan", None),
        ("org.apache.spark.sql.execution.datasources.parquet.ParquetOutputWriter", "write", "write", None),
        ("org.apache.spark.sql.execution.joins.SortMergeJoinScanner", "advanceStreamed", "sortmergejoin", None),
        ("org.apache.spark.api.python.BasePythonRunner$ReaderInputStream", "read", "python", None),
        ("org.apache.spark.sql.execution.GenerateExec", "$anonfun$doExecute$1", "generate", None),
        ("org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator$", "compile", "code generation", None),
        ("org.apache.spark.rdd.MapPartitionsRDD", "compute", "rdd", None),
    ],
)
def test_frames_name_their_operator(class_name: str, method: str, kind: str, pipeline: int | None) -> None:
    found = of_frame(class_name, method)
    assert (found.kind, found.pipeline) == (kind, pipeline)


@pytest.mark.parametrize(
    ("class_name", "method"),
    [
        ("java.util.HashMap", "get"),
        ("org.apache.spark.unsafe.map.BytesToBytesMap", "lookup"),  # of aggregates and of joins
        ("org.apache.spark.sql.execution.WholeStageCodegenExec", "$anonfun$doExecute$4"),
        ("org.apache.spark.util.collection.unsafe.sort.UnsafeExternalSorter", "spill"),
    ],
)
def test_frames_that_serve_several_operators_name_none(class_name: str, method: str) -> None:
    assert of_frame(class_name, method) is None


@pytest.mark.parametrize(
    ("name", "kind", "pipeline"),
    [
        ("WholeStageCodegen (3)", "wholestagecodegen", 3),
        ("WholeStageCodegen", "wholestagecodegen", None),
        ("Scan parquet default.t", "scan", None),
        ("BatchScan orders", "scan", None),
        ("SortMergeJoin(skew=true)", "sortmergejoin", None),
        ("BatchEvalPython", "python", None),
        ("ArrowEvalPython", "python", None),
        ("InMemoryTableScan", "memoryscan", None),
        ("Execute InsertIntoHadoopFsRelationCommand", "write", None),
        ("ColumnarToRow", "columnartorow", None),
        ("Exchange", "exchange", None),
        ("GpuHashAggregate", "hashaggregate", None),
    ],
)
def test_plan_nodes_have_the_names_of_frames(name: str, kind: str, pipeline: int | None) -> None:
    assert (of_node(name).kind, of_node(name).pipeline) == (kind, pipeline)


def test_titles_say_what_the_user_wrote() -> None:
    location = "InMemoryFileIndex(1 paths)[s3a://bucket/warehouse/orders]"
    assert title("Scan parquet ", "FileScan parquet [a#1]", location) == "Scan parquet orders"
    detail = "SortMergeJoin [l_orderkey#16L], [o_orderkey#37L], Inner"
    assert title("SortMergeJoin", detail, None) == "SortMergeJoin on l_orderkey = o_orderkey"
    detail = "Exchange hashpartitioning(k#1, v#2, 200), ENSURE_REQUIREMENTS, [plan_id=1]"
    assert title("Exchange", detail, None) == "Exchange by k, v"
    assert title("Exchange", "Exchange SinglePartition", None) == "Exchange"


# One stage ------------------------------------------------------------------------------------------------------------

STAGE = "stage:7.0"
NAMES = resources()
READS = {"records read": 10.0, "fetch wait time": 300.0}


def join_plan() -> list[Node]:
    """Two exchanges that a sort each reads, joined and written to a third exchange; the stage runs all but inputs."""
    written = {"shuffle write time": 100.0, "shuffle bytes written": 5.0}
    rows: list[tuple[int | None, str, dict[str, float]]] = [
        (None, "Exchange", written),
        (0, "WholeStageCodegen (3)", {"duration": 3000.0}),
        (1, "SortMergeJoin", {"number of output rows": 5.0}),
        (2, "InputAdapter", {}),
        (3, "WholeStageCodegen (1)", {"duration": 1500.0}),
        (4, "Sort", {"sort time": 400.0}),
        (5, "InputAdapter", {}),
        (6, "Exchange", READS),
        (2, "InputAdapter", {}),
        (8, "WholeStageCodegen (2)", {"duration": 900.0}),
        (9, "Sort", {"sort time": 200.0}),
        (10, "InputAdapter", {}),
        (11, "Exchange", READS),
    ]
    connection = duckdb.connect()
    for name in ("operators", "operator_metrics"):
        for statement in schema_table("run", name).statements():
            connection.execute(statement)
    for node_id, (parent, name, metrics) in enumerate(rows):
        connection.execute("INSERT INTO operators VALUES ('sql:1', ?, ?, ?, NULL, NULL)", [node_id, parent, name])
        for metric, value in metrics.items():
            connection.execute(
                "INSERT INTO operator_metrics VALUES ('sql:1', ?, ?, ?, 'ms', ?)", [node_id, STAGE, metric, value]
            )
    return plans(connection)["sql:1"]


def sampled(kind: str, pipeline: int | None, cpu: float = 0.0, net: float = 0.0) -> Sampled:
    return Sampled(kind, pipeline, 10, np.zeros(4), np.array([cpu, 0.0, net, 0.0]))


def test_pipeline_of_a_stack_separates_exchanges_and_sorts() -> None:
    plan = join_plan()
    assert [node.node_id for node in nodes_of(STAGE, plan, "exchange read", 1)] == [7]
    assert [node.node_id for node in nodes_of(STAGE, plan, "exchange read", 2)] == [12]
    assert [node.node_id for node in nodes_of(STAGE, plan, "exchange write", None)] == [0]
    assert [node.node_id for node in nodes_of(STAGE, plan, "sort", 2)] == [10]
    assert [node.node_id for node in nodes_of(STAGE, plan, "wholestagecodegen", 3)] == [1]
    assert [node.node_id for node in nodes_of(STAGE, plan, "sort", None)] == [5, 10]
    assert nodes_of(STAGE, plan, "window", 3) == []


def test_samples_share_out_each_resource_and_measured_waiting_goes_to_the_readers() -> None:
    body = np.array([1000.0, 0.0, 900.0, 0.0])
    seen = [
        sampled("sort", 1, cpu=30.0),
        sampled("exchange read", 1, net=20.0),
        sampled("python", None, cpu=10.0, net=20.0),
    ]
    shares = by_samples(STAGE, join_plan(), seen, body, fetch_ms=600.0, names=NAMES)
    found = {share.name: share.parts_ms for share in shares}
    assert sum(found.values()) == pytest.approx(body)
    assert found["Sort"][0] == pytest.approx(750)
    # 600 ms were measured to be the reader's; its samples claim no more than that, so the label has the other 300.
    assert found["Exchange"] == pytest.approx([0, 0, 600, 0])
    assert found["Python"] == pytest.approx([250, 0, 300, 0])


def test_time_between_indistinguishable_operators_is_halved() -> None:
    shares = by_samples(STAGE, join_plan(), [sampled("sort", None, cpu=1.0)], np.array([100.0, 0, 0, 0]), 0.0, NAMES)
    assert [(share.node and share.node.node_id, share.parts_ms[0]) for share in shares] == [(5, 50.0), (10, 50.0)]


def test_cumulative_metrics_are_separated_from_their_inputs() -> None:
    body = np.array([3000.0, 100.0, 700.0, 200.0])
    shares = by_metrics(STAGE, join_plan(), body, NAMES)
    found = {share.node.node_id: share.parts_ms for share in shares if share.node is not None}
    total = {node: float(parts.sum()) for node, parts in found.items()}
    assert total[5] == pytest.approx(400)
    assert total[7] == pytest.approx(300)
    assert found[7] == pytest.approx([0, 0, 300, 0])
    assert found[0] == pytest.approx([0, 100, 0, 0])
    assert total[4] == pytest.approx(1500 - 100 - 400 - 300)  # the writer above and the operators below taken off
    assert sum(total.values()) <= body.sum() + 1e-6
    for resource in range(4):
        assert sum(parts[resource] for parts in found.values()) <= body[resource] + 1e-6


def test_metrics_beyond_the_stages_time_are_scaled_to_it() -> None:
    body = np.array([300.0, 0.0, 0.0, 30.0])
    shares = by_metrics(STAGE, join_plan(), body, NAMES)
    assert sum(share.parts_ms for share in shares) == pytest.approx(body, abs=1e-6)


def test_a_stage_without_metrics_is_not_split() -> None:
    assert by_metrics("stage:8.0", join_plan(), np.array([300.0, 0.0, 0.0, 30.0]), NAMES) == []


# Whole runs -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(demo_run: Run) -> Run:
    return demo_run


BY_RESOURCE = ", ".join(f"sum({name}_ms)" for name in ("cpu", "disk", "net", "other"))


def test_operators_and_what_is_not_attributed_sum_to_the_stages_by_resource(run: Run) -> None:
    stages = f"SELECT stage_id, {BY_RESOURCE} FROM {{}} GROUP BY ALL ORDER BY ALL"
    tasks, operators = rows(run, stages.format("tasks")), rows(run, stages.format("operator_times"))
    assert len(tasks) == len(operators)
    for one, other in zip(tasks, operators, strict=True):
        assert one == pytest.approx(other)


def test_top_operator_of_the_demo_is_the_exchange_of_its_largest_table(run: Run) -> None:
    first, *rest = run.debug().operators
    assert first.name == "Exchange by l_partkey"
    assert first.basis == "samples"
    assert first.stages == ("stage:10.0", "stage:14.0")
    assert first.resource_ms["net"] > 0.7 * first.time_ms
    names = {each.name.partition(" ")[0] for each in rest}
    assert {"Sort", "Scan", "HashAggregate", "SortMergeJoin", "compiling"} <= names
    lost = sum(each.time_ms for each in rest if each.name == "not attributed")
    assert lost < 0.02 * sum(each.time_ms for each in rest)


def test_operator_times_come_from_plan_metrics_without_samples(demo_log_run: Run) -> None:
    found = {each.name: each for each in demo_log_run.debug().operators if each.node_id is not None}
    assert {each.basis for each in found.values()} == {"plan metrics"}
    assert found["Sort by l_partkey"].time_ms > 1000
    assert found["Exchange by l_partkey"].resource_ms["net"] > 50_000  # the fetch wait that Spark measured


def test_stage_metrics_are_its_own_increments(tmp_path: Path) -> None:
    def stage(number: int, end: int, value: str) -> dict[str, Any]:
        accumulables = [{"ID": 5, "Name": "sort time", "Value": value}, {"ID": 6, "Name": "user's", "Value": [1]}]
        info = {"Stage ID": number, "Stage Attempt ID": 0, "Completion Time": end, "Accumulables": accumulables}
        return {"Event": "SparkListenerStageCompleted", "Stage Info": info}

    sql = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecution"
    metric = {"name": "sort time", "accumulatorId": 5, "metricType": "timing"}
    plan = {"nodeName": "Sort", "simpleString": "Sort", "children": [], "metrics": [metric]}
    start = 1_700_000_000_000
    events = [
        {"Event": "SparkListenerApplicationStart", "App Name": "made", "App ID": "made", "Timestamp": start},
        {"Event": sql + "Start", "executionId": 1, "description": "q", "sparkPlanInfo": plan, "time": start},
        stage(1, start + 20, "12"),
        stage(0, start + 10, "5"),
        {"Event": sql + "End", "executionId": 1, "time": start + 30},
        {"Event": "SparkListenerApplicationEnd", "Timestamp": start + 40},
    ]
    (tmp_path / "log").write_text("\n".join(json.dumps(each, separators=(",", ":")) for each in events) + "\n")
    found = read_log(LogFile("log", (Part(str(tmp_path / "log")),))).operator_metrics
    assert sorted(zip(found["stage_id"].tolist(), found["value"].tolist(), strict=True)) == [
        ("stage:0.0", 5.0),
        ("stage:1.0", 7.0),
    ]


# A Python worker ------------------------------------------------------------------------------------------------------


def test_waiting_for_a_python_worker_is_cpu_whatever_the_label_says() -> None:
    reader = ("org.apache.spark.api.python.BasePythonRunner$ReaderInputStream", "read")
    scan = ("org.apache.spark.sql.execution.datasources.FileScanRDD$$anon$1", "hasNext")
    assert SPARK.reader.frames.annotate(*reader) == "process"
    connection = duckdb.connect()
    connection.execute("CREATE TABLE frames (frame_id INTEGER, class_name VARCHAR, method VARCHAR, role VARCHAR)")
    connection.execute("ALTER TABLE frames ADD COLUMN device VARCHAR")
    for number, frame in enumerate((reader, scan)):
        connection.execute(
            "INSERT INTO frames VALUES (?, ?, ?, ?, NULL)", [number, *frame, SPARK.reader.frames.annotate(*frame)]
        )
    connection.execute(
        """
        CREATE TABLE resolved AS SELECT frame_id, 'spark' AS index_name, method AS symbol,
            0.1 AS cpu, 0.2 AS disk, 0.7 AS net FROM frames;
        CREATE TABLE stack_frames (stack_id INTEGER, depth INTEGER, frame_id INTEGER);
        INSERT INTO stack_frames VALUES (0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 0)
        """
    )
    query = f"SELECT symbol, cpu::DOUBLE, disk::DOUBLE, net::DOUBLE FROM ({attributed_frames(NAMES)}) ORDER BY stack_id"
    # A scan that the worker's input pulls from is a scan.
    assert connection.execute(query).fetchall() == [("read", 1.0, 0.0, 0.0), ("hasNext", 0.1, 0.2, 0.7)]
