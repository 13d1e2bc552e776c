"""How quickly a log can be read at all: `python -m lab.costs.floor LOG` prints bytes per CPU second of each way.

    its bytes                             what the file system gives
    its lines                             and split at the ends of lines, as CrystalPerf does
    msgspec, all passed over              msgspec looks at every byte and keeps nothing
    msgspec, ends of tasks by type        and makes values of the fields that CrystalPerf reads
    DuckDB, lines                         DuckDB checks that each line is JSON
    DuckDB, ends of tasks by type         and makes columns of most of those fields
    CrystalPerf, all it says of the run   what `profile` begins with

The log must be a file that is not packed.  Ratios of one run tell more than its seconds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import msgspec

from crystalperf.indexes import guard
from crystalperf.query.discover import choose, discover
from crystalperf.query.frameworks.spark.log.events import TaskEnd
from crystalperf.query.frameworks.spark.log.run import collect
from crystalperf.query.inputs.containers import LogFile, batches
from crystalperf.query.model.records import Problems

_END = b'{"Event":"SparkListenerTaskEnd"'
_PIECE = 1 << 20
_FIELDS = """
    {
        Event: 'VARCHAR', "Stage ID": 'DOUBLE', "Stage Attempt ID": 'DOUBLE',
        "Task Info": 'STRUCT("Task ID" DOUBLE, "Index" DOUBLE, Attempt DOUBLE, "Partition ID" DOUBLE,
            "Launch Time" DOUBLE, "Executor ID" VARCHAR, Host VARCHAR, Locality VARCHAR, Speculative BOOLEAN,
            "Getting Result Time" DOUBLE, "Finish Time" DOUBLE, Failed BOOLEAN, Killed BOOLEAN)',
        "Task Metrics": 'STRUCT("Executor Deserialize Time" DOUBLE, "Executor Deserialize CPU Time" DOUBLE,
            "Executor Run Time" DOUBLE, "Executor CPU Time" DOUBLE, "Peak Execution Memory" DOUBLE,
            "Result Size" DOUBLE, "JVM GC Time" DOUBLE, "Result Serialization Time" DOUBLE,
            "Memory Bytes Spilled" DOUBLE, "Disk Bytes Spilled" DOUBLE,
            "Shuffle Read Metrics" STRUCT("Fetch Wait Time" DOUBLE, "Remote Bytes Read" DOUBLE,
                "Local Bytes Read" DOUBLE, "Total Records Read" DOUBLE),
            "Shuffle Write Metrics" STRUCT("Shuffle Bytes Written" DOUBLE, "Shuffle Write Time" DOUBLE),
            "Input Metrics" STRUCT("Bytes Read" DOUBLE, "Records Read" DOUBLE),
            "Output Metrics" STRUCT("Bytes Written" DOUBLE))'
    }
"""


def _bytes(path: Path) -> None:
    with path.open("rb") as stream:
        while stream.read(_PIECE):
            pass


def _lines(log: LogFile) -> None:
    for _ in batches(log, Problems()):
        pass


def _decoded(log: LogFile, decode: Callable[[bytes], object], beginning: bytes) -> None:
    for batch in batches(log, Problems()):
        for line in batch.lines:
            if line.startswith(beginning):
                decode(line)


def _asked(connection: duckdb.DuckDBPyConnection, source: str) -> None:
    connection.execute(f"CREATE OR REPLACE TEMP TABLE read AS SELECT * FROM {source}")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path)
    path: Path = parser.parse_args().log
    log, size = choose(discover([path]), None).log, path.stat().st_size
    quoted = guard.quoted(str(path))
    with guard.fresh() as connection:
        connection.execute("SET threads = 1")
        ways: dict[str, Callable[[], object]] = {
            "its bytes": lambda: _bytes(path),
            "its lines": lambda: _lines(log),
            "msgspec, all passed over": lambda: _decoded(log, msgspec.json.Decoder(msgspec.Raw).decode, b"{"),
            "msgspec, ends of tasks by type": lambda: _decoded(log, msgspec.json.Decoder(TaskEnd).decode, _END),
            "DuckDB, lines": lambda: _asked(connection, f"(SELECT count(*) FROM read_ndjson_objects({quoted}))"),
            "DuckDB, ends of tasks by type": lambda: _asked(
                connection,
                f"read_json({quoted}, format = 'newline_delimited', columns = {_FIELDS})"
                " WHERE Event = 'SparkListenerTaskEnd'",
            ),
            "CrystalPerf, all it says of the run": lambda: collect(log),
        }
        print(f"{size / 1e6:.0f} MB                                CPU [s]   MB/s")
        for name, way in ways.items():
            begin = time.process_time()
            way()
            took_s = time.process_time() - begin
            print(f"{name:36s} {took_s:8.2f} {size / 1e6 / took_s:6.0f}", flush=True)


if __name__ == "__main__":
    main()
