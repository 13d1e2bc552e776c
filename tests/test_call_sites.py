"""Call sites: where in the user's program the work of a stage was requested."""

from __future__ import annotations

import duckdb
import pytest

from crystalperf.query.frameworks.spark.findings import CacheRows, ReadAgain
from crystalperf.query.frameworks.spark.sites import call_sites
from crystalperf.query.results.recommendations import ChangeSetting, FollowAdvice, Saving
from crystalperf.query.results.words import Words
from crystalperf.query.text.recommendations import recommendation_text

THREAD = "$anonfun$withThreadLocalCaptured$2 at CompletableFuture.java:1768"


@pytest.mark.parametrize(
    ("own", "query", "site"),
    [
        ("collect at job.py:17", "count", "collect at job.py:17"),
        ("toRdd at Report.scala:41", "SELECT 1", "toRdd at Report.scala:41"),
        (THREAD, "save at Report.scala:44", "save at Report.scala:44"),
        ("parquet at NativeMethodAccessorImpl.java:0", None, None),
        ("count at NativeMethodAccessorImpl.java:0", "count", None),
        (THREAD, "show at <unknown>:0", None),
        (THREAD, "select a,\n  sum(b) from t", "select a, sum(b) from t"),
        (THREAD, "select " + 100 * "a", "select " + 72 * "a" + "…"),
        (None, "query 3", None),
    ],
)
def test_call_site_is_a_line_of_the_program_or_the_query_text(
    own: str | None, query: str | None, site: str | None
) -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE scopes AS SELECT 'sql:0' AS scope_id, ?::VARCHAR AS name", [query])
        connection.execute(
            "CREATE TABLE stages AS SELECT 'stage:1.0' AS stage_id, 'sql:0' AS scope_id, ?::VARCHAR AS call_site", [own]
        )
        assert call_sites(connection) == ({} if site is None else {"stage:1.0": site})


def test_recommendation_names_its_place_once() -> None:
    finding = ReadAgain(5e3, "modelled", CacheRows("query"), "stage:1.0", 2, 3, "query")
    found = FollowAdvice(
        price="code", because="repeated-reads", saving=Saving("modelled"), finding=finding,
        call_site="collect at /home/me/job.py:17",
    )  # fmt: skip
    assert found.stage_id == "stage:1.0"
    assert recommendation_text(found, Words("spark")).endswith("In your program: collect at job.py:17.")
    setting = ChangeSetting(price="setting", because="r", saving=Saving("modelled"))
    assert setting.stage_id is None
