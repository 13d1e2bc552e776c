"""Engines that run Spark's operators: their names and times, what stayed on the JVM, why, and what it cost."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

import crystalperf as cp
from crystalperf.query.frameworks.spark import recommendations as spark
from crystalperf.query.frameworks.spark.engines import (
    COMET,
    GLUTEN,
    RAPIDS,
    SPARK_TIMING,
    Engine,
    configured,
    engine_of,
    engine_of_plan,
    spark_name,
    timing_of,
)
from crystalperf.query.frameworks.spark.fallbacks import Known, Placed, placed
from crystalperf.query.frameworks.spark.log.events import Accumulable
from crystalperf.query.frameworks.spark.log.gpu import gpu_times
from crystalperf.query.frameworks.spark.log.reasons import Reason, explained, in_plan, of_gluten
from crystalperf.query.frameworks.spark.names import of_node
from crystalperf.query.frameworks.spark.private import PATTERNS
from crystalperf.query.frameworks.spark.remarks import EngineUse
from crystalperf.query.run import Run
from crystalperf.query.runfile.pseudonyms import Pseudonyms
from crystalperf.query.text.sentences import lines_of, text_of
from tests.hand_made import figures
from tests.reading import profiled, rows
from tests.spark_logs import Operator, Query, Stage, waves, write

OWN = "total time (in ms) spent in this operator"
DECODING = "Wall clock time elapsed for data decompression + decoding"
CONVERTING = "time in conversion"
ROWS = "number of output rows"
PLUGIN = {"spark.plugins": "org.apache.spark.CometPlugin"}

# Names and metrics ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "engine", "same", "kind"),
    [
        ("CometNativeScan parquet db.t", "comet", "Scan parquet db.t", "scan"),
        ("CometScan parquet ", "comet", "Scan parquet", "scan"),
        ("CometHashAggregate", "comet", "HashAggregate", "hashaggregate"),
        ("CometHashJoin", "comet", "ShuffledHashJoin", "shuffledhashjoin"),
        ("CometExchange", "comet", "Exchange", "exchange"),
        ("CometColumnarExchange", "comet", "Exchange", "exchange"),
        ("CometColumnarToRow", "comet", "ColumnarToRow", "columnartorow"),
        ("CometNativeColumnarToRow", "comet", "ColumnarToRow", "columnartorow"),
        ("CometSparkRowToColumnar", "comet", "RowToColumnar", "rowtocolumnar"),
        ("CometWindowExec", "comet", "Window", "window"),
        ("CometMapInBatch", "comet", "MapInArrow", "python"),
        ("FilterExecTransformer", "gluten", "Filter", "filter"),
        ("FlushableHashAggregateTransformer", "gluten", "HashAggregate", "hashaggregate"),
        ("FileSourceScanExecTransformer parquet db.t", "gluten", "Scan parquet db.t", "scan"),
        ("SortMergeJoinExecTransformer(skew=true)", "gluten", "SortMergeJoin(skew=true)", "sortmergejoin"),
        ("ColumnarExchange", "gluten", "Exchange", "exchange"),
        ("VeloxColumnarToRow", "gluten", "ColumnarToRow", "columnartorow"),
        ("RowToVeloxColumnar", "gluten", "RowToColumnar", "rowtocolumnar"),
        ("GpuColumnarExchange", "rapids", "Exchange", "exchange"),
        ("GpuScan parquet ", "rapids", "Scan parquet", "scan"),
        ("GpuRowToColumnar", "rapids", "RowToColumnar", "rowtocolumnar"),
        ("PhotonAgg", "photon", "HashAggregate", "hashaggregate"),
        ("PhotonShuffleExchangeSink", "photon", "Exchange", "exchange"),
        ("NativeShuffleExchange", "auron", "Exchange", "exchange"),
        ("NativeParquetScan db.t", "auron", "Scan parquet db.t", "scan"),
        ("ConvertToNative", "auron", "RowToColumnar", "rowtocolumnar"),
    ],
)
def test_operators_of_engines_have_sparks_kinds(name: str, engine: str, same: str, kind: str) -> None:
    found = engine_of(name)
    assert found is not None
    assert (found.key, spark_name(name), of_node(name).kind) == (engine, same, kind)


@pytest.mark.parametrize(
    "name", ["ColumnarToRow", "RowToColumnar", "Exchange", "WholeStageCodegen (3)", "Scan parquet "]
)
def test_sparks_own_operators_keep_their_names(name: str) -> None:
    assert engine_of(name) is None
    assert spark_name(name) == name
    assert timing_of(name, of_node(name).kind) is SPARK_TIMING


def test_generated_code_is_a_pipeline_of_spark_only() -> None:
    assert of_node("WholeStageCodegen (3)").pipeline == 3
    assert of_node("WholeStageCodegenTransformer (3)").pipeline is None, "Gluten numbers its own"


@pytest.mark.parametrize(
    ("name", "metrics", "own_ms", "inclusive_ms"),
    [
        ("CometHashAggregate", {OWN: 40.0}, 40.0, 0.0),
        # Writing is a part of the native writer's time; decoding and waiting are of the readers.
        (
            "CometExchange",
            {"native shuffle writer time": 50.0, "shuffle write time": 20.0, "repartition time": 9.0,
             "decoding and decompression time": 5.0, "fetch wait time": 3.0},
            58.0,
            0.0,
        ),
        ("CometColumnarExchange", {"shuffle write time": 20.0}, 20.0, 0.0),
        (
            "CometHashJoin",
            {"Total time for joining": 7.0, "Total time for collecting build-side of join": 30.0},
            7.0,
            30.0,
        ),
        ("CometSortMergeJoin", {"Total time for joining": 90.0}, 90.0, 0.0),
        ("CometSparkRowToColumnar", {"time converting Spark batches to Arrow batches": 80.0}, 0.0, 80.0),
        ("FileSourceScanExecTransformer parquet t", {"time of scan and filter": 30.0, "time of scan": 20.0}, 30.0, 0.0),
        ("ShuffledHashJoinExecTransformer", {"time of hash build": 4.0, "time of hash probe": 6.0}, 10.0, 0.0),
        ("InputIteratorTransformer", {"time of operator input": 70.0}, 0.0, 70.0),
        ("NativeHashAggregate", {"Native.elapsed_compute": 8.0}, 8.0, 0.0),
        ("GpuSort", {"op time": 12.0, "sort time": 9.0}, 12.0, 0.0),
        ("GpuShuffleCoalesce", {"total time": 100.0}, 0.0, 100.0),
        ("GpuRowToColumnar", {"total time": 6.0, "stream time": 90.0}, 6.0, 0.0),
        ("PhotonProject", {"exclusive time": 5.0, "cumulative time": 50.0}, 5.0, 0.0),
        ("Sort", {"sort time": 9.0, "op time": 1000.0}, 9.0, 0.0),
    ],
)  # fmt: skip
def test_times_are_the_operators_own_or_include_those_below(
    name: str, metrics: Mapping[str, float], own_ms: float, inclusive_ms: float
) -> None:
    timing = timing_of(name, of_node(name).kind)
    assert (timing.own_ms(metrics), timing.inclusive_ms(metrics)) == (own_ms, inclusive_ms)


def test_the_engine_of_a_plan_is_that_of_most_operators() -> None:
    assert engine_of_plan(["Sort", "NativeScan hive t", "FilterExecTransformer", "ProjectExecTransformer"]) is GLUTEN
    assert engine_of_plan(["Sort", "ColumnarToRow"]) is None


@pytest.mark.parametrize(
    ("properties", "engine"),
    [
        (PLUGIN, COMET),
        ({**PLUGIN, "spark.comet.enabled": "false"}, None),
        ({"spark.plugins": "org.apache.gluten.GlutenPlugin"}, GLUTEN),
        ({"spark.plugins": "x.Y,com.nvidia.spark.SQLPlugin", "spark.rapids.sql.enabled": "true"}, RAPIDS),
        ({"spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin"}, None),
        ({}, None),
    ],
)
def test_settings_load_an_engine(properties: Mapping[str, str], engine: Engine | None) -> None:
    assert configured(properties) is engine


@pytest.mark.parametrize(
    "text",
    [
        "CometNativeScan parquet shop.orders",
        "GpuScan parquet shop.orders",
        "PhotonScan parquet shop.orders",
        "FileSourceScanExecTransformer parquet shop.orders",
        "NativeParquetScan shop.orders",
        "CometNativeScan parquet shop.orders[id#1] Batched: true",
        "GpuBatchScan shop.orders[id#1]",
        "FileScan parquet shop.orders[id#1,day#2]",
    ],
)
def test_tables_in_the_names_of_scans_have_pseudonyms(text: str) -> None:
    assert "table-1" in Pseudonyms(PATTERNS).text(text)
    assert "shop.orders" not in Pseudonyms(PATTERNS).text(text)


# Where operators ran --------------------------------------------------------------------------------------------------


def plan_of(text: str) -> list[Known]:
    """A plan from its lines, each operator below the one above it that is indented less."""
    found: list[Known] = []
    above: list[tuple[int, int]] = []
    for line in filter(str.strip, text.split("\n")):
        depth = len(line) - len(line.lstrip())
        while above and above[-1][0] >= depth:
            above.pop()
        found.append(Known(len(found), above[-1][1] if above else None, line.strip()))
        above.append((depth, len(found) - 1))
    return found


def short(plan: Sequence[Known], found: Sequence[Placed]) -> dict[str, tuple[str, int | None]]:
    return {plan[each.node_id].name: (each.ran_in, each.fallback) for each in found}


ISLAND = plan_of("""
CometColumnarToRow
 CometHashAggregate
  CometSparkRowToColumnar
   WholeStageCodegen (2)
    Project
     InputAdapter
      BatchEvalPython
       WholeStageCodegen (1)
        CometColumnarToRow (1)
         CometFilter
          CometNativeScan parquet t
""")


def test_a_fallback_has_its_operators_and_the_conversions_around_them() -> None:
    found = placed(ISLAND, None, {})
    assert short(ISLAND, found) == {
        "CometColumnarToRow": ("conversion", None),  # of the result, which the program needs as rows
        "CometHashAggregate": ("engine", None),
        "CometSparkRowToColumnar": ("conversion", 0),
        "WholeStageCodegen (2)": ("jvm", 0),
        "Project": ("jvm", 0),
        "BatchEvalPython": ("jvm", 0),
        "WholeStageCodegen (1)": ("conversion", 0),
        "CometColumnarToRow (1)": ("conversion", 0),
        "CometFilter": ("engine", None),
        "CometNativeScan parquet t": ("engine", None),
    }
    assert [ISLAND[each.node_id].name for each in found if not each.named] == [
        "WholeStageCodegen (2)",
        "WholeStageCodegen (1)",
    ]


def test_operators_that_the_engine_separates_are_fallbacks_of_their_own() -> None:
    plan = plan_of("""
    Exchange
     ColumnarToRow
      PhotonResultStage
       PhotonProject
        RowToColumnar
         Scan csv 
    """)
    assert short(plan, placed(plan, None, {})) == {
        "Exchange": ("jvm", 0),
        "ColumnarToRow": ("conversion", 0),
        "PhotonResultStage": ("engine", None),
        "PhotonProject": ("engine", None),
        "RowToColumnar": ("conversion", 1),
        "Scan csv": ("jvm", 1),
    }


def test_decoding_what_spark_itself_reads_is_not_a_conversion() -> None:
    plan = plan_of("""
    CometHashAggregate
     CometColumnarExchange
      WholeStageCodegen (1)
       Project
        ColumnarToRow
         InputAdapter
          Scan parquet t
    """)
    found = short(plan, placed(plan, None, {}))
    assert found["ColumnarToRow"] == ("jvm", 0)
    assert found["WholeStageCodegen (1)"] == ("jvm", 0)


def test_commands_and_wrappers_have_no_place() -> None:
    plan = plan_of("""
    Execute InsertIntoHadoopFsRelationCommand
     AdaptiveSparkPlan
      ShuffleQueryStage
       CometExchange
        CometScan parquet t
    """)
    assert short(plan, placed(plan, None, {})) == {
        "CometExchange": ("engine", None),
        "CometScan parquet t": ("engine", None),
    }


def test_plans_without_the_engine_count_if_it_says_why() -> None:
    plan = plan_of("""
    HashAggregate
     Scan parquet t
    """)
    assert placed(plan, COMET, {}) == []
    assert placed(plan, None, {"HashAggregate": ["no"]}) == []
    found = placed(plan, COMET, {"HashAggregate": ["mode is not supported"]})
    assert [(each.ran_in, each.fallback, each.reason) for each in found] == [
        ("jvm", 0, "mode is not supported"),
        ("jvm", 0, None),
    ]


def test_reasons_follow_the_order_of_the_plan() -> None:
    plan = plan_of("""
    CometSort
     Project
      CometSort (2)
       Project
        CometScan parquet
    """)
    assert [each.reason for each in placed(plan, None, {"Project": ["a", "b"]}) if each.ran_in == "jvm"] == ["a", "b"]
    unclear = placed(plan, None, {"Project": ["a", "b", "a"]})
    assert [each.reason for each in unclear if each.ran_in == "jvm"] == ["a; b", "a; b"]
    general = placed(plan, None, {"": ["why"]})
    assert [each.reason for each in general if each.ran_in == "jvm"] == ["why", "why"]


# Reasons in logs ------------------------------------------------------------------------------------------------------

TREE = """== Physical Plan ==
* Project (3)

== Extended Information (Comet) ==
CometColumnarToRow
+- CometHashAggregate
   :-  Project [COMET: band is not supported, two reasons]
   :  +-  BatchEvalPython [COMET: BatchEvalPython is not supported] [COMET-INFO: more]
   +- CometNativeScan parquet t

Comet accelerated 2 out of 4 eligible operators (50%).

== Other ==
 Sort [COMET: of another section]
"""


def text(value: str) -> Raw:
    return Raw(json.dumps(value).encode())


def reasons_in(given: Raw) -> list[Reason] | None:
    explanation = explained(given)
    return None if explanation is None else in_plan(explanation)


def test_reasons_of_comet_are_those_of_the_tree_or_a_list() -> None:
    assert reasons_in(text(TREE)) == [
        ("Project", "band is not supported, two reasons"),
        ("BatchEvalPython", "BatchEvalPython is not supported"),
    ]
    listed = "== Extended Information (Comet) ==\nmode is not supported\nBatchEvalPython is not supported\n"
    assert reasons_in(text(listed)) == [("", "mode is not supported"), ("", "BatchEvalPython is not supported")]
    native = (
        "== Extended Information (Comet) ==\nCometScan\n\nComet accelerated 1 out of 1 eligible operators (100%).\n"
    )
    assert reasons_in(text(native)) == []


@pytest.mark.parametrize("heading", ["Reference node", "reference node"])
def test_reasons_of_photon_come_before_the_operator(heading: str) -> None:
    given = (
        "== Photon Explanation ==\nPhoton does not fully support the query because:\n"
        "\tband(amount#2) is not supported:\n\t\tThe expression is unimplemented.\n\n"
        f"{heading}:\n\tProject [band(amount#2) AS band#3]\n\n\tUnsupported node: HashAggregate(keys=[band#3])\n"
    )
    assert reasons_in(text(given)) == [
        ("Project", "band(amount) is not supported: The expression is unimplemented."),
        ("", "Unsupported node: HashAggregate(keys=[band])"),
    ]
    assert reasons_in(text("== Photon Explanation ==\nThe query is fully supported by Photon.\n")) == []


@pytest.mark.parametrize(
    "given", [Raw(b""), Raw(b"null"), text("== Physical Plan =="), Raw(b'"== Photon Explanation ==')]
)
def test_plans_without_a_section_or_damaged_ones_have_no_reasons(given: Raw) -> None:
    assert reasons_in(given) is None


def test_gluten_numbers_the_operators_of_its_reasons() -> None:
    assert list(of_gluten({"013 Project": "b", "002 Scan parquet t": "a", "3 Sort": None})) == [
        ("Scan parquet t", "a"),
        ("Project", "b"),
    ]


# A run ----------------------------------------------------------------------------------------------------------------


def comet_tree(scan_ms: float = 2_000.0) -> Operator:
    """A plan of one stage with a Python function between operators of Comet; 16 s of tasks."""
    scan = Operator("CometNativeScan parquet t", metrics={"scan time": {0: scan_ms}})
    down = Operator("CometNativeColumnarToRow", metrics={CONVERTING: {0: 1_000.0}, ROWS: {0: 5e6}}, inputs=[scan])
    python = Operator("BatchEvalPython", metrics={"time to run Python workers": {0: 9_000.0}}, inputs=[down])
    up = Operator(
        "CometSparkRowToColumnar",
        metrics={"time converting Spark batches to Arrow batches": {0: 11_000.0}, "number of input rows": {0: 5e6}},
        inputs=[python],
    )
    spilled = {OWN: {0: 3_000.0}, "total spilled bytes": {0: 4e8}}
    return Operator("CometHashAggregate", metrics=spilled, inputs=[up])


def comet_run(folder: Path, text: str = "", properties: Mapping[str, str] = PLUGIN, more: Sequence[Any] = ()) -> Run:
    stage = Stage(list(waves(4, 4, 2, ms=4_000, cpu_ms=3_900)), reads="CometNativeScan")
    query = Query(tree=comet_tree(), text=text)
    log = write(
        folder / "log", [stage], executors={"1": 2, "2": 2}, properties=properties, query=query, version="4.1.0"
    )
    with log.open("a", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(each)}\n" for each in more)
    return cp.profile([log], output=folder / "run.duckdb")


def test_fallbacks_cost_their_own_time_and_the_conversions(tmp_path: Path) -> None:
    run = comet_run(tmp_path, TREE)
    ((*who, operators, reason, jvm_ms, conversion_ms, converted),) = run.sql(
        "SELECT scope_id, fallback, engine, stage_id, operators, reason, jvm_ms, conversion_ms, converted_rows"
        " FROM spark_fallbacks"
    ).rows
    assert who == ["sql:0", 0, "comet", "stage:0.0"]
    assert (list(operators), reason) == (["BatchEvalPython"], "BatchEvalPython is not supported")
    # Each metric is of the operators below it, too: 9 s of Python workers with 3 s below, 11 s of conversion with 9.
    assert (jvm_ms, conversion_ms, converted) == pytest.approx((6_000, 3_000, 1e7))
    verdict = run.verdict()
    (use,) = (each for each in verdict.debug.measurements if isinstance(each, EngineUse))
    assert (use.engine, use.spilled_bytes) == ("Comet", pytest.approx(4e8))
    assert (use.task_ms, use.engine_ms, use.jvm_ms, use.conversion_ms) == pytest.approx((16_000, 5_000, 6_000, 3_000))
    assert figures(text_of(use, verdict.debug.words)) == [16, 31, 38, 19, 12, 381]


def test_code_that_only_converts_for_a_timed_operator_takes_none_of_its_time(tmp_path: Path) -> None:
    """As in a run of Comet 1.2: both metrics go on until the aggregation has read the last row."""
    scan = Operator("CometNativeScan parquet t", metrics={"scan time": {0: 1_000.0}})
    rows_of = Operator("CometColumnarToRow", inputs=[Operator("InputAdapter", inputs=[scan])])
    code = Operator("WholeStageCodegen (1)", metrics={"duration": {0: 9_000.0}}, inputs=[rows_of])
    tree = Operator("ObjectHashAggregate", metrics={"time in aggregation build": {0: 9_100.0}}, inputs=[code])
    stage = Stage(list(waves(4, 4, 2, ms=4_000, cpu_ms=3_900)))
    log = write(tmp_path / "log", [stage], executors={"1": 2, "2": 2}, properties=PLUGIN, query=Query(tree=tree))
    run = cp.profile([log], output=tmp_path / "run.duckdb")
    found = run.sql("SELECT name, task_ms FROM operator_resources WHERE node_id IS NOT NULL ORDER BY node_id").rows
    assert [tuple(each) for each in found] == [
        ("ObjectHashAggregate", pytest.approx(8_100)),
        ("CometNativeScan parquet t", pytest.approx(1_000)),
    ]


def test_cpu_time_of_the_engines_threads_counts_for_the_tasks(tmp_path: Path) -> None:
    scan = Operator("CometNativeScan parquet t", metrics={DECODING: {0: 6_000.0}})
    tree = Operator("CometHashAggregate", metrics={OWN: {0: 6_500.0}}, inputs=[scan])
    stage = Stage(list(waves(4, 4, 2, ms=4_000, cpu_ms=125)), reads="CometNativeScan")
    log = write(tmp_path / "log", [stage], executors={"1": 2, "2": 2}, properties=PLUGIN, query=Query(tree=tree))
    run = cp.profile([log], output=tmp_path / "run.duckdb")
    ((cpu_ms, own_cpu_ms, thread_ms),) = rows(
        run, "SELECT sum(cpu_ms), sum(own_cpu_ms), sum(run_cpu_ms) FROM tasks JOIN spark_tasks USING (task_id)"
    )
    assert (cpu_ms, own_cpu_ms, thread_ms) == pytest.approx((12_500, 12_500, 500))


def fallback_of(run: Run) -> tuple[spark.RunInEngine, tuple[str, ...]]:
    verdict = run.verdict()
    (found,) = (each for each in verdict.recommendations if isinstance(each, spark.RunInEngine))
    return found, tuple(lines_of(found, verdict.debug.words))


def test_a_fallback_with_a_reason_is_to_be_changed_in_the_program(tmp_path: Path) -> None:
    found, lines = fallback_of(comet_run(tmp_path, TREE))
    assert (found.price, found.engine, found.operators) == ("code", "Comet", ("BatchEvalPython",))
    assert (found.stage, found.reason, found.others) == ("stage:0.0", "BatchEvalPython is not supported", 0)
    assert (found.jvm_share, found.conversion_share) == pytest.approx((6 / 16, 3 / 16))
    assert found.saving.range_ms == pytest.approx((0.0, 4_000 * 9 / 16))
    assert (found.settings, lines) == ((), ())


def test_without_a_reason_the_setting_that_gives_it_is_named(tmp_path: Path) -> None:
    found, lines = fallback_of(comet_run(tmp_path))
    assert (found.price, found.reason) == ("inspect", None)
    assert lines == ("--conf spark.sql.extendedExplainProviders=org.apache.comet.ExtendedExplainInfo",)


def test_a_setting_that_the_run_had_is_not_recommended(tmp_path: Path) -> None:
    given = {**PLUGIN, "spark.sql.extendedExplainProviders": "x.Y,org.apache.comet.ExtendedExplainInfo"}
    found, lines = fallback_of(comet_run(tmp_path, properties=given))
    assert (found.reason, found.settings, lines) == (None, (), ())


@pytest.mark.parametrize("package", ["org.apache.gluten", "io.glutenproject"])
def test_events_of_gluten_have_reasons(tmp_path: Path, package: str) -> None:
    event = {
        "Event": f"{package}.events.GlutenPlanFallbackEvent", "executionId": 0, "numGlutenNodes": 3,
        "numFallbackNodes": 1, "physicalPlanDescription": "", "fallbackNodeToReason": {"003 BatchEvalPython": "no"},
    }  # fmt: skip
    built = {"Event": f"{package}.events.GlutenBuildInfoEvent", "info": {}}
    run = comet_run(tmp_path, more=[event, built])
    assert rows(run, "SELECT DISTINCT reason FROM spark_engine_operators WHERE reason IS NOT NULL") == [("no",)]
    assert rows(run, "SELECT name FROM import_stats WHERE name = 'unknown_event'") == []


def test_a_run_of_spark_alone_has_no_engine(tmp_path: Path) -> None:
    tree = Operator("HashAggregate", metrics={ROWS: {0: 1.0}}, inputs=[Operator("Scan parquet t")])
    log = write(
        tmp_path / "log", [Stage(list(waves(4, 4, 2, ms=4_000)))], executors={"1": 2, "2": 2}, query=Query(tree=tree)
    )
    run = cp.profile([log], output=tmp_path / "run.duckdb")
    assert rows(run, "SELECT count(*) FROM spark_engine_operators") == [(0,)]
    assert run.sql("FROM spark_fallbacks").rows == ()
    assert not any(isinstance(each, EngineUse) for each in run.verdict().debug.measurements)


def test_times_on_a_gpu_are_written_as_a_clock_shows_them() -> None:
    held = Accumulable(1, "gpuTime", Raw(b'"01:02:03.500"'))
    waited = Accumulable(2, "gpuSemaphoreWait", Raw(b'"00:00:00.250"'))
    assert gpu_times([held, waited]) == (3_723_500.0, 250.0)
    assert gpu_times([held, Accumulable(2, "gpuSemaphoreWait", Raw(b'"soon"'))]) == (3_723_500.0, 0.0)
    assert gpu_times([waited]) is None


# Public logs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("log", "engine", "ran_in"),
    [
        ("rapids_join_eventlog.zstd", "rapids", {"engine": 13, "conversion": 3, "jvm": 6}),
        ("eventlog-gpu-dsv1.zstd", "rapids", {"engine": 5, "conversion": 6, "jvm": 2}),
    ],
)
def test_public_logs_of_rapids_have_places(real_inputs: Path, log: str, engine: str, ran_in: dict[str, int]) -> None:
    run = profiled(real_inputs / "spark-eventlog" / "rapids-tools" / log)
    found = dict(rows(run, "SELECT ran_in, count(*) FROM spark_engine_operators GROUP BY ALL"))
    assert found == ran_in
    assert rows(run, "SELECT DISTINCT engine FROM spark_engine_operators") == [(engine,)]


def test_a_public_log_of_rapids_has_times_on_a_gpu(real_inputs: Path) -> None:
    run = profiled(real_inputs / "spark-eventlog" / "rapids-tools" / "gpu_oom_eventlog.zstd")
    ((held_ms, waited_ms),) = rows(run, "SELECT sum(held_ms), sum(waited_ms) FROM spark_gpu_times")
    assert (held_ms, waited_ms) == pytest.approx((680_203, 1_938_711))
