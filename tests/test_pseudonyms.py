"""A run for strangers: names are called otherwise, the same everywhere; no figure changes; twice is once."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from crystalperf.query.frameworks.flink.framework import FLINK
from crystalperf.query.frameworks.spark.framework import SPARK
from crystalperf.query.page import grid
from crystalperf.query.run import Run
from crystalperf.query.runfile.pseudonyms import LITERAL, Pseudonyms
from crystalperf.query.text.as_json import as_json
from tests.refusals import is_one_line

Answer = Callable[..., tuple[int, str, str]]


def spark() -> Pseudonyms:
    return Pseudonyms(SPARK.reader.private)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("collect at /home/alice/jobs/report.py:88", "collect at path-1:88"),
        ("wrote to s3a://acme-lake/gold/orders/day=1", "wrote to s3a://path-1"),
        ("InMemoryFileIndex(1 paths)[file:/srv/data/part.parquet]", "InMemoryFileIndex(1 paths)[file:/path-1]"),
        (r"C:\Users\alice\data.csv is missing", "path-1 is missing"),
        ("lost 10.203.77.4: heartbeat", "lost host-1: heartbeat"),
        ("Connection refused: db.acme.internal:5432", "Connection refused: host-1:5432"),
        ("run by user=alice for alice@acme.org", "run by user=user-2 for user-1"),
        ("SELECT * FROM shop.orders WHERE day = '2026-01-01'", "SELECT * FROM table-1 WHERE day = '…'"),
        ("merge into `a`.`b` using raw on n > 17", "merge into table-1 using table-2 on n > …"),
        ("Scan parquet spark_catalog.shop.orders", "Scan parquet table-1"),
        ("FileScan parquet shop.orders[id#1L,day#2]", "FileScan parquet table-1[id#1L,day#2]"),
        ("Pushed: [IsNotNull(p), StringContains(p,green)]", "Pushed: [IsNotNull(p), StringContains(p,…)]"),
        ("Filter ((p_name#1 = green) AND (n#2L > 17))", "Filter ((p_name#1 = …) AND (n#2L > …))"),
        ("SortMergeJoin on l_suppkey = s_suppkey", "SortMergeJoin on l_suppkey = s_suppkey"),
        ("hashpartitioning(id#1L, 200), [plan_id=334]", "hashpartitioning(id#1L, 200), [plan_id=334]"),
        ("count at Report.scala:41", "count at Report.scala:41"),
        ("sql.Dataset.count(Dataset.scala:3093)", "sql.Dataset.count(Dataset.scala:3093)"),
        ("the driver's own time, and what it doesn't say", "the driver's own time, and what it doesn't say"),
        ("4 and 5 of 9 tasks and/or stages", "4 and 5 of 9 tasks and/or stages"),
    ],
)  # fmt: skip
def test_names_are_replaced_by_pseudonyms(text: str, expected: str) -> None:
    assert spark().text(text) == expected


def test_flinks_sources_are_tables() -> None:
    names = Pseudonyms(FLINK.reader.private)
    assert names.text("Source: lineitem[4] -> Calc[5]") == "Source: table-1[4] -> Calc[5]"
    assert names.text("TableSourceScan(table=[[c, d, orders]], fields=[id])") == (
        "TableSourceScan(table=[[table-2]], fields=[id])"
    )


def test_a_name_has_one_pseudonym_everywhere() -> None:
    names = spark()
    names.called("host", "node-7.acme.org")
    names.called("application", "nightly billing")
    texts = ["nightly billing on node-7.acme.org", "Scan parquet shop.orders", "node-7.acme.org lost shop.orders"]
    for each in texts:
        names.meet(each)
    assert [names.text(each) for each in texts] == [
        "application-1 on host-1",
        "Scan parquet table-1",
        "host-1 lost table-1",
    ]


PIECES = st.sampled_from(
    [
        *("select", "from", "join", "where", "insert into", "and", "between", "=", "<", ">=", "'x y'", '"z"', "'", '"'),
        *("shop.orders", "17", "-3.5", "host-1", "path-2:88", "table-3", "user=alice", "user=user-1", "s3a://b/k", "`"),
        *("/", "a@b.org", "10.0.0.1", "h.acme.org:80", "Scan", "parquet", "In(a,b)", "p#1 = green", "…"),
        *("C:\\x\\y", "user: user-9", "application-4", "(", ")", ",", "[", "]", ":", "\n", "EqualTo(a,", "x.py", "é"),
        *("file:/a/b", "/home/bob/x.py:3"),
    ]
)  # fmt: skip


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.one_of(PIECES, st.text(max_size=6)), max_size=14), st.sampled_from([" ", ""]))
@example(["'", "'x y'"], " ")
def test_replacing_twice_changes_nothing(pieces: list[str], between: str) -> None:
    text = between.join(pieces)
    names = spark()
    names.meet(text)
    once = names.text(text)
    again = spark()
    again.meet(once)
    assert again.text(once) == once


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.one_of(PIECES, st.text(max_size=6)), max_size=14))
def test_lines_and_words_around_names_stay(pieces: list[str]) -> None:
    before = "stage:3.0 of 4 tasks "
    assert spark().text(before + " ".join(pieces)).startswith(before)


# A run --------------------------------------------------------------------------------------------------------------


def figures(value: Any) -> list[Any]:
    """All values of an answer that are not text, in order."""
    if isinstance(value, dict):
        return [each for part in value.values() for each in figures(part)]
    if isinstance(value, list):
        return [each for part in value for each in figures(part)]
    return [] if isinstance(value, str) else [value]


PRIVATE = (
    r"lineitem|partsupp|part\.parquet|supplier|green|10\.203\.77|crystalperf-lab|20261121113629|/srv/|workloads\.py"
)


def test_no_figure_changes_and_no_name_stays(demo_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "MAX_REPLAYED", 0)  # the usual what-ifs alone
    plain = json.dumps(as_json(demo_run.verdict()))
    assert re.search(PRIVATE, plain)
    with demo_run.redacted() as shared:
        reported = json.loads(json.dumps(as_json(shared.verdict())))
        assert figures({**reported, "run": ""}) == figures({**json.loads(plain), "run": ""})
        picture = json.dumps(as_json(shared.page_data()), ensure_ascii=False)
        assert not re.search(PRIVATE, picture.replace(str(shared.path), ""))
        for name in ("application-1", "host-", "path-", "table-", LITERAL):
            assert name in picture
        place = shared.path
    assert not place.exists()


def test_redacting_a_run_twice_changes_nothing(demo_log_run: Run) -> None:
    with demo_log_run.redacted() as once, once.redacted() as twice, duckdb.connect() as connection:
        connection.execute(f"ATTACH '{once.path}' AS one (READ_ONLY); ATTACH '{twice.path}' AS two (READ_ONLY)")
        tables = connection.execute("SELECT table_name FROM duckdb_tables() WHERE database_name = 'one'").fetchall()
        assert len(tables) > 15
        for (table,) in tables:
            rows = connection.execute(f"FROM one.{table} EXCEPT ALL FROM two.{table}").fetchall()
            assert rows == [], table


def test_report_redacts(
    crystalperf: Answer, demo_log_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grid, "MAX_REPLAYED", 0)  # the usual what-ifs alone
    place = tmp_path / "shared.html"
    code, _, err = crystalperf("report", demo_log_run.path, "-o", place, "--redact")
    assert (code, err) == (0, "")
    html = place.read_text(encoding="utf-8")
    assert not re.search(f"{PRIVATE}|{re.escape(str(demo_log_run.path))}", html)
    assert "application-1" in html
    assert "crystalperf predict {run} --set {settings}" in html
    code, out, err = crystalperf("report", demo_log_run.path, "-o", place, "--redact")  # of this run or of another
    assert (code, out, place.read_text(encoding="utf-8")) == (1, "", html)
    is_one_line(err, place, "application-", "app-20261121113629-0000")
    assert crystalperf("report", demo_log_run.path, "-o", place, "--redact", "--force")[0] == 0
