"""Secrets in a log do not get into the run file, in whichever field they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import crystalperf as cp
from crystalperf import indexes
from crystalperf.query.inputs.containers import LogFile, Part, batches
from crystalperf.query.trace.records import Problems, shortened
from crystalperf.query.trace.redaction import HIDDEN, redacted

DATA = Path(__file__).parents[1] / "data"
S = "hunter2hunter2"

TEXTS = [
    f"jdbc:postgresql://db/shop?user=me&password={S}",
    f"jdbc:sqlserver://db;user=me;password={S};encrypt=true",
    f"jdbc:mysql://me:{S}@db/shop",
    f"wasbs://box@acme.blob.example.org/a?sv=2024&sig={S}",
    f"https://bucket.s3.example.org/a?X-Amz-Credential={S}&X-Amz-Signature={S}",
    f"CREATE USER me IDENTIFIED BY '{S}'",
    f"CREATE TABLE a USING jdbc OPTIONS (url 'x', password '{S}')",
    f'CREATE TABLE a USING jdbc OPTIONS ("dbPassword" = "{S}")',
    f"SELECT * FROM a WHERE api_key = '{S}' AND b = 1",
    f"SELECT * FROM a WHERE secret_token IN ('{S}')",
    f"PushedFilters: [IsNotNull(password), EqualTo(password,{S})]",
    f"Filter (isnotnull(password#12) AND (password#12 = {S}))",
    f"java.io.IOException: 401 for Authorization: Bearer {S}",
    f"Exception: fs.azure.account.key.acme={S} was refused",
    f"--conf spark.hadoop.fs.s3a.secret.key={S} --conf a=b",
    f'{{"client_secret": "{S}"}}',
    f"AccountName=a;AccountKey={S}==;EndpointSuffix=b",
    f'sasl.jaas.config=org.example.PlainLoginModule required username="a" password="{S}"',
]
SHAPES = [
    "AKIA" + "ABCDEFGHIJKLMNOP",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl",
    "ghp_" + "a" * 36,
    "-----BEGIN RSA PRIVATE KEY----- MIIE",
]
HARMLESS = [
    "HashAggregate(keys=[token_count#12], functions=[sum(passenger_count#4)])",
    "count at Job.scala:12",
    "SELECT passengers, secretary FROM rides WHERE author = 'x'",
    "Exchange hashpartitioning(l_orderkey#1L, 200), ENSURE_REQUIREMENTS, [plan_id=19]",
    "s3a://bucket/table/year=2024",
    "ExecutorLostFailure: Container killed by YARN for exceeding memory limits",
    "FileScan parquet [key#1,basic#2] Batched: true, Location: InMemoryFileIndex(1 paths)[hdfs://nn:8020/a]",
]


@pytest.mark.parametrize("text", TEXTS, ids=lambda each: each[:40])
def test_values_named_as_secrets_are_hidden(text: str) -> None:
    found = redacted(text)
    assert S not in found
    assert HIDDEN in found
    assert found[:8] == text[:8]


@pytest.mark.parametrize("text", SHAPES, ids=lambda each: each[:12])
def test_values_that_look_like_secrets_are_hidden(text: str) -> None:
    assert redacted(f"before {text} after").startswith(f"before {HIDDEN}")


@pytest.mark.parametrize("text", HARMLESS, ids=lambda each: each[:30])
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert redacted(text) == text
    assert shortened(text) == text


def test_no_field_of_a_log_brings_a_secret_into_the_run_file(tmp_path: Path) -> None:
    """Every text of every event says a password, and every wildcard of the settings is used for one."""
    log = LogFile("q9", (Part(str(DATA / "eventlog" / "q9.zstd")),))
    secret = f"password={S}"
    keys = ("App Name", "spark.jobGroup.id", "spark.job.description", "callSite.short", "description", "details")
    keys += ("simpleString", "Location", "errorMessage", "Failure Reason", "Removed Reason", "Description", "Message")

    def spoilt(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                key: secret if key in keys and isinstance(each, str) else spoilt(each) for key, each in value.items()
            }
        return [spoilt(each) for each in value] if isinstance(value, list) else value

    lines = []
    for batch in batches(log, Problems()):
        for line in batch.lines:
            event = spoilt(json.loads(line))
            if "Spark Properties" in event:
                event["Spark Properties"].update(
                    {
                        "spark.profiler.password": S,
                        "spark.sql.adaptive.secret": S,
                        "spark.dynamicAllocation.token": S,
                        "spark.hadoop.fs.defaultFS": f"wasbs://me:{S}@acme/a?sig={S}",
                        "spark.master": f"spark://me:{S}@host:7077",
                    }
                )
            if "Properties" in event:
                event["Properties"].update(dict.fromkeys(("spark.jobGroup.id", "spark.job.description"), secret))
                event["Properties"]["spark.scheduler.pool"] = secret
            lines.append(json.dumps(event).replace('"Event": ', '"Event":'))
    (tmp_path / "log").write_text("\n".join(lines) + "\n")
    run = cp.profile([tmp_path / "log"], output=tmp_path / "run.duckdb")
    assert HIDDEN in run.header().name
    connection = indexes.open_read_only(run.path, "run")
    tables = [each for (each,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
    for table in tables:
        assert S not in str(connection.execute(f"SELECT * FROM {table}").fetchall()), table
    assert S.encode() not in run.path.read_bytes()


def test_hiding_secrets_in_long_texts_is_fast() -> None:
    """Every repetition in the patterns has an end, but for those of the value, which nothing follows."""
    from crystalperf.query.trace import redaction

    for pattern in redaction._PATTERNS:
        before_value = pattern.pattern.rsplit("(", 1)[0]
        assert ".*" not in before_value
        assert "\\s*" not in pattern.pattern
        assert "\\w*" not in before_value
