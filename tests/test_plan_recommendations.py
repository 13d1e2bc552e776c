"""Recommendations for other plans of queries, through the real reader: when they are given, when not, their savings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

import crystalperf as cp
from crystalperf.query.frameworks.spark import recommendations as spark
from crystalperf.query.frameworks.spark import rewrites
from crystalperf.query.frameworks.spark.advise.pairs import how
from crystalperf.query.frameworks.spark.advise.scans import conjuncts
from crystalperf.query.frameworks.spark.sentences import MOST_COLUMNS
from crystalperf.query.results.answers import Verdict
from crystalperf.query.results.recommendations import Recommendation, SettingChange
from crystalperf.query.text.sentences import lines_of, text_of
from tests.spark_logs import MIB, Operator, Query, Stage, waves, write

ROWS = "number of output rows"
THRESHOLD = "spark.sql.autoBroadcastJoinThreshold"
NO_BROADCAST = {THRESHOLD: "-1"}


def reported(folder: Path, tree: Operator, stages: Sequence[Stage], **more: Any) -> Verdict:
    properties = {"spark.master": "yarn", "spark.driver.memory": "2g", "spark.executor.memory": "4g"}
    folder.mkdir(exist_ok=True)
    given = {"executors": {"1": 4, "2": 4}, **more, "properties": properties | more.get("properties", {})}
    path = write(folder / "log", stages, query=Query(tree=tree), **given)
    return cp.profile([path], output=folder / "run.duckdb").verdict()


def stage(ms: int, count: int = 8, **of: Any) -> Stage:
    return Stage(list(waves(count, 8, 2, ms=ms, cpu_ms=ms, **of)), reads="ShuffledRowRDD")


R = TypeVar("R", bound=Recommendation)


def of(verdict: Verdict, kind: type[R]) -> list[R]:
    """The recommendations of a kind, each of which has a sentence of its own."""
    found = [each for each in verdict.recommendations if isinstance(each, kind)]
    assert not any(text_of(each, verdict.debug.words).startswith(each.kind) for each in found)
    return found


def lines(verdict: Verdict, found: Recommendation) -> tuple[str, ...]:
    shown = lines_of(found, verdict.debug.words)
    assert all(len(each) <= MOST_COLUMNS or " " not in each for each in shown)
    return shown


# Joins ----------------------------------------------------------------------------------------------------------------


def shuffled(
    stage_number: int, rows: float, size: float, files: float, table: str, above: float | None = None
) -> Operator:
    """A scan that is shuffled, and sorted in stage 2; a filter after the shuffle leaves `above` rows."""
    scan = Operator(
        "Scan parquet ", f"FileScan parquet [item#{stage_number}] PushedFilters: []",
        {ROWS: {stage_number: rows}, "size of files read": {-1: files}},
        location=f"InMemoryFileIndex(1 paths)[hdfs://n/data/{table}]",
    )  # fmt: skip
    exchange = Operator(
        "Exchange", f"Exchange hashpartitioning(item#{stage_number}, 200)",
        {
            "data size": {stage_number: size}, "shuffle records written": {stage_number: rows},
            "records read": {2: rows},
        },
        [scan],
    )  # fmt: skip
    if above is not None:
        aggregate = Operator("HashAggregate", "HashAggregate(keys=[item#2], functions=[max(x#3)])", {}, [exchange])
        exchange = Operator("Filter", "Filter (x#3 > 7)", {ROWS: {2: above}} if above else {}, [aggregate])
    return Operator("Sort", f"Sort [item#{stage_number} ASC]", {}, [exchange])


def join(large: Operator, small: Operator, kind: str = "Inner", name: str = "SortMergeJoin") -> Operator:
    return Operator(name, f"{name} [item#0], [item#1], {kind}", {ROWS: {2: 4e7}}, [large, small])


LARGE = shuffled(0, 4e7, 2500 * MIB, 2000 * MIB, "sales")
SMALL = shuffled(1, 3000, 72_000, 220_000, "items")
JOINING = [stage(2_570), stage(100), stage(4_070)]
"""Stages whose CPU time is that of the rates, on 8 slots."""


def test_small_side_is_broadcast_by_the_setting_that_prevented_it(tmp_path: Path) -> None:
    verdict = reported(tmp_path, join(LARGE, SMALL), JOINING, properties=NO_BROADCAST)
    (found,) = of(verdict, rewrites.BroadcastSmallSide)
    assert found.settings == (SettingChange(THRESHOLD, "-1", "10m", None, 10.0 * MIB),)
    assert (found.price, found.join.stage, found.join.keys, found.join.others) == ("setting", "stage:2.0", ("item",), 0)
    assert (found.join.large.table, found.join.large.rows) == ("sales", 4e7)
    assert (found.join.small.table, found.join.small.size_bytes) == ("items", 72_000)
    assert lines(verdict, found)[0] == f"--conf {THRESHOLD}=10m"
    # Reading and sorting instead of probing takes 4e7 * (212 + 600 - 150 ns) / 8 slots, writing 4e7 * 264 ns / 8.
    assert found.saving.ms == pytest.approx(3310 + 1310, rel=0.03)
    low, high = found.saving.range_ms or (0.0, 0.0)
    assert 0 < low < found.saving.ms < high <= 6_640


def test_a_side_that_spark_estimates_too_large_gets_a_hint(tmp_path: Path) -> None:
    """The filter after the aggregation leaves few rows, which Spark does not know; it knows the files' size."""
    small = shuffled(1, 1e6, 60 * MIB, 900 * MIB, "events", above=2000)
    verdict = reported(tmp_path, join(LARGE, small), JOINING)
    (found,) = of(verdict, rewrites.BroadcastSmallSide)
    assert (found.price, found.settings) == ("code", ())
    assert found.join.small.rows == 2000
    assert found.join.small.size_bytes == pytest.approx(2000 * 60 * MIB / 1e6)
    assert "join(broadcast(small)" in lines(verdict, found)[0]


def test_a_filter_that_keeps_no_row_has_no_metric(tmp_path: Path) -> None:
    small = shuffled(1, 1e6, 60 * MIB, 900 * MIB, "events", above=0)
    (found,) = of(reported(tmp_path, join(LARGE, small), JOINING), rewrites.BroadcastSmallSide)
    assert found.join.small.rows == 0


@pytest.mark.parametrize("kind", ["LeftOuter", "LeftSemi", "LeftAnti", "FullOuter", "RightOuter"])
def test_only_a_side_that_may_be_broadcast_is(tmp_path: Path, kind: str) -> None:
    may = kind in ("LeftOuter", "LeftSemi", "LeftAnti")
    verdict = reported(tmp_path / "right", join(LARGE, SMALL, kind), JOINING, properties=NO_BROADCAST)
    assert len(of(verdict, rewrites.BroadcastSmallSide)) == may
    if kind in ("LeftOuter", "RightOuter"):  # the small side is the left one
        verdict = reported(tmp_path / "left", join(SMALL, LARGE, kind), JOINING, properties=NO_BROADCAST)
        assert len(of(verdict, rewrites.BroadcastSmallSide)) == (kind == "RightOuter")


def test_a_side_that_the_driver_cannot_hold_is_not_broadcast(tmp_path: Path) -> None:
    small = shuffled(1, 1e6, 90 * MIB, 30 * MIB, "items")
    found = of(
        reported(tmp_path / "2g", join(LARGE, small), JOINING, properties=NO_BROADCAST), rewrites.BroadcastSmallSide
    )
    assert found[0].settings[0].after == "103m"
    few = NO_BROADCAST | {"spark.driver.memory": "1g"}
    assert not of(reported(tmp_path / "1g", join(LARGE, small), JOINING, properties=few), rewrites.BroadcastSmallSide)


def test_sides_of_another_engine_or_of_unknown_size_get_no_advice(tmp_path: Path) -> None:
    gpu = join(LARGE, SMALL, name="GpuShuffledHashJoin")
    bare = Operator("Sort", "Sort [item#1 ASC]", {}, [Operator("Exchange", "Exchange hashpartitioning(item#1, 200)")])
    for number, tree in enumerate((gpu, join(LARGE, bare))):
        verdict = reported(tmp_path / str(number), tree, JOINING, properties=NO_BROADCAST)
        assert not of(verdict, rewrites.BroadcastSmallSide)


def test_partitions_that_fit_are_hashed_instead_of_sorted(tmp_path: Path) -> None:
    small = shuffled(1, 4e6, 250 * MIB, 200 * MIB, "returns")
    name = "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold"
    verdict = reported(tmp_path / "on", join(LARGE, small), JOINING)
    (found,) = of(verdict, rewrites.HashShuffledJoin)
    assert found.settings == (SettingChange(name, "0", "64m", is_default=True),)
    assert found.partition_bytes == pytest.approx(250 * MIB / 8)
    assert found.saving.ms == pytest.approx((4.4e7 * 600 - 4e7 * 280) / 8e6, rel=0.05)

    off = {"spark.sql.adaptive.enabled": "false"}
    verdict = reported(tmp_path / "off", join(LARGE, small), JOINING, properties=off)
    (found,) = of(verdict, rewrites.HashShuffledJoin)
    assert (found.price, found.settings) == ("code", ())
    assert 'hint("shuffle_hash")' in lines(verdict, found)[0]

    larger = shuffled(1, 1e7, 800 * MIB, 700 * MIB, "returns")  # 100 MB for each of 8 tasks
    assert not of(reported(tmp_path / "large", join(LARGE, larger), JOINING), rewrites.HashShuffledJoin)


# Pairs ----------------------------------------------------------------------------------------------------------------


def nested(condition: str, left: float, right: float, matches: float) -> Operator:
    scans = [
        Operator("Scan parquet ", "FileScan parquet [a#1]", {ROWS: {0: rows}}, location=f"[hdfs://n/{rows:.0f}]")
        for rows in (left, right)
    ]
    exchange = Operator("BroadcastExchange", "", {ROWS: {-1: right}, "data size": {-1: 16 * right}}, [scans[1]])
    detail = f"BroadcastNestedLoopJoin BuildRight, Inner{condition and f', {condition}'}"
    return Operator("BroadcastNestedLoopJoin", detail, {ROWS: {0: matches}}, [scans[0], exchange])


def test_alternatives_become_a_union_of_joins(tmp_path: Path) -> None:
    tree = nested("((a#1 = b#2) OR (c#3 = d#4))", 1e5, 4e3, 5e4)
    verdict = reported(tmp_path, tree, [stage(8_000)])
    (found,) = of(verdict, rewrites.JoinByKey)
    assert (found.rewriting, found.pairs, found.matches) == ("alternatives", 4e8, 5e4)
    assert found.condition == "((a = b) OR (c = d))"
    assert found.saving.ms == pytest.approx(7_600, rel=0.05)
    assert "union" in lines(verdict, found)[0]


def test_a_condition_that_may_have_no_equality_promises_nothing(tmp_path: Path) -> None:
    tree = nested("(levenshtein(a#1, b#2) < 3)", 1e5, 4e3, 5e4)
    (found,) = of(reported(tmp_path, tree, [stage(8_000)]), rewrites.JoinByKey)
    assert (found.rewriting, found.saving.ms, found.saving.basis) == ("function", None, "guessed")


@pytest.mark.parametrize(("left", "right", "condition"), [(1e7, 3, "(a#1 > b#2)"), (1e5, 4e3, "")])
def test_few_values_and_wanted_pairs_get_no_advice(tmp_path: Path, left: float, right: float, condition: str) -> None:
    assert not of(reported(tmp_path, nested(condition, left, right, 1e6), [stage(8_000)]), rewrites.JoinByKey)


def test_a_filter_above_a_cross_join_becomes_its_condition(tmp_path: Path) -> None:
    tree = Operator("Filter", "Filter ((i#1 = j#2) AND (x#3 >= 0.0))", {ROWS: {0: 5e4}}, [nested("", 1e5, 4e3, 4e8)])
    (found,) = of(reported(tmp_path, tree, [stage(8_000)]), rewrites.JoinByKey)
    assert (found.rewriting, found.condition, found.matches) == ("filter", "(i = j)", 5e4)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("((v#1 >= low#2) AND (v#1 < high#3))", "range"),
        ("(t#1 < u#2)", "inequality"),
        ("((a#1 = b#2) OR isnull((a#1 = b#2)))", "not-in"),
        ("Contains(a#1, b#2)", "function"),
    ],
)  # fmt: skip
def test_conditions_are_rewritten_by_their_form(condition: str, expected: str) -> None:
    assert how(condition) == expected


# Repeated work --------------------------------------------------------------------------------------------------------


def aggregated(number: int, functions: str, condition: str = "(day#9 > 3)", partitions: int = 200) -> Operator:
    scan = Operator("Scan parquet ", "FileScan parquet [a#1]", {ROWS: {number: 1e7}}, location="[hdfs://n/sales]")
    kept = Operator("Filter", f"Filter (isnotnull(a#{number}) AND {condition})", {ROWS: {number: 9e6}}, [scan])
    partial = Operator("HashAggregate", f"HashAggregate(keys=[a#{number}], functions=[{functions}])", {}, [kept])
    amounts = {"data size": {number: 64.0 * MIB}, "shuffle records written": {number: 1e6}}
    exchange = Operator("Exchange", f"Exchange hashpartitioning(a#{number}, {partitions})", amounts, [partial])
    return Operator("HashAggregate", f"HashAggregate(keys=[a#{number}], functions=[{functions}])", {}, [exchange])


def twice(*functions: str, condition: str = "(day#9 > 3)", partitions: int = 200) -> Operator:
    return Operator(
        "SortMergeJoin", "SortMergeJoin [a#0], [a#1], Inner", {ROWS: {2: 1e6}},
        [aggregated(0, functions[0], partitions=partitions), aggregated(1, functions[1], condition, partitions)],
    )  # fmt: skip


WORK = [stage(6_000), stage(6_000), stage(1_000)]


def test_rows_that_a_query_computes_twice_are_cached(tmp_path: Path) -> None:
    (found,) = of(reported(tmp_path, twice("sum(b#3)", "max(c#4)"), WORK), rewrites.ReuseExchange)
    assert (found.price, found.times, found.tables, found.is_same) == ("code", 2, ("sales",), False)
    assert (found.stage, found.rows, found.size_bytes) == ("stage:1.0", 1e6, 64 * MIB)
    assert found.saving.ms == pytest.approx(0.7 * 6_000 - 2_500)


@pytest.mark.parametrize(("partitions", "enough"), [(200, 8), (16, 8), (15, None)])
def test_cached_rows_keep_no_more_partitions_than_slots_need(
    tmp_path: Path, partitions: int, enough: int | None
) -> None:
    tree = twice("sum(b#3)", "max(c#4)", partitions=partitions)
    (found,) = of(reported(tmp_path, tree, WORK), rewrites.ReuseExchange)
    assert found.partitions == enough


def test_reuse_that_is_off_is_switched_on(tmp_path: Path) -> None:
    off = {"spark.sql.exchange.reuse": "false"}
    (found,) = of(reported(tmp_path, twice("sum(b#3)", "sum(b#3)"), WORK, properties=off), rewrites.ReuseExchange)
    assert found.settings == (SettingChange("spark.sql.exchange.reuse", False, True),)
    assert found.is_same


def test_other_rows_of_a_table_are_not_computed_twice(tmp_path: Path) -> None:
    tree = twice("sum(b#3)", "sum(b#3)", condition="(day#9 > 4)")
    assert not of(reported(tmp_path, tree, WORK), rewrites.ReuseExchange)


# Scans ----------------------------------------------------------------------------------------------------------------


def scanning(condition: str, kept: float, detail: str = "", rows: float = 1e7, **metrics: float) -> Operator:
    amounts = {name.replace("_", " "): {-1: amount} for name, amount in metrics.items()}
    shown = detail or "FileScan parquet [a#1,note#2] PartitionFilters: [], ReadSchema: struct<a:int,note:string>"
    scan = Operator("Scan parquet ", shown, {ROWS: {0: rows}, **amounts}, location="[hdfs://n/data/sales]")
    return Operator("Filter", f"Filter {condition}", {ROWS: {0: kept}}, [Operator("ColumnarToRow", "", {}, [scan])])


@pytest.mark.parametrize(
    ("condition", "function"),
    [
        ("(isnotnull(a#1) AND (cast(a#1 as string) = 77))", "cast"),
        ("(year(a#1) = 2024)", "year"),
        ("(substring(cast(a#1 as string), 1, 3) = abc)", "cast"),
        ("((a#1 + 3) > 9)", "+"),
        ("(FLOOR((cast(a#1 as double) / 10000.0)) = 7)", "cast"),
    ],
)
def test_a_filter_on_a_function_of_a_column_asks_for_the_column(tmp_path: Path, condition: str, function: str) -> None:
    verdict = reported(tmp_path, scanning(condition, 5e4), [stage(5_000)])
    (found,) = of(verdict, rewrites.FilterPlainColumn)
    assert (found.column, found.function, found.scan.table) == ("a", function, "sales")
    assert (found.scan.rows_read, found.scan.rows_kept) == (1e7, 5e4)
    assert (found.saving.ms, found.saving.range_ms) == (None, (0.0, pytest.approx(5_000, rel=0.05)))
    assert lines(verdict, found) == ('df.filter("a >= … AND a < …")',)


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("(cast(a#1 as string) = 77)", 9e6),  # it keeps most rows
        ("(rand(5) < 0.01)", 1e5),
        ("Contains(note#2, abc)", 1e5),  # no minimum or maximum says whether a text has another one
    ],
)
def test_filters_that_cannot_skip_rows_get_no_advice(tmp_path: Path, condition: str, kept: float) -> None:
    verdict = reported(tmp_path, scanning(condition, kept), [stage(5_000)])
    assert not of(verdict, rewrites.FilterPlainColumn)
    assert not of(verdict, rewrites.SortFiles)


def test_a_filter_by_python_between_scan_and_filter_is_named(tmp_path: Path) -> None:
    scan = scanning("", 0).inputs
    evaluated = Operator("BatchEvalPython", "BatchEvalPython [recent(a#1)#8], [pythonUDF0#9]", {}, scan)
    tree = Operator("Filter", "Filter pythonUDF0#9", {ROWS: {0: 1e5}}, [evaluated])
    (found,) = of(reported(tmp_path, tree, [stage(5_000)]), rewrites.FilterPlainColumn)
    assert (found.wrapped, found.function, found.column) == ("python", "recent", "a")


def test_a_filter_that_reaches_the_scan_but_skips_nothing_asks_for_sorted_files(tmp_path: Path) -> None:
    found = of(reported(tmp_path / "few", scanning("(a#1 = 77)", 900), [stage(5_000)]), rewrites.SortFiles)
    assert found[0].columns == ("a",)
    assert not of(reported(tmp_path / "many", scanning("(a#1 = 77)", 2e6), [stage(5_000)]), rewrites.SortFiles)
    skipped = scanning("(a#1 = 77)", 900, rows=2e5)
    assert not of(reported(tmp_path / "skipped", skipped, [stage(5_000)]), rewrites.SortFiles)


def test_a_partitioned_table_that_is_read_completely_names_its_columns(tmp_path: Path) -> None:
    detail = "FileScan parquet [a#1,day#3] PartitionFilters: {}, PushedFilters: [], ReadSchema: struct<a:int>"
    plain = scanning("(a#1 = 77)", 1e5, detail.format("[]"), number_of_partitions_read=100)
    (found,) = of(reported(tmp_path / "all", plain, [stage(5_000)]), rewrites.PrunePartitions)
    assert (found.columns, found.partitions) == (("day",), 100)
    pruned = scanning("(a#1 = 77)", 1e5, detail.format("[isnotnull(day#3)]"), number_of_partitions_read=7)
    assert not of(reported(tmp_path / "some", pruned, [stage(5_000)]), rewrites.PrunePartitions)


def test_conditions_are_split_where_all_parts_have_to_hold() -> None:
    assert conjuncts("((a#1 = 3) AND ((b#2 < 5) OR (c#3 AND d#4)))") == ["(a#1 = 3)", "((b#2 < 5) OR (c#3 AND d#4))"]
    assert conjuncts("(a#1 = 3) AND (b#2 = 4)") == ["(a#1 = 3)", "(b#2 = 4)"]
    assert conjuncts("") == []


# Adaptive execution ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["enabled", "coalescePartitions.enabled"])
def test_merging_that_is_off_is_recommended_instead_of_a_number(tmp_path: Path, name: str) -> None:
    off = {f"spark.sql.adaptive.{name}": "false", "spark.sql.shuffle.partitions": "800"}
    tree = Operator("Exchange", "Exchange hashpartitioning(a#1, 800)", {"records read": {0: 1e5}})
    tiny = Stage(list(waves(800, 8, 2, ms=100, starting_ms=60, cpu_ms=30, shuffled_bytes=1000)), reads="ShuffledRowRDD")
    verdict = reported(tmp_path, tree, [tiny], properties=off)
    (found,) = of(verdict, rewrites.EnableAdaptive)
    assert found.settings == (SettingChange(f"spark.sql.adaptive.{name}", False, True),)
    assert found.stages.tasks == 800
    assert not of(verdict, spark.SetPartitions), "one of the two suffices"


# Skew -----------------------------------------------------------------------------------------------------------------


def skewed(operator: str, detail: str, more: Sequence[Operator] = ()) -> tuple[Operator, list[Stage]]:
    tasks = list(waves(8, 8, 2, ms=3_000, cpu_ms=2_900, shuffled_bytes=20 * MIB))
    tasks[3] = type(tasks[3])(40_000, "1", 0, 39_000, shuffled_bytes=900 * MIB)
    read = Operator("AQEShuffleRead", "AQEShuffleRead coalesced", {"partition data size": {0: 1.0}}, more)
    return Operator(operator, detail, {ROWS: {0: 1e6}}, [read]), [Stage(tasks, reads="ShuffledRowRDD")]


@pytest.mark.parametrize(
    ("operator", "salts", "first"),
    [
        ("Window", "window", "withColumn"),
        ("ObjectHashAggregate", "aggregation", "withColumn"),
        ("FlatMapGroupsInPandas", "aggregation", "withColumn"),
        ("Exchange hashpartitioning(a#1, 8), REPARTITION_BY_NUM", "repartition", "df.repartition(n, key, (rand()"),
    ],
)
def test_salt_is_added_where_the_key_is_used(tmp_path: Path, operator: str, salts: str, first: str) -> None:
    tree, stages = skewed(operator.partition(" ")[0], operator)
    verdict = reported(tmp_path, tree, stages)
    (found,) = of(verdict, spark.SplitKeys)
    assert found.operator == salts
    assert first in lines(verdict, found)[0]


def test_a_join_that_adaptive_execution_may_not_split_is_split_by_force_or_by_salt(tmp_path: Path) -> None:
    adaptive = {"spark.sql.adaptive.enabled": "true"}
    detail = "SortMergeJoin [a#1], [b#2], Inner"
    tree, stages = skewed("SortMergeJoin", detail)
    tree = Operator("HashAggregate", "HashAggregate(keys=[a#1], functions=[])", {ROWS: {0: 10}}, [tree])
    (found,) = of(reported(tmp_path / "force", tree, stages, properties=adaptive), spark.SplitSkewedJoin)
    assert [each.name.rpartition(".")[2] for each in found.settings] == ["forceOptimizeSkewedJoin"]
    forced = adaptive | {"spark.sql.adaptive.forceOptimizeSkewedJoin": "true"}
    verdict = reported(tmp_path / "salt", tree, stages, properties=forced)
    (keys,) = of(verdict, spark.SplitKeys)
    assert keys.operator == "join"
    assert "explode(" in lines(verdict, keys)[1]


def test_skew_splitting_that_is_off_is_switched_on(tmp_path: Path) -> None:
    off = {"spark.sql.adaptive.enabled": "true", "spark.sql.adaptive.skewJoin.enabled": "false"}
    tree, stages = skewed("SortMergeJoin", "SortMergeJoin [a#1], [b#2], Inner")
    (found,) = of(reported(tmp_path / "off", tree, stages, properties=off), spark.SplitSkewedJoin)
    assert [each.name for each in found.settings] == ["spark.sql.adaptive.skewJoin.enabled"]
    tree, stages = skewed("SortMergeJoin", "SortMergeJoin [a#1], [b#2], FullOuter")
    assert not of(reported(tmp_path / "outer", tree, stages, properties=off), spark.SplitSkewedJoin)
