"""Tables of Delta and Iceberg: changes, and small files."""

from __future__ import annotations

from pathlib import Path

import pytest

import crystalperf as cp
from crystalperf.query.frameworks.spark.findings import MergeFiles, MergeScan, SmallFiles
from crystalperf.query.frameworks.spark.lakehouse import LakeTable, table_of
from crystalperf.query.frameworks.spark.remarks import TableChange

RECORDINGS = Path(__file__).parents[1] / "lab" / "recordings" / "lakehouse"

ICEBERG = "BatchScan lake.shop.orders[user#98L] lake.shop.orders (branch=null) [filters=, groupedBy=] …"


@pytest.mark.parametrize(
    ("name", "detail", "location", "table"),
    [
        (
            "Scan parquet spark_catalog.shop.orders",
            "FileScan parquet …",
            "PreparedDeltaFileIndex(1 paths)[s3://b/orders]",
            LakeTable("delta", "spark_catalog.shop.orders"),
        ),
        ("Scan parquet ", "FileScan parquet …", "TahoeBatchFileIndex(1 paths)[file:/orders]", LakeTable("delta", None)),
        ("BatchScan lake.shop.orders", ICEBERG, None, LakeTable("iceberg", "lake.shop.orders")),
        ("BatchScan jdbc.orders", "BatchScan jdbc.orders[user#98L]", None, None),
        ("Scan parquet shop.orders", "FileScan parquet …", "InMemoryFileIndex(1 paths)[file:/orders]", None),
        (None, None, None, None),
    ],
)
def test_table_and_format_of_a_scan(
    name: str | None, detail: str | None, location: str | None, table: LakeTable | None
) -> None:
    assert table_of(name, detail, location) == table


def recorded(kind: str, folder: Path) -> cp.Run:
    return cp.profile(RECORDINGS / f"{kind}.zstd", output=folder / "run.duckdb")


@pytest.mark.parametrize(
    ("kind", "table", "file_bytes"),
    [("delta", "spark_catalog.default.orders", 99_663), ("iceberg", "lake.shop.orders", 51_407)],
)
def test_small_files_of_a_table_are_to_be_compacted(tmp_path: Path, kind: str, table: str, file_bytes: float) -> None:
    run = recorded(kind, tmp_path)
    (found,) = [each for each in run.debug().findings if isinstance(each, SmallFiles)]
    assert isinstance(found.advice, MergeFiles)
    assert (found.advice.format, found.advice.table) == (kind, table)
    assert (found.files, found.file_bytes) == (480, pytest.approx(file_bytes, abs=1))


def test_merge_and_delete_of_a_recorded_delta_table(tmp_path: Path) -> None:
    run = recorded("delta", tmp_path)
    rows = {each["operation"]: each for each in run.sql("FROM spark_table_changes")}
    (remark,) = [each for each in run.debug().measurements if isinstance(each, TableChange)]
    (finding,) = [each for each in run.debug().findings if isinstance(each, MergeScan)]
    merge, delete = rows["merge"], rows["delete"]
    assert (merge["files"], merge["files_scanned"], merge["files_removed"], merge["files_added"]) == (480, 480, 16, 4)
    assert merge["whole_ms"] >= merge["scan_ms"] + merge["rewrite_ms"]
    assert (delete["files_scanned"], delete["files_removed"], delete["deletion_vectors"]) == (468, 0, 468)
    assert {each["table_name"] for each in rows.values()} == {"spark_catalog.default.orders"}
    assert (remark.operation, remark.others) == ("delete", 1)
    assert (finding.files, finding.replaced) == (480, 16)
    assert finding.cost_ms == pytest.approx(merge["scan_ms"] * (1 - 16 / 480))


def test_iceberg_scan_counts_its_files_and_its_planning(tmp_path: Path) -> None:
    run = recorded("iceberg", tmp_path)
    rows = run.sql(
        "SELECT name, unit, max(value) FROM spark_driver_metrics WHERE name IN ('number of result data files',"
        " 'total planning duration (ms)', 'total data file size (bytes)') GROUP BY ALL"
    ).rows
    found = {name: (unit, value) for name, unit, value in rows}
    assert found["number of result data files"] == ("count", 480)
    assert found["total data file size (bytes)"][0] == "bytes"
    assert found["total planning duration (ms)"] == ("ms", pytest.approx(173, abs=100))


@pytest.mark.parametrize(("scope", "count"), [("sql:38", 1), ("sql:55", 0)])
def test_merge_counts_only_in_scopes_that_it_ran_in(tmp_path: Path, scope: str, count: int) -> None:
    """The MERGE is sql:38, the DELETE is sql:55."""
    found = recorded("delta", tmp_path).debug(scope=scope).findings
    assert sum(isinstance(each, MergeScan) for each in found) == count
