"""The life of a Delta or Iceberg table: ``spark-submit lakehouse_job.py delta|iceberg``."""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame, SparkSession

APPENDS, FILES, ROWS = 12, 40, 600_000

CREATE = {
    "delta": "CREATE TABLE orders (id BIGINT, user BIGINT, text STRING, value DOUBLE) USING delta"
    " TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
    "iceberg": "CREATE TABLE lake.shop.orders (id BIGINT, user BIGINT, text STRING, value DOUBLE) USING iceberg"
    " TBLPROPERTIES ('format-version' = '2', 'write.delete.mode' = 'merge-on-read',"
    " 'write.distribution-mode' = 'none')",
}
TABLE = {"delta": "orders", "iceberg": "lake.shop.orders"}
COMPACT = {
    "delta": "OPTIMIZE orders",
    "iceberg": "CALL lake.system.rewrite_data_files(table => 'shop.orders', options => map('rewrite-all', 'true'))",
}


def rows(spark: SparkSession, first: int, count: int, parts: int) -> DataFrame:
    """Orders of some users."""
    return spark.range(first, first + count, 1, parts).selectExpr(
        "id", "id * 7919 % 5000 AS user", "sha2(CAST(id AS STRING), 256) AS text", "CAST(id % 1000 AS DOUBLE) AS value"
    )


def main(kind: str) -> None:
    """Make, change, compact and read the table."""
    spark = SparkSession.builder.appName(f"lakehouse-{kind}").getOrCreate()
    table = TABLE[kind]
    spark.sql(CREATE[kind])
    for number in range(APPENDS):
        each = ROWS // APPENDS
        rows(spark, number * each, each, FILES).writeTo(table).append()
    read = f"SELECT user % 10 AS part, max(text), sum(value) FROM {table} GROUP BY ALL"
    for _ in range(2):
        spark.sql(read).collect()
    rows(spark, ROWS - 20_000, 40_000, 4).createOrReplaceTempView("changes")
    spark.sql(
        f"MERGE INTO {table} AS t USING changes AS c ON t.id = c.id"
        " WHEN MATCHED THEN UPDATE SET t.value = c.value + 1 WHEN NOT MATCHED THEN INSERT *"
    ).collect()
    spark.sql(f"DELETE FROM {table} WHERE user % 50 = 3").collect()
    spark.sql(read).collect()
    spark.sql(COMPACT[kind]).collect()
    spark.sql(read).collect()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
