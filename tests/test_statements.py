"""Statements of the clients of a Spark Connect or Thrift server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import crystalperf as cp
from crystalperf.query.frameworks.spark.remarks import Statements
from crystalperf.query.frameworks.spark.trace import read_log
from crystalperf.query.inputs.discover import discover
from tests.test_streaming import START, log_of

RECORDINGS = Path(__file__).parents[1] / "lab" / "recordings" / "servers"

CONNECT = "org.apache.spark.sql.connect.service.SparkListenerConnectOperation"
THRIFT = "org.apache.spark.sql.hive.thriftserver.ui.SparkListenerThriftServerOperation"


def connect(what: str, name: str, at_ms: int, **more: Any) -> dict[str, Any]:
    """An event of a Connect server as Spark 4 writes it."""
    ids = {"operationId": name, "jobTag": f"SparkConnect_OperationTag_{name}", "eventTime": START + at_ms}
    return {"Event": CONNECT + what, **ids, "extraTags": {}, **more}


def received(name: str, at_ms: int, user: str, query: str) -> dict[str, Any]:
    text = f'plan {{\n  root {{\n    sql {{\n      query: "{query}"\n    }}\n  }}\n}}'
    names = {"userId": user, "userName": user, "sessionId": f"session-of-{user}"}
    return connect("Started", name, at_ms, statementText=text, **names)


def thrift(what: str, name: str, **more: Any) -> dict[str, Any]:
    return {"Event": THRIFT + what, "id": name, **more}


def job_start(job: int, **properties: str) -> dict[str, Any]:
    times = {"Submission Time": START + 400, "Stage Infos": [], "Stage IDs": []}
    return {"Event": "SparkListenerJobStart", "Job ID": job, **times, "Properties": properties}


def recorded(server: str, folder: Path) -> cp.Run:
    return cp.profile(RECORDINGS / f"{server}.zstd", output=folder / "run.duckdb")


def raw(log: Path) -> tuple[list[dict[str, Any]], dict[str, str | None]]:
    """The rows of spark_statements, and the parents of scopes."""
    (application,) = discover([log]).applications
    found = read_log(application.log)
    columns = {name: values.tolist() for name, values in found.raw["spark_statements"].items()}
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    scopes = {name: values.tolist() for name, values in found.scopes.items()}
    return rows, dict(zip(scopes["scope_id"], scopes["parent_id"], strict=True))


def test_statement_of_connect_has_its_user_query_and_end(tmp_path: Path) -> None:
    events = [
        received("a", 1_000, "ana", 'SELECT \\"x\\"\\nFROM t'),
        connect("Analyzed", "a", 1_100),
        connect("Finished", "a", 5_000, producedRowCount=12),
        connect("Closed", "a", 5_500),
    ]
    ((row,), parents) = raw(log_of(tmp_path, events))
    assert (row["scope_id"], row["server"], row["user_name"], row["session_id"]) == (
        "statement:0",
        "connect",
        "ana",
        "session-of-ana",
    )
    assert (row["start_ms"], row["end_ms"], row["closed_ms"]) == (1_000, 5_000, 5_500)
    assert (row["status"], row["row_count"]) == ("succeeded", 12)
    assert row["text"] == 'SELECT "x" FROM t'
    assert parents["statement:0"] is None


@pytest.mark.parametrize(
    ("ends", "status", "error"),
    [
        (["Finish"], "succeeded", None),
        (["Error", "Finish"], "failed", "no such column"),
        (["Canceled"], "canceled", None),
        (["Timeout"], "canceled", None),
        ([], "unfinished", None),
    ],
)
def test_status_of_a_thrift_statement(tmp_path: Path, ends: list[str], status: str, error: str | None) -> None:
    start = {"sessionId": "s", "statement": "SELECT 1", "startTime": START + 10, "groupId": "g", "userName": "bob"}
    made = [thrift(each, "t", finishTime=START + 90, errorMsg="no such column", errorTrace="…") for each in ends]
    ((row,), _) = raw(log_of(tmp_path, [thrift("Start", "t", **start), *made]))
    assert (row["status"], row["error"]) == (status, error)
    assert row["end_ms"] == (90 if ends else None)


def test_jobs_and_queries_belong_to_the_statement_that_marked_them(tmp_path: Path) -> None:
    query = {"Event": "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart", "executionId": 3}
    events = [
        received("a", 100, "ana", "SELECT 1"),
        {"Event": THRIFT + "Start", "id": "t", "groupId": "group-t", "startTime": START + 200, "statement": "SELECT 2"},
        {**query, "time": START + 300, "jobTags": ["other", "SparkConnect_OperationTag_a"]},
        job_start(7, **{"spark.sql.execution.id": "3"}),
        job_start(8, **{"spark.jobGroup.id": "group-t"}),
        job_start(9, **{"spark.job.tags": "x,SparkConnect_OperationTag_a"}),
        job_start(10, **{"spark.jobGroup.id": "a streaming query"}),
    ]
    _, parents = raw(log_of(tmp_path, events))
    assert parents["sql:3"] == "statement:0"
    assert parents["job:7"] == "sql:3"
    assert parents["job:8"] == "statement:1"
    assert parents["job:9"] == "statement:0"
    assert parents["job:10"] is None


def test_statement_without_an_id_is_counted_as_missing(tmp_path: Path) -> None:
    (application,) = discover([log_of(tmp_path, [{"Event": CONNECT + "Started", "eventTime": START}])]).applications
    found = read_log(application.log)
    assert not len(found.raw["spark_statements"]["scope_id"])
    assert [each.name for each in found.problems if each.severity == "data loss"] == ["incomplete_event"]


def test_end_without_a_start_makes_no_statement(tmp_path: Path) -> None:
    rows, _ = raw(log_of(tmp_path, [connect("Finished", "a", 5), thrift("Finish", "b", finishTime=START + 5)]))
    assert rows == []


@pytest.mark.parametrize(
    ("request_text", "text"),
    [
        ("sql_command {\n  input {\n    sql {\n      query: \"SELECT \\'\\303\\244\\'\"\n    }\n  }\n}", "SELECT 'ä'"),
        ("common {\n  plan_id: 7\n}\naggregate {\n  input {\n    range {\n      end: 9\n", "aggregate of range"),
        ("common {\n  plan_id: 7\n}\nfancy {\n}", "common { plan_id: 7 } fancy { }"),
    ],
)
def test_request_to_connect_is_named_by_its_query_or_its_operations(
    tmp_path: Path, request_text: str, text: str
) -> None:
    started = connect("Started", "a", 0, statementText=request_text, userId="ana", sessionId="s")
    ((row,), _) = raw(log_of(tmp_path, [started]))
    assert row["text"] == text


@pytest.mark.parametrize(
    ("server", "count", "failed", "statements"), [("connect", 9, 1, {5, 4}), ("thrift", 7, 1, {4, 3})]
)
def test_recorded_server_names_the_heavy_statements_of_the_heavy_user(
    tmp_path: Path, server: str, count: int, failed: int, statements: set[int]
) -> None:
    run = recorded(server, tmp_path)
    (found,) = [each for each in run.debug().measurements if isinstance(each, Statements)]
    assert (found.count, found.failed, found.session_count) == (count, failed, 2)
    assert [each.user for each in found.heaviest] == ["ana"] * 3
    assert all("sha2" in (each.text or "") for each in found.heaviest)
    assert {each.statements for each in found.sessions} == statements
    assert found.sessions[0].user == "ana"
    assert found.sessions[0].share > 0.85
    assert sum(each.share for each in found.sessions) == pytest.approx(1.0)


@pytest.mark.parametrize("server", ["connect", "thrift"])
def test_times_of_a_recorded_statement_are_those_of_its_own_stages(tmp_path: Path, server: str) -> None:
    """The two clients sent statements at the same time."""
    run = recorded(server, tmp_path)
    rows = run.sql(
        "SELECT s.scope_id, r.task_ms, r.stages, r.planning_ms, r.length_ms FROM spark_statements AS s"
        " JOIN spark_statement_resources AS r USING (scope_id) WHERE r.stages > 0"
    ).rows
    ((whole_ms,),) = run.sql("SELECT sum(finish_ms - launch_ms) FROM tasks").rows
    assert sum(row[1] for row in rows) == pytest.approx(whole_ms)
    assert all(0 <= row[3] <= row[4] for row in rows)
    scope = max(rows, key=lambda row: row[1])[0]
    assert run.debug(scope).runtime_ms == pytest.approx(max(row[4] for row in rows if row[0] == scope))


def test_stages_of_connect_are_named_by_their_statement(tmp_path: Path) -> None:
    run = recorded("connect", tmp_path)
    names = {row[0] for row in run.sql("SELECT name FROM stages").rows}
    names |= {row[0] for row in run.sql("SELECT name FROM scopes WHERE kind = 'sql'").rows}
    assert names
    assert not any("session_id" in name for name in names)


def test_names_of_users_are_redacted(tmp_path: Path) -> None:
    run = recorded("thrift", tmp_path)
    with run.redacted() as shared:
        users = {row[0] for row in shared.sql("SELECT user_name FROM spark_statements").rows}
        (found,) = [each for each in shared.debug().measurements if isinstance(each, Statements)]
    assert len(users) == 2
    assert not users & {"ana", "bob"}
    assert {each.user for each in found.sessions} == users
