"""Tables of Delta and Iceberg: changes, and small files."""

from __future__ import annotations

import pytest

from crystalperf.query.frameworks.spark.lakehouse import LakeTable, table_of

ICEBERG = (
    "BatchScan lake.shop.orders[user#98L] lake.shop.orders (branch=null) [filters=, groupedBy=] …"
)


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
