"""The memory of an answer grows with its data, not with products of them; exhausted memory is reported."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystalperf.query.diagnose.hosts import Split, host_times
from crystalperf.query.execution.execution import Execution
from crystalperf.query.run import Run

Answer = Callable[..., tuple[int, str, str]]

RESOURCES = ["cpu", "disk", "net", "other"]


def peak_mib(action: Callable[[], object]) -> float:
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()


def tasks_on(hosts: int, count: int = 20_000) -> tuple[duckdb.DuckDBPyConnection, Execution]:
    """Tasks of two stages, spread evenly over hosts; the stand-in of their execution has what hosts are compared by."""
    connection = duckdb.connect()
    connection.execute(
        f"""
        CREATE TABLE tasks AS
        SELECT 'g' || range // 10000 AS stage_id, 'h' || range % {hosts} AS host, range * 1.0::DOUBLE AS launch_ms,
            range + 100.0 + range % 11::DOUBLE AS finish_ms, 'succeeded' AS status, range % 1000 AS input_bytes,
            0 AS remote_read_bytes, 0 AS local_read_bytes,
            {", ".join(f"(hash(range, '{name}') % 1000)::DOUBLE AS {name}_ms" for name in RESOURCES)}
        FROM range({count})
        """
    )
    scope = SimpleNamespace(start_ms=0.0, end_ms=1e12)
    return connection, cast("Execution", SimpleNamespace(scope=scope, names=tuple(RESOURCES[:-1])))


@pytest.mark.parametrize("hosts", [2, 20, 200])
def test_hosts_are_compared_without_multiplying_tasks_by_hosts(hosts: int) -> None:
    connection, execution = tasks_on(hosts)
    assert peak_mib(lambda: host_times(connection, execution)) < 12, "that is some columns of 20 000 numbers"
    found = host_times(connection, execution)
    assert found.median_ms.shape == (len(RESOURCES) - 1, 2 * hosts)
    last = found.of(len(found.resources) - 1, len(found.rows) - 1)
    own, others = connection.execute(
        f"""
        SELECT
            [median({last.resource}_ms) FILTER (host = $1), median(input_bytes) FILTER (host = $1)],
            [median({last.resource}_ms) FILTER (host <> $1), median(input_bytes) FILTER (host <> $1),
                median(finish_ms - launch_ms) FILTER (host <> $1)]
        FROM tasks WHERE stage_id = $2
        """,
        [last.host, last.stage],
    ).fetchall()[0]
    assert [last.median_ms, last.median_bytes] == own
    assert [last.others_ms, last.others_bytes, last.others_duration_ms] == others


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_median_of_the_rest_of_a_stage_is_exact(data: st.DataObject) -> None:
    """Of stages of two or more parts, with rows of parts that nobody asks for among them."""
    stage = np.array(data.draw(st.lists(st.integers(0, 2), min_size=12, max_size=40)))
    part = np.array([each * 3 + data.draw(st.integers(0, 2)) for each in stage])
    values = np.array([data.draw(st.integers(0, 9)) for _ in stage], dtype=float)
    has_rest = [each for each in np.unique(part) if (stage == each // 3).sum() > (part == each).sum()]
    asked = [each for each in has_rest if data.draw(st.booleans())]
    number = np.array([asked.index(each) if each in asked else -1 for each in part], dtype=np.int64)
    own, others = Split(number, stage, len(asked)).medians(values)
    for at, one in enumerate(asked):
        assert own[at] == np.median(values[part == one])
        assert others[at] == np.median(values[(stage == one // 3) & (part != one)])


def test_running_out_of_memory_is_reported(
    crystalperf: Answer, run_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from crystalperf.query.diagnose import hosts

    def greedy(connection: duckdb.DuckDBPyConnection, *_: object) -> object:
        raise duckdb.OutOfMemoryException("Out of Memory Error: failed to allocate data of size 1.0 GiB")

    monkeypatch.setattr("crystalperf.query.diagnose.diagnose.host_times", greedy)
    assert hosts.host_times is not greedy
    code, out, err = crystalperf("debug", run_copy)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "memory" in err
    assert "bug" not in err


def test_running_out_of_memory_while_reading_a_log_is_reported(
    crystalperf: Answer, log_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def greedy(*_: object) -> object:
        raise duckdb.OutOfMemoryException("Out of Memory Error: failed to allocate data of size 1.0 GiB")

    monkeypatch.setattr("crystalperf.query.runfile.pipeline.insert", greedy)
    log = Path(__file__).parents[1] / "data" / "eventlog" / "q9.zstd"
    code, out, err = crystalperf("profile", log, "-o", tmp_path / "run.duckdb")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "memory" in err
    assert "bug" not in err
