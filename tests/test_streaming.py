"""Structured Streaming: a batch a row, where its time went, and whether the query keeps up."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import crystalperf as cp
from crystalperf.query.frameworks.spark.remarks import BatchPart, StreamingQuery
from crystalperf.query.frameworks.spark.streaming import streaming_query
from crystalperf.query.frameworks.spark.trace import read_log
from crystalperf.query.inputs.discover import discover
from crystalperf.query.results.words import Words
from crystalperf.query.text.sentences import text_of

Answer = Callable[..., tuple[int, str, str]]

START = 1_700_000_000_000
EVENT = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent"


def progress(number: int, at_ms: int, rows: int, **durations: float) -> dict[str, Any]:
    """An event as Spark 4 writes it."""
    from datetime import UTC, datetime

    text = datetime.fromtimestamp((START + at_ms) / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
    source = {
        "description": "Kafka",
        "numInputRows": rows,
        "inputRowsPerSecond": 100.0,
        "processedRowsPerSecond": 400.0,
    }
    return {
        "Event": EVENT,
        "progress": {
            "id": "q-1", "runId": "r-1", "name": "clicks", "timestamp": text, "batchId": number,
            "batchDuration": durations.get("triggerExecution"), "durationMs": durations, "eventTime": {},
            "stateOperators": [{"numRowsTotal": 7, "memoryUsedBytes": 512}],
            "sources": [source], "sink": {"description": "Console", "numOutputRows": -1},
        },
    }  # fmt: skip


def log_of(folder: Path, events: list[Any]) -> Path:
    """A log with those events between its start and its end."""
    lines = [
        {"Event": "SparkListenerLogStart", "Spark Version": "4.0.1"},
        {"Event": "SparkListenerApplicationStart", "App Name": "s", "App ID": "app-s", "Timestamp": START, "User": "u"},
        *events,
        {"Event": "SparkListenerApplicationEnd", "Timestamp": START + 60_000},
    ]
    path = folder / "log"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    return path


def batches_of(log: Path) -> dict[str, list[Any]]:
    (application,) = discover([log]).applications
    found = read_log(application.log)
    assert not [each for each in found.problems if each.severity != "info"]
    return {name: values.tolist() for name, values in found.raw["spark_batches"].items()}


def test_a_trigger_is_a_row(tmp_path: Path) -> None:
    parts = {
        "latestOffset": 5,
        "queryPlanning": 10,
        "walCommit": 20,
        "getBatch": 1,
        "addBatch": 200,
        "commitOffsets": 15,
    }
    nan = progress(2, 3000, 0, latestOffset=4, triggerExecution=6)
    nan["progress"]["sources"][0] |= {"inputRowsPerSecond": "NaN", "metrics": {"maxOffsetsBehindLatest": "12"}}
    old = progress(1, 2000, 50, triggerExecution=90, addBatch=80, getOffset=3, setOffsetRange=2)
    found = batches_of(log_of(tmp_path, [progress(0, 1000, 100, triggerExecution=255, **parts), old, nan]))
    assert found["batch_id"] == [0, 1, 2]
    assert found["start_ms"] == [1000, 2000, 3000]
    assert found["input_rows"] == [100, 50, 0]
    assert found["input_rows_per_s"] == [100, 100, None]
    assert found["trigger_ms"] == [255, 90, 6]
    assert found["add_batch_ms"] == [200, 80, None]
    assert found["latest_offset_ms"] == [5, 5, 4]
    assert found["commit_offsets_ms"] == [15, None, None]
    assert found["backlog_rows"] == [None, None, 12]
    assert found["state_rows"] == [7, 7, 7]
    assert set(zip(*(found[name] for name in ("query_id", "run_id", "name", "sink")), strict=True)) == {
        ("q-1", "r-1", "clicks", "Console")
    }


@pytest.mark.parametrize(
    "odd",
    [
        {"Event": EVENT},
        {"Event": EVENT, "progress": {}},
        {"Event": EVENT, "progress": {"id": "q", "batchId": -1, "timestamp": "2023-11-14T22:13:21.000Z"}},
        {"Event": EVENT, "progress": {"id": "q", "batchId": 1, "timestamp": "yesterday"}},
        {"Event": EVENT, "progress": {"id": "q", "batchId": 1, "timestamp": "9999-12-31T23:59:59.999-23:59"}},
        {"Event": EVENT, "progress": {"id": ["q"], "batchId": "1e99", "timestamp": 7, "durationMs": [], "sources": {}}},
    ],
)
def test_an_odd_event_is_left_out_and_counted(tmp_path: Path, odd: dict[str, Any]) -> None:
    (application,) = discover([log_of(tmp_path, [odd, progress(0, 1000, 1, triggerExecution=5)])]).applications
    found = read_log(application.log)
    assert found.raw["spark_batches"]["batch_id"].tolist() == [0]
    assert {each.name for each in found.problems} & {"incomplete_event", "senseless_time"}


def test_debug_says_where_batches_take_their_time_and_whether_they_keep_up(crystalperf: Answer, tmp_path: Path) -> None:
    events = [progress(n, 1000 * n, 100, triggerExecution=250, addBatch=200, walCommit=50) for n in range(10)]
    log = log_of(tmp_path, [*events, progress(10, 11_000, 0, triggerExecution=5)])
    code, out, _ = crystalperf("debug", log, "--json")
    assert code == 0
    (reported,) = json.loads(out)["measurements"]
    assert (reported["kind"], reported["query"], reported["batches"]) == ("streaming-query", "clicks", 10)
    assert (reported["middle_ms"], reported["longest_ms"], reported["interval_ms"]) == (250, 250, 1000)
    assert reported["parts"] == [{"key": "add_batch", "share": 0.8}, {"key": "wal_commit", "share": 0.2}]
    assert (reported["input_per_s"], reported["processed_per_s"]) == (100, 400)
    assert (reported["busy_share"], reported["pace"]) == (0.25, "keeps-up")
    assert " 25 %" in crystalperf("debug", log)[1]


NONE = dict.fromkeys(
    ("latest_offset_ms", "query_planning_ms", "wal_commit_ms", "get_batch_ms", "commit_offsets_ms", "waiting_first")
)


def query(**facts: Any) -> dict[str, Any]:
    """The output of batches.sql for a query."""
    return {
        **NONE, "waiting_last": None, "query_id": "q", "name": None, "triggers": 5, "batches": 5, "trigger_ms": 5000.0,
        "middle_ms": 1000.0, "longest_ms": 1500.0, "add_batch_ms": 4900.0, "input_rate": 10.0, "processed_rate": 20.0,
        "interval_ms": 2000.0, "busy": 0.5, **facts,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("facts", "pace", "shown"),
    [
        ({}, "keeps-up", ["50 %", "98 %"]),
        ({"input_rate": 21.0}, "falls-behind", ["21 rows/s", "20 rows/s"]),
        ({"waiting_first": 3.0, "waiting_last": 30.0}, "falls-behind", ["from 3 to 30"]),
        ({"waiting_first": 30.0, "waiting_last": 3.0}, "keeps-up", ["50 %"]),
        ({"busy": 0.99}, "no-headroom", ["99 %"]),
        ({"busy": 0.99, "batches": 2}, "keeps-up", ["2 batches"]),
        ({"input_rate": None}, "unknown", ["2.0 s"]),
        ({"batches": 0, "trigger_ms": 9.0}, "keeps-up", ["5 triggers"]),
        ({"batches": 1, "busy": None, "interval_ms": None}, "keeps-up", ["1 batch of 1.0 s, 98 %"]),
    ],
)
def test_whether_a_query_keeps_up(facts: dict[str, Any], pace: str, shown: list[str]) -> None:
    found = streaming_query(query(**facts))
    assert found.pace == pace
    text = text_of(found, Words("spark"))
    assert [each for each in shown if each not in text] == []


def test_a_public_streaming_log(real_inputs: Path, tmp_path: Path) -> None:
    log = real_inputs / "spark-eventlog" / "rapids-tools" / "e2e_streaming_eventlog.zstd"
    run = cp.profile(log, output=tmp_path / "run.duckdb")
    (said,) = run.debug().measurements
    assert isinstance(said, StreamingQuery)
    assert (said.batches, said.middle_ms) == (1, pytest.approx(159_200, abs=100))
    assert said.parts[0] == BatchPart("add_batch", pytest.approx(1, abs=0.005))
    assert (said.input_per_s, said.processed_per_s) == (pytest.approx(7.1, abs=0.1), pytest.approx(26, abs=1))
