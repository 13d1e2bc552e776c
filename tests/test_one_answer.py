"""The same question of the same run has one answer, in whatever order a database hands out its rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import crystalperf as cp
from crystalperf.query import sql
from crystalperf.query.execution.dag import Tasks
from crystalperf.query.execution.evidence import gathered
from crystalperf.query.page.stacktree import Tree, least_cut

ORDERS = pytest.mark.parametrize("order", [1, -1])

TASKS = Tasks(
    task_id=np.array([1]),
    stage=np.array([0]),
    worker=np.array([0]),
    host=np.array([0]),
    launch_ms=np.array([0.0]),
    finish_ms=np.array([200.0]),
    parts_ms=np.array([[0.0, 0.0, 200.0, 0.0]]),
    placement=np.array([0]),
    pipeline_wait_ms=np.array([0.0]),
    follows=np.array([-1]),
)


def sampled(
    stacks: Sequence[tuple[list[str], str, tuple[float, float, float]]],
    samples: Sequence[tuple[int, float]],
    order: int,
) -> duckdb.DuckDBPyConnection:
    """Samples (stack, weight in ms) of one task, blocked; stacks are (frames, symbol, vector), and the last frame
    decides."""
    connection = duckdb.connect()
    connection.execute(
        """
        CREATE TABLE stacks (
            stack_id INTEGER, frames VARCHAR[], attributed_depth INTEGER, index_name VARCHAR, symbol VARCHAR,
            skipped VARCHAR, cpu FLOAT, disk FLOAT, net FLOAT
        );
        CREATE TABLE samples (time_ms DOUBLE, stack_id INTEGER, kind VARCHAR, weight_ms DOUBLE, task_id BIGINT);
        CREATE TABLE tasks (launch_ms DOUBLE, finish_ms DOUBLE, fetch_wait_ms DOUBLE);
        """
    )
    rows = [
        (number, frames, len(frames) - 1, "index-1", symbol, None, *vector)
        for number, (frames, symbol, vector) in enumerate(stacks)
    ]
    put(connection, "stacks", rows[::order])
    put(connection, "samples", [(1.0, stack, "wall", weight, 1) for stack, weight in samples][::order])
    return connection


def put(connection: duckdb.DuckDBPyConnection, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    connection.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)


def test_stages_are_kept_in_the_order_of_their_trace(tmp_path: Path) -> None:
    run = cp.profile(Path(__file__).parent / "data/training/torch-loader", output=tmp_path / "run.duckdb")
    with duckdb.connect(str(run.path), read_only=True) as connection:
        ids = [row[0] for row in connection.execute("SELECT stage_id FROM stages ORDER BY rowid").fetchall()]
    assert len(ids) > 10
    assert ids == [f"segment:{number}" for number in range(len(ids))]


@ORDERS
def test_function_label_is_uncertain_only_where_no_call_decides(order: int) -> None:
    """100 of 200 ms are of a label that says half disk, half network: 50 ms either way."""
    stacks = [(["Reader.read"], "read", (0.0, 0.5, 0.5)), (["Socket.read0", "Reader.read"], "read", (0.0, 0.0, 1.0))]
    found = gathered(
        sampled(stacks, [(0, 100.0), (1, 100.0)], order),
        0.0,
        10.0,
        TASKS,
        ("cpu", "disk", "net"),
        has_upstream_waits=False,
    )
    assert found.labels.tolist() == [0.0, 0.25, 0.25]


def hot(connection: duckdb.DuckDBPyConnection) -> list[tuple[Any, ...]]:
    mixed = "sum(cpu * weight_ms) / sum(weight_ms)"
    question = sql.text("hot_functions").format(vector="cpu", mixed=mixed)
    return connection.execute(question, [0.0, 10.0, 5]).fetchall()


@ORDERS
def test_function_that_calls_two_for_equal_times_reports_the_same_one_everywhere(order: int) -> None:
    stacks = [
        (["acme.B.last:1", "acme.A.run:3"], "run", (1.0, 0.0, 0.0)),
        (["acme.B.first:1", "acme.A.run:3"], "run", (1.0, 0.0, 0.0)),
        (["acme.C.other:9"], "other", (1.0, 0.0, 0.0)),
    ]
    samples = [(0, 0.1), (0, 0.2), (0, 0.3), (1, 0.3), (1, 0.2), (1, 0.1), (2, 1.2)]
    assert hot(sampled(stacks, samples, order)) == [
        ("acme.A.run", "index-1", 1.2, "acme.B.first", 0.6, 1.0),
        ("acme.C.other", "index-1", 1.2, None, None, 1.0),
    ]


@ORDERS
def test_function_with_several_names_in_stacks_is_reported_by_its_source_name(order: int) -> None:
    stacks = [
        (["acme.A.$anonfun$run$1$adapted:3"], "run", (1.0, 0.0, 0.0)),
        (["acme.A.run:2"], "run", (1.0, 0.0, 0.0)),
    ]
    ((function, *_),) = hot(sampled(stacks, [(0, 9.0), (1, 1.0)], order))
    assert function == "acme.A.run"


def test_first_of_equal_branches_are_kept() -> None:
    ends = np.arange(1, 5)
    tree = Tree(np.array([-1, 0, 0, 0, 0]), np.array([-1, 0, 1, 2, 3]), ends, (0, 1, 5))
    total_ms = tree.totals(np.array([0.0, 20.0, 20.0, 20.0, 20.0]))
    kept, target, cut_ms = least_cut(tree, total_ms, ends, np.zeros(4, dtype=np.int64), most_nodes=3, most_rows=10)
    assert kept.frame.tolist() == [-1, 0, 1]
    assert target.tolist() == [0, 1, 2, 0, 0]
    assert cut_ms == 20.0
