"""The data of the cases, made once with DuckDB: events, users with a hot one, and 1 500 small files."""

from __future__ import annotations

import gzip
import shutil
import sys
from pathlib import Path

import duckdb

from lab.machine.host import cache_dir

_EVENTS = 2_000_000
_SMALL_FILES = 1500

_TABLES = f"""
SELECT setseed(0.42);
CREATE TABLE events AS
    SELECT i AS id, CAST(random() * 50000 AS BIGINT) AS user, 'kind-' || (i * 7919 % 40) AS kind, random() AS value,
        md5(CAST(i AS VARCHAR)) || '-' || md5(CAST(i * 31 AS VARCHAR)) AS text
    FROM range({_EVENTS}) AS t(i);
CREATE TABLE users AS SELECT i AS user, 'country-' || (i % 60) AS country FROM range(50001) AS t(i);
CREATE TABLE kinds AS SELECT 'kind-' || i AS kind, 'label-' || (i % 5) AS label FROM range(40) AS t(i);
CREATE TABLE skewed AS SELECT id, CASE WHEN random() < 0.7 THEN 7 ELSE user END AS user, value, text FROM events;
"""


def make_events(folder: Path | None = None) -> Path:
    """The folder of the data, which is made if it is missing (1.4 GB, some 50 s)."""
    target = folder or cache_dir() / "advice"
    if not target.is_dir():
        _make_tables(target)
    _order_tables(target)
    return target


def _order_tables(target: Path) -> None:
    """Events partitioned by day, and events sorted by user, each made if it is missing."""
    ordered = {
        "by_day": "SELECT *, id // 40000 AS day FROM {} ORDER BY day, id",
        "by_user.parquet": "FROM {} ORDER BY user, id",
    }
    options = {
        "by_day": "FORMAT parquet, PARTITION_BY (day)",
        "by_user.parquet": "FORMAT parquet, ROW_GROUP_SIZE 100000",
    }
    for name, question in ordered.items():
        if (target / name).exists():
            continue
        partial = target / f"{name}.partial"
        shutil.rmtree(partial, ignore_errors=True)
        with duckdb.connect() as connection:
            events = question.format(f"'{target}/events.parquet'")
            connection.execute(f"COPY ({events}) TO '{partial}' ({options[name]})")
        partial.rename(target / name)


def _make_tables(target: Path) -> None:
    print("making the data of the cases, once …", file=sys.stderr)
    partial = target.with_name(target.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    (partial / "small").mkdir(parents=True)
    (partial / "merged").mkdir()
    with duckdb.connect() as connection:
        connection.execute(_TABLES)
        for table in ("events", "users", "kinds", "skewed"):
            # Row groups that are small enough to be split among tasks.
            connection.execute(f"COPY {table} TO '{partial}/{table}.parquet' (ROW_GROUP_SIZE 100000)")
        connection.execute(f"COPY events TO '{partial}/events.csv' (HEADER)")
        connection.execute(f"COPY (FROM events LIMIT 1000000) TO '{partial}/events.json'")
        rows = connection.execute("SELECT id, user, kind, value FROM events LIMIT 300000").fetchall()
    with open(partial / "events.csv", "rb") as source, gzip.open(partial / "events.csv.gz", "wb", 6) as target_file:
        source.readline()
        shutil.copyfileobj(source, target_file)
    _write_small(rows, partial)
    partial.rename(target)


def _write_small(rows: list[tuple[object, ...]], partial: Path) -> None:
    """The same rows as 1 500 files and as one."""
    header, each = "id,user,kind,value\n", len(rows) // _SMALL_FILES
    lines = [",".join(map(str, row)) + "\n" for row in rows]
    for number in range(_SMALL_FILES):
        part = lines[number * each : (number + 1) * each]
        (partial / "small" / f"part-{number:04}.csv").write_text(header + "".join(part))
    (partial / "merged" / "all.csv").write_text(header + "".join(lines))
