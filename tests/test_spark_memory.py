"""Memory of Spark's executors: what a log records, the heap that was needed, and what follows from it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import pytest

import crystalperf as cp
from crystalperf.query.frameworks.spark.log import task_rows
from crystalperf.query.frameworks.spark.needs import memory_use, needs
from crystalperf.query.frameworks.spark.recommendations import RightSizeMemory
from crystalperf.query.frameworks.spark.remarks import HeapNearLimit
from crystalperf.query.results.assumptions import LiveDataFits
from crystalperf.query.results.refusals import MemoryRunsOut
from crystalperf.query.run import Run
from crystalperf.query.text.sentences import lines_of
from tests.spark_logs import MIB, Stage, Task, write

POLLED = {"spark.executor.metrics.pollingInterval": "1s"}
SMALL_USE = {"JVMHeapMemory": 400, "OnHeapExecutionMemory": 200, "OnHeapUnifiedMemory": 220}
COLLECTED = {"MajorGCCount": 3 / MIB}
LARGE_USE = {"JVMHeapMemory": 3800, "OnHeapExecutionMemory": 200, "OnHeapUnifiedMemory": 220}


def profiled(folder: Path, peaks_mib: Mapping[str, float], properties: Mapping[str, str] = POLLED, **of: int) -> Run:
    given = {"spark.master": "yarn", "spark.executor.memory": "4g", **properties}
    tasks = [Task(10_000, executor=str(each % 2 + 1), cpu_ms=9_000, peaks_mib=peaks_mib, **of) for each in range(4)]
    path = write(folder / "log", [Stage(tasks)], executors={"1": 2, "2": 2}, properties=given)
    return cp.profile([path], output=folder / "run.duckdb")


def needed(run: Run) -> Any:
    with duckdb.connect(str(run.path), read_only=True) as connection:
        properties = dict(connection.execute("SELECT properties FROM runs").fetchall()[0][0])
        use = memory_use(connection, properties)
        return needs(connection, properties), None if use is None else use.safe_bytes


def test_peaks_are_the_largest_of_each_executor_and_stage(tmp_path: Path) -> None:
    tasks = [Task(1000, peaks_mib={"JVMHeapMemory": mib, "MajorGCCount": 0}) for mib in (100, 300, 200)]
    log = write(tmp_path / "log", [Stage(tasks), Stage([Task(1000)])], executors={"1": 4})
    lines = log.read_text().splitlines()
    of_stage = {
        "Event": "SparkListenerStageExecutorMetrics", "Executor ID": "driver", "Stage ID": 0, "Stage Attempt ID": 0,
        "Executor Metrics": {"JVMHeapMemory": 50 * MIB},
    }  # fmt: skip
    heartbeat = {
        "Event": "SparkListenerExecutorMetricsUpdate", "Executor ID": "1", "Metrics Updated": [],
        "Executor Metrics Updated": [
            {"Stage ID": 0, "Stage Attempt ID": 0, "Executor Metrics": {"JVMHeapMemory": 500 * MIB}},
            {"Stage ID": -1, "Stage Attempt ID": -1, "Executor Metrics": {"JVMHeapMemory": 40 * MIB}},
            {"Stage ID": 1, "Stage Attempt ID": 0, "Executor Metrics": {"JVMHeapMemory": -1}},
        ],
    }  # fmt: skip
    log.write_text("\n".join([*lines[:-1], json.dumps(of_stage), json.dumps(heartbeat), lines[-1], ""]))
    run = cp.profile([log], output=tmp_path / "run.duckdb")
    with duckdb.connect(str(run.path), read_only=True) as connection:
        found = connection.execute(
            f"SELECT worker_id, stage_id, jvm_heap_bytes / {MIB} FROM spark_executor_metrics ORDER BY ALL"
        ).fetchall()
    assert found == [("1", "stage:0.0", 500), ("1", None, 40), ("driver", "stage:0.0", 50)]


def test_peaks_are_the_same_without_compiled_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = [Task(1000, executor=str(number % 3), peaks_mib={"JVMHeapMemory": number % 77}) for number in range(20_000)]
    log = write(tmp_path / "log", [Stage(tasks)], executors={"0": 4, "1": 4, "2": 4})
    question = "SELECT worker_id, jvm_heap_bytes FROM spark_executor_metrics ORDER BY ALL"
    found = []
    for name in ("compiled", "decoded"):
        run = cp.profile([log], output=tmp_path / f"{name}.duckdb")
        with duckdb.connect(str(run.path), read_only=True) as connection:
            found.append(connection.execute(question).fetchall())
        monkeypatch.setattr(task_rows, "is_compiled", lambda: False)
    assert found[0] == found[1]
    assert len(found[0]) == 3


def test_a_heap_of_which_little_was_used_is_made_smaller(tmp_path: Path) -> None:
    run = profiled(tmp_path, SMALL_USE)
    found, least = needed(run)
    assert found.executors == 2
    assert found.used_bytes == 400 * MIB
    assert least == found.safe_bytes
    assert found.floor_bytes <= found.safe_bytes <= found.needed_bytes
    assert found.safe_bytes >= 400 * MIB
    verdict = run.verdict()
    (smaller,) = [each for each in verdict.recommendations if isinstance(each, RightSizeMemory)]
    (change,) = smaller.settings
    assert (change.name, change.before) == ("spark.executor.memory", "4g")
    assert change.after_bytes is not None
    assert change.after_bytes >= found.safe_bytes
    assert smaller.freed_byte_ms == (4096 * MIB - change.after_bytes) * found.lifetime_ms
    assert lines_of(smaller, verdict.debug.words) == (f"--conf spark.executor.memory={change.after}",)


def test_memory_that_was_never_in_use_costs_no_collections(tmp_path: Path) -> None:
    for name, peaks in (("small", SMALL_USE), ("none", {})):
        (tmp_path / name).mkdir()
        run = profiled(tmp_path / name, peaks, gc_ms=500, peak_memory_mib=50)
        found = run.predict("memory=0.5x")
        assert found.predicted_ms is not None
        longer_ms = found.predicted_ms - found.runtime_ms
        assert longer_ms == pytest.approx(0 if peaks else 500, abs=1)


def test_a_heap_that_was_used_stays(tmp_path: Path) -> None:
    run = profiled(tmp_path, LARGE_USE)
    assert not [each for each in run.verdict().recommendations if isinstance(each, RightSizeMemory)]


def test_heartbeats_alone_do_not_show_peaks(tmp_path: Path) -> None:
    run = profiled(tmp_path, SMALL_USE, {})
    found, least = needed(run)
    assert not found.is_polled
    assert least is None
    assert not [each for each in run.verdict().recommendations if isinstance(each, RightSizeMemory)]


def test_without_metrics_nothing_is_needed(tmp_path: Path) -> None:
    assert needed(profiled(tmp_path, {})) == (None, None)


def test_less_memory_than_used_would_run_out(tmp_path: Path) -> None:
    run = profiled(tmp_path, {**LARGE_USE, **COLLECTED})
    found, _ = needed(run)
    (refusal,) = run.predict("memory=0.5x").refused
    assert refusal == MemoryRunsOut(2048 * MIB, found.floor_bytes)
    assert found.floor_bytes > 2048 * MIB
    assert not any(isinstance(each, MemoryRunsOut) for each in run.predict("memory=0.99x").refused)


def test_without_a_full_collection_use_may_be_garbage(tmp_path: Path) -> None:
    run = profiled(tmp_path, LARGE_USE, peak_memory_mib=50)
    found, _ = needed(run)
    assert found.floor_bytes == 450 * MIB
    prediction = run.predict("memory=0.5x")
    assert not prediction.refused
    assert LiveDataFits(2048 * MIB, found.safe_bytes) in prediction.assumptions


@pytest.mark.parametrize("damage", ["null", '"many"', "{}", '{"JVMHeapMemory": null}', '{"JVMHeapMemory": 1e300}'])
def test_damaged_metrics_are_left_out(tmp_path: Path, damage: str) -> None:
    log = write(tmp_path / "log", [Stage([Task(1000, peaks_mib=SMALL_USE)])], executors={"1": 1})
    text = log.read_text()
    begin = text.index('"Task Executor Metrics": ') + len('"Task Executor Metrics": ')
    log.write_text(text[:begin] + damage + text[text.index("}", begin) + 1 :])
    run = cp.profile([log], output=tmp_path / "run.duckdb")
    with duckdb.connect(str(run.path), read_only=True) as connection:
        assert connection.execute("SELECT max(jvm_heap_bytes) FROM spark_executor_metrics").fetchone() == (None,)


def test_a_heap_near_its_limit_is_said_if_collections_show_it(tmp_path: Path) -> None:
    """Garbage alone fills any heap, without a full collection."""
    for name, peaks, expected in (("full", {**LARGE_USE, **COLLECTED}, 1), ("garbage", LARGE_USE, 0)):
        (tmp_path / name).mkdir()
        measured = profiled(tmp_path / name, peaks).verdict().debug.measurements
        found = [each for each in measured if isinstance(each, HeapNearLimit)]
        assert len(found) == expected
        assert all(each.full_gcs == 3 and each.floor_bytes > 0.8 * each.heap_bytes for each in found)


def test_overhead_is_sized_where_the_log_has_the_process_tree(tmp_path: Path) -> None:
    tree = {"ProcessTreeJVMRSSMemory": 900, "ProcessTreePythonRSSMemory": 1500, "JVMOffHeapMemory": 100}
    run = profiled(tmp_path, {**SMALL_USE, **tree}, {**POLLED, "spark.executor.memoryOverhead": "1g"})
    (smaller,) = [each for each in run.verdict().recommendations if isinstance(each, RightSizeMemory)]
    heap, overhead = smaller.settings
    assert (overhead.name, overhead.before) == ("spark.executor.memoryOverhead", "1g")
    assert overhead.after_bytes is not None
    assert overhead.after_bytes >= 1600 * MIB
    assert heap.after_bytes is not None
    assert smaller.share == pytest.approx(1 - (heap.after_bytes + overhead.after_bytes) / (5120 * MIB))
