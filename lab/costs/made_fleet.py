"""Generate a fleet of many runs from a small one: `python -m lab.costs.made_fleet SMALL LARGE --runs 60000`.

Each row of SMALL's tables is repeated, with other ids, an hour later each time, and runtimes that scatter by 10 %.
Every seventh job gets 1.3 times as slow in the middle.  The same input gives the same rows.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import duckdb

from crystalperf.fleet.tables import VERSION, tables
from crystalperf.indexes import guard

_SCATTER = """
    exp(0.1 * sqrt(-2 * ln((hash(run_id, number) % 1000003 + 1) / 1000004.0))
    * cos(2 * pi() * (hash(number, run_id) % 1000003) / 1000003.0))
    * CASE WHEN hash(name) % 7 = 0 AND number * 2 > {} THEN 1.3 ELSE 1 END
"""
"""A factor: normal noise (Box and Muller), and the change of level."""


def made(small: Path, large: Path, runs: int) -> int:
    """Write the fleet and return the number of its runs."""
    with duckdb.connect() as connection:
        files = guard.quoted(f"{small}/runs/day=*/*.parquet")
        count = int(connection.execute(f"SELECT count(*) FROM {files}").fetchall()[0][0])
        repeats = -(-runs // count)
        for table in tables():
            if not any((small / table.name).glob("day=*/*.parquet")):
                continue
            columns = [each.name for each in table.columns]
            changed = {
                "run_id": "concat(run_id, '-', number)",
                "log": "concat(log, '-', number)",
                "path": "concat(path, '-', number)",
                "app_id": "concat(app_id, '-', number)",
                "started_at": "started_at + to_hours(number)",
                "runtime_ms": f"runtime_ms * {_SCATTER.format(repeats)}" if table.name == "runs" else "runtime_ms",
            }
            select = ", ".join(f"{changed[name]} AS {name}" if name in changed else name for name in columns)
            (large / table.name / "day=2026-01-01").mkdir(parents=True)
            target = large / table.name / "day=2026-01-01" / f"{'0' * 16}-0.parquet"
            source = guard.quoted(f"{small}/{table.name}/day=*/*.parquet")
            rows = f"SELECT {select} FROM {source}, (SELECT unnest(range({repeats})) AS number)"
            connection.execute(f"COPY ({rows}) TO {guard.quoted(str(target))} (FORMAT parquet)")
    (large / "_fleet" / "batches").mkdir(parents=True)
    (large / "_fleet" / "version").write_text(f"{VERSION}\n", encoding="ascii")
    return count * repeats


def main() -> None:
    """Write the fleet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("small", type=Path)
    parser.add_argument("large", type=Path)
    parser.add_argument("--runs", type=int, default=60_000)
    given = parser.parse_args()
    print(f"{made(given.small, given.large, given.runs)} runs")


if __name__ == "__main__":
    main()
