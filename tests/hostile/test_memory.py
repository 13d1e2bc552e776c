"""Answers take memory by what there is, not by its products; where memory ends, that is what is said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from query import sql
from query.run import Run

Answer = Callable[..., tuple[int, str, str]]

RESOURCES = ["cpu_ms", "disk_ms", "net_ms", "other_ms"]


def most_rows_between(connection: duckdb.DuckDBPyConnection, query: str) -> int:
    """The most rows that an operator of the query gives out: what it costs, without a clock."""
    import json

    (_, plan), *_ = connection.execute(f"EXPLAIN (ANALYZE, FORMAT json) {query}").fetchall()

    def most(node: dict[str, object]) -> int:
        children = node.get("children") or []
        assert isinstance(children, list)
        own = node.get("operator_cardinality") or 0
        assert isinstance(own, int)
        return max([own, *map(most, children)])

    return most(json.loads(plan))


@pytest.mark.parametrize("hosts", [2, 20, 100])
def test_hosts_are_compared_without_multiplying_units_by_hosts(hosts: int) -> None:
    connection = duckdb.connect()
    count = 20_000
    connection.execute(
        f"""
        CREATE TABLE units AS
        SELECT 'g' || range // 10000 AS group_id, 'h' || range % {hosts} AS host, range * 1.0::DOUBLE AS launch_ms,
            range + 100.0::DOUBLE AS finish_ms, 'succeeded' AS status, 1000 AS input_bytes, 0 AS remote_bytes,
            0 AS local_bytes, {", ".join(f"(range % 7)::DOUBLE AS {each}" for each in RESOURCES)}
        FROM range({count})
        """
    )
    medians = ", ".join(f"median({each}) AS {each}" for each in RESOURCES)
    parts = {"resources": ", ".join(RESOURCES), "medians": medians, "most_hosts": 1000, "most_pairs": 0}
    query = sql.text("host_times_many").format(**parts)
    rows = most_rows_between(connection, query.replace("> ?", "> 0").replace("< ?", "< 1e12"))
    assert rows <= count + len(RESOURCES) * 2 * hosts**2
    found = connection.execute(query, [0, 1e12]).fetchall()
    assert {len(each) for each in found} == {9}
    exact = sql.text("host_times").format(**parts)
    assert most_rows_between(connection, exact.replace("> ?", "> 0").replace("< ?", "< 1e12")) <= count
    assert connection.execute(exact, [0, 1e12]).fetchall() == [], "such groups are left to the other"
    both = [sql.text(name).format(**{**parts, "most_pairs": 10**9}) for name in ("host_times", "host_times_many")]
    few, none = (connection.execute(each, [0, 1e12]).fetchall() for each in both)
    assert [row[:4] for row in few] == [row[:4] for row in found]
    assert none == []


def test_memory_that_ends_is_told_as_memory(
    crystalperf: Answer, run_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from query.explain import facts

    def greedy(connection: duckdb.DuckDBPyConnection, *_: object) -> object:
        raise duckdb.OutOfMemoryException("Out of Memory Error: failed to allocate data of size 1.0 GiB")

    monkeypatch.setattr("query.explain.diagnose.host_times", greedy)
    assert facts.host_times is not greedy
    code, out, err = crystalperf("debug", run_copy)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "more memory is needed than there is" in err
    assert "bug" not in err


def test_memory_that_ends_in_reading_a_log_is_told_as_memory(
    crystalperf: Answer, log_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def greedy(*_: object) -> object:
        raise duckdb.OutOfMemoryException("Out of Memory Error: failed to allocate data of size 1.0 GiB")

    monkeypatch.setattr("query.profiling.insert", greedy)
    log = Path(__file__).parents[1] / "data" / "eventlog" / "q9.zstd"
    code, out, err = crystalperf("profile", log, "-o", tmp_path / "run.duckdb")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "takes more memory than there is" in err
    assert "bug" not in err
